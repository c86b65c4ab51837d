//! Leaf 0xB: the threads of a core.

use bitfield_struct::bitfield;

/// CPUID.(0xB,0):EAX (SDM Vol. 2A, CPUID, "Extended Topology Enumeration Leaf").
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct LeafBEax {
    /// Number of bits by which the x2APIC ID in EDX is shifted right for the ID of the core.
    #[bits(5)]
    pub shift: u32,
    #[bits(27)]
    _other: u32,
}

/// CPUID.(0xB,0):EBX (same section).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct LeafBEbx {
    /// Number of logical processors of a core; 0 if the leaf is not valid.
    pub processors: u16,
    _other: u16,
}
