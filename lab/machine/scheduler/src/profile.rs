//! What Windows keeps for a thread that profiles.

use crate::{MAX_COUNTERS, Processors};
use bench_protocol::{Accounting, MaskMeaning};

/// Size of THREAD_PERFORMANCE_DATA.
pub const PERFORMANCE_DATA_SIZE: usize = 0x1C0;

/// THREAD_PERFORMANCE_DATA, or what the handle points to instead.
pub type PerformanceData = [u8; PERFORMANCE_DATA_SIZE];

/// A handle of [`Scheduler::enable`](crate::Scheduler::enable).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProfileHandle(pub u64);

/// PERFORMANCE_DATA, as far as Windows writes it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProfilingData {
    /// Number of configured counters.
    pub counter_count: u8,
    /// Number of switches from the thread to another since profiling was enabled. 0 unless it was asked for at the
    /// time.
    pub context_switches: u32,
    /// A bit for each reason of these switches (KWAIT_REASON).
    pub wait_reasons: u64,
    /// Cycles that the thread executed.
    pub cycles: u64,
    /// Number of times that the values were read because the thread was switched meanwhile.
    pub retries: u32,
    /// The values, by the bit of the mask. Bits that were not set, and those of counters that are not configured, have
    /// 0.
    pub counters: [u64; MAX_COUNTERS],
}

/// One counter of a profile.
#[derive(Debug, Clone, Copy)]
pub struct Counter {
    /// Its bit of the mask.
    pub bit: usize,
    /// For RDPMC. None if it is not configured.
    pub index: Option<u64>,
    /// Its value when the thread was switched in.
    pub start: u64,
    /// Events until then.
    pub total: u64,
}

/// The profile of a thread.
#[derive(Debug)]
pub struct Profile {
    pub handle: ProfileHandle,
    /// Whether switches are counted.
    pub counts_switches: bool,
    pub switches: u32,
    pub wait_reasons: u64,
    /// The counters to profile, by bit.
    pub mask: u64,
    /// Number of configured counters.
    pub configured: u8,
    /// Number of times that Windows has written the profile.
    pub updates: u64,
    /// Where the thread was switched in.
    pub processor: u32,
    /// The memory of the program when profiling was enabled.
    pub enabled_as: Option<Box<PerformanceData>>,
    pub counters: Vec<Counter>,
}

impl Profile {
    /// Returns the profile for the counters of a mask, before the thread is switched in.
    pub fn new(
        handle: ProfileHandle,
        counts_switches: bool,
        mask: u64,
        configured: &[u64],
        meaning: MaskMeaning,
    ) -> Self {
        let index = |bit: usize| match meaning {
            MaskMeaning::Position => configured.get(bit).copied(),
            MaskMeaning::Index => configured.iter().copied().find(|index| usize::try_from(*index) == Ok(bit)),
        };
        let bits = (0..MAX_COUNTERS).filter(|bit| mask >> bit & 1 == 1);
        let counters = bits.map(|bit| Counter { bit, index: index(bit), start: 0, total: 0 }).collect();
        Self {
            handle,
            counts_switches,
            switches: 0,
            wait_reasons: 0,
            mask,
            configured: u8::try_from(configured.len()).unwrap_or(u8::MAX),
            updates: 0,
            processor: 0,
            enabled_as: None,
            counters,
        }
    }

    /// Returns whether a read of the counters executes RDPMC.
    pub fn has_counters(&self) -> bool {
        self.counters.iter().any(|counter| counter.index.is_some())
    }

    /// Reads the counters when the thread is switched in.
    pub fn begin(&mut self, machine: &mut dyn Processors, processor: u32) {
        (self.updates, self.processor) = (self.updates.wrapping_add(1), processor);
        for counter in &mut self.counters {
            if let Some(index) = counter.index {
                counter.start = machine.read_counter(processor, index);
            }
        }
    }

    /// Adds what the thread counted when it is switched out.
    pub fn end(&mut self, machine: &mut dyn Processors, processor: u32, accounting: Accounting) {
        self.updates = self.updates.wrapping_add(1);
        for counter in &mut self.counters {
            counter.total = counter.now(machine, processor, accounting);
        }
    }

    /// Returns the values of the running thread by bit, and the number of configured counters.
    pub fn values(
        &self,
        machine: &mut dyn Processors,
        processor: u32,
        accounting: Accounting,
    ) -> ([u64; MAX_COUNTERS], u8) {
        let mut values = [0; MAX_COUNTERS];
        for counter in &self.counters {
            if let Some(value) = values.get_mut(counter.bit) {
                *value = counter.now(machine, processor, accounting);
            }
        }
        (values, self.configured)
    }
}

impl Counter {
    fn now(&self, machine: &mut dyn Processors, processor: u32, accounting: Accounting) -> u64 {
        let Some(index) = self.index else { return 0 };
        let delta = machine.read_counter(processor, index).wrapping_sub(self.start);
        let delta = match accounting {
            Accounting::Full => delta,
            Accounting::Truncated => delta & u64::from(u32::MAX),
        };
        self.total.wrapping_add(delta)
    }
}
