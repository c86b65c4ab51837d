//! The bits of each register that software may write. A write of any other bit raises #GP (SDM Vol. 2, WRMSR; APM Vol.
//! 3, WRMSR).
//!
//! Each function is the table of one register: groups of bits, and whether the processor has them. Where manuals and
//! hypervisors disagree, the table has the fewer bits, because software has to work on both. Of KVM, arch/x86/kvm/vmx/
//! pmu_intel.c (`intel_pmu_refresh`) and arch/x86/kvm/svm/pmu.c (`amd_pmu_refresh`) were compared.
//!
//! Not here: counters, whose reserved bits are those above their width; `IA32_DS_AREA`, which takes canonical
//! addresses; registers that refuse every write; and the local APIC (`apic.rs`).

use crate::{
    bits::{bit, ones},
    pmu::IntelLeaf,
};

/// A group of bits, and whether the processor has them.
type Group = (u64, bool);

/// Returns the bits that the processor has.
fn writable(groups: &[Group]) -> u64 {
    groups.iter().filter(|(_, exists)| *exists).fold(0, |all, (bits, _)| all | bits)
}

/// Bits that are at the same position in every event select register: event, unit mask, USR, OS, edge detect; INT, EN,
/// INV, counter mask.
const SELECT: u64 = 0x0007_FFFF | 0xFFD0_0000;
/// Pin control.
const PIN_CONTROL: u64 = 1 << 19;

/// `IA32_PERFEVTSELx` of general counter `number`.
pub(crate) fn perfevtsel(leaf: &IntelLeaf, number: usize) -> u64 {
    let features = &leaf.features;
    let counts_branches = u32::try_from(number).is_ok_and(|number| bit(features.branch_counters, number));
    writable(&[
        // SDM, "Architectural Performance Monitoring Version 1 Facilities".
        (SELECT, true),
        // Same section: reserved from Sandy Bridge on.
        (PIN_CONTROL, features.pin_control),
        // AnyThread (SDM, "Architectural Performance Monitoring Version 3", and "AnyThread Counting and Software
        // Evolution").
        (1 << 21, leaf.any_thread()),
        // IN_TX (SDM, "Performance Monitoring and Intel TSX").
        (1 << 32, features.transactions),
        // IN_TXCP, of counter 2 alone (same section).
        (1 << 33, features.transactions && number == 2),
        // Adaptive_Record (SDM, "Adaptive_Record Counter Control").
        (1 << 34, leaf.pebs_baseline()),
        // Event logging in last branch records, CPUID.1CH:ECX[19:16] (SDM, "LBR Event Logging").
        (1 << 35, counts_branches),
        // EQ, user-mode RDPMC disable and UMASK2, CPUID.23H:EBX (SDM, "Architectural Performance Monitoring Version
        // 6").
        (1 << 36, features.eq),
        (1 << 37, features.user_rdpmc),
        (0xFF << 40, features.umask2),
    ])
}

/// The general and the fixed counters in the global registers. Fixed counter i has bit 32 + i.
fn counters(leaf: &IntelLeaf) -> u64 {
    u32::try_from(leaf.general).map_or(0, ones) | leaf.fixed << 32
}

/// `IA32_FIXED_CTR_CTRL`, version 2 and later: four bits for each fixed counter, and from bit 32 on another four.
pub(crate) fn fixed_ctr_ctrl(leaf: &IntelLeaf) -> u64 {
    let field = writable(&[
        // OS, USR, PMI (SDM, "Architectural Performance Monitoring Version 2 Facilities").
        (0b1011, true),
        // AnyThread ("Version 3").
        (0b0100, leaf.any_thread()),
        // User-mode RDPMC disable ("Version 6").
        (1 << 33, leaf.features.user_rdpmc),
    ]);
    // FC0_Adaptive_Record to FC3_Adaptive_Record (SDM, "Adaptive_Record Counter Control").
    let adaptive = |number| if number < 4 && leaf.pebs_baseline() { 1 << 32 } else { 0 };
    (0..16)
        .filter(|&number| bit(leaf.fixed, number))
        .fold(0, |all, number| all | (field | adaptive(number)) << (4 * number))
}

/// `IA32_PERF_GLOBAL_CTRL`, version 2 and later.
pub(crate) fn global_ctrl(leaf: &IntelLeaf) -> u64 {
    writable(&[
        // SDM, "Architectural Performance Monitoring Version 2 Facilities".
        (counters(leaf), true),
        // EN_PERF_METRICS (SDM, "Performance Metrics"; Vol. 4).
        (1 << 48, leaf.perf_metrics()),
    ])
}

/// `IA32_PERF_GLOBAL_OVF_CTRL`, from version 4 on `_STATUS_RESET` (SDM Vol. 4, "Architectural MSRs").
pub(crate) fn global_status_reset(leaf: &IntelLeaf) -> u64 {
    let features = &leaf.features;
    writable(&[
        (counters(leaf), true),
        (1 << 48, leaf.perf_metrics()),               // OVF_PERF_METRICS
        (1 << 54, features.architectural_pebs),       // threshold of architectural PEBS
        (1 << 55, features.processor_trace),          // Trace_ToPA_PMI
        (0b11 << 58, leaf.version >= 4),              // LBR_Frz, CTR_Frz
        (1 << 60, leaf.version >= 4 && features.sgx), // ASCI
        (1 << 61, leaf.version >= 3),                 // Ovf_Uncore
        // OvfBuf. The manual has it on every version; KVM has it with a Debug Store alone.
        (1 << 62, features.debug_store),
        (1 << 63, true), // CondChgd
    ])
}

/// `IA32_PERF_GLOBAL_STATUS_SET`, version 4 and later: the same bits except CondChgd (SDM Vol. 4).
pub(crate) fn global_status_set(leaf: &IntelLeaf) -> u64 {
    global_status_reset(leaf) & !(1 << 63)
}

/// What decides the bits of `IA32_DEBUGCTL`.
#[expect(clippy::struct_excessive_bools, reason = "each is a feature of the processor")]
pub(crate) struct DebugFacts {
    /// TR, BTS and BTINT, if the processor has a Debug Store.
    pub(crate) store: Option<u64>,
    /// BTS_OFF_OS and BTS_OFF_USR, if it has DS-CPL as well.
    pub(crate) modes: Option<u64>,
    /// `CPUID.1:ECX[15]`.
    pub(crate) pdcm: bool,
    /// Version of architectural performance monitoring, or 0.
    pub(crate) version: u8,
    /// `FREEZE_WHILE_SMM` of `IA32_PERF_CAPABILITIES`.
    pub(crate) freeze_while_smm: bool,
    /// `CPUID.(7,0):ECX[24]`.
    pub(crate) bus_lock_detect: bool,
    /// `CPUID.(7,0):EBX[11]`.
    pub(crate) rtm: bool,
    /// Nehalem or Westmere.
    pub(crate) uncore_pmi: bool,
}

/// `IA32_DEBUGCTL`, `MSR_DEBUGCTLA` of NetBurst (SDM Vol. 4, "Architectural MSRs"; Vol. 3B, "MSR_DEBUGCTLA MSR").
pub(crate) fn debugctl(facts: &DebugFacts) -> u64 {
    writable(&[
        (0b11, true),                                   // LBR, BTF
        (1 << 2, facts.bus_lock_detect),                // BLD
        (facts.store.unwrap_or_default(), true),        // TR, BTS, BTINT
        (facts.modes.unwrap_or_default(), true),        // BTS_OFF_OS, BTS_OFF_USR
        (0b11 << 11, facts.pdcm && facts.version >= 2), // FREEZE_LBRS_ON_PMI, FREEZE_PERFMON_ON_PMI
        (1 << 13, facts.uncore_pmi),                    // ENABLE_UNCORE_PMI
        (1 << 14, facts.freeze_while_smm),              // FREEZE_WHILE_SMM
        (1 << 15, facts.rtm),                           // RTM_DEBUG
    ])
}

/// What decides the bits of `IA32_PEBS_ENABLE`.
pub(crate) struct PebsFacts {
    /// Number of general counters that can write records.
    pub(crate) general: u32,
    /// Fixed counters that can, by number.
    pub(crate) fixed: u64,
    /// Load latency, Nehalem to Cascade Lake.
    pub(crate) load_latency: bool,
    /// Precise stores, Sandy Bridge and Ivy Bridge.
    pub(crate) precise_store: bool,
}

/// `IA32_PEBS_ENABLE` (SDM, "Processor Event Based Sampling" in the sections of Nehalem, Sandy Bridge and Haswell;
/// "Adaptive PEBS").
pub(crate) fn pebs_enable(facts: &PebsFacts) -> u64 {
    writable(&[
        (ones(facts.general), true),
        (facts.fixed << 32, true),
        (ones(facts.general) << 32, facts.load_latency),
        (1 << 63, facts.precise_store),
    ])
}

/// `PEBS_DATA_CFG`: data groups 3:0, last branch record entries 31:24 (SDM, "Adaptive PEBS"); in format 6 also counters
/// and metrics 5:4, general counters 47:32 and fixed counters 55:48 (Linux, `PEBS_DATACFG_CNTR`).
pub(crate) fn pebs_data_cfg(format: u8) -> u64 {
    writable(&[(0xFF00_000F, true), (0x00FF_FFFF_0000_0030, format >= 6)])
}

/// `PerfEvtSeln` of AMD.
pub(crate) fn perf_ctl(family: u32, svm: bool) -> u64 {
    writable(&[
        // APM Vol. 2, 13.2.1, figure of `PerfEvtSeln`.
        (SELECT, true),
        // Pin control of the K7 and the K8 (AMD publication 22007, "PerfEvtSel[3:0] MSRs"; BKDG for family 0Fh,
        // "PERF_CTL"). Later processors reserve the bit.
        (PIN_CONTROL, family < 0x10),
        // Event select bits 11:8, reserved in family 0Fh.
        (0xF << 32, family >= 0x10),
        // GuestOnly, HostOnly. KVM has them only in guests with SVM.
        (0b11 << 40, family >= 0x10 && svm),
    ])
}

/// `PerfCntrGlobalCtl` of AMD (PPR, MSRC000_0301).
pub(crate) fn amd_global_ctl(counters: u8) -> u64 {
    ones(u32::from(counters))
}

/// `PerfCntrGlobalStatusClr` and `PerfCntrGlobalStatusSet` of AMD (PPR, MSRC000_0302 and 303): the counters, and with
/// `LbrAndPmcFreeze` the bits that report frozen records and counters.
pub(crate) fn amd_global_status(counters: u8, freeze: bool) -> u64 {
    writable(&[(amd_global_ctl(counters), true), (0b11 << 58, freeze)])
}

/// `DebugCtl` of AMD with `LbrAndPmcFreeze` (APM Vol. 2, 13.1.1.7).
pub(crate) const AMD_DEBUG_CTL: u64 = 0x3F | 0b11 << 11;

/// An ESCR of NetBurst (SDM, "ESCR MSRs"): without Hyper-Threading, `T1_OS` and `T1_USR` are reserved as well.
pub(crate) fn escr(threaded: bool) -> u64 {
    writable(&[(0x7FFF_FFFC, true), (0b11, threaded)])
}

/// A CCCR of NetBurst (SDM, "CCCR MSRs"): without Hyper-Threading, `OVF_PMI_T1` is reserved as well.
pub(crate) fn cccr(threaded: bool) -> u64 {
    writable(&[(0xC7FF_F000, true), (1 << 27, threaded)])
}

/// `PerfEvtSel0` and `PerfEvtSel1` of P6 (SDM, "PerfEvtSel0 and PerfEvtSel1 MSRs"): only the first has the enable flag.
pub(crate) fn p6_perfevtsel(number: usize) -> u64 {
    const EN: u64 = 1 << 22;
    writable(&[(SELECT & !EN | PIN_CONTROL, true), (EN, number == 0)])
}

/// `CESR` of the Pentium (SDM, "Control and Event Select Register (CESR)").
pub(crate) const CESR: u64 = 0x03FF_03FF;
