//! The samples of a session: a ring for each of its processors, and what was told of them.

use alloc::vec::Vec;

use pmu::ProcessorIndex;
use pmu::state::CounterSet;
use protocol::{Sample, SampleKind};
use sample_ring::{Consumer, Slot};

use crate::reply::{Refusal, Reply};
use crate::sampler::{BRANCH_STATS, CpuSampleStats, SampleProducer, SampleStats, Subscriber, put};
use crate::try_vec::{NO_MEMORY, TryPush, try_collect, try_with_capacity};

/// The rings of a session that samples.
#[derive(Debug)]
pub struct Rings {
    /// The session's place at every desk.
    pub subscriber: Subscriber,
    /// Thousandths of a processor's time that interrupts may take.
    pub budget: u32,
    /// Room of each ring, a power of two.
    records: u32,
    /// One for each processor of the session, in its order.
    each: Vec<Ring>,
    /// The ring from which the next request begins to fetch.
    next: usize,
}

#[derive(Debug)]
struct Ring {
    processor: ProcessorIndex,
    /// The writing end, while it is not at the processor's desk.
    producer: Slot<SampleProducer>,
    samples: Consumer<Sample, CpuSampleStats>,
    /// Samples that were told.
    delivered: u64,
    /// The counters of the session there, and the place of its branches, each with its source and the lost samples that were told.
    events: Vec<(u8, u32, u64)>,
}

/// What a session's samples came to.
#[derive(Debug, Clone, Copy, Default)]
pub struct Account {
    /// Given to the client.
    pub delivered: u64,
    /// Lost.
    pub lost: u64,
    /// Dropped while throttled.
    pub throttled: u64,
    /// Not fetched so far; what is left when the session ends.
    pub discarded: u64,
}

impl Rings {
    /// For so many processors; they follow one by one.
    pub fn new(subscriber: Subscriber, budget: u32, records: u32, processors: usize) -> Result<Self, Refusal> {
        Ok(Self { subscriber, budget, records, each: try_with_capacity(processors)?, next: 0 })
    }

    /// The ring of the next processor, with the counters sampled there and their sources.
    pub fn add(&mut self, processor: ProcessorIndex, counters: &[(u8, u32)]) -> Result<(), Refusal> {
        let (producer, samples) =
            sample_ring::channel(self.records as usize, CpuSampleStats::default()).ok_or(NO_MEMORY)?;
        let events = try_collect(counters.iter().map(|(counter, source)| (*counter, *source, 0)), counters.len())?;
        let slot = Slot::empty();
        // It was made empty.
        let _ = slot.put(producer);
        self.each.try_push(Ring { processor, producer: slot, samples, delivered: 0, events })
    }

    fn ring(&self, processor: ProcessorIndex) -> Option<&Ring> {
        let index = self.each.binary_search_by_key(&processor, |ring| ring.processor).ok()?;
        self.each.get(index)
    }

    /// The writing end for a processor's desk.
    pub fn take_producer(&self, processor: ProcessorIndex) -> Option<SampleProducer> {
        self.ring(processor)?.producer.take()
    }

    /// The writing end is back.
    pub fn put_producer(&self, processor: ProcessorIndex, producer: SampleProducer) {
        // Its place is empty since it was taken.
        put(self.ring(processor).map(|ring| &ring.producer), producer);
    }

    /// The counters sampled on a processor.
    pub fn counters(&self, processor: ProcessorIndex) -> CounterSet {
        self.ring(processor).map(|ring| ring.counters().collect()).unwrap_or_default()
    }

    /// Samples, lost ones and throttled ones of a counter on a processor.
    pub fn stats(&self, processor: ProcessorIndex, counter: u8) -> [u64; 3] {
        let stats = self.ring(processor).map(|ring| ring.samples.side());
        stats.and_then(|stats| stats.of(counter)).map(SampleStats::read).unwrap_or_default()
    }

    /// Whether a ring is half full.
    pub fn are_half_full(&self) -> bool {
        self.each.iter().any(|ring| ring.samples.is_half_full())
    }

    /// Whether there is nothing more to tell.
    pub fn are_empty(&self) -> bool {
        self.each.iter().all(|ring| ring.samples.is_empty() && ring.untold().next().is_none())
    }

    /// Tells as many records as the answer has room for, from each ring in turn; answers how many of them are samples.
    pub fn tell(&mut self, now: u64, reply: &mut Reply<'_>) -> u64 {
        let count = self.each.len();
        let mut told = 0;
        for turn in 0..count {
            let index = (self.next + turn) % count;
            if let Some(ring) = self.each.get_mut(index) {
                told += ring.tell(now, reply);
                if reply.room::<Sample>() == 0 {
                    // Not this one again: it may always have enough for a whole answer.
                    self.next = (index + 1) % count;
                    return told;
                }
            }
        }
        told
    }

    /// What became of the samples that were not delivered.
    pub fn account(&self) -> Account {
        self.each.iter().fold(Account::default(), |sum, ring| {
            let [samples, lost, throttled] = ring.stats();
            Account {
                delivered: 0,
                lost: sum.lost + lost,
                throttled: sum.throttled + throttled,
                discarded: sum.discarded + (samples - ring.delivered),
            }
        })
    }
}

impl Ring {
    fn counters(&self) -> impl Iterator<Item = u8> + '_ {
        self.events.iter().map(|(counter, ..)| *counter).filter(|counter| *counter != BRANCH_STATS)
    }

    fn stats(&self) -> [u64; 3] {
        let stats = self.samples.side();
        self.events.iter().filter_map(|(counter, ..)| stats.of(*counter)).map(SampleStats::read).fold(
            [0; 3],
            |[samples, lost, throttled], [more, more_lost, more_throttled]| {
                [samples + more, lost + more_lost, throttled + more_throttled]
            },
        )
    }

    /// Events of which samples were lost that nobody was told of: index, source, how many.
    fn untold(&self) -> impl Iterator<Item = (usize, u32, u64)> + '_ {
        let stats = self.samples.side();
        self.events.iter().enumerate().filter_map(|(index, (counter, source, told))| {
            let [_, lost, _] = stats.of(*counter)?.read();
            Some((index, *source, lost - told)).filter(|(.., untold)| *untold > 0)
        })
    }

    fn tell(&mut self, now: u64, reply: &mut Reply<'_>) -> u64 {
        let mut told = 0;
        self.samples.drain(reply.room::<Sample>(), |records| {
            told += records
                .iter()
                .filter(|record| SampleKind::from_number(record.kind).is_some_and(SampleKind::is_sample))
                .count() as u64;
            reply.push_all(records);
        });
        self.delivered += told;
        while reply.room::<Sample>() > 0 {
            let Some((index, source, lost)) = self.untold().next() else { break };
            reply.push(&Sample {
                time: now,
                ip: lost,
                process: 0,
                thread: 0,
                processor: self.processor.number(),
                source,
                interval: 0,
                kind: SampleKind::Lost as u16,
                modes: 0,
                pebs_sequence: 0,
            });
            if let Some((.., so_far)) = self.events.get_mut(index) {
                *so_far += lost;
            }
        }
        told
    }
}
