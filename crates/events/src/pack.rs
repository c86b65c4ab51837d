//! The compact form of the tables.
//!
//! The file begins with [`MAGIC`] and the lengths in bytes of its sections, each a `u32`; the sections follow in this
//! order. Numbers are little-endian.
//!
//! | section | contents |
//! |---|---|
//! | blocks | for each [`BLOCK`] names the offset of the first one, `u32` |
//! | names | for each name the bytes that it shares with the one before, the number of others, and these; alphabetical |
//! | rows | [`ROW`] bytes each: name, event, unit mask, extra, successor, CMASK, flags, class, period; in order of names |
//! | extras | [`EXTRA`] bytes each: number of the registers, value |
//! | registers | [`REGISTERS`] bytes each: number of registers, then for each its address, event and unit mask |
//! | classes | [`CLASS`] bytes each: general and fixed counters that count, and that record |
//! | periods | `u32` each |
//! | tables | [`TABLE`] bytes each: first entry, number of entries |
//! | titles | the names of the tables, each followed by a line feed |
//! | entries | the rows of each table, `u16` each, ascending |
//! | map | [`MAP`] bytes each: processors and their table |
//!
//! Rows that several tables have are stored once. A class is a set of counters.

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

use crate::event::{Counters, Event, Register};
use crate::identity::Vendor;

/// The first bytes.
pub const MAGIC: [u8; 4] = *b"HEV1";
/// Number of sections.
pub const SECTIONS: usize = 11;
/// Names in a block.
pub const BLOCK: usize = 16;
/// Bytes of a row.
pub const ROW: usize = 14;
/// Bytes of an extra.
pub const EXTRA: usize = 9;
/// Most registers of an event.
pub const MAX_REGISTERS: usize = 4;
/// Bytes of a set of registers.
pub const REGISTERS: usize = 1 + 6 * MAX_REGISTERS;
/// Bytes of a class.
pub const CLASS: usize = 8;
/// Bytes of a table.
pub const TABLE: usize = 8;
/// Bytes of a row of the map.
pub const MAP: usize = 11;
/// No extra, or no successor.
pub const NONE: u16 = u16::MAX;

/// Flags of a row.
pub mod flags {
    /// INV.
    pub const INV: u8 = 1;
    /// Edge detect.
    pub const EDGE: u8 = 2;
    /// AnyThread.
    pub const ANY: u8 = 4;
    /// EQ.
    pub const EQ: u8 = 8;
    /// No other event at the same time.
    pub const ALONE: u8 = 0x10;
    /// Deprecated.
    pub const DEPRECATED: u8 = 0x20;
    /// The first bit of the precision, two bits.
    pub const PRECISION: u8 = 6;
}

/// Processors of a maker that have a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapRow {
    /// The maker.
    pub vendor: Vendor,
    /// Family.
    pub family: u16,
    /// The first model.
    pub first_model: u8,
    /// The last model.
    pub last_model: u8,
    /// Bit n: stepping n.
    pub steppings: u16,
    /// Number of the core type of a hybrid, or 0.
    pub core_type: u8,
    /// Native model of leaf 0x1A, if the core type has two kinds of cores and this is the rarer one; otherwise 0.
    pub native_model: u8,
    /// Name of the table.
    pub table: String,
}

/// Why tables cannot be packed.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum PackError {
    /// A number does not fit its field.
    #[error("too many {0}")]
    TooMany(&'static str),
    /// A table has two events of a name.
    #[error("{table} has {name} twice")]
    Twice {
        /// Name of the table.
        table: String,
        /// Name of the event.
        name: String,
    },
    /// A name is written in two ways.
    #[error("{0} and {1} are the same name")]
    TwoSpellings(String, String),
    /// The map names a table that does not exist.
    #[error("the map names {0}, which is no table")]
    NoTable(String),
    /// A table has no event that replaces another.
    #[error("no event is called {0}")]
    NoSuccessor(String),
}

/// Values that are stored once, with their numbers.
struct Pool<T>(BTreeMap<T, usize>);

impl<T: Ord> Pool<T> {
    fn new(values: impl IntoIterator<Item = T>) -> Self {
        let sorted: BTreeSet<T> = values.into_iter().collect();
        Self(sorted.into_iter().enumerate().map(|(index, value)| (value, index)).collect())
    }

    fn get(&self, value: &T) -> usize {
        self.0.get(value).copied().unwrap_or_default()
    }

    fn values(&self) -> impl Iterator<Item = &T> {
        self.0.keys()
    }
}

/// Packs tables and map.
///
/// # Errors
/// If a name occurs twice in a table, or something is too large for its field.
pub fn pack(tables: &[(String, Vec<Event>)], map: &[MapRow]) -> Result<Vec<u8>, PackError> {
    let all = || tables.iter().flat_map(|(_, events)| events);
    let names = Names::of(all())?;
    let periods = Pool::new(all().map(|event| event.period));
    let classes = Pool::new(all().map(class));
    let sets = Pool::new(all().filter_map(|event| event.extra.as_ref()).map(|extra| extra.registers.clone()));
    let extras = Pool::new(
        all().filter_map(|event| event.extra.as_ref()).map(|extra| (sets.get(&extra.registers), extra.value)),
    );
    let packed_row = |event: &Event| -> Result<Vec<u8>, PackError> {
        let extra = event.extra.as_ref().map(|extra| extras.get(&(sets.get(&extra.registers), extra.value)));
        let next = event.successor.as_ref().map(|name| names.get(name)).transpose()?;
        let mut row = Vec::with_capacity(ROW);
        row.extend(u16_of(names.get(&event.name)?, "names")?);
        row.extend(event.encoding.event.to_le_bytes());
        row.extend(event.encoding.umask.to_le_bytes());
        row.extend(extra.map_or(Ok(NONE.to_le_bytes()), |extra| u16_of(extra, "extras"))?);
        row.extend(next.map_or(Ok(NONE.to_le_bytes()), |next| u16_of(next, "names"))?);
        row.push(event.encoding.cmask);
        row.push(flags_of(event));
        row.push(u8_of(classes.get(&class(event)), "classes")?);
        row.push(u8_of(periods.get(&event.period), "periods")?);
        Ok(row)
    };
    let mut lists = Vec::new();
    for (title, events) in tables {
        let mut rows = events.iter().map(packed_row).collect::<Result<Vec<_>, _>>()?;
        rows.sort_by_key(|row| sort_key(row));
        let mut seen = BTreeSet::new();
        if let Some(event) = events.iter().find(|event| !seen.insert(&event.name)) {
            return Err(PackError::Twice { table: title.clone(), name: event.name.clone() });
        }
        lists.push(rows);
    }
    let rows = Pool::new(lists.iter().flatten().map(|row| (sort_key(row), row.clone())));
    let mut entries = Vec::new();
    let mut table_rows = Vec::new();
    for list in &lists {
        table_rows.extend(u32_of(entries.len() / 2, "entries")?);
        table_rows.extend(u32_of(list.len(), "entries")?);
        for row in list {
            entries.extend(u16_of(rows.get(&(sort_key(row), row.clone())), "rows")?);
        }
    }
    let mut register_bytes = Vec::new();
    for set in sets.values() {
        register_bytes.extend(registers(set)?);
    }
    let mut extra_bytes = Vec::new();
    for (set, value) in extras.values() {
        extra_bytes.push(u8_of(*set, "registers")?);
        extra_bytes.extend(value.to_le_bytes());
    }
    let mut period_bytes = Vec::new();
    for period in periods.values() {
        period_bytes
            .extend(u32::try_from(*period).map_err(|_| PackError::TooMany("events in a period"))?.to_le_bytes());
    }
    let mut titles = String::new();
    for (title, _) in tables {
        titles.push_str(title);
        titles.push('\n');
    }
    let map_bytes = map.iter().map(|row| map_row(row, tables)).collect::<Result<Vec<_>, _>>()?.concat();
    let (blocks, name_bytes) = names.packed()?;
    let sections: [Vec<u8>; SECTIONS] = [
        blocks,
        name_bytes,
        rows.values().flat_map(|(_, row)| row.clone()).collect(),
        extra_bytes,
        register_bytes,
        classes.values().flat_map(|class| class.map(u16::to_le_bytes).concat()).collect(),
        period_bytes,
        table_rows,
        titles.into_bytes(),
        entries,
        map_bytes,
    ];
    let mut file = MAGIC.to_vec();
    for section in &sections {
        file.extend(u32_of(section.len(), "bytes")?);
    }
    file.extend(sections.concat());
    Ok(file)
}

/// Names in alphabetical order without regard to case, with their numbers.
struct Names(BTreeMap<String, (usize, String)>);

impl Names {
    fn of<'a>(events: impl Iterator<Item = &'a Event>) -> Result<Self, PackError> {
        let mut names: BTreeMap<String, (usize, String)> = BTreeMap::new();
        for name in events.map(|event| &event.name) {
            let (_, known) = names.entry(name.to_ascii_uppercase()).or_insert_with(|| (0, name.clone()));
            if known != name {
                return Err(PackError::TwoSpellings(known.clone(), name.clone()));
            }
        }
        for (index, (number, _)) in names.values_mut().enumerate() {
            *number = index;
        }
        Ok(Self(names))
    }

    fn get(&self, name: &str) -> Result<usize, PackError> {
        let found = self.0.get(&name.to_ascii_uppercase()).map(|(number, _)| *number);
        found.ok_or_else(|| PackError::NoSuccessor(name.to_owned()))
    }

    fn packed(&self) -> Result<(Vec<u8>, Vec<u8>), PackError> {
        let (mut blocks, mut bytes) = (Vec::new(), Vec::new());
        let mut before = "";
        for (index, (_, name)) in self.0.values().enumerate() {
            if index.is_multiple_of(BLOCK) {
                blocks.extend(u32_of(bytes.len(), "bytes of names")?);
                before = "";
            }
            let shared = before.bytes().zip(name.bytes()).take_while(|(one, other)| one == other).count();
            let rest = name.get(shared..).unwrap_or_default();
            bytes.push(u8_of(shared, "bytes of a name")?);
            bytes.push(u8_of(rest.len(), "bytes of a name")?);
            bytes.extend(rest.bytes());
            before = name;
        }
        Ok((blocks, bytes))
    }
}

/// Returns the order of a row: by the number of its name first.
fn sort_key(row: &[u8]) -> u16 {
    row.first_chunk().map_or(0, |name| u16::from_le_bytes(*name))
}

fn class(event: &Event) -> [u16; 4] {
    let Event { counters, precise_counters, .. } = event;
    let masks = |Counters { general_mask, fixed_mask }: Counters| [general_mask, fixed_mask];
    let ([general, fixed], [recording, recording_fixed]) = (masks(*counters), masks(*precise_counters));
    [general, fixed, recording, recording_fixed]
}

fn flags_of(event: &Event) -> u8 {
    let set = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
    set(event.encoding.inv, flags::INV)
        | set(event.encoding.edge, flags::EDGE)
        | set(event.encoding.any, flags::ANY)
        | set(event.encoding.eq, flags::EQ)
        | set(event.alone, flags::ALONE)
        | set(event.deprecated, flags::DEPRECATED)
        | (event.precision as u8) << flags::PRECISION
}

fn registers(set: &[Register]) -> Result<Vec<u8>, PackError> {
    if set.len() > MAX_REGISTERS {
        return Err(PackError::TooMany("registers"));
    }
    let mut bytes = vec![u8_of(set.len(), "registers")?];
    for Register { msr, event, umask } in set {
        bytes.extend([*msr, *event, *umask].map(u16::to_le_bytes).concat());
    }
    bytes.resize(REGISTERS, 0);
    Ok(bytes)
}

fn map_row(row: &MapRow, tables: &[(String, Vec<Event>)]) -> Result<Vec<u8>, PackError> {
    let table = tables.iter().position(|(title, _)| *title == row.table);
    let table = u8_of(table.ok_or_else(|| PackError::NoTable(row.table.clone()))?, "tables")?;
    let mut bytes = vec![row.vendor as u8];
    bytes.extend(row.family.to_le_bytes());
    bytes.extend([row.first_model, row.last_model]);
    bytes.extend(row.steppings.to_le_bytes());
    bytes.extend([row.core_type, row.native_model, table, 0]);
    Ok(bytes)
}

fn u8_of(number: usize, what: &'static str) -> Result<u8, PackError> {
    u8::try_from(number).map_err(|_| PackError::TooMany(what))
}

fn u16_of(number: usize, what: &'static str) -> Result<[u8; 2], PackError> {
    let number = u16::try_from(number).ok().filter(|number| *number != NONE);
    number.map(u16::to_le_bytes).ok_or(PackError::TooMany(what))
}

fn u32_of(number: usize, what: &'static str) -> Result<[u8; 4], PackError> {
    u32::try_from(number).map(u32::to_le_bytes).map_err(|_| PackError::TooMany(what))
}
