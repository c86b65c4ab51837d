//! The PMU enumeration of Intel processors: CPUID leaves 0AH and 23H, and the leaves that add bits to its registers
//! (SDM Vol. 2, CPUID; SDM, "Architectural Performance Monitoring").

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
/// `IA32_PERF_CAPABILITIES.PERF_METRICS_AVAILABLE` (SDM Vol. 4).
const PERF_METRICS: u32 = 15;

#[derive(Debug, Clone)]
pub(crate) struct IntelLeaf {
    /// 1 to 5.
    pub(crate) version: u8,
    pub(crate) general: usize,
    pub(crate) general_width: u32,
    /// Bit i: fixed counter i exists.
    pub(crate) fixed: u64,
    pub(crate) fixed_width: u32,
    /// `IA32_PERF_CAPABILITIES`, if it exists.
    pub(crate) perf_capabilities: Option<u64>,
    /// The processor has counters that CPUID does not report.
    hides_counters: bool,
    pub(crate) features: Features,
}

/// The features that add bits to the registers.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a bit of CPUID")]
pub(crate) struct Features {
    /// Leaf 0AH does not deprecate `AnyThread` (EDX bit 15).
    pub(crate) any_thread: bool,
    /// The select registers have the pin control of processors before Sandy Bridge.
    pub(crate) pin_control: bool,
    /// HLE or RTM, `CPUID.(7,0):EBX[4]` and `[11]`.
    pub(crate) transactions: bool,
    /// SGX, `CPUID.(7,0):EBX[2]`.
    pub(crate) sgx: bool,
    /// Processor Trace, `CPUID.(7,0):EBX[25]`.
    pub(crate) processor_trace: bool,
    /// DS, `CPUID.1:EDX[21]`.
    pub(crate) debug_store: bool,
    /// The general counters that last branch records can log, `CPUID.1CH:ECX[19:16]`.
    pub(crate) branch_counters: u64,
    /// UMASK2, EQ and user-mode RDPMC disable, `CPUID.(23H,0):EBX[2:0]`.
    pub(crate) umask2: bool,
    pub(crate) eq: bool,
    pub(crate) user_rdpmc: bool,
    /// The metrics have level 2: every processor with metrics except Ice Lake and its successors of the same core.
    pub(crate) level_2_metrics: bool,
    /// Architectural PEBS, `CPUID.(23H,0):EAX[5:4]`: it has registers of its own instead of `IA32_PEBS_ENABLE`.
    pub(crate) architectural_pebs: bool,
}

impl Features {
    fn read(cpuid: &dyn Fn(u32, u32) -> [u32; 4], leaf_23: [u32; 4]) -> Self {
        let [last, ..] = cpuid(0, 0);
        let leaf = |number, subleaf| if last >= number { cpuid(number, subleaf) } else { [0; 4] };
        let has = |register: u32, number| bit(u64::from(register), number);
        let [signature, _, _, features] = cpuid(1, 0);
        let [_, structured, ..] = leaf(7, 0);
        let [subleaves, selects, ..] = leaf_23;
        Self {
            any_thread: !has(leaf(0xA, 0)[3], 15),
            pin_control: has_pin_control(signature),
            transactions: has(structured, 4) || has(structured, 11),
            sgx: has(structured, 2),
            processor_trace: has(structured, 25),
            debug_store: has(features, 21),
            branch_counters: u64::from(byte(leaf(0x1C, 0)[2], 19, 16)),
            umask2: has(selects, 0),
            eq: has(selects, 1),
            user_rdpmc: has(selects, 2),
            level_2_metrics: !is_sunny_cove(signature),
            architectural_pebs: has(subleaves, 4) && has(subleaves, 5),
        }
    }
}

/// Returns whether this is a processor of family 6 before Sandy Bridge or an early Atom (SDM Vol. 4, "CPUID Signature
/// Values of DisplayFamily_DisplayModel").
fn has_pin_control(signature: u32) -> bool {
    let model = byte(signature, 19, 16) << 4 | byte(signature, 7, 4);
    byte(signature, 11, 8) == 6 && matches!(model, 0x0E..0x2A | 0x2C | 0x2E | 0x2F | 0x35 | 0x36)
}

/// Returns whether this is an Ice Lake, Tiger Lake or Rocket Lake, whose metrics have level 1 only (SDM Vol. 4, "CPUID
/// Signature Values of DisplayFamily_DisplayModel"; Linux, arch/x86/events/intel/core.c, `intel_pmu_init`).
fn is_sunny_cove(signature: u32) -> bool {
    let model = byte(signature, 19, 16) << 4 | byte(signature, 7, 4);
    byte(signature, 11, 8) == 6 && matches!(model, 0x7D | 0x7E | 0x6A | 0x6C | 0x8C | 0x8D | 0xA7)
}

/// Returns whether this is a P core of Alder Lake, Raptor Lake or Meteor Lake beside E cores, without a hypervisor.
/// CPUID reports what both kinds of cores have, and `PERF_METRICS_AVAILABLE` is clear on some; the core has eight
/// general counters, fixed counter 3 and its metrics (Linux, arch/x86/events/intel/core.c, `intel_pmu_init` and
/// `intel_pmu_broken_perf_cap`).
pub(crate) fn hides_counters(cpuid: &dyn Fn(u32, u32) -> [u32; 4]) -> bool {
    let ([last, ..], [signature, _, features, _]) = (cpuid(0, 0), cpuid(1, 0));
    let model = byte(signature, 19, 16) << 4 | byte(signature, 7, 4);
    let is_hybrid = last >= 0x1A && bit(u64::from(cpuid(7, 0)[3]), 15);
    byte(signature, 11, 8) == 6
        && matches!(model, 0x97 | 0x9A | 0xB7 | 0xBA | 0xBF | 0xAA | 0xAC | 0xB5)
        && is_hybrid
        && byte(cpuid(0x1A, 0)[0], 31, 24) == 0x40
        && !bit(u64::from(features), 31)
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
        // Processors of versions 2 to 4 have three fixed counters, even if early ones report fewer, and no width
        // (Linux, arch/x86/events/intel/core.c, `intel_pmu_init`). A hypervisor has those that it reports.
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
        let leaf_23 = leaf_23(cpuid);
        let [by_bitmaps, ..] = leaf_23;
        // The bitmaps of general and fixed counters, if subleaf 1 is valid.
        let bitmaps = bit(u64::from(by_bitmaps), 1).then(|| cpuid(0x23, 1));
        let general = match bitmaps {
            // The counters of a bitmap without holes.
            Some([bitmap, ..]) => bitmap.trailing_ones() as usize,
            None => usize::from(byte(eax, 15, 8)),
        };
        let fixed = match bitmaps {
            Some([_, bitmap, ..]) if fixed_width > 0 => u64::from(bitmap),
            _ => fixed,
        };
        let hides_counters = hides_counters(cpuid);
        let (general, fixed) = if hides_counters { (general.max(8), fixed | 1 << 3) } else { (general, fixed) };
        Some(Self {
            version,
            general: if general_width == 0 { 0 } else { general.min(MAX_GENERAL) },
            general_width,
            fixed: fixed & ones(MAX_FIXED),
            fixed_width,
            perf_capabilities: pdcm.then_some(perf_capabilities),
            hides_counters,
            features: Features::read(cpuid, leaf_23),
        })
    }

    fn has_capability(&self, number: u32) -> bool {
        self.perf_capabilities.is_some_and(|capabilities| bit(capabilities, number))
    }

    /// Returns whether the full-width aliases exist.
    pub(crate) fn full_width_writes(&self) -> bool {
        self.has_capability(FULL_WIDTH_WRITES)
    }

    /// Returns whether PEBS records are adaptive and fixed counters can write them.
    pub(crate) fn pebs_baseline(&self) -> bool {
        self.has_capability(PEBS_BASELINE)
    }

    /// Returns whether fixed counter 3 has performance metrics.
    pub(crate) fn perf_metrics(&self) -> bool {
        (self.has_capability(PERF_METRICS) || self.hides_counters) && bit(self.fixed, 3)
    }

    /// Returns whether the `AnyThread` bits of the control registers exist.
    pub(crate) fn any_thread(&self) -> bool {
        self.version >= 3 && self.features.any_thread
    }
}

/// Returns subleaf 0 of leaf 23H, or zeros without that leaf (SDM Vol. 2, CPUID, "Architectural Performance Monitoring
/// Extended Leaf").
pub(crate) fn leaf_23(cpuid: &dyn Fn(u32, u32) -> [u32; 4]) -> [u32; 4] {
    let ([last, ..], [last_of_7, ..]) = (cpuid(0, 0), cpuid(7, 0));
    // ArchPerfmonExt, CPUID.7.1:EAX[8].
    let exists = last >= 0x23 && last_of_7 > 0 && bit(u64::from(cpuid(7, 1)[0]), 8);
    if exists { cpuid(0x23, 0) } else { [0; 4] }
}
