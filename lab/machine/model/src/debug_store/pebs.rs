//! PEBS records: the tables of SDM Vol. 3B, "Processor Event Based Sampling (PEBS)" in the sections of Core 2 (format
//! 0), Nehalem (1), Haswell (2) and Skylake (3), and "Adaptive PEBS" (4, 5).

use super::area::WORD;
use crate::{
    bits::{bit, field, ones},
    counter::CounterId,
};

/// Length of every instruction of the model. In the fields that hold the address of the next instruction, `ip` is
/// higher by this length.
pub const INSTRUCTION_LENGTH: u64 = 4;

/// Clocks since the previous instruction, in the first word of a format 5 record. Constant in the model.
const RETIRE_LATENCY: u64 = 7;
const RETIRE_LATENCY_BITS: u32 = 32;
const SIZE_BITS: u32 = 48;

/// The bits of `PEBS_DATA_CFG`: data groups, and the number of last branch record entries minus one.
const MEMORY: u32 = 0;
const GENERAL_REGISTERS: u32 = 1;
const XMM_REGISTERS: u32 = 2;
const LAST_BRANCHES: u32 = 3;
const ENTRIES: (u32, u32) = (31, 24);

/// RFLAGS. All registers are the same in every record.
pub(super) const FLAGS: u64 = 0x246;
/// From, to and information fields of a last branch record entry.
const LAST_BRANCH: [u64; 3] = [0x1111_0000, 0x1111_1000, 0x5];

/// General registers in the order of the fixed formats, by their encoding in instructions (AX, CX, DX, BX, SP, BP, SI,
/// DI, R8 to R15).
const FIXED_ORDER: [u64; 16] = [0, 3, 1, 2, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15];

/// An access of memory that is recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecordedAccess {
    /// Linear address of the data.
    pub address: u64,
    /// Data source encoding.
    pub source: u64,
    /// Core clock cycles from the dispatch of the access until it had its data.
    pub latency: u64,
    /// Core clock cycles from the dispatch of the instruction until it retired. Only some processors record these.
    pub instruction_latency: u64,
}

impl RecordedAccess {
    /// Returns address, source and latency as in a record. From Alder Lake on both latencies are in one word, with 16
    /// bits each (Linux, arch/x86/events/intel/ds.c, `struct pebs_meminfo`).
    pub(super) fn words(self, packs_latencies: bool) -> [u64; 3] {
        let Self { address, source, latency, instruction_latency } = self;
        let packed = instruction_latency & ones(16) | (latency & ones(16)) << 32;
        [address, source, if packs_latencies { packed } else { latency }]
    }
}

/// The contents of a record.
#[derive(Debug, Clone, Copy)]
pub(super) struct Event {
    /// `PEBS_FMT`.
    pub(super) format: u8,
    /// The counter that overflowed.
    pub(super) counter: CounterId,
    /// The address of the instruction.
    pub(super) ip: u64,
    /// The time-stamp counter.
    pub(super) time: u64,
    /// `PEBS_DATA_CFG` if the counter writes adaptive records, otherwise 0.
    pub(super) groups: u64,
    /// Address, source and latency of the access.
    pub(super) access: [u64; 3],
}

impl Event {
    /// Returns the words of the record.
    pub(super) fn record(self) -> Vec<u64> {
        if self.format < 4 { self.fixed() } else { self.adaptive() }
    }

    fn fixed(self) -> Vec<u64> {
        let mut words = vec![FLAGS, self.ip.wrapping_add(INSTRUCTION_LENGTH)];
        words.extend(FIXED_ORDER.map(general_register));
        if self.format >= 1 {
            words.push(self.counter.bit());
            words.extend(self.access);
        }
        if self.format >= 2 {
            words.extend([self.ip, 0]);
        }
        if self.format >= 3 {
            words.push(self.time);
        }
        words
    }

    fn adaptive(self) -> Vec<u64> {
        let has = |group| bit(self.groups, group);
        let mut words = vec![0, self.ip, self.counter.bit(), self.time];
        if has(MEMORY) {
            words.extend(self.access);
            words.push(0);
        }
        if has(GENERAL_REGISTERS) {
            words.extend([FLAGS, self.ip.wrapping_add(INSTRUCTION_LENGTH)]);
            words.extend((0..16).map(general_register));
        }
        if has(XMM_REGISTERS) {
            words.extend((0..32).map(|half| 0x0F0F_0000 + half));
        }
        let entries = if has(LAST_BRANCHES) { field(self.groups, ENTRIES.0, ENTRIES.1) + 1 } else { 0 };
        for _ in 0..entries {
            words.extend(LAST_BRANCH);
        }
        let groups = if has(LAST_BRANCHES) { self.groups } else { self.groups & ones(ENTRIES.1) };
        let size: u64 = words.iter().map(|_| WORD).sum();
        let latency = if self.format >= 5 { RETIRE_LATENCY << RETIRE_LATENCY_BITS } else { 0 };
        if let Some(first) = words.first_mut() {
            *first = groups | latency | size << SIZE_BITS;
        }
        words
    }
}

/// Returns a value that identifies the register.
pub(super) fn general_register(number: u64) -> u64 {
    0x0101_0101_0101_0101 * (number + 1)
}

/// Returns the offset in the save area of the counter's reset value (same sections; format 5 has space for 32 general
/// counters, "PEBS Record Format" of the latest processors). Metrics have none and write no records.
pub(super) fn reset_offset(format: u8, counter: CounterId) -> u64 {
    const GENERAL: u64 = 0x40;
    let fixed = if format < 5 { GENERAL + 8 * WORD } else { GENERAL + 32 * WORD };
    match counter {
        CounterId::General(number) => GENERAL + WORD * u64::from(number),
        CounterId::Fixed(number) => fixed + WORD * u64::from(number),
        CounterId::Metric(_) => 0,
    }
}
