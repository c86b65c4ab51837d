//! The entry of the local vector table of a processor: unmasked while it is the HAL's, and left alone otherwise.

use pmu::{Cpu, CurrentCpu, lvt_pmi};
use protocol::{PauseKind, StopKind};

use super::per_cpu::PerCpuSampling;
use super::{Sampler, paused, stopped};
use crate::time::Ticks;

impl Sampler {
    /// Unmasks the entry of the local vector table of the current processor, on which counters interrupt. If the entry
    /// is not the HAL's, it is left alone, and every session that needs the interrupt gets a record of that; and
    /// another one once the entry is the HAL's again. Returns whether a ring has become half full.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub(super) fn connect(current: CurrentCpu<'_, impl Cpu>, per_cpu: &PerCpuSampling, now: Ticks) -> bool {
        if lvt_pmi::enable(current.cpu()).is_err() {
            per_cpu.disconnection.note(per_cpu.interrupt_subscribers(), now);
            let record = stopped(StopKind::Disconnected, current.index(), now);
            return per_cpu.push_untold(per_cpu.disconnection.untold(), &record);
        }
        per_cpu.disconnection.end().is_some_and(|(concerned, since)| {
            let record = paused(PauseKind::Reconnected, current.index(), now, now.since(since));
            per_cpu.push_to(concerned, &record)
        })
    }

    /// Returns whether counters of the driver or the Debug Store interrupt on the current processor.
    pub(super) fn is_interrupting(&self, current: CurrentCpu<'_, impl Cpu>, per_cpu: &PerCpuSampling) -> bool {
        per_cpu.has_ds_buffers() || !self.hal.cpu_counters(current.index()).active.interrupting.is_empty()
    }
}
