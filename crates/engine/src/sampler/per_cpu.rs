//! What the sampler keeps for each processor: subscribers, rings, budget and statistics of the interrupt.

use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};

use pmu::state::CounterSet;
use protocol::SampleRecord;
use sample_ring::{Producer, Pushed, Slot};

use super::branch_stack::BranchStack;
use super::disconnection::{self, Disconnection};
use super::ds_buffers::DsBuffers;
use super::groups::Groups;
use super::handler_clock::HandlerClock;
use super::ibs_unit::IbsUnit;
use super::sample_stats::{CpuSampleStats, SampleStats, add_one};
use super::storm::Storm;
use super::subscriptions::{CounterSubscriptions, MAX_SAMPLERS, Subscriber, Subscribers};
use super::throttle::Throttle;
use super::tracing::{EventCell, EventKey, Unsampled, UnwrittenEvents};
use crate::boxed::Boxed;
use crate::rotation::{MAX_ROTATIONS, Rotation};
use crate::sync::{AtomicU64, array, const_fn};
use crate::time::Ticks;

/// Writing end of the ring of a session.
pub type SampleProducer = Producer<SampleRecord, CpuSampleStats>;

/// Numbers of interrupts.
#[derive(Debug, Clone, Copy, Default)]
pub struct Interrupts {
    /// All interrupts.
    pub served: u64,
    /// Interrupts that found no overflow of the driver's counters.
    pub spurious: u64,
    /// Interrupts after which a processor had spent its budget.
    pub throttles: u64,
}

/// Puts the writing end of a ring into an empty slot. An end without a slot leaks, since memory cannot be freed here.
///
/// # IRQL
/// PROFILE_LEVEL.
pub fn put_or_leak(slot: Option<&Slot<SampleProducer>>, producer: SampleProducer) {
    core::mem::forget(match slot {
        Some(slot) => slot.try_put(producer).err(),
        None => Some(producer),
    });
}

/// The Debug Store of the processor is in use.
const STORED: u8 = 1;

/// The processor is silenced: spurious interrupts came in a storm.
const SILENCED: u8 = 1 << 1;

/// Events for Event Tracing for Windows are wanted.
const WANTS_EVENTS: u8 = 1 << 2;

/// A subscriber has a condition.
const CONDITIONAL: u8 = 1 << 3;

/// Last branches are recorded.
const BRANCHING: u8 = 1 << 4;

/// Ops are sampled.
const USES_IBS: u8 = 1 << 5;

/// What the sampler keeps for each processor, in its [`pmu::PerCpu`]. Only the processor accesses it, at PROFILE_LEVEL.
#[derive(Debug)]
pub struct PerCpuSampling {
    all_subscriptions: [CounterSubscriptions; CounterSet::MOST as usize],
    producers: [Slot<SampleProducer>; MAX_SAMPLERS as usize],
    /// Time in the handler.
    pub throttle: Throttle,
    /// How that time is measured.
    pub handler_clock: HandlerClock,
    served: AtomicU64,
    spurious: AtomicU64,
    /// Spurious interrupts in a row.
    pub storm: Storm,
    /// Counters, as a set, that had overflowed and waited for their interrupt at the last tick.
    waiting: AtomicU32,
    /// Interrupts up to the last tick.
    interrupts: AtomicU64,
    /// Subscribers, as a set, that have no record of the silence yet.
    unreported: AtomicU8,
    /// Whether the counters do not interrupt.
    pub disconnection: Disconnection,
    /// Time of the last tick.
    ticked: AtomicU64,
    /// Debug Store of the processor, while a session uses it.
    ds_buffers: Slot<Boxed<DsBuffers>>,
    /// Last branches, while a session records them.
    branch_stack: Slot<Boxed<BranchStack>>,
    /// Sampling of ops, while a session samples them.
    ibs_unit: Slot<Boxed<IbsUnit>>,
    /// A combination of [`STORED`], [`SILENCED`], [`WANTS_EVENTS`], [`CONDITIONAL`], [`BRANCHING`] and [`USES_IBS`],
    /// which each interrupt reads.
    special: AtomicU8,
    /// Events that were not written yet, while they are wanted.
    events: Slot<UnwrittenEvents>,
    /// Number of the last interrupt that has events.
    last_cookie: AtomicU32,
    /// Records were fetched in this interrupt.
    fetched: AtomicBool,
    /// A ring has become half full outside of an interrupt.
    watermark_hit: AtomicBool,
    /// Precise records that the processor had written at the last interrupt: the low half of their number.
    pebs_sequence: AtomicU32,
    /// Events that take turns on the counters.
    rotations: [Slot<Boxed<Rotation>>; MAX_ROTATIONS],
    /// Counters that programs read.
    pub groups: Groups,
    /// What each counter counts, for its events.
    event_cells: [EventCell; CounterSet::MOST as usize],
}

impl Default for PerCpuSampling {
    /// A constant, so that its parts are not built on the stack beside it, nor the whole beside its place.
    #[cfg(not(loom))]
    #[inline]
    fn default() -> Self {
        const { Self::new() }
    }

    #[cfg(loom)]
    fn default() -> Self {
        Self::new()
    }
}

impl PerCpuSampling {
    const_fn! {
        const fn new() -> Self {
            Self {
                all_subscriptions: [const { CounterSubscriptions::new() }; CounterSet::MOST as usize],
                producers: array![Slot::empty(); MAX_SAMPLERS as usize],
                throttle: Throttle::new(),
                handler_clock: HandlerClock::new(),
                served: AtomicU64::new(0),
                spurious: AtomicU64::new(0),
                storm: Storm::new(),
                waiting: AtomicU32::new(0),
                interrupts: AtomicU64::new(0),
                unreported: AtomicU8::new(0),
                disconnection: Disconnection::new(),
                ticked: AtomicU64::new(0),
                ds_buffers: Slot::empty(),
                branch_stack: Slot::empty(),
                ibs_unit: Slot::empty(),
                special: AtomicU8::new(0),
                events: Slot::empty(),
                last_cookie: AtomicU32::new(0),
                fetched: AtomicBool::new(false),
                watermark_hit: AtomicBool::new(false),
                pebs_sequence: AtomicU32::new(0),
                rotations: array![Slot::empty(); MAX_ROTATIONS],
                groups: Groups::new(),
                event_cells: [const { EventCell::new() }; CounterSet::MOST as usize],
            }
        }
    }

    /// Returns what a counter counts.
    #[inline]
    pub fn event(&self, counter: u8) -> EventKey {
        self.event_cells.get(usize::from(counter)).map(EventCell::get).unwrap_or_default()
    }

    /// Sets what a counter counts.
    pub fn set_event(&self, counter: u8, event: EventKey) {
        if let Some(cell) = self.event_cells.get(usize::from(counter)) {
            cell.set(event);
        }
    }

    /// Returns the subscriptions of a counter.
    #[inline]
    pub fn subscriptions(&self, counter: u8) -> Option<&CounterSubscriptions> {
        self.all_subscriptions.get(usize::from(counter))
    }

    /// Returns the subscriptions of these counters.
    #[inline]
    pub fn subscriptions_of(&self, counters: CounterSet) -> impl Iterator<Item = (u8, &CounterSubscriptions)> {
        counters.iter().filter_map(|counter| Some((counter, self.subscriptions(counter)?)))
    }

    /// Returns the subscriptions of every counter.
    pub fn all_subscriptions(&self) -> impl Iterator<Item = (u8, &CounterSubscriptions)> {
        (0..).zip(&self.all_subscriptions)
    }

    /// Returns whether interrupts take the uncommon path: the Debug Store is in use, the processor is silenced, events
    /// are wanted, a subscriber has a condition, last branches are recorded or ops sampled.
    #[inline]
    pub fn is_special(&self) -> bool {
        self.special() != 0
    }

    fn special(&self) -> u8 {
        self.special.load(Ordering::Relaxed)
    }

    fn set_special(&self, flag: u8, on: bool) {
        let others = self.special() & !flag;
        self.special.store(if on { others | flag } else { others }, Ordering::Relaxed);
    }

    /// Returns whether a subscriber has a condition.
    #[inline]
    pub fn has_conditions(&self) -> bool {
        self.special() & CONDITIONAL != 0
    }

    /// Notes whether a subscriber has a condition.
    #[inline(never)] // for the stack of its callers
    pub fn note_conditions(&self) {
        let has_condition = |(_, one): (u8, &CounterSubscriptions)| !one.conditional().is_empty();
        self.set_special(CONDITIONAL, self.all_subscriptions().any(has_condition));
    }

    /// Returns whether the Debug Store of the processor is in use.
    pub fn has_ds_buffers(&self) -> bool {
        self.special() & STORED != 0
    }

    /// Returns whether the processor is silenced.
    pub fn is_silenced(&self) -> bool {
        self.special() & SILENCED != 0
    }

    /// Puts the memory for events in its place. Called once, because it is too large for the stack of an interrupt.
    pub fn put_events(&self) {
        // The slot is empty, and the value has no memory of its own.
        let _ = self.events.try_put(UnwrittenEvents::default());
    }

    /// Returns whether events for Event Tracing for Windows are wanted.
    fn wants_events(&self) -> bool {
        self.special() & WANTS_EVENTS != 0
    }

    /// Sets whether they are wanted. Those that were not written are dropped.
    pub fn set_wants_events(&self, wanted: bool) {
        if wanted != self.wants_events() {
            self.set_special(WANTS_EVENTS, wanted);
            self.with_events(UnwrittenEvents::clear);
        }
    }

    /// Returns the cookie of a new interrupt; 0 if no events are wanted.
    #[inline]
    pub fn next_cookie(&self) -> u32 {
        if !self.wants_events() {
            return 0;
        }
        let next = self.last_cookie.load(Ordering::Relaxed).wrapping_add(1).max(1);
        self.last_cookie.store(next, Ordering::Relaxed);
        next
    }

    /// Returns whether events are to be written.
    #[inline]
    pub fn has_events(&self) -> bool {
        self.with_events(|events| events.has_any()) == Some(true)
    }

    /// Runs `work` with the events that were not written yet, if events are wanted.
    pub fn with_events<R>(&self, work: impl FnOnce(&mut UnwrittenEvents) -> R) -> Option<R> {
        if self.wants_events() { self.events.try_with(|events| work(events)) } else { None }
    }

    /// Marks the processor as silenced, which [`push_silenced`](Self::push_silenced) reports to every subscriber.
    pub fn silence(&self) {
        self.set_special(SILENCED, true);
        self.unreported.store(u8::MAX, Ordering::Relaxed);
    }

    /// Marks the processor as not silenced.
    pub fn end_silence(&self) {
        self.set_special(SILENCED, false);
    }

    /// Pushes the record of a silence for each subscriber that has none yet and has room in its ring. Returns
    /// whether a ring has become half full.
    pub fn push_silenced(&self, record: &SampleRecord) -> bool {
        self.push_untold(&self.unreported, record)
    }

    /// Pushes a record for each subscriber of the set that has room in its ring, and removes it from the set. Returns
    /// whether a ring has become half full.
    pub fn push_untold(&self, untold: &AtomicU8, record: &SampleRecord) -> bool {
        let mut watermark_hit = false;
        for subscriber in Subscribers::from_bits(untold.load(Ordering::Relaxed)).iter() {
            let pushed = self.with(subscriber, |producer| producer.push(*record));
            watermark_hit |= matches!(pushed, Some(Pushed::Stored { watermark_hit: true }));
            if !matches!(pushed, Some(Pushed::Full)) {
                disconnection::remove(untold, subscriber);
            }
        }
        watermark_hit
    }

    /// Returns the subscribers of counters and of branches, which need the interrupt.
    pub fn interrupt_subscribers(&self) -> Subscribers {
        let all = self.all_subscriptions().map(|(_, subscriptions)| subscriptions.subscribers());
        let traced = self.with_ds_buffers(|ds_buffers| ds_buffers.traced_for()).flatten();
        all.fold(traced.map_or(Subscribers::default(), |one| Subscribers::default().with(one)), Subscribers::or)
    }

    /// Puts the Debug Store into use.
    pub fn put_ds_buffers(&self, ds_buffers: Boxed<DsBuffers>) {
        // The slot is empty: one session at a time has the Debug Store. Memory cannot be freed here.
        core::mem::forget(self.ds_buffers.try_put(ds_buffers));
        self.set_special(STORED, true);
    }

    /// Takes the Debug Store out of use.
    pub fn take_ds_buffers(&self) -> Option<Boxed<DsBuffers>> {
        self.set_special(STORED, false);
        self.set_pebs_sequence(0, false);
        self.ds_buffers.try_take()
    }

    /// Runs `work` with the Debug Store, if it is in use.
    pub fn with_ds_buffers<R>(&self, work: impl FnOnce(&mut DsBuffers) -> R) -> Option<R> {
        if self.has_ds_buffers() { self.ds_buffers.try_with(|ds_buffers| work(ds_buffers)) } else { None }
    }

    /// Returns whether last branches are recorded.
    #[inline]
    pub fn has_branch_stack(&self) -> bool {
        self.special() & BRANCHING != 0
    }

    /// Puts the recording of last branches into use.
    pub fn put_branch_stack(&self, stack: Boxed<BranchStack>) {
        // The slot is empty: one session at a time records them. Memory cannot be freed here.
        core::mem::forget(self.branch_stack.try_put(stack));
        self.set_special(BRANCHING, true);
    }

    /// Takes the recording of last branches out of use.
    pub fn take_branch_stack(&self) -> Option<Boxed<BranchStack>> {
        self.set_special(BRANCHING, false);
        self.branch_stack.try_take()
    }

    /// Runs `work` with the recording of last branches, if it is in use.
    pub fn with_branch_stack<R>(&self, work: impl FnOnce(&mut BranchStack) -> R) -> Option<R> {
        if self.has_branch_stack() { self.branch_stack.try_with(|stack| work(stack)) } else { None }
    }

    /// Returns whether ops are sampled.
    #[inline]
    pub fn has_ibs_unit(&self) -> bool {
        self.special() & USES_IBS != 0
    }

    /// Puts the sampling of ops into use.
    pub fn put_ibs_unit(&self, unit: Boxed<IbsUnit>) {
        // The slot is empty: one session at a time samples them. Memory cannot be freed here.
        core::mem::forget(self.ibs_unit.try_put(unit));
        self.set_special(USES_IBS, true);
    }

    /// Takes the sampling of ops out of use.
    pub fn take_ibs_unit(&self) -> Option<Boxed<IbsUnit>> {
        self.set_special(USES_IBS, false);
        self.ibs_unit.try_take()
    }

    /// Runs `work` with the sampling of ops, if it is in use.
    pub fn with_ibs_unit<R>(&self, work: impl FnOnce(&mut IbsUnit) -> R) -> Option<R> {
        if self.has_ibs_unit() { self.ibs_unit.try_with(|unit| work(unit)) } else { None }
    }

    /// Returns the low half of the number of precise records that the processor has written, or 0 if none are recorded.
    #[inline]
    pub fn pebs_sequence(&self) -> u32 {
        self.pebs_sequence.load(Ordering::Relaxed)
    }

    /// Stores at the beginning of an interrupt the number of precise records, and whether records were `fetched`.
    pub fn set_pebs_sequence(&self, pebs_sequence: u64, fetched: bool) {
        let [low, _high]: [u32; 2] = zerocopy::transmute!(pebs_sequence);
        self.pebs_sequence.store(low, Ordering::Relaxed);
        self.fetched.store(fetched, Ordering::Relaxed);
    }

    /// Notes that a ring has become half full.
    pub fn note_watermark_hit(&self) {
        self.watermark_hit.store(true, Ordering::Relaxed);
    }

    /// Returns whether that has happened since the last call.
    #[inline]
    pub fn take_watermark_hit(&self) -> bool {
        if !self.watermark_hit.load(Ordering::Relaxed) {
            return false;
        }
        self.watermark_hit.store(false, Ordering::Relaxed);
        true
    }

    /// Returns whether records of the Debug Store were fetched in this interrupt.
    pub fn has_fetched(&self) -> bool {
        self.fetched.load(Ordering::Relaxed)
    }

    /// Returns the slots of the rotations.
    pub fn rotations(&self) -> impl Iterator<Item = &Slot<Boxed<Rotation>>> {
        self.rotations.iter()
    }

    /// Counts an interrupt that found an overflow.
    pub fn count_served(&self) {
        add_one(&self.served);
    }

    /// Counts a spurious interrupt. Returns whether there are too many in a row.
    #[inline]
    pub fn count_spurious(&self) -> bool {
        add_one(&self.spurious);
        self.storm.note(self.served.load(Ordering::Relaxed))
    }

    /// Returns the numbers of interrupts so far.
    pub fn interrupts(&self) -> Interrupts {
        let spurious = self.spurious.load(Ordering::Relaxed);
        let served = self.served.load(Ordering::Relaxed) + spurious;
        Interrupts { served, spurious, throttles: self.throttle.times() }
    }

    /// Notes the counters that have overflowed and wait for their interrupts at this tick. Returns those that waited at
    /// the last tick as well, if no interrupt came in between: their interrupts were lost.
    pub fn note_waiting(&self, waiting: CounterSet) -> CounterSet {
        let Interrupts { served, .. } = self.interrupts();
        let before = CounterSet::from_bits(self.waiting.load(Ordering::Relaxed).into());
        let is_quiet = self.interrupts.load(Ordering::Relaxed) == served;
        self.waiting.store(waiting.bits(), Ordering::Relaxed);
        self.interrupts.store(served, Ordering::Relaxed);
        if is_quiet { waiting.and(before) } else { CounterSet::NONE }
    }

    /// Pushes a sample of the counter for every one of `subscribers`, and [notes](Self::take_watermark_hit) whether a
    /// ring has become half full: to return it would cost seven instructions.
    #[expect(clippy::inline_always, reason = "counted: a call costs each sample 33 instructions")]
    #[inline(always)]
    pub fn deliver(&self, subscribers: Subscribers, counter: u8, record: &SampleRecord) {
        for subscriber in subscribers.iter() {
            if self.push(subscriber, counter, record) {
                self.note_watermark_hit();
            }
        }
    }

    /// As [`deliver`](Self::deliver), for uncommon samples: compiled once.
    #[inline(never)]
    pub fn deliver_rare(&self, subscribers: Subscribers, counter: u8, record: &SampleRecord) {
        self.deliver(subscribers, counter, record);
    }

    /// Pushes a sample for one subscriber, and counts it for a counter or for the branches. Returns whether the ring
    /// has become half full.
    #[inline]
    pub fn push(&self, subscriber: Subscriber, counter: u8, record: &SampleRecord) -> bool {
        let mut watermark_hit = false;
        self.with(subscriber, |producer| {
            let pushed = producer.push(*record);
            if let Some(stats) = producer.side().of(counter) {
                match pushed {
                    Pushed::Stored { watermark_hit: half } => {
                        watermark_hit = half;
                        stats.deliver();
                    }
                    Pushed::Full => stats.lose_to_full_ring(),
                }
            }
        });
        watermark_hit
    }

    /// Pushes a record for every session that samples on the processor. It is dropped if a ring is full.
    #[inline]
    pub fn push_to_all(&self, record: &SampleRecord) -> bool {
        self.push_to(Subscribers::from_bits(u8::MAX), record)
    }

    /// Pushes a record for these subscribers. It is dropped if a ring is full.
    pub fn push_to(&self, subscribers: Subscribers, record: &SampleRecord) -> bool {
        let mut watermark_hit = false;
        for subscriber in subscribers.iter() {
            let pushed = self.with(subscriber, |producer| producer.push(*record));
            watermark_hit |= matches!(pushed, Some(Pushed::Stored { watermark_hit: true }));
        }
        watermark_hit
    }

    /// Counts an overflow without a sample of each of `counters`, for every subscriber of the counter.
    #[inline]
    pub fn count_overflows(&self, counters: CounterSet, why: Unsampled) {
        let account = |stats: &SampleStats| match why {
            Unsampled::Lost => stats.lose(),
            Unsampled::Throttled => stats.throttle(),
        };
        for (counter, subscriptions) in self.subscriptions_of(counters) {
            self.with_events(|events| events.add_unsampled(counter, self.event(counter), why));
            for subscriber in subscriptions.subscribers().iter() {
                self.count_for(subscriber, counter, account);
            }
        }
    }

    /// Counts an overflow without a sample for one subscriber.
    pub fn count_for(&self, subscriber: Subscriber, counter: u8, account: impl FnOnce(&SampleStats)) {
        self.with(subscriber, |producer| producer.side().of(counter).map(account));
    }

    /// Runs `work` with the writing end of a subscriber, if it samples on the processor.
    #[inline]
    pub fn with<R>(&self, subscriber: Subscriber, work: impl FnOnce(&mut SampleProducer) -> R) -> Option<R> {
        self.producers.get(usize::from(subscriber.0))?.try_with(work)
    }

    /// Returns the slots of the writing ends of all subscribers.
    pub fn producers(&self) -> impl Iterator<Item = (Subscriber, &Slot<SampleProducer>)> {
        (0..MAX_SAMPLERS).map(Subscriber).zip(&self.producers)
    }

    /// Returns whether a session samples by time on the processor.
    #[inline]
    pub fn samples_by_time(&self) -> bool {
        self.producers()
            .any(|(_, producer)| producer.try_with(|producer| producer.side().time().is_active()) == Some(true))
    }

    /// Returns whether a session samples on the processor.
    pub fn has_producers(&self) -> bool {
        self.producers.iter().any(|producer| producer.try_with(|_| ()).is_some())
    }

    /// Returns the slot of the writing end of a subscriber.
    pub fn slot(&self, subscriber: Subscriber) -> Option<&Slot<SampleProducer>> {
        self.producers.get(usize::from(subscriber.0))
    }

    /// Takes the writing end of a subscriber.
    pub fn withdraw(&self, subscriber: Subscriber) -> Option<SampleProducer> {
        self.note_conditions();
        disconnection::remove(&self.unreported, subscriber);
        self.disconnection.forget(subscriber);
        self.producers.get(usize::from(subscriber.0))?.try_take()
    }

    /// Returns the time since the last call.
    pub fn elapsed(&self, now: Ticks) -> Ticks {
        let before = Ticks(self.ticked.load(Ordering::Relaxed));
        self.ticked.store(now.0, Ordering::Relaxed);
        now.since(before)
    }
}
