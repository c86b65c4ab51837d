//! The ops that are sampled in the interrupts of a counter, instead of what these interrupted.

use pmu::ibs::Op;
use pmu::state::CounterSet;
use pmu::{Cpu, CurrentCpu};
use protocol::CounterSample;

use super::Sampler;
use super::ibs_unit::IbsUnit;
use super::per_cpu::PerCpuSampling;
use super::sample_stats::SampleStats;
use super::subscriptions::Subscribers;
use crate::boxed::Boxed;
use crate::time::Ticks;

impl Sampler {
    /// Begins to sample ops on the current processor. The counter may count already, for another session; otherwise its
    /// start begins it.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub(crate) fn install_ibs_unit(&self, current: CurrentCpu<'_, impl Cpu>, unit: Boxed<IbsUnit>) {
        let Some(per_cpu) = self.per_cpu(current.index()) else { return core::mem::forget(unit) };
        per_cpu.put_ibs_unit(unit);
        if !self.hal.is_asleep(current.index()) {
            let counting = self.hal.cpu_counters(current.index()).counters(|state| state.active());
            self.start_ibs(current, per_cpu, counting);
        }
    }

    /// Ends the sampling, with the control register as it was found. The counter may go on for another session.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub(crate) fn uninstall_ibs_unit(&self, current: CurrentCpu<'_, impl Cpu>) -> Option<Boxed<IbsUnit>> {
        let mut unit = self.per_cpu(current.index())?.take_ibs_unit()?;
        unit.stop(current.cpu());
        Some(unit)
    }

    /// Begins to sample ops if their counter is among `counters`, which count or are about to.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub(super) fn start_ibs(&self, current: CurrentCpu<'_, impl Cpu>, per_cpu: &PerCpuSampling, counters: CounterSet) {
        per_cpu.with_ibs_unit(|unit| {
            if counters.has(unit.counter()) {
                let interval = self.hal.cpu_counters(current.index()).get(unit.counter()).interval();
                unit.start(current.cpu(), interval);
            }
        });
    }

    /// Ends the sampling of ops until the next start if their counter is among `counters`, which are about to stop.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub(super) fn stop_ibs(current: CurrentCpu<'_, impl Cpu>, per_cpu: &PerCpuSampling, counters: CounterSet) {
        per_cpu.with_ibs_unit(|unit| {
            if counters.has(unit.counter()) {
                unit.stop(current.cpu());
            }
        });
    }

    /// Delivers the op that was sampled before an overflow of its counter to the session that samples ops. Returns the
    /// other ones of `subscribers`, those that get the sample of the overflow.
    #[cold]
    #[inline(never)]
    pub(super) fn deliver_ibs(
        &self,
        current: CurrentCpu<'_, impl Cpu>,
        per_cpu: &PerCpuSampling,
        subscribers: Subscribers,
        sample: &CounterSample,
        counter: u8,
    ) -> Subscribers {
        let interval = self.hal.cpu_counters(current.index()).get(counter).interval();
        let look = |unit: &mut IbsUnit| (unit.counter() == counter).then(|| unit.look(current.cpu(), interval));
        match per_cpu.with_ibs_unit(look).flatten() {
            Some(op) => push_ibs(per_cpu, op, subscribers, sample, counter),
            None => subscribers,
        }
    }

    /// Compares the control register with what was written. What another program changed disturbs the counters that
    /// are sampled.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    #[cold]
    #[inline(never)]
    pub(super) fn compare_ibs(&self, current: CurrentCpu<'_, impl Cpu>, per_cpu: &PerCpuSampling, now: Ticks) {
        let disturbance = per_cpu.with_ibs_unit(|unit| unit.compare(current.cpu()));
        if let Some(disturbance) = disturbance.flatten() {
            self.hal.disturb(current, disturbance, now.0);
        }
    }
}

/// Delivers what a look has found.
#[inline(never)] // it is generic over nothing, so that it is compiled for size
fn push_ibs(
    per_cpu: &PerCpuSampling,
    op: Option<Op>,
    subscribers: Subscribers,
    sample: &CounterSample,
    counter: u8,
) -> Subscribers {
    let recorded = per_cpu.with_ibs_unit(|unit| (unit.subscriber(), unit.record(op, sample)));
    let Some((subscriber, records)) = recorded.filter(|(subscriber, _)| subscribers.has(*subscriber)) else {
        return subscribers;
    };
    let own = Subscribers::default().with(subscriber);
    match records {
        Some((precise, access)) => {
            per_cpu.deliver_rare(own, counter, &precise.into());
            if access.is_some_and(|access| per_cpu.push_to(own, &access.into())) {
                per_cpu.note_watermark_hit();
            }
        }
        None => {
            per_cpu.with(subscriber, |producer| producer.side().of(counter).map(SampleStats::leave_out));
        }
    }
    subscribers.without(subscriber)
}
