//! Architectural PEBS (Intel Architecture Instruction Set Extensions and Future Features, "Architectural PEBS"; Linux,
//! arch/x86/include/asm/msr-index.h and perf_event.h): its registers, and the fragments of its records. The buffer is
//! physical memory, and `IA32_DS_AREA` has no part in it.
//!
//! Where the manual says nothing, the model is unkind: the buffer cannot move while records are written, a record that
//! does not fit sets FULL, and a record can come in fragments.

use crate::{
    bits::{bit, byte, field, ones},
    counter::CounterId,
    fault::{GeneralProtection, refuse_reserved},
};
use std::collections::BTreeMap;

use super::{
    area::{Area, Buffer, Outcome, Unmapped, WORD},
    pebs::{FLAGS, INSTRUCTION_LENGTH, general_register},
};

const PEBS_BASE: u32 = 0x3F4;
const PEBS_INDEX: u32 = 0x3F5;
/// `IA32_PMC_GP0_CFG_C` and `IA32_PMC_FX0_CFG_C`; those of the next counters follow four addresses apart.
const GENERAL_CONFIG: u32 = 0x1903;
const FIXED_CONFIG: u32 = 0x1983;
const STRIDE: u32 = 4;

/// The fields of `IA32_PEBS_INDEX`.
const WR: (u32, u32) = (26, 4);
const FULL: u32 = 31;
const ENABLE: u32 = 32;
const THRESHOLD: (u32, u32) = (58, 36);
/// Its unit in bytes.
const UNIT: u64 = 16;

/// A page in bytes, and the bits of `IA32_PEBS_BASE` that say how many the buffer has.
const PAGE: u64 = 0x1000;
const SIZE: u32 = 4;

/// `EN` of `IA32_PMC_GPn_CFG_C`.
const RECORDS: u32 = 63;

/// The bits of a header.
const CONTINUED: u64 = 1 << 31;
const REGISTERS: u64 = 1 << 61;
const MEMORY: u64 = 1 << 62;
const BASIC: u64 = 1 << 63;

/// How a processor writes its records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Fragments {
    /// Each in one piece.
    #[default]
    None,
    /// By turns in one piece; behind a null record; with a second fragment, which has the memory group; and with a null
    /// record and the memory group in a third.
    ByTurns,
}

/// The enumeration, leaf 23H.
#[derive(Debug, Clone, Copy)]
struct Facts {
    /// Writable bits of `IA32_PEBS_BASE`.
    base: u64,
    /// Writable bits of `CFG_C`.
    config: u64,
    /// The counters that can record, in the form of records; and those of them with precise distribution.
    counters: u64,
    distributed: u64,
}

/// The registers of a processor.
#[derive(Debug, Clone)]
pub(super) struct Architectural {
    facts: Facts,
    base: u64,
    index: u64,
    configs: BTreeMap<CounterId, u64>,
    fragments: Fragments,
    /// Whether a record arrives in memory only when the counters stop, or with the next code that is executed.
    are_late: bool,
    /// Records that have not arrived, with their counters.
    late: Vec<(CounterId, Vec<u64>)>,
    /// Records so far.
    records: u64,
}

/// Returns the size of so many words.
fn size(words: usize) -> u64 {
    words as u64 * WORD
}

impl Architectural {
    /// Reads the enumeration. The processor has both subleaves.
    pub(super) fn read(cpuid: &dyn Fn(u32, u32) -> [u32; 4]) -> Self {
        let [_, capabilities, ..] = cpuid(0x23, 4);
        let [general, distributed, fixed, fixed_distributed] = cpuid(0x23, 5).map(u64::from);
        let address_bits = u32::from(byte(cpuid(0x8000_0008, 0)[0], 7, 0));
        let facts = Facts {
            base: ones(SIZE) | ones(address_bits) & !(PAGE - 1),
            config: ones(32) | u64::from(capabilities) << 32 | 1 << RECORDS,
            counters: general | fixed << 32,
            distributed: distributed | fixed_distributed << 32,
        };
        Self {
            facts,
            base: 0,
            index: 0,
            configs: BTreeMap::new(),
            fragments: Fragments::None,
            are_late: false,
            late: Vec::new(),
            records: 0,
        }
    }

    pub(super) fn reset(&mut self) {
        (self.base, self.index) = (0, 0);
        self.configs.clear();
        self.late.clear();
    }

    pub(super) fn set_late(&mut self, are_late: bool) {
        self.are_late = are_late;
    }

    /// If records are late, keeps one for later, or refuses it if it has no room behind those that wait.
    pub(super) fn keep(&mut self, counter: CounterId, record: &[u64]) -> Option<Outcome> {
        if !self.are_late {
            return None;
        }
        let waiting = self.late.iter().map(|(_, record)| record.len()).sum::<usize>() + record.len();
        if !self.buffer().has_room(waiting as u64 * WORD) {
            self.index |= 1 << FULL;
            return Some(Outcome::Refused);
        }
        self.late.push((counter, record.to_vec()));
        Some(Outcome::Late)
    }

    /// Returns the records that arrive now.
    pub(super) fn take_late(&mut self) -> Vec<(CounterId, Vec<u64>)> {
        std::mem::take(&mut self.late)
    }

    pub(super) fn set_fragments(&mut self, fragments: Fragments) {
        self.fragments = fragments;
    }

    /// Returns the counter whose `CFG_C` is at an address.
    fn counter(&self, msr: u32) -> Option<CounterId> {
        let number = |first: u32| msr.checked_sub(first).filter(|offset| offset % STRIDE == 0 && offset / STRIDE < 32);
        let number = |first| u8::try_from(number(first)? / STRIDE).ok();
        let id = match number(FIXED_CONFIG) {
            Some(number) => CounterId::Fixed(number),
            None => CounterId::General(number(GENERAL_CONFIG)?),
        };
        self.can_record(id).then_some(id)
    }

    pub(super) fn rdmsr(&self, msr: u32) -> Option<u64> {
        match msr {
            PEBS_BASE => Some(self.base),
            PEBS_INDEX => Some(self.index),
            _ => self.counter(msr).map(|counter| self.config(counter)),
        }
    }

    pub(super) fn wrmsr(&mut self, msr: u32, value: u64) -> Option<Result<(), GeneralProtection>> {
        let index = 1 << FULL | 1 << ENABLE | ones(23) << WR.1 | ones(23) << THRESHOLD.1;
        Some(match msr {
            PEBS_BASE if bit(self.index, ENABLE) && value != self.base => Err(GeneralProtection),
            PEBS_BASE => refuse_reserved(value, !self.facts.base).map(|()| self.base = value),
            PEBS_INDEX => refuse_reserved(value, !index).map(|()| self.index = value),
            _ => {
                let counter = self.counter(msr)?;
                refuse_reserved(value, !self.facts.config).map(|()| _ = self.configs.insert(counter, value))
            }
        })
    }

    fn config(&self, counter: CounterId) -> u64 {
        self.configs.get(&counter).copied().unwrap_or_default()
    }

    fn can_record(&self, counter: CounterId) -> bool {
        self.facts.counters & counter.bit() != 0
    }

    /// Returns whether overflows of a counter are recorded.
    pub(super) fn records(&self, counter: CounterId) -> bool {
        bit(self.config(counter), RECORDS) && bit(self.index, ENABLE)
    }

    /// Returns whether overflows of any counter are recorded.
    pub(super) fn any_records(&self) -> bool {
        self.configs.keys().any(|counter| self.records(*counter))
    }

    pub(super) fn is_distributed(&self, counter: CounterId) -> bool {
        self.facts.distributed & counter.bit() != 0
    }

    /// Returns the value with which a counter is loaded after a record.
    pub(super) fn reload(&self, counter: CounterId) -> u64 {
        self.config(counter) & ones(32) | ones(32) << 32
    }

    /// Returns the bounds of the buffer, as offsets from its start.
    pub(super) fn buffer(&self) -> Buffer {
        Buffer {
            base: 0,
            index: field(self.index, WR.0, WR.1) * UNIT,
            maximum: PAGE << (self.base & ones(SIZE)),
            threshold: field(self.index, THRESHOLD.0, THRESHOLD.1) * UNIT,
        }
    }

    /// Returns the words of the next record. `access` are address, source and latency of its access of memory.
    pub(super) fn record(&self, counter: CounterId, ip: u64, time: u64, access: [u64; 3]) -> Vec<u64> {
        let turn = if self.fragments == Fragments::ByTurns { self.records % 4 } else { 0 };
        let [address, source, latency] = access;
        let memory = [address, 0, 0, 0, 0, source, latency, 0];
        let memory = if self.config(counter) & MEMORY != 0 { &memory[..] } else { &[] };
        let has_memory = if memory.is_empty() { 0 } else { MEMORY };
        let (own, later) = if turn < 2 { (memory, &[][..]) } else { (&[][..], memory) };
        let mut words = if turn == 1 { vec![2 * WORD, 0] } else { Vec::new() };
        let continued = if turn >= 2 { CONTINUED } else { 0 };
        let has_own = if own.is_empty() { 0 } else { MEMORY };
        words.extend([BASIC | has_own | continued | size(8 + own.len()), 0, ip, counter.bit(), time, 0, 0, 0]);
        words.extend(own);
        if turn == 2 {
            words.extend([REGISTERS | has_memory | size(20 + later.len() + 2), 0]);
            words.extend(later);
            words.extend([FLAGS, ip.wrapping_add(INSTRUCTION_LENGTH)]);
            words.extend((0..16).map(general_register).chain([0, 0]));
        }
        if turn == 3 {
            words.extend([2 * WORD, 0, has_memory | size(2 + later.len()), 0]);
            words.extend(later);
            // Without a group the last one would be a null record, too: a group that is empty ends the record.
            if later.is_empty() {
                let end = words.len() - 2;
                words.truncate(end);
                words.extend([REGISTERS | size(22), 0]);
                words.extend([0; 20]);
            }
        }
        words
    }

    /// Writes a record at the index and advances the index.
    pub(super) fn append(&mut self, memory: &Area<'_>, record: &[u64]) -> Result<Outcome, Unmapped> {
        let buffer = self.buffer();
        let size = record.iter().map(|_| WORD).sum();
        if !buffer.has_room(size) {
            self.index |= 1 << FULL;
            return Ok(Outcome::Refused);
        }
        let first = (self.base & !(PAGE - 1)).wrapping_add(buffer.index);
        for (word, physical) in record.iter().zip((first..).step_by(8)) {
            memory.write_physical(physical, *word)?;
        }
        let index = buffer.index + size;
        self.index = self.index & !(ones(23) << WR.1) | (index / UNIT) << WR.1;
        self.records += 1;
        Ok(Outcome::Written { reached: index >= buffer.threshold })
    }
}
