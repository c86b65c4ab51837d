//! Samples of a session: a ring for each of its processors, and what was reported of them.

use alloc::vec::Vec;

use pmu::ProcessorIndex;
use pmu::state::CounterSet;
use protocol::{Sample, SampleKind};
use sample_ring::{Consumer, Slot};

use crate::reply::{Refusal, Reply};
use crate::sampler::{BRANCH_STATS, CpuSampleStats, SampleProducer, SampleStats, Subscriber, put};
use crate::try_vec::{NO_MEMORY, TryPush, try_collect, try_with_capacity};

/// Rings of a session that samples.
#[derive(Debug)]
pub struct Rings {
    /// Number of the session on every processor.
    pub subscriber: Subscriber,
    /// Share of the time of a processor that interrupts may take, in thousandths.
    pub budget: u32,
    /// Capacity of each ring, a power of two.
    records: u32,
    /// One per processor of the session, in its order.
    each: Vec<Ring>,
    /// Ring with which the next request begins.
    next: usize,
}

#[derive(Debug)]
struct Ring {
    processor: ProcessorIndex,
    /// Writing end, while the processor does not use it.
    producer: Slot<SampleProducer>,
    samples: Consumer<Sample, CpuSampleStats>,
    /// Samples that were delivered.
    delivered: u64,
    /// Counters of the session on the processor, and the index of its branches, each with its source and the lost
    /// samples that were reported.
    events: Vec<(u8, u32, u64)>,
}

/// Numbers of samples of a session.
#[derive(Debug, Clone, Copy, Default)]
pub struct Account {
    /// Samples given to the client.
    pub delivered: u64,
    /// Lost samples.
    pub lost: u64,
    /// Samples dropped while throttled.
    pub throttled: u64,
    /// Samples not fetched so far, which are discarded when the session ends.
    pub discarded: u64,
}

impl Rings {
    /// Makes room for the rings of `processors` processors, which [`add`](Self::add) adds.
    pub fn new(subscriber: Subscriber, budget: u32, records: u32, processors: usize) -> Result<Self, Refusal> {
        Ok(Self { subscriber, budget, records, each: try_with_capacity(processors)?, next: 0 })
    }

    /// Adds the ring of the next processor, with the counters sampled there and their sources.
    pub fn add(&mut self, processor: ProcessorIndex, counters: &[(u8, u32)]) -> Result<(), Refusal> {
        let (producer, samples) =
            sample_ring::channel(self.records as usize, CpuSampleStats::default()).ok_or(NO_MEMORY)?;
        let events = try_collect(counters.iter().map(|(counter, source)| (*counter, *source, 0)), counters.len())?;
        let slot = Slot::empty();
        // The slot is empty.
        let _ = slot.put(producer);
        self.each.try_push(Ring { processor, producer: slot, samples, delivered: 0, events })
    }

    fn ring(&self, processor: ProcessorIndex) -> Option<&Ring> {
        let index = self.each.binary_search_by_key(&processor, |ring| ring.processor).ok()?;
        self.each.get(index)
    }

    /// Takes the writing end for use on a processor.
    pub fn take_producer(&self, processor: ProcessorIndex) -> Option<SampleProducer> {
        self.ring(processor)?.producer.take()
    }

    /// Puts the writing end of a processor back.
    pub fn put_producer(&self, processor: ProcessorIndex, producer: SampleProducer) {
        // The slot is empty since the end was taken.
        put(self.ring(processor).map(|ring| &ring.producer), producer);
    }

    /// Returns the counters sampled on a processor.
    pub fn counters(&self, processor: ProcessorIndex) -> CounterSet {
        self.ring(processor).map(|ring| ring.counters().collect()).unwrap_or_default()
    }

    /// Returns the numbers of delivered, lost and throttled samples of a counter on a processor.
    pub fn stats(&self, processor: ProcessorIndex, counter: u8) -> [u64; 3] {
        let stats = self.ring(processor).map(|ring| ring.samples.side());
        stats.and_then(|stats| stats.of(counter)).map(SampleStats::read).unwrap_or_default()
    }

    /// Returns whether a ring is half full.
    pub fn are_half_full(&self) -> bool {
        self.each.iter().any(|ring| ring.samples.is_half_full())
    }

    /// Returns whether there is nothing left to report.
    pub fn are_empty(&self) -> bool {
        self.each.iter().all(|ring| ring.samples.is_empty() && ring.untold().next().is_none())
    }

    /// Writes as many records as the reply has room for, from each ring in turn. Returns how many of them are samples.
    pub fn tell(&mut self, now: u64, reply: &mut Reply<'_>) -> u64 {
        let count = self.each.len();
        let mut told = 0;
        for turn in 0..count {
            let index = (self.next + turn) % count;
            if let Some(ring) = self.each.get_mut(index) {
                told += ring.tell(now, reply);
                if reply.room::<Sample>() == 0 {
                    // The next request begins with the next ring, because this one may always fill a whole reply.
                    self.next = (index + 1) % count;
                    return told;
                }
            }
        }
        told
    }

    /// Returns the account of the samples that were not delivered.
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

    /// Returns the events with lost samples that have not been reported yet: index, source, number.
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
