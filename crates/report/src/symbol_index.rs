//! Modules and symbols of addresses.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::iter;
use std::num::NonZeroU32;
use std::path::PathBuf;

use protocol::UNKNOWN;
use recording::KERNEL;
use rustc_hash::FxHashMap;

use crate::filter::Filter;
use crate::found_symbol::{Missing, Reason};
use crate::locations::SampleLocation;
use crate::module_names::{ModuleNames, NamedCode, Symbol};
use crate::modules::{ModuleId, Modules};
use crate::process_keys::ProcessKey;
use crate::processes::{Processes, UNKNOWN_NAME};
use crate::read::Contents;
use crate::symbols::SymbolFinder;

/// Index of a symbol in an [`SymbolIndex`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SymbolId(u32);

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
pub(crate) struct NameId(u32);

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
        let id = NameId(next(&self.list));
        self.list.push(name.to_owned());
        self.ids.insert(name.to_owned(), id);
        id
    }

    fn get(&self, NameId(index): NameId) -> &str {
        self.list.get(index as usize).map_or("", String::as_str)
    }
}

/// The module of an address, or a placeholder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Owner {
    Module(ModuleId),
    /// A kernel-mode address, and the recording has no kernel modules.
    Kernel,
    /// A recorded method or a perf map names the address.
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

/// Number of a list of inlined functions in a [`SymbolIndex`]. An `Option` of it has four bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct InlineId(NonZeroU32);

impl InlineId {
    fn new(number: u32) -> Option<Self> {
        Some(Self(NonZeroU32::MIN.checked_add(number)?))
    }

    fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// Returns the number of the next value of a list.
fn next<T>(list: &[T]) -> u32 {
    // More values than this do not fit into memory.
    u32::try_from(list.len()).unwrap_or(u32::MAX)
}

/// The functions of an address, from the one that has the code to the innermost inlined one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct FrameKey {
    pub outer: Name,
    pub inlined: Option<InlineId>,
}

/// What is at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Resolved {
    pub owner: Owner,
    pub name: Name,
    pub inlined: Option<InlineId>,
}

/// The modules and symbols of addresses.
///
/// An address in no module, or in a module without symbols, needs no memory: what is there follows from its process.
#[derive(Debug, Default)]
pub struct SymbolIndex {
    processes: Processes,
    /// The named code of modules with symbols, in ascending order.
    code: FxHashMap<ModuleId, Vec<NamedCode>>,
    /// The addresses that perf maps name, by process.
    compiled: FxHashMap<(ProcessKey, u64), NameId>,
    /// Lists of inlined functions, each of them inlined into the one before it.
    inline_lists: Vec<Vec<NameId>>,
    names: Names,
    symbols: Vec<Symbol>,
    missing: Vec<Missing>,
    perf_map_problems: Vec<PerfMapProblem>,
}

impl SymbolIndex {
    /// Resolves every location of the counts that `filter` selects, and its callers.
    #[must_use]
    pub fn new(contents: &Contents, filter: &Filter, finder: &SymbolFinder) -> Self {
        Self::with(contents, filter, iter::empty(), finder)
    }

    /// Resolves what [`new`](Self::new) does, and more locations.
    #[must_use]
    pub fn with(
        contents: &Contents,
        filter: &Filter,
        more: impl IntoIterator<Item = SampleLocation>,
        finder: &SymbolFinder,
    ) -> Self {
        let selected = || {
            let locations = contents.sample_counts.locations().map(|(location, _)| location);
            locations.filter(|location| filter.selects(location.sampled_source(), location.process))
        };
        Self::of(&contents.processes, selected().chain(contents.callers(selected())).chain(more), finder)
    }

    /// Resolves these locations: first the modules, then the symbols of several modules at a time.
    #[must_use]
    pub fn of(
        processes: &Processes,
        locations: impl IntoIterator<Item = SampleLocation>,
        finder: &SymbolFinder,
    ) -> Self {
        let mut symbol_index = Self { processes: processes.clone(), ..Self::default() };
        let mut covered: BTreeMap<ModuleId, Vec<u32>> = BTreeMap::new();
        let mut uncovered: BTreeMap<ProcessKey, Vec<u64>> = BTreeMap::new();
        for SampleLocation { process, kernel, ip, .. } in locations {
            if let Some((module, offset)) = processes.module_at(process, kernel, ip) {
                let offsets = covered.entry(module).or_default();
                offsets.extend(u32::try_from(offset));
            } else if !kernel && process.id != UNKNOWN {
                uncovered.entry(process).or_default().push(ip);
            }
        }
        for (process, addresses) in uncovered {
            symbol_index.name_compiled(process, &addresses, finder);
        }
        let modules = covered.into_iter().collect();
        for (module, found) in finder.names(modules, processes.modules()) {
            symbol_index.add_module(module, found);
        }
        symbol_index
    }

    /// Resolves addresses in no module of `process` by its recorded methods, and others by its perf map. The name of
    /// the file has only the process ID, so it belongs to the last process that had the ID.
    fn name_compiled(&mut self, process: ProcessKey, addresses: &[u64], finder: &SymbolFinder) {
        let mut unnamed = Vec::new();
        for ip in addresses {
            let Self { processes, names, compiled, .. } = self;
            match processes.method_at(process, *ip) {
                Some(name) => {
                    compiled.insert((process, *ip), names.intern(name));
                }
                None => unnamed.push(*ip),
            }
        }
        if unnamed.is_empty() {
            return;
        }
        if process != self.processes.latest(process.id) {
            return;
        }
        let Some((path, map)) = finder.perf_map(process.id) else { return };
        let problem = map.as_ref().map_or_else(|error| Err(error.to_string()), |map| Ok(map.bad_lines()));
        if !matches!(problem, Ok(0)) {
            self.perf_map_problems.push(PerfMapProblem { path, problem });
        }
        let Ok(map) = map else { return };
        for ip in unnamed {
            if let Some(name) = map.at(ip) {
                let name = self.names.intern(name);
                self.compiled.insert((process, ip), name);
            }
        }
    }

    /// Adds what was found for a module. Its numbers become those of the index.
    fn add_module(&mut self, module: ModuleId, found: Result<ModuleNames, Reason>) {
        let ModuleNames { symbols, inline_lists, mut code, lacks } = match found {
            Ok(found) => found,
            Err(reason) => {
                self.missing.push(Missing { module, reason });
                return;
            }
        };
        self.missing.extend(lacks.into_iter().map(|reason| Missing { module, reason }));
        let [first_symbol, first_list] = [next(&self.symbols), next(&self.inline_lists)];
        self.symbols.extend(symbols);
        for list in inline_lists {
            let list = list.iter().map(|name| self.names.intern(name)).collect();
            self.inline_lists.push(list);
        }
        for one in &mut code {
            one.symbol = one.symbol.map(|number| first_symbol + number);
            one.inlined = one.inlined.map(|number| first_list + number);
        }
        self.code.insert(module, code);
    }

    /// Returns what is at `location`.
    pub(crate) fn resolve(&self, location: &SampleLocation) -> Resolved {
        let SampleLocation { process, kernel, ip, .. } = *location;
        let outside = |owner, name| Resolved { owner, name, inlined: None };
        let Some((module, offset)) = self.processes.module_at(process, kernel, ip) else {
            return match self.compiled.get(&(process, ip)) {
                Some(name) if !kernel => outside(Owner::Jit, Name::Jit(*name)),
                _ if kernel && !self.processes.has_modules(KERNEL.into()) => outside(Owner::Kernel, Name::Address(ip)),
                _ if !kernel && process.id != UNKNOWN && self.processes.has_modules(process) => {
                    outside(Owner::Unknown, Name::Unmapped(ip - ip % REGION))
                }
                _ => outside(Owner::Unknown, Name::Address(ip)),
            };
        };
        let code = self.named_code(module, offset);
        let name = code.and_then(|code| code.symbol);
        Resolved {
            owner: Owner::Module(module),
            name: name.map_or(Name::Offset(module, offset), |number| Name::Symbol(SymbolId(number))),
            inlined: code.and_then(|code| code.inlined).and_then(InlineId::new),
        }
    }

    fn named_code(&self, module: ModuleId, offset: u64) -> Option<NamedCode> {
        let code = self.code.get(&module)?;
        let after = code.partition_point(|one| u64::from(one.start) <= offset);
        code.get(after.checked_sub(1)?).copied()
    }

    pub(crate) fn owner_and_name(&self, location: &SampleLocation) -> (Owner, Name) {
        let Resolved { owner, name, .. } = self.resolve(location);
        (owner, name)
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

    /// Returns the symbol at `location`, with the offset of the address in it if that is not 0.
    #[must_use]
    pub fn symbol_and_offset(&self, location: &SampleLocation) -> Cow<'_, str> {
        let SampleLocation { process, kernel, ip, .. } = *location;
        let symbol = self.symbol(location);
        let offset = self.symbol_id(location).and_then(|id| {
            let (_, offset) = self.processes.module_at(process, kernel, ip)?;
            offset.checked_sub(self.symbol_of(id)?.address.into())
        });
        match offset {
            None | Some(0) => symbol,
            Some(offset) => format!("{symbol}+{offset:#x}").into(),
        }
    }

    /// Returns the symbol with a name that was found for `location`.
    pub(crate) fn known_symbol(&self, location: &SampleLocation) -> Option<&Symbol> {
        match self.owner_and_name(location).1 {
            Name::Symbol(id) => self.symbol_of(id).filter(|symbol| symbol.is_named),
            _ => None,
        }
    }

    /// Returns the names of the functions of `location`, each without and with its note: that of the
    /// [symbol](Self::symbol), then those that the compiler inlined there, each of them into the one before it.
    pub fn names(&self, location: &SampleLocation) -> impl Iterator<Item = [Cow<'_, str>; 2]> {
        self.frame_names(self.frame_key(location)).map(|name| {
            let plain = match name {
                Name::Symbol(id) => self.symbol_of(id).map_or("", |symbol| &symbol.name).into(),
                name => self.function_text(name),
            };
            [plain, self.name_text(name)]
        })
    }

    /// Returns the functions that the compiler inlined at `location`, each of them into the one before it.
    pub fn inlined(&self, location: &SampleLocation) -> impl Iterator<Item = &str> {
        self.inline_list(self.resolve(location).inlined).iter().map(|name| self.names.get(*name))
    }

    pub(crate) fn frame_key(&self, location: &SampleLocation) -> FrameKey {
        let Resolved { name, inlined, .. } = self.resolve(location);
        FrameKey { outer: name, inlined }
    }

    pub(crate) fn frame_texts(&self, frames: FrameKey) -> impl Iterator<Item = Cow<'_, str>> {
        self.frame_names(frames).map(|name| self.function_text(name))
    }

    /// Returns the functions of an address, the innermost last.
    pub(crate) fn frame_names(&self, FrameKey { outer, inlined }: FrameKey) -> impl Iterator<Item = Name> {
        iter::once(outer).chain(self.inline_list(inlined).iter().map(|name| Name::Inlined(*name)))
    }

    /// Returns the name of a function without the mark of inlined ones.
    pub(crate) fn function_text(&self, name: Name) -> Cow<'_, str> {
        match name {
            Name::Inlined(name) => self.names.get(name).into(),
            name => self.name_text(name),
        }
    }

    /// Returns inlined functions, the innermost first.
    pub(crate) fn inlined_names(&self, list: Option<InlineId>) -> impl Iterator<Item = Name> {
        self.inline_list(list).iter().rev().map(|name| Name::Inlined(*name))
    }

    fn inline_list(&self, list: Option<InlineId>) -> &[NameId] {
        list.and_then(|list| self.inline_lists.get(list.index())).map_or(&[], Vec::as_slice)
    }

    /// Returns the innermost function of `resolved`, inlined or not.
    pub(crate) fn innermost(&self, resolved: &Resolved) -> Name {
        self.inline_list(resolved.inlined).last().map_or(resolved.name, |name| Name::Inlined(*name))
    }

    pub(crate) fn owner_text(&self, owner: Owner) -> &str {
        match owner {
            Owner::Module(module) => self.processes.modules().name(module),
            Owner::Kernel => "[kernel]",
            Owner::Jit => JIT,
            Owner::Unknown => UNKNOWN_NAME,
        }
    }

    pub(crate) fn name_text(&self, name: Name) -> Cow<'_, str> {
        match name {
            Name::Symbol(id) => self.symbol_of(id).map_or_else(|| "".into(), Symbol::text),
            Name::Offset(module, offset) => format!("{}+{offset:#x}", self.processes.modules().name(module)).into(),
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
        self.processes.modules()
    }

    /// Returns every symbol that was found for an address.
    #[must_use]
    pub fn symbols(&self) -> &[Symbol] {
        &self.symbols
    }

    /// Returns the indexes of all [symbols](Self::symbols).
    pub fn symbol_ids(&self) -> impl Iterator<Item = (SymbolId, &Symbol)> {
        (0..).map(SymbolId).zip(&self.symbols)
    }

    /// Returns the symbol with this index.
    #[must_use]
    pub fn symbol_of(&self, SymbolId(index): SymbolId) -> Option<&Symbol> {
        self.symbols.get(index as usize)
    }

    /// Returns the index of the symbol at `location`; `None` if it has a placeholder.
    #[must_use]
    pub fn symbol_id(&self, location: &SampleLocation) -> Option<SymbolId> {
        match self.owner_and_name(location).1 {
            Name::Symbol(id) => Some(id),
            _ => None,
        }
    }

    /// Returns what the symbols of the modules with samples lack.
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
