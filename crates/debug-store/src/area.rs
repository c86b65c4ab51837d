//! The 64-bit DS save area (SDM Vol. 3B, "64 Bit Format of the DS Save Area"): PEBS_DS_SAVE_AREA in Windows'
//! PROCESSOR_PROFILE_CONTROL_AREA (seed 004).

use core::mem::offset_of;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Common start of every version of the area. All fields are linear addresses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SaveArea {
    /// Start of the BTS buffer.
    pub bts_buffer_base: u64,
    /// Address of the next BTS record.
    pub bts_index: u64,
    /// End of the BTS buffer: the byte after its last record.
    pub bts_absolute_maximum: u64,
    /// Interrupt when `bts_index` reaches this address.
    pub bts_interrupt_threshold: u64,
    /// Start of the PEBS buffer.
    pub pebs_buffer_base: u64,
    /// Address of the next PEBS record. The kernel stores it in its own trace events.
    pub pebs_index: u64,
    /// End of the PEBS buffer: the byte after its last record.
    pub pebs_absolute_maximum: u64,
    /// Interrupt when `pebs_index` reaches this address.
    pub pebs_interrupt_threshold: u64,
}

/// Offsets of the fields in 64-bit words, which are the same for the processor and every version of Windows.
pub mod word {
    /// BtsBufferBase.
    pub const BTS_BUFFER_BASE: u8 = 0;
    /// BtsIndex.
    pub const BTS_INDEX: u8 = 1;
    /// BtsAbsoluteMaximum.
    pub const BTS_ABSOLUTE_MAXIMUM: u8 = 2;
    /// BtsInterruptThreshold.
    pub const BTS_INTERRUPT_THRESHOLD: u8 = 3;
    /// PebsBufferBase.
    pub const PEBS_BUFFER_BASE: u8 = 4;
    /// PebsIndex.
    pub const PEBS_INDEX: u8 = 5;
    /// PebsAbsoluteMaximum.
    pub const PEBS_ABSOLUTE_MAXIMUM: u8 = 6;
    /// PebsInterruptThreshold.
    pub const PEBS_INTERRUPT_THRESHOLD: u8 = 7;
    /// Value loaded into general counter 0 after a record; those of the other counters follow.
    pub const PEBS_COUNTER_RESET: u8 = 8;
}

/// PROCESSOR_PROFILE_CONTROL_AREA of Windows 8 (6.2) to Windows 10 1809: 0x60 bytes (seed 004).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ControlAreaV62 {
    /// Bounds of the buffers.
    pub save_area: SaveArea,
    /// PebsCounterReset0 to 3: values loaded into the general counters after a record.
    pub pebs_counter_reset: [u64; 4],
}

/// 64-bit PROCESSOR_PROFILE_CONTROL_AREA since Windows 10 1903: 0xA0 bytes (public symbols of the kernel).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ControlArea1903 {
    /// Bounds of the buffers.
    pub save_area: SaveArea,
    /// PebsGpCounterReset: values for the general counters.
    pub pebs_gp_counter_reset: [u64; 8],
    /// PebsFixedCounterReset: values for the fixed counters.
    pub pebs_fixed_counter_reset: [u64; 4],
}

/// Layout of the control area, which depends on the Windows release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// [`ControlAreaV62`].
    V62,
    /// [`ControlArea1903`].
    V1903,
}

impl Layout {
    /// Build number of Windows 8 (6.2), the first release with a control area.
    const WINDOWS_8: u32 = 9_200;
    /// Build number of Windows 10 1903, the first release with the larger area.
    const WINDOWS_10_1903: u32 = 18_362;

    /// Returns the layout of a Windows build; `None` before Windows 8.
    #[must_use]
    pub const fn of_build(build: u32) -> Option<Self> {
        match build {
            ..Self::WINDOWS_8 => None,
            Self::WINDOWS_8..Self::WINDOWS_10_1903 => Some(Self::V62),
            Self::WINDOWS_10_1903.. => Some(Self::V1903),
        }
    }

    /// Returns the size of the area in bytes.
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            Self::V62 => size_of::<ControlAreaV62>(),
            Self::V1903 => size_of::<ControlArea1903>(),
        }
    }

    /// Returns the number of general counters that have a reset field.
    #[must_use]
    pub const fn general_resets(self) -> u8 {
        match self {
            Self::V62 => 4,
            Self::V1903 => 8,
        }
    }
}

const _: () = {
    assert!(size_of::<SaveArea>() == 0x40 && align_of::<SaveArea>() == 8);
    assert!(size_of::<ControlAreaV62>() == 0x60 && offset_of!(ControlAreaV62, pebs_counter_reset) == 0x40);
    assert!(size_of::<ControlArea1903>() == 0xA0);
    assert!(offset_of!(ControlArea1903, pebs_gp_counter_reset) == 0x40);
    assert!(offset_of!(ControlArea1903, pebs_fixed_counter_reset) == 0x80);
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_has_its_documented_offset() {
        for (word, documented) in [
            (word::BTS_BUFFER_BASE, 0x00),
            (word::BTS_INDEX, 0x08),
            (word::BTS_ABSOLUTE_MAXIMUM, 0x10),
            (word::BTS_INTERRUPT_THRESHOLD, 0x18),
            (word::PEBS_BUFFER_BASE, 0x20),
            (word::PEBS_INDEX, 0x28),
            (word::PEBS_ABSOLUTE_MAXIMUM, 0x30),
            (word::PEBS_INTERRUPT_THRESHOLD, 0x38),
            (word::PEBS_COUNTER_RESET, 0x40),
        ] {
            assert_eq!(u32::from(word) * 8, documented);
        }
        for (offset, documented) in [
            (offset_of!(SaveArea, bts_buffer_base), 0x00),
            (offset_of!(SaveArea, bts_index), 0x08),
            (offset_of!(SaveArea, bts_absolute_maximum), 0x10),
            (offset_of!(SaveArea, bts_interrupt_threshold), 0x18),
            (offset_of!(SaveArea, pebs_buffer_base), 0x20),
            (offset_of!(SaveArea, pebs_index), 0x28),
            (offset_of!(SaveArea, pebs_absolute_maximum), 0x30),
            (offset_of!(SaveArea, pebs_interrupt_threshold), 0x38),
        ] {
            assert_eq!(offset, documented);
        }
        for (number, value) in (0_u64..).zip(0x40_u64..).take(4) {
            let mut area = ControlAreaV62::default();
            area.pebs_counter_reset[usize::try_from(number).unwrap()] = value;
            let at = 0x40 + 8 * usize::try_from(number).unwrap();
            assert_eq!(area.as_bytes()[at..at + 8], value.to_le_bytes(), "PebsCounterReset{number}");
        }
    }

    #[test]
    fn windows_build_selects_the_layout() {
        for (build, layout, size) in [
            (7_601, None, 0),
            (9_199, None, 0),
            (9_200, Some(Layout::V62), 0x60),
            (17_763, Some(Layout::V62), 0x60),
            (18_361, Some(Layout::V62), 0x60),
            (18_362, Some(Layout::V1903), 0xA0),
            (26_100, Some(Layout::V1903), 0xA0),
        ] {
            assert_eq!(Layout::of_build(build), layout, "{build}");
            assert_eq!(layout.map_or(0, Layout::size), size, "{build}");
        }
    }
}
