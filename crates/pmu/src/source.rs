//! Profile sources: the HAL's numbers and names for events.

use core::fmt;

use bitfield_struct::bitfield;

/// A KPROFILE_SOURCE. WDM.H defines the numbers below 0x18; the profile interface defines those from 0x19 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Source(pub u32);

impl Source {
    /// ProfileTime: every interface has it, and a timer serves it.
    pub const TIME: Self = Self(0);

    /// Returns the raw event that the number encodes, or `None` if it encodes none.
    #[must_use]
    pub const fn raw(self) -> Option<RawEvent> {
        let event = RawEvent(self.0);
        if event.is_raw() && !event.is_reserved() { Some(event) } else { None }
    }
}

/// An event that is in no table: the number of its source encodes the selection in bit fields. No field selects modes,
/// interrupts or other registers.
#[bitfield(u32)]
#[derive(PartialEq, Eq, Hash)]
pub struct RawEvent {
    /// Event number: 8 bits on Intel processors, 12 on AMD processors.
    #[bits(12)]
    pub event: u16,
    /// Unit mask.
    pub umask: u8,
    /// CMASK: if not 0, count clocks with at least this many events.
    pub cmask: u8,
    /// INV: count clocks with fewer than `cmask` events instead.
    pub inv: bool,
    /// Edge detect: count how often the condition becomes true.
    pub edge: bool,
    /// Zero, so that ALL_SOURCES is not a raw event.
    #[bits(access = RO)]
    is_reserved: bool,
    /// One; no number in a table has this bit.
    #[bits(access = RO)]
    is_raw: bool,
}

impl RawEvent {
    /// Event 0 without a unit mask.
    pub const NONE: Self = Self(1 << 31);

    /// The largest event number.
    pub const MAX_EVENT: u32 = 0xFFF;

    /// Returns the event select register for both modes, as in the tables. Every processor that has one of these fields
    /// has it in the same bits (SDM Vol. 3B, Figure 21-1; APM Vol. 2, 13.2.1).
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

    /// Returns the source that encodes this event.
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

/// An entry of a profile interface's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProfileSource {
    /// Number of the source.
    pub source: Source,
    /// Name in the HAL: the name of the enumerator without `Profile`.
    pub name: &'static str,
    /// Event select register in the table: event, unit mask, USR and OS. Zero if no counter counts the source.
    pub select: u64,
    /// Emon only: the bit of CPUID leaf 0xA EBX that is clear if the event is available.
    pub ebx_bit: Option<u8>,
}

impl ProfileSource {
    /// Returns an entry without a name for a raw event.
    #[must_use]
    pub const fn of_raw(event: RawEvent) -> Self {
        Self { source: event.source(), name: "", select: event.select(), ebx_bit: None }
    }
}

/// Returns an entry of the Amd64 table (HAL Amd64 interface, section 2.2: Value, Symbol, Select).
pub(crate) const fn amd64(source: u32, name: &'static str, select: u64) -> ProfileSource {
    ProfileSource { source: Source(source), name, select, ebx_bit: None }
}

/// Returns an entry of the Emon table (HAL Emon interface, section 2.2: Value, Name, EBX Bit, Select).
pub(crate) const fn emon(source: u32, name: &'static str, ebx_bit: Option<u8>, select: u64) -> ProfileSource {
    ProfileSource { source: Source(source), name, select, ebx_bit }
}
