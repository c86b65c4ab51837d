//! What CPUID says of a processor.

use crate::bits::{bit, byte};

/// Returns EAX, EBX, ECX and EDX of a leaf and a subleaf.
pub(crate) type Cpuid<'a> = &'a dyn Fn(u32, u32) -> [u32; 4];

/// Returns the vendor string from leaf 0, in the order EBX, EDX, ECX.
pub(crate) fn vendor(cpuid: Cpuid<'_>) -> Vec<u8> {
    let [_, ebx, ecx, edx] = cpuid(0, 0);
    [ebx, edx, ecx].map(u32::to_le_bytes).concat()
}

/// Returns whether the PMU follows AMD's design, which Hygon licensed.
pub(crate) fn is_amd(cpuid: Cpuid<'_>) -> bool {
    let vendor = vendor(cpuid);
    vendor == b"AuthenticAMD" || vendor == b"HygonGenuine"
}

/// Returns the family. The extended family counts only if the base family is 0FH (SDM Vol. 2, CPUID; APM Vol. 3,
/// CPUID Fn0000_0001_EAX).
pub(crate) fn family(signature: u32) -> u32 {
    let (base, extended) = (byte(signature, 11, 8), byte(signature, 27, 20));
    u32::from(base) + if base == 0xF { u32::from(extended) } else { 0 }
}

/// Returns whether the processor is an efficient core of a hybrid.
pub(crate) fn is_atom(cpuid: Cpuid<'_>) -> bool {
    atom(cpuid).is_some()
}

/// Returns the native model of an efficient core of a hybrid (leaf 1AH, EAX bits 23:0).
pub(crate) fn atom(cpuid: Cpuid<'_>) -> Option<u32> {
    /// Core type in EAX\[31:24\].
    const ATOM: u8 = 0x20;
    let [last, ..] = cpuid(0, 0);
    let is_hybrid = last >= 0x1A && bit(u64::from(cpuid(7, 0)[3]), 15);
    let core = is_hybrid.then(|| cpuid(0x1A, 0)[0]).filter(|core| byte(*core, 31, 24) == ATOM)?;
    Some(core & 0xFF_FFFF)
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
