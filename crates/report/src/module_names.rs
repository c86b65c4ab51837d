//! Names of the sampled addresses of one module.

use rustc_hash::FxHashMap;

use crate::modules::ModuleId;
use crate::symbol_index::Symbol;
use crate::symbols::{FoundName, Reason, Symbols};

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

/// Adds a value and returns its number.
fn number<T>(list: &mut Vec<T>, value: T) -> u32 {
    list.push(value);
    // More values than this do not fit into memory.
    u32::try_from(list.len() - 1).unwrap_or(u32::MAX)
}
