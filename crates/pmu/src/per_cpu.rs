//! What one processor owns, in one place, as Linux's `cpu_hw_events`.

use crate::state::{PerCpuPmu, StartedCounter};

/// What one processor owns, on cache lines of its own: the PMU state of the HAL functions, and an extension for the
/// code above them. Only the 8 bytes of [state](crate::state) per counter have an allocation of their own, which the
/// HAL's design asks for.
#[derive(Debug)]
#[repr(align(64))]
pub struct PerCpu<E> {
    pub(crate) pmu: PerCpuPmu,
    extension: E,
}

impl<E: Default> Default for PerCpu<E> {
    #[inline]
    fn default() -> Self {
        // A constant, so that it is not built on the stack beside its place.
        Self { pmu: const { PerCpuPmu::new() }, extension: E::default() }
    }
}

impl<E> PerCpu<E> {
    /// Returns the interval with which an interrupt loads a counter: that of its last overflow, until the interval is
    /// changed.
    #[must_use]
    #[inline]
    pub fn interval(&self, counter: u8) -> u32 {
        self.pmu.started(counter).map_or(0, StartedCounter::interval)
    }

    /// Returns the state that the caller of the HAL functions keeps for the processor.
    #[inline]
    pub const fn extension(&self) -> &E {
        &self.extension
    }
}
