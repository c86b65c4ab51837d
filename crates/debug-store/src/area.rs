//! The control area that Windows gives a processor, PROCESSOR_PROFILE_CONTROL_AREA: which layout it has (HAL control
//! area).

use x86_defs::intel::debug_store::area::{ControlArea1903, ControlAreaV62};

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
}

#[cfg(test)]
mod tests {
    use super::*;

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
