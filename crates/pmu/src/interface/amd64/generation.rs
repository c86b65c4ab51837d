//! Processor generations by their events. Each family has its own event numbers (APM Vol. 2, 13.2.1): the HAL's table
//! has those of the K8. Later families lack some of them, and Zen processors lack most.

use x86_defs::cpuid::{AmdProcessor, Signature, leaf};

use super::packed;
use crate::constraints::{Table, tables};
use crate::cpu::Cpuid;
use crate::source::Sources;

/// Processors that share a table of sources; none if the model is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Generation(Option<AmdProcessor>);

impl Generation {
    /// Zen 3.
    pub const ZEN_3: Self = Self(Some(AmdProcessor::Zen3));

    /// Returns the generation of the current processor, which must have long mode.
    pub fn of(cpu: &impl Cpuid) -> Self {
        Self(AmdProcessor::of(Signature::from_bits(cpu.cpuid(leaf::EXTENDED_FEATURES, 0).eax)))
    }

    /// Returns whether the model is known.
    pub const fn is_known(self) -> bool {
        self.0.is_some()
    }

    /// Returns whether EventSelect\[11:8\] exists: since family 10h (BKDG for family 10h, "Performance Event-Select
    /// Register").
    pub const fn has_wide_events(self) -> bool {
        !matches!(self.0, Some(AmdProcessor::K8))
    }

    /// Returns the counters of each event, or `None` if all counters are alike.
    pub const fn constraints(self) -> Option<&'static Table> {
        match self.0 {
            Some(AmdProcessor::Family15) => Some(&tables::BULLDOZER),
            _ => None,
        }
    }

    /// Returns the table of sources.
    pub const fn sources(self) -> Sources {
        use AmdProcessor as P;
        let column = match self.0 {
            Some(P::K8) => packed::K8,
            Some(P::Family10) => packed::FAMILY_10,
            Some(P::Family11) => packed::FAMILY_11,
            Some(P::Family12) => packed::FAMILY_12,
            Some(P::Family14) => packed::FAMILY_14,
            Some(P::Family15) => packed::FAMILY_15,
            Some(P::Family16) => packed::FAMILY_16,
            Some(P::Zen) => packed::ZEN,
            Some(P::Milan | P::Zen3) => packed::ZEN3,
            Some(P::Zen4) => packed::ZEN4,
            Some(P::Zen5) => packed::ZEN5,
            Some(P::Zen6) => packed::ZEN6,
            None => packed::UNKNOWN,
        };
        Sources::of_column(column)
    }
}
