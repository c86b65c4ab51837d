//! Profile sources: what the HAL calls the events that can be counted.

use core::fmt;

/// A KPROFILE_SOURCE. Numbers below 0x18 are WDM.H's, those from 0x19 mean what the profile interface says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Source(pub u32);

impl Source {
    /// ProfileTime, which every interface has and a timer serves.
    pub const TIME: Self = Self(0);
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

/// A row of the Amd64 table (seed 000: Value, Symbol, Select).
pub(crate) const fn amd64(source: u32, name: &'static str, select: u64) -> ProfileSource {
    ProfileSource { source: Source(source), name, select, ebx_bit: None }
}

/// A row of the Emon table (seed 002: Value, Name, EBX Bit, Select).
pub(crate) const fn emon(source: u32, name: &'static str, ebx_bit: Option<u8>, select: u64) -> ProfileSource {
    ProfileSource { source: Source(source), name, select, ebx_bit }
}
