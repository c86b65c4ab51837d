//! The bits of IA32_DEBUGCTL that stop counters: on an interrupt, and in System Management Mode (SDM Vol. 3B, "Freezing
//! LBR and Performance Counters on PMI"; Vol. 4, "Architectural MSRs").
//!
//! A freeze on interrupts that another program left on would stop the counters between an overflow and its interrupt,
//! and hide these events. Linux does not use it either: counters freeze when the interrupt is raised, not when it is
//! served (commit 3daa96d67274). Without the freeze in SMM, counters count what the firmware executes there, partly at
//! CPL 3, so that `:u` does not exclude it (commit a01994f5e5c7).
//!
//! Last branch records are left alone: FREEZE_LBRS_ON_PMI stays as another program set it, and LBR_Frz of the status is
//! not cleared, which would let its records run on.

use x86_defs::intel::debug_control::{self, DebugCtl};
use x86_defs::intel::perfmon::GlobalStatus;

use super::IA32_PERF_GLOBAL_STATUS;
use super::capabilities::PmuCapabilities;
use crate::cpu::{Cpu, Msr};
use crate::disturbance::Disturbance;
use crate::first_access::{Faulted, FirstAccess, GuardedCpu};
use crate::state::{CounterSet, PerCpuPmu};

const IA32_DEBUGCTL: Msr = Msr::new(debug_control::IA32_DEBUGCTL);

/// Accesses the register for the first time, if [`take`] will, and tries what it will write. Returns the capabilities
/// without the bits that the register does not take: counters then count in SMM as well, or run as another program lets
/// them.
pub fn access_first(first: &FirstAccess<'_, impl GuardedCpu>, capabilities: PmuCapabilities) -> PmuCapabilities {
    let absent = capabilities.with_debug_control(false).with_freeze_while_smm(false);
    if !capabilities.debug_control() {
        return absent;
    }
    let Ok(found) = first.read_write(IA32_DEBUGCTL).map(DebugCtl::from_bits) else { return absent };
    let tried = [capabilities, capabilities.with_freeze_while_smm(false)].into_iter().find_map(|tried| {
        let kept = DebugCtl::from_bits(first.kept(IA32_DEBUGCTL, wanted(found, tried).into_bits()).ok()?);
        Some(tried.with_freeze_while_smm(tried.freeze_while_smm() && kept.freeze_while_smm()))
    });
    match first.restore(IA32_DEBUGCTL, found.into_bits()) {
        Ok(()) => tried.unwrap_or(absent),
        Err(_) => absent,
    }
}

/// Reads the register after the first accesses; 0 if [`take`] does not write it.
pub fn found(first: &FirstAccess<'_, impl GuardedCpu>, capabilities: PmuCapabilities) -> Result<u64, Faulted> {
    if capabilities.debug_control() { first.read(IA32_DEBUGCTL) } else { Ok(0) }
}

/// Tries what [`take`] will write beside what the register contains.
pub fn try_found(first: &FirstAccess<'_, impl GuardedCpu>, capabilities: PmuCapabilities) -> Result<(), Faulted> {
    first.trying(IA32_DEBUGCTL, |found| {
        first.demand(IA32_DEBUGCTL, wanted(DebugCtl::from_bits(found), capabilities).into_bits())
    })
}

/// Returns the register with the counters running through interrupts and standing still in SMM, as far as the processor
/// can. The bits of last branch records belong to the program that records them.
const fn wanted(found: DebugCtl, capabilities: PmuCapabilities) -> DebugCtl {
    found
        .with_freeze_perfmon_on_pmi(false)
        .with_freeze_while_smm(found.freeze_while_smm() || capabilities.freeze_while_smm())
}

/// The bits that [`take`] changes.
const OWN: u64 = DebugCtl::new().with_freeze_perfmon_on_pmi(true).with_freeze_while_smm(true).into_bits();

/// The bits of a recording of branches, which a session may have started or ended since the guarded accesses.
const BRANCHES: u64 = DebugCtl::new()
    .with_tr(true)
    .with_bts(true)
    .with_btint(true)
    .with_bts_off_os(true)
    .with_bts_off_usr(true)
    .into_bits();

/// Lets the counters run through interrupts and stop in SMM, as far as the processor can. One read, and one write if a
/// bit changes. Returns the bits to put back.
///
/// What is written was tried beside the bits that the guarded accesses have `found`. If a wake left others, even none
/// of them, the register is left alone: [`compare`] notes what the counts then include, or lack.
pub fn take(cpu: &impl Cpu, capabilities: PmuCapabilities, found: u64) -> u64 {
    if !capabilities.debug_control() {
        return 0;
    }
    let wanted = wanted(DebugCtl::from_bits(found), capabilities).into_bits();
    let now = cpu.rdmsr(IA32_DEBUGCTL);
    let ended = found & !now & BRANCHES;
    if (now | ended) & !OWN != found & !OWN {
        return 0;
    }
    let control = wanted & !ended;
    if now != control {
        cpu.wrmsr(IA32_DEBUGCTL, control);
    }
    found ^ wanted
}

/// Compares the register with what [`take`] wrote, as far as its bits stop counters on an interrupt: one read.
///
/// FREEZE_WHILE_SMM that is gone is no other program: Windows restores the register for threads with branch tracing in
/// DR7 as it was. The counts may include SMM from then on, which `pmu` notes.
pub fn compare(cpu: &impl Cpu, pmu: &PerCpuPmu, capabilities: PmuCapabilities) -> Option<Disturbance> {
    if !capabilities.debug_control() {
        return None;
    }
    let found = DebugCtl::from_bits(cpu.rdmsr(IA32_DEBUGCTL));
    if capabilities.freeze_while_smm() && !found.freeze_while_smm() {
        pmu.note_smm();
    }
    Disturbance::of(IA32_DEBUGCTL, found.into_bits(), found.with_freeze_perfmon_on_pmi(false).into_bits())
}

/// Puts the bits that [`take`] changed back; others keep the values that they have by now. One read and one write, or
/// none.
pub fn put_back(cpu: &impl Cpu, changed: u64) {
    if changed == 0 {
        return;
    }
    let changed = DebugCtl::from_bits(changed);
    let now = DebugCtl::from_bits(cpu.rdmsr(IA32_DEBUGCTL));
    let found = now
        .with_freeze_perfmon_on_pmi(now.freeze_perfmon_on_pmi() || changed.freeze_perfmon_on_pmi())
        .with_freeze_while_smm(now.freeze_while_smm() && !changed.freeze_while_smm());
    cpu.wrmsr(IA32_DEBUGCTL, found.into_bits());
}

/// Returns the disturbance of all `active` counters if the status reports that they were frozen: the driver does not
/// let interrupts freeze them.
pub fn frozen(active: CounterSet, status: u64) -> Option<(CounterSet, Disturbance)> {
    let running = GlobalStatus::from_bits(status).with_ctr_frz(false);
    Some((active, Disturbance::of(IA32_PERF_GLOBAL_STATUS, status, running.into_bits())?))
}

/// Notes in an interrupt that the counters were [frozen].
#[cold]
#[inline(never)]
pub fn note_frozen(pmu: &PerCpuPmu, status: u64) {
    pmu.disturbances.note_found(frozen(pmu.active().all, status));
}
