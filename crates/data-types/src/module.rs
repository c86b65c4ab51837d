//! The data and variables of one module, which is what a compiler made of one source file.

use pdb_addr2line::pdb::{AddressMap, FallibleIterator as _, ModuleInfo, PdbInternalSectionOffset};

use crate::bytes::text;
use crate::data::Datum;
use crate::registers::frame_register;
use crate::symbol_records::{Location, SectionAddress, Symbol};

/// Maximum number of functions and blocks within each other.
const MAX_SCOPES: usize = 256;

/// A variable of a function.
#[derive(Debug)]
pub(crate) struct Variable {
    pub name: Box<str>,
    pub kind: u32,
}

/// Code in which a variable is in one place.
#[derive(Debug)]
struct Live {
    /// Addresses relative to the image.
    start: u32,
    end: u32,
    /// Code between them in which it is not there.
    gaps: Vec<(u32, u32)>,
    location: Location,
    variable: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Module {
    /// Data of functions, in ascending order.
    pub data: Vec<Datum>,
    variables: Vec<Variable>,
    /// In ascending order of their beginnings.
    live: Vec<Live>,
    /// Maximum length of one of them.
    longest: u32,
}

/// A function or block.
#[derive(Clone, Copy, Default)]
struct Scope {
    start: u32,
    end: u32,
    /// Registers of the frame, for variables and parameters.
    frame: [u16; 2],
}

/// What is read between two records.
#[derive(Default)]
struct Reading {
    module: Module,
    scopes: Vec<Scope>,
    /// Number of scopes that were not kept.
    skipped: usize,
    is_parameter: bool,
}

/// Returns the address relative to the image.
pub(crate) fn relative(address: SectionAddress, map: &AddressMap<'_>) -> Option<u32> {
    Some(PdbInternalSectionOffset::new(address.section, address.offset).to_rva(map)?.0)
}

impl Module {
    /// Reads the records of a module. A damaged one ends it.
    pub fn read(contents: &ModuleInfo<'_>, map: &AddressMap<'_>, is_64_bit: bool) -> Self {
        let mut reading = Reading::default();
        if let Ok(mut records) = contents.symbols() {
            while let Ok(Some(record)) = records.next() {
                if let Some(symbol) = Symbol::parse(record.raw_bytes()) {
                    reading.take(symbol, map, is_64_bit);
                }
            }
        }
        let mut module = reading.module;
        module.data.sort_by_key(|datum| datum.address);
        module.live.sort_by_key(|live| live.start);
        module.longest = module.live.iter().map(|live| live.end.saturating_sub(live.start)).max().unwrap_or(0);
        module
    }

    /// Returns the variables that have a place when the code at `address` is executed, those of inner blocks first.
    pub fn live_at(&self, address: u32) -> impl Iterator<Item = (&Variable, Location)> {
        let first = self.live.partition_point(|live| live.start < address.saturating_sub(self.longest));
        let last = self.live.partition_point(|live| live.start <= address);
        let found = self.live.get(first..last).unwrap_or_default().iter();
        let mut found: Vec<_> = found.filter(|live| live.has(address)).collect();
        found.sort_by_key(|live| std::cmp::Reverse(live.variable));
        found.into_iter().filter_map(|live| Some((self.variables.get(live.variable)?, live.location)))
    }
}

impl Live {
    fn has(&self, address: u32) -> bool {
        (self.start..self.end).contains(&address)
            && !self.gaps.iter().any(|(start, end)| (*start..*end).contains(&address))
    }
}

impl Reading {
    fn take(&mut self, symbol: Symbol<'_>, map: &AddressMap<'_>, is_64_bit: bool) {
        match symbol {
            Symbol::Data { kind, address, name } => {
                let address = relative(address, map);
                self.module.data.extend(address.map(|address| Datum { address, kind, name: text(name).into() }));
            }
            Symbol::Function { start, length } => {
                let start = relative(start, map);
                let end = start.and_then(|start| start.checked_add(length));
                self.push(Scope { start: start.unwrap_or(0), end: end.unwrap_or(0), ..Scope::default() });
            }
            Symbol::Block { start, length } => {
                let start = relative(start, map);
                let end = start.and_then(|start| start.checked_add(length));
                let frame = self.scope().frame;
                self.push(Scope { start: start.unwrap_or(0), end: end.unwrap_or(0), frame });
            }
            Symbol::InlineSite => self.push(self.scope()),
            Symbol::End => match self.skipped.checked_sub(1) {
                Some(skipped) => self.skipped = skipped,
                None => drop(self.scopes.pop()),
            },
            Symbol::Frame { variables, parameters } => {
                if let Some(scope) = self.scopes.last_mut() {
                    scope.frame = [variables, parameters].map(|number| frame_register(number, is_64_bit));
                }
            }
            Symbol::Variable { kind, is_parameter, name } => {
                self.is_parameter = is_parameter;
                self.module.variables.push(Variable { name: text(name).into(), kind });
            }
            Symbol::Fixed { kind, location, name } => {
                self.module.variables.push(Variable { name: text(name).into(), kind });
                let Scope { start, end, .. } = self.scope();
                self.live(start, end, Vec::new(), location);
            }
            Symbol::Range { location, range: None } => {
                let Scope { start, end, .. } = self.scope();
                self.live(start, end, Vec::new(), location);
            }
            Symbol::Range { location, range: Some(range) } => {
                let Some(start) = relative(range.start, map) else { return };
                let gap = |(offset, length): (u16, u16)| {
                    let first = start.saturating_add(offset.into());
                    (first, first.saturating_add(length.into()))
                };
                let gaps = range.gaps.into_iter().map(gap).collect();
                self.live(start, start.saturating_add(range.length.into()), gaps, location);
            }
        }
    }

    fn scope(&self) -> Scope {
        self.scopes.last().copied().unwrap_or_default()
    }

    fn push(&mut self, scope: Scope) {
        if self.scopes.len() < MAX_SCOPES {
            self.scopes.push(scope);
        } else {
            self.skipped += 1;
        }
    }

    /// Notes where the last variable is.
    fn live(&mut self, start: u32, end: u32, gaps: Vec<(u32, u32)>, location: Location) {
        let Some(variable) = self.module.variables.len().checked_sub(1) else { return };
        let [variables, parameters] = self.scope().frame;
        let location = match location {
            Location::Frame { offset } => {
                let register = if self.is_parameter { parameters } else { variables };
                Location::Memory { register, offset, part: 0 }
            }
            other => other,
        };
        self.module.live.push(Live { start, end, gaps, location, variable });
    }
}
