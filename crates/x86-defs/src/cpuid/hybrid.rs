//! Leaves 7 and 1AH: the core types of hybrid processors, and the features of transactions.

use bitfield_struct::bitfield;

/// CPUID.(7,0):EDX (SDM Vol. 2A, CPUID, "Structured Extended Feature Flags Enumeration Leaf").
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct Leaf7Edx {
    #[bits(11)]
    _other: u16,
    /// RTM_ALWAYS_ABORT: every transaction aborts.
    pub rtm_always_abort: bool,
    _other: bool,
    /// TSX_FORCE_ABORT: the register IA32_TSX_FORCE_ABORT exists.
    pub tsx_force_abort: bool,
    _other: bool,
    /// Hybrid: leaf 1AH reports the type of each core.
    pub hybrid: bool,
    #[bits(3)]
    _other: u8,
    /// ARCH_LBR: architectural last branch records.
    pub arch_lbr: bool,
    #[bits(12)]
    _other: u16,
}

/// CPUID.1AH:EAX (SDM Vol. 2A, CPUID, "Native Model ID Enumeration Leaf").
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct Leaf1AEax {
    /// Native model ID of the core.
    #[bits(24)]
    pub native_model: u32,
    /// Core type: [`CORE_TYPE_ATOM`], [`CORE_TYPE_CORE`], or a reserved value.
    pub core_type: u8,
}

/// Value of [`Leaf1AEax::core_type`]: Intel Atom, an E core (same section).
pub const CORE_TYPE_ATOM: u8 = 0x20;

/// Value of [`Leaf1AEax::core_type`]: Intel Core, a P core (same section).
pub const CORE_TYPE_CORE: u8 = 0x40;
