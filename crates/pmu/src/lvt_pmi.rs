//! The LVT entry of the local APIC through which counters interrupt.
//!
//! The HAL of Windows sets it up on every processor at boot and after sleep. Intel processors mask it at each delivery.
//! The HAL unmasks it before it calls a handler, but only since Windows 10 1803, so the handler must check the entry
//! itself.

use x86_defs::cpuid::{Leaf1Edx, leaf};
use x86_defs::local_apic::{self, ApicBase, DELIVERY_MODE_FIXED, LvtPerformance};

use crate::cpu::{Cpu, Cpuid, Msr};
use crate::first_access::{Access, Fault, Faulted, FirstAccess, GuardedCpu, Phase};

const IA32_APIC_BASE: Msr = Msr::new(local_apic::IA32_APIC_BASE);

/// The entry as a register, in x2APIC mode.
pub const X2APIC_LVT_PERFORMANCE: Msr = Msr::new(local_apic::IA32_X2APIC_LVT_PMI);

/// Location of the entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryLocation {
    /// At [`XAPIC_LVT_PERFORMANCE`](local_apic::XAPIC_LVT_PERFORMANCE) of the page at this physical address.
    Page(u64),
    /// [`X2APIC_LVT_PERFORMANCE`].
    Register,
}

/// Returns the location of the entry of the current processor, or `None` if the local APIC is missing or disabled.
///
/// # IRQL
/// Below DISPATCH_LEVEL.
pub fn place(cpu: &impl GuardedCpu) -> Option<EntryLocation> {
    FirstAccess::perform(cpu, Phase::Read, place_by).ok().flatten()
}

/// Returns the location of the entry, by IA32_APIC_BASE.
pub(crate) fn place_by(first: &FirstAccess<'_, impl GuardedCpu>) -> Result<Option<EntryLocation>, Faulted> {
    if !has_apic(first.cpuid()) {
        return Ok(None);
    }
    let base = ApicBase::from_bits(first.read(IA32_APIC_BASE)?);
    Ok(match (base.en(), base.extd()) {
        (false, _) => None,
        (true, false) => Some(EntryLocation::Page(base.page() << 12)),
        (true, true) => Some(EntryLocation::Register),
    })
}

fn has_apic(cpu: &impl Cpuid) -> bool {
    Leaf1Edx::from_bits(cpu.cpuid(leaf::FEATURES, 0).edx).apic()
}

/// Accesses for the first time the registers of the entry of the current processor, and masks and unmasks the entry if
/// the HAL of Windows has set it up. A local APIC that says it is disabled is a fault.
pub(crate) fn access_first(first: &FirstAccess<'_, impl GuardedCpu>) -> Result<(), Faulted> {
    match place_by(first)? {
        Some(EntryLocation::Register) => {}
        // No value of the register is tried, but another processor may say that the entry is one.
        None if has_apic(first.cpuid()) => {
            return Err(first.fail(Fault::of_value(Access::Read, IA32_APIC_BASE, 0)));
        }
        _ => return Ok(()),
    }
    let found = first.read(X2APIC_LVT_PERFORMANCE)?;
    let entry = LvtPerformance::from_bits((found & 0xFFFF_FFFF) as u32);
    if !is_windows(entry) {
        return Ok(());
    }
    let masked = |masked| u64::from(entry.with_masked(masked).into_bits());
    first.restoring(X2APIC_LVT_PERFORMANCE, found, || {
        first.demand(X2APIC_LVT_PERFORMANCE, masked(true))?;
        first.demand(X2APIC_LVT_PERFORMANCE, masked(false))
    })
}

/// The vector that the HAL of Windows uses for the interrupt.
pub const VECTOR: u8 = 0xFE;

/// Returns whether Windows' HAL set the entry up. An entry that it never enabled must be left alone: no driver would
/// take the interrupt.
const fn is_windows(entry: LvtPerformance) -> bool {
    entry.vector() == VECTOR && entry.delivery_mode() == DELIVERY_MODE_FIXED
}

/// Unmasks the entry of the current processor, if it is masked and the HAL of Windows has set it up: one read, and one
/// write if needed. The rest of the entry is unchanged.
///
/// # IRQL
/// Any at which the thread stays on its processor.
#[inline]
pub fn unmask(cpu: &impl Cpu) {
    let entry = LvtPerformance::from_bits(cpu.lvt_pmi());
    if entry.masked() {
        rare();
        unmask_entry(cpu, entry);
    }
}

/// Says that a branch is rare, or it becomes one condition with the next, which costs each interrupt two instructions.
#[cold]
const fn rare() {}

/// Unmasks an entry that is masked, if the HAL of Windows has set it up.
#[inline]
fn unmask_entry(cpu: &impl Cpu, entry: LvtPerformance) {
    // A reset entry has vector 0, which the local APIC refuses with an error when it is unmasked.
    if is_windows(entry) {
        cpu.set_lvt_pmi(entry.with_masked(false).into_bits());
    }
}

/// Masks the entry of the current processor until [`unmask`]: one read, and one write if needed.
///
/// # IRQL
/// Any at which the thread stays on its processor.
pub fn mask(cpu: &impl Cpu) {
    let entry = LvtPerformance::from_bits(cpu.lvt_pmi());
    if !entry.masked() {
        cpu.set_lvt_pmi(entry.with_masked(true).into_bits());
    }
}

/// Unmasks the entry, if the HAL of Windows has set it up.
///
/// # Errors
/// The entry, unchanged, if not.
pub fn enable(cpu: &impl Cpu) -> Result<(), LvtPerformance> {
    let entry = LvtPerformance::from_bits(cpu.lvt_pmi());
    if !is_windows(entry) {
        return Err(entry);
    }
    if entry.masked() {
        unmask_entry(cpu, entry);
    }
    Ok(())
}
