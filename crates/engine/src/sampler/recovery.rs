//! Recovery from lost interrupts and from interrupt storms.

use pmu::state::{CounterSet, CounterState};
use pmu::{Cpu, CurrentCpu, ProcessorIndex, lvt_pmi};
use protocol::StopKind;

use super::per_cpu::PerCpuSampling;
use super::tracing::Unsampled;
use super::{Sampler, stopped};
use crate::time::Ticks;

impl Sampler {
    /// Serves counters of the current processor whose interrupts were lost, and
    /// [unmasks](Self::connect) the entry of the local vector table. Called in each tick. Returns whether a ring has
    /// become half full.
    ///
    /// A pending interrupt and a lost one look the same. Therefore the first tick that finds an overflow only unmasks
    /// the entry. If the counter is still unserved at the next tick, and no interrupt came in between, it is loaded
    /// again. The place of that overflow is unknown, so that its sample is lost. Sampling stalls for two ticks at most.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub(super) fn recover(&self, current: CurrentCpu<'_, impl Cpu>, per_cpu: &PerCpuSampling, now: Ticks) -> bool {
        per_cpu.storm.next_window();
        if per_cpu.is_silenced() || self.hal.is_asleep(current.index()) || !self.is_interrupting(current, per_cpu) {
            return false; // nothing of ours interrupts, so the entry is left alone
        }
        if !per_cpu.note_waiting(self.hal.check_overflow(current).0).is_empty() {
            self.serve_lost(current, per_cpu);
        }
        Self::connect(current, per_cpu, now)
    }

    /// Loads every counter that overflowed again, and counts the samples as lost.
    #[cold]
    fn serve_lost(&self, current: CurrentCpu<'_, impl Cpu>, per_cpu: &PerCpuSampling) {
        let overflowed = self.hal.interrupt(current).0;
        for (counter, subscriptions) in per_cpu.subscriptions_of(overflowed) {
            subscriptions.reloaded(self.hal.cpu_counters(current.index()).get(counter).interval());
        }
        per_cpu.count_overflows(overflowed, Unsampled::Lost);
        self.begin_windows(current, overflowed);
        Self::record_on(current, per_cpu);
    }

    /// Counts an interrupt of the current processor that found no overflow of the driver's counters. Too many of them
    /// in a row silence the processor. Returns whether a ring has become half full.
    #[cold]
    #[inline(never)]
    pub(super) fn note_spurious(
        &self,
        current: CurrentCpu<'_, impl Cpu>,
        per_cpu: &PerCpuSampling,
        now: Ticks,
    ) -> bool {
        per_cpu.count_spurious() && self.silence(current, per_cpu, now)
    }

    /// Stops every sampling counter of the current processor, and masks the entry of the local vector table, until
    /// [`rouse`](Self::rouse). Returns whether a ring has become half full.
    #[cold]
    fn silence(&self, current: CurrentCpu<'_, impl Cpu>, per_cpu: &PerCpuSampling, now: Ticks) -> bool {
        let cpu_counters = self.hal.cpu_counters(current.index());
        self.compare(current, now);
        let late = self.stop(current, per_cpu, cpu_counters.counters(CounterState::is_sampling), now);
        self.pause_branches(current, per_cpu, true, now);
        per_cpu.count_overflows(late, Unsampled::Lost);
        // Throttled counters as well: the next tick must not resume them.
        let all = cpu_counters.counters(CounterState::interrupt);
        self.hal.silence(current, all);
        per_cpu.throttle.forget(all);
        per_cpu.throttle.forget_branches();
        per_cpu.silence();
        per_cpu.push_silenced(&stopped(StopKind::Silenced, current.index(), now))
    }

    /// Counts an interrupt of a silenced processor, and masks the entry again. The interrupt was pending, or came
    /// because the HAL unmasked the entry.
    pub(super) fn keep_silent(&self, current: CurrentCpu<'_, impl Cpu>, per_cpu: &PerCpuSampling) {
        let _ = per_cpu.count_spurious();
        self.hal.silence(current, CounterSet::NONE);
        Self::record_on(current, per_cpu);
    }

    /// Ends the silence of the current processor, because a session starts to sample there. Returns the counters that
    /// were stopped, which the caller starts again.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn rouse(&self, current: CurrentCpu<'_, impl Cpu>, now: Ticks) -> CounterSet {
        let Some(per_cpu) = self.per_cpu(current.index()).filter(|_| self.end_silence(current)) else {
            return CounterSet::NONE;
        };
        self.pause_branches(current, per_cpu, false, now);
        self.hal.cpu_counters(current.index()).counters(|state| state.interrupt() && !state.active())
    }

    /// Returns the processors that are silenced.
    ///
    /// # IRQL
    /// Any.
    pub fn silenced(&self) -> impl Iterator<Item = ProcessorIndex> {
        let numbered = (0..).map(ProcessorIndex::new).zip(self.each_cpu());
        numbered.filter(|(_, per_cpu)| per_cpu.is_silenced()).map(|(processor, _)| processor)
    }

    /// Unmasks the entry of the local vector table of the current processor, if it is silenced. On a processor that
    /// sleeps, the HAL sets the entry up before the processor wakes. Returns whether it was silenced.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn end_silence(&self, current: CurrentCpu<'_, impl Cpu>) -> bool {
        let Some(per_cpu) = self.per_cpu(current.index()).filter(|per_cpu| per_cpu.is_silenced()) else {
            return false;
        };
        per_cpu.end_silence();
        if !self.hal.is_asleep(current.index()) {
            lvt_pmi::unmask(current.cpu()); // one that is not the HAL's is reported by the next tick
        }
        true
    }
}
