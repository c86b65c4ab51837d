//! Leaves 0, 1 and 4.

use bitfield_struct::bitfield;

/// Vendor string of Intel: EBX, EDX, ECX of leaf 0 (SDM Vol. 2A, CPUID).
pub const VENDOR_INTEL: [u8; 12] = *b"GenuineIntel";

/// Returns the text of a vendor string: the bytes of its three registers, in the order of the leaf.
#[must_use]
pub fn vendor_text(registers: [u32; 3]) -> [u8; 12] {
    let mut text = [0; 12];
    for (part, register) in text.as_chunks_mut().0.iter_mut().zip(registers) {
        *part = register.to_le_bytes();
    }
    text
}

/// Vendor string of AMD: EBX, EDX, ECX of leaf 0 (APM Vol. 3 E.3.1).
pub const VENDOR_AMD: [u8; 12] = *b"AuthenticAMD";

/// Vendor string of Hygon, whose processors are a variant of AMD's Zen (Linux, arch/x86/kernel/cpu/hygon.c).
pub const VENDOR_HYGON: [u8; 12] = *b"HygonGenuine";

/// CPUID.1:EBX (SDM Vol. 2A, CPUID; APM Vol. 3 E.3.2).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct Leaf1Ebx {
    /// Brand index.
    pub brand_index: u8,
    /// CLFLUSH line size, in units of 8 bytes.
    pub clflush_size: u8,
    /// Maximum number of addressable IDs for logical processors in the package. Valid if [`Leaf1Edx::htt`] is set.
    pub logical_processors: u8,
    /// Initial APIC ID. Its lowest bits number the threads of a core (SDM Vol. 3A, "Hierarchical Mapping of Shared
    /// Resources").
    pub initial_apic_id: u8,
}

/// CPUID.1:ECX (SDM Vol. 2A, CPUID, "Feature Information Returned in the ECX Register"; APM Vol. 3 E.3.2).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct Leaf1Ecx {
    #[bits(2)]
    _other: u8,
    /// DTES64: the DS save area has its 64-bit format.
    pub dtes64: bool,
    _other: bool,
    /// DS-CPL: BTS can be limited by privilege level.
    pub ds_cpl: bool,
    #[bits(10)]
    _other: u16,
    /// PDCM: IA32_PERF_CAPABILITIES exists.
    pub pdcm: bool,
    #[bits(15)]
    _other: u16,
    /// Hypervisor present. Processors return 0; hypervisors set the bit (APM Vol. 3 E.3.2; TLFS, "Hypervisor
    /// Discovery").
    pub hypervisor: bool,
}

/// CPUID.1:EDX (SDM Vol. 2A, CPUID, "More on Feature Information Returned in the EDX Register"; APM Vol. 3 E.3.2).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct Leaf1Edx {
    #[bits(4)]
    _other: u8,
    /// TSC: time-stamp counter.
    pub tsc: bool,
    /// MSR: RDMSR and WRMSR.
    pub msr: bool,
    #[bits(3)]
    _other: u8,
    /// APIC: the processor has a local APIC, and it is enabled.
    pub apic: bool,
    #[bits(11)]
    _other: u16,
    /// DS: Debug Store.
    pub ds: bool,
    #[bits(6)]
    _other: u8,
    /// HTT: [`Leaf1Ebx::logical_processors`] is valid.
    pub htt: bool,
    #[bits(3)]
    _other: u8,
}

/// CPUID.4:EAX (SDM Vol. 2A, CPUID, "Deterministic Cache Parameters Leaf").
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct Leaf4Eax {
    #[bits(26)]
    _other: u32,
    /// Maximum number of addressable IDs for cores in the package, minus 1.
    #[bits(6)]
    pub cores_minus_1: u8,
}
