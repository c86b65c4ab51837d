//! Sampling of fetches (PPR, "IBS Fetch Control"; Linux, `perf_ibs_fetch` and tools/perf/util/amd-sample-raw.c).
//!
//! After a period of fetches the unit tags one, and when the next one is delivered, it stores what happened and stands
//! still. The model is as unkind as with ops: a stop comes too late for a fetch that is tagged, by turns.

use super::facts::Facts;
use crate::bits::{bit, field, ones};
use crate::fault::{GeneralProtection, refuse_reserved};

const CONTROL: u32 = 0xC001_1030;
const LINEAR: u32 = 0xC001_1031;
const PHYSICAL: u32 = 0xC001_1032;
const EXTENDED: u32 = 0xC001_103C;

/// Bits of `IBS_FETCH_CTL`.
const COUNTER: (u32, u32) = (31, 16);
const ENABLE: u32 = 48;
const VALID: u32 = 49;
const RANDOM: u32 = 57;
const L3_MISS_ONLY: u32 = 59;
const COMPLETE: u64 = 1 << 50;
const CACHE_MISS: u64 = 1 << 51;
const PHYSICAL_VALID: u64 = 1 << 52;
const L1_TLB_MISS: u64 = 1 << 55;
const L2_TLB_MISS: u64 = 1 << 56;
const L2_MISS: u64 = 1 << 58;
const OP_CACHE_MISS: u64 = 1 << 60;
const L3_MISS: u64 = 1 << 61;

/// A fetch of instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExecutedFetch {
    /// Linear address. While the processor runs a script, 0 stands for the script's place.
    pub address: u64,
    /// Core clock cycles until it was delivered or abandoned.
    pub latency: u16,
    /// What delivered it.
    pub source: FetchSource,
    /// TLBs that missed: 0 to 2.
    pub tlb_misses: u8,
}

/// What delivers a fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FetchSource {
    /// The op cache; before Zen 4 it cannot be told from the L1 cache.
    OpCache,
    /// The L1 cache.
    L1,
    /// The L2 cache.
    L2,
    /// The L3 cache.
    L3,
    /// Memory.
    Memory,
    /// Nothing: the fetch is abandoned.
    Abandoned,
}

impl FetchSource {
    /// Every source.
    pub const ALL: [Self; 6] = [Self::OpCache, Self::L1, Self::L2, Self::L3, Self::Memory, Self::Abandoned];
}

/// The unit of a processor.
#[derive(Debug, Clone, Default)]
pub(super) struct Fetches {
    control: u64,
    linear: u64,
    physical: u64,
    /// Fetches of the period.
    counter: u64,
    /// Erratum 420.
    has_stuck: bool,
    tagged: Option<ExecutedFetch>,
    late_stops: u32,
    /// Samples so far.
    samples: u32,
    /// What happens in turn, and which is next.
    code: Vec<ExecutedFetch>,
    next: usize,
}

impl Fetches {
    pub(super) fn set_fetches(&mut self, fetches: Vec<ExecutedFetch>) {
        (self.code, self.next) = (fetches, 0);
    }

    pub(super) fn lose_power(&mut self) {
        *self = Self { code: std::mem::take(&mut self.code), ..Self::default() };
    }

    /// Returns whether it counts, or has tagged a fetch.
    pub(super) fn is_at_work(&self) -> bool {
        self.tagged.is_some() || bit(self.control, ENABLE) && !bit(self.control, VALID)
    }

    /// Lets so many fetches happen in turn; those at 0 are at `place`.
    pub(super) fn run(&mut self, mut number: u64, place: u64, facts: &Facts) {
        while number > 0 && self.is_at_work() {
            if let Some(tagged) = self.tagged.take() {
                self.pass(1);
                number -= 1;
                self.sample(&tagged, facts);
                continue;
            }
            let left = (field(self.control, 15, 0) << 4).saturating_sub(self.counter).max(1);
            self.pass(left.min(number) - 1);
            if left > number {
                self.pass(1);
                self.counter += number;
                return;
            }
            number -= left;
            self.tagged = Some(self.current(place));
            self.pass(1);
            self.counter = if bit(self.control, RANDOM) { u64::from(self.samples) * 7 % 16 } else { 0 };
        }
    }

    fn pass(&mut self, number: u64) {
        let number = usize::try_from(number).unwrap_or_default();
        self.next = (self.next + number) % self.code.len().max(1);
    }

    fn current(&self, place: u64) -> ExecutedFetch {
        let plain = ExecutedFetch { address: 0, latency: 4, source: FetchSource::L1, tlb_misses: 0 };
        let fetch = self.code.get(self.next).copied().unwrap_or(plain);
        ExecutedFetch { address: if fetch.address == 0 { place } else { fetch.address }, ..fetch }
    }

    /// Stores a sample, unless the filter drops it.
    fn sample(&mut self, fetch: &ExecutedFetch, facts: &Facts) {
        self.samples += 1;
        if bit(self.control, L3_MISS_ONLY) && fetch.source != FetchSource::Memory {
            return;
        }
        // Erratum 1197.
        let is_lost = facts.is_wrong_without_buffer() && self.samples.is_multiple_of(8);
        self.linear = if is_lost { 0 } else { fetch.address };
        self.physical = fetch.address & 0xFFFF_FFFF;
        self.control = self.control & SETTINGS | fetch.bits(facts) | 1 << VALID;
    }

    /// Reads a register. Returns `None` if it does not exist.
    pub(super) fn rdmsr(&self, msr: u32, facts: &Facts) -> Option<u64> {
        match msr {
            _ if !facts.samples_fetches() => None,
            CONTROL => Some(self.control & !(ones(16) << COUNTER.1) | (self.counter >> 4 & ones(16)) << COUNTER.1),
            LINEAR => Some(self.linear),
            PHYSICAL => Some(self.physical),
            EXTENDED if facts.has_fetch_extension() => Some(0),
            _ => None,
        }
    }

    /// Writes a register. Returns `None` if it does not exist.
    pub(super) fn wrmsr(&mut self, msr: u32, value: u64, facts: &Facts) -> Option<Result<(), GeneralProtection>> {
        self.rdmsr(msr, facts)?;
        Some(match msr {
            CONTROL => {
                let reserved = if facts.is_zen_4() { 0b11 << 62 } else { 0b1_1111 << 59 };
                refuse_reserved(value, reserved).map(|()| self.set_control(value, facts))
            }
            LINEAR => {
                self.linear = value;
                Ok(())
            }
            _ => Err(GeneralProtection),
        })
    }

    fn set_control(&mut self, value: u64, facts: &Facts) {
        let (was_on, is_on) = (bit(self.control, ENABLE), bit(value, ENABLE));
        if !(facts.keeps_fetch_counter() && was_on && is_on) {
            self.counter = field(value, COUNTER.0, COUNTER.1) << 4;
        }
        self.has_stuck |= facts.keeps_sample() && was_on && !is_on && field(self.control, 15, 0) != 0;
        self.control = value & (SETTINGS | 1 << VALID) | if self.has_stuck { 1 << VALID } else { 0 };
        if was_on && !is_on && self.tagged.is_some() {
            self.late_stops += 1;
            if self.late_stops.is_multiple_of(2) {
                self.tagged = None;
            }
        }
    }
}

/// What software alone changes.
const SETTINGS: u64 = 0xFFFF | 1 << ENABLE | 1 << RANDOM | 1 << L3_MISS_ONLY;

impl ExecutedFetch {
    /// Returns what the control register says of it.
    fn bits(&self, facts: &Facts) -> u64 {
        let latency = u64::from(self.latency) << 32;
        let tlb = [0, L1_TLB_MISS, L1_TLB_MISS | L2_TLB_MISS];
        let tlb = tlb.get(usize::from(self.tlb_misses)).copied().unwrap_or(0);
        if self.source == FetchSource::Abandoned {
            // Without a physical address the rest means nothing.
            let rest = if facts.needs_physical_address() { L1_TLB_MISS | L2_MISS } else { tlb };
            return latency | rest;
        }
        let of = |exists: bool, bit: u64| if exists { bit } else { 0 };
        let is_beyond = |source: FetchSource| self.source > source;
        let is_miss = is_beyond(FetchSource::L1) != facts.is_wrong_without_buffer();
        latency
            | tlb
            | COMPLETE
            | PHYSICAL_VALID
            | of(is_miss, CACHE_MISS)
            | of(is_beyond(FetchSource::L2) && facts.is_zen(), L2_MISS)
            | of(is_beyond(FetchSource::OpCache) && facts.is_zen_4(), OP_CACHE_MISS)
            | of(is_beyond(FetchSource::L3) && facts.is_zen_4(), L3_MISS)
    }
}
