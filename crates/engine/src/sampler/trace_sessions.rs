//! Whether trace sessions want events, and the events of a processor for its DPC.

use core::sync::atomic::Ordering;

use pmu::{Cpu, CurrentCpu};

use super::Sampler;
use super::per_cpu::PerCpuSampling;
use super::tracing::TraceEvent;

impl Sampler {
    /// Sets whether events for Event Tracing for Windows are wanted. Each processor takes it over when a session begins
    /// to sample there, and at its next tick.
    ///
    /// # IRQL
    /// Any.
    pub fn set_wants_events(&self, wanted: bool) {
        self.wants_events.store(wanted, Ordering::Relaxed);
    }

    /// Takes over whether events are wanted.
    pub(super) fn follow_trace_sessions(&self, per_cpu: &PerCpuSampling) {
        per_cpu.set_wants_events(self.wants_events.load(Ordering::Relaxed));
    }

    /// Takes an event of the current processor that was not written yet. The caller writes it below PROFILE_LEVEL, and
    /// asks for the next one.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    // Never inlined: in the loop of its caller, the event would be moved from register to register.
    #[inline(never)]
    pub fn take_event(&self, current: CurrentCpu<'_, impl Cpu>) -> Option<TraceEvent<'static>> {
        self.per_cpu(current.index())?.with_events(|events| events.take(current.index().number())).flatten()
    }
}
