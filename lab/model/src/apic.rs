//! The part of the local APIC that performance interrupts need: its mode, and the LVT performance entry.

use crate::{
    bits::{bit, field, ones},
    fault::{GeneralProtection, refuse_reserved},
};

/// SDM Vol. 3A, "Local APIC Status and Location"; APM Vol. 2, "APIC Enable".
const IA32_APIC_BASE: u32 = 0x1B;
/// Bootstrap processor flag (read-only).
const BSP: u64 = 1 << 8;
/// x2APIC mode.
const EXTD: u64 = 1 << 10;
/// APIC global enable.
const EN: u64 = 1 << 11;
/// Bits 7:0 and 9.
const BASE_RESERVED: u64 = 0x2FF;
/// Base address of the registers after reset.
const BASE_ADDRESS: u64 = 0xFEE0_0000;

/// The LVT performance entry in x2APIC mode: 800H plus the memory offset 340H divided by 16 (SDM Vol. 3A, "x2APIC
/// Register Address Space").
const X2APIC_LVT_PERFORMANCE: u32 = 0x834;
/// Vector 7:0, delivery mode 10:8, mask 16 (SDM Vol. 3A, "Local Vector Table").
const LVT_WRITABLE: u32 = 0x0001_07FF;
/// Delivery status: read-only. Software always reads it as idle in the model.
const LVT_DELIVERY_STATUS: u32 = 1 << 12;
const LVT_MASKED: u32 = 1 << 16;
/// The entry as the Windows HAL initializes it: vector FEH, fixed delivery, unmasked. The reset value differs.
const LVT_OF_THE_HAL: u32 = 0xFE;

pub(crate) struct Apic {
    base: u64,
    base_reserved: u64,
    lvt: u32,
}

impl Apic {
    /// Creates an APIC in xAPIC mode on the bootstrap processor.
    pub(crate) fn new(cpuid: &dyn Fn(u32, u32) -> [u32; 4]) -> Self {
        let [_, _, features, _] = cpuid(1, 0);
        let x2apic = bit(u64::from(features), 21);
        // MAXPHYADDR is 80000008H:EAX[7:0], or 36 without that leaf (SDM Vol. 3A, "Enumeration of Paging Features by
        // CPUID").
        let [last_extended, ..] = cpuid(0x8000_0000, 0);
        let physical_bits = if last_extended >= 0x8000_0008 {
            let [sizes, ..] = cpuid(0x8000_0008, 0);
            u32::from(sizes.to_le_bytes()[0])
        } else {
            36
        };
        let base_reserved = BASE_RESERVED | !ones(physical_bits) | if x2apic { 0 } else { EXTD };
        Self { base: BASE_ADDRESS | EN | BSP, base_reserved, lvt: LVT_OF_THE_HAL }
    }

    pub(crate) fn enter_x2apic(&mut self) {
        self.base |= EXTD;
        self.base_reserved &= !EXTD;
    }

    pub(crate) fn is_x2apic(&self) -> bool {
        self.base & EXTD != 0
    }

    /// Writes the entry as the HAL does after reset and after sleep.
    pub(crate) fn initialize_lvt(&mut self) {
        self.lvt = LVT_OF_THE_HAL;
    }

    pub(crate) fn lvt(&self) -> u32 {
        self.lvt
    }

    pub(crate) fn set_lvt(&mut self, value: u32) {
        self.lvt = value & LVT_WRITABLE;
    }

    pub(crate) fn mask_lvt(&mut self) {
        self.lvt |= LVT_MASKED;
    }

    /// Returns whether the APIC would deliver a performance interrupt now.
    pub(crate) fn delivers(&self) -> bool {
        self.base & EN != 0 && self.lvt & LVT_MASKED == 0
    }

    /// Reads a register. Returns `None` if the MSR does not belong to the APIC.
    pub(crate) fn rdmsr(&self, msr: u32) -> Option<u64> {
        match msr {
            IA32_APIC_BASE => Some(self.base),
            X2APIC_LVT_PERFORMANCE if self.is_x2apic() => Some(u64::from(self.lvt)),
            _ => None,
        }
    }

    /// Writes a register. Returns `None` if the MSR does not belong to the APIC.
    pub(crate) fn wrmsr(&mut self, msr: u32, value: u64) -> Option<Result<(), GeneralProtection>> {
        match msr {
            IA32_APIC_BASE => Some(self.write_base(value)),
            X2APIC_LVT_PERFORMANCE if self.is_x2apic() => {
                let writable = u64::from(LVT_WRITABLE | LVT_DELIVERY_STATUS);
                Some(refuse_reserved(value, !writable).map(|()| {
                    let low = field(value, 31, 0);
                    self.set_lvt(u32::try_from(low).unwrap_or_default());
                }))
            }
            _ => None,
        }
    }

    /// Writes `IA32_APIC_BASE`. x2APIC mode is entered only from xAPIC mode and left only by disabling the APIC (SDM
    /// Vol. 3A, "x2APIC States").
    fn write_base(&mut self, value: u64) -> Result<(), GeneralProtection> {
        refuse_reserved(value, self.base_reserved)?;
        let legal = match (self.base & (EN | EXTD), value & (EN | EXTD)) {
            (_, EXTD) => false,
            (0, to) => to != EN | EXTD,
            (from, to) => !(from == EN | EXTD && to == EN),
        };
        if !legal {
            return Err(GeneralProtection);
        }
        self.base = value & !BSP | self.base & BSP;
        Ok(())
    }
}
