//! Sets of processors, by CPUID.

use core::ops::RangeInclusive;

use x86_defs::cpuid::{IntelProcessor, Signature};

/// Every stepping of a processor.
pub const EVERY_STEPPING: RangeInclusive<u8> = 0..=0xF;

/// Some of Intel's processors, with these steppings.
#[derive(Debug)]
pub struct IntelProcessors {
    pub processors: &'static [IntelProcessor],
    pub steppings: RangeInclusive<u8>,
}

impl IntelProcessors {
    /// Every stepping of these processors.
    pub const fn of(processors: &'static [IntelProcessor]) -> Self {
        Self { processors, steppings: EVERY_STEPPING }
    }

    /// Returns whether the set has the processor.
    pub fn has(&self, signature: Signature) -> bool {
        IntelProcessor::of(signature).is_some_and(|processor| self.processors.contains(&processor))
            && self.steppings.contains(&signature.stepping())
    }
}
