//! The entry of the local APIC's vector table through which counters interrupt.
//!
//! Windows' HAL sets it up on every processor, at the start and after sleep. Intel's processors mask it whenever they
//! deliver; the HAL unmasks it again before it calls a handler, but only since Windows 10 1803. So whoever serves an
//! interrupt looks.

use x86_defs::cpuid::{Leaf1Edx, leaf};
use x86_defs::local_apic::{self, ApicBase, DELIVERY_MODE_FIXED, LvtPerformance};

use crate::cpu::{Cpu, Msr};

const IA32_APIC_BASE: Msr = Msr::new(local_apic::IA32_APIC_BASE);

/// The entry as a register, in x2APIC mode.
pub const X2APIC_LVT_PERFORMANCE: Msr = Msr::new(local_apic::IA32_X2APIC_LVT_PMI);

/// Where the entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// At [`XAPIC_LVT_PERFORMANCE`](local_apic::XAPIC_LVT_PERFORMANCE) of the page at this physical address.
    Page(u64),
    /// [`X2APIC_LVT_PERFORMANCE`].
    Register,
}

/// Where the entry of the current processor is; `None` where it has no local APIC, or one that is not enabled. Any IRQL.
pub fn place(cpu: &impl Cpu) -> Option<Place> {
    if !Leaf1Edx::from_bits(cpu.cpuid(leaf::FEATURES, 0).edx).apic() {
        return None;
    }
    let base = ApicBase::from_bits(cpu.rdmsr(IA32_APIC_BASE));
    match (base.en(), base.extd()) {
        (false, _) => None,
        (true, false) => Some(Place::Page(base.page() << 12)),
        (true, true) => Some(Place::Register),
    }
}

/// The vector by which Windows' HAL takes the interrupt.
pub const VECTOR: u8 = 0xFE;

/// Returns whether Windows' HAL set the entry up. An entry that it never enabled must be left alone: no driver would take the
/// interrupt.
const fn is_windows(entry: LvtPerformance) -> bool {
    entry.vector() == VECTOR && entry.delivery_mode() == DELIVERY_MODE_FIXED
}

/// Lets interrupts of the current processor through again, if its entry is masked: one read, and a write where one is
/// needed. The rest of the entry stays. Any IRQL at which the processor stays the same.
#[inline]
pub fn unmask(cpu: &impl Cpu) {
    unmask_entry(cpu, LvtPerformance::from_bits(cpu.lvt_pmi()));
}

#[inline]
fn unmask_entry(cpu: &impl Cpu, entry: LvtPerformance) {
    if entry.masked() {
        cpu.set_lvt_pmi(entry.with_masked(false).into_bits());
    }
}

/// Lets no interrupts of the current processor through, until [`unmask`]: one read, and a write where one is needed. Any IRQL
/// at which the processor stays the same.
pub fn mask(cpu: &impl Cpu) {
    let entry = LvtPerformance::from_bits(cpu.lvt_pmi());
    if !entry.masked() {
        cpu.set_lvt_pmi(entry.with_masked(true).into_bits());
    }
}

/// [`unmask`], if Windows' HAL set the entry up.
///
/// # Errors
/// The entry, left as it is, if not.
pub fn enable(cpu: &impl Cpu) -> Result<(), LvtPerformance> {
    let entry = LvtPerformance::from_bits(cpu.lvt_pmi());
    if !is_windows(entry) {
        return Err(entry);
    }
    unmask_entry(cpu, entry);
    Ok(())
}
