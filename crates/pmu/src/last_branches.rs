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

mod amd;
mod architectural;
mod branch;
mod filter;
mod legacy;
mod missing_feature;

use core::convert::Infallible;

use x86_defs::amd::perfmon_v2;
use x86_defs::cpuid::{Leaf1Ecx, Leaf7Edx, LeafAEax, VENDOR_AMD, VENDOR_INTEL, leaf};
use x86_defs::intel::debug_control::{self, DebugCtl};
use x86_defs::intel::perfmon;

use crate::cpu::{Cpu, Cpuid, Msr, vendor};
use crate::disturbance::Disturbance;
use crate::first_access::{Access, Fault, FirstAccess, GuardedCpu};
use crate::interface::emon::IA32_PERF_CAPABILITIES;

pub use branch::{Branch, BranchType};
pub use filter::Filter;
pub use missing_feature::MissingFeature;

/// The most branches that a processor keeps.
pub const MAX_DEPTH: u8 = 32;

/// IA32_DEBUGCTL, which AMD calls DebugCtl: its bits for last branches are the same.
const IA32_DEBUGCTL: Msr = Msr::new(debug_control::IA32_DEBUGCTL);

/// The last branch records of a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastBranches {
    registers: Registers,
    /// Number of entries.
    depth: u8,
    freeze: Freeze,
    /// Whether branches can be chosen by their kind.
    has_kinds: bool,
    has_call_stack: bool,
}

/// Where the entries are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Registers {
    Legacy(legacy::Format),
    Architectural,
    Amd,
}

/// What an interrupt of a counter does if IA32_DEBUGCTL.FREEZE_LBRS_ON_PMI is set (SDM Vol. 3B, "Freezing LBR and
/// Performance Counters on PMI").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Freeze {
    /// Nothing.
    None,
    /// It clears IA32_DEBUGCTL.LBR: version 2 and 3.
    Ends,
    /// It stops the records until this bit is written to this register.
    Until(Msr, u64),
}

/// The registers that the recording shares with other uses, as its [trial](crate::Hal::try_last_branches) found them.
/// They are written only while they contain this.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FoundControls {
    /// IA32_DEBUGCTL.
    debug: u64,
    /// DebugExtnCtl of AMD.
    extension: u64,
}

impl FoundControls {
    /// Before the trial.
    pub const NONE: Self = Self { debug: 0, extension: 0 };
}

/// What was found in the registers, to be put back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SavedLastBranches {
    /// The register that chooses the branches; IA32_LBR_CTL.
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
    match examine_by(cpu, |msr| Ok::<u64, Infallible>(cpu.rdmsr(msr))) {
        Ok(examined) => examined,
    }
}

fn examine_by<E>(
    cpu: &impl Cpuid,
    read: impl Fn(Msr) -> Result<u64, E>,
) -> Result<Result<LastBranches, MissingFeature>, E> {
    if vendor(cpu) == VENDOR_AMD {
        return Ok(amd::examine(cpu));
    }
    if vendor(cpu) != VENDOR_INTEL {
        return Ok(Err(MissingFeature::NoRecords));
    }
    let last = cpu.cpuid(leaf::VENDOR, 0).eax;
    let has_leaf_7 = last >= leaf::STRUCTURED_FEATURES;
    let more = Leaf7Edx::from_bits(if has_leaf_7 { cpu.cpuid(leaf::STRUCTURED_FEATURES, 0).edx } else { 0 });
    if more.arch_lbr() && last >= leaf::LAST_BRANCHES {
        return Ok(architectural::examine(cpu).ok_or(MissingFeature::NoRecords));
    }
    let has_capabilities = Leaf1Ecx::from_bits(cpu.cpuid(leaf::FEATURES, 0).ecx).pdcm();
    let capabilities = if has_capabilities { read(IA32_PERF_CAPABILITIES)? } else { 0 };
    let format = perfmon::PerfCapabilities::from_bits(capabilities).lbr_fmt();
    Ok(legacy::examine(cpu, format).ok_or(MissingFeature::NoRecords))
}

/// Returns how records of an Intel processor freeze, by its version of performance monitoring.
fn intel_freeze(cpu: &impl Cpuid) -> Freeze {
    let reset = Msr::new(perfmon::IA32_PERF_GLOBAL_OVF_CTRL);
    match LeafAEax::from_bits(cpu.cpuid(leaf::ARCHITECTURAL_PERFMON, 0).eax).version() {
        0 | 1 => Freeze::None,
        2 | 3 => Freeze::Ends,
        _ => Freeze::Until(reset, perfmon::GlobalStatus::new().with_lbr_frz(true).into_bits()),
    }
}

/// Returns how records of an AMD processor freeze.
const fn amd_freeze(can_freeze: bool) -> Freeze {
    let reset = Msr::new(perfmon_v2::PERF_CNTR_GLOBAL_STATUS_CLR);
    let frozen = perfmon_v2::GlobalStatus::new().with_lbrs_frozen(true).into_bits();
    if can_freeze { Freeze::Until(reset, frozen) } else { Freeze::None }
}

/// Accesses the registers for the first time, and lets them record a [known loop](crate::known_loop).
///
/// # Errors
/// The fault of a register, or [`Access::ReadBack`] of the newest entry if nothing was recorded.
pub(crate) fn access_first(first: &FirstAccess<'_, impl GuardedCpu>) -> Result<(), Fault> {
    let Ok(records) = examine_by(first.cpuid(), |msr| first.read(msr))? else { return Ok(()) };
    if records.has_debug_control() {
        first.read_write(IA32_DEBUGCTL)?;
    }
    if let Freeze::Until(reset, frozen) = records.freeze {
        first.write(reset, frozen)?;
    }
    let newest = match records.registers {
        Registers::Legacy(format) => format.access_first(first, records.depth)?,
        Registers::Architectural => architectural::access_first(first, records.depth)?,
        Registers::Amd => amd::access_first(first, records.depth)?,
    };
    match newest {
        (register, 0) if first.writes() => Err(Fault::of_value(Access::ReadBack, register, 0)),
        _ => Ok(()),
    }
}

/// Tries what a start with this filter writes. What is recorded meanwhile is emptied by the start. Returns what the
/// control registers contain.
///
/// # Errors
/// The fault, or the value that a register does not keep.
pub(crate) fn try_filter(first: &FirstAccess<'_, impl GuardedCpu>, filter: Filter) -> Result<FoundControls, Fault> {
    let mut found = FoundControls::default();
    let Ok(records) = examine_by(first.cpuid(), |msr| first.read(msr))? else { return Ok(found) };
    match records.registers {
        Registers::Legacy(_) => first.try_value(legacy::MSR_LBR_SELECT, filter.select())?,
        Registers::Architectural => first.try_value(architectural::IA32_LBR_CTL, filter.control())?,
        Registers::Amd => {
            first.try_value(amd::LBR_SELECT, filter.select())?;
            found.extension = amd::try_on(first)?;
        }
    }
    if records.uses_debug_control(filter) {
        found.debug = first.read(IA32_DEBUGCTL)?;
        let wanted = records.debug_control(found.debug, filter, DebugCtl::from_bits(u64::MAX));
        first.try_value(IA32_DEBUGCTL, wanted)?;
    }
    Ok(found)
}

impl LastBranches {
    /// Returns the number of branches that the processor keeps.
    #[must_use]
    pub const fn depth(self) -> u8 {
        self.depth
    }

    /// Checks that the processor can record these branches.
    ///
    /// # Errors
    /// What it lacks.
    pub fn check(self, filter: Filter) -> Result<(), MissingFeature> {
        // Beside a freeze, call-stack mode loses track of its newest entry (Linux commit 2c70d0086e1a).
        if filter.kernel() && (self.freeze == Freeze::None || filter.call_stack()) {
            Err(MissingFeature::NoFreeze)
        } else if filter.call_stack() && !self.has_call_stack {
            Err(MissingFeature::NoCallStack)
        } else if !filter.call_stack() && !filter.has_every_kind() && !self.has_kinds {
            Err(MissingFeature::NoKinds)
        } else {
            Ok(())
        }
    }

    /// Returns whether IA32_DEBUGCTL lets it record.
    const fn is_by_debug_control(self) -> bool {
        matches!(self.registers, Registers::Legacy(_))
    }

    /// Returns whether IA32_DEBUGCTL can have a part in the recording. Of AMD, only processors that freeze are known to
    /// have its upper bits.
    const fn has_debug_control(self) -> bool {
        !matches!((self.registers, self.freeze), (Registers::Amd, Freeze::None))
    }

    const fn uses_debug_control(self, filter: Filter) -> bool {
        self.is_by_debug_control() || filter.kernel()
    }

    /// Returns IA32_DEBUGCTL with its bits that a recording with this filter changes as they are in `own`.
    const fn debug_control(self, found: u64, filter: Filter, own: DebugCtl) -> u64 {
        let found = DebugCtl::from_bits(found);
        let found = if self.is_by_debug_control() { found.with_lbr(own.lbr()) } else { found };
        let found = if filter.kernel() { found.with_freeze_lbrs_on_pmi(own.freeze_lbrs_on_pmi()) } else { found };
        found.into_bits()
    }

    /// Writes the bits of IA32_DEBUGCTL that a recording changes, if there are any, as they are in `own`.
    fn set_debug_control(self, cpu: &impl Cpu, filter: Filter, own: DebugCtl) {
        if self.uses_debug_control(filter) {
            cpu.wrmsr(IA32_DEBUGCTL, self.debug_control(cpu.rdmsr(IA32_DEBUGCTL), filter, own));
        }
    }

    /// Returns a register that shows that another program records branches, with what it contains. At most three
    /// reads.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn in_use_elsewhere(self, cpu: &impl Cpu) -> Option<(u32, u64)> {
        let found = if self.has_debug_control() { cpu.rdmsr(IA32_DEBUGCTL) } else { 0 };
        let control = DebugCtl::from_bits(found);
        // Branch trace messages and last branch records exclude each other.
        let is_traced = control.tr() || control.bts();
        if control.freeze_lbrs_on_pmi() || (self.is_by_debug_control() && (control.lbr() || is_traced)) {
            // The driver itself may have set FREEZE_WHILE_SMM.
            return Some((IA32_DEBUGCTL.address(), control.with_freeze_while_smm(false).into_bits()));
        }
        match self.registers {
            Registers::Legacy(_) => legacy::in_use(cpu),
            Registers::Architectural => architectural::in_use(cpu),
            Registers::Amd => amd::in_use(cpu),
        }
    }

    /// Begins to record on the current processor, with no branch recorded yet. Returns what is to be put back; `None`
    /// if a control register does not contain what its trial `found`: nothing was written then.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn start(self, cpu: &impl Cpu, filter: Filter, found: FoundControls) -> Option<SavedLastBranches> {
        if self.uses_debug_control(filter) && cpu.rdmsr(IA32_DEBUGCTL) != found.debug {
            return None;
        }
        let saved = match self.registers {
            Registers::Legacy(format) => format.prepare(cpu, self.depth, filter),
            Registers::Architectural => architectural::prepare(cpu, self.depth),
            Registers::Amd => amd::prepare(cpu, self.depth, filter, found.extension)?,
        };
        if self.uses_debug_control(filter) {
            cpu.wrmsr(IA32_DEBUGCTL, self.debug_control(found.debug, filter, DebugCtl::from_bits(u64::MAX)));
        }
        match self.registers {
            Registers::Legacy(_) => {}
            Registers::Architectural => architectural::set_on(cpu, filter.control()),
            Registers::Amd => amd::set_on(cpu, found.extension),
        }
        Some(SavedLastBranches { controls: found, ..saved })
    }

    /// Ends the recording, and empties the entries: they are addresses of the code of others. Registers that another
    /// program has taken over stay as they are.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn stop(self, cpu: &impl Cpu, filter: Filter, saved: SavedLastBranches) {
        let is_ours = match self.registers {
            Registers::Legacy(_) => legacy::is_ours(cpu, filter),
            Registers::Architectural => architectural::is_ours(cpu, filter),
            Registers::Amd => amd::is_ours(cpu, filter),
        };
        if !is_ours {
            return;
        }
        match self.registers {
            Registers::Legacy(_) => {}
            Registers::Architectural => architectural::set_on(cpu, saved.select),
            Registers::Amd => amd::set_off(cpu, saved.controls.extension),
        }
        self.set_debug_control(cpu, filter, DebugCtl::from_bits(saved.controls.debug));
        match self.registers {
            Registers::Legacy(format) => format.empty(cpu, self.depth, saved),
            Registers::Architectural => architectural::empty(cpu, saved),
            Registers::Amd => amd::empty(cpu, self.depth, saved),
        }
    }

    /// Passes the recorded branches to `each`, the newest first, up to the first one that the filter excludes: another
    /// program's.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn read(self, cpu: &impl Cpu, filter: Filter, mut each: impl FnMut(Branch)) {
        let each = |branch: Branch| {
            let is_meant = filter.includes(branch);
            if is_meant {
                each(branch);
            }
            is_meant
        };
        match self.registers {
            Registers::Legacy(format) => format.read(cpu, self.depth, each),
            Registers::Architectural => architectural::read(cpu, self.depth, each),
            Registers::Amd => amd::read(cpu, self.depth, each),
        }
    }

    /// Lets the recording go on after an interrupt. Its status was cleared.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn go_on(self, cpu: &impl Cpu, filter: Filter) {
        match self.freeze {
            _ if !filter.kernel() => {}
            Freeze::None => {}
            Freeze::Ends => self.set_debug_control(cpu, filter, DebugCtl::from_bits(u64::MAX)),
            Freeze::Until(reset, frozen) => cpu.wrmsr(reset, frozen),
        }
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
        disturbance: Disturbance,
    ) -> bool {
        let all = DebugCtl::from_bits(u64::MAX);
        if disturbance.register == IA32_DEBUGCTL.address()
            && disturbance.expected == self.debug_control(controls.debug, filter, all)
        {
            cpu.wrmsr(IA32_DEBUGCTL, disturbance.expected);
            return true;
        }
        amd::repair(cpu, controls.extension, disturbance)
    }

    /// Compares the registers with what [`start`](Self::start) wrote. One read, or two.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn compare(self, cpu: &impl Cpu, filter: Filter) -> Option<Disturbance> {
        let select = match self.registers {
            Registers::Legacy(_) => legacy::compare(cpu, filter),
            Registers::Architectural => architectural::compare(cpu, filter),
            Registers::Amd => amd::compare(cpu, filter),
        };
        if select.is_some() || !self.is_by_debug_control() {
            return select;
        }
        let found = cpu.rdmsr(IA32_DEBUGCTL);
        Disturbance::of(IA32_DEBUGCTL, found, self.debug_control(found, filter, DebugCtl::from_bits(u64::MAX)))
    }
}
