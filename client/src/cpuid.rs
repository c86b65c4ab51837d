//! A processor that is known only by its CPUID.

use cpuid_dump::Dump;
use pmu::{Cpu, Msr};
use raw_cpuid::CpuIdResult;
use raw_cpuid::native_cpuid::cpuid_count;
use serde::Serialize;

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
pub fn of_dump(dump: &Dump) -> CpuidOnly<impl Fn(u32, u32) -> CpuIdResult> {
    CpuidOnly(|leaf, subleaf| {
        let [eax, ebx, ecx, edx] = dump.cpuid(leaf, subleaf);
        CpuIdResult { eax, ebx, ecx, edx }
    })
}

/// There are no registers: reads return zero, and writes have no effect.
impl<F: Fn(u32, u32) -> CpuIdResult> Cpu for CpuidOnly<F> {
    fn cpuid(&self, leaf: u32, subleaf: u32) -> CpuIdResult {
        (self.0)(leaf, subleaf)
    }

    fn rdmsr(&self, _msr: Msr) -> u64 {
        0
    }

    fn wrmsr(&self, _msr: Msr, _value: u64) {}

    fn rdpmc(&self, _index: u32) -> u64 {
        0
    }

    fn lvt_pmi(&self) -> u32 {
        0
    }

    fn set_lvt_pmi(&self, _entry: u32) {}

    fn save_area(&self, _word: u8) -> u64 {
        0
    }

    fn set_save_area(&self, _word: u8, _value: u64) {}
}

/// Fields of leaf 0xA (SDM Vol. 2A, CPUID, "Architectural Performance Monitoring Leaf").
#[derive(Debug, PartialEq, Eq, Serialize)]
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
pub fn leaf_a(cpu: &impl Cpu) -> Option<LeafA> {
    if cpu.cpuid(0, 0).eax < 0xA {
        return None;
    }
    let CpuIdResult { eax, ebx, .. } = cpu.cpuid(0xA, 0);
    let [version, counters, width, events] = eax.to_le_bytes();
    (eax != 0).then_some(LeafA { version, counters, width, events, ebx })
}

/// Returns the vendor string of the hypervisor, if CPUID reports one.
pub fn hypervisor(cpu: &impl Cpu) -> Option<[u8; 12]> {
    const HYPERVISOR_PRESENT: u32 = 1 << 31;
    let CpuIdResult { ebx, ecx, edx, .. } = cpu.cpuid(0x4000_0000, 0);
    (cpu.cpuid(1, 0).ecx & HYPERVISOR_PRESENT != 0).then(|| text(&[ebx, ecx, edx]))
}

/// Returns vendor, brand and signature of the processor.
pub fn identity(cpu: &impl Cpu) -> ProcessorIdentity {
    let CpuIdResult { ebx, ecx, edx, .. } = cpu.cpuid(0, 0);
    ProcessorIdentity::new(&text::<12>(&[ebx, edx, ecx]), &brand(cpu), cpu.cpuid(1, 0).eax)
}

/// Returns leaves 0x80000002 to 0x80000004 (SDM Vol. 2A, CPUID, "Processor Brand String"), or zeros.
fn brand(cpu: &impl Cpu) -> [u8; 48] {
    if cpu.cpuid(0x8000_0000, 0).eax < 0x8000_0004 {
        return [0; 48];
    }
    let leaves = [0x8000_0002, 0x8000_0003, 0x8000_0004].map(|leaf| cpu.cpuid(leaf, 0));
    text(leaves.map(|leaf| [leaf.eax, leaf.ebx, leaf.ecx, leaf.edx]).as_flattened())
}

/// Returns the bytes of registers in order.
fn text<const LENGTH: usize>(registers: &[u32]) -> [u8; LENGTH] {
    let mut text = [0; LENGTH];
    for (part, register) in text.chunks_exact_mut(4).zip(registers) {
        part.copy_from_slice(&register.to_le_bytes());
    }
    text
}
