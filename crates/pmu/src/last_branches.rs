//! The last branches that a processor took, in registers: Intel's last branch records, legacy and architectural, and
//! AMD's Last Branch Stack version 2.
//!
//! Whoever records them has the registers of a processor to itself, and nothing tells Windows that they are taken, so
//! that [`in_use_elsewhere`](LastBranches::in_use_elsewhere) is asked before they are written. They are read in an
//! interrupt before its status is cleared, which lets frozen records run on.
//!
//! | with n branches recorded, d entries | interrupt | start | stop |
//! |---|---|---|---|
//! | legacy | (1 + 2n) R, 3n where LBR_INFO exists, 1 R more if n < d | 2 R + (2 + d) W | 2 R + (2 + 2d) W, 3d where LBR_INFO exists |
//! | architectural | 3n R, 1 R more if n < d | 2 R + 2 W | 1 R + 2 W |
//! | AMD | 2n R, 1 R more if n < d | 2 R + (2 + d) W | 2 R + (2 + 2d) W |
//!
//! With branches of kernel mode, start and stop need 1 R + 1 W more to set the freeze, except with legacy records; and
//! an interrupt 1 W more, or 1 R + 1 W where it ended the recording (version 2 and 3 of Intel).

mod entry;
mod filter;
mod missing_feature;
mod registers;

use core::convert::Infallible;

use x86_defs::amd::last_branches::DebugExtnCtl;
use x86_defs::intel::debug_control::DebugCtl;

use crate::cpu::{Cpu, Msr};
use crate::disturbance::Disturbance;
use crate::first_access::{Access, Fault, Faulted, FirstAccess, GuardedCpu};

use entry::Layout;
pub use entry::{Branch, BranchType};
pub use filter::Filter;
pub use missing_feature::MissingFeature;
use registers::{Freeze, IA32_LBR_DEPTH, MSR_LASTBRANCH_TOS, Registers};

/// The most branches that a processor keeps.
pub const MAX_DEPTH: u8 = 32;

/// Another use of DebugExtnCtl of AMD.
const BRANCH_SAMPLING: u64 = DebugExtnCtl::new().with_brs_en(true).into_bits();

/// The last branch records of a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastBranches(Registers);

/// The registers that the recording shares with other uses, as its [trial](crate::Hal::try_last_branches) found them:
/// those of `Registers::controls`. They are written only while they contain this.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FoundControls([u64; 2]);

impl FoundControls {
    /// Before the trial.
    pub const NONE: Self = Self([0; 2]);
}

/// What was found in the registers, to be put back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SavedLastBranches {
    select: u64,
    depth: u64,
    controls: FoundControls,
}

/// Examines the current processor. Reads at most one register, which CPUID enumerates.
///
/// # Errors
/// What it lacks.
///
/// # IRQL
/// Any at which the thread stays on its processor.
pub fn examine(cpu: &impl Cpu) -> Result<LastBranches, MissingFeature> {
    match registers::examine_by(cpu, |msr| Ok::<u64, Infallible>(cpu.rdmsr(msr))) {
        Ok(examined) => examined.map(LastBranches),
    }
}

/// Accesses the registers for the first time, and lets them record branches of kernel mode meanwhile.
///
/// An entry that was read is not written back: format 4 faults for the sign of its own addresses where transactions are
/// off (Linux, `lbr_from_signext_quirk_wr`).
///
/// # Errors
/// The fault of a register, or [`Access::ReadBack`] of the newest entry if nothing was recorded.
pub(crate) fn access_first(first: &FirstAccess<'_, impl GuardedCpu>) -> Result<(), Faulted> {
    let Ok(records) = registers::examine_by(first.cpuid(), |msr| first.read(msr))? else { return Ok(()) };
    if let Freeze::Until(reset, frozen) = records.freeze {
        first.write(reset, frozen)?;
    }
    let [(control, _), (extension, enabled)] = records.controls(Filter::KERNEL);
    if records.has_debug_control() {
        first.read_write(control)?;
    }
    if enabled != 0 {
        first.read_write(extension)?;
    }
    let entries = || (0..records.depth).flat_map(|index| records.entry(index));
    if records.layout == Layout::Architectural {
        first.trying(IA32_LBR_DEPTH, |_| {
            first.demand(IA32_LBR_DEPTH, records.depth.into())?;
            // Entries beyond the depth do not exist.
            if first.writes() { entries().try_for_each(|register| first.read(register).map(|_| ())) } else { Ok(()) }
        })?;
    } else {
        entries().try_for_each(|register| first.read(register).and_then(|_| first.write(register, 0)))?;
    }
    let filter = Filter::KERNEL;
    first.trying(records.select, |_| {
        first.demand(records.select, 0)?;
        first.demand(records.select, records.selected(filter))?;
        let mut enabling = records.controls(filter.with_kernel(false)).into_iter().filter(|(_, bits)| *bits != 0);
        // The accesses themselves take branches.
        enabling.try_for_each(|(control, bits)| first.trying(control, |found| first.demand(control, found | bits)))
    })?;
    let top = if records.is_ring() { first.read(MSR_LASTBRANCH_TOS)? } else { 0 };
    let newest = records.of_entry(records.from, place(top, 0, records.depth));
    if first.read(newest)? == 0 && first.writes() {
        return Err(first.fail(Fault::of_value(Access::ReadBack, newest, 0)));
    }
    Ok(())
}

/// Tries what a start with this filter writes. The start empties what is recorded meanwhile. Returns what the
/// control registers contain.
///
/// # Errors
/// The fault, or the value that a register does not keep.
pub(crate) fn try_filter(first: &FirstAccess<'_, impl GuardedCpu>, filter: Filter) -> Result<FoundControls, Faulted> {
    let mut found = FoundControls::NONE;
    let Ok(records) = registers::examine_by(first.cpuid(), |msr| first.read(msr))? else { return Ok(found) };
    first.try_value(records.select, records.selected(filter))?;
    for ((control, bits), found) in records.controls(filter).into_iter().zip(&mut found.0) {
        if bits != 0 {
            *found = first.read_write(control)?;
            first.try_value(control, *found | bits)?;
        }
    }
    Ok(found)
}

/// Returns the entry of an age in a ring whose newest is `top`, which has more bits than the depth needs.
fn place(top: u64, age: u8, depth: u8) -> u8 {
    let [low, ..] = top.to_le_bytes();
    low.wrapping_sub(age) & (depth - 1)
}

impl LastBranches {
    /// Checks that the processor can record these branches.
    ///
    /// # Errors
    /// What it lacks.
    pub fn check(self, filter: Filter) -> Result<(), MissingFeature> {
        let Self(Registers { freeze, has_kinds, .. }) = self;
        if filter.kernel() && freeze == Freeze::None {
            Err(MissingFeature::NoFreeze)
        } else if !filter.has_every_kind() && !has_kinds {
            Err(MissingFeature::NoKinds)
        } else {
            Ok(())
        }
    }

    /// Returns a register that shows that another program records branches, with what it contains. At most three
    /// reads.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn in_use_elsewhere(self, cpu: &impl Cpu) -> Option<(u32, u64)> {
        let Self(records) = self;
        let [(control, _), (extension, enabled)] = records.controls(Filter::KERNEL);
        if records.has_debug_control() {
            // The driver itself may have set FREEZE_WHILE_SMM.
            let found = DebugCtl::from_bits(cpu.rdmsr(control)).with_freeze_while_smm(false);
            // Branch trace messages and last branch records exclude each other.
            let is_traced = found.lbr() || found.tr() || found.bts();
            if found.freeze_lbrs_on_pmi() || (records.is_ring() && is_traced) {
                return Some((control.address(), found.into_bits()));
            }
        }
        if enabled != 0 {
            let found = cpu.rdmsr(extension);
            if found & (enabled | BRANCH_SAMPLING) != 0 {
                return Some((extension.address(), found));
            }
        }
        let select = cpu.rdmsr(records.select);
        (select != 0).then_some((records.select.address(), select))
    }

    /// Begins to record on the current processor, with no branch recorded yet. Returns what is to be put back; `None`
    /// if a control register does not contain what its trial `found`: nothing was written then.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn start(self, cpu: &impl Cpu, filter: Filter, found: FoundControls) -> Option<SavedLastBranches> {
        let Self(records) = self;
        let controls = || records.controls(filter).into_iter().zip(found.0).filter(|((_, bits), _)| *bits != 0);
        if controls().any(|((control, _), found)| cpu.rdmsr(control) != found) {
            return None;
        }
        let mut saved = SavedLastBranches { select: cpu.rdmsr(records.select), depth: 0, controls: found };
        let select = || cpu.wrmsr(records.select, records.selected(filter));
        if records.layout == Layout::Architectural {
            // A write of the depth empties the entries.
            saved.depth = cpu.rdmsr(IA32_LBR_DEPTH);
            cpu.wrmsr(IA32_LBR_DEPTH, records.depth.into());
        } else {
            select();
            // The part that says whether there is a branch.
            let part = if records.layout == Layout::Amd { records.to } else { records.from };
            (0..records.depth).for_each(|index| cpu.wrmsr(records.of_entry(part, index), 0));
        }
        controls().for_each(|((control, bits), found)| cpu.wrmsr(control, found | bits));
        if records.layout == Layout::Architectural {
            select();
        }
        Some(saved)
    }

    /// Ends the recording, and empties the entries: they are addresses of the code of others. Registers that another
    /// program has taken over stay as they are.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn stop(self, cpu: &impl Cpu, filter: Filter, saved: SavedLastBranches) {
        let Self(records) = self;
        if cpu.rdmsr(records.select) != records.selected(filter) {
            return;
        }
        for ((control, bits), found) in records.controls(filter).into_iter().zip(saved.controls.0) {
            if bits != 0 {
                cpu.wrmsr(control, cpu.rdmsr(control) & !bits | found & bits);
            }
        }
        cpu.wrmsr(records.select, saved.select);
        if records.layout == Layout::Architectural {
            cpu.wrmsr(IA32_LBR_DEPTH, saved.depth);
        } else {
            (0..records.depth).flat_map(|index| records.entry(index)).for_each(|register| cpu.wrmsr(register, 0));
        }
    }

    /// Passes the recorded branches to `each`, the newest first, up to the first one that the filter excludes: another
    /// program's.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn read(self, cpu: &impl Cpu, filter: Filter, mut each: impl FnMut(Branch)) {
        let Self(records) = self;
        let top = if records.is_ring() { cpu.rdmsr(MSR_LASTBRANCH_TOS) } else { 0 };
        for age in 0..records.depth {
            let index = if records.is_ring() { place(top, age, records.depth) } else { age };
            let read = |first| cpu.rdmsr(records.of_entry(first, index));
            let is_amd = records.layout == Layout::Amd;
            let first = read(if is_amd { records.to } else { records.from });
            if records.layout.is_empty(first) {
                break;
            }
            let second = read(if is_amd { records.from } else { records.to });
            let info = if records.layout.has_info() { read(records.info) } else { 0 };
            let (from, to) = if is_amd { (second, first) } else { (first, second) };
            match records.layout.branch(from, to, info) {
                Some(branch) if filter.includes(branch) => each(branch),
                Some(_) => break,
                None => {}
            }
        }
    }

    /// Lets the recording go on after an interrupt. Its status was cleared.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn go_on(self, cpu: &impl Cpu, filter: Filter) {
        let [(control, bits), _] = self.0.controls(filter);
        match self.0.freeze {
            Freeze::Ends if filter.kernel() => cpu.wrmsr(control, cpu.rdmsr(control) | bits),
            Freeze::Until(reset, frozen) if filter.kernel() => cpu.wrmsr(reset, frozen),
            _ => {}
        }
    }

    /// Compares the registers with what [`start`](Self::start) wrote. At most three reads. Where interrupts end the
    /// recording, the bit that lets it go on shows nothing: an overflow clears it, and each interrupt sets it.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn compare(self, cpu: &impl Cpu, filter: Filter) -> Option<Disturbance> {
        let Self(records) = self;
        let select = Disturbance::of(records.select, cpu.rdmsr(records.select), records.selected(filter));
        let is_ended = records.freeze == Freeze::Ends && filter.kernel();
        let controls = records.controls(filter).into_iter().filter(|(_, bits)| *bits != 0 && !is_ended);
        let mut controls = controls.map(|(control, bits)| (control, cpu.rdmsr(control), bits));
        select.or_else(|| controls.find_map(|(control, found, bits)| Disturbance::of(control, found, found | bits)))
    }

    /// Lets branches be recorded again after a [disturbance](Self::compare), if another program has ended the recording
    /// and changed nothing else. Returns whether that is so.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn repair(
        self,
        cpu: &impl Cpu,
        filter: Filter,
        SavedLastBranches { controls, .. }: SavedLastBranches,
        Disturbance { register, expected, .. }: Disturbance,
    ) -> bool {
        let tried = self.0.controls(filter).into_iter().zip(controls.0);
        let is_tried =
            |((control, bits), found): ((Msr, u64), u64)| control.address() == register && expected == found | bits;
        let control = tried.filter(|tried| is_tried(*tried)).map(|((control, _), _)| control).next();
        control.map(|control| cpu.wrmsr(control, expected)).is_some()
    }
}
