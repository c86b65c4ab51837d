//! The DS buffer management area, and the structures in which Windows allocates it.
//!
//! The processor reads and writes the area at the linear address in IA32_DS_AREA. Windows calls it PEBS_DS_SAVE_AREA
//! and allocates it inside a PROCESSOR_PROFILE_CONTROL_AREA.

use core::mem::offset_of;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Start of the 64-bit DS buffer management area, the same in every version of Windows (SDM Vol. 3B 19.4.9, "64 Bit
/// Format of the DS Save Area"; PEBS_DS_SAVE_AREA in public symbols of the Windows kernel). All fields are linear
/// addresses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct DsArea {
    /// BTS buffer base: the first byte of the BTS buffer.
    pub bts_buffer_base: u64,
    /// BTS index: where the processor writes the next record.
    pub bts_index: u64,
    /// BTS absolute maximum: the byte after the BTS buffer.
    pub bts_absolute_maximum: u64,
    /// BTS interrupt threshold: the index at which the processor raises an interrupt.
    pub bts_interrupt_threshold: u64,
    /// PEBS buffer base: the first byte of the PEBS buffer.
    pub pebs_buffer_base: u64,
    /// PEBS index: where the processor writes the next record. The Windows kernel stamps it into its own events.
    pub pebs_index: u64,
    /// PEBS absolute maximum: the byte after the PEBS buffer.
    pub pebs_absolute_maximum: u64,
    /// PEBS interrupt threshold: the index at which the processor raises an interrupt.
    pub pebs_interrupt_threshold: u64,
}

/// Indices of the fields of [`DsArea`], and of the counter reset values after it, in words of 8 bytes.
pub mod word {
    /// [`DsArea::bts_buffer_base`](super::DsArea::bts_buffer_base).
    pub const BTS_BUFFER_BASE: u16 = 0;
    /// [`DsArea::bts_index`](super::DsArea::bts_index).
    pub const BTS_INDEX: u16 = 1;
    /// [`DsArea::bts_absolute_maximum`](super::DsArea::bts_absolute_maximum).
    pub const BTS_ABSOLUTE_MAXIMUM: u16 = 2;
    /// [`DsArea::bts_interrupt_threshold`](super::DsArea::bts_interrupt_threshold).
    pub const BTS_INTERRUPT_THRESHOLD: u16 = 3;
    /// [`DsArea::pebs_buffer_base`](super::DsArea::pebs_buffer_base).
    pub const PEBS_BUFFER_BASE: u16 = 4;
    /// [`DsArea::pebs_index`](super::DsArea::pebs_index).
    pub const PEBS_INDEX: u16 = 5;
    /// [`DsArea::pebs_absolute_maximum`](super::DsArea::pebs_absolute_maximum).
    pub const PEBS_ABSOLUTE_MAXIMUM: u16 = 6;
    /// [`DsArea::pebs_interrupt_threshold`](super::DsArea::pebs_interrupt_threshold).
    pub const PEBS_INTERRUPT_THRESHOLD: u16 = 7;
    /// Reset value of general-purpose counter 0. Those of the other counters follow.
    pub const PEBS_COUNTER_RESET: u16 = 8;
    /// Reset value of fixed-function counter 0 of record format 4, behind those of 8 general-purpose counters.
    pub const PEBS_FIXED_RESET_4: u16 = 16;
    /// The same from format 5 on, behind those of 32 (Linux, arch/x86/events/intel/ds.c, `intel_pmu_pebs_enable`).
    pub const PEBS_FIXED_RESET_5: u16 = 40;
}

/// Reset values of general-purpose counters in [`ControlAreaV62`].
pub const GENERAL_RESETS_V62: u16 = 4;

/// Reset values of general-purpose counters in [`ControlArea1903`].
pub const GENERAL_RESETS_1903: u16 = 8;

/// Reset values of fixed-function counters in [`ControlArea1903`].
pub const FIXED_RESETS_1903: u16 = 4;

/// PROCESSOR_PROFILE_CONTROL_AREA from Windows version 6.2 to 10 version 1809 (public symbols of the kernel).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ControlAreaV62 {
    /// Buffer management area.
    pub ds_area: DsArea,
    /// PebsCounterReset0 to 3: the value that a general-purpose counter is loaded with after a PEBS record.
    pub pebs_counter_reset: [u64; GENERAL_RESETS_V62 as usize],
}

/// PROCESSOR_PROFILE_CONTROL_AREA since Windows 10 version 1903, in its 64-bit form (public symbols of the kernel).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ControlArea1903 {
    /// Buffer management area.
    pub ds_area: DsArea,
    /// PebsGpCounterReset: the value that a general-purpose counter is loaded with after a PEBS record.
    pub pebs_gp_counter_reset: [u64; GENERAL_RESETS_1903 as usize],
    /// PebsFixedCounterReset: the value that a fixed-function counter is loaded with after a PEBS record.
    pub pebs_fixed_counter_reset: [u64; FIXED_RESETS_1903 as usize],
}

const _: () = {
    assert!(size_of::<DsArea>() == 0x40 && align_of::<DsArea>() == 8);
    assert!(offset_of!(DsArea, bts_buffer_base) == 8 * word::BTS_BUFFER_BASE as usize);
    assert!(offset_of!(DsArea, bts_index) == 8 * word::BTS_INDEX as usize);
    assert!(offset_of!(DsArea, bts_absolute_maximum) == 8 * word::BTS_ABSOLUTE_MAXIMUM as usize);
    assert!(offset_of!(DsArea, bts_interrupt_threshold) == 8 * word::BTS_INTERRUPT_THRESHOLD as usize);
    assert!(offset_of!(DsArea, pebs_buffer_base) == 8 * word::PEBS_BUFFER_BASE as usize);
    assert!(offset_of!(DsArea, pebs_index) == 8 * word::PEBS_INDEX as usize);
    assert!(offset_of!(DsArea, pebs_absolute_maximum) == 8 * word::PEBS_ABSOLUTE_MAXIMUM as usize);
    assert!(offset_of!(DsArea, pebs_interrupt_threshold) == 8 * word::PEBS_INTERRUPT_THRESHOLD as usize);
    assert!(size_of::<ControlAreaV62>() == 0x60);
    assert!(offset_of!(ControlAreaV62, pebs_counter_reset) == 8 * word::PEBS_COUNTER_RESET as usize);
    assert!(size_of::<ControlArea1903>() == 0xA0);
    assert!(offset_of!(ControlArea1903, pebs_gp_counter_reset) == 8 * word::PEBS_COUNTER_RESET as usize);
    assert!(offset_of!(ControlArea1903, pebs_fixed_counter_reset) == 8 * word::PEBS_FIXED_RESET_4 as usize);
};
