//! A processor that is known only by its CPUID.

use cpuid_dump::Dump;
use events::{Identity, Vendor};
use halprof::core_types::numbers;
use pmu::Cpuid;
use raw_cpuid::CpuIdResult;
use raw_cpuid::native_cpuid::cpuid_count;
use serde::Serialize;
use x86_defs::cpuid::{Leaf1Ecx, Leaf23Eax, Leaf23Ebx, Leaf71Eax, LeafAEax, leaf};

use crate::processor_identity::ProcessorIdentity;

/// A processor that reads CPUID through a function of leaf and subleaf.
///
/// [`Hal::new`](pmu::Hal::new) reads nothing but CPUID, so its choice is the same as in the driver.
pub struct CpuidOnly<F>(F);

/// Returns the processor on which this program is running.
pub fn this_processor() -> CpuidOnly<fn(u32, u32) -> CpuIdResult> {
    CpuidOnly(cpuid_count)
}

/// Returns the processor of a dump.
#[must_use]
pub fn of_dump(dump: &Dump) -> CpuidOnly<impl Fn(u32, u32) -> CpuIdResult> {
    CpuidOnly(|leaf, subleaf| {
        let [eax, ebx, ecx, edx] = dump.cpuid(leaf, subleaf);
        CpuIdResult { eax, ebx, ecx, edx }
    })
}

impl<F: Fn(u32, u32) -> CpuIdResult> Cpuid for CpuidOnly<F> {
    fn cpuid(&self, leaf: u32, subleaf: u32) -> CpuIdResult {
        (self.0)(leaf, subleaf)
    }
}

/// Fields of leaf 0xA (SDM Vol. 2A, CPUID, "Architectural Performance Monitoring Leaf").
#[derive(Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct LeafA {
    /// EAX\[7:0\].
    pub version: u8,
    /// EAX\[15:8\].
    pub counters: u8,
    /// EAX\[23:16\].
    pub width: u8,
    /// EAX\[31:24\]: number of valid bits in EBX.
    pub events: u8,
    /// A set bit means that the event is not available.
    pub ebx: u32,
}

/// Returns leaf 0xA, if it exists and is not zero.
pub fn leaf_a(cpu: &impl Cpuid) -> Option<LeafA> {
    if cpu.cpuid(leaf::VENDOR, 0).eax < leaf::ARCHITECTURAL_PERFMON {
        return None;
    }
    let CpuIdResult { eax, ebx, .. } = cpu.cpuid(leaf::ARCHITECTURAL_PERFMON, 0);
    let bits = LeafAEax::from_bits(eax);
    (eax != 0).then(|| LeafA {
        version: bits.version(),
        counters: bits.counters(),
        width: bits.width(),
        events: bits.ebx_length(),
        ebx,
    })
}

/// Fields of leaf 0x23 (SDM Vol. 2A, CPUID, "Architectural Performance Monitoring Extended Leaf").
#[derive(Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct Leaf23 {
    /// Subleaf 1, EAX: the general counters.
    pub counters: Vec<u32>,
    /// Subleaf 1, EBX: the fixed counters.
    pub fixed_counters: Vec<u32>,
    /// Subleaf 0, EBX\[0\]: unit masks have 16 bits.
    pub umask2: bool,
    /// Subleaf 0, EBX\[1\]: EQ exists.
    pub eq: bool,
}

/// Returns leaf 0x23, if it exists. Without subleaf 1 it has no counters.
pub fn leaf_23(cpu: &impl Cpuid) -> Option<Leaf23> {
    if cpu.cpuid(leaf::VENDOR, 0).eax < leaf::ARCHITECTURAL_PERFMON_EXTENDED
        || cpu.cpuid(leaf::STRUCTURED_FEATURES, 0).eax < 1
        || !Leaf71Eax::from_bits(cpu.cpuid(leaf::STRUCTURED_FEATURES, 1).eax).arch_perfmon_ext()
    {
        return None;
    }
    let main = cpu.cpuid(leaf::ARCHITECTURAL_PERFMON_EXTENDED, 0);
    let has_counters = Leaf23Eax::from_bits(main.eax).counters();
    let counters = cpu.cpuid(leaf::ARCHITECTURAL_PERFMON_EXTENDED, 1);
    let bits = Leaf23Ebx::from_bits(main.ebx);
    Some(Leaf23 {
        counters: if has_counters { numbers(counters.eax) } else { Vec::new() },
        fixed_counters: if has_counters { numbers(counters.ebx) } else { Vec::new() },
        umask2: bits.umask2(),
        eq: bits.eq(),
    })
}

/// Returns the vendor string of the hypervisor, if CPUID reports one.
pub fn hypervisor(cpu: &impl Cpuid) -> Option<[u8; 12]> {
    let CpuIdResult { ebx, ecx, edx, .. } = cpu.cpuid(leaf::HYPERVISOR_VENDOR, 0);
    Leaf1Ecx::from_bits(cpu.cpuid(leaf::FEATURES, 0).ecx).hypervisor().then(|| text(&[ebx, ecx, edx]))
}

/// Returns vendor, brand and signature of the processor.
pub fn identity(cpu: &impl Cpuid) -> ProcessorIdentity {
    let CpuIdResult { ebx, ecx, edx, .. } = cpu.cpuid(leaf::VENDOR, 0);
    ProcessorIdentity::new(&text::<12>(&[ebx, edx, ecx]), &brand(cpu), cpu.cpuid(leaf::FEATURES, 0).eax)
}

/// Returns what the tables of events know a processor by; `None` for another maker.
pub fn vendor_identity(cpu: &impl Cpuid) -> Option<Identity> {
    let identity = identity(cpu);
    Some(Identity::of_signature(Vendor::from_name(&identity.vendor)?, identity.signature))
}

/// Returns leaves 0x80000002 to 0x80000004 (SDM Vol. 2A, CPUID, "Processor Brand String"), or zeros.
fn brand(cpu: &impl Cpuid) -> [u8; 48] {
    if cpu.cpuid(leaf::EXTENDED_MAXIMUM, 0).eax < leaf::BRAND_STRING_LAST {
        return [0; 48];
    }
    let parts = [0, 1, 2].map(|index| cpu.cpuid(leaf::BRAND_STRING_FIRST + index, 0));
    text(parts.map(|part| [part.eax, part.ebx, part.ecx, part.edx]).as_flattened())
}

/// Returns the bytes of registers in order.
fn text<const LENGTH: usize>(registers: &[u32]) -> [u8; LENGTH] {
    let mut text = [0; LENGTH];
    for (part, register) in text.chunks_exact_mut(4).zip(registers) {
        part.copy_from_slice(&register.to_le_bytes());
    }
    text
}
