//! What firmware, or a program before, has left in the registers.

use std::ops::Range;

use crate::cpu::ModelCpu;

/// Selects, counters, global control and extra registers of all makers.
const REGISTERS: [Range<u32>; 11] = [
    0x11..0x14,
    0xC1..0xC9,
    0x186..0x18E,
    0x1A6..0x1A8,
    0x300..0x312,
    0x309..0x30D,
    0x38F..0x390,
    0x3A0..0x3E2,
    0xC000_0301..0xC000_0302,
    0xC001_0000..0xC001_0008,
    0xC001_0200..0xC001_020C,
];

/// Not enabled as a select register of any maker, and a small value as a counter. No trial of the driver has this bit.
const VALUE: u64 = 0x08;

impl ModelCpu {
    /// Writes a value to the registers, as far as the processor has them, that lets none of the counters count.
    pub fn leave_stale_values(&self) {
        REGISTERS.into_iter().flatten().for_each(|msr| _ = self.write_foreign(msr, VALUE));
    }
}
