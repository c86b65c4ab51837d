//! Modules and symbols of addresses.

use std::borrow::Cow;
use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::filter::Filter;
use crate::modules::{ModuleId, Modules};
use crate::processes::{Processes, UNKNOWN_NAME};
use crate::read::Contents;
use crate::sample_counts::SampleLocation;
use crate::symbols::{Missing, SymbolFinder};

/// Index of a symbol in an [`SymbolIndex`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SymbolId(usize);

/// A symbol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    /// The module of the symbol.
    pub module: ModuleId,
    /// Address relative to the base of the module.
    pub address: u32,
    /// Length in bytes, if it is known.
    pub size: Option<u32>,
    /// Demangled name.
    pub name: String,
}

/// The module of an address, or a placeholder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Owner {
    Module(ModuleId),
    /// A kernel-mode address, and the recording has no kernel modules.
    Kernel,
    /// No recorded module covers the address.
    Unknown,
}

/// The symbol of an address, or a placeholder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Name {
    Symbol(SymbolId),
    Offset(ModuleId, u64),
    Address(u64),
}

/// An address in the address space in which it was executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct AddressKey {
    /// 0 in kernel mode, where all processes share the modules.
    process: u32,
    kernel: bool,
    ip: u64,
}

impl AddressKey {
    fn of(location: &SampleLocation) -> Self {
        Self { process: if location.kernel { 0 } else { location.process }, kernel: location.kernel, ip: location.ip }
    }
}

/// The modules and symbols of addresses.
#[derive(Debug, Default)]
pub struct SymbolIndex {
    addresses: FxHashMap<AddressKey, (Owner, Name)>,
    modules: Modules,
    symbols: Vec<Symbol>,
    missing: Vec<Missing>,
}

impl SymbolIndex {
    /// Resolves every location of the counts that `filter` selects.
    #[must_use]
    pub fn new(contents: &Contents, filter: &Filter, finder: &SymbolFinder) -> Self {
        let locations = contents.sample_counts.locations().map(|(location, _)| *location);
        Self::of(
            &contents.processes,
            locations.filter(|location| filter.selects(location.sampled_source(), location.process)),
            finder,
        )
    }

    /// Resolves these locations: first the modules, then the symbols of one module after the other.
    #[must_use]
    pub fn of(
        processes: &Processes,
        locations: impl IntoIterator<Item = SampleLocation>,
        finder: &SymbolFinder,
    ) -> Self {
        let mut symbol_index = Self { modules: processes.modules().clone(), ..Self::default() };
        let mut covered: BTreeMap<ModuleId, Vec<(AddressKey, u64)>> = BTreeMap::new();
        for location in locations {
            let key = AddressKey::of(&location);
            if let Some((module, offset)) = processes.module_at(location.process, location.kernel, location.ip) {
                covered.entry(module).or_default().push((key, offset));
                continue;
            }
            let unnamed_kernel = location.kernel && !processes.has_kernel_modules();
            let owner = if unnamed_kernel { Owner::Kernel } else { Owner::Unknown };
            symbol_index.addresses.insert(key, (owner, Name::Address(location.ip)));
        }
        for (module, mut addresses) in covered {
            addresses.sort_unstable();
            addresses.dedup();
            symbol_index.name_module(module, &addresses, finder);
        }
        symbol_index
    }

    fn name_module(&mut self, module: ModuleId, addresses: &[(AddressKey, u64)], finder: &SymbolFinder) {
        let found = self.modules.get(module).map(|module| finder.find(module)).transpose();
        let symbols = found.unwrap_or_else(|reason| {
            self.missing.push(Missing { module, reason });
            None
        });
        let mut known: FxHashMap<u32, SymbolId> = FxHashMap::default();
        for (key, offset) in addresses.iter().copied() {
            let name = match symbols.as_ref().and_then(|symbols| symbols.at(offset)) {
                Some(found) => Name::Symbol(*known.entry(found.address).or_insert_with(|| {
                    let (address, size, name) = (found.address, found.size, found.name);
                    self.symbols.push(Symbol { module, address, size, name });
                    SymbolId(self.symbols.len() - 1)
                })),
                None => Name::Offset(module, offset),
            };
            self.addresses.insert(key, (Owner::Module(module), name));
        }
    }

    pub(crate) fn owner_and_name(&self, location: &SampleLocation) -> (Owner, Name) {
        self.addresses.get(&AddressKey::of(location)).copied().unwrap_or((Owner::Unknown, Name::Address(location.ip)))
    }

    /// Returns the name of the module at `location`, or `[kernel]` or `[unknown]` if there is none.
    #[must_use]
    pub fn module(&self, location: &SampleLocation) -> &str {
        self.owner_text(self.owner_and_name(location).0)
    }

    /// Returns the symbol at `location`, or `module+0x1234` without a symbol, or the address without a module.
    #[must_use]
    pub fn symbol(&self, location: &SampleLocation) -> Cow<'_, str> {
        self.name_text(self.owner_and_name(location).1)
    }

    pub(crate) fn owner_text(&self, owner: Owner) -> &str {
        match owner {
            Owner::Module(module) => self.modules.name(module),
            Owner::Kernel => "[kernel]",
            Owner::Unknown => UNKNOWN_NAME,
        }
    }

    pub(crate) fn name_text(&self, name: Name) -> Cow<'_, str> {
        match name {
            Name::Symbol(SymbolId(index)) => self.symbols.get(index).map_or("", |symbol| symbol.name.as_str()).into(),
            Name::Offset(module, offset) => format!("{}+{offset:#x}", self.modules.name(module)).into(),
            Name::Address(address) => format!("{address:#018x}").into(),
        }
    }

    /// Returns the modules of the recording.
    #[must_use]
    pub fn modules(&self) -> &Modules {
        &self.modules
    }

    /// Returns every symbol that was found for an address.
    #[must_use]
    pub fn symbols(&self) -> &[Symbol] {
        &self.symbols
    }

    /// Returns the modules with samples for which no symbols were found.
    #[must_use]
    pub fn missing(&self) -> &[Missing] {
        &self.missing
    }
}
