//! Leaf numbers, for EAX of the CPUID instruction.

/// Highest basic leaf in EAX, vendor string in EBX, EDX, ECX (SDM Vol. 2A, CPUID; APM Vol. 3 E.3.1).
pub const VENDOR: u32 = 0;

/// [`Signature`](super::Signature) in EAX, features in the other registers (SDM Vol. 2A, CPUID; APM Vol. 3 E.3.2).
pub const FEATURES: u32 = 1;

/// Deterministic cache parameters: [`Leaf4Eax`](super::Leaf4Eax) (SDM Vol. 2A, CPUID).
pub const CACHE_PARAMETERS: u32 = 4;

/// Structured extended features in subleaf 0: [`Leaf7Edx`](super::Leaf7Edx), and the highest subleaf in EAX; in
/// subleaf 1: [`Leaf71Eax`](super::Leaf71Eax) (SDM Vol. 2A, CPUID).
pub const STRUCTURED_FEATURES: u32 = 7;

/// Architectural performance monitoring of Intel: [`LeafAEax`](super::LeafAEax) (SDM Vol. 2A, CPUID).
pub const ARCHITECTURAL_PERFMON: u32 = 0xA;

/// Threads of a core in subleaf 0: [`LeafBEax`](super::LeafBEax), [`LeafBEbx`](super::LeafBEbx), and the x2APIC ID in
/// EDX (SDM Vol. 2A, CPUID).
pub const EXTENDED_TOPOLOGY: u32 = 0xB;

/// Core type of the current processor: [`Leaf1AEax`](super::Leaf1AEax) (SDM Vol. 2A, CPUID).
pub const NATIVE_MODEL: u32 = 0x1A;

/// Architectural performance monitoring of Intel, extended: subleaf 0, [`Leaf23Ebx`](super::Leaf23Ebx) and the bitmap
/// of valid subleaves in EAX; subleaf 1, the counters. Exists if [`Leaf71Eax`](super::Leaf71Eax) says so (SDM Vol. 2A,
/// CPUID).
pub const ARCHITECTURAL_PERFMON_EXTENDED: u32 = 0x23;

/// Last branch records: [`Leaf1CEax`](super::Leaf1CEax), [`Leaf1CEbx`](super::Leaf1CEbx) (SDM Vol. 2A, CPUID, "Last
/// Branch Records Information Leaf").
pub const LAST_BRANCHES: u32 = 0x1C;

/// Vendor string of the hypervisor in EBX, ECX, EDX (TLFS, "Hypervisor CPUID Leaf Range").
pub const HYPERVISOR_VENDOR: u32 = 0x4000_0000;

/// Interface of the hypervisor in EAX: [`HV1`](super::HV1) (TLFS, "Hypervisor CPUID Leaf Range").
pub const HYPERVISOR_INTERFACE: u32 = 0x4000_0001;

/// Privileges and features of the partition (TLFS, "Hypervisor Feature Identification").
pub const HYPERVISOR_FEATURES: u32 = 0x4000_0003;

/// Highest leaf with which an interface of a hypervisor may begin. Each interface has leaves of its own, and a
/// hypervisor may present several (Linux, `hypervisor_cpuid_base`).
pub const HYPERVISOR_LAST: u32 = 0x4000_FF00;

/// Distance between the leaves with which interfaces of a hypervisor may begin.
pub const HYPERVISOR_STRIDE: u32 = 0x100;

/// Highest extended leaf in EAX (SDM Vol. 2A, CPUID; APM Vol. 3 E.4.1).
pub const EXTENDED_MAXIMUM: u32 = 0x8000_0000;

/// Extended features; on AMD processors also a [`Signature`](super::Signature) in EAX and the package in EBX (APM Vol.
/// 3 E.4.2).
pub const EXTENDED_FEATURES: u32 = 0x8000_0001;

/// First of the three leaves of the brand string (SDM Vol. 2A, CPUID, "Processor Brand String"; APM Vol. 3 E.4.3).
pub const BRAND_STRING_FIRST: u32 = 0x8000_0002;

/// Last of the three leaves of the brand string (same references).
pub const BRAND_STRING_LAST: u32 = 0x8000_0004;

/// Features of power management in EDX: [`Leaf80000007Edx`](super::Leaf80000007Edx) (SDM Vol. 2A, CPUID; APM Vol. 3
/// E.4.6).
pub const POWER_MANAGEMENT: u32 = 0x8000_0007;

/// Number of cores in ECX: [`Leaf80000008Ecx`](super::Leaf80000008Ecx) (APM Vol. 3 E.4.7).
pub const EXTENDED_CORES: u32 = 0x8000_0008;

/// Instruction-Based Sampling in EAX: [`Leaf8000001BEax`](super::Leaf8000001BEax) (PPR, "Instruction Based Sampling
/// Identifiers").
pub const INSTRUCTION_BASED_SAMPLING: u32 = 0x8000_001B;

/// Extended performance monitoring and debug of AMD: [`Leaf80000022Eax`](super::Leaf80000022Eax) (APM Vol. 3 E.4.24).
pub const EXTENDED_PERFMON: u32 = 0x8000_0022;
