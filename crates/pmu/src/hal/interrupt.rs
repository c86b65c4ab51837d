//! The performance monitor interrupt, and what else needs the overflow status or freezes the counters.

use super::{Hal, OverflowStatus};
use crate::cpu::Cpu;
use crate::current_cpu::{CurrentCpu, ProcessorIndex};
use crate::interface::ProfileInterface;
use crate::lvt_pmi;
use crate::per_cpu::PerCpu;
use crate::state::CounterSet;

impl<E> Hal<E> {
    /// Serves a performance monitor interrupt of the current processor: CheckOverflowStatus, then a load of every
    /// counter that overflowed, which it returns. Touches nothing while no handler is registered or the processor is
    /// [asleep](Self::is_asleep). Nothing allocates, locks or waits.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    #[inline]
    pub fn interrupt(&self, current: CurrentCpu<'_, impl Cpu>) -> OverflowStatus {
        match self.per_cpu(current.index()) {
            Some(per_cpu) if self.handler.get().is_some() => self.serve::<true>(current, per_cpu),
            _ => OverflowStatus(CounterSet::NONE),
        }
    }

    /// As [`interrupt`](Self::interrupt), for the registered handler, which has found what the current processor owns.
    /// An interrupt that is late, after the handler was removed, is served too while a counter is active. Compiled for
    /// the common interrupt and again for all else.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    #[inline]
    pub fn serve<const SPECIAL: bool>(&self, current: CurrentCpu<'_, impl Cpu>, per_cpu: &PerCpu<E>) -> OverflowStatus {
        let pmu = &per_cpu.pmu;
        let active = pmu.active();
        if active.all.is_empty() {
            // While a processor is asleep none of its counters is active.
            if self.handler.get().is_some() && !pmu.is_asleep() {
                self.acknowledge(current);
                lvt_pmi::unmask(current.cpu());
            }
            return OverflowStatus(CounterSet::NONE);
        }
        OverflowStatus(self.boot.interface.serve::<SPECIAL>(current.cpu(), pmu, active.interrupting))
    }

    /// Clears the overflows of the driver's counters in the status register of the current processor, if the processor
    /// is [initialized](Self::is_initialized) and awake.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    #[cold]
    #[inline(never)]
    pub fn acknowledge(&self, current: CurrentCpu<'_, impl Cpu>) {
        if let Some(pmu) = self.pmu(current.index())
            && pmu.is_initialized()
            && !pmu.is_asleep()
        {
            self.whole_interface_with(pmu).acknowledge(current.cpu());
        }
    }

    /// Stops all interrupts on the current processor: `counters`, which were stopped, lose their interrupt bits, the
    /// status is cleared, and the entry of the local vector table is masked. The next [`start`](Self::start) sets a
    /// counter up again, but does not unmask the entry. Does nothing on a processor that sleeps.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    #[inline(never)] // its stack is not in use while its caller stops counters
    pub fn silence(&self, current: CurrentCpu<'_, impl Cpu>, counters: CounterSet) {
        let Some(cpu_counters) = self.find(current.index()).filter(|found| !found.pmu.is_asleep()) else { return };
        if cpu_counters.pmu.is_initialized() {
            self.interface_with(cpu_counters.pmu).disarm(current.cpu(), cpu_counters, counters);
        }
        self.acknowledge(current);
        lvt_pmi::mask(current.cpu());
    }

    /// Freezes all counters of the current processor until [`unfreeze`](Self::unfreeze), if one register freezes them
    /// all. On a processor that is asleep no counter runs.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn freeze(&self, current: CurrentCpu<'_, impl Cpu>) {
        if let Some(cpu_counters) = self.find(current.index()) {
            self.interface_with(cpu_counters.pmu).freeze(current.cpu(), cpu_counters);
        }
    }

    /// Lets the counters of the current processor run again after [`freeze`](Self::freeze), without those that were
    /// stopped in between.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn unfreeze(&self, current: CurrentCpu<'_, impl Cpu>) {
        if let Some(cpu_counters) = self.find(current.index()) {
            self.interface_with(cpu_counters.pmu).unfreeze(current.cpu(), cpu_counters);
        }
    }

    /// Accounts one record of a precise counter of `processor`, the current one. The processor wrote it at the overflow
    /// or [after it](crate::Interface::events_to_record), and loaded the counter with `initial`. Returns the interval
    /// that `initial` stands for. The counters are [frozen](Self::freeze), or do not run.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    // Never inlined: it would cost the deepest path of the handler more stack.
    #[inline(never)]
    pub fn count_pebs_record(&self, processor: ProcessorIndex, counter: u8, initial: u64) -> u32 {
        if let Some(cpu_counters) = self.find(processor)
            && let Some(total) = cpu_counters.total(counter)
        {
            let interface = self.interface_with(cpu_counters.pmu);
            let missing_bits = 64_u8.saturating_sub(interface.width_of(counter));
            total.recorded(interface.events_to_record(counter), initial, missing_bits);
        }
        (initial.wrapping_neg() & 0xFFFF_FFFF) as u32
    }

    /// CheckOverflowStatus alone: returns the active counters with an interval that have overflowed. On a processor
    /// that is asleep or not [initialized](Self::is_initialized) there is none.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    #[inline(never)]
    pub fn check_overflow(&self, current: CurrentCpu<'_, impl Cpu>) -> OverflowStatus {
        let overflowed = self
            .pmu(current.index())
            .filter(|pmu| !pmu.is_asleep() && pmu.is_initialized())
            .map(|pmu| self.whole_interface_with(pmu).check_overflow(current.cpu(), pmu.active()));
        OverflowStatus(overflowed.unwrap_or_default())
    }
}
