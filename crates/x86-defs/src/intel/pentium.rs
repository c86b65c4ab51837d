//! Counters of the Pentium (SDM Vol. 3B, "Performance Monitoring (Pentium Processors)").

use bitfield_struct::bitfield;

/// CESR, control and event select register: [`Cesr`] (SDM Vol. 4, "MSRs in Pentium Processors").
pub const CESR: u32 = 0x11;

/// CTR0, first of two (SDM Vol. 4, "MSRs in Pentium Processors").
pub const CTR0: u32 = 0x12;

/// Counters of a processor (SDM Vol. 3B, "Performance Monitoring (Pentium Processors)").
pub const COUNTERS: u8 = 2;

/// Width of a counter in bits (SDM Vol. 3B, "Performance Monitoring (Pentium Processors)").
pub const WIDTH: u8 = 40;

/// The half of [`Cesr`] that controls one counter (SDM Vol. 3B, "Control and Event Select Register (CESR)").
#[bitfield(u16)]
#[derive(PartialEq, Eq)]
pub struct CesrHalf {
    /// ES: event select.
    #[bits(6)]
    pub event_select: u8,
    /// CC, lowest bit: count at privilege levels 0 to 2.
    pub kernel: bool,
    /// CC, middle bit: count at privilege level 3.
    pub user: bool,
    /// CC, highest bit: count clocks while the event lasts, instead of events.
    pub clocks: bool,
    /// PC: pin control.
    pub pin_control: bool,
    #[bits(6)]
    _reserved: u8,
}

/// CESR (SDM Vol. 3B, "Control and Event Select Register (CESR)").
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct Cesr {
    /// ES0, CC0, PC0: counter 0.
    #[bits(16)]
    pub counter0: CesrHalf,
    /// ES1, CC1, PC1: counter 1.
    #[bits(16)]
    pub counter1: CesrHalf,
    _reserved: u32,
}
