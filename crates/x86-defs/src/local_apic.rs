//! The local APIC: IA32_APIC_BASE, and the entry of the local vector table (LVT) for performance counters.

use bitfield_struct::bitfield;

/// IA32_APIC_BASE: [`ApicBase`] (SDM Vol. 3A 11.4.4; APM Vol. 2 16.3.1).
pub const IA32_APIC_BASE: u32 = 0x1B;

/// IA32_X2APIC_LVT_PMI: [`LvtPerformance`] in x2APIC mode (SDM Vol. 3A 11.12.1.2; Vol. 4, "Architectural MSRs").
pub const IA32_X2APIC_LVT_PMI: u32 = 0x834;

/// Offset of [`LvtPerformance`] in the register page in xAPIC mode (SDM Vol. 3A 11.4.1, Table 11-1).
pub const XAPIC_LVT_PERFORMANCE: u16 = 0x340;

/// Offset of the first of the extended LVT entries of AMD, each [`LvtPerformance`]; each further one is 10H behind (APM
/// Vol. 2 16.4.4, "Extended Interrupts").
pub const XAPIC_EXTENDED_LVT: u16 = 0x500;

/// The first of the extended LVT entries in x2APIC mode; each further one is the next register (APM Vol. 2 16.11).
pub const X2APIC_EXTENDED_LVT: u32 = 0x850;

/// Size of the register page in bytes (SDM Vol. 3A 11.4.1).
pub const XAPIC_PAGE_SIZE: usize = 0x1000;

/// IA32_APIC_BASE (SDM Vol. 3A 11.4.4, "Local APIC Status and Location"; APM Vol. 2 16.3.1).
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct ApicBase {
    _reserved: u8,
    /// BSP: bootstrap processor; read-only.
    pub bsp: bool,
    _reserved: bool,
    /// EXTD: x2APIC mode.
    pub extd: bool,
    /// EN: the local APIC is enabled.
    pub en: bool,
    /// Number of the 4 KB physical page of the registers in xAPIC mode: the APIC base address shifted right by 12.
    #[bits(40)]
    pub page: u64,
    #[bits(12)]
    _reserved: u16,
}

/// Delivery mode "fixed": the interrupt goes to the vector of the entry (SDM Vol. 3A 11.5.1).
pub const DELIVERY_MODE_FIXED: u8 = 0b000;

/// LVT Performance Monitoring Counters Register (SDM Vol. 3A 11.5.1, Figure 11-8; APM Vol. 2 16.4.4).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct LvtPerformance {
    /// Vector.
    pub vector: u8,
    /// Delivery mode: [`DELIVERY_MODE_FIXED`] or another.
    #[bits(3)]
    pub delivery_mode: u8,
    _reserved: bool,
    /// Delivery status: an interrupt was sent and not yet accepted; read-only.
    pub send_pending: bool,
    #[bits(3)]
    _reserved: u8,
    /// Mask: no interrupt is delivered. Intel processors set it whenever they deliver one (SDM Vol. 3A 11.5.1).
    pub masked: bool,
    #[bits(15)]
    _reserved: u16,
}
