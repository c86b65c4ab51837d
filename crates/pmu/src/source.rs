//! Sources: what counters count, by the HAL's numbers and names, or by its encoding.

pub(crate) mod packed;

use core::fmt;

use bitfield_struct::bitfield;

use packed::Column;

/// What a counter counts: a source of the HAL by its number, a KPROFILE_SOURCE, or the bits of a [`RawEvent`]. WDM.H
/// defines the numbers below 0x18; the profile interface defines those from 0x19 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Source(pub u64);

impl Source {
    /// ProfileTime: every interface has it, and a timer serves it.
    pub const TIME: Self = Self(0);

    /// Returns the number of a source of the HAL, or `None` for a raw event.
    #[must_use]
    pub fn number(self) -> Option<u32> {
        u32::try_from(self.0).ok()
    }

    /// Returns whether it is a raw event.
    #[must_use]
    pub const fn is_raw(self) -> bool {
        self.raw().is_some()
    }

    /// Returns the raw event, or `None` for the number of a source and for bits that are no event.
    #[must_use]
    pub const fn raw(self) -> Option<RawEvent> {
        let event = RawEvent::from_bits(self.0);
        if event.is_valid() { Some(event) } else { None }
    }
}

/// An event that is in no table: the fields of its event select register, and the kind of its extra register. No field
/// selects modes, interrupts or other registers.
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct RawEvent {
    /// Event number: 8 bits on Intel processors, 12 on AMD processors.
    #[bits(12)]
    pub event: u16,
    /// Unit mask; bits 15:8 are UMASK2.
    pub umask: u16,
    /// CMASK: if not 0, count clocks with at least this many events.
    pub cmask: u8,
    /// INV: count clocks with fewer than `cmask` events instead.
    pub inv: bool,
    /// Edge detect: count how often the condition becomes true.
    pub edge: bool,
    /// AnyThread: count the events of all threads of the core.
    pub any: bool,
    /// EQ: count clocks with exactly `cmask` events instead.
    pub eq: bool,
    /// Number of a [`Selector`](crate::extra::Selector), or 0.
    #[bits(3)]
    pub selector: u8,
    /// Zero.
    #[bits(20)]
    reserved: u32,
    /// One: no number of a source has this bit.
    #[bits(default = true)]
    pub is_event: bool,
}

impl RawEvent {
    /// The largest event number.
    pub const MAX_EVENT: u16 = 0xFFF;

    /// Returns whether reserved bits are zero, and the bit that marks an event is set.
    #[must_use]
    pub const fn is_valid(self) -> bool {
        self.reserved() == 0 && self.is_event()
    }

    /// Returns the event select register for both modes, as in the tables. Every processor that has one of these fields
    /// has it in the same bits (SDM Vol. 3B, Figure 21-1; APM Vol. 2, 13.2.1); UMASK2 and EQ are Intel's, and bits
    /// 35:32 of the event number AMD's.
    #[must_use]
    pub const fn select(self) -> u64 {
        const BOTH_MODES: u64 = 3 << 16;
        let (event, umask) = (self.event() as u64, self.umask() as u64);
        BOTH_MODES
            | event & 0xFF
            | (umask & 0xFF) << 8
            | (self.edge() as u64) << 18
            | (self.any() as u64) << 21
            | (self.inv() as u64) << 23
            | (self.cmask() as u64) << 24
            | event >> 8 << 32
            | (self.eq() as u64) << 36
            | umask >> 8 << 40
    }

    /// Returns the event as a source.
    #[must_use]
    pub const fn source(self) -> Source {
        Source(self.into_bits())
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#04x}", self.0)
    }
}

/// An entry of a profile interface's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProfileSource {
    /// Number of the source.
    pub source: Source,
    /// Name in the HAL: the name of the enumerator without `Profile`.
    pub name: &'static str,
    /// Event select register in the table: event, unit mask, USR and OS. Zero if no counter counts the source.
    pub select: u64,
}

impl ProfileSource {
    /// Returns an entry without a name for a raw event.
    #[must_use]
    pub const fn of_raw(event: RawEvent) -> Self {
        Self { source: event.source(), name: "", select: event.select() }
    }
}

/// A table of sources: entries in ascending order of their numbers.
#[derive(Debug, Clone, Copy)]
pub struct Sources(Entries);

#[derive(Debug, Clone, Copy)]
enum Entries {
    Listed(&'static [ProfileSource]),
    /// Those of AMD: the families share the names, and differ in their selects.
    Packed(Column),
}

impl Sources {
    /// Creates a table.
    #[must_use]
    pub const fn new(entries: &'static [ProfileSource]) -> Self {
        Self(Entries::Listed(entries))
    }

    /// Creates the table of a column.
    pub(crate) const fn of_column(column: Column) -> Self {
        Self(Entries::Packed(column))
    }

    /// Returns the number of entries.
    #[must_use]
    pub const fn len(self) -> usize {
        match self.0 {
            Entries::Listed(entries) => entries.len(),
            Entries::Packed(column) => column.len(),
        }
    }

    /// Returns the index of the first raw event: it follows those of the entries.
    pub(crate) fn first_raw(self) -> u16 {
        u16::try_from(self.len()).unwrap_or(u16::MAX)
    }

    /// Returns whether the table has no entry.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Returns an entry.
    #[must_use]
    pub fn get(self, index: usize) -> Option<ProfileSource> {
        match self.0 {
            Entries::Listed(entries) => entries.get(index).copied(),
            Entries::Packed(column) => column.get(index),
        }
    }

    /// Returns the select of an entry.
    pub(crate) fn select(self, index: usize) -> Option<u64> {
        match self.0 {
            Entries::Listed(entries) => entries.get(index).map(|entry| entry.select),
            Entries::Packed(column) => column.select(index),
        }
    }

    /// Iterates over the entries.
    pub fn iter(self) -> impl Iterator<Item = ProfileSource> {
        (0..self.len()).filter_map(move |index| self.get(index))
    }

    /// Returns the entry of a source, and its index.
    #[must_use]
    pub fn find(self, source: Source) -> Option<(u16, ProfileSource)> {
        let index = match self.0 {
            Entries::Listed(entries) => entries.iter().position(|entry| entry.source == source),
            Entries::Packed(column) => column.position(source),
        }?;
        Some((u16::try_from(index).ok()?, self.get(index)?))
    }
}

/// Returns an entry of the Amd64 table (HAL Amd64 interface, section 2.2: Value, Symbol, Select), or of the Emon table
/// (HAL Emon interface, section 2.2: Value, Name, Select).
pub(crate) const fn row(source: u64, name: &'static str, select: u64) -> ProfileSource {
    ProfileSource { source: Source(source), name, select }
}
