//! Selects the kind of PMU from CPUID.

use crate::{
    bits::{bit, byte},
    pmu::{Absent, Amd, AmdV2, Intel, IntelLeaf, NetBurst, P6, Pentium, Pmu, with_erratum},
};

pub(crate) type Cpuid<'a> = &'a dyn Fn(u32, u32) -> [u32; 4];

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

/// Returns the vendor string from leaf 0, in the order EBX, EDX, ECX.
pub(crate) fn vendor(cpuid: Cpuid<'_>) -> Vec<u8> {
    let [_, ebx, ecx, edx] = cpuid(0, 0);
    [ebx, edx, ecx].map(u32::to_le_bytes).concat()
}

/// Returns whether the PMU follows AMD's design, which Hygon licensed.
fn is_amd(cpuid: Cpuid<'_>) -> bool {
    let vendor = vendor(cpuid);
    vendor == b"AuthenticAMD" || vendor == b"HygonGenuine"
}

/// Returns whether a hypervisor hides the PMU. A hypervisor with Microsoft's interface reports in leaf 40000003H, EDX
/// bit 2, whether the partition has one (Hypervisor Top Level Functional Specification, "Hypervisor Feature
/// Identification"). KVM never sets the bit: its guests have the PMU that the other leaves describe.
pub(crate) fn hidden_by_hypervisor(cpuid: Cpuid<'_>) -> bool {
    const INTERFACE: u32 = u32::from_le_bytes(*b"Hv#1");
    let [_, _, features, _] = cpuid(1, 0);
    if !bit(u64::from(features), 31) {
        return false;
    }
    let [interface, ..] = cpuid(0x4000_0001, 0);
    let [.., misc] = cpuid(0x4000_0003, 0);
    interface == INTERFACE && !bit(u64::from(misc), 2) && !has_kvm_leaves(cpuid)
}

/// Returns whether KVM presents its own leaves behind those of Microsoft's interface. They begin at a multiple of 100H
/// (Linux, Documentation/virt/kvm/x86/cpuid.rst, and `hypervisor_cpuid_base`).
fn has_kvm_leaves(cpuid: Cpuid<'_>) -> bool {
    (0x4000_0100..0x4001_0000).step_by(0x100).any(|base| {
        let [_, name @ ..] = cpuid(base, 0);
        name.map(u32::to_le_bytes).concat() == b"KVMKVMKVM\0\0\0"
    })
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

/// Returns the family. The extended family counts only if the base family is 0FH (SDM Vol. 2, CPUID; APM Vol. 3,
/// CPUID Fn0000_0001_EAX).
pub(crate) fn family(signature: u32) -> u32 {
    let (base, extended) = (byte(signature, 11, 8), byte(signature, 27, 20));
    u32::from(base) + if base == 0xF { u32::from(extended) } else { 0 }
}

/// Returns whether an Intel processor is an Atom core of a hybrid (SDM Vol. 2, CPUID leaves 07H and 1AH).
pub(crate) fn is_atom(cpuid: Cpuid<'_>) -> bool {
    /// Core type in EAX\[31:24\].
    const ATOM: u8 = 0x20;
    let [last, ..] = cpuid(0, 0);
    let is_hybrid = last >= 0x1A && bit(u64::from(cpuid(7, 0)[3]), 15);
    is_hybrid && byte(cpuid(0x1A, 0)[0], 31, 24) == ATOM
}
