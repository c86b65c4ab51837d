//! AMD's Last Branch Stack version 2, from Zen 4 on (APM Vol. 2 13.1.1.9; Linux, arch/x86/events/amd/lbr.c): entry 0 is
//! the newest.

use x86_defs::amd::last_branches as registers;
use x86_defs::amd::last_branches::{DebugExtnCtl, LbrFrom, LbrTo};
use x86_defs::cpuid::{Leaf80000008Ebx, Leaf80000022Eax, Leaf80000022Ebx, leaf};

use super::branch::sign_extended;
use super::{Branch, Filter, LastBranches, MAX_DEPTH, MissingFeature, Registers, SavedLastBranches, amd_freeze};
use crate::cpu::{Cpu, Cpuid, Msr};
use crate::disturbance::Disturbance;
use crate::first_access::{Fault, FirstAccess, GuardedCpu};

pub const LBR_SELECT: Msr = Msr::new(registers::LBR_SELECT);
const DEBUG_EXTN_CTL: Msr = Msr::new(registers::DEBUG_EXTN_CTL);
const LBR_STACK_FROM: Msr = Msr::new(registers::LBR_STACK_FROM);
const LBR_STACK_TO: Msr = LBR_STACK_FROM.at(1);

/// Highest bit of the addresses in an entry.
const TOP_BIT: u32 = 57;

/// Examines a processor.
pub fn examine(cpu: &impl Cpuid) -> Result<LastBranches, MissingFeature> {
    let last = cpu.cpuid(leaf::EXTENDED_MAXIMUM, 0).eax;
    let (eax, ebx) = if last >= leaf::EXTENDED_PERFMON {
        let perfmon = cpu.cpuid(leaf::EXTENDED_PERFMON, 0);
        (Leaf80000022Eax::from_bits(perfmon.eax), Leaf80000022Ebx::from_bits(perfmon.ebx))
    } else {
        Default::default()
    };
    if eax.lbr_stack() && ebx.lbr_stack_size() != 0 {
        return Ok(LastBranches {
            registers: Registers::Amd,
            depth: ebx.lbr_stack_size().min(MAX_DEPTH),
            freeze: amd_freeze(eax.lbr_and_pmc_freeze()),
            has_kinds: true,
            has_call_stack: false,
        });
    }
    let has_brs =
        last >= leaf::EXTENDED_CORES && Leaf80000008Ebx::from_bits(cpu.cpuid(leaf::EXTENDED_CORES, 0).ebx).brs();
    Err(if has_brs { MissingFeature::BranchSampling } else { MissingFeature::NoRecords })
}

/// Accesses the registers for the first time. Returns the newest entry of the known loop.
pub fn access_first(first: &FirstAccess<'_, impl GuardedCpu>, depth: u8) -> Result<(Msr, u64), Fault> {
    for register in entries(depth).flatten() {
        first.read(register)?;
        first.write(register, 0)?;
    }
    first.trying(LBR_SELECT, |_| {
        first.demand(LBR_SELECT, Filter::KERNEL.select())?;
        first.trying(DEBUG_EXTN_CTL, |found| {
            first.demand(DEBUG_EXTN_CTL, on(found))?;
            first.run_loop();
            Ok(())
        })
    })?;
    Ok((LBR_STACK_TO, first.read(LBR_STACK_TO)?))
}

/// Returns DebugExtnCtl with the recording on.
const fn on(found: u64) -> u64 {
    DebugExtnCtl::from_bits(found).with_lbr_v2_en(true).into_bits()
}

/// Tries what a start writes to DebugExtnCtl. Returns what it contains.
pub fn try_on(first: &FirstAccess<'_, impl GuardedCpu>) -> Result<u64, Fault> {
    let found = first.read(DEBUG_EXTN_CTL)?;
    first.try_value(DEBUG_EXTN_CTL, on(found)).map(|()| found)
}

/// Returns the registers of each entry.
fn entries(depth: u8) -> impl Iterator<Item = [Msr; 2]> {
    (0..depth).map(|index| [LBR_STACK_FROM.at(2 * index), LBR_STACK_TO.at(2 * index)])
}

/// Returns a register that shows that another program has branches recorded.
pub fn in_use(cpu: &impl Cpu) -> Option<(u32, u64)> {
    let control = cpu.rdmsr(DEBUG_EXTN_CTL);
    let found = DebugExtnCtl::from_bits(control);
    if found.lbr_v2_en() || found.brs_en() {
        return Some((DEBUG_EXTN_CTL.address(), control));
    }
    let select = cpu.rdmsr(LBR_SELECT);
    (select != 0).then_some((LBR_SELECT.address(), select))
}

pub fn is_ours(cpu: &impl Cpu, filter: Filter) -> bool {
    cpu.rdmsr(LBR_SELECT) == filter.select()
}

pub fn compare(cpu: &impl Cpu, filter: Filter) -> Option<Disturbance> {
    let select = Disturbance::of(LBR_SELECT, cpu.rdmsr(LBR_SELECT), filter.select());
    select.or_else(|| {
        let found = cpu.rdmsr(DEBUG_EXTN_CTL);
        Disturbance::of(DEBUG_EXTN_CTL, found, on(found))
    })
}

/// Chooses the branches, and empties the entries, if DebugExtnCtl contains what was `found`. Nothing is recorded yet.
pub fn prepare(cpu: &impl Cpu, depth: u8, filter: Filter, found: u64) -> Option<SavedLastBranches> {
    if cpu.rdmsr(DEBUG_EXTN_CTL) != found {
        return None;
    }
    let saved = SavedLastBranches { select: cpu.rdmsr(LBR_SELECT), ..SavedLastBranches::default() };
    cpu.wrmsr(LBR_SELECT, filter.select());
    // An entry is empty if neither bit of its target says what it is.
    entries(depth).for_each(|[_, to]| cpu.wrmsr(to, 0));
    Some(saved)
}

pub fn set_on(cpu: &impl Cpu, found: u64) {
    cpu.wrmsr(DEBUG_EXTN_CTL, on(found));
}

/// Lets branches be recorded again, if nothing else has changed. Returns whether that is so.
pub fn repair(cpu: &impl Cpu, found: u64, disturbance: Disturbance) -> bool {
    let is_off = disturbance.register == DEBUG_EXTN_CTL.address() && disturbance.expected == on(found);
    if is_off {
        set_on(cpu, found);
    }
    is_off
}

/// Ends the recording, unless it was on when it was `found`.
pub fn set_off(cpu: &impl Cpu, found: u64) {
    let was_on = DebugExtnCtl::from_bits(found).lbr_v2_en();
    let now = DebugExtnCtl::from_bits(cpu.rdmsr(DEBUG_EXTN_CTL));
    cpu.wrmsr(DEBUG_EXTN_CTL, now.with_lbr_v2_en(was_on).into_bits());
}

/// Empties the entries, and puts back what chose the branches.
pub fn empty(cpu: &impl Cpu, depth: u8, saved: SavedLastBranches) {
    cpu.wrmsr(LBR_SELECT, saved.select);
    entries(depth).flatten().for_each(|register| cpu.wrmsr(register, 0));
}

/// Reads the entries from the newest to the oldest, while `each` wants more. Entries of a wrong path, and those that
/// are no branches, are left out.
pub fn read(cpu: &impl Cpu, depth: u8, mut each: impl FnMut(Branch) -> bool) {
    for [from, to] in entries(depth) {
        let to = LbrTo::from_bits(cpu.rdmsr(to));
        if !to.valid() && !to.spec() {
            break;
        }
        let from = LbrFrom::from_bits(cpu.rdmsr(from));
        if !to.valid() || to.is_no_branch() {
            continue;
        }
        let branch = Branch {
            from: sign_extended(from.ip(), TOP_BIT),
            to: sign_extended(to.ip(), TOP_BIT),
            mispredicted: Some(from.mispredict()),
            ..Branch::default()
        };
        if !each(branch) {
            break;
        }
    }
}
