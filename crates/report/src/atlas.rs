//! What addresses are called.

use std::borrow::Cow;
use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::filter::Filter;
use crate::modules::{ModuleId, Modules};
use crate::processes::Processes;
use crate::read::Contents;
use crate::symbols::{Missing, SymbolFinder};
use crate::tally::Place;

/// A symbol of an [`Atlas`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SymbolId(usize);

/// A symbol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    /// The module that has it.
    pub module: ModuleId,
    /// Its address, relative to the module's base.
    pub address: u32,
    /// Its length in bytes, where it is known.
    pub size: Option<u32>,
    /// Its name, demangled.
    pub name: String,
}

/// What a module is called: itself, or what stands for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Owner {
    Module(ModuleId),
    /// Kernel mode, and the recording does not tell what the kernel has loaded.
    Kernel,
    /// No module that the recording tells of covers the address.
    Unknown,
}

/// What an address is called: a symbol, or what stands for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Name {
    Symbol(SymbolId),
    Offset(ModuleId, u64),
    Address(u64),
}

/// An address, seen from where it was executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Key {
    /// 0 in kernel mode, where all processes see the same.
    process: u32,
    kernel: bool,
    ip: u64,
}

impl Key {
    fn of(place: &Place) -> Self {
        Self { process: if place.kernel { 0 } else { place.process }, kernel: place.kernel, ip: place.ip }
    }
}

/// The modules and symbols of addresses.
#[derive(Debug, Default)]
pub struct Atlas {
    spots: FxHashMap<Key, (Owner, Name)>,
    modules: Modules,
    symbols: Vec<Symbol>,
    missing: Vec<Missing>,
}

impl Atlas {
    /// Looks up every place of the tally that `filter` takes.
    #[must_use]
    pub fn new(contents: &Contents, filter: &Filter, finder: &SymbolFinder) -> Self {
        let places = contents.tally.places().map(|(place, _)| *place);
        Self::of(&contents.processes, places.filter(|place| filter.takes(place.source, place.process)), finder)
    }

    /// Looks up these places: the modules first, then, module by module, the symbols.
    #[must_use]
    pub fn of(processes: &Processes, places: impl IntoIterator<Item = Place>, finder: &SymbolFinder) -> Self {
        let mut atlas = Self { modules: processes.modules().clone(), ..Self::default() };
        let mut covered: BTreeMap<ModuleId, Vec<(Key, u64)>> = BTreeMap::new();
        for place in places {
            let key = Key::of(&place);
            if let Some((module, offset)) = processes.module_at(place.process, place.kernel, place.ip) {
                covered.entry(module).or_default().push((key, offset));
                continue;
            }
            let untold = place.kernel && !processes.know_the_kernel();
            let owner = if untold { Owner::Kernel } else { Owner::Unknown };
            atlas.spots.insert(key, (owner, Name::Address(place.ip)));
        }
        for (module, mut spots) in covered {
            spots.sort_unstable();
            spots.dedup();
            atlas.name_module(module, &spots, finder);
        }
        atlas
    }

    fn name_module(&mut self, module: ModuleId, spots: &[(Key, u64)], finder: &SymbolFinder) {
        let found = self.modules.get(module).map(|module| finder.find(module)).transpose();
        let symbols = found.unwrap_or_else(|reason| {
            self.missing.push(Missing { module, reason });
            None
        });
        let mut known: FxHashMap<u32, SymbolId> = FxHashMap::default();
        for (key, offset) in spots.iter().copied() {
            let name = match symbols.as_ref().and_then(|symbols| symbols.at(offset)) {
                Some(found) => Name::Symbol(*known.entry(found.address).or_insert_with(|| {
                    let (address, size, name) = (found.address, found.size, found.name);
                    self.symbols.push(Symbol { module, address, size, name });
                    SymbolId(self.symbols.len() - 1)
                })),
                None => Name::Offset(module, offset),
            };
            self.spots.insert(key, (Owner::Module(module), name));
        }
    }

    pub(crate) fn owner_and_name(&self, place: &Place) -> (Owner, Name) {
        self.spots.get(&Key::of(place)).copied().unwrap_or((Owner::Unknown, Name::Address(place.ip)))
    }

    /// The name of the module at `place`; `[kernel]` or `[unknown]` where there is none.
    #[must_use]
    pub fn module(&self, place: &Place) -> &str {
        self.owner_text(self.owner_and_name(place).0)
    }

    /// The symbol at `place`; `module+0x1234` where it has none, the address where it has no module either.
    #[must_use]
    pub fn symbol(&self, place: &Place) -> Cow<'_, str> {
        self.name_text(self.owner_and_name(place).1)
    }

    pub(crate) fn owner_text(&self, owner: Owner) -> &str {
        match owner {
            Owner::Module(module) => self.modules.name(module),
            Owner::Kernel => "[kernel]",
            Owner::Unknown => "[unknown]",
        }
    }

    pub(crate) fn name_text(&self, name: Name) -> Cow<'_, str> {
        match name {
            Name::Symbol(SymbolId(index)) => self.symbols.get(index).map_or("", |symbol| symbol.name.as_str()).into(),
            Name::Offset(module, offset) => format!("{}+{offset:#x}", self.modules.name(module)).into(),
            Name::Address(address) => format!("{address:#018x}").into(),
        }
    }

    /// Every module of the recording.
    #[must_use]
    pub fn modules(&self) -> &Modules {
        &self.modules
    }

    /// Every symbol that was looked up.
    #[must_use]
    pub fn symbols(&self) -> &[Symbol] {
        &self.symbols
    }

    /// The modules that samples fell in and whose symbols were not found.
    #[must_use]
    pub fn missing(&self) -> &[Missing] {
        &self.missing
    }
}
