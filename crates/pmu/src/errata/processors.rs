//! Sets of processors, by CPUID.

use core::ops::RangeInclusive;

use x86_defs::cpuid::Signature;

/// Every stepping of a model.
pub const EVERY_STEPPING: RangeInclusive<u8> = 0..=0xF;

/// Intel's processors of family 6 with these models and steppings.
#[derive(Debug)]
pub struct Family6 {
    pub models: &'static [u8],
    pub steppings: RangeInclusive<u8>,
}

impl Family6 {
    /// Every stepping of these models.
    pub const fn of(models: &'static [u8]) -> Self {
        Self { models, steppings: EVERY_STEPPING }
    }

    /// Returns whether the set has the processor.
    pub fn has(&self, signature: Signature) -> bool {
        signature.family() == 6
            && self.models.contains(&signature.model())
            && self.steppings.contains(&signature.stepping())
    }
}
