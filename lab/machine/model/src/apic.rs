//! The part of the local APIC that performance interrupts need: its mode, and the LVT performance entry.

use crate::{
    bits::{bit, field, ones},
    cpuid::is_amd,
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
/// The extended entries of AMD in x2APIC mode: memory offset 500H and those 10H apart behind it.
const X2APIC_EXTENDED: std::ops::Range<u32> = 0x850..0x854;
/// Vector 7:0, delivery mode 10:8, mask 16 (SDM Vol. 3A, "Local Vector Table").
const LVT_WRITABLE: u32 = 0x0001_07FF;
/// Delivery status: read-only. Software always reads it as idle in the model.
const LVT_DELIVERY_STATUS: u32 = 1 << 12;
const LVT_MASKED: u32 = 1 << 16;
/// The entry as the Windows HAL initializes it: vector FEH, fixed delivery, unmasked.
const LVT_OF_THE_HAL: u32 = 0xFE;
/// The entry after a reset: vector 0, masked (SDM Vol. 3A, "Local APIC State After Power-Up or Reset").
const LVT_OF_RESET: u32 = LVT_MASKED;
/// Vectors below 16 are illegal with fixed delivery (SDM Vol. 3A, "Error Handling": received illegal vector).
const FIRST_LEGAL_VECTOR: u32 = 16;

pub(crate) struct Apic {
    base: u64,
    base_reserved: u64,
    lvt: u32,
    /// The extended entries, if it has some. Firmware has used none.
    extended: Option<[u32; 4]>,
    /// Whether the HAL leaves the entry alone after a sleep.
    forgets_lvt: bool,
    illegal_vectors: u64,
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
        let base = BASE_ADDRESS | EN | BSP;
        let extended = is_amd(cpuid).then_some([LVT_MASKED; 4]);
        Self { base, base_reserved, lvt: LVT_OF_THE_HAL, extended, forgets_lvt: false, illegal_vectors: 0 }
    }

    pub(crate) fn enter_x2apic(&mut self) {
        self.base |= EXTD;
        self.base_reserved &= !EXTD;
    }

    pub(crate) fn is_x2apic(&self) -> bool {
        self.base & EXTD != 0
    }

    /// Writes the entry as the HAL does after reset.
    pub(crate) fn initialize_lvt(&mut self) {
        self.lvt = LVT_OF_THE_HAL;
    }

    /// Resets the entry, which the HAL then sets up again unless it [forgets](Self::forget_lvt) it.
    pub(crate) fn lose_power(&mut self) {
        self.lvt = if self.forgets_lvt { LVT_OF_RESET } else { LVT_OF_THE_HAL };
    }

    /// Sets whether the HAL leaves the entry as a reset leaves it.
    pub(crate) fn forget_lvt(&mut self, forgets: bool) {
        self.forgets_lvt = forgets;
    }

    /// Returns how often the entry was unmasked with a vector that no interrupt can have.
    pub(crate) fn illegal_vectors(&self) -> u64 {
        self.illegal_vectors
    }

    pub(crate) fn lvt(&self) -> u32 {
        self.lvt
    }

    pub(crate) fn set_lvt(&mut self, value: u32) {
        self.lvt = value & LVT_WRITABLE;
        // Bits 7:0 and 10:8 together: a delivery mode other than fixed is larger.
        let is_illegal = self.lvt & LVT_MASKED == 0 && self.lvt & !LVT_MASKED < FIRST_LEGAL_VECTOR;
        self.illegal_vectors += u64::from(is_illegal);
    }

    /// Returns an extended entry.
    pub(crate) fn extended_lvt(&self, index: usize) -> Option<u32> {
        self.extended?.get(index).copied()
    }

    /// Sets an extended entry, as firmware or another driver does.
    pub(crate) fn set_extended_lvt(&mut self, index: usize, entry: u32) {
        if let Some(place) = self.extended.as_mut().and_then(|entries| entries.get_mut(index)) {
            *place = entry;
        }
    }

    pub(crate) fn mask_lvt(&mut self) {
        self.lvt |= LVT_MASKED;
    }

    /// Returns whether the APIC would deliver a performance interrupt to the HAL now: an entry that the HAL did not set
    /// up leads elsewhere.
    pub(crate) fn delivers(&self) -> bool {
        self.base & EN != 0 && self.lvt == LVT_OF_THE_HAL
    }

    /// Reads a register. Returns `None` if the MSR does not belong to the APIC.
    pub(crate) fn rdmsr(&self, msr: u32) -> Option<u64> {
        match msr {
            IA32_APIC_BASE => Some(self.base),
            X2APIC_LVT_PERFORMANCE if self.is_x2apic() => Some(u64::from(self.lvt)),
            _ if X2APIC_EXTENDED.contains(&msr) && self.is_x2apic() => {
                let index = usize::try_from(msr - X2APIC_EXTENDED.start).ok()?;
                self.extended_lvt(index).map(u64::from)
            }
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
