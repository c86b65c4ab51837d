//! Processor generations by their events. Each family has its own event numbers (APM Vol. 2, 13.2.1): the HAL's table
//! has those of the K8, most of which Zen processors lack.

use bitfield_struct::bitfield;

use super::{SOURCES, zen};
use crate::cpu::Cpu;
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

/// CPUID.80000001H, EAX: AMD Family, Model, Stepping (APM Vol. 3, E.4.2). Leaf 1 has the same, but hypervisors change it.
#[bitfield(u32)]
struct Signature {
    #[bits(8)]
    __: u8,
    #[bits(4)]
    base_family: u8,
    #[bits(8)]
    __: u8,
    extended_family: u8,
    #[bits(4)]
    __: u8,
}

impl Generation {
    /// Returns the generation of the current processor, which must have long mode.
    pub fn of(cpu: &impl Cpu, version_2: bool) -> Self {
        let signature = Signature::from_bits(cpu.cpuid(0x8000_0001, 0).eax);
        // The extended family is only added to the highest base family (same source).
        let extended = if signature.base_family() == 0xF { signature.extended_family() } else { 0 };
        match u16::from(signature.base_family()).wrapping_add(extended.into()) {
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
