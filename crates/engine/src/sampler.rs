//! Code that runs at PROFILE_LEVEL while a session samples: the interrupt of a counter that overflowed, and the tick
//! that resumes a throttled processor.
//!
//! Each processor has a [`PerCpuSampling`] in its [`pmu::PerCpu`], which only that processor accesses, at
//! PROFILE_LEVEL. An interrupt cannot occur in between, so that its parts need no lock and no memory order. The samples
//! leave through rings, which the sessions read.

mod branch_stack;
mod conditions;
mod connection;
mod counters;
#[cfg(test)]
mod counting_cpu;
mod disconnection;
mod disturbance;
mod ds_buffers;
mod expiry;
mod frequency;
mod groups;
mod handler_clock;
mod ibs_samples;
mod ibs_unit;
mod last_branches;
mod per_cpu;
mod recording;
mod recovery;
mod rotations;
mod sample_stats;
mod storm;
mod subscriptions;
mod throttle;
mod time_sampling;
mod trace_sessions;
mod tracing;
mod window;

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use pmu::hal::OverflowStatus;
use pmu::state::{CounterSet, CounterState};
use pmu::{Cpu, CurrentCpu, PerCpu, ProcessorIndex};
use protocol::{CounterKind, CounterSample, Mode, PauseKind, PauseRecord, SampleRecord, StopKind, StopRecord};

pub(crate) use branch_stack::BranchStack;
pub(crate) use ds_buffers::{DsBuffers, buffer_pages_log2, most_before};
pub(crate) use groups::Group;
pub(crate) use ibs_unit::IbsUnit;
pub use per_cpu::SampleProducer;
pub use sample_stats::{BRANCH_STATS, CpuSampleStats, SampleNumbers, SampleStats, TIME_STATS};
pub use time_sampling::intervals;
pub(crate) use window::MAX_CONDITIONS;

use crate::suspend_time::SuspendTime;
use crate::time::{Duration100ns, Ticks};
use handler_clock::has_invariant_time_stamps;
pub(crate) use per_cpu::put_or_leak;
use per_cpu::{Interrupts, PerCpuSampling};
use subscriptions::CounterSubscriptions;
pub use subscriptions::{MAX_SAMPLERS, Subscriber, Subscribers};
use throttle::{MAX_WINDOW, OVERHEAD, share_of};
pub use tracing::TraceEvent;
use tracing::{EventKey, Unsampled};

/// Ticks of each processor per second while a session samples.
pub const TICKS_PER_SECOND: u32 = 100;

/// Code that an interrupt interrupted.
#[derive(Debug, Clone, Copy)]
pub struct Interrupted {
    /// Instruction pointer.
    pub ip: u64,
    /// Process, 0 for the idle process.
    pub process: u32,
    /// Thread.
    pub thread: u32,
    /// Mode.
    pub mode: Mode,
}

/// The HAL functions, with what the sampler keeps for each processor.
pub type Hal = pmu::Hal<PerCpuSampling>;

/// The HAL functions, and the subscribers of the samples of each counter.
#[derive(Debug)]
pub struct Sampler {
    hal: Hal,
    /// Share of the time of a processor that interrupts may take, in thousandths.
    budget: AtomicU32,
    /// Units of the clock per second.
    clock: u64,
    /// Time of an interrupt before and after what it measures.
    overhead: Ticks,
    sleeps: SuspendTime,
    /// Whether events for Event Tracing for Windows are wanted.
    wants_events: AtomicBool,
}

/// Says that a branch is rare, or each interrupt would prepare its result.
#[cold]
const fn nothing() -> Deferred {
    Deferred { reader: false, events: false }
}

/// What is left to do after an interrupt or a tick, where PROFILE_LEVEL does not allow it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[must_use]
pub struct Deferred {
    /// A ring has become half full: a reader can be woken.
    pub reader: bool,
    /// Events are to be written: [`Sampler::take_event`].
    pub events: bool,
}

impl Sampler {
    /// Makes a sampler for a clock with `clock` units per second.
    pub fn new(hal: Hal, clock: u64) -> Self {
        let overhead = Ticks(clock.saturating_mul(OVERHEAD).div_ceil(1_000_000_000));
        let sleeps = SuspendTime::default();
        hal.each_cpu().map(PerCpu::extension).for_each(PerCpuSampling::put_events);
        Self { hal, budget: AtomicU32::new(0), clock, overhead, sleeps, wants_events: AtomicBool::new(false) }
    }

    /// Returns what the sampler keeps for a processor, or `None` if the processor does not exist.
    #[inline]
    fn per_cpu(&self, processor: ProcessorIndex) -> Option<&PerCpuSampling> {
        self.hal.per_cpu(processor).map(PerCpu::extension)
    }

    fn each_cpu(&self) -> impl Iterator<Item = &PerCpuSampling> {
        self.hal.each_cpu().map(PerCpu::extension)
    }

    /// Returns the HAL functions.
    pub const fn hal(&self) -> &Hal {
        &self.hal
    }

    /// Returns the units of the clock per second.
    pub const fn clock(&self) -> u64 {
        self.clock
    }

    /// Sets the share of the time of a processor that interrupts may take, in thousandths. Each processor takes it over
    /// at its next tick; a session that [subscribes](Self::subscribe) afterwards brings a lower one at once.
    pub fn set_budget(&self, thousandths: u32) {
        self.budget.store(thousandths, Ordering::Relaxed);
    }

    fn budget(&self) -> u32 {
        self.budget.load(Ordering::Relaxed)
    }

    /// Returns the time between two ticks at their nominal rate.
    fn nominal_tick(&self) -> Ticks {
        Ticks(self.clock / u64::from(TICKS_PER_SECOND))
    }

    /// Returns the numbers of all interrupts since the sampler was made.
    ///
    /// # IRQL
    /// Any.
    pub fn interrupts(&self) -> Interrupts {
        self.each_cpu().map(PerCpuSampling::interrupts).fold(Interrupts::default(), |sum, one| Interrupts {
            served: sum.served + one.served,
            spurious: sum.spurious + one.spurious,
            throttles: sum.throttles + one.throttles,
        })
    }

    fn subscriptions(&self, processor: ProcessorIndex, counter: u8) -> Option<&CounterSubscriptions> {
        self.per_cpu(processor)?.subscriptions(counter)
    }

    /// Serves a performance monitor interrupt of the current processor: loads every counter that overflowed again, and
    /// delivers its sample to the subscribers. Reads `clock` at the beginning, and again at the end where the
    /// time-stamp counter does not serve. Nothing allocates, locks, waits or panics.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    #[inline]
    pub fn interrupt(
        &self,
        current: CurrentCpu<'_, impl Cpu>,
        clock: impl Fn() -> Ticks,
        interrupted: &Interrupted,
    ) -> Deferred {
        let Some(owned) = self.hal.per_cpu(current.index()) else { return nothing() };
        let begin = (clock(), current.cpu().time_stamp());
        if owned.extension().is_special() {
            return self.interrupt_special(current, owned, begin, clock, interrupted);
        }
        Deferred { reader: self.serve::<false>(current, owned, begin, clock, interrupted), events: false }
    }

    /// Serves an interrupt while the Debug Store is in use, events are wanted, a subscriber has a condition or last
    /// branches are recorded, or on a silenced processor. `begin` has the clock and the time-stamp counter at its
    /// beginning.
    #[cold]
    #[inline(never)]
    fn interrupt_special(
        &self,
        current: CurrentCpu<'_, impl Cpu>,
        owned: &PerCpu<PerCpuSampling>,
        begin: (Ticks, u64),
        clock: impl Fn() -> Ticks,
        interrupted: &Interrupted,
    ) -> Deferred {
        let per_cpu = owned.extension();
        if per_cpu.is_silenced() {
            self.keep_silent(current, per_cpu);
            return Deferred::default();
        }
        let fetched = self.fetch(current, per_cpu, begin.0, Some(interrupted));
        let has_branches = per_cpu.has_branch_stack();
        if has_branches {
            Self::read_branches(current, per_cpu);
        }
        let reader = self.serve::<true>(current, owned, begin, clock, interrupted) || fetched;
        if has_branches {
            Self::record_on(current, per_cpu);
        }
        Deferred { reader, events: per_cpu.has_events() }
    }

    /// Serves the counters of an interrupt. Compiled twice, so that the Debug Store, events and conditions cost
    /// nothing while they are not in use.
    #[expect(clippy::inline_always, reason = "counted: a call costs what the handler's target does not leave")]
    #[inline(always)]
    fn serve<const SPECIAL: bool>(
        &self,
        current: CurrentCpu<'_, impl Cpu>,
        owned: &PerCpu<PerCpuSampling>,
        (begin, stamp): (Ticks, u64),
        clock: impl Fn() -> Ticks,
        interrupted: &Interrupted,
    ) -> bool {
        let per_cpu = owned.extension();
        let (pebs_sequence, cookie) = if SPECIAL { (per_cpu.pebs_sequence(), per_cpu.next_cookie()) } else { (0, 0) };
        let OverflowStatus(overflowed) = self.hal.serve::<SPECIAL>(current, owned);
        for (counter, subscriptions) in per_cpu.subscriptions_of(overflowed) {
            let ([processor, event], interval) = (subscriptions.place(), subscriptions.loaded());
            let (mut subscribers, is_adapted) = subscriptions.flags();
            if is_adapted {
                self.adapt_early(current.index(), owned, counter);
            }
            let sample = CounterSample {
                time: begin.0,
                ip: interrupted.ip,
                process: interrupted.process,
                thread: interrupted.thread,
                processor,
                event,
                interval,
                kind: CounterKind::Sample,
                mode: interrupted.mode,
                pebs_sequence,
                cookie,
            };
            if SPECIAL && per_cpu.has_conditions() {
                subscribers = self.choose(current, per_cpu, counter, subscribers);
            }
            if SPECIAL && per_cpu.has_ibs_unit() {
                subscribers = self.deliver_ibs(current, per_cpu, subscribers, &sample, counter);
            }
            if SPECIAL && !subscribers.is_empty() {
                per_cpu.with_events(|events| events.add_sample(counter, per_cpu.event(counter), &sample));
            }
            if SPECIAL {
                per_cpu.deliver_rare(subscribers, counter, &SampleRecord::from(sample));
            } else {
                per_cpu.deliver(subscribers, counter, &SampleRecord::from(sample));
            }
            if SPECIAL && per_cpu.has_branch_stack() {
                Self::deliver_branches(per_cpu, subscribers, &sample);
            }
        }
        if overflowed.is_empty() && !(SPECIAL && per_cpu.has_fetched()) {
            if self.note_spurious(current, per_cpu, begin) {
                per_cpu.note_watermark_hit();
            }
        } else {
            per_cpu.count_served();
        }
        let stamps = || current.cpu().time_stamp().wrapping_sub(stamp);
        let measured = per_cpu.handler_clock.duration(stamps).unwrap_or_else(|| clock().since(begin));
        if per_cpu.throttle.spend(measured, self.overhead) && self.pause(current, per_cpu, begin.after(measured)) {
            per_cpu.note_watermark_hit();
        }
        per_cpu.take_watermark_hit()
    }

    /// Lengthens the interval of a counter whose samples come much too often, without waiting for the next tick.
    #[inline(never)]
    fn adapt_early(&self, processor: ProcessorIndex, owned: &PerCpu<PerCpuSampling>, counter: u8) {
        let Some(subscriptions) = owned.extension().subscriptions(counter) else { return };
        let loaded = owned.interval(counter);
        subscriptions.reloaded(loaded);
        if let Some(longer) = subscriptions.after_overflow(loaded).filter(|next| *next != loaded) {
            self.hal.set_counter_interval(processor, counter, longer);
        }
    }

    /// Stops sampling on the current processor until the next tick.
    #[cold]
    #[inline(never)]
    fn pause(&self, current: CurrentCpu<'_, impl Cpu>, per_cpu: &PerCpuSampling, now: Ticks) -> bool {
        let sampling = self.hal.cpu_counters(current.index()).counters(CounterState::is_sampling);
        if sampling.is_empty() && per_cpu.throttle.is_waiting() {
            return false; // an interrupt that was on its way when the pause began
        }
        self.compare(current, now);
        let late = self.stop(current, per_cpu, sampling, now);
        let traced = self.pause_branches(current, per_cpu, true, now);
        per_cpu.count_overflows(late, Unsampled::Throttled);
        per_cpu.throttle.begin(sampling, traced, per_cpu.samples_by_time(), now);
        per_cpu.push_to_all(&stopped(StopKind::Throttled, current.index(), now))
    }

    /// Repairs registers that another program changed, recovers overflows whose interrupts were lost, resumes the
    /// current processor if it is throttled, and adapts the intervals to the frequencies of the sessions.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn tick(&self, current: CurrentCpu<'_, impl Cpu>, now: Ticks) -> Deferred {
        let Some(per_cpu) = self.per_cpu(current.index()) else { return Deferred::default() };
        self.follow_trace_sessions(per_cpu);
        let mut watermark_hit = false;
        if self.is_interrupting(current, per_cpu) {
            self.repair(current, now);
        }
        if per_cpu.has_ds_buffers() {
            // The interrupt may have come while it was masked.
            watermark_hit = self.fetch(current, per_cpu, now, None) | per_cpu.take_watermark_hit();
        }
        if per_cpu.has_branch_stack() {
            self.compare_branches(current, per_cpu, now);
        }
        if per_cpu.has_ibs_unit() {
            self.compare_ibs(current, per_cpu, now);
        }
        watermark_hit |= self.recover(current, per_cpu, now);
        watermark_hit |= per_cpu.push_silenced(&stopped(StopKind::Silenced, current.index(), now));
        watermark_hit |= self.resume_at(current, per_cpu, now);
        per_cpu.handler_clock.tick(now, current.cpu().time_stamp());
        let elapsed = per_cpu.elapsed(now);
        let cpu_counters = self.hal.cpu_counters(current.index());
        for (counter, subscriptions) in per_cpu.all_subscriptions() {
            let state = cpu_counters.get(counter);
            if let Some(frequency) = subscriptions.frequency().filter(|_| state.is_sampling()) {
                let events = subscriptions.events_since(self.count(current, counter, now));
                let interval = frequency::next(state.interval(), events, elapsed, self.clock, frequency);
                self.hal.set_counter_interval(current.index(), counter, interval);
            }
        }
        Deferred { reader: watermark_hit, events: per_cpu.has_events() }
    }

    /// Extends the window of the budget, and resumes the current processor if it is throttled. Returns whether a ring
    /// has become half full.
    fn resume_at(&self, current: CurrentCpu<'_, impl Cpu>, per_cpu: &PerCpuSampling, now: Ticks) -> bool {
        per_cpu.throttle.extend(now, self.budget(), Ticks(self.nominal_tick().0 * MAX_WINDOW));
        let Some((counters, traced, since)) = per_cpu.throttle.resume() else { return false };
        // While all counters that interrupt are throttled, ticks compare nothing, and the start removes the traces.
        self.repair(current, now);
        self.start(current, counters);
        if traced {
            self.pause_branches(current, per_cpu, false, now);
        }
        per_cpu.push_to_all(&paused(PauseKind::Resumed, current.index(), now, now.since(since)))
    }

    /// Returns the account of sleeps. The caller [begins](SuspendTime::begin) a sleep before the
    /// first processor is asleep, and [ends](SuspendTime::end) it before the first processor is awake.
    pub const fn sleeps(&self) -> &SuspendTime {
        &self.sleeps
    }

    /// Returns how long the machine has slept up to `now`.
    pub fn asleep(&self, now: Ticks) -> Duration100ns {
        self.sleeps.asleep(now).duration(self.clock)
    }

    /// Stops the counters of the current processor before the machine sleeps, and restores the registers as they were
    /// found. Overflows that were not served yet are counted as lost.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn fall_asleep(&self, current: CurrentCpu<'_, impl Cpu>, now: Ticks) {
        let Some(per_cpu) = self.per_cpu(current.index()) else { return };
        self.compare(current, now);
        self.with_rotations(current, |rotation| rotation.update(current, &self.hal, now));
        let late = self.without_records(current, per_cpu, now, || self.hal.save(current).0);
        self.suspend(current, per_cpu, now);
        per_cpu.count_overflows(late, Unsampled::Lost);
    }

    /// Starts the counters of the current processor again after a sleep of the duration `slept`. Returns whether a
    /// ring has become half full.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn wake(&self, current: CurrentCpu<'_, impl Cpu>, now: Ticks, slept: Ticks) -> bool {
        let Some(per_cpu) = self.per_cpu(current.index()) else { return false };
        // Before the counters run, so that no overflow finds the entry masked.
        let samples = !per_cpu.is_silenced() && !per_cpu.interrupt_subscribers().is_empty();
        let watermark_hit = samples && Self::connect(current, per_cpu, now);
        self.resume(current, per_cpu);
        self.with_rotations(current, |rotation| rotation.wake(now));
        Self::exclude_sleep(per_cpu, slept, now);
        per_cpu.push_to_all(&paused(PauseKind::Slept, current.index(), now, slept)) || watermark_hit
    }

    fn event_key(&self, state: CounterState) -> EventKey {
        EventKey {
            source: self.hal.source(state).0,
            extra: self.hal.events.extra_of(state).map_or(0, |extra| extra.value),
        }
    }

    /// Delivers the samples of `counters` of the current processor to `subscriber` as well.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    #[inline(never)] // for the stack of its caller
    pub fn subscribe(
        &self,
        current: CurrentCpu<'_, impl Cpu>,
        subscriber: Subscriber,
        producer: SampleProducer,
        counters: CounterSet,
        now: Ticks,
    ) {
        // The slot is empty: the engine gives a number to one session at a time.
        let Some(per_cpu) = self.per_cpu(current.index()) else { return put_or_leak(None, producer) };
        self.follow_trace_sessions(per_cpu);
        let first = share_of(self.nominal_tick(), self.budget());
        if per_cpu.has_producers() {
            per_cpu.throttle.limit(first);
        } else {
            // The last tick was one of a session that has ended.
            per_cpu.elapsed(now);
            per_cpu.throttle.open(now, first);
            per_cpu.handler_clock.open(has_invariant_time_stamps(current.cpu()), now, current.cpu().time_stamp());
        }
        put_or_leak(per_cpu.slot(subscriber), producer);
        for (counter, subscriptions) in per_cpu.subscriptions_of(counters) {
            let has_condition = |producer: &mut SampleProducer| producer.side().window(counter).is_some();
            subscriptions.add(subscriber, per_cpu.with(subscriber, has_condition) == Some(true));
        }
        per_cpu.note_conditions();
        self.begin_windows(current, counters); // of those that count for another session already
    }

    /// Sets the samples per second to which the interval of a counter is adapted. The counter has no subscriber yet,
    /// and does not run.
    pub fn set_frequency(&self, processor: ProcessorIndex, counter: u8, frequency: u32) {
        if let Some(subscriptions) = self.subscriptions(processor, counter) {
            subscriptions.set_frequency(frequency);
        }
    }

    /// Returns whether the interval of a counter is adapted to a frequency.
    ///
    /// # IRQL
    /// Any.
    pub fn is_moved(&self, processor: ProcessorIndex, counter: u8) -> bool {
        self.subscriptions(processor, counter).is_some_and(|subscriptions| subscriptions.frequency().is_some())
    }

    /// Returns the subscribers of a counter.
    ///
    /// # IRQL
    /// Any.
    pub fn subscribers(&self, processor: ProcessorIndex, counter: u8) -> impl Iterator<Item = Subscriber> + use<> {
        self.subscriptions(processor, counter).map(CounterSubscriptions::subscribers).unwrap_or_default().iter()
    }

    /// Returns the producer of a subscriber from the current processor, once it has left every counter.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn withdraw(&self, current: CurrentCpu<'_, impl Cpu>, subscriber: Subscriber) -> Option<SampleProducer> {
        self.per_cpu(current.index())?.withdraw(subscriber)
    }
}

/// Returns the record that sampling stopped on a processor.
fn stopped(kind: StopKind, processor: ProcessorIndex, time: Ticks) -> SampleRecord {
    StopRecord::new(kind, time.0, processor.number()).into()
}

/// Returns the record that sampling goes on after a pause on a processor.
fn paused(kind: PauseKind, processor: ProcessorIndex, time: Ticks, duration: Ticks) -> SampleRecord {
    PauseRecord::new(kind, time.0, processor.number(), duration.0).into()
}
