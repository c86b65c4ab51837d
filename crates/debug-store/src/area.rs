//! The save area: PEBS_DS_SAVE_AREA in PROCESSOR_PROFILE_CONTROL_AREA (seed 004), the 64-bit DS save area of the manuals
//! (SDM Vol. 3B, "64 Bit Format of the DS Save Area").

use core::mem::offset_of;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// What every version of the area begins with. All are linear addresses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SaveArea {
    /// Where the records of branches begin.
    pub bts_buffer_base: u64,
    /// Where the next one goes.
    pub bts_index: u64,
    /// Behind the last one.
    pub bts_absolute_maximum: u64,
    /// An interrupt when the index comes here.
    pub bts_interrupt_threshold: u64,
    /// Where the records of events begin.
    pub pebs_buffer_base: u64,
    /// Where the next one goes. The kernel reads it, to stamp its own events.
    pub pebs_index: u64,
    /// Behind the last one.
    pub pebs_absolute_maximum: u64,
    /// An interrupt when the index comes here.
    pub pebs_interrupt_threshold: u64,
}

/// Where the words of the area are, counted in words: the same in every version of Windows, and for the processor.
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
    /// What general counter 0 is loaded with after a record; those of the others follow.
    pub const PEBS_COUNTER_RESET: u8 = 8;
}

/// PROCESSOR_PROFILE_CONTROL_AREA of versions 6.2 to 1809: 0x60 bytes (seed 004).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ControlAreaV62 {
    /// The buffers.
    pub save_area: SaveArea,
    /// PebsCounterReset0 to 3: what a general counter is loaded with after a record.
    pub pebs_counter_reset: [u64; 4],
}

/// PROCESSOR_PROFILE_CONTROL_AREA since version 1903: 0xA0 bytes, in its 64-bit form (public symbols of the kernel).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ControlArea1903 {
    /// The buffers.
    pub save_area: SaveArea,
    /// PebsGpCounterReset: of general counters.
    pub pebs_gp_counter_reset: [u64; 8],
    /// PebsFixedCounterReset: of fixed counters.
    pub pebs_fixed_counter_reset: [u64; 4],
}

/// One of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// [`ControlAreaV62`].
    V62,
    /// [`ControlArea1903`].
    V1903,
}

impl Layout {
    /// The build number of Windows 8, which had the first of them: version 6.2.
    const FIRST: u32 = 9_200;
    /// That of version 1903, which has the other.
    const LARGER: u32 = 18_362;

    /// That of the Windows with this build number; none before version 6.2.
    #[must_use]
    pub const fn of_build(build: u32) -> Option<Self> {
        match build {
            ..Self::FIRST => None,
            Self::FIRST..Self::LARGER => Some(Self::V62),
            Self::LARGER.. => Some(Self::V1903),
        }
    }

    /// Bytes.
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            Self::V62 => size_of::<ControlAreaV62>(),
            Self::V1903 => size_of::<ControlArea1903>(),
        }
    }

    /// General counters for which there is a place to reset them from.
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
    fn every_field_is_where_the_seed_has_it() {
        for (word, seed) in [
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
            assert_eq!(u32::from(word) * 8, seed);
        }
        for (offset, seed) in [
            (offset_of!(SaveArea, bts_buffer_base), 0x00),
            (offset_of!(SaveArea, bts_index), 0x08),
            (offset_of!(SaveArea, bts_absolute_maximum), 0x10),
            (offset_of!(SaveArea, bts_interrupt_threshold), 0x18),
            (offset_of!(SaveArea, pebs_buffer_base), 0x20),
            (offset_of!(SaveArea, pebs_index), 0x28),
            (offset_of!(SaveArea, pebs_absolute_maximum), 0x30),
            (offset_of!(SaveArea, pebs_interrupt_threshold), 0x38),
        ] {
            assert_eq!(offset, seed);
        }
        for (number, value) in (0_u64..).zip(0x40_u64..).take(4) {
            let mut area = ControlAreaV62::default();
            area.pebs_counter_reset[usize::try_from(number).unwrap()] = value;
            let at = 0x40 + 8 * usize::try_from(number).unwrap();
            assert_eq!(area.as_bytes()[at..at + 8], value.to_le_bytes(), "PebsCounterReset{number}");
        }
    }

    #[test]
    fn the_release_of_windows_says_which_layout_it_has() {
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
