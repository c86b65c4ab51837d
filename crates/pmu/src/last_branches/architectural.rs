//! Intel's architectural last branch records (SDM Vol. 3B, "Last Branch Records"): entry 0 is the newest.

use x86_defs::cpuid::{Leaf1CEax, Leaf1CEbx, leaf};
use x86_defs::intel::last_branches as registers;
use x86_defs::intel::last_branches::{LbrCtl, LbrInfo};

use super::{Branch, Filter, LastBranches, MAX_DEPTH, Registers, SavedLastBranches, intel_freeze};
use crate::cpu::{Cpu, Cpuid, Msr};
use crate::disturbance::Disturbance;
use crate::first_access::{Fault, FirstAccess, GuardedCpu};

pub const IA32_LBR_CTL: Msr = Msr::new(registers::IA32_LBR_CTL);
const IA32_LBR_DEPTH: Msr = Msr::new(registers::IA32_LBR_DEPTH);
const IA32_LBR_FROM: Msr = Msr::new(registers::IA32_LBR_FROM);
const IA32_LBR_TO: Msr = Msr::new(registers::IA32_LBR_TO);
const IA32_LBR_INFO: Msr = Msr::new(registers::IA32_LBR_INFO);

/// Examines a processor with leaf 1CH: the cores of a hybrid can differ.
pub fn examine(cpu: &impl Cpuid) -> Option<LastBranches> {
    let found = cpu.cpuid(leaf::LAST_BRANCHES, 0);
    let (records, choices) = (Leaf1CEax::from_bits(found.eax), Leaf1CEbx::from_bits(found.ebx));
    // The bits above the fourth would be more entries than a sample has room for.
    let deepest = (1..=MAX_DEPTH / 8).rev().find(|eights| records.depths() >> (eights - 1) & 1 != 0)?;
    choices.privilege_filter().then_some(LastBranches {
        registers: Registers::Architectural,
        depth: 8 * deepest,
        freeze: intel_freeze(cpu),
        has_kinds: choices.branch_filter(),
        has_call_stack: choices.call_stack(),
    })
}

/// Accesses the registers for the first time. Returns the newest entry of the known loop.
pub fn access_first(first: &FirstAccess<'_, impl GuardedCpu>, depth: u8) -> Result<(Msr, u64), Fault> {
    for index in 0..depth {
        for register in [IA32_LBR_FROM, IA32_LBR_TO, IA32_LBR_INFO] {
            first.read(register.at(index))?;
        }
    }
    first.trying(IA32_LBR_DEPTH, |_| first.demand(IA32_LBR_DEPTH, depth.into()))?;
    first.trying(IA32_LBR_CTL, |_| {
        first.demand(IA32_LBR_CTL, 0)?;
        first.demand(IA32_LBR_CTL, Filter::KERNEL.control())?;
        first.run_loop();
        Ok(())
    })?;
    Ok((IA32_LBR_FROM, first.read(IA32_LBR_FROM)?))
}

/// Returns the control register, if another program has branches recorded.
pub fn in_use(cpu: &impl Cpu) -> Option<(u32, u64)> {
    let control = cpu.rdmsr(IA32_LBR_CTL);
    LbrCtl::from_bits(control).lbr_en().then_some((IA32_LBR_CTL.address(), control))
}

pub fn is_ours(cpu: &impl Cpu, filter: Filter) -> bool {
    cpu.rdmsr(IA32_LBR_CTL) == filter.control()
}

pub fn compare(cpu: &impl Cpu, filter: Filter) -> Option<Disturbance> {
    Disturbance::of(IA32_LBR_CTL, cpu.rdmsr(IA32_LBR_CTL), filter.control())
}

/// Sets the depth, which empties the entries.
pub fn prepare(cpu: &impl Cpu, depth: u8) -> SavedLastBranches {
    let (select, found) = (cpu.rdmsr(IA32_LBR_CTL), cpu.rdmsr(IA32_LBR_DEPTH));
    cpu.wrmsr(IA32_LBR_DEPTH, depth.into());
    SavedLastBranches { select, depth: found, ..SavedLastBranches::default() }
}

pub fn set_on(cpu: &impl Cpu, control: u64) {
    cpu.wrmsr(IA32_LBR_CTL, control);
}

/// Puts the depth back, which empties the entries.
pub fn empty(cpu: &impl Cpu, saved: SavedLastBranches) {
    cpu.wrmsr(IA32_LBR_DEPTH, saved.depth);
}

/// Reads the entries from the newest to the oldest, while `each` wants more. The first without a source ends them.
pub fn read(cpu: &impl Cpu, depth: u8, mut each: impl FnMut(Branch) -> bool) {
    for index in 0..depth {
        let from = cpu.rdmsr(IA32_LBR_FROM.at(index));
        if from == 0 {
            break;
        }
        let to = cpu.rdmsr(IA32_LBR_TO.at(index));
        let info = LbrInfo::from_bits(cpu.rdmsr(IA32_LBR_INFO.at(index)));
        if !each(Branch::architectural(from, to, info)) {
            break;
        }
    }
}
