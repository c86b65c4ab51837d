//! What a processor samples by IBS, as a number for replies.

use crate::cpu::Cpuid;
use crate::ibs::{Counted, MissingFeature, examine};

/// Position of one more than the number of the missing feature.
const LACKING: u32 = 8;

const COUNTED: [Counted; 3] = [Counted::Cycles, Counted::Ops, Counted::Fetches];

/// What a processor samples, by its CPUID alone: the registers can lack more, which a session finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary(u32);

impl Summary {
    /// Examines the current processor.
    ///
    /// # IRQL
    /// Any at which the thread stays on its processor.
    pub fn of(cpu: &impl Cpuid) -> Self {
        let bit = |counted: &Counted| 1 << *counted as u32;
        Self(match examine(cpu) {
            Ok(unit) => COUNTED.iter().filter(|counted| unit.counts(**counted)).map(bit).sum(),
            Err(lacking) => (lacking as u32 + 1) << LACKING,
        })
    }

    /// Returns its number: bit 0 for cycles, 1 for ops, 2 for fetches; one more than the number of a missing feature in
    /// the bits from 8 on.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// Returns the summary with this number.
    #[must_use]
    pub const fn from_number(number: u32) -> Self {
        Self(number)
    }

    /// Checks that an op or a fetch is sampled after so many events of `select`, an event select of a counter.
    ///
    /// # Errors
    /// What is missing.
    pub fn samples(self, select: u64) -> Result<(), MissingFeature> {
        let Self(number) = self;
        if let Some(lacking) = (number >> LACKING).checked_sub(1) {
            return Err(MissingFeature::from_number(lacking.into()).unwrap_or(MissingFeature::NoUnit));
        }
        let counted = Counted::of(select, false).ok_or(MissingFeature::OtherEvent)?;
        if number & 1 << counted as u32 == 0 { Err(counted.lacking()) } else { Ok(()) }
    }
}
