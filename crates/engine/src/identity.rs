//! Identification of the boot processor.

use pmu::{Cpu, selection};

/// CPUID identification for display; no decision depends on it.
#[derive(Debug, Clone, Copy)]
pub struct Identity {
    /// Vendor string, padded with zeros.
    pub vendor: [u8; 16],
    /// Brand string, or zeros.
    pub brand: [u8; 48],
    /// EAX of leaf 1.
    pub signature: u32,
}

impl Identity {
    /// Reads the identification of the current processor.
    ///
    /// # IRQL
    /// Any.
    pub fn of(cpu: &impl Cpu) -> Self {
        let mut vendor = [0; 16];
        for (to, from) in vendor.iter_mut().zip(selection::vendor(cpu)) {
            *to = from;
        }
        Self { vendor, brand: brand(cpu), signature: cpu.cpuid(1, 0).eax }
    }
}

/// Returns the brand string of leaves 0x80000002 to 0x80000004 (SDM Vol. 2A, CPUID, "Processor Brand String").
fn brand(cpu: &impl Cpu) -> [u8; 48] {
    let mut text = [0; 48];
    if cpu.cpuid(0x8000_0000, 0).eax >= 0x8000_0004 {
        let registers = (0x8000_0002..=0x8000_0004_u32).flat_map(|leaf| {
            let leaf = cpu.cpuid(leaf, 0);
            [leaf.eax, leaf.ebx, leaf.ecx, leaf.edx]
        });
        for (part, register) in text.chunks_exact_mut(4).zip(registers) {
            part.copy_from_slice(&register.to_le_bytes());
        }
    }
    text
}
