//! Modules and symbols of addresses.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::iter;
use std::path::PathBuf;

use protocol::UNKNOWN;
use recording::KERNEL;
use rustc_hash::FxHashMap;

use crate::filter::Filter;
use crate::locations::SampleLocation;
use crate::modules::{ModuleId, Modules};
use crate::processes::{Processes, UNKNOWN_NAME};
use crate::read::Contents;
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

/// The module of functions of a just-in-time compiler.
pub(crate) const JIT: &str = "[JIT]";

/// Size of the regions that stand for addresses in no module. Windows reserves memory in multiples of it.
const REGION: u64 = 0x1_0000;

/// A perf map with lines that could not be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PerfMapProblem {
    /// The file.
    pub path: PathBuf,
    /// The number of bad lines, or why the file cannot be read.
    pub problem: Result<u64, String>,
}

/// Index of a name in an [`SymbolIndex`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NameId(usize);

/// Names of functions, each stored once.
#[derive(Debug, Default)]
struct Names {
    list: Vec<String>,
    ids: FxHashMap<String, NameId>,
}

impl Names {
    fn intern(&mut self, name: &str) -> NameId {
        if let Some(id) = self.ids.get(name) {
            return *id;
        }
        let id = NameId(self.list.len());
        self.list.push(name.to_owned());
        self.ids.insert(name.to_owned(), id);
        id
    }

    fn get(&self, NameId(index): NameId) -> &str {
        self.list.get(index).map_or("", String::as_str)
    }
}

/// The module of an address, or a placeholder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Owner {
    Module(ModuleId),
    /// A kernel-mode address, and the recording has no kernel modules.
    Kernel,
    /// A perf map names the address.
    Jit,
    /// No recorded module covers the address.
    Unknown,
}

/// The symbol of an address, or a placeholder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Name {
    Symbol(SymbolId),
    Offset(ModuleId, u64),
    /// A function of a just-in-time compiler.
    Jit(NameId),
    /// A function that is inlined.
    Inlined(NameId),
    /// The beginning of a region that belongs to no module of its process.
    Unmapped(u64),
    Address(u64),
    /// Any address in user mode of a process that is not known.
    Unknown,
}

/// Index of a list of inlined functions in a [`SymbolIndex`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct InlineId(usize);

/// The functions of an address, from the one that has the code to the innermost inlined one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct FrameKey {
    outer: Name,
    inlined: Option<InlineId>,
}

impl FrameKey {
    /// The functions of an address in user mode of a process that is not known.
    pub const UNKNOWN: Self = Self { outer: Name::Unknown, inlined: None };
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
    /// The inlined functions of the addresses that have any.
    inlined: FxHashMap<AddressKey, InlineId>,
    /// Lists of inlined functions, each of them inlined into the one before it.
    inline_lists: Vec<Vec<NameId>>,
    names: Names,
    modules: Modules,
    symbols: Vec<Symbol>,
    missing: Vec<Missing>,
    perf_map_problems: Vec<PerfMapProblem>,
}

impl SymbolIndex {
    /// Resolves every location of the counts that `filter` selects.
    #[must_use]
    pub fn new(contents: &Contents, filter: &Filter, finder: &SymbolFinder) -> Self {
        let locations = contents.sample_counts.locations().map(|(location, _)| location);
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
        let mut uncovered: BTreeMap<u32, Vec<AddressKey>> = BTreeMap::new();
        for location in locations {
            let key = AddressKey::of(&location);
            if let Some((module, offset)) = processes.module_at(location.process, location.kernel, location.ip) {
                covered.entry(module).or_default().push((key, offset));
                continue;
            }
            if !location.kernel && location.process != UNKNOWN {
                uncovered.entry(location.process).or_default().push(key);
                continue;
            }
            let unnamed_kernel = location.kernel && !processes.has_modules(KERNEL);
            let owner = if unnamed_kernel { Owner::Kernel } else { Owner::Unknown };
            symbol_index.addresses.insert(key, (owner, Name::Address(location.ip)));
        }
        for (process, addresses) in uncovered {
            symbol_index.name_outside_modules(process, &addresses, processes.has_modules(process), finder);
        }
        for (module, mut addresses) in covered {
            addresses.sort_unstable();
            addresses.dedup();
            symbol_index.name_module(module, &addresses, finder);
        }
        symbol_index
    }

    /// Resolves addresses in no module of `process` by its perf map. Other addresses are combined to regions if the
    /// modules of the process are known.
    fn name_outside_modules(
        &mut self,
        process: u32,
        addresses: &[AddressKey],
        has_modules: bool,
        finder: &SymbolFinder,
    ) {
        let map = finder.perf_map(process).and_then(|(path, map)| {
            let problem = map.as_ref().map_or_else(|error| Err(error.to_string()), |map| Ok(map.bad_lines()));
            if !matches!(problem, Ok(0)) {
                self.perf_map_problems.push(PerfMapProblem { path, problem });
            }
            map.ok()
        });
        for key in addresses {
            let resolved = match map.as_ref().and_then(|map| map.at(key.ip)) {
                Some(name) => (Owner::Jit, Name::Jit(self.names.intern(name))),
                None if has_modules => (Owner::Unknown, Name::Unmapped(key.ip - key.ip % REGION)),
                None => (Owner::Unknown, Name::Address(key.ip)),
            };
            self.addresses.insert(*key, resolved);
        }
    }

    fn name_module(&mut self, module: ModuleId, addresses: &[(AddressKey, u64)], finder: &SymbolFinder) {
        let found = self.modules.get(module).map(|module| finder.find(module)).transpose();
        let symbols = found.unwrap_or_else(|reason| {
            self.missing.push(Missing { module, reason });
            None
        });
        let mut known: FxHashMap<u32, SymbolId> = FxHashMap::default();
        let mut lists: FxHashMap<Vec<NameId>, InlineId> = FxHashMap::default();
        for (key, offset) in addresses.iter().copied() {
            let name = match symbols.as_ref().and_then(|symbols| symbols.at(offset)) {
                Some(found) => {
                    if !found.inlined.is_empty() {
                        let list = found.inlined.iter().map(|name| self.names.intern(name)).collect();
                        let id = self.inline_id(list, &mut lists);
                        self.inlined.insert(key, id);
                    }
                    Name::Symbol(*known.entry(found.address).or_insert_with(|| {
                        let (address, size, name) = (found.address, found.size, found.name);
                        self.symbols.push(Symbol { module, address, size, name });
                        SymbolId(self.symbols.len() - 1)
                    }))
                }
                None => Name::Offset(module, offset),
            };
            self.addresses.insert(key, (Owner::Module(module), name));
        }
    }

    /// Returns the index of a list, adding it if it is not among the `known` ones of the module.
    fn inline_id(&mut self, list: Vec<NameId>, known: &mut FxHashMap<Vec<NameId>, InlineId>) -> InlineId {
        *known.entry(list).or_insert_with_key(|list| {
            self.inline_lists.push(list.clone());
            InlineId(self.inline_lists.len() - 1)
        })
    }

    pub(crate) fn owner_and_name(&self, location: &SampleLocation) -> (Owner, Name) {
        self.addresses.get(&AddressKey::of(location)).copied().unwrap_or((Owner::Unknown, Name::Address(location.ip)))
    }

    /// Returns the name of the module at `location`, or `[kernel]`, `[JIT]` or `[unknown]` if there is none.
    #[must_use]
    pub fn module(&self, location: &SampleLocation) -> &str {
        self.owner_text(self.owner_and_name(location).0)
    }

    /// Returns the symbol at `location`: a function, or `module+0x1234` without a symbol, or the region of 64 KiB
    /// without a module, or the address if the modules are unknown.
    #[must_use]
    pub fn symbol(&self, location: &SampleLocation) -> Cow<'_, str> {
        self.name_text(self.owner_and_name(location).1)
    }

    /// Returns the symbol that was found for `location`.
    pub(crate) fn known_symbol(&self, location: &SampleLocation) -> Option<&Symbol> {
        match self.owner_and_name(location).1 {
            Name::Symbol(SymbolId(index)) => self.symbols.get(index),
            _ => None,
        }
    }

    /// Returns the functions of `location`: the [symbol](Self::symbol), then those that the compiler inlined there,
    /// each of them into the one before it.
    pub fn frames(&self, location: &SampleLocation) -> impl Iterator<Item = Cow<'_, str>> {
        self.frame_texts(self.frame_key(location))
    }

    /// Returns the functions that the compiler inlined at `location`, each of them into the one before it.
    pub fn inlined(&self, location: &SampleLocation) -> impl Iterator<Item = &str> {
        self.names_of(self.inlined.get(&AddressKey::of(location)).copied())
    }

    fn names_of(&self, list: Option<InlineId>) -> impl Iterator<Item = &str> {
        let list = list.and_then(|InlineId(index)| self.inline_lists.get(index));
        list.into_iter().flatten().map(|name| self.names.get(*name))
    }

    pub(crate) fn frame_key(&self, location: &SampleLocation) -> FrameKey {
        let key = AddressKey::of(location);
        FrameKey { outer: self.owner_and_name(location).1, inlined: self.inlined.get(&key).copied() }
    }

    pub(crate) fn frame_texts(&self, FrameKey { outer, inlined }: FrameKey) -> impl Iterator<Item = Cow<'_, str>> {
        iter::once(self.name_text(outer)).chain(self.names_of(inlined).map(Cow::Borrowed))
    }

    /// Returns the innermost function at `location`, inlined or not.
    pub(crate) fn innermost(&self, location: &SampleLocation) -> Name {
        let FrameKey { outer, inlined } = self.frame_key(location);
        let list = inlined.and_then(|InlineId(index)| self.inline_lists.get(index));
        list.and_then(|list| list.last()).map_or(outer, |name| Name::Inlined(*name))
    }

    pub(crate) fn owner_text(&self, owner: Owner) -> &str {
        match owner {
            Owner::Module(module) => self.modules.name(module),
            Owner::Kernel => "[kernel]",
            Owner::Jit => JIT,
            Owner::Unknown => UNKNOWN_NAME,
        }
    }

    pub(crate) fn name_text(&self, name: Name) -> Cow<'_, str> {
        match name {
            Name::Symbol(SymbolId(index)) => self.symbols.get(index).map_or("", |symbol| symbol.name.as_str()).into(),
            Name::Offset(module, offset) => format!("{}+{offset:#x}", self.modules.name(module)).into(),
            Name::Jit(name) => self.names.get(name).into(),
            Name::Inlined(name) => format!("{} (inlined)", self.names.get(name)).into(),
            Name::Unmapped(region) => format!("[JIT or unmapped] {region:#x}").into(),
            Name::Address(address) => format!("{address:#018x}").into(),
            Name::Unknown => UNKNOWN_NAME.into(),
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

    /// Returns the indexes of all [symbols](Self::symbols).
    pub fn symbol_ids(&self) -> impl Iterator<Item = (SymbolId, &Symbol)> {
        self.symbols.iter().enumerate().map(|(index, symbol)| (SymbolId(index), symbol))
    }

    /// Returns the symbol with this index.
    #[must_use]
    pub fn symbol_of(&self, SymbolId(index): SymbolId) -> Option<&Symbol> {
        self.symbols.get(index)
    }

    /// Returns the index of the symbol at `location`; `None` if it has a placeholder.
    #[must_use]
    pub fn symbol_id(&self, location: &SampleLocation) -> Option<SymbolId> {
        match self.owner_and_name(location).1 {
            Name::Symbol(id) => Some(id),
            _ => None,
        }
    }

    /// Returns the modules with samples for which no symbols were found.
    #[must_use]
    pub fn missing(&self) -> &[Missing] {
        &self.missing
    }

    /// Returns the perf maps of which a part or all could not be used.
    #[must_use]
    pub fn perf_map_problems(&self) -> &[PerfMapProblem] {
        &self.perf_map_problems
    }
}
