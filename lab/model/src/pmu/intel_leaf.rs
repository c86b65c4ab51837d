//! The PMU enumeration of Intel processors: CPUID leaves 0AH and 23H, and the leaves that add bits to its registers (SDM Vol. 2,
//! CPUID; SDM, "Architectural Performance Monitoring").

use crate::bits::{bit, byte, ones};

/// The highest version that the model supports. Higher versions include it.
const KNOWN_VERSION: u8 = 5;
/// Only `IA32_PMC0` to `IA32_PMC9` have MSR addresses.
const MAX_GENERAL: usize = 10;
/// `IA32_FIXED_CTR_CTRL` has room for 16.
const MAX_FIXED: u32 = 16;
/// `IA32_PERF_CAPABILITIES.FW_WRITE` (SDM, "Full-Width Writes to Performance Counter Registers").
const FULL_WIDTH_WRITES: u32 = 13;
/// `IA32_PERF_CAPABILITIES.PEBS_BASELINE` (SDM Vol. 4).
const PEBS_BASELINE: u32 = 14;

#[derive(Debug, Clone)]
pub(crate) struct IntelLeaf {
    /// 1 to 5.
    pub(crate) version: u8,
    pub(crate) general: usize,
    pub(crate) general_width: u32,
    /// Bit i: fixed counter i exists.
    pub(crate) fixed: u64,
    pub(crate) fixed_width: u32,
    /// The `AnyThread` bits of the control registers exist.
    pub(crate) any_thread: bool,
    /// `IA32_PERF_CAPABILITIES`, if it exists.
    pub(crate) perf_capabilities: Option<u64>,
    /// The bits of the select registers that leaf 23H adds.
    pub(crate) select_bits: u64,
    /// The bits of the global status that do not belong to counters.
    pub(crate) other_status: u64,
}

impl IntelLeaf {
    /// Reads the enumeration. Returns `None` if the processor reports no architectural PMU.
    pub(crate) fn read(cpuid: &dyn Fn(u32, u32) -> [u32; 4], perf_capabilities: u64) -> Option<Self> {
        let [last, ..] = cpuid(0, 0);
        if last < 0xA {
            return None;
        }
        let [eax, _, ecx, edx] = cpuid(0xA, 0);
        let version = byte(eax, 7, 0).min(KNOWN_VERSION);
        if version == 0 {
            return None;
        }
        let [_, _, features, _] = cpuid(1, 0);
        let pdcm = bit(u64::from(features), 15);
        let general_width = u32::from(byte(eax, 23, 16)).min(u64::BITS);
        // Processors of versions 2 to 4 have three fixed counters, even if early ones report fewer, and no width (Linux,
        // arch/x86/events/intel/core.c, `intel_pmu_init`). A hypervisor has those that it reports.
        let is_early = (2..=4).contains(&version) && !bit(u64::from(features), 31);
        let fixed_width = match u32::from(byte(edx, 12, 5)).min(u64::BITS) {
            0 if is_early => general_width,
            width => width,
        };
        // EDX is valid from version 2, ECX from version 5. A counter exists if either enumerates it (CPUID leaf 0AH,
        // ECX).
        let counted = ones(u32::from(byte(edx, 4, 0)));
        let fixed = match version {
            _ if fixed_width == 0 => 0,
            1 => 0,
            2..=4 if is_early => counted | 0b111,
            2..=4 => counted,
            _ => counted | u64::from(ecx),
        };
        let extended = Extended::read(cpuid);
        let general = match extended.counters {
            // The counters of a bitmap without holes.
            Some((bitmap, _)) => bitmap.trailing_ones() as usize,
            None => usize::from(byte(eax, 15, 8)),
        };
        let fixed = match extended.counters {
            Some((_, bitmap)) if fixed_width > 0 => u64::from(bitmap),
            _ => fixed,
        };
        Some(Self {
            version,
            general: if general_width == 0 { 0 } else { general.min(MAX_GENERAL) },
            general_width,
            fixed: fixed & ones(MAX_FIXED),
            fixed_width,
            any_thread: version >= 3 && !bit(u64::from(edx), 15),
            perf_capabilities: pdcm.then_some(perf_capabilities),
            select_bits: extended.select_bits,
            other_status: other_status(version, if last >= 7 { cpuid(7, 0) } else { [0; 4] }),
        })
    }

    /// Returns whether the full-width aliases exist.
    pub(crate) fn full_width_writes(&self) -> bool {
        self.perf_capabilities.is_some_and(|capabilities| bit(capabilities, FULL_WIDTH_WRITES))
    }

    /// Returns whether PEBS records are adaptive and fixed counters can write them.
    pub(crate) fn pebs_baseline(&self) -> bool {
        self.perf_capabilities.is_some_and(|capabilities| bit(capabilities, PEBS_BASELINE))
    }
}

/// Leaf 23H (SDM Vol. 2, CPUID, "Architectural Performance Monitoring Extended Leaf").
#[derive(Default)]
struct Extended {
    /// The bitmaps of general and fixed counters, if subleaf 1 is valid.
    counters: Option<(u32, u32)>,
    select_bits: u64,
}

impl Extended {
    /// UMASK2 and EQ in the select registers (SDM, "Architectural Performance Monitoring Version 6").
    const UMASK2: u64 = 0xFF << 40;
    const EQ: u64 = 1 << 36;

    fn read(cpuid: &dyn Fn(u32, u32) -> [u32; 4]) -> Self {
        let ([last, ..], [last_of_7, ..]) = (cpuid(0, 0), cpuid(7, 0));
        // ArchPerfmonExt, CPUID.7.1:EAX[8].
        if last < 0x23 || last_of_7 == 0 || !bit(u64::from(cpuid(7, 1)[0]), 8) {
            return Self::default();
        }
        let [subleaves, selects, ..] = cpuid(0x23, 0);
        let [general, fixed, ..] = cpuid(0x23, 1);
        let added = [(0, Self::UMASK2), (1, Self::EQ)].into_iter().filter(|(at, _)| bit(u64::from(selects), *at));
        Self {
            counters: bit(u64::from(subleaves), 1).then_some((general, fixed)),
            select_bits: added.map(|(_, bits)| bits).sum(),
        }
    }
}

/// Returns the bits of `IA32_PERF_GLOBAL_STATUS` that do not belong to counters, by version and feature (SDM Vol. 4,
/// "Architectural MSRs").
fn other_status(version: u8, [_, features, ..]: [u32; 4]) -> u64 {
    let exists = [
        (55, bit(u64::from(features), 25)), // Trace_ToPA_PMI, with Processor Trace
        (58, version >= 4),                 // LBR_Frz
        (59, version >= 4),                 // CTR_Frz
        (60, version >= 4 && bit(u64::from(features), 2)), // ASCI, with SGX
        (61, version >= 3),                 // Ovf_Uncore
        (62, true),                         // OvfBuf
        (63, true),                         // CondChgd
    ];
    exists.iter().filter(|(_, exists)| *exists).map(|(number, _)| 1u64 << number).sum()
}
