//! Selects the kind of PMU from CPUID.

use crate::{
    bits::{bit, byte},
    cpuid::{Cpuid, family, hidden_by_hypervisor, is_amd, vendor},
    pmu::{Absent, Amd, AmdV2, Intel, IntelLeaf, NetBurst, P6, Pentium, Pmu, with_erratum},
};

/// Creates the PMU that CPUID describes, in its reset state.
pub(crate) fn pmu(cpuid: Cpuid<'_>, perf_capabilities: u64) -> Box<dyn Pmu> {
    if hidden_by_hypervisor(cpuid) {
        return Box::new(Absent);
    }
    if is_amd(cpuid) {
        return amd(cpuid);
    }
    match IntelLeaf::read(cpuid, perf_capabilities) {
        Some(leaf) => with_erratum(cpuid, Intel::new(leaf)),
        None => before_leaf_a(cpuid),
    }
}

/// Returns whether CPUID enumerates architectural event `index`: it lies within the length of the bit vector in
/// `EAX[31:24]`, and its bit in EBX is clear (SDM Vol. 2, CPUID leaf 0AH).
pub(crate) fn reports_architectural_event(cpuid: Cpuid<'_>, index: u8) -> bool {
    if is_amd(cpuid) || hidden_by_hypervisor(cpuid) || IntelLeaf::read(cpuid, 0).is_none() {
        return false;
    }
    let [eax, ebx, ..] = cpuid(0xA, 0);
    index < byte(eax, 31, 24) && !bit(u64::from(ebx), u32::from(index))
}

/// Creates the PMU of an Intel processor without leaf 0AH, by `CPUID.1:EAX` (SDM Vol. 4, "CPUID Signature Values of
/// DisplayFamily_DisplayModel"). No hypervisor virtualizes these PMUs.
fn before_leaf_a(cpuid: Cpuid<'_>) -> Box<dyn Pmu> {
    let [signature, package, features_c, features] = cpuid(1, 0);
    let has = |number| bit(u64::from(features), number);
    if vendor(cpuid) != b"GenuineIntel" || bit(u64::from(features_c), 31) {
        return Box::new(Absent);
    }
    let model = byte(signature, 19, 16) << 4 | byte(signature, 7, 4);
    match (byte(signature, 11, 8), model) {
        (0xF, _) if byte(signature, 27, 20) == 0 => {
            // The core has two threads if the package has at least twice as many logical processors as cores (leaf 4).
            let [last, ..] = cpuid(0, 0);
            let cores = if last < 4 { 0 } else { byte(cpuid(4, 0)[0], 31, 26) } + 1;
            let threaded = has(28) && byte(package, 23, 16) >= 2 * cores;
            Box::new(NetBurst::new(if threaded { package >> 24 & 1 } else { 0 }, threaded))
        }
        (6, 0x01..=0x0D) => Box::new(P6::new()),
        (5, 0x01..=0x08) if has(5) => Box::new(Pentium::new(has(23))),
        _ => Box::new(Absent),
    }
}

/// Creates the PMU of an AMD processor (APM Vol. 2, 13.2.2, "Detecting Hardware Support for Performance Counters").
fn amd(cpuid: Cpuid<'_>) -> Box<dyn Pmu> {
    let [last_extended, ..] = cpuid(0x8000_0000, 0);
    let leaf = |number| if last_extended >= number { cpuid(number, 0) } else { [0; 4] };
    let [signature, _, features, _] = leaf(0x8000_0001);
    let has = |number| bit(u64::from(features), number);
    let svm = has(2);
    // ExtPerfMonAndDbg: EAX[0] PerfMonV2, EAX[2] LbrAndPmcFreeze, EBX[3:0] NumPerfCtrCore.
    let [eax, ebx, ..] = leaf(0x8000_0022);
    if bit(u64::from(eax), 0) {
        Box::new(AmdV2::new(byte(ebx, 3, 0), bit(u64::from(eax), 2), svm, family(signature)))
    } else if has(23) {
        // PerfCtrExtCore
        Box::new(Amd::extended(6, svm, family(signature)))
    } else {
        Box::new(Amd::legacy(family(signature), svm))
    }
}
