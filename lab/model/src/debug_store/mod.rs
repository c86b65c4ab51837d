//! Intel's Debug Store (SDM Vol. 3B, "Debug Store (DS) Mechanism"): memory into which the processor writes by itself which
//! branches it took (BTS) and what it was doing when a counter overflowed (PEBS).
//!
//! A real processor arms PEBS with the overflow, and takes the record at the event that comes after it. The model's record
//! is that of the overflow itself. What follows an access to memory that is not mapped is the end of a real machine: the
//! model counts it, lets the record go, and leaves the index where it was.
//!
//! | file | what it holds |
//! |---|---|
//! | `registers.rs` | the registers, and which a processor has |
//! | `area.rs` | memory, the save area, and a record's way into a buffer |
//! | `branch.rs` | a record of a branch |
//! | `pebs.rs` | a record of an event, by format |
//! | `recordable.rs` | which events are recorded on which counters, by model |

mod area;
mod branch;
mod pebs;
mod recordable;
mod registers;

pub use area::Memory;
pub use branch::Branch;
pub use pebs::INSTRUCTION_LENGTH;

use crate::{
    counter::{Counter, CounterId},
    fault::GeneralProtection,
    processor::Mode,
    select::Selected,
};
use area::{Area, Outcome, Section, Unmapped, WORD};
use pebs::{Event, reset_offset};
use registers::Registers;
use std::collections::BTreeMap;

/// What went to memory, and what did not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stored {
    /// Branches that were written.
    pub branches: u64,
    /// Branches that were not, for want of room or because index and bounds contradict each other.
    pub branches_refused: u64,
    /// Events that were written, by counter.
    pub records: BTreeMap<CounterId, u64>,
    /// Events that were not, for the same reasons.
    pub records_refused: u64,
    /// Records of either kind that met memory which is not mapped.
    pub faults: u64,
}

/// A counter whose overflows write records.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Precise {
    id: CounterId,
    format: u8,
    /// The groups of an adaptive record.
    groups: u64,
}

/// What counting came to.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counted {
    pub(crate) overflows: u64,
    /// A record came to the threshold.
    pub(crate) reached: bool,
}

/// What a processor has of it; nothing, where it is not Intel's.
pub(crate) struct DebugStore {
    registers: Registers,
    memory: Option<Box<dyn Memory>>,
    /// Where the code is, and the time-stamp counter, for records of events.
    place: (u64, u64),
    stored: Stored,
}

impl DebugStore {
    /// After reset. `monitors`: the processor has counters.
    pub(crate) fn new(cpuid: &dyn Fn(u32, u32) -> [u32; 4], perf_capabilities: u64, monitors: bool) -> Self {
        let registers = Registers::new(cpuid, perf_capabilities, monitors);
        Self { registers, memory: None, place: (0, 0), stored: Stored::default() }
    }

    pub(crate) fn lose_power(&mut self) {
        self.registers.reset();
    }

    pub(crate) fn set_memory(&mut self, memory: Box<dyn Memory>) {
        self.memory = Some(memory);
    }

    pub(crate) fn set_misc_enable(&mut self, value: u64) {
        self.registers.set_misc_enable(value);
    }

    pub(crate) fn set_place(&mut self, ip: u64, time: u64) {
        self.place = (ip, time);
    }

    pub(crate) fn stored(&self) -> &Stored {
        &self.stored
    }

    pub(crate) fn clear(&mut self) {
        self.stored = Stored::default();
    }

    /// None: there is no such register.
    pub(crate) fn rdmsr(&self, msr: u32) -> Option<u64> {
        self.registers.rdmsr(msr)
    }

    /// None: there is no such register.
    pub(crate) fn wrmsr(&mut self, msr: u32, value: u64) -> Option<Result<(), GeneralProtection>> {
        self.registers.wrmsr(msr, value)
    }

    fn area(&self) -> Area<'_> {
        Area { memory: self.memory.as_deref(), address: self.registers.area() }
    }

    /// Whether a branch interrupts.
    pub(crate) fn branch(&mut self, mode: Mode, branch: Branch) -> bool {
        let Some(interrupts) = self.registers.branches(mode == Mode::Kernel) else { return false };
        match self.area().append(Section::Bts, &branch.record(), !interrupts) {
            Ok(Outcome::Written { reached }) => {
                self.stored.branches += 1;
                interrupts && reached
            }
            Ok(Outcome::Refused) => {
                self.stored.branches_refused += 1;
                false
            }
            Err(Unmapped) => {
                self.stored.faults += 1;
                false
            }
        }
    }

    /// Whether branches of any mode go to memory.
    pub(crate) fn stores_branches(&self) -> bool {
        [false, true].iter().any(|kernel| self.registers.branches(*kernel).is_some())
    }

    /// How the records of a counter of this event are; None: its overflows write none. `adaptive`: by its control register
    /// they have the groups of `PEBS_DATA_CFG`.
    pub(crate) fn precise(&self, id: CounterId, selected: Selected, adaptive: bool) -> Option<Precise> {
        let format = self.registers.records(id, selected)?;
        Some(Precise { id, format, groups: if adaptive { self.registers.data_cfg() } else { 0 } })
    }

    /// Whether the overflows of any counter write records.
    pub(crate) fn records(&self) -> bool {
        self.registers.any_records()
    }

    fn record(&self, precise: Precise) -> Vec<u64> {
        let (Precise { id, format, groups }, (ip, time)) = (precise, self.place);
        Event { format, counter: id, ip, time, groups }.record()
    }

    fn reset_value(&self, precise: Precise) -> Result<u64, Unmapped> {
        self.area().word(reset_offset(precise.format, precise.id))
    }

    /// Counts events. Each overflow writes a record and loads the counter from the save area.
    pub(crate) fn count(&mut self, counter: &mut Counter, precise: Precise, mut events: u64) -> Counted {
        let mut sum = Counted::default();
        while events >= counter.until_overflow() {
            let left = counter.until_overflow();
            events -= left;
            let overflows = counter.add(left);
            if overflows == 0 {
                continue; // 64 bits from zero take one more
            }
            sum.overflows += overflows;
            match self.overflow(counter, precise) {
                Ok(Outcome::Written { reached }) => {
                    *self.stored.records.entry(precise.id).or_default() += 1;
                    sum.reached |= reached;
                }
                // What befell this one befalls those that follow: nobody changes the save area meanwhile.
                Ok(Outcome::Refused) => {
                    let more = events / counter.until_overflow();
                    events %= counter.until_overflow();
                    self.stored.records_refused += 1 + more;
                    sum.overflows += more;
                }
                Err(Unmapped) => {
                    let more = counter.add(std::mem::take(&mut events));
                    self.stored.faults += 1 + more;
                    sum.overflows += more;
                }
            }
        }
        counter.add(events);
        sum
    }

    /// One overflow: a record, or none for want of room, and the counter is loaded. Memory that is not mapped leaves it at
    /// zero, from where it goes on.
    fn overflow(&self, counter: &mut Counter, precise: Precise) -> Result<Outcome, Unmapped> {
        let reset = self.reset_value(precise)?;
        let outcome = self.area().append(Section::Pebs, &self.record(precise), false)?;
        counter.write(reset);
        Ok(outcome)
    }

    /// How many events a counter needs at the least until a record comes to the threshold, when `sharing` counters write
    /// to the buffer: with one alone, exactly so many. None: it will not.
    pub(crate) fn until_interrupt(&self, counter: &Counter, precise: Precise, sharing: u64) -> Option<u64> {
        let buffer = self.area().buffer(Section::Pebs).ok()?;
        let size = self.record(precise).iter().map(|_| WORD).sum();
        // One of them writes at least its part of the bytes that are missing.
        let missing = buffer.threshold.saturating_sub(buffer.index).div_ceil(sharing);
        let records = missing.div_ceil(size).max(1);
        if !buffer.has_room(records.checked_mul(size)?) {
            return None;
        }
        let period = counter.loaded(self.reset_value(precise).ok()?).until_overflow();
        Some(counter.until_overflow().saturating_add(period.saturating_mul(records - 1)))
    }
}
