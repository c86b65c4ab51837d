//! Identification of the boot processor.

use pmu::ibs::Summary;
use pmu::{Cpuid, Hypervisor, cpu};
use x86_defs::cpuid::{leaf, vendor_text};

/// CPUID identification for display; no decision depends on it.
#[derive(Debug, Clone, Copy)]
pub struct BootIdentity {
    /// Vendor string, padded with zeros.
    pub vendor: [u8; 16],
    /// Vendor string of the hypervisor, or zeros.
    pub hypervisor_vendor: [u8; 12],
    /// Brand string, or zeros.
    pub brand: [u8; 48],
    /// EAX of leaf 1.
    pub signature: u32,
    /// What IBS samples.
    pub ibs: Summary,
}

impl BootIdentity {
    /// Reads the identification of the current processor.
    ///
    /// # IRQL
    /// Any.
    pub fn of(cpu: &impl Cpuid) -> Self {
        let mut vendor = [0; 16];
        for (to, from) in vendor.iter_mut().zip(cpu::vendor(cpu)) {
            *to = from;
        }
        let hypervisor = cpu.cpuid(leaf::HYPERVISOR_VENDOR, 0);
        let hypervisor_vendor = match Hypervisor::of(cpu) {
            Hypervisor::None => [0; 12],
            _ => vendor_text([hypervisor.ebx, hypervisor.ecx, hypervisor.edx]),
        };
        let signature = cpu.cpuid(leaf::FEATURES, 0).eax;
        Self { vendor, hypervisor_vendor, brand: brand(cpu), signature, ibs: Summary::of(cpu) }
    }
}

/// Returns the brand string of leaves 0x80000002 to 0x80000004 (SDM Vol. 2A, CPUID, "Processor Brand String").
fn brand(cpu: &impl Cpuid) -> [u8; 48] {
    let mut text = [0; 48];
    if cpu.cpuid(leaf::EXTENDED_MAXIMUM, 0).eax >= leaf::BRAND_STRING_LAST {
        let registers = (leaf::BRAND_STRING_FIRST..=leaf::BRAND_STRING_LAST).flat_map(|number| {
            let part = cpu.cpuid(number, 0);
            [part.eax, part.ebx, part.ecx, part.edx]
        });
        for (part, register) in text.as_chunks_mut().0.iter_mut().zip(registers) {
            *part = register.to_le_bytes();
        }
    }
    text
}
