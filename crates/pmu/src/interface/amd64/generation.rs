//! Processor generations by their events. Each family has its own event numbers (APM Vol. 2, 13.2.1): the HAL's table
//! has those of the K8. Later families lack some of them, and Zen processors lack most.

use x86_defs::cpuid::{Signature, leaf};

use super::{SOURCES, families, zen};
use crate::constraints::{Table, tables};
use crate::cpu::Cpuid;
use crate::source::Sources;

/// Processors that share a table of sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generation {
    /// Families before 10h: the events of the HAL's table.
    K8,
    /// Family 10h: K10.
    Family10,
    /// Family 11h: Griffin.
    Family11,
    /// Family 12h: Llano.
    Family12,
    /// Family 14h: Bobcat.
    Family14,
    /// Family 15h: Bulldozer to Excavator.
    Family15,
    /// Family 16h: Jaguar and Puma.
    Family16,
    /// Family 17h: Zen, Zen+ and Zen 2; family 18h: Hygon's Zen.
    Zen,
    /// Family 19h: Zen 3.
    Zen3,
    /// Family 19h: Zen 4.
    Zen4,
    /// Family 1Ah: Zen 5.
    Zen5,
    /// Family 1Ah: Zen 6.
    Zen6,
    /// A later family, or a model that belongs to no known generation.
    Unknown,
}

impl Generation {
    /// Returns the generation of the current processor, which must have long mode.
    ///
    /// # References
    /// Linux, arch/x86/kernel/cpu/amd.c, `bsp_init_amd`: the models of families 19h and 1Ah.
    pub fn of(cpu: &impl Cpuid) -> Self {
        let signature = Signature::from_bits(cpu.cpuid(leaf::EXTENDED_FEATURES, 0).eax);
        match (signature.family(), signature.model()) {
            (..=0xF, _) => Self::K8,
            // No processor of family 13h exists.
            (0x10 | 0x13, _) => Self::Family10,
            (0x11, _) => Self::Family11,
            (0x12, _) => Self::Family12,
            (0x14, _) => Self::Family14,
            (0x15, _) => Self::Family15,
            (0x16, _) => Self::Family16,
            (0x17 | 0x18, _) => Self::Zen,
            (0x19, 0x00..=0x0F | 0x20..=0x5F) => Self::Zen3,
            (0x19, 0x10..=0x1F | 0x60..=0xAF) => Self::Zen4,
            (0x1A, 0x00..=0x2F | 0x40..=0x4F | 0x60..=0x7F) => Self::Zen5,
            (0x1A, 0x50..=0x5F | 0x80..=0xAF | 0xC0..=0xEF) => Self::Zen6,
            _ => Self::Unknown,
        }
    }

    /// Returns whether EventSelect\[11:8\] exists: since family 10h (BKDG for family 10h, "Performance Event-Select
    /// Register").
    pub const fn has_wide_events(self) -> bool {
        !matches!(self, Self::K8)
    }

    /// Returns the counters of each event, or `None` if all counters are alike.
    pub const fn constraints(self) -> Option<&'static Table> {
        match self {
            Self::Family15 => Some(&tables::BULLDOZER),
            _ => None,
        }
    }

    /// Returns the table of sources.
    pub const fn sources(self) -> Sources {
        match self {
            Self::K8 => Sources::new(&SOURCES),
            Self::Family10 => Sources::with_selects(&SOURCES, &families::FAMILY_10),
            Self::Family11 => Sources::with_selects(&SOURCES, &families::FAMILY_11),
            Self::Family12 => Sources::with_selects(&SOURCES, &families::FAMILY_12),
            Self::Family14 => Sources::with_selects(&SOURCES, &families::FAMILY_14),
            Self::Family15 => Sources::with_selects(&SOURCES, &families::FAMILY_15),
            Self::Family16 => Sources::with_selects(&SOURCES, &families::FAMILY_16),
            Self::Zen => Sources::with_selects(&zen::ENTRIES, &zen::ZEN),
            Self::Zen3 => Sources::with_selects(&zen::ENTRIES, &zen::ZEN3),
            Self::Zen4 => Sources::with_selects(&zen::ENTRIES, &zen::ZEN4),
            Self::Zen5 => Sources::with_selects(&zen::ENTRIES, &zen::ZEN5),
            Self::Zen6 => Sources::with_selects(&zen::ENTRIES, &zen::ZEN6),
            Self::Unknown => Sources::with_selects(&zen::ENTRIES, &zen::UNKNOWN),
        }
    }
}
