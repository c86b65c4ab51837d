//! The LVT entry of the local APIC through which counters interrupt.
//!
//! The HAL of Windows sets it up on every processor at boot and after sleep. Intel processors mask it at each delivery.
//! The HAL unmasks it before it calls a handler, but only since Windows 10 1803, so the handler must check the entry
//! itself.

use bitfield_struct::bitfield;

use crate::cpu::{Cpu, Msr};

/// IA32_APIC_BASE (SDM Vol. 3A, 11.4.4; APM Vol. 2, 16.3.1).
pub const IA32_APIC_BASE: Msr = Msr::new(0x1B);

/// The entry as a register, in x2APIC mode (SDM Vol. 3A, 11.12.1.2).
pub const X2APIC_LVT_PERFORMANCE: Msr = Msr::new(0x834);

/// Where the entry is in the page of the local APIC's registers, in xAPIC mode (SDM Vol. 3A, 11.4.1, Table 11-1).
pub const XAPIC_OFFSET: usize = 0x340;

/// Bytes of that page.
pub const XAPIC_PAGE: usize = 0x1000;

/// IA32_APIC_BASE.
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct ApicBase {
    /// Reserved.
    __: u8,
    /// BSP: the boot processor; read-only.
    pub bsp: bool,
    /// Reserved.
    __: bool,
    /// EXTD: x2APIC mode.
    pub extd: bool,
    /// EN: the local APIC is enabled.
    pub en: bool,
    /// Number of the physical page where its registers are, in xAPIC mode.
    #[bits(40)]
    pub page: u64,
    /// Reserved: no processor has more than 52 bits of physical address.
    #[bits(12)]
    __: u16,
}

/// Location of the entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// At [`XAPIC_OFFSET`] of the page at this physical address.
    Page(u64),
    /// [`X2APIC_LVT_PERFORMANCE`].
    Register,
}

/// Returns the location of the entry of the current processor, or `None` if the local APIC is missing or disabled.
///
/// # IRQL
/// Any.
pub fn place(cpu: &impl Cpu) -> Option<Place> {
    /// CPUID.1:EDX\[9\].
    const APIC: u32 = 1 << 9;
    if cpu.cpuid(1, 0).edx & APIC == 0 {
        return None;
    }
    let base = ApicBase::from_bits(cpu.rdmsr(IA32_APIC_BASE));
    match (base.en(), base.extd()) {
        (false, _) => None,
        (true, false) => Some(Place::Page(base.page() << 12)),
        (true, true) => Some(Place::Register),
    }
}

/// The vector that the HAL of Windows uses for the interrupt.
pub const VECTOR: u8 = 0xFE;

/// Delivery mode: to the processor's own vector, as an ordinary interrupt.
pub const FIXED: u8 = 0;

/// LVT Performance Monitoring Counters Register (SDM Vol. 3A, 11.5.1, Figure 11-8; APM Vol. 2, 16.4.4).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct LvtPmi {
    /// Vector.
    pub vector: u8,
    /// Delivery mode.
    #[bits(3)]
    pub delivery_mode: u8,
    /// Reserved.
    __: bool,
    /// Delivery status; read-only.
    pub send_pending: bool,
    /// Reserved.
    #[bits(3)]
    __: u8,
    /// Mask: nothing is delivered.
    pub masked: bool,
    /// Reserved.
    #[bits(15)]
    __: u16,
}

impl LvtPmi {
    /// Returns whether the HAL of Windows has set up the entry. An entry that it never enabled must be left alone: no
    /// handler would take the interrupt.
    #[must_use]
    pub const fn is_windows(self) -> bool {
        self.vector() == VECTOR && self.delivery_mode() == FIXED
    }
}

/// Unmasks the entry of the current processor, if it is masked: one read, and one write if needed. The rest of the
/// entry is unchanged.
///
/// # IRQL
/// Any at which the thread stays on its processor.
#[inline]
pub fn unmask(cpu: &impl Cpu) {
    unmask_entry(cpu, LvtPmi::from_bits(cpu.lvt_pmi()));
}

#[inline]
fn unmask_entry(cpu: &impl Cpu, entry: LvtPmi) {
    if entry.masked() {
        cpu.set_lvt_pmi(entry.with_masked(false).into_bits());
    }
}

/// Masks the entry of the current processor until [`unmask`]: one read, and one write if needed.
///
/// # IRQL
/// Any at which the thread stays on its processor.
pub fn mask(cpu: &impl Cpu) {
    let entry = LvtPmi::from_bits(cpu.lvt_pmi());
    if !entry.masked() {
        cpu.set_lvt_pmi(entry.with_masked(true).into_bits());
    }
}

/// Unmasks the entry, if the HAL of Windows has set it up.
///
/// # Errors
/// The entry, unchanged, if not.
pub fn enable(cpu: &impl Cpu) -> Result<(), LvtPmi> {
    let entry = LvtPmi::from_bits(cpu.lvt_pmi());
    if !entry.is_windows() {
        return Err(entry);
    }
    unmask_entry(cpu, entry);
    Ok(())
}
