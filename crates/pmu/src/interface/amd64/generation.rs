//! Processor generations by their events. Each family has its own event numbers (APM Vol. 2, 13.2.1). The HAL's table
//! has the events of the K8, and Zen processors lack most of them.

use x86_defs::cpuid::{Signature, leaf};

use super::{SOURCES, zen};
use crate::cpu::Cpuid;
use crate::source::ProfileSource;

/// Families that share a table of sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generation {
    /// Families before 10h: the events of the HAL's table.
    K8,
    /// Families 10h to 16h: the same events, and more that the HAL's table does not have.
    K10,
    /// Family 17h: Zen, Zen+ and Zen 2.
    Zen,
    /// Family 19h: Zen 3, and Zen 4 under a hypervisor that hides PerfMonV2.
    Zen3,
    /// Family 19h with PerfMonV2: Zen 4.
    Zen4,
    /// Family 1Ah, Zen 5; and later families until they have a table.
    Zen5,
}

impl Generation {
    /// Returns the generation of the current processor, which must have long mode.
    pub fn of(cpu: &impl Cpuid, version_2: bool) -> Self {
        // The extended family is only added to the highest base family (same source).
        let signature = Signature::from_bits(cpu.cpuid(leaf::EXTENDED_FEATURES, 0).eax);
        match signature.family() {
            ..=0xF => Self::K8,
            0x10..=0x16 => Self::K10,
            0x17 | 0x18 => Self::Zen,
            0x19 if version_2 => Self::Zen4,
            0x19 => Self::Zen3,
            0x1A.. => Self::Zen5,
        }
    }

    /// Returns whether EventSelect\[11:8\] exists: since family 10h (BKDG for family 10h, "Performance Event-Select
    /// Register").
    pub const fn has_wide_events(self) -> bool {
        !matches!(self, Self::K8)
    }

    /// Returns the table of sources.
    pub const fn sources(self) -> &'static [ProfileSource] {
        match self {
            Self::K8 | Self::K10 => &SOURCES,
            Self::Zen => &zen::ZEN,
            Self::Zen3 => &zen::ZEN3,
            Self::Zen4 => &zen::ZEN4,
            Self::Zen5 => &zen::ZEN5,
        }
    }
}
