//! Names of the sampled addresses of one module.

use std::borrow::Cow;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::found_symbol::{FoundName, Reason};
use crate::modules::{ModuleId, Modules};
use crate::symbols::{SymbolFinder, Symbols};

/// A symbol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    /// The module of the symbol.
    pub module: ModuleId,
    /// Address relative to the base of the module.
    pub address: u32,
    /// Length in bytes, if it is known.
    pub size: Option<u32>,
    /// Demangled name, or the module with the offset of the function if no file names it.
    pub name: String,
    /// Whether a file has the name.
    pub is_named: bool,
    /// Number of other functions that the linker folded into this one, because their code is equal.
    pub folded: u32,
}

impl Symbol {
    /// Returns the name, with the number of functions that were folded into this one.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        match self.folded {
            0 => self.name.as_str().into(),
            folded => format!("{} (+{folded} folded)", self.name).into(),
        }
    }
}

/// Names of the sampled addresses of one module. Numbers in it are indexes of its lists.
#[derive(Debug, Default)]
pub(crate) struct ModuleNames {
    /// Functions with code at the addresses.
    pub symbols: Vec<Symbol>,
    /// Functions that are inlined at an address, each of them into the one before it.
    pub inline_lists: Vec<Vec<String>>,
    /// What is at the addresses, in ascending order.
    pub code: Vec<NamedCode>,
    /// Why not all of them have names, if better symbols would have these.
    pub lacks: Vec<Reason>,
}

/// Sampled addresses in a row that have the same functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NamedCode {
    /// Offset of the first of the addresses from the base of the module.
    pub start: u32,
    /// Number of the function with the code, if one is known.
    pub symbol: Option<u32>,
    /// Number of the list of inlined functions, if there are any.
    pub inlined: Option<u32>,
}

impl ModuleNames {
    /// Looks up addresses of the module `module`, called `module_name`. They are offsets from its base in any order.
    pub fn new(module: ModuleId, module_name: &str, mut offsets: Vec<u32>, symbols: &Symbols) -> Self {
        offsets.sort_unstable();
        offsets.dedup();
        let mut names = Self::default();
        let mut known_symbols: FxHashMap<u32, u32> = FxHashMap::default();
        let mut known_lists: FxHashMap<Vec<String>, u32> = FxHashMap::default();
        let mut is_nameless = false;
        for start in offsets {
            let mut code = NamedCode { start, symbol: None, inlined: None };
            let found = symbols.at(start);
            let is_named = found.as_ref().is_some_and(|found| found.name.is_some());
            is_nameless |= !is_named;
            if let Some(found) = found {
                code.symbol = Some(*known_symbols.entry(found.address).or_insert_with(|| {
                    let (address, size) = (found.address, found.size);
                    let (name, folded) = found.name.map_or_else(
                        || (format!("{module_name}+{address:#x}"), 0),
                        |FoundName { text, folded }| (text, folded),
                    );
                    number(&mut names.symbols, Symbol { module, address, size, name, is_named, folded })
                }));
                if !found.inlined.is_empty() {
                    code.inlined = Some(
                        *known_lists
                            .entry(found.inlined)
                            .or_insert_with_key(|list| number(&mut names.inline_lists, list.clone())),
                    );
                }
            }
            let same = |last: &NamedCode| (last.symbol, last.inlined) == (code.symbol, code.inlined);
            if !names.code.last().is_some_and(same) {
                names.code.push(code);
            }
        }
        names.lacks = symbols.lacks(is_nameless).collect();
        names
    }
}

impl SymbolFinder {
    /// Looks up addresses of modules, in several threads. The result has the order of `addresses`.
    pub(crate) fn names(
        &self,
        addresses: Vec<(ModuleId, Vec<u32>)>,
        modules: &Modules,
    ) -> Vec<(ModuleId, Result<ModuleNames, Reason>)> {
        let of = |(id, offsets): (ModuleId, Vec<u32>)| {
            let found = modules.get(id).ok_or(Reason::NotFound).and_then(|module| self.find(module));
            (id, found.map(|symbols| ModuleNames::new(id, modules.name(id), offsets, &symbols)))
        };
        // With one module at a time, a worker that is done takes the next one.
        self.workers.install(|| addresses.into_par_iter().with_max_len(1).map(of).collect())
    }
}

/// Adds a value and returns its number.
fn number<T>(list: &mut Vec<T>, value: T) -> u32 {
    list.push(value);
    // More values than this do not fit into memory.
    u32::try_from(list.len() - 1).unwrap_or(u32::MAX)
}
