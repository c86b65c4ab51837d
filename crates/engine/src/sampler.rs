//! What runs at PROFILE_LEVEL while something is sampled: the interrupt of a counter that overflowed, and the tick
//! that lets a throttled processor go on.
//!
//! Each processor has a [`PerCpu`], which nobody touches but that processor at PROFILE_LEVEL: an interrupt can not come
//! in between, so that its parts need no lock and no order. The samples leave through rings, whose other ends the
//! sessions have.

mod ds_buffers;
mod frequency;
mod per_cpu;
mod recording;
mod recovery;
mod sample_stats;
mod storm;
mod throttle;

use alloc::boxed::Box;
use core::sync::atomic::{AtomicU64, Ordering};

use pmu::state::{self, CounterSet, CounterState};
use pmu::{Cpu, CurrentCpu, Hal, ProcessorIndex, lvt_pmi};
use protocol::{ALL_SOURCES, Sample, SampleKind};

pub(crate) use ds_buffers::{DsBuffers, most_before};
pub use per_cpu::{MAX_SAMPLERS, SampleProducer, Subscriber};
pub use sample_stats::{BRANCH_STATS, CpuSampleStats, SampleStats};

use crate::suspend_time::SuspendTime;
pub(crate) use per_cpu::put;
use per_cpu::{CounterSubscriptions, PerCpu};

/// How often each processor ticks while something is sampled, per second.
pub const TICKS_PER_SECOND: u32 = 100;

/// What an interrupt found.
#[derive(Debug, Clone, Copy)]
pub struct Interrupted {
    /// Instruction pointer.
    pub ip: u64,
    /// Process, 0 for the idle one.
    pub process: u32,
    /// Thread.
    pub thread: u32,
    /// The mode, one of [`protocol::modes`].
    pub modes: u32,
}

/// The HAL functions, and who gets the samples of which counter.
#[derive(Debug)]
pub struct Sampler {
    hal: Hal,
    per_cpu: Box<[PerCpu]>,
    /// Time that interrupts may take between two ticks, in units of the clock.
    budget: AtomicU64,
    /// The clock's units in a second.
    clock: u64,
    sleeps: SuspendTime,
}

/// How many interrupts there were.
#[derive(Debug, Clone, Copy, Default)]
pub struct Interrupts {
    /// All.
    pub served: u64,
    /// In which no counter of ours had overflowed.
    pub spurious: u64,
    /// After which a processor had spent its budget.
    pub throttles: u64,
}

impl Sampler {
    /// Over these HAL functions, with a clock of so many units per second; `None` when memory is short.
    pub fn new(hal: Hal, maximum_processors: u32, clock: u64) -> Option<Self> {
        let per_cpu = state::allocate(maximum_processors, 1)?;
        Some(Self { hal, per_cpu, budget: AtomicU64::new(0), clock, sleeps: SuspendTime::default() })
    }

    /// The HAL functions.
    pub const fn hal(&self) -> &Hal {
        &self.hal
    }

    /// The clock's units in a second.
    pub const fn clock(&self) -> u64 {
        self.clock
    }

    /// Interrupts may take so many thousandths of a processor's time from now on.
    pub fn set_budget(&self, thousandths: u32) {
        let tick = self.clock / u64::from(TICKS_PER_SECOND);
        self.budget.store(tick * u64::from(thousandths) / 1_000, Ordering::Relaxed);
    }

    /// All interrupts since the sampler was made. Any IRQL.
    pub fn interrupts(&self) -> Interrupts {
        self.per_cpu.iter().map(PerCpu::interrupts).fold(Interrupts::default(), |sum, one| Interrupts {
            served: sum.served + one.served,
            spurious: sum.spurious + one.spurious,
            throttles: sum.throttles + one.throttles,
        })
    }

    fn subscriptions(&self, processor: ProcessorIndex, counter: u8) -> Option<&CounterSubscriptions> {
        self.per_cpu.get(processor.as_usize())?.subscriptions(counter)
    }

    /// Serves a performance monitor interrupt of the current processor: every counter that
    /// overflowed is loaded again, and its sample goes to who subscribed. Answers whether a ring has become half full.
    /// `clock` is read at the beginning and at the end.
    ///
    /// PROFILE_LEVEL. Nothing allocates, locks, waits or panics.
    #[inline]
    pub fn interrupt(
        &self,
        current: CurrentCpu<'_, impl Cpu>,
        clock: impl Fn() -> u64,
        interrupted: &Interrupted,
    ) -> bool {
        let Some(per_cpu) = self.per_cpu.get(current.index().as_usize()) else { return false };
        let begin = clock();
        if per_cpu.is_special() {
            return self.interrupt_special(current, per_cpu, begin, clock, interrupted);
        }
        self.serve::<false>(current, per_cpu, begin, clock, interrupted)
    }

    /// The same with the Debug Store in use, or where nothing should interrupt.
    #[cold]
    #[inline(never)]
    fn interrupt_special(
        &self,
        current: CurrentCpu<'_, impl Cpu>,
        per_cpu: &PerCpu,
        begin: u64,
        clock: impl Fn() -> u64,
        interrupted: &Interrupted,
    ) -> bool {
        if per_cpu.is_silenced() {
            self.keep_silent(current, per_cpu);
            return false;
        }
        let watermark_hit = self.fetch(current, begin, Some(interrupted));
        self.serve::<true>(current, per_cpu, begin, clock, interrupted) || watermark_hit
    }

    /// The counters of an interrupt. Twice in the program, so that the Debug Store costs nothing where it is not in use.
    #[expect(clippy::inline_always, reason = "counted: a call costs what the handler's target does not leave")]
    #[inline(always)]
    fn serve<const STORING: bool>(
        &self,
        current: CurrentCpu<'_, impl Cpu>,
        per_cpu: &PerCpu,
        begin: u64,
        clock: impl Fn() -> u64,
        interrupted: &Interrupted,
    ) -> bool {
        let pebs_sequence = if STORING { per_cpu.pebs_sequence() } else { 0 };
        let overflowed = self.hal.interrupt(current, |_| ()).0;
        let mut watermark_hit = false;
        for (counter, subscriptions) in
            overflowed.iter().filter_map(|counter| Some((counter, per_cpu.subscriptions(counter)?)))
        {
            let (source, interval) = subscriptions.loaded();
            if subscriptions.frequency().is_some() {
                subscriptions.reloaded(self.hal.row(current.index()).get(counter).interval());
            }
            watermark_hit |= per_cpu.deliver(
                subscriptions,
                counter,
                Sample {
                    time: begin,
                    ip: interrupted.ip,
                    process: interrupted.process,
                    thread: interrupted.thread,
                    processor: current.index().number(),
                    source,
                    interval,
                    kind: SampleKind::Sample as u16,
                    modes: (interrupted.modes & 0xFFFF) as u16,
                    pebs_sequence,
                },
            );
        }
        if overflowed.is_empty() && !(STORING && per_cpu.has_fetched()) {
            watermark_hit |= self.note_spurious(current, per_cpu, begin);
        } else {
            per_cpu.count_served();
        }
        let end = clock();
        if per_cpu.throttle.spend(end.wrapping_sub(begin), self.budget.load(Ordering::Relaxed)) {
            watermark_hit |= self.pause(current, per_cpu, end);
        }
        watermark_hit
    }

    /// Nothing is sampled on the processor from now on, until the next tick.
    #[cold]
    fn pause(&self, current: CurrentCpu<'_, impl Cpu>, per_cpu: &PerCpu, now: u64) -> bool {
        let sampling = self.hal.row(current.index()).counters(CounterState::is_sampling);
        if sampling.is_empty() && per_cpu.throttle.is_waiting() {
            return false; // an interrupt that was on its way when the pause began
        }
        let late = self.stop(current, per_cpu, sampling, now);
        let traced = self.pause_branches(current, true, now);
        for (counter, subscriptions) in
            late.iter().filter_map(|counter| Some((counter, self.subscriptions(current.index(), counter)?)))
        {
            per_cpu.stats(subscriptions, counter, SampleStats::throttle);
        }
        per_cpu.throttle.begin(sampling, traced, now);
        per_cpu.tell(&event(SampleKind::Throttled, current.index(), now, 0))
    }

    /// Recovers overflows whose interrupts were lost, lets a throttled processor, the current one, go on, and moves the
    /// intervals towards the frequencies wanted. Answers whether a ring has become half full. PROFILE_LEVEL.
    pub fn tick(&self, current: CurrentCpu<'_, impl Cpu>, now: u64) -> bool {
        let Some(per_cpu) = self.per_cpu.get(current.index().as_usize()) else { return false };
        let mut watermark_hit = false;
        if per_cpu.has_ds_buffers() {
            // Should the interrupt have come while it was masked.
            watermark_hit = self.fetch(current, now, None) | per_cpu.take_watermark_hit();
        }
        self.recover(current, per_cpu);
        watermark_hit |= per_cpu.tell_silenced(&event(SampleKind::Silenced, current.index(), now, 0));
        if let Some((counters, traced, since)) = per_cpu.throttle.next_window() {
            self.start(current, counters);
            if traced {
                self.pause_branches(current, false, now);
            }
            watermark_hit |= per_cpu.tell(&event(SampleKind::Resumed, current.index(), now, now.wrapping_sub(since)));
        }
        let elapsed = per_cpu.elapsed(now);
        let row = self.hal.row(current.index());
        for (counter, subscriptions) in per_cpu.all_subscriptions() {
            let state = row.get(counter);
            if let Some(frequency) = subscriptions.frequency().filter(|_| state.is_sampling()) {
                let events = subscriptions.events_since(self.count(current, counter, now));
                let interval = frequency::next(state.interval(), events, elapsed, self.clock, frequency);
                self.hal.set_counter_interval(current.index(), counter, interval);
            }
        }
        watermark_hit
    }

    /// The account of sleeps, in units of the clock. Who puts the machine to sleep [begins](SuspendTime::begin) one before
    /// the first processor is asleep, and [ends](SuspendTime::end) it before the first is awake.
    pub const fn sleeps(&self) -> &SuspendTime {
        &self.sleeps
    }

    /// For how long the machine slept up to now, in units of 100 ns.
    pub fn asleep(&self, now: u64) -> u64 {
        const UNITS: u128 = 10_000_000;
        let units = u128::from(self.sleeps.asleep(now)) * UNITS / u128::from(self.clock.max(1));
        u64::try_from(units).unwrap_or(u64::MAX)
    }

    /// The machine is about to sleep: the current processor, stops counting, and its registers
    /// are as they were found. What had overflowed with nobody serving it is lost. PROFILE_LEVEL.
    pub fn fall_asleep(&self, current: CurrentCpu<'_, impl Cpu>, now: u64) {
        let late = self.without_records(current, now, || self.hal.save(current).0);
        if let Some(per_cpu) = self.per_cpu.get(current.index().as_usize()) {
            self.suspend(current, per_cpu, now);
            for (counter, subscriptions) in
                late.iter().filter_map(|counter| Some((counter, per_cpu.subscriptions(counter)?)))
            {
                per_cpu.stats(subscriptions, counter, SampleStats::lose);
            }
        }
    }

    /// The machine is awake after so long: what counted on the current processor, goes on.
    /// Answers whether a ring has become half full. PROFILE_LEVEL.
    pub fn wake(&self, current: CurrentCpu<'_, impl Cpu>, now: u64, slept: u64) -> bool {
        if self.hal.interrupt_handler().is_some() {
            // The HAL has set the entry up again; what it is, if not, is not ours to say.
            let _ = lvt_pmi::enable(current.cpu());
        }
        if let Some(per_cpu) = self.per_cpu.get(current.index().as_usize()) {
            self.resume(current, per_cpu);
        }
        self.hal.restore(current);
        let record = event(SampleKind::Slept, current.index(), now, slept);
        self.per_cpu.get(current.index().as_usize()).is_some_and(|per_cpu| per_cpu.tell(&record))
    }

    /// Starts counters that were reserved on the current processor. PROFILE_LEVEL.
    pub fn start(&self, current: CurrentCpu<'_, impl Cpu>, counters: CounterSet) {
        for counter in counters.iter() {
            if let Some(subscriptions) = self.subscriptions(current.index(), counter) {
                let state = self.hal.row(current.index()).get(counter);
                subscriptions.set_source(self.hal.source(state).0);
                subscriptions.reloaded(state.interval());
            }
        }
        self.record(current, counters);
        self.hal.start(current, counters);
    }

    /// From now on the samples of `counters` of the current processor, go to `subscriber` too.
    /// PROFILE_LEVEL.
    pub fn subscribe(
        &self,
        current: CurrentCpu<'_, impl Cpu>,
        subscriber: Subscriber,
        producer: SampleProducer,
        counters: CounterSet,
    ) {
        // Its slot is empty: the engine gives a place to one session at a time.
        put(self.per_cpu.get(current.index().as_usize()).and_then(|per_cpu| per_cpu.slot(subscriber)), producer);
        for subscriptions in counters.iter().filter_map(|counter| self.subscriptions(current.index(), counter)) {
            subscriptions.add(subscriber);
        }
    }

    /// Samples per second towards which the interval of a counter that nobody has subscribed to yet is moved. It does
    /// not run.
    pub fn set_frequency(&self, processor: ProcessorIndex, counter: u8, frequency: u32) {
        if let Some(subscriptions) = self.subscriptions(processor, counter) {
            subscriptions.set_frequency(frequency);
        }
    }

    /// Whether the interval of a counter is moved. Any IRQL.
    pub fn is_moved(&self, processor: ProcessorIndex, counter: u8) -> bool {
        self.subscriptions(processor, counter).is_some_and(|subscriptions| subscriptions.frequency().is_some())
    }

    /// Who gets the samples of a counter. Any IRQL.
    pub fn subscribers(&self, processor: ProcessorIndex, counter: u8) -> impl Iterator<Item = Subscriber> + use<> {
        self.subscriptions(processor, counter).map(CounterSubscriptions::subscribers).unwrap_or_default().iter()
    }

    /// The samples of `counters` of the current processor, go to `subscriber` no more; those that
    /// nobody else has subscribed to are stopped. What had overflowed with nobody serving it is lost. PROFILE_LEVEL.
    pub fn leave(&self, current: CurrentCpu<'_, impl Cpu>, subscriber: Subscriber, counters: CounterSet, now: u64) {
        let Some(per_cpu) = self.per_cpu.get(current.index().as_usize()) else { return };
        let (mut alone, mut shared) = (CounterSet::NONE, CounterSet::NONE);
        for counter in counters.iter() {
            match self.subscriptions(current.index(), counter) {
                Some(subscriptions) if subscriptions.has_others(subscriber) => shared = shared.with(counter),
                _ => alone = alone.with(counter),
            }
        }
        let mut late = self.stop(current, per_cpu, alone, now);
        if !shared.is_empty() {
            late = late.or(self.hal.check_overflow(current).0.and(shared));
        }
        for counter in late.iter() {
            per_cpu.count_for(subscriber, counter, SampleStats::lose);
        }
        // Now only: what was recorded before the stop was still this one's.
        for subscriptions in counters.iter().filter_map(|counter| per_cpu.subscriptions(counter)) {
            subscriptions.remove(subscriber);
        }
        per_cpu.throttle.forget(alone);
    }

    /// Takes a subscriber's end of its ring back on the current processor, once it has left
    /// every counter. PROFILE_LEVEL.
    pub fn withdraw(&self, current: CurrentCpu<'_, impl Cpu>, subscriber: Subscriber) -> Option<SampleProducer> {
        self.per_cpu.get(current.index().as_usize())?.withdraw(subscriber)
    }
}

/// A record that is no sample.
const fn event(kind: SampleKind, processor: ProcessorIndex, time: u64, value: u64) -> Sample {
    Sample {
        time,
        ip: value,
        process: 0,
        thread: 0,
        processor: processor.number(),
        source: ALL_SOURCES,
        interval: 0,
        kind: kind as u16,
        modes: 0,
        pebs_sequence: 0,
    }
}
