//! What Instruction-Based Sampling a processor has, from CPUID, and what it does wrong.

use crate::bits::{bit, byte};
use crate::cpuid::{Cpuid, family, is_amd};

/// Bits of leaf 8000001BH, EAX.
const VALID: u32 = 0;
const FETCH_SAMPLING: u32 = 1;
const OP_SAMPLING: u32 = 2;
const COUNTER_ACCESS: u32 = 3;
const COUNTS_OPS: u32 = 4;
const BRANCH_TARGET: u32 = 5;
const LONG_COUNTER: u32 = 6;
const RIP_INVALID: u32 = 7;
const FETCH_EXTENSION: u32 = 9;
const DATA_4: u32 = 10;
const L3_MISS_ONLY: u32 = 11;
const LATENCY_FILTER: u32 = 12;
const DISABLE: u32 = 13;
const RIP_FILTER: u32 = 15;
const PHYSICAL_ADDRESS: u32 = 19;

/// The flags where the leaf does not say: fetch and op sampling, with a counter of 20 bits (BKDG of family 10h).
const WITHOUT_FLAGS: u32 = 0b111;

/// The units of a processor.
#[derive(Debug, Clone)]
pub(super) struct Facts {
    flags: u32,
    family: u32,
    model: u8,
}

impl Facts {
    /// Returns `None` without a unit. Hypervisors show the leaf and refuse the registers.
    pub(super) fn read(cpuid: Cpuid<'_>) -> Option<Self> {
        let [last, ..] = cpuid(0x8000_0000, 0);
        let [signature, _, features, _] = cpuid(1, 0);
        let [_, _, extended, _] = cpuid(0x8000_0001, 0);
        if !is_amd(cpuid) || !bit(extended.into(), 10) || bit(features.into(), 31) {
            return None;
        }
        let [flags, ..] = if last >= 0x8000_001B { cpuid(0x8000_001B, 0) } else { [0; 4] };
        let flags = if bit(flags.into(), VALID) { flags } else { WITHOUT_FLAGS };
        let model = byte(signature, 19, 16) << 4 | byte(signature, 7, 4);
        let has_unit = bit(flags.into(), OP_SAMPLING) || bit(flags.into(), FETCH_SAMPLING);
        has_unit.then_some(Self { flags, family: family(signature), model })
    }

    fn has(&self, flag: u32) -> bool {
        bit(self.flags.into(), flag)
    }

    pub(super) fn samples_ops(&self) -> bool {
        self.has(OP_SAMPLING)
    }

    pub(super) fn samples_fetches(&self) -> bool {
        self.has(FETCH_SAMPLING)
    }

    /// Returns whether the register with the latency of page walks exists.
    pub(super) fn has_fetch_extension(&self) -> bool {
        self.has(FETCH_EXTENSION)
    }

    /// Returns whether what is said of a fetch means something only with a physical address.
    pub(super) fn needs_physical_address(&self) -> bool {
        self.has(PHYSICAL_ADDRESS)
    }

    /// Returns whether fetches tell misses of the L2 cache.
    pub(super) fn is_zen(&self) -> bool {
        self.family >= 0x17
    }

    /// Returns whether the counter of fetches is only written while the unit is off (Linux,
    /// `fetch_count_reset_broken`).
    pub(super) fn keeps_fetch_counter(&self) -> bool {
        matches!(self.family, 0x16..=0x18)
    }

    /// Returns the number of bits of the period and of its counter.
    pub(super) fn counter_bits(&self) -> u32 {
        if self.has(LONG_COUNTER) { 27 } else { 20 }
    }

    /// Returns whether ops can be counted instead of cycles.
    pub(super) fn counts_ops(&self) -> bool {
        self.has(COUNTS_OPS)
    }

    /// Returns whether software reads and writes the counter.
    pub(super) fn has_counter_access(&self) -> bool {
        self.has(COUNTER_ACCESS)
    }

    pub(super) fn has_branch_target(&self) -> bool {
        self.has(BRANCH_TARGET)
    }

    /// Returns whether a bit tells that the address of the op is not valid.
    pub(super) fn tells_invalid_rip(&self) -> bool {
        self.has(RIP_INVALID)
    }

    pub(super) fn has_data_4(&self) -> bool {
        self.has(DATA_4)
    }

    /// Returns whether sources have five bits, and samples can be those of misses of the L3 cache alone.
    pub(super) fn is_zen_4(&self) -> bool {
        self.has(L3_MISS_ONLY)
    }

    pub(super) fn filters_latency(&self) -> bool {
        self.has(LATENCY_FILTER)
    }

    /// Returns whether the second control register exists.
    pub(super) fn has_second_control(&self) -> bool {
        self.has(DISABLE)
    }

    pub(super) fn filters_rip(&self) -> bool {
        self.has(RIP_FILTER)
    }

    /// Erratum 1293: the source, and whether the L2 cache missed, are wrong of a software prefetch and of an op without
    /// a miss address buffer (Linux, `amd_ibs_get_mem_lvl`).
    pub(super) fn is_wrong_without_buffer(&self) -> bool {
        self.family == 0x19 && self.model < 0x10
    }

    /// The state of the line that was hit is not valid (Linux, `ibs_hitm_valid`).
    pub(super) fn has_wrong_hit_state(&self) -> bool {
        self.family == 0x19 && matches!(self.model, 0..0x10 | 0x20..0x60)
    }

    /// Erratum 420: a unit that is switched off before its period is cleared shows a sample from then on.
    pub(super) fn keeps_sample(&self) -> bool {
        self.family == 0x10
    }

    /// Erratum 1606: the latency filter works only together with that for misses of the L3 cache.
    pub(super) fn needs_both_filters(&self) -> bool {
        self.family == 0x1A && self.model < 0x50
    }
}
