//! The entry of the local APIC's vector table through which counters interrupt.
//!
//! Windows' HAL sets it up on every processor, at the start and after sleep. Intel's processors mask it whenever they
//! deliver; the HAL unmasks it again before it calls a handler, but only since Windows 10 1803. So whoever serves an
//! interrupt looks.

use bitfield_struct::bitfield;

use crate::cpu::Cpu;

/// The vector by which Windows' HAL takes the interrupt.
pub const VECTOR: u8 = 0xFE;

/// Delivery mode: to the processor's own vector, as an ordinary interrupt.
pub const FIXED: u8 = 0;

/// LVT Performance Monitoring Counters Register (SDM Vol. 3A, 11.5.1, Figure 11-8; APM Vol. 2, 16.4.4).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct LocalVector {
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

impl LocalVector {
    /// Whether Windows' HAL set it up. An entry that it never enabled must be left alone: nobody would take the
    /// interrupt.
    #[must_use]
    pub const fn is_windows(self) -> bool {
        self.vector() == VECTOR && self.delivery_mode() == FIXED
    }
}

/// Lets interrupts of the current processor through again, if its entry is masked: one read, and a write where one is
/// needed. The rest of the entry stays. Any IRQL at which the processor stays the same.
#[inline]
pub fn unmask(cpu: &impl Cpu) {
    let entry = LocalVector::from_bits(cpu.local_vector());
    if entry.masked() {
        cpu.set_local_vector(entry.with_masked(false).into_bits());
    }
}

/// [`unmask`], if Windows' HAL set the entry up.
///
/// # Errors
/// The entry, left as it is, if not.
pub fn enable(cpu: &impl Cpu) -> Result<(), LocalVector> {
    let entry = LocalVector::from_bits(cpu.local_vector());
    if !entry.is_windows() {
        return Err(entry);
    }
    unmask(cpu);
    Ok(())
}
