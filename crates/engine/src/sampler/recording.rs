//! What the processor itself records, on its way to who subscribed: precise records and branches.

use pmu::state::CounterSet;
use pmu::{Cpu, Hal};
use protocol::{BRANCHES, Sample, SampleKind, UNKNOWN, modes};

use super::desk::Desk;
use super::store::{self, Fetched, Store};
use super::tally::{BRANCHES_TALLY, Tally};
use super::{Interrupted, Sampler};
use crate::boxed::Boxed;

/// Where what is fetched goes.
struct Way<'a> {
    hal: &'a Hal,
    desk: &'a Desk,
    processor: u32,
    /// When it was fetched.
    time: u64,
    /// Process and thread that made it.
    who: (u32, u32),
    reached: bool,
}

impl Sampler {
    /// The Debug Store of the current processor, which is `processor`, is in use from now on. PROFILE_LEVEL.
    pub(crate) fn install(&self, cpu: &impl Cpu, processor: u32, mut store: Boxed<Store>) {
        let Some(desk) = self.desks.get(processor as usize) else { return core::mem::forget(store) };
        if !self.hal.is_asleep(processor) {
            store.install(cpu);
        }
        desk.put_store(store);
    }

    /// It is in use no more, and its registers are as they were found. PROFILE_LEVEL.
    pub(crate) fn uninstall(&self, cpu: &impl Cpu, processor: u32) -> Option<Boxed<Store>> {
        let desk = self.desks.get(processor as usize)?;
        let mut store = desk.take_store()?;
        store.uninstall(cpu);
        Some(store)
    }

    /// Branches of the current processor, which is `processor`, are recorded no more; what was recorded goes to who
    /// subscribed. PROFILE_LEVEL.
    pub(crate) fn end_branches(&self, cpu: &impl Cpu, processor: u32, now: u64) {
        let Some(desk) = self.desks.get(processor as usize) else { return };
        desk.with_store(|store| {
            self.aside(processor, desk, now, |way| way.branches(cpu, store, false));
            store.end_branches();
        });
        desk.throttle.forget_branches();
    }

    /// They are recorded for a while no more, or again. Answers whether somebody wants any. PROFILE_LEVEL.
    pub(super) fn pause_branches(&self, cpu: &impl Cpu, processor: u32, paused: bool, now: u64) -> bool {
        let Some(desk) = self.desks.get(processor as usize) else { return false };
        let traced = desk.with_store(|store| {
            if paused {
                self.aside(processor, desk, now, |way| way.branches(cpu, store, false));
            }
            store.pause_branches(cpu, paused);
            store.traced_for().is_some()
        });
        traced.unwrap_or(false)
    }

    /// Fetches what is due of the current processor, which is `processor`; answers whether a ring has become half full.
    #[cold]
    #[inline(never)]
    pub(super) fn fetch(&self, cpu: &impl Cpu, processor: u32, time: u64, interrupted: Option<&Interrupted>) -> bool {
        let Some(desk) = self.desks.get(processor as usize) else { return false };
        let reached = desk.with_store(|store| {
            let mut way = self.way(processor, desk, time);
            if let Some(Interrupted { process, thread, .. }) = interrupted.filter(|_| store.is_attributed(cpu)) {
                way.who = (*process, *thread);
            }
            let fetched = store.is_due(cpu) && way.all(cpu, store);
            desk.set_pebs_sequence(store.written(cpu), fetched);
            way.reached
        });
        reached.unwrap_or(false)
    }

    /// The precise ones of counters that are about to start are recorded.
    pub(super) fn record(&self, cpu: &impl Cpu, processor: u32, counters: CounterSet) {
        let row = self.hal.row(processor);
        let precise = counters.and(row.counters(|state| state.precise()));
        if precise.is_empty() {
            return;
        }
        let initial = |counter| self.hal.initial_count(processor, counter);
        if let Some(desk) = self.desks.get(processor as usize) {
            desk.with_store(|store| store.record(cpu, precise, initial));
        }
    }

    /// Stops counters of the current processor, which is `processor`, and fetches the records of those that are precise.
    /// Answers those that had overflowed with nobody having served it.
    pub(super) fn stop(
        &self,
        cpu: &impl Cpu,
        processor: u32,
        desk: &Desk,
        counters: CounterSet,
        now: u64,
    ) -> CounterSet {
        let precise = counters.and(self.hal.row(processor).counters(|state| state.precise()));
        let stop = || self.hal.stop(cpu, processor, counters).0;
        if precise.is_empty() {
            return stop();
        }
        let overflowed = self.without_records(cpu, processor, now, stop);
        desk.with_store(|store| store.forget(cpu, precise));
        overflowed
    }

    /// Does something while no precise record of the current processor, which is `processor`, waits and none is written: so
    /// that what a counter holds is what it counted since the last.
    pub(super) fn without_records<R>(&self, cpu: &impl Cpu, processor: u32, now: u64, work: impl FnOnce() -> R) -> R {
        match self.desks.get(processor as usize).filter(|desk| desk.has_store()) {
            None => work(),
            Some(desk) => self.hal.standing(cpu, processor, || {
                desk.with_store(|store| self.aside(processor, desk, now, |way| way.precise(cpu, store)));
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
    pub(super) fn suspend(&self, cpu: &impl Cpu, processor: u32, desk: &Desk, now: u64) {
        desk.with_store(|store| {
            self.aside(processor, desk, now, |way| way.branches(cpu, store, false));
            store.uninstall(cpu);
        });
    }

    /// It is awake, and its counters are about to start again.
    pub(super) fn resume(&self, cpu: &impl Cpu, processor: u32, desk: &Desk) {
        if !self.hal.is_asleep(processor) {
            return;
        }
        desk.with_store(|store| store.install(cpu));
        self.record(cpu, processor, self.hal.row(processor).counters(|state| state.active()));
    }

    const fn way<'a>(&'a self, processor: u32, desk: &'a Desk, time: u64) -> Way<'a> {
        Way { hal: &self.hal, desk, processor, time, who: (UNKNOWN, UNKNOWN), reached: false }
    }

    /// Fetches outside of an interrupt: that a ring has become half full is told with the next tick.
    fn aside(&self, processor: u32, desk: &Desk, now: u64, fetch: impl FnOnce(&mut Way<'_>) -> bool) {
        let mut way = self.way(processor, desk, now);
        fetch(&mut way);
        if way.reached {
            desk.note_reached();
        }
    }
}

impl Way<'_> {
    /// Branches and precise records; answers whether there were any.
    fn all(&mut self, cpu: &impl Cpu, store: &mut Store) -> bool {
        let branches = self.branches(cpu, store, true);
        let (hal, processor) = (self.hal, self.processor);
        let precise = store.has_precise() && hal.standing(cpu, processor, || self.precise(cpu, store));
        branches || precise
    }

    /// Precise records, while the counters stand.
    fn precise(&mut self, cpu: &impl Cpu, store: &mut Store) -> bool {
        let fetched = store.fetch_precise(cpu, |record| self.record(cpu, record));
        // Their intervals may have been moved: that is so from the next load on.
        store.set_initial(cpu, |counter| self.hal.initial_count(self.processor, counter));
        fetched
    }

    /// One record, for each counter whose it is.
    fn record(&mut self, cpu: &impl Cpu, record: Fetched) {
        let (process, thread) = self.who;
        for counter in record.counters.iter() {
            let Some(post) = self.desk.post(counter) else { continue };
            if !record.is_told {
                self.desk.tally(post, counter, Tally::lose);
                continue;
            }
            let (source, interval) = post.loaded();
            let initial = store::initial(cpu, counter);
            post.reloaded(self.hal.recorded(self.processor, counter, initial));
            let kind = if record.is_exact { SampleKind::Precise } else { SampleKind::PreciseNext };
            let sample = self.sample(record.ip, record.number, source, interval, kind);
            self.reached |= self.desk.deliver(post, counter, Sample { process, thread, ..sample });
        }
    }

    /// Branches, which then `go_on`, or are held.
    fn branches(&mut self, cpu: &impl Cpu, store: &mut Store, go_on: bool) -> bool {
        let Some(subscriber) = store.traced_for() else { return false };
        store.fetch_branches(cpu, go_on, |branch| {
            let sample =
                self.sample(branch.from, branch.to, BRANCHES, u32::from(branch.predicted()), SampleKind::Branch);
            self.reached |= self.desk.push(subscriber, BRANCHES_TALLY, sample);
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

    use pmu::Msr;
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

    impl Cpu for Counting {
        fn cpuid(&self, _: u32, _: u32) -> CpuIdResult {
            CpuIdResult { eax: 0, ebx: 0, ecx: 0, edx: 0 }
        }

        fn rdmsr(&self, _: Msr) -> u64 {
            self.touch()
        }

        fn wrmsr(&self, _: Msr, _: u64) {
            self.touch();
        }

        fn rdpmc(&self, _: u32) -> u64 {
            self.touch()
        }

        fn local_vector(&self) -> u32 {
            self.touch();
            0
        }

        fn set_local_vector(&self, _: u32) {
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
        sampler.install(&cpu, 0, Boxed::new(Store::new()).unwrap());
        assert_eq!(cpu.0.load(Ordering::Relaxed), 0);
        sampler.wake(&cpu, 0, 1, 1);
        assert_ne!(cpu.0.load(Ordering::Relaxed), 0);
    }
}
