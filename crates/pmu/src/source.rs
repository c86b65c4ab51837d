//! Profile sources: what the HAL calls the events that can be counted.

use core::fmt;

use bitfield_struct::bitfield;

/// A KPROFILE_SOURCE. Numbers below 0x18 are WDM.H's, those from 0x19 mean what the profile interface says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Source(pub u32);

impl Source {
    /// ProfileTime, which every interface has and a timer serves.
    pub const TIME: Self = Self(0);

    /// What it counts, if its number says so itself.
    #[must_use]
    pub const fn raw(self) -> Option<RawEvent> {
        let event = RawEvent(self.0);
        if event.is_raw() && !event.is_reserved() { Some(event) } else { None }
    }
}

/// An event that no table has: the number of its source says in fields what is to be selected. There is no field for
/// what decides about modes, interrupts or other registers.
#[bitfield(u32)]
#[derive(PartialEq, Eq, Hash)]
pub struct RawEvent {
    /// The event: of 8 bits on Intel's processors, of 12 on AMD's.
    #[bits(12)]
    pub event: u16,
    /// Its unit mask.
    pub umask: u8,
    /// Counts clocks with at least so many events, where not 0.
    pub cmask: u8,
    /// Counts clocks with fewer than `cmask` instead.
    pub inv: bool,
    /// Counts how often that begins to be so.
    pub edge: bool,
    /// Zero, so that ALL_SOURCES is no event.
    #[bits(access = RO)]
    is_reserved: bool,
    /// One, which no number of a table has.
    #[bits(access = RO)]
    is_raw: bool,
}

impl RawEvent {
    /// The event 0 without a unit mask.
    pub const NONE: Self = Self(1 << 31);

    /// The largest number of an event.
    pub const MAX_EVENT: u32 = 0xFFF;

    /// What goes into the event select register for it, in both modes, as the tables have it: every processor that has
    /// such a field has it at the same place (SDM Vol. 3B, Figure 21-1; APM Vol. 2, 13.2.1).
    #[must_use]
    pub const fn select(self) -> u64 {
        const BOTH_MODES: u64 = 3 << 16;
        let event = self.event() as u64;
        BOTH_MODES
            | event & 0xFF
            | (self.umask() as u64) << 8
            | (self.edge() as u64) << 18
            | (self.inv() as u64) << 23
            | (self.cmask() as u64) << 24
            | event >> 8 << 32
    }

    /// The source that means it.
    #[must_use]
    pub const fn source(self) -> Source {
        Source(self.0)
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#04x}", self.0)
    }
}

/// A row of a profile interface's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProfileSource {
    /// Its number.
    pub source: Source,
    /// Its name in the HAL: the enumeration's without `Profile`.
    pub name: &'static str,
    /// What the table has for the event select register: event, unit mask, USR and OS. Zero where nothing counts it.
    pub select: u64,
    /// Emon only: the bit of CPUID leaf 0xA EBX that is clear when the event is available.
    pub ebx_bit: Option<u8>,
}

impl ProfileSource {
    /// The row that a raw event would have: it has no name.
    #[must_use]
    pub const fn of_raw(event: RawEvent) -> Self {
        Self { source: event.source(), name: "", select: event.select(), ebx_bit: None }
    }
}

/// A row of the Amd64 table (seed 000: Value, Symbol, Select).
pub(crate) const fn amd64(source: u32, name: &'static str, select: u64) -> ProfileSource {
    ProfileSource { source: Source(source), name, select, ebx_bit: None }
}

/// A row of the Emon table (seed 002: Value, Name, EBX Bit, Select).
pub(crate) const fn emon(source: u32, name: &'static str, ebx_bit: Option<u8>, select: u64) -> ProfileSource {
    ProfileSource { source: Source(source), name, select, ebx_bit }
}
