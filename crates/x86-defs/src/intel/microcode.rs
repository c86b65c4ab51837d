//! IA32_BIOS_SIGN_ID.

use bitfield_struct::bitfield;

/// IA32_BIOS_SIGN_ID: [`BiosSignId`] (SDM Vol. 4, "Architectural MSRs"). CPUID leaf 1 loads it if a microcode update is
/// loaded (SDM Vol. 3A, "Microcode Update Facilities", "Determining the Signature").
pub const IA32_BIOS_SIGN_ID: u32 = 0x8B;

/// IA32_BIOS_SIGN_ID (same section).
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct BiosSignId {
    _other: u32,
    /// Revision of the microcode update that is loaded, or 0.
    pub revision: u32,
}
