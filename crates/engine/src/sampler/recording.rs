//! Delivery of what the processor itself records, precise records and branches, to the subscribers.

use debug_store::pebs::{Part, PebsRecord};
use pmu::interface::emon::{Microarchitecture, RecordedOperation};
use pmu::state::CounterSet;
use pmu::{Cpu, CurrentCpu, ProcessorIndex};
use protocol::{
    AccessEncoding, AccessKind, AccessOperation, AccessRecord, BranchKind, BranchRecord, BranchType, Mode, PreciseKind,
    PreciseSample, Prediction, UNKNOWN,
};
use x86_defs::intel::debug_store::bts::BtsRecord;

use super::ds_buffers::{DsBuffers, FetchedRecord};
use super::per_cpu::PerCpuSampling;
use super::sample_stats::BRANCH_STATS;
use super::subscriptions::Subscriber;
use super::tracing::Unsampled;
use super::{Hal, Interrupted, Sampler};
use crate::boxed::Boxed;
use crate::time::Ticks;

/// Destination of the records that are fetched.
struct DrainContext<'a> {
    hal: &'a Hal,
    per_cpu: &'a PerCpuSampling,
    processor: ProcessorIndex,
    /// Time at which the records are fetched.
    time: Ticks,
    /// Process and thread of the records.
    thread: (u32, u32),
    watermark_hit: bool,
}

impl Sampler {
    /// Puts the Debug Store of the current processor into use.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub(crate) fn install(&self, current: CurrentCpu<'_, impl Cpu>, mut ds_buffers: Boxed<DsBuffers>) {
        let Some(per_cpu) = self.per_cpu(current.index()) else { return core::mem::forget(ds_buffers) };
        if !self.hal.is_asleep(current.index()) {
            ds_buffers.install(current.cpu());
        }
        per_cpu.put_ds_buffers(ds_buffers);
    }

    /// Takes the Debug Store of the current processor out of use, with its registers as they were found.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub(crate) fn uninstall(&self, current: CurrentCpu<'_, impl Cpu>) -> Option<Boxed<DsBuffers>> {
        let per_cpu = self.per_cpu(current.index())?;
        let mut ds_buffers = per_cpu.take_ds_buffers()?;
        ds_buffers.uninstall(current.cpu());
        Some(ds_buffers)
    }

    /// Ends the recording of branches of the current processor, after the recorded branches were delivered.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub(crate) fn end_branches(&self, current: CurrentCpu<'_, impl Cpu>, now: Ticks) {
        let Some(per_cpu) = self.per_cpu(current.index()) else { return };
        per_cpu.with_ds_buffers(|ds_buffers| {
            self.aside(current.index(), per_cpu, now, |drain| drain.branches(current, ds_buffers, false));
            ds_buffers.end_branches();
        });
        per_cpu.throttle.forget_branches();
    }

    /// Pauses or resumes the recording of branches of the current processor. Returns whether a session records branches
    /// there.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub(super) fn pause_branches(
        &self,
        current: CurrentCpu<'_, impl Cpu>,
        per_cpu: &PerCpuSampling,
        paused: bool,
        now: Ticks,
    ) -> bool {
        let traced = per_cpu.with_ds_buffers(|ds_buffers| {
            if paused {
                self.aside(current.index(), per_cpu, now, |drain| drain.branches(current, ds_buffers, false));
            }
            ds_buffers.pause_branches(current.cpu(), paused);
            ds_buffers.traced_for().is_some()
        });
        traced.unwrap_or(false)
    }

    /// Fetches the records of the current processor if a buffer is at its threshold. Returns whether a ring has become
    /// half full.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    #[cold]
    #[inline(never)]
    pub(super) fn fetch(
        &self,
        current: CurrentCpu<'_, impl Cpu>,
        per_cpu: &PerCpuSampling,
        time: Ticks,
        interrupted: Option<&Interrupted>,
    ) -> bool {
        let watermark_hit = per_cpu.with_ds_buffers(|ds_buffers| {
            let mut drain = self.drain_context(current.index(), per_cpu, time);
            let is_due = ds_buffers.is_due(current.cpu());
            if let Some(Interrupted { process, thread, .. }) = interrupted.filter(|_| ds_buffers.is_attributed()) {
                drain.thread = (*process, *thread);
            }
            let fetched = is_due && drain.all(current, ds_buffers);
            per_cpu.set_pebs_sequence(ds_buffers.written(), fetched);
            drain.watermark_hit
        });
        watermark_hit.unwrap_or(false)
    }

    /// Starts precise recording for those of `counters` that are precise and are about to start.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub(super) fn start_precise(
        &self,
        current: CurrentCpu<'_, impl Cpu>,
        per_cpu: &PerCpuSampling,
        counters: CounterSet,
    ) {
        self.start_ibs(current, per_cpu, counters);
        if !per_cpu.has_ds_buffers() {
            return;
        }
        let cpu_counters = self.hal.cpu_counters(current.index());
        let precise = counters.and(cpu_counters.counters(|state| state.precise()));
        if precise.is_empty() {
            return;
        }
        let initial = |counter| self.hal.initial_count(current.index(), counter);
        let accesses = self.hal.accesses(current.index(), precise);
        per_cpu.with_ds_buffers(|ds_buffers| ds_buffers.start_precise(current.cpu(), precise, accesses, initial));
    }

    /// Stops counters of the current processor, and fetches the records of the precise ones. Returns the counters that
    /// had overflowed without being served.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub(super) fn stop(
        &self,
        current: CurrentCpu<'_, impl Cpu>,
        per_cpu: &PerCpuSampling,
        counters: CounterSet,
        now: Ticks,
    ) -> CounterSet {
        Self::stop_ibs(current, per_cpu, counters);
        let are_precise = || counters.and(self.hal.cpu_counters(current.index()).counters(|state| state.precise()));
        let precise = if per_cpu.has_ds_buffers() { are_precise() } else { CounterSet::NONE };
        if precise.is_empty() {
            return self.hal.stop(current, counters).0;
        }
        let overflowed = self.without_records(current, per_cpu, now, || self.hal.stop(current, counters).0);
        per_cpu.with_ds_buffers(|ds_buffers| ds_buffers.stop_precise(current.cpu(), precise));
        overflowed
    }

    /// Runs `work` while no precise record of the current processor is pending and none is written: the value of a
    /// counter is then what it counted since its last record.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub(super) fn without_records<R>(
        &self,
        current: CurrentCpu<'_, impl Cpu>,
        per_cpu: &PerCpuSampling,
        now: Ticks,
        work: impl FnOnce() -> R,
    ) -> R {
        if !per_cpu.has_ds_buffers() {
            return work();
        }
        self.hal.freeze(current);
        self.drain_frozen(current, per_cpu, now);
        let result = work();
        self.hal.unfreeze(current);
        result
    }

    /// Fetches the pending precise records of the current processor, whose counters are frozen.
    #[inline(never)]
    fn drain_frozen(&self, current: CurrentCpu<'_, impl Cpu>, per_cpu: &PerCpuSampling, now: Ticks) {
        per_cpu.with_ds_buffers(|ds_buffers| {
            self.aside(current.index(), per_cpu, now, |drain| drain.precise(current, ds_buffers));
            follow_full(&self.hal, current, ds_buffers);
        });
    }

    /// Returns what a counter of the current processor has counted, as [`Hal::count`], after the pending records were
    /// accounted.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub(crate) fn count(&self, current: CurrentCpu<'_, impl Cpu>, counter: u8, now: Ticks) -> u64 {
        let count = || self.hal.count(current, counter);
        let is_precise = self.hal.cpu_counters(current.index()).get(counter).precise();
        match self.per_cpu(current.index()).filter(|_| is_precise) {
            Some(per_cpu) => self.without_records(current, per_cpu, now, count),
            None => count(),
        }
    }

    /// Takes the Debug Store of the current processor out of use before a sleep. No precise record is pending.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub(super) fn suspend(&self, current: CurrentCpu<'_, impl Cpu>, per_cpu: &PerCpuSampling, now: Ticks) {
        per_cpu.with_ds_buffers(|ds_buffers| {
            self.aside(current.index(), per_cpu, now, |drain| drain.branches(current, ds_buffers, false));
            ds_buffers.uninstall(current.cpu());
        });
        Self::suspend_branch_stack(current, per_cpu);
        per_cpu.with_ibs_unit(|unit| unit.stop(current.cpu()));
    }

    /// Puts the Debug Store of the current processor into use again after a sleep, and starts the counters. Branches
    /// are recorded last: the bits that stop counters are set beside what the guarded accesses have found.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub(super) fn resume(&self, current: CurrentCpu<'_, impl Cpu>, per_cpu: &PerCpuSampling) {
        if !self.hal.is_asleep(current.index()) {
            return;
        }
        per_cpu.with_ds_buffers(|ds_buffers| ds_buffers.install(current.cpu()));
        self.start_precise(current, per_cpu, self.hal.cpu_counters(current.index()).counters(|state| state.active()));
        self.hal.restore(current);
        Self::resume_branch_stack(current, per_cpu);
        per_cpu.with_ds_buffers(|ds_buffers| ds_buffers.trace(current.cpu()));
    }

    /// Returns the destination of records that are fetched at `time`.
    const fn drain_context<'a>(
        &'a self,
        processor: ProcessorIndex,
        per_cpu: &'a PerCpuSampling,
        time: Ticks,
    ) -> DrainContext<'a> {
        DrainContext { hal: &self.hal, per_cpu, processor, time, thread: (UNKNOWN, UNKNOWN), watermark_hit: false }
    }

    /// Fetches outside of an interrupt. The next tick reports that a ring has become half full.
    fn aside(
        &self,
        processor: ProcessorIndex,
        per_cpu: &PerCpuSampling,
        now: Ticks,
        fetch: impl FnOnce(&mut DrainContext<'_>) -> bool,
    ) {
        let mut drain = self.drain_context(processor, per_cpu, now);
        fetch(&mut drain);
        if drain.watermark_hit {
            per_cpu.note_watermark_hit();
        }
    }
}

/// Reads the precise counters of the current processor if their buffer was full. A record that did not fit is written
/// by the next event, and until then its counter counts on from the overflow. The counters are frozen. Not a part of
/// [`DrainContext::precise`], where it would cost the deepest path of the handler more stack.
#[cold]
#[inline(never)]
fn follow_full(hal: &Hal, current: CurrentCpu<'_, impl Cpu>, ds_buffers: &mut DsBuffers) {
    for counter in ds_buffers.take_full().iter() {
        hal.count(current, counter);
    }
}

impl DrainContext<'_> {
    /// Fetches branches and precise records. Returns whether there were any.
    fn all(&mut self, current: CurrentCpu<'_, impl Cpu>, ds_buffers: &mut DsBuffers) -> bool {
        let branches = self.branches(current, ds_buffers, true);
        if !ds_buffers.has_precise() {
            return branches;
        }
        self.hal.freeze(current);
        let precise = self.precise(current, ds_buffers);
        follow_full(self.hal, current, ds_buffers);
        self.hal.unfreeze(current);
        branches || precise
    }

    /// Fetches precise records, while the counters are frozen. Returns whether there were any.
    fn precise(&mut self, current: CurrentCpu<'_, impl Cpu>, ds_buffers: &mut DsBuffers) -> bool {
        let fetched = ds_buffers.fetch_precise(current.cpu(), |record| self.record(current, record));
        // Their intervals may have been adapted, which takes effect with the next load.
        ds_buffers.set_initial(current.cpu(), |counter| self.hal.initial_count(current.index(), counter));
        fetched
    }

    /// Delivers one record for each counter to which it belongs.
    fn record(&mut self, current: CurrentCpu<'_, impl Cpu>, record: &FetchedRecord) {
        let (Part::Record(read), true) = (&record.part, record.is_certain) else {
            return self.per_cpu.count_overflows(record.counters, Unsampled::Lost);
        };
        for counter in record.counters.iter() {
            let initial = current.cpu().save_area(record.numbering.reset_word(counter));
            self.deliver(record, read, counter, initial);
        }
    }

    /// Accounts a record of a counter, which was loaded with `initial` then, and delivers its sample and the access of
    /// memory behind it.
    // Never inlined: only what needs the processor is compiled for each kind of it.
    #[inline(never)]
    fn deliver(&mut self, record: &FetchedRecord, read: &PebsRecord, counter: u8, initial: u64) {
        let Some(subscriptions) = self.per_cpu.subscriptions(counter) else { return };
        let interval = subscriptions.loaded();
        subscriptions.reloaded(self.hal.count_pebs_record(self.processor, counter, initial));
        let ((process, thread), subscribers) = (self.thread, subscriptions.subscribers());
        let sample = PreciseSample {
            time: self.time.0,
            ip: read.ip,
            process,
            thread,
            processor: self.processor.number(),
            event: counter.into(),
            interval,
            kind: if read.is_exact { PreciseKind::Precise } else { PreciseKind::PreciseNext },
            mode: mode_of(read.ip),
            number: record.number,
        };
        self.per_cpu.deliver_rare(subscribers, counter, &sample.into());
        if let (Some(access), Some(operation), Some(microarchitecture)) =
            (read.access, record.accesses.operation(counter), record.numbering.accesses)
        {
            let form = AccessForm::of(microarchitecture, operation);
            let (latency, instruction_latency) = form.latencies(access.latency);
            let access = AccessRecord {
                time: self.time.0,
                address: access.address,
                process,
                thread,
                processor: self.processor.number(),
                event: counter.into(),
                latency,
                kind: AccessKind::Access,
                number: (record.number & 0xFFFF) as u16,
                source: (access.source & 0xFFFF_FFFF) as u32,
                instruction_latency,
                encoding: form.encoding,
                operation: match operation {
                    RecordedOperation::Load => AccessOperation::Load,
                    RecordedOperation::Store => AccessOperation::Store,
                },
            };
            self.watermark_hit |= self.per_cpu.push_to(subscribers, &access.into());
        }
    }

    /// Fetches branches, which are recorded further if `go_on`. Returns whether there were any.
    fn branches(&mut self, current: CurrentCpu<'_, impl Cpu>, ds_buffers: &mut DsBuffers, go_on: bool) -> bool {
        let Some(subscriber) = ds_buffers.traced_for() else { return false };
        ds_buffers.fetch_branches(current.cpu(), go_on, |branch| self.deliver_branch(subscriber, branch))
    }

    /// Delivers a branch.
    // Never inlined, for the same reason.
    #[inline(never)]
    fn deliver_branch(&mut self, subscriber: Subscriber, branch: BtsRecord) {
        let record = BranchRecord {
            time: self.time.0,
            from: branch.from,
            process: UNKNOWN,
            thread: UNKNOWN,
            processor: self.processor.number(),
            event: BRANCH_STATS.into(),
            cycles: 0,
            prediction: if branch.flags.predicted() { Prediction::Predicted } else { Prediction::NotReported },
            branch_type: BranchType::NotReported,
            kind: BranchKind::Branch,
            mode: mode_of(branch.from),
            to: branch.to,
        };
        self.watermark_hit |= self.per_cpu.push(subscriber, BRANCH_STATS, &record.into());
    }
}

/// How the accesses in the records of a microarchitecture are to be read.
#[derive(Debug, Clone, Copy)]
struct AccessForm {
    encoding: AccessEncoding,
    /// Whether the latency of the instruction is recorded too, with 16 bits for each (Linux,
    /// arch/x86/events/intel/core.c, `PMU_FL_INSTR_LATENCY`).
    has_instruction: bool,
}

impl AccessForm {
    const fn of(microarchitecture: Microarchitecture, operation: RecordedOperation) -> Self {
        use Microarchitecture as M;
        let (of_loads, has_instruction) = match microarchitecture {
            M::Nehalem | M::Westmere => (AccessEncoding::Nehalem, false),
            M::SandyBridge | M::IvyBridge | M::Haswell | M::Broadwell => (AccessEncoding::SandyBridge, false),
            M::LionCove | M::CougarCove | M::CoyoteCove => (AccessEncoding::LionCove, true),
            M::Gracemont => (AccessEncoding::Gracemont, true),
            M::Crestmont | M::Skymont | M::Darkmont | M::ArcticWolf => (AccessEncoding::Crestmont, true),
            M::GoldenCove | M::RedwoodCove => (AccessEncoding::Skylake, true),
            _ => (AccessEncoding::Skylake, false),
        };
        let is_old_store = matches!(operation, RecordedOperation::Store) && !has_instruction;
        Self { encoding: if is_old_store { AccessEncoding::Store } else { of_loads }, has_instruction }
    }

    /// Returns the latency of the access, and that of the instruction.
    const fn latencies(self, recorded: u64) -> (u32, u16) {
        match (self.encoding, self.has_instruction) {
            // These records have what an earlier one has left there.
            (AccessEncoding::Store, _) => (0, 0),
            (_, true) => ((recorded >> 32 & 0xFFFF) as u32, (recorded & 0xFFFF) as u16),
            (_, false) => ((recorded & 0xFFFF_FFFF) as u32, 0),
        }
    }
}

/// Returns the mode of an instruction by the half of the address space in which it is.
const fn mode_of(ip: u64) -> Mode {
    /// Set in the addresses of the kernel.
    const KERNEL_HALF: u64 = 1 << 63;
    if ip & KERNEL_HALF == 0 { Mode::User } else { Mode::Kernel }
}

#[cfg(test)]
mod tests {
    use pmu::state;

    use super::*;
    use crate::platform::ControlArea;
    use crate::sampler::counting_cpu::CountingCpu;

    /// The machine can fall asleep after a start has checked everything that it needs.
    #[test]
    fn a_debug_store_installed_during_a_sleep_touches_no_register_until_the_wake() {
        let cpu = CountingCpu::default();
        let sampler =
            Sampler::new(Hal::with_states(&cpu, pmu::Options::default(), 1, 0, state::allocate).unwrap(), 1_000);
        let current = CurrentCpu::new(&cpu, ProcessorIndex::BOOT);
        sampler.fall_asleep(current, Ticks(0));
        let mut ds_buffers = DsBuffers::new();
        ds_buffers.set_area(ControlArea { address: 0x1000, size: 0xA0, physical: None });
        sampler.install(current, Boxed::new(ds_buffers).unwrap());
        assert_eq!(cpu.accesses(), 0);
        sampler.wake(current, Ticks(1), Ticks(1));
        assert_ne!(cpu.accesses(), 0);
    }
}
