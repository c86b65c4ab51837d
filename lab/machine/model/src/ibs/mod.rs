//! Instruction-Based Sampling, AMD from family 10h on (PPR and BKDG, "Instruction Based Sampling"; Linux,
//! arch/x86/events/amd/ibs.c): of ops here, of fetches in `fetch.rs`.
//!
//! After a period of cycles or of ops the unit tags an op, and when that has retired, it stores what happened to it in
//! registers and stands still. Software reads them and lets it go on. The interrupt that it can raise has a local
//! vector of its own, which firmware chooses and masks; the model raises none.
//!
//! Where manuals say little, the model is unkind: what an op does not set is left from the one before; a stop comes too
//! late for an op that is tagged, and its sample comes, or does not, by turns.

mod facts;
mod fetch;
mod op;

use crate::bits::{bit, field, ones};
use crate::cpuid::Cpuid;
use crate::fault::{GeneralProtection, refuse_reserved};

use facts::Facts;
use fetch::Fetches;
pub use fetch::{ExecutedFetch, FetchSource};
use op::Record;
pub use op::{DataSource, ExecutedOp, MemoryAccess, OpKind};

const CONTROL: u32 = 0xC001_1033;
/// The registers of a [`Record`] up to the physical address; the target and DATA4 are elsewhere.
const RECORD: std::ops::RangeInclusive<u32> = 0xC001_1034..=0xC001_1039;
const ENTRY: u32 = 0xC001_103A;
const TARGET: u32 = 0xC001_103B;
const DATA_4: u32 = 0xC001_103D;
const CONTROL_2: u32 = 0xC001_103E;

/// Bits of `IBS_OP_CTL`.
const L3_MISS_ONLY: u32 = 16;
const ENABLE: u32 = 17;
const VALID: u32 = 18;
const COUNTS_OPS: u32 = 19;
const PERIOD_ABOVE: (u32, u32) = (26, 20);
const COUNTER: (u32, u32) = (58, 32);
const LATENCY_THRESHOLD: (u32, u32) = (62, 59);
const LATENCY_ENABLE: u32 = 63;

/// Bits of `IBS_OP_CTL2`.
const DISABLE: u32 = 0;
const EXCLUDE_USER: u32 = 1;
const EXCLUDE_KERNEL: u32 = 2;

/// Ops that retire between the tag and the sample.
const IN_FLIGHT: u8 = 2;

/// `IBSCTL` of firmware that has set it up: valid, the first entry.
const FIRST_ENTRY: u64 = 1 << 8;

/// The unit of a processor.
#[derive(Debug, Clone)]
pub(crate) struct Ibs {
    facts: Option<Facts>,
    control: u64,
    control_2: u64,
    entry: u64,
    record: Record,
    /// Erratum 420.
    has_stuck: bool,
    /// The op that is tagged, and how many more have to retire.
    tagged: Option<(ExecutedOp, u8)>,
    /// Stops that came while an op was tagged.
    late_stops: u32,
    /// What the processor executes in turn, and which is next.
    ops: Vec<ExecutedOp>,
    next: usize,
    /// The state of the random numbers.
    random: u64,
    fetches: Fetches,
}

impl Ibs {
    pub(crate) fn new(cpuid: Cpuid<'_>) -> Self {
        Self {
            facts: Facts::read(cpuid),
            control: 0,
            control_2: 0,
            entry: FIRST_ENTRY,
            record: [0; 8],
            has_stuck: false,
            tagged: None,
            late_stops: 0,
            ops: Vec::new(),
            next: 0,
            random: 1,
            fetches: Fetches::default(),
        }
    }

    /// Sets `IBSCTL` as firmware left it.
    pub(crate) fn set_entry(&mut self, entry: u64) {
        self.entry = entry;
    }

    pub(crate) fn lose_power(&mut self) {
        (self.control, self.control_2, self.tagged, self.has_stuck) = (0, 0, None, false);
        self.record = [0; 8];
        self.fetches.lose_power();
    }

    pub(crate) fn set_fetches(&mut self, fetches: Vec<ExecutedFetch>) {
        self.fetches.set_fetches(fetches);
    }

    pub(crate) fn follows_fetches(&self) -> bool {
        self.fetches.is_at_work()
    }

    /// Lets so many fetches happen; those without an address are at `place`.
    pub(crate) fn fetch(&mut self, number: u64, place: u64) {
        if let Some(facts) = &self.facts {
            self.fetches.run(number, place, facts);
        }
    }

    /// Lets an op retire.
    pub(crate) fn retire(&mut self, op: &ExecutedOp) {
        if let Some((_, left)) = &mut self.tagged {
            *left -= 1;
            if *left == 0
                && let Some((tagged, _)) = self.tagged.take()
            {
                self.sample(&tagged);
            }
            return;
        }
        let Some(facts) = &self.facts else { return };
        if !self.is_counting() {
            return;
        }
        let passed = if bit(self.control, COUNTS_OPS) { 1 } else { op.cycles.into() };
        let counter = field(self.control, COUNTER.0, COUNTER.1) + passed;
        if counter >= self.period(facts) {
            self.tagged = Some((*op, IN_FLIGHT));
            self.restart();
        } else {
            self.set_counter(counter);
        }
    }

    pub(crate) fn set_ops(&mut self, ops: Vec<ExecutedOp>) {
        (self.ops, self.next) = (ops, 0);
    }

    /// Lets the ops retire in turn that take so many cycles, `other` if there are none.
    pub(crate) fn run(&mut self, cycles: u64, other: ExecutedOp) {
        let Some(facts) = self.facts.clone() else { return };
        let lap = if self.ops.is_empty() { vec![other] } else { self.ops.clone() };
        let cycles_of_lap: u64 = lap.iter().map(|op| u64::from(op.cycles)).sum();
        let counted_of_lap =
            if bit(self.control, COUNTS_OPS) { u64::try_from(lap.len()).unwrap_or(1) } else { cycles_of_lap };
        let mut left = cycles;
        // Only the counter moves while whole laps go by without a tag.
        if self.is_counting() && self.tagged.is_none() && cycles_of_lap > 0 {
            let counter = field(self.control, COUNTER.0, COUNTER.1);
            let room = self.period(&facts).saturating_sub(counter + 1) / counted_of_lap.max(1);
            let laps = room.min(left / cycles_of_lap);
            self.set_counter(counter + laps * counted_of_lap);
            left -= laps * cycles_of_lap;
        }
        while left > 0 && (self.is_counting() || self.tagged.is_some()) {
            let Some(op) = lap.get(self.next % lap.len()) else { return };
            self.next = (self.next + 1) % lap.len();
            self.retire(&ExecutedOp { ip: if op.ip == 0 { other.ip } else { op.ip }, ..*op });
            left = left.saturating_sub(u64::from(op.cycles).max(1));
        }
    }

    pub(crate) fn is_counting(&self) -> bool {
        bit(self.control, ENABLE) && !bit(self.control, VALID) && !bit(self.control_2, DISABLE)
    }

    /// Returns the period. Its low four bits are zero, and the next sixteen are at the bottom of the register.
    fn period(&self, facts: &Facts) -> u64 {
        let low = field(self.control, 15, 0) << 4;
        let above = field(self.control, PERIOD_ABOVE.0, PERIOD_ABOVE.1) << PERIOD_ABOVE.1;
        (low | above) & ones(facts.counter_bits())
    }

    fn set_counter(&mut self, counter: u64) {
        let place = ones(COUNTER.0 - COUNTER.1 + 1) << COUNTER.1;
        self.control = self.control & !place | counter << COUNTER.1 & place;
    }

    /// Begins the next period, with its seven low bits at random.
    fn restart(&mut self) {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.set_counter(self.random >> 57);
    }

    /// Stores the sample of an op that has retired, unless a filter drops it: then the unit counts on.
    fn sample(&mut self, op: &ExecutedOp) {
        let Some(facts) = &self.facts else { return };
        let is_user = op.ip >> 63 == 0;
        let excluded = if is_user { EXCLUDE_USER } else { EXCLUDE_KERNEL };
        let is_passed = !bit(self.control_2, excluded) && self.passes(facts, op);
        if is_passed {
            self.record = op.record(facts, &self.record);
            self.control |= 1 << VALID;
        }
    }

    fn passes(&self, facts: &Facts, op: &ExecutedOp) -> bool {
        let l3_miss_only = bit(self.control, L3_MISS_ONLY);
        let is_miss = op.load().is_some_and(|load| load.source.is_beyond_l3());
        let is_filtered = bit(self.control, LATENCY_ENABLE) && (l3_miss_only || !facts.needs_both_filters());
        let threshold = (field(self.control, LATENCY_THRESHOLD.0, LATENCY_THRESHOLD.1) + 1) * 128;
        let is_long = op.load().is_some_and(|load| u64::from(load.latency) >= threshold);
        (is_miss || !l3_miss_only) && (is_long || !is_filtered)
    }

    /// Returns the place of a register in the record.
    fn place(&self, msr: u32) -> Option<usize> {
        let facts = self.facts.as_ref()?;
        match msr {
            TARGET if facts.has_branch_target() => Some(6),
            DATA_4 if facts.has_data_4() => Some(7),
            _ if !facts.samples_ops() => None,
            _ if RECORD.contains(&msr) => usize::try_from(msr - RECORD.start()).ok(),
            _ => None,
        }
    }

    /// Reads a register. Returns `None` if it does not exist.
    pub(crate) fn rdmsr(&self, msr: u32) -> Option<u64> {
        let facts = self.facts.as_ref()?;
        if let Some(value) = self.fetches.rdmsr(msr, facts) {
            return Some(value);
        }
        match msr {
            ENTRY => Some(self.entry),
            _ if !facts.samples_ops() => None,
            CONTROL if facts.has_counter_access() => Some(self.control),
            CONTROL => Some(self.control & ones(COUNTER.1)),
            CONTROL_2 => facts.has_second_control().then_some(self.control_2),
            _ => self.record.get(self.place(msr)?).copied(),
        }
    }

    /// Writes a register. Returns `None` if it does not exist.
    pub(crate) fn wrmsr(&mut self, msr: u32, value: u64) -> Option<Result<(), GeneralProtection>> {
        self.rdmsr(msr)?;
        let facts = self.facts.as_ref()?;
        if let Some(written) = self.fetches.wrmsr(msr, value, facts) {
            return Some(written);
        }
        Some(match msr {
            CONTROL => refuse_reserved(value, !writable(facts)).map(|()| self.set_control(value)),
            CONTROL_2 => {
                let filters = if facts.filters_rip() { 1 << EXCLUDE_USER | 1 << EXCLUDE_KERNEL } else { 0 };
                refuse_reserved(value, !(1 << DISABLE | filters)).map(|()| self.control_2 = value)
            }
            ENTRY => Err(GeneralProtection),
            _ => {
                let place = self.place(msr)?;
                *self.record.get_mut(place)? = value;
                Ok(())
            }
        })
    }

    fn set_control(&mut self, value: u64) {
        let is_stop = bit(self.control, ENABLE) && !bit(value, ENABLE);
        let keeps_sample = self.facts.as_ref().is_some_and(Facts::keeps_sample);
        self.has_stuck |= keeps_sample && is_stop && field(self.control, 15, 0) != 0;
        self.control = if self.has_stuck { value | 1 << VALID } else { value };
        if is_stop && self.tagged.is_some() {
            self.late_stops += 1;
            if self.late_stops.is_multiple_of(2) {
                self.tagged = None;
            }
        }
    }
}

/// Returns the bits of `IBS_OP_CTL` that software may write.
fn writable(facts: &Facts) -> u64 {
    let of = |exists: bool, bits: u64| if exists { bits } else { 0 };
    ones(16)
        | 1 << ENABLE
        | 1 << VALID
        | of(facts.is_zen_4(), 1 << L3_MISS_ONLY)
        | of(facts.counts_ops(), 1 << COUNTS_OPS)
        | of(facts.counter_bits() > 20, ones(7) << PERIOD_ABOVE.1)
        | of(facts.has_counter_access(), ones(facts.counter_bits()) << COUNTER.1)
        | of(facts.filters_latency(), ones(5) << LATENCY_THRESHOLD.1)
}
