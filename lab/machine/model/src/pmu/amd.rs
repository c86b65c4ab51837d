//! AMD's core counters: four legacy counters, or at least six with the core performance counter extension. There are no
//! global registers: the select register enables the counter, and only the counter itself shows an overflow.

use super::{
    Pmu, Running, count_general, general,
    northbridge::{self, LEGACY_COUNT, Northbridge},
    position,
};
use crate::{
    counter::{Counter, CounterId},
    fault::{GeneralProtection, refuse_reserved},
    select::Select,
    writable,
};

/// `PerfEvtSel0` to 3 (APM Vol. 2, 13.2.1, "Performance-Event Select Registers"; K7 and later).
const LEGACY_SELECT: u32 = 0xC001_0000;
/// `PerfCtr0` to 3 (APM Vol. 2, 13.2.1, "Performance Counters").
const LEGACY_COUNTER: u32 = 0xC001_0004;

/// With `PerfCtrExtCore`, select and counter registers alternate, and the first four alias the legacy ones (APM Vol. 2,
/// 13.2.1, "Core Performance Event-Select Registers").
const EXTENDED_SELECT: u32 = 0xC001_0200;
const EXTENDED_COUNTER: u32 = 0xC001_0201;
const EXTENDED_STRIDE: u32 = 2;

/// APM Vol. 2, 13.2.1, "Performance Counters": bits 47:0 count, the others read as zero. The APM does not say that
/// writing them faults, so the model drops them.
const WIDTH: u32 = 48;

/// PMCx003, retired SSE and AVX FLOPs (PPR for family 17h, "Large Increment per Cycle Events").
const FLOPS: u16 = 0x003;
/// PMCxFFF, Merge: in an odd counter, it makes the even one before it count large increments. Bits 15:0 of the odd
/// counter are then bits 63:48 of both, and the overflow of bit 63 interrupts (the same section).
const MERGE: u16 = 0xFFF;
const MERGED_WIDTH: u32 = 64;
/// The most that one counter can add in a cycle.
const PER_CYCLE: u64 = 15;

/// From family 15h on, the northbridge has counters of its own.
const LAST_SHARED_FAMILY: u32 = 0x14;

enum Register {
    Select(usize),
    Counter(usize),
}

pub(crate) struct Amd {
    selects: Vec<Select>,
    counters: Vec<Counter>,
    extended: bool,
    /// The processor has events with large increments, and the event that merges counters.
    merges: bool,
    /// The writable bits of the select registers.
    writable: u64,
    /// The northbridge whose events the cores of a node count together.
    northbridge: Option<Northbridge>,
}

impl Amd {
    /// Creates the four legacy counters of a processor of this family.
    pub(crate) fn legacy(family: u32, svm: bool) -> Self {
        let counters = Self::new(LEGACY_COUNT, false, writable::perf_ctl(family, svm));
        Self { northbridge: (family <= LAST_SHARED_FAMILY).then(Northbridge::new), ..counters }
    }

    /// Creates the counters of a processor of this family with `PerfCtrExtCore`, which came with family 15h.
    pub(crate) fn extended(count: u8, svm: bool, family: u32) -> Self {
        let counters = Self::new(usize::from(count), true, writable::perf_ctl(0x15, svm));
        Self { merges: family >= 0x17, ..counters }
    }

    fn new(count: usize, extended: bool, writable: u64) -> Self {
        let (selects, counters) = (vec![Select::default(); count], vec![Counter::new(WIDTH); count]);
        Self { selects, counters, extended, merges: false, writable, northbridge: None }
    }

    /// Returns whether an overflow of the counter interrupts.
    pub(crate) fn interrupts(&self, id: CounterId) -> bool {
        self.running().iter().any(|running| running.id == id && running.interrupt)
    }

    /// Returns the odd counter that is merged into this one.
    pub(crate) fn upper(&self, id: CounterId) -> Option<CounterId> {
        let CounterId::General(number) = id else { return None };
        let is_even = number % 2 == 0;
        let select = self.selects.get(usize::from(number) + 1).filter(|_| self.merges && is_even)?;
        (select.enabled() && select.selected_amd().event == MERGE).then_some(CounterId::General(number + 1))
    }

    /// Adds to a counter and the odd one that is merged into it. Returns the number of overflows of both.
    fn count_merged(&mut self, low: CounterId, high: CounterId, events: u64) -> u64 {
        let value = |id| self.counter(id).map_or(0, Counter::read);
        let mut both = Counter::new(MERGED_WIDTH).loaded(value(low) | value(high) << WIDTH);
        let overflows = both.add(events);
        for (id, value) in [(low, both.read()), (high, both.read() >> WIDTH)] {
            if let Some(counter) = general(id).and_then(|number| self.counters.get_mut(number)) {
                counter.write(value);
            }
        }
        overflows
    }

    /// Returns the counters with their interrupt enabled, whether or not they count.
    pub(crate) fn interrupting(&self) -> impl Iterator<Item = CounterId> + '_ {
        let interrupting = (0..).zip(&self.selects).filter(|(_, select)| select.interrupt());
        interrupting.map(|(number, _)| CounterId::General(number))
    }

    fn register(&self, msr: u32) -> Option<Register> {
        let count = self.counters.len();
        let legacy = count.min(LEGACY_COUNT);
        let extended = if self.extended { count } else { 0 };
        position(msr, LEGACY_SELECT, 1, legacy)
            .or_else(|| position(msr, EXTENDED_SELECT, EXTENDED_STRIDE, extended))
            .map(Register::Select)
            .or_else(|| {
                position(msr, LEGACY_COUNTER, 1, legacy)
                    .or_else(|| position(msr, EXTENDED_COUNTER, EXTENDED_STRIDE, extended))
                    .map(Register::Counter)
            })
    }
}

impl Pmu for Amd {
    fn rdmsr(&self, msr: u32) -> Option<u64> {
        match self.register(msr)? {
            Register::Select(number) => self.selects.get(number).map(|select| select.0),
            Register::Counter(number) => self.counters.get(number).map(Counter::read),
        }
    }

    fn wrmsr(&mut self, msr: u32, value: u64) -> Option<Result<(), GeneralProtection>> {
        match self.register(msr)? {
            Register::Select(number) => {
                let select = self.selects.get_mut(number)?;
                let written = refuse_reserved(value, !self.writable).map(|()| *select = Select(value));
                if let Some(northbridge) = &self.northbridge {
                    northbridge.note(number, select.enabled() && northbridge::has(select.selected_amd().event));
                }
                Some(written)
            }
            Register::Counter(number) => {
                self.counters.get_mut(number)?.write(value);
                Some(Ok(()))
            }
        }
    }

    /// Reads a core counter: ECX is its number (APM Vol. 3, RDPMC). The model has no counters outside the core, which
    /// have the higher numbers.
    fn rdpmc(&self, index: u32) -> Option<u64> {
        self.counters.get(usize::try_from(index).ok()?).map(Counter::read)
    }

    fn running(&self) -> Vec<Running> {
        (0..)
            .zip(&self.selects)
            .filter(|(_, select)| select.enabled() && (select.user() || select.kernel()))
            .map(|(number, select)| Running {
                id: CounterId::General(number),
                selected: select.selected_amd(),
                user: select.user(),
                kernel: select.kernel(),
                interrupt: select.interrupt(),
            })
            .collect()
    }

    fn counter(&self, id: CounterId) -> Option<&Counter> {
        self.counters.get(general(id)?)
    }

    /// If several cores of a node select an event of the northbridge in the same counter, what it counts is undefined:
    /// in the model, the events of each.
    fn counted(&mut self, counter: &Running, events: u64) -> u64 {
        let shared = self.northbridge.as_ref().filter(|_| northbridge::has(counter.selected.event));
        let cores = shared.zip(general(counter.id)).map_or(1, |(northbridge, number)| northbridge.cores(number));
        events * u64::from(cores)
    }

    fn other_core(&self) -> Option<Box<dyn Pmu>> {
        let northbridge = Some(self.northbridge.as_ref()?.of_next_core());
        let (selects, counters) = (vec![Select::default(); LEGACY_COUNT], vec![Counter::new(WIDTH); LEGACY_COUNT]);
        Some(Box::new(Self { selects, counters, northbridge, ..*self }))
    }

    /// The odd counter of a pair counts nothing by itself.
    fn most_per_cycle(&self, running: &Running) -> Option<u64> {
        let is_large = self.merges && running.selected.event == FLOPS;
        (is_large && self.upper(running.id).is_none()).then_some(PER_CYCLE)
    }

    fn until_overflow(&self, id: CounterId) -> Option<u64> {
        let low = self.counter(id)?;
        let Some(high) = self.upper(id) else { return Some(low.until_overflow()) };
        let value = low.read() | self.counter(high)?.read() << WIDTH;
        Some(Counter::new(MERGED_WIDTH).loaded(value).until_overflow())
    }

    fn count(&mut self, id: CounterId, events: u64) -> u64 {
        match self.upper(id) {
            Some(high) => self.count_merged(id, high, events),
            None => count_general(&mut self.counters, id, events),
        }
    }

    /// Unlike Intel's APIC, AMD's does not change the entry (reported of hardware in Linux commit 49ff3b4aec51).
    fn masks_lvt_on_delivery(&self) -> bool {
        false
    }
}
