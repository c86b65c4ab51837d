//! Intel's Debug Store (SDM Vol. 3B, "Debug Store (DS) Mechanism"): the processor writes records of taken branches
//! (BTS) and of counter overflows (PEBS) to memory.
//!
//! An overflow arms PEBS and sets the status bit of its counter. The next event of that counter writes the record,
//! clears the bit and reloads the counter (SDM, "PEBS Programming Environment" of Sandy Bridge; "Processor Event Based
//! Sampling" of Nehalem). A counter with precise distribution writes the record at the overflow itself. If the record
//! does not fit, nothing of that happens: the counter counts on from zero, and the next event tries again. On a real
//! machine, an access to unmapped memory is fatal. The model counts it, drops the record and leaves the index
//! unchanged.
//!
//! | file | what it holds |
//! |---|---|
//! | `registers.rs` | the registers, and which of them a processor has |
//! | `architectural.rs` | architectural PEBS: its registers, and its records in physical memory |
//! | `area.rs` | memory, the save area, and writing a record to a buffer |
//! | `branch.rs` | branch records |
//! | `pebs.rs` | PEBS records, by format |
//! | `recordable.rs` | the counters that can record each event, by model |

mod architectural;
mod area;
mod branch;
mod pebs;
mod recordable;
mod registers;

pub use architectural::Fragments;
pub use area::Memory;
pub use branch::Branch;
pub use pebs::{INSTRUCTION_LENGTH, RecordedAccess};

use crate::{
    counter::{Counter, CounterId},
    extra::Accessed,
    fault::GeneralProtection,
    mode::Mode,
    pmu::Freeze,
    select::Selected,
};
use architectural::Architectural;
use area::{Area, Buffer, Outcome, Section, Unmapped, WORD};
use pebs::{Event, reset_offset};
use registers::Registers;
use std::collections::{BTreeMap, BTreeSet};

/// The encoding of a hit of the first-level cache.
const SOURCE_L1: u64 = 1;

/// Returns the next access in turn that fulfills a condition.
fn next(
    (accesses, turn): &mut (Vec<RecordedAccess>, usize),
    is_recorded: impl Fn(&RecordedAccess) -> bool,
) -> Option<RecordedAccess> {
    let count = accesses.len();
    let first = turn.checked_rem(count)?;
    let in_turn = accesses.iter().cycle().skip(first).take(count);
    let (skipped, access) = in_turn.enumerate().find(|(_, access)| is_recorded(access))?;
    *turn = first + skipped + 1;
    Some(*access)
}

/// Totals of the records that were written and of those that were not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stored {
    /// Branch records written.
    pub branches: u64,
    /// Branch records dropped because the buffer was full or its index outside its bounds.
    pub branches_refused: u64,
    /// PEBS records written, by counter.
    pub records: BTreeMap<CounterId, u64>,
    /// Events that could not write a PEBS record for the same reasons.
    pub records_refused: u64,
    /// Records of either kind dropped because of unmapped memory.
    pub faults: u64,
}

/// A counter that writes a PEBS record on overflow.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Precise {
    id: CounterId,
    format: u8,
    /// The data groups of an adaptive record.
    groups: u64,
    /// Events after the overflow up to and including the one that writes the record.
    delay: u64,
    /// What its event says of accesses of memory.
    accessed: Option<Accessed>,
}

/// The result of counting.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counted {
    pub(crate) overflows: u64,
    /// A record reached the threshold.
    pub(crate) reached: bool,
    /// The overflow status of the counter after the last overflow or record, if there was one.
    pub(crate) overflowed: Option<bool>,
}

/// The Debug Store of a processor. It has no registers unless the vendor is Intel.
pub(crate) struct DebugStore {
    registers: Registers,
    memory: Option<Box<dyn Memory>>,
    /// Instruction pointer and time-stamp counter for PEBS records.
    place: (u64, u64),
    /// Counters whose next event writes a record.
    armed: BTreeSet<CounterId>,
    /// The loads that are measured, and the stores that are recorded, each in turn, with their number so far.
    loads: (Vec<RecordedAccess>, usize),
    stores: (Vec<RecordedAccess>, usize),
    /// The last of both, as it was recorded.
    access: [u64; 3],
    stored: Stored,
}

impl DebugStore {
    /// Creates the Debug Store after reset. `monitors`: the processor has counters.
    pub(crate) fn new(cpuid: &dyn Fn(u32, u32) -> [u32; 4], perf_capabilities: u64, monitors: bool) -> Self {
        let registers = Registers::new(cpuid, perf_capabilities, monitors);
        Self {
            registers,
            memory: None,
            place: (0, 0),
            armed: BTreeSet::new(),
            loads: (Vec::new(), 0),
            stores: (Vec::new(), 0),
            access: [0; 3],
            stored: Stored::default(),
        }
    }

    pub(crate) fn lose_power(&mut self) {
        self.registers.reset();
        self.armed.clear();
    }

    pub(crate) fn set_memory(&mut self, memory: Box<dyn Memory>) {
        self.memory = Some(memory);
    }

    pub(crate) fn set_microcode(&mut self, revision: u32) {
        self.registers.set_microcode(revision);
    }

    /// Sets how records of architectural PEBS are written.
    pub(crate) fn set_fragments(&mut self, fragments: Fragments) {
        if let Some(architectural) = self.registers.architectural_mut() {
            architectural.set_fragments(fragments);
        }
    }

    /// Sets whether records of architectural PEBS are late: they arrive when the counters stop, or with the next code.
    pub(crate) fn set_late(&mut self, are_late: bool) {
        if let Some(architectural) = self.registers.architectural_mut() {
            architectural.set_late(are_late);
        }
    }

    /// Writes the records that are late. Returns whether one reached the threshold.
    pub(crate) fn arrive(&mut self) -> bool {
        let late = self.registers.architectural_mut().map(Architectural::take_late).unwrap_or_default();
        let mut reaches = false;
        for (counter, record) in late {
            match self.append(&record) {
                Ok(Outcome::Written { reached }) => {
                    *self.stored.records.entry(counter).or_default() += 1;
                    reaches |= reached;
                }
                Ok(Outcome::Late | Outcome::Refused) => self.stored.records_refused += 1,
                Err(Unmapped) => self.stored.faults += 1,
            }
        }
        reaches
    }

    pub(crate) fn set_misc_enable(&mut self, value: u64) {
        self.registers.set_misc_enable(value);
    }

    pub(crate) fn set_place(&mut self, ip: u64, time: u64) {
        self.place = (ip, time);
    }

    pub(crate) fn set_accesses(&mut self, loads: Vec<RecordedAccess>, stores: Vec<RecordedAccess>) {
        (self.loads, self.stores) = ((loads, 0), (stores, 0));
    }

    /// Returns the access in the next record of a counter. One of a counter that records none has that of an earlier
    /// record.
    fn next_access(&mut self, id: CounterId, accessed: Option<Accessed>) -> [u64; 3] {
        match accessed {
            Some(Accessed::Load { threshold, is_blind, packs_latencies }) if self.measures_latency(id) => {
                if let Some(load) = next(&mut self.loads, |load| load.latency >= threshold) {
                    let source = if is_blind { SOURCE_L1 } else { load.source };
                    self.access = RecordedAccess { source, ..load }.words(packs_latencies);
                }
            }
            Some(Accessed::Store { needs_bit, has_latency }) if !needs_bit || self.registers.records_stores() => {
                if let Some(store) = next(&mut self.stores, |_| true) {
                    let [address, source, latency] = store.words(true);
                    let [_, _, earlier] = self.access;
                    self.access = [address, source, if has_latency { latency } else { earlier }];
                }
            }
            _ => {}
        }
        self.access
    }

    /// Returns the instruction pointer of the records that follow.
    pub(crate) fn place(&self) -> u64 {
        self.place.0
    }

    /// Ends the recording of last branches, as an interrupt does before version 4.
    pub(crate) fn end_last_branches(&mut self) {
        self.registers.end_last_branches();
    }

    pub(crate) fn stored(&self) -> &Stored {
        &self.stored
    }

    pub(crate) fn clear(&mut self) {
        self.stored = Stored::default();
    }

    /// Reads a register. Returns `None` if the register does not exist.
    pub(crate) fn rdmsr(&self, msr: u32) -> Option<u64> {
        self.registers.rdmsr(msr)
    }

    /// Writes a register. Returns `None` if the register does not exist. Disabling PEBS on a counter disarms it.
    pub(crate) fn wrmsr(&mut self, msr: u32, value: u64) -> Option<Result<(), GeneralProtection>> {
        let written = self.registers.wrmsr(msr, value);
        self.armed.retain(|counter| self.registers.has_pebs(*counter));
        written
    }

    /// Returns what an interrupt of a counter freezes by `IA32_DEBUGCTL`.
    pub(crate) fn freeze(&self) -> Freeze {
        self.registers.freeze()
    }

    /// Returns whether `IA32_DEBUGCTL` freezes the counters in System Management Mode.
    pub(crate) fn freezes_in_smm(&self) -> bool {
        self.registers.freezes_in_smm()
    }

    fn area(&self) -> Area<'_> {
        Area { memory: self.memory.as_deref(), address: self.registers.area() }
    }

    /// Records a branch. Returns whether it requests an interrupt.
    pub(crate) fn branch(&mut self, mode: Mode, branch: Branch) -> bool {
        let Some(interrupts) = self.registers.branches(mode == Mode::Kernel) else { return false };
        match self.area().append(Section::Bts, &branch.record(), !interrupts) {
            Ok(Outcome::Written { reached }) => {
                self.stored.branches += 1;
                interrupts && reached
            }
            Ok(Outcome::Late | Outcome::Refused) => {
                self.stored.branches_refused += 1;
                false
            }
            Err(Unmapped) => {
                self.stored.faults += 1;
                false
            }
        }
    }

    /// Returns whether branches of any mode are written to memory.
    pub(crate) fn stores_branches(&self) -> bool {
        [false, true].iter().any(|kernel| self.registers.branches(*kernel).is_some())
    }

    /// Returns the layout of the records of a counter, or `None` if its overflows write none. `adaptive`: the control
    /// register of the counter selects the groups of `PEBS_DATA_CFG`. `accessed` is what its event says of accesses.
    pub(crate) fn precise(
        &self,
        id: CounterId,
        selected: Selected,
        adaptive: bool,
        accessed: Option<Accessed>,
    ) -> Option<Precise> {
        let format = self.registers.records(id, selected)?;
        let delay = u64::from(!self.registers.is_distributed(id, selected));
        Some(Precise { id, format, groups: if adaptive { self.registers.data_cfg() } else { 0 }, delay, accessed })
    }

    /// Returns whether a counter measures the latency of loads.
    pub(crate) fn measures_latency(&self, id: CounterId) -> bool {
        self.registers.measures_latency(id)
    }

    /// Returns whether the overflows of any counter write records.
    pub(crate) fn records(&self) -> bool {
        self.registers.any_records()
    }

    fn record(&self, precise: Precise, access: [u64; 3]) -> Vec<u64> {
        let (Precise { id, format, groups, .. }, (ip, time)) = (precise, self.place);
        if let Some(architectural) = self.registers.architectural() {
            return architectural.record(id, ip, time, access);
        }
        Event { format, counter: id, ip, time, groups, access }.record()
    }

    fn reset_value(&self, precise: Precise) -> Result<u64, Unmapped> {
        match self.registers.architectural() {
            Some(architectural) => Ok(architectural.reload(precise.id)),
            None => self.area().word(reset_offset(precise.format, precise.id)),
        }
    }

    /// Returns the bounds of the buffer of records.
    fn buffer(&self) -> Result<Buffer, Unmapped> {
        match self.registers.architectural() {
            Some(architectural) => Ok(architectural.buffer()),
            None => self.area().buffer(Section::Pebs),
        }
    }

    fn append(&mut self, record: &[u64]) -> Result<Outcome, Unmapped> {
        let memory = Area { memory: self.memory.as_deref(), address: self.registers.area() };
        match self.registers.architectural_mut() {
            Some(architectural) => architectural.append(&memory, record),
            None => memory.append(Section::Pebs, record, false),
        }
    }

    /// Counts events. Each overflow leads to a record, after which the counter is reloaded from the save area.
    pub(crate) fn count(&mut self, counter: &mut Counter, precise: Precise, mut events: u64) -> Counted {
        let mut sum = Counted::default();
        loop {
            let mut delay = 1;
            if !self.armed.contains(&precise.id) {
                let left = counter.until_overflow();
                if events < left {
                    counter.add(events);
                    break;
                }
                events -= left;
                let overflows = counter.add(left);
                if overflows == 0 {
                    continue; // `until_overflow` saturated: one event remains
                }
                sum.overflows += overflows;
                self.armed.insert(precise.id);
                sum.overflowed = Some(true);
                delay = precise.delay;
            }
            if events < delay {
                break;
            }
            events -= delay;
            counter.add(delay);
            match self.record_and_reload(counter, precise) {
                Ok(Outcome::Written { reached }) => {
                    *self.stored.records.entry(precise.id).or_default() += 1;
                    sum.reached |= reached;
                }
                Ok(Outcome::Late) => {}
                // The save area does not change within this call, so later events have the same result.
                Ok(Outcome::Refused) => {
                    self.stored.records_refused += 1 + events;
                    sum.overflows += counter.add(events);
                    break;
                }
                Err(Unmapped) => {
                    let more = counter.add(std::mem::take(&mut events));
                    self.stored.faults += 1 + more;
                    sum.overflows += more;
                }
            }
            self.armed.remove(&precise.id);
            sum.overflowed = Some(false);
        }
        sum
    }

    /// Writes a record and reloads the counter, if the record fits. After an access to unmapped memory, the counter
    /// continues with its value.
    fn record_and_reload(&mut self, counter: &mut Counter, precise: Precise) -> Result<Outcome, Unmapped> {
        let reset = self.reset_value(precise)?;
        let access = self.next_access(precise.id, precise.accessed);
        let record = self.record(precise, access);
        let kept = self.registers.architectural_mut().and_then(|pebs| pebs.keep(precise.id, &record));
        let outcome = kept.map_or_else(|| self.append(&record), Ok)?;
        if outcome != Outcome::Refused {
            counter.write(reset);
        }
        Ok(outcome)
    }

    /// Returns the minimum number of events until a record reaches the threshold, if `sharing` counters write to the
    /// buffer. The number is exact for a single counter. `None`: the buffer has no room for that record, or the save
    /// area is unmapped.
    pub(crate) fn until_interrupt(&self, counter: &Counter, precise: Precise, sharing: u64) -> Option<u64> {
        let buffer = self.buffer().ok()?;
        let size = self.record(precise, self.access).iter().map(|_| WORD).sum();
        // At least one of the counters writes its share of the missing bytes.
        let missing = buffer.threshold.saturating_sub(buffer.index).div_ceil(sharing);
        let records = missing.div_ceil(size).max(1);
        if !buffer.has_room(records.checked_mul(size)?) {
            return None;
        }
        let reloaded = counter.loaded(self.reset_value(precise).ok()?).until_overflow();
        let period = reloaded.saturating_add(precise.delay);
        let overflow = counter.until_overflow().saturating_add(precise.delay);
        let first = if self.armed.contains(&precise.id) { 1 } else { overflow };
        Some(first.saturating_add(period.saturating_mul(records - 1)))
    }
}
