//! Family, model and stepping.

use bitfield_struct::bitfield;

/// CPUID.1:EAX, and on AMD processors CPUID.80000001H:EAX (SDM Vol. 2A, CPUID, "Version Information Returned by CPUID
/// in EAX"; APM Vol. 3 E.3.2 and E.4.2).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct Signature {
    /// Stepping ID.
    #[bits(4)]
    pub stepping: u8,
    /// Model, without the extended model.
    #[bits(4)]
    pub base_model: u8,
    /// Family ID, without the extended family.
    #[bits(4)]
    pub base_family: u8,
    /// Processor type; reserved on AMD processors.
    #[bits(2)]
    pub processor_type: u8,
    #[bits(2)]
    _reserved: u8,
    /// Extended model ID. Part of [`model`](Self::model) from base family 6 on.
    #[bits(4)]
    pub extended_model: u8,
    /// Extended family ID. Part of [`family`](Self::family) for base family 15.
    pub extended_family: u8,
    #[bits(4)]
    _reserved: u8,
}

impl Signature {
    /// Returns DisplayFamily of Intel, Family of AMD: 0 to 10EH.
    #[must_use]
    pub const fn family(self) -> u16 {
        let base = self.base_family() as u16;
        if base == 0xF { base + self.extended_family() as u16 } else { base }
    }

    /// Returns DisplayModel of Intel, Model of AMD.
    ///
    /// Intel defines the extended model for base families 6 and 15, and AMD for 15 only: in its base family 6 (K7) the
    /// field is zero. Zhaoxin has it in family 7 as well, so the rule of Linux is right for all.
    ///
    /// # References
    /// Linux, arch/x86/lib/cpu.c, `x86_model`.
    #[must_use]
    pub const fn model(self) -> u8 {
        match self.base_family() {
            6.. => self.extended_model() << 4 | self.base_model(),
            _ => self.base_model(),
        }
    }
}
