//! What the processor itself records, on its way to who subscribed: precise records and branches.

use pmu::state::CounterSet;
use pmu::{Cpu, Hal};
use protocol::{BRANCHES, Sample, SampleKind, UNKNOWN, modes};

use super::ds_buffers::{self, DsBuffers, Fetched};
use super::per_cpu::PerCpu;
use super::sample_stats::{BRANCH_STATS, SampleStats};
use super::{Interrupted, Sampler};
use crate::boxed::Boxed;

/// Where what is fetched goes.
struct DrainContext<'a> {
    hal: &'a Hal,
    per_cpu: &'a PerCpu,
    processor: u32,
    /// When it was fetched.
    time: u64,
    /// Process and thread that made it.
    who: (u32, u32),
    watermark_hit: bool,
}

impl Sampler {
    /// The Debug Store of the current processor, which is `processor`, is in use from now on. PROFILE_LEVEL.
    pub(crate) fn install(&self, cpu: &impl Cpu, processor: u32, mut ds_buffers: Boxed<DsBuffers>) {
        let Some(per_cpu) = self.per_cpu.get(processor as usize) else { return core::mem::forget(ds_buffers) };
        if !self.hal.is_asleep(processor) {
            ds_buffers.install(cpu);
        }
        per_cpu.put_ds_buffers(ds_buffers);
    }

    /// It is in use no more, and its registers are as they were found. PROFILE_LEVEL.
    pub(crate) fn uninstall(&self, cpu: &impl Cpu, processor: u32) -> Option<Boxed<DsBuffers>> {
        let per_cpu = self.per_cpu.get(processor as usize)?;
        let mut ds_buffers = per_cpu.take_ds_buffers()?;
        ds_buffers.uninstall(cpu);
        Some(ds_buffers)
    }

    /// Branches of the current processor, which is `processor`, are recorded no more; what was recorded goes to who
    /// subscribed. PROFILE_LEVEL.
    pub(crate) fn end_branches(&self, cpu: &impl Cpu, processor: u32, now: u64) {
        let Some(per_cpu) = self.per_cpu.get(processor as usize) else { return };
        per_cpu.with_ds_buffers(|ds_buffers| {
            self.aside(processor, per_cpu, now, |way| way.branches(cpu, ds_buffers, false));
            ds_buffers.end_branches();
        });
        per_cpu.throttle.forget_branches();
    }

    /// They are recorded for a while no more, or again. Answers whether somebody wants any. PROFILE_LEVEL.
    pub(super) fn pause_branches(&self, cpu: &impl Cpu, processor: u32, paused: bool, now: u64) -> bool {
        let Some(per_cpu) = self.per_cpu.get(processor as usize) else { return false };
        let traced = per_cpu.with_ds_buffers(|ds_buffers| {
            if paused {
                self.aside(processor, per_cpu, now, |way| way.branches(cpu, ds_buffers, false));
            }
            ds_buffers.pause_branches(cpu, paused);
            ds_buffers.traced_for().is_some()
        });
        traced.unwrap_or(false)
    }

    /// Fetches what is due of the current processor, which is `processor`; answers whether a ring has become half full.
    #[cold]
    #[inline(never)]
    pub(super) fn fetch(&self, cpu: &impl Cpu, processor: u32, time: u64, interrupted: Option<&Interrupted>) -> bool {
        let Some(per_cpu) = self.per_cpu.get(processor as usize) else { return false };
        let watermark_hit = per_cpu.with_ds_buffers(|ds_buffers| {
            let mut way = self.way(processor, per_cpu, time);
            if let Some(Interrupted { process, thread, .. }) = interrupted.filter(|_| ds_buffers.is_attributed(cpu)) {
                way.who = (*process, *thread);
            }
            let fetched = ds_buffers.is_due(cpu) && way.all(cpu, ds_buffers);
            per_cpu.set_pebs_sequence(ds_buffers.written(cpu), fetched);
            way.watermark_hit
        });
        watermark_hit.unwrap_or(false)
    }

    /// The precise ones of counters that are about to start are recorded.
    pub(super) fn record(&self, cpu: &impl Cpu, processor: u32, counters: CounterSet) {
        let row = self.hal.row(processor);
        let precise = counters.and(row.counters(|state| state.precise()));
        if precise.is_empty() {
            return;
        }
        let initial = |counter| self.hal.initial_count(processor, counter);
        if let Some(per_cpu) = self.per_cpu.get(processor as usize) {
            per_cpu.with_ds_buffers(|ds_buffers| ds_buffers.record(cpu, precise, initial));
        }
    }

    /// Stops counters of the current processor, which is `processor`, and fetches the records of those that are precise.
    /// Answers those that had overflowed with nobody having served it.
    pub(super) fn stop(
        &self,
        cpu: &impl Cpu,
        processor: u32,
        per_cpu: &PerCpu,
        counters: CounterSet,
        now: u64,
    ) -> CounterSet {
        let precise = counters.and(self.hal.row(processor).counters(|state| state.precise()));
        let stop = || self.hal.stop(cpu, processor, counters).0;
        if precise.is_empty() {
            return stop();
        }
        let overflowed = self.without_records(cpu, processor, now, stop);
        per_cpu.with_ds_buffers(|ds_buffers| ds_buffers.forget(cpu, precise));
        overflowed
    }

    /// Does something while no precise record of the current processor, which is `processor`, waits and none is written: so
    /// that what a counter holds is what it counted since the last.
    pub(super) fn without_records<R>(&self, cpu: &impl Cpu, processor: u32, now: u64, work: impl FnOnce() -> R) -> R {
        match self.per_cpu.get(processor as usize).filter(|per_cpu| per_cpu.has_ds_buffers()) {
            None => work(),
            Some(per_cpu) => self.hal.with_frozen(cpu, processor, || {
                per_cpu.with_ds_buffers(|ds_buffers| {
                    self.aside(processor, per_cpu, now, |way| way.precise(cpu, ds_buffers))
                });
                work()
            }),
        }
    }

    /// What a counter of the current processor, which is `processor`, has counted: [`Hal::count`], with the records that
    /// wait accounted before. PROFILE_LEVEL.
    pub(crate) fn count(&self, cpu: &impl Cpu, processor: u32, counter: u8, now: u64) -> u64 {
        let count = || self.hal.count(cpu, processor, counter);
        let is_precise = self.hal.row(processor).get(counter).precise();
        if is_precise { self.without_records(cpu, processor, now, count) } else { count() }
    }

    /// The machine is about to sleep, and no precise record waits.
    pub(super) fn suspend(&self, cpu: &impl Cpu, processor: u32, per_cpu: &PerCpu, now: u64) {
        per_cpu.with_ds_buffers(|ds_buffers| {
            self.aside(processor, per_cpu, now, |way| way.branches(cpu, ds_buffers, false));
            ds_buffers.uninstall(cpu);
        });
    }

    /// It is awake, and its counters are about to start again.
    pub(super) fn resume(&self, cpu: &impl Cpu, processor: u32, per_cpu: &PerCpu) {
        if !self.hal.is_asleep(processor) {
            return;
        }
        per_cpu.with_ds_buffers(|ds_buffers| ds_buffers.install(cpu));
        self.record(cpu, processor, self.hal.row(processor).counters(|state| state.active()));
    }

    const fn way<'a>(&'a self, processor: u32, per_cpu: &'a PerCpu, time: u64) -> DrainContext<'a> {
        DrainContext { hal: &self.hal, per_cpu, processor, time, who: (UNKNOWN, UNKNOWN), watermark_hit: false }
    }

    /// Fetches outside of an interrupt: that a ring has become half full is told with the next tick.
    fn aside(&self, processor: u32, per_cpu: &PerCpu, now: u64, fetch: impl FnOnce(&mut DrainContext<'_>) -> bool) {
        let mut way = self.way(processor, per_cpu, now);
        fetch(&mut way);
        if way.watermark_hit {
            per_cpu.note_watermark_hit();
        }
    }
}

impl DrainContext<'_> {
    /// Branches and precise records; answers whether there were any.
    fn all(&mut self, cpu: &impl Cpu, ds_buffers: &mut DsBuffers) -> bool {
        let branches = self.branches(cpu, ds_buffers, true);
        let (hal, processor) = (self.hal, self.processor);
        let precise = ds_buffers.has_precise() && hal.with_frozen(cpu, processor, || self.precise(cpu, ds_buffers));
        branches || precise
    }

    /// Precise records, while the counters stand.
    fn precise(&mut self, cpu: &impl Cpu, ds_buffers: &mut DsBuffers) -> bool {
        let fetched = ds_buffers.fetch_precise(cpu, |record| self.record(cpu, record));
        // Their intervals may have been moved: that is so from the next load on.
        ds_buffers.set_initial(cpu, |counter| self.hal.initial_count(self.processor, counter));
        fetched
    }

    /// One record, for each counter whose it is.
    fn record(&mut self, cpu: &impl Cpu, record: Fetched) {
        let (process, thread) = self.who;
        for counter in record.counters.iter() {
            let Some(subscriptions) = self.per_cpu.subscriptions(counter) else { continue };
            if !record.is_told {
                self.per_cpu.stats(subscriptions, counter, SampleStats::lose);
                continue;
            }
            let (source, interval) = subscriptions.loaded();
            let initial = ds_buffers::initial(cpu, counter);
            subscriptions.reloaded(self.hal.recorded(self.processor, counter, initial));
            let kind = if record.is_exact { SampleKind::Precise } else { SampleKind::PreciseNext };
            let sample = self.sample(record.ip, record.number, source, interval, kind);
            self.watermark_hit |= self.per_cpu.deliver(subscriptions, counter, Sample { process, thread, ..sample });
        }
    }

    /// Branches, which then `go_on`, or are held.
    fn branches(&mut self, cpu: &impl Cpu, ds_buffers: &mut DsBuffers, go_on: bool) -> bool {
        let Some(subscriber) = ds_buffers.traced_for() else { return false };
        ds_buffers.fetch_branches(cpu, go_on, |branch| {
            let sample =
                self.sample(branch.from, branch.to, BRANCHES, u32::from(branch.flags.predicted()), SampleKind::Branch);
            self.watermark_hit |= self.per_cpu.push(subscriber, BRANCH_STATS, sample);
        })
    }

    const fn sample(&self, ip: u64, pebs_sequence: u64, source: u32, interval: u32, kind: SampleKind) -> Sample {
        /// Set in the addresses of the kernel.
        const KERNEL_HALF: u64 = 1 << 63;
        let mode = if ip & KERNEL_HALF == 0 { modes::USER } else { modes::KERNEL };
        Sample {
            time: self.time,
            ip,
            process: UNKNOWN,
            thread: UNKNOWN,
            processor: self.processor,
            source,
            interval,
            kind: kind as u16,
            modes: (mode & 0xFFFF) as u16,
            pebs_sequence,
        }
    }
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::{AtomicU64, Ordering};

    use pmu::{Cpuid, Msr};
    use raw_cpuid::CpuIdResult;

    use super::*;

    /// A processor that counts the accesses to its registers.
    #[derive(Default)]
    struct Counting(AtomicU64);

    impl Counting {
        fn touch(&self) -> u64 {
            self.0.fetch_add(1, Ordering::Relaxed);
            0
        }
    }

    impl Cpuid for Counting {
        fn cpuid(&self, _: u32, _: u32) -> CpuIdResult {
            CpuIdResult { eax: 0, ebx: 0, ecx: 0, edx: 0 }
        }
    }

    impl Cpu for Counting {
        fn rdmsr(&self, _: Msr) -> u64 {
            self.touch()
        }

        fn wrmsr(&self, _: Msr, _: u64) {
            self.touch();
        }

        fn rdpmc(&self, _: u32) -> u64 {
            self.touch()
        }

        fn lvt_pmi(&self) -> u32 {
            self.touch();
            0
        }

        fn set_lvt_pmi(&self, _: u32) {
            self.touch();
        }

        fn save_area(&self, _: u8) -> u64 {
            0
        }

        fn set_save_area(&self, _: u8, _: u64) {}
    }

    /// The machine can fall asleep when everything that a start needs has been looked at.
    #[test]
    fn a_store_that_comes_to_a_sleeping_processor_touches_no_register_until_it_is_awake() {
        let cpu = Counting::default();
        let sampler = Sampler::new(Hal::new(&cpu, 1).unwrap(), 1, 1_000).unwrap();
        sampler.fall_asleep(&cpu, 0, 0);
        sampler.install(&cpu, 0, Boxed::new(DsBuffers::new()).unwrap());
        assert_eq!(cpu.0.load(Ordering::Relaxed), 0);
        sampler.wake(&cpu, 0, 1, 1);
        assert_ne!(cpu.0.load(Ordering::Relaxed), 0);
    }
}
