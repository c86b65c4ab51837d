//! A processor's desk: who gets the samples of its counters.

use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};

use pmu::state::CounterSet;
use protocol::Sample;
use sample_ring::{Producer, Pushed, Slot};

use super::ds_buffers::DsBuffers;
use super::sample_stats::add_one;
use super::storm::Storm;
use super::throttle::Throttle;
use crate::boxed::Boxed;

use super::{CpuSampleStats, Interrupts, SampleStats};

/// How many sessions can sample at a time.
pub const MAX_SAMPLERS: u8 = 8;

/// The writing end of a session's ring.
pub type SampleProducer = Producer<Sample, CpuSampleStats>;

/// A session that samples, by its place at every desk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subscriber(pub u8);

/// Some subscribers.
#[derive(Debug, Clone, Copy, Default)]
pub struct Subscribers(u8);

impl Subscribers {
    /// In ascending order.
    pub fn iter(self) -> impl Iterator<Item = Subscriber> + use<> {
        let mut left = self.0;
        core::iter::from_fn(move || {
            let after = left & left.checked_sub(1)?;
            let subscriber = Subscriber((left.trailing_zeros() & 7) as u8);
            left = after;
            Some(subscriber)
        })
    }
}

/// What the handler has to know of a counter beyond its state.
#[derive(Debug, Default)]
pub struct CounterSubscriptions {
    /// Bit n is subscriber n.
    subscribers: AtomicU8,
    /// KPROFILE_SOURCE that it counts.
    source: AtomicU32,
    /// The interval with which the counter was loaded.
    loaded: AtomicU32,
    /// Samples per second wanted, or 0.
    frequency: AtomicU32,
    /// The counter's count at the last tick.
    counted: AtomicU64,
}

impl CounterSubscriptions {
    /// Who subscribed.
    pub fn subscribers(&self) -> Subscribers {
        Subscribers(self.subscribers.load(Ordering::Relaxed))
    }

    /// One more.
    pub fn add(&self, subscriber: Subscriber) {
        self.subscribers.store(self.subscribers().0 | 1 << (subscriber.0 & 7), Ordering::Relaxed);
    }

    /// One less.
    pub fn remove(&self, subscriber: Subscriber) {
        self.subscribers.store(self.others(subscriber), Ordering::Relaxed);
    }

    /// Whether anyone but this one subscribed.
    pub fn has_others(&self, subscriber: Subscriber) -> bool {
        self.others(subscriber) != 0
    }

    fn others(&self, subscriber: Subscriber) -> u8 {
        self.subscribers().0 & !(1 << (subscriber.0 & 7))
    }

    /// What the counter counts, and the interval with which it was loaded.
    pub fn loaded(&self) -> (u32, u32) {
        (self.source.load(Ordering::Relaxed), self.loaded.load(Ordering::Relaxed))
    }

    /// The counter counts this from now on.
    pub fn set_source(&self, source: u32) {
        self.source.store(source, Ordering::Relaxed);
    }

    /// The counter was loaded with this interval.
    pub fn reloaded(&self, interval: u32) {
        self.loaded.store(interval, Ordering::Relaxed);
    }

    /// Samples per second wanted.
    pub fn frequency(&self) -> Option<u32> {
        Some(self.frequency.load(Ordering::Relaxed)).filter(|frequency| *frequency != 0)
    }

    /// Zero: the interval stays. The count begins anew.
    pub fn set_frequency(&self, frequency: u32) {
        self.frequency.store(frequency, Ordering::Relaxed);
        self.counted.store(0, Ordering::Relaxed);
    }

    /// Events since this was last asked, with the count of now.
    pub fn events_since(&self, count: u64) -> u64 {
        let before = self.counted.load(Ordering::Relaxed);
        self.counted.store(count, Ordering::Relaxed);
        count.saturating_sub(before)
    }
}

/// Puts the writing end of a ring into a slot that is empty. PROFILE_LEVEL: an end without a place is never freed, since
/// memory can not be given back here.
pub fn put(slot: Option<&Slot<SampleProducer>>, producer: SampleProducer) {
    core::mem::forget(match slot {
        Some(slot) => slot.put(producer).err(),
        None => Some(producer),
    });
}

/// The processor's Debug Store is in use.
const STORED: u8 = 1;

/// Nothing interrupts, because too many interrupts came that nothing explained.
const SILENCED: u8 = 1 << 1;

/// What one processor alone touches, at PROFILE_LEVEL.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct PerCpu {
    all_subscriptions: [CounterSubscriptions; CounterSet::MOST as usize],
    producers: [Slot<SampleProducer>; MAX_SAMPLERS as usize],
    /// Time in the handler.
    pub throttle: Throttle,
    served: AtomicU64,
    spurious: AtomicU64,
    /// Spurious interrupts in a row.
    pub storm: Storm,
    /// Counters whose overflow waited for its interrupt at the last tick, as a set.
    waiting: AtomicU32,
    /// How many interrupts there had been by then.
    interrupts: AtomicU64,
    /// Subscribers that were not told yet that the processor was silenced, as a set.
    untold: AtomicU8,
    /// When it last ticked.
    ticked: AtomicU64,
    /// The processor's Debug Store, while a session has it.
    ds_buffers: Slot<Boxed<DsBuffers>>,
    /// Some of [`STORED`] and [`SILENCED`]: asked in each interrupt.
    special: AtomicU8,
    /// Something of it was fetched in this interrupt.
    fetched: AtomicBool,
    /// A ring has become half full outside of interrupts.
    watermark_hit: AtomicBool,
    /// Precise records that it had written at the last interrupt.
    pebs_sequence: AtomicU64,
}

impl PerCpu {
    /// What is to be known of a counter.
    #[inline]
    pub fn subscriptions(&self, counter: u8) -> Option<&CounterSubscriptions> {
        self.all_subscriptions.get(usize::from(counter))
    }

    /// Of every counter.
    pub fn all_subscriptions(&self) -> impl Iterator<Item = (u8, &CounterSubscriptions)> {
        (0..).zip(&self.all_subscriptions)
    }

    /// Whether interrupts take the uncommon path: the processor's Debug Store is in use, or the processor is silenced.
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

    /// Whether the processor's Debug Store is in use.
    pub fn has_ds_buffers(&self) -> bool {
        self.special() & STORED != 0
    }

    /// Whether nothing interrupts, because too many interrupts came that nothing explained.
    pub fn is_silenced(&self) -> bool {
        self.special() & SILENCED != 0
    }

    /// Marks the processor as silenced, which everyone who samples here has to be [told](Self::tell_silenced).
    pub fn silence(&self) {
        self.set_special(SILENCED, true);
        self.untold.store(u8::MAX, Ordering::Relaxed);
    }

    /// Marks the processor as not silenced any more.
    pub fn end_silence(&self) {
        self.set_special(SILENCED, false);
    }

    /// Gives the record of a silence to everyone who has not been told yet and whose ring has room. Returns whether a ring has
    /// become half full.
    pub fn tell_silenced(&self, record: &Sample) -> bool {
        let mut watermark_hit = false;
        for subscriber in Subscribers(self.untold.load(Ordering::Relaxed)).iter() {
            let pushed = self.with(subscriber, |producer| producer.push(*record));
            watermark_hit |= matches!(pushed, Some(Pushed::Stored { watermark_hit: true }));
            if !matches!(pushed, Some(Pushed::Full)) {
                self.set_told(subscriber);
            }
        }
        watermark_hit
    }

    fn set_told(&self, subscriber: Subscriber) {
        let others = self.untold.load(Ordering::Relaxed) & !(1 << (subscriber.0 & 7));
        self.untold.store(others, Ordering::Relaxed);
    }

    /// Puts it in.
    pub fn put_ds_buffers(&self, ds_buffers: Boxed<DsBuffers>) {
        // Its slot is empty: one session at a time has the Debug Store. Memory can not be given back here.
        core::mem::forget(self.ds_buffers.put(ds_buffers));
        self.set_special(STORED, true);
    }

    /// Takes it out.
    pub fn take_ds_buffers(&self) -> Option<Boxed<DsBuffers>> {
        self.set_special(STORED, false);
        self.ds_buffers.take()
    }

    /// Does something with it, where it is in use.
    pub fn with_ds_buffers<R>(&self, work: impl FnOnce(&mut DsBuffers) -> R) -> Option<R> {
        if self.has_ds_buffers() { self.ds_buffers.with(|ds_buffers| work(ds_buffers)) } else { None }
    }

    /// Precise records that the processor has written by now; 0 where nothing is recorded.
    #[inline]
    pub fn pebs_sequence(&self) -> u64 {
        self.pebs_sequence.load(Ordering::Relaxed)
    }

    /// An interrupt begins: what the Debug Store has come to, and whether something of it was `fetched`.
    pub fn set_pebs_sequence(&self, pebs_sequence: u64, fetched: bool) {
        self.pebs_sequence.store(pebs_sequence, Ordering::Relaxed);
        self.fetched.store(fetched, Ordering::Relaxed);
    }

    /// A ring has become half full where nobody wakes who waits for it.
    pub fn note_watermark_hit(&self) {
        self.watermark_hit.store(true, Ordering::Relaxed);
    }

    /// Whether one has since this was last asked.
    pub fn take_watermark_hit(&self) -> bool {
        let watermark_hit = self.watermark_hit.load(Ordering::Relaxed);
        self.watermark_hit.store(false, Ordering::Relaxed);
        watermark_hit
    }

    /// Whether something of the Debug Store was fetched in this interrupt.
    pub fn has_fetched(&self) -> bool {
        self.fetched.load(Ordering::Relaxed)
    }

    /// Counts an interrupt that found something of ours.
    pub fn count_served(&self) {
        add_one(&self.served);
    }

    /// Counts an interrupt that found nothing of ours. Returns whether it was one too many in a row.
    pub fn count_spurious(&self) -> bool {
        add_one(&self.spurious);
        self.storm.note(self.served.load(Ordering::Relaxed))
    }

    /// All so far.
    pub fn interrupts(&self) -> Interrupts {
        let spurious = self.spurious.load(Ordering::Relaxed);
        let served = self.served.load(Ordering::Relaxed) + spurious;
        Interrupts { served, spurious, throttles: self.throttle.times() }
    }

    /// Notes the counters whose overflows wait for their interrupts at this tick. Returns those that waited at the last tick
    /// as well, if no interrupt came since: theirs were lost.
    pub fn note_waiting(&self, waiting: CounterSet) -> CounterSet {
        let Interrupts { served, .. } = self.interrupts();
        let before = CounterSet::from_bits(self.waiting.load(Ordering::Relaxed).into());
        let is_quiet = self.interrupts.load(Ordering::Relaxed) == served;
        self.waiting.store(waiting.bits(), Ordering::Relaxed);
        self.interrupts.store(served, Ordering::Relaxed);
        if is_quiet { waiting.and(before) } else { CounterSet::NONE }
    }

    /// A sample for everyone who subscribed to the counter; answers whether a ring has become half full.
    #[inline]
    pub fn deliver(&self, subscriptions: &CounterSubscriptions, counter: u8, sample: Sample) -> bool {
        let mut watermark_hit = false;
        for subscriber in subscriptions.subscribers().iter() {
            watermark_hit |= self.push(subscriber, counter, sample);
        }
        watermark_hit
    }

    /// A sample for one, in its account of a counter, or of branches; answers whether its ring has become half full.
    #[inline]
    pub fn push(&self, subscriber: Subscriber, counter: u8, sample: Sample) -> bool {
        let mut watermark_hit = false;
        self.with(subscriber, |producer| {
            let pushed = producer.push(sample);
            if let Some(stats) = producer.side().of(counter) {
                match pushed {
                    Pushed::Stored { watermark_hit: half } => {
                        watermark_hit = half;
                        stats.deliver();
                    }
                    Pushed::Full => stats.lose(),
                }
            }
        });
        watermark_hit
    }

    /// A record for everyone who samples here. Where a ring is full it is dropped.
    pub fn tell(&self, record: &Sample) -> bool {
        let mut watermark_hit = false;
        for producer in &self.producers {
            producer.with(|producer| {
                watermark_hit |= matches!(producer.push(*record), Pushed::Stored { watermark_hit: true });
            });
        }
        watermark_hit
    }

    /// Accounts an overflow without a sample to everyone who subscribed to the counter.
    pub fn stats(&self, subscriptions: &CounterSubscriptions, counter: u8, account: fn(&SampleStats)) {
        for subscriber in subscriptions.subscribers().iter() {
            self.count_for(subscriber, counter, account);
        }
    }

    /// The same to one.
    pub fn count_for(&self, subscriber: Subscriber, counter: u8, account: fn(&SampleStats)) {
        self.with(subscriber, |producer| producer.side().of(counter).map(account));
    }

    fn with<R>(&self, subscriber: Subscriber, work: impl FnOnce(&mut SampleProducer) -> R) -> Option<R> {
        self.producers.get(usize::from(subscriber.0))?.with(work)
    }

    /// A subscriber's end of its ring.
    pub fn slot(&self, subscriber: Subscriber) -> Option<&Slot<SampleProducer>> {
        self.producers.get(usize::from(subscriber.0))
    }

    /// The end again.
    pub fn withdraw(&self, subscriber: Subscriber) -> Option<SampleProducer> {
        self.set_told(subscriber);
        self.producers.get(usize::from(subscriber.0))?.take()
    }

    /// Time since this was last asked.
    pub fn elapsed(&self, now: u64) -> u64 {
        let before = self.ticked.load(Ordering::Relaxed);
        self.ticked.store(now, Ordering::Relaxed);
        now.wrapping_sub(before)
    }
}
