//! Reads the compact tables; [`crate::pack`] describes their form.

use std::cmp::Ordering;
use std::sync::LazyLock;

use crate::event::{Counters, Encoding, Event, EventExtra, Precision, Register};
use crate::identity::{CoreType, Identity};
use crate::pack::{BLOCK, CLASS, EXTRA, MAGIC, MAP, MAX_REGISTERS, NONE, REGISTERS, ROW, SECTIONS, TABLE, flags};

/// The tables, which `cargo xtask events` makes.
pub const BYTES: &[u8] = include_bytes!("tables.bin");

/// Bytes that few names exceed.
const LONG_NAME: usize = 64;

static DATABASE: LazyLock<Database> = LazyLock::new(|| Database::of(BYTES).unwrap_or_default());

/// The sections of the tables.
#[derive(Debug, Default)]
struct Database {
    blocks: &'static [u8],
    names: &'static [u8],
    rows: &'static [u8],
    extras: &'static [u8],
    registers: &'static [u8],
    classes: &'static [u8],
    periods: &'static [u8],
    tables: &'static [u8],
    titles: &'static [u8],
    entries: &'static [u8],
    map: &'static [u8],
}

impl Database {
    fn of(bytes: &'static [u8]) -> Option<Self> {
        let (lengths, mut rest) = bytes.strip_prefix(&MAGIC)?.split_at_checked(4 * SECTIONS)?;
        let mut sections = [&[][..]; SECTIONS];
        for (section, length) in sections.iter_mut().zip(lengths.as_chunks::<4>().0) {
            (*section, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        }
        let [blocks, names, rows, extras, registers, classes, periods, tables, titles, entries, map] = sections;
        Some(Self { blocks, names, rows, extras, registers, classes, periods, tables, titles, entries, map })
    }

    /// Calls a function with the number and the text of each name from the beginning of a block until it returns a
    /// value.
    fn names_from<T>(&self, block: usize, mut visit: impl FnMut(u16, &[u8]) -> Option<T>) -> Option<T> {
        let offset = u32::from_le_bytes(*chunk::<4>(self.blocks, block)?);
        let mut rest = self.names.get(offset as usize..)?;
        let mut name = Vec::with_capacity(LONG_NAME);
        let mut number = u16::try_from(block * BLOCK).ok()?;
        while let [shared, length, tail @ ..] = rest {
            let (others, next) = tail.split_at_checked(usize::from(*length))?;
            name.truncate(usize::from(*shared));
            name.extend_from_slice(others);
            if let Some(found) = visit(number, &name) {
                return Some(found);
            }
            number = number.checked_add(1)?;
            rest = next;
        }
        None
    }

    /// Returns the text of a name.
    fn name(&self, wanted: u16) -> Option<String> {
        let name = |number: u16, name: &[u8]| (number == wanted).then(|| String::from_utf8_lossy(name).into_owned());
        self.names_from(usize::from(wanted) / BLOCK, name)
    }

    /// Returns the number of a name, in any case of letters.
    fn number(&self, wanted: &str) -> Option<u16> {
        let wanted = wanted.to_ascii_uppercase();
        let compare = |name: &[u8]| name.iter().map(u8::to_ascii_uppercase).cmp(wanted.bytes());
        let is_after = |block: usize| {
            self.names_from(block, |_, first| Some(compare(first))).is_none_or(|order| order == Ordering::Greater)
        };
        let (mut low, mut high) = (0, self.blocks.len() / 4);
        while low < high {
            let middle = low.midpoint(high);
            if is_after(middle) { high = middle } else { low = middle + 1 }
        }
        let ended = self.names_from(low.checked_sub(1)?, |number, name| match compare(name) {
            Ordering::Less => None,
            Ordering::Equal => Some(Some(number)),
            Ordering::Greater => Some(None),
        });
        ended.flatten()
    }

    fn event(&self, row: u16) -> Option<Event> {
        let bytes = chunk::<ROW>(self.rows, usize::from(row))?;
        let (words, [cmask, bits, class, period]) = bytes.split_first_chunk::<10>().and_then(|(words, rest)| {
            let rest: [u8; 4] = rest.try_into().ok()?;
            Some((words.as_chunks::<2>().0, rest))
        })?;
        let [name, event, umask, extra, next] = *words else { return None };
        let [name, event, umask, extra, next] = [name, event, umask, extra, next].map(u16::from_le_bytes);
        let has = |flag: u8| bits & flag != 0;
        let class = chunk::<CLASS>(self.classes, class.into())?.as_chunks::<2>().0;
        let [general, fixed, recording, recording_fixed] = *class else { return None };
        let counters = |general, fixed| Counters {
            general_mask: u16::from_le_bytes(general),
            fixed_mask: u16::from_le_bytes(fixed),
        };
        Some(Event {
            name: self.name(name)?,
            encoding: Encoding {
                event,
                umask,
                cmask,
                inv: has(flags::INV),
                edge: has(flags::EDGE),
                any: has(flags::ANY),
                eq: has(flags::EQ),
            },
            counters: counters(general, fixed),
            precision: match bits >> flags::PRECISION {
                0 => Precision::Imprecise,
                1 => Precision::Precise,
                _ => Precision::OnlyPrecise,
            },
            precise_counters: counters(recording, recording_fixed),
            extra: if extra == NONE { None } else { Some(self.extra(extra)?) },
            alone: has(flags::ALONE),
            deprecated: has(flags::DEPRECATED),
            successor: if next == NONE { None } else { Some(self.name(next)?) },
            period: u32::from_le_bytes(*chunk::<4>(self.periods, period.into())?).into(),
        })
    }

    fn extra(&self, number: u16) -> Option<EventExtra> {
        let [set, value @ ..] = *chunk::<EXTRA>(self.extras, usize::from(number))?;
        let [count, registers @ ..] = chunk::<REGISTERS>(self.registers, set.into())?;
        let register = |bytes: &[u8; 6]| {
            let [msr, event, umask] = *bytes.as_chunks::<2>().0 else { return None };
            let [msr, event, umask] = [msr, event, umask].map(u16::from_le_bytes);
            Some(Register { msr, event, umask })
        };
        let used = registers.as_chunks::<6>().0.get(..usize::from(*count).min(MAX_REGISTERS))?;
        Some(EventExtra {
            registers: used.iter().map(register).collect::<Option<_>>()?,
            value: u64::from_le_bytes(value),
        })
    }
}

/// Returns a chunk of a section.
fn chunk<const LENGTH: usize>(section: &[u8], index: usize) -> Option<&[u8; LENGTH]> {
    section.as_chunks::<LENGTH>().0.get(index)
}

/// The events of a microarchitecture, or of one of its products.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Table(u8);

impl Table {
    /// Iterates over all tables.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (0..).map(Self).take(DATABASE.tables.len() / TABLE)
    }

    /// Iterates over the tables of a processor, each with its core type on a hybrid and the native model that chooses
    /// it.
    pub(crate) fn of(identity: Identity) -> impl Iterator<Item = (Self, Option<CoreType>, u8)> + use<> {
        DATABASE.map.as_chunks::<MAP>().0.iter().filter_map(move |row| {
            let [vendor, family_low, family_high, first, last, step_low, step_high, core_type, native, table, _] = *row;
            let is_it = vendor == identity.vendor as u8
                && u16::from_le_bytes([family_low, family_high]) == identity.family
                && (first..=last).contains(&identity.model)
                && u16::from_le_bytes([step_low, step_high]) >> (identity.stepping & 0xF) & 1 == 1;
            is_it.then(|| (Self(table), CoreType::from_number(core_type.into()), native))
        })
    }

    /// Returns the name of its file of facts, without the extension.
    #[must_use]
    pub fn name(self) -> &'static str {
        let titles = DATABASE.titles.split(|byte| *byte == b'\n').nth(self.0.into());
        titles.and_then(|title| str::from_utf8(title).ok()).unwrap_or_default()
    }

    fn rows(self) -> &'static [[u8; 2]] {
        let rows = chunk::<TABLE>(DATABASE.tables, self.0.into()).and_then(|table| {
            let [first, count] = *table.as_chunks::<4>().0 else { return None };
            let [first, count] = [first, count].map(|number| u32::from_le_bytes(number) as usize);
            DATABASE.entries.as_chunks::<2>().0.get(first..first.checked_add(count)?)
        });
        rows.unwrap_or_default()
    }

    /// Returns the number of events.
    #[must_use]
    pub fn len(self) -> usize {
        self.rows().len()
    }

    /// Returns whether the table has no event.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.rows().is_empty()
    }

    /// Iterates over the events, in alphabetical order.
    pub fn events(self) -> impl Iterator<Item = Event> {
        self.rows().iter().filter_map(|row| DATABASE.event(u16::from_le_bytes(*row)))
    }

    /// Returns the event of this name, in any case of letters. Takes a few microseconds.
    #[must_use]
    pub fn find(self, name: &str) -> Option<Event> {
        let number = DATABASE.number(name)?;
        let name_of = |row: &[u8; 2]| {
            let row = chunk::<ROW>(DATABASE.rows, u16::from_le_bytes(*row).into())?;
            row.first_chunk().map(|name| u16::from_le_bytes(*name))
        };
        let rows = self.rows();
        let index = rows.binary_search_by_key(&Some(number), name_of).ok()?;
        DATABASE.event(u16::from_le_bytes(*rows.get(index)?))
    }
}
