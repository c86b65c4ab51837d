//! The samples of a session: one ring per processor, and the records that were delivered.

use alloc::vec::Vec;

use pmu::ProcessorIndex;
use pmu::state::CounterSet;
use protocol::{LostRecord, RecordKind, SampleRecord};
use sample_ring::{Consumer, Memory, Slot};

use crate::reply::{Refusal, Reply};
use crate::sampler::{CpuSampleStats, SampleNumbers, SampleProducer, Subscriber, put_or_leak};
use crate::time::Ticks;
use crate::try_vec::{NO_MEMORY, TryPush, try_collect, try_with_capacity};

/// Rings of a session that samples.
#[derive(Debug)]
pub struct Rings {
    /// Subscriber number of the session, the same on every processor.
    pub subscriber: Subscriber,
    /// Maximum share of interrupts in a processor's time, in thousandths.
    pub budget: u32,
    /// Capacity of each ring in records, a power of two.
    records: u32,
    /// One ring for each processor of the session, in ascending order.
    each: Vec<Ring>,
    /// Index of the ring from which the next request begins to fetch.
    next: usize,
}

#[derive(Debug)]
struct Ring {
    processor: ProcessorIndex,
    /// The producer, while the processor does not have it.
    producer: Slot<SampleProducer>,
    samples: Consumer<SampleRecord, CpuSampleStats>,
    /// Number of samples delivered.
    delivered: u64,
    /// Each counter of the session there, `BRANCH_STATS` for branches and `TIME_STATS` for time, with the index of
    /// its event and the number of lost samples that have been reported.
    events: Vec<(u8, u32, u64)>,
}

/// Totals of a session's samples.
#[derive(Debug, Clone, Copy, Default)]
pub struct Account {
    /// Samples delivered to the client.
    pub delivered: u64,
    /// Samples lost.
    pub lost: u64,
    /// Overflows dropped while throttled.
    pub throttled: u64,
    /// Samples not fetched yet, or not at all when the session has ended.
    pub discarded: u64,
}

/// Returns the size of rings for so many records on so many processors in bytes.
pub fn bytes(records: u32, processors: usize) -> u64 {
    (size_of::<SampleRecord>() as u64).saturating_mul(records.into()).saturating_mul(processors as u64)
}

impl Rings {
    /// Creates rings for up to `processors` processors, which [`add`](Self::add) adds one by one.
    pub fn new(subscriber: Subscriber, budget: u32, records: u32, processors: usize) -> Result<Self, Refusal> {
        Ok(Self { subscriber, budget, records, each: try_with_capacity(processors)?, next: 0 })
    }

    /// Returns the size of these rings in bytes.
    pub fn bytes(&self) -> u64 {
        bytes(self.records, self.each.len())
    }

    /// Returns the size of one ring in bytes, or `None` if there is no such memory.
    pub fn bytes_of_each(&self) -> Option<usize> {
        sample_ring::bytes::<SampleRecord>(self.records as usize)
    }

    /// Adds the ring of the next processor, in this memory, with the counters sampled there and the indexes of
    /// their events.
    pub fn add(&mut self, processor: ProcessorIndex, counters: &[(u8, u32)], memory: Memory) -> Result<(), Refusal> {
        let (producer, samples) = self.channel(memory).ok_or(NO_MEMORY)?;
        let events = try_collect(counters.iter().map(|(counter, event)| (*counter, *event, 0)), counters.len())?;
        let slot = Slot::empty();
        // The slot is new, so it is empty.
        let _ = slot.try_put(producer);
        self.each.try_push(Ring { processor, producer: slot, samples, delivered: 0, events })
    }

    /// Creates a ring.
    #[inline(never)] // the numbers of samples may pass over its stack, which the rest of a start does not need too
    fn channel(&self, memory: Memory) -> Option<(SampleProducer, Consumer<SampleRecord, CpuSampleStats>)> {
        sample_ring::channel_in(memory, self.records as usize, CpuSampleStats::default)
    }

    fn ring(&self, processor: ProcessorIndex) -> Option<&Ring> {
        let index = self.each.binary_search_by_key(&processor, |ring| ring.processor).ok()?;
        self.each.get(index)
    }

    /// Takes the producer of a processor's ring.
    pub fn take_producer(&self, processor: ProcessorIndex) -> Option<SampleProducer> {
        self.ring(processor)?.producer.try_take()
    }

    /// Puts the producer of a processor's ring back.
    pub fn put_producer(&self, processor: ProcessorIndex, producer: SampleProducer) {
        // The slot has been empty since the producer was taken.
        put_or_leak(self.ring(processor).map(|ring| &ring.producer), producer);
    }

    /// Returns the counters that are sampled on a processor.
    pub fn counters(&self, processor: ProcessorIndex) -> CounterSet {
        self.ring(processor).map(|ring| ring.counters().collect()).unwrap_or_default()
    }

    /// Returns the numbers of samples of a counter on a processor.
    pub fn stats(&self, processor: ProcessorIndex, counter: u8) -> SampleNumbers {
        self.ring(processor).map(|ring| ring.samples.side().read(counter)).unwrap_or_default()
    }

    /// Returns whether a ring is half full.
    pub fn are_half_full(&self) -> bool {
        self.each.iter().any(|ring| ring.samples.is_half_full())
    }

    /// Returns whether all records and losses have been delivered.
    pub fn are_empty(&self) -> bool {
        self.each.iter().all(|ring| ring.samples.is_empty() && ring.unreported().next().is_none())
    }

    /// Writes as many records as fit into the reply, from each ring in turn; returns how many of them are samples.
    pub fn write(&mut self, now: Ticks, reply: &mut Reply<'_>) -> u64 {
        let count = self.each.len();
        let mut written = 0;
        for _ in 0..count {
            let Some(ring) = self.each.get_mut(self.next) else { break };
            written += ring.write(now, reply);
            // The next request begins with the next ring: this one may always fill a whole reply.
            self.next = if self.next + 1 < count { self.next + 1 } else { 0 };
            if reply.room::<SampleRecord>() == 0 {
                break;
            }
        }
        written
    }

    /// Returns the totals of the samples, without the delivered ones.
    pub fn account(&self) -> Account {
        self.each.iter().fold(Account::default(), |sum, ring| {
            let SampleNumbers { samples, lost, throttled, .. } = ring.stats();
            Account {
                delivered: 0,
                lost: sum.lost + lost,
                throttled: sum.throttled + throttled,
                // An interrupt writes a sample before it counts it.
                discarded: sum.discarded + samples.saturating_sub(ring.delivered),
            }
        })
    }
}

/// Returns a record of a ring with the index of its event. The interrupt has put the counter there instead, because it
/// looks nothing up.
fn of_session(record: &SampleRecord, events: &[(u8, u32, u64)]) -> SampleRecord {
    let event = events.iter().find(|(counter, ..)| u32::from(*counter) == record.event());
    event.map_or(*record, |(_, index, _)| record.with_event(*index))
}

impl Ring {
    fn counters(&self) -> impl Iterator<Item = u8> + '_ {
        self.events.iter().map(|(counter, ..)| *counter).filter(|counter| *counter < CounterSet::MOST)
    }

    fn stats(&self) -> SampleNumbers {
        let stats = self.samples.side();
        let mut sum = SampleNumbers::default();
        for counter in self.events.iter().filter_map(|(counter, ..)| stats.of(*counter)) {
            sum += counter.read();
        }
        sum
    }

    /// Events with lost samples that have not been reported yet: place in `events`, index, number of lost samples.
    fn unreported(&self) -> impl Iterator<Item = (usize, u32, u64)> + '_ {
        let stats = self.samples.side();
        self.events.iter().enumerate().filter_map(|(place, (counter, event, reported))| {
            let lost = stats.of(*counter)?.read().lost;
            Some((place, *event, lost - reported)).filter(|(.., unreported)| *unreported > 0)
        })
    }

    fn write(&mut self, now: Ticks, reply: &mut Reply<'_>) -> u64 {
        let (mut written, events) = (0, &self.events);
        self.samples.drain(reply.room::<SampleRecord>(), |records| {
            for record in records {
                written += u64::from(record.kind().is_some_and(RecordKind::is_sample));
                reply.push(&of_session(record, events));
            }
        });
        self.delivered += written;
        while reply.room::<SampleRecord>() > 0 {
            let Some((place, event, lost)) = self.unreported().next() else { break };
            reply.push(&SampleRecord::from(LostRecord::new(now.0, self.processor.number(), event, lost)));
            if let Some((.., so_far)) = self.events.get_mut(place) {
                *so_far += lost;
            }
        }
        written
    }
}
