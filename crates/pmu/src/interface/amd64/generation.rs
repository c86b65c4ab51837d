//! Processor generations by their events. Each family has its own event numbers (APM Vol. 2, 13.2.1): the HAL's table
//! has those of the K8. Later families lack some of them, and Zen processors lack most.

use x86_defs::cpuid::{AmdProcessor, Signature, leaf};

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
    pub fn of(cpu: &impl Cpuid) -> Self {
        let signature = Signature::from_bits(cpu.cpuid(leaf::EXTENDED_FEATURES, 0).eax);
        match AmdProcessor::of(signature) {
            Some(AmdProcessor::K8) => Self::K8,
            Some(AmdProcessor::Family10) => Self::Family10,
            Some(AmdProcessor::Family11) => Self::Family11,
            Some(AmdProcessor::Family12) => Self::Family12,
            Some(AmdProcessor::Family14) => Self::Family14,
            Some(AmdProcessor::Family15) => Self::Family15,
            Some(AmdProcessor::Family16) => Self::Family16,
            Some(AmdProcessor::Zen) => Self::Zen,
            Some(AmdProcessor::Milan | AmdProcessor::Zen3) => Self::Zen3,
            Some(AmdProcessor::Zen4) => Self::Zen4,
            Some(AmdProcessor::Zen5) => Self::Zen5,
            Some(AmdProcessor::Zen6) => Self::Zen6,
            None => Self::Unknown,
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
