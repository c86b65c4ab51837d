//! Which registers of a processor hold its last branches (SDM Vol. 3B 19.4 to 19.13 and "Last Branch Records"; Vol. 4;
//! APM Vol. 2 13.1.1.9).

use x86_defs::amd::last_branches::{self as amd, DebugExtnCtl};
use x86_defs::amd::perfmon_v2;
use x86_defs::cpuid::{
    Leaf1CEax, Leaf1CEbx, Leaf1Ecx, Leaf7Edx, Leaf80000008Ebx, Leaf80000022Eax, Leaf80000022Ebx, LeafAEax, VENDOR_AMD,
    VENDOR_INTEL, leaf,
};
use x86_defs::intel::debug_control::{self, DebugCtl};
use x86_defs::intel::{last_branches as intel, perfmon};

use super::entry::Layout;
use super::{Filter, MAX_DEPTH, MissingFeature};
use crate::cpu::{Cpuid, Msr, vendor};
use crate::interface::emon::{IA32_PERF_CAPABILITIES, Microarchitecture};

/// IA32_DEBUGCTL, which AMD calls DebugCtl: its bits for last branches are the same.
pub const IA32_DEBUGCTL: Msr = Msr::new(debug_control::IA32_DEBUGCTL);
pub const MSR_LASTBRANCH_TOS: Msr = Msr::new(intel::MSR_LASTBRANCH_TOS);
pub const IA32_LBR_DEPTH: Msr = Msr::new(intel::IA32_LBR_DEPTH);
const DEBUG_EXTN_CTL: Msr = Msr::new(amd::DEBUG_EXTN_CTL);

/// The last branch records of a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Registers {
    /// The register that chooses the branches.
    pub select: Msr,
    /// Source, target and, where the layout has it, further information of entry 0.
    pub from: Msr,
    pub to: Msr,
    pub info: Msr,
    pub layout: Layout,
    /// Number of entries: a power of two.
    pub depth: u8,
    pub freeze: Freeze,
    /// Whether branches can be chosen by their kind.
    pub has_kinds: bool,
}

/// What an interrupt of a counter does if IA32_DEBUGCTL.FREEZE_LBRS_ON_PMI is set (SDM Vol. 3B, "Freezing LBR and
/// Performance Counters on PMI").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freeze {
    /// Nothing.
    None,
    /// It clears IA32_DEBUGCTL.LBR: version 2 and 3 of Intel.
    Ends,
    /// It stops the records until this bit is written to this register.
    Until(Msr, u64),
}

/// Returns the registers of the current processor. `read` reads at most one of them, which CPUID enumerates.
pub fn examine_by<E>(
    cpu: &impl Cpuid,
    read: impl Fn(Msr) -> Result<u64, E>,
) -> Result<Result<Registers, MissingFeature>, E> {
    if vendor(cpu) == VENDOR_AMD {
        return Ok(of_amd(cpu));
    }
    if vendor(cpu) != VENDOR_INTEL {
        return Ok(Err(MissingFeature::NoRecords));
    }
    let last = cpu.cpuid(leaf::VENDOR, 0).eax;
    let has_leaf_7 = last >= leaf::STRUCTURED_FEATURES;
    let more = Leaf7Edx::from_bits(if has_leaf_7 { cpu.cpuid(leaf::STRUCTURED_FEATURES, 0).edx } else { 0 });
    if more.arch_lbr() && last >= leaf::LAST_BRANCHES {
        return Ok(architectural(cpu).ok_or(MissingFeature::NoRecords));
    }
    let has_capabilities = Leaf1Ecx::from_bits(cpu.cpuid(leaf::FEATURES, 0).ecx).pdcm();
    let capabilities = if has_capabilities { read(IA32_PERF_CAPABILITIES)? } else { 0 };
    let format = perfmon::PerfCapabilities::from_bits(capabilities).lbr_fmt();
    Ok(legacy(cpu, format).ok_or(MissingFeature::NoRecords))
}

/// Returns the registers of an Intel processor with leaf 1CH: the cores of a hybrid can differ.
fn architectural(cpu: &impl Cpuid) -> Option<Registers> {
    let found = cpu.cpuid(leaf::LAST_BRANCHES, 0);
    let (records, choices) = (Leaf1CEax::from_bits(found.eax), Leaf1CEbx::from_bits(found.ebx));
    // Depths that are no power of two, or more than a sample has room for, are not used.
    let deepest = [MAX_DEPTH, 16, 8].into_iter().find(|depth| records.depths() >> (depth / 8 - 1) & 1 != 0)?;
    choices.privilege_filter().then_some(Registers {
        select: Msr::new(intel::IA32_LBR_CTL),
        from: Msr::new(intel::IA32_LBR_FROM),
        to: Msr::new(intel::IA32_LBR_TO),
        info: Msr::new(intel::IA32_LBR_INFO),
        layout: Layout::Architectural,
        depth: deepest,
        freeze: intel_freeze(cpu),
        has_kinds: choices.branch_filter(),
    })
}

/// Returns the registers of an earlier Intel processor with this LBR_FMT. Core, Core 2 and Bonnell have four or eight
/// entries and cannot choose.
fn legacy(cpu: &impl Cpuid, format: u8) -> Option<Registers> {
    use Microarchitecture as M;
    let microarchitecture = Microarchitecture::of(cpu);
    let depth = match microarchitecture {
        M::Silvermont | M::KnightsLanding => 8,
        M::Nehalem | M::Westmere | M::SandyBridge | M::IvyBridge | M::Haswell | M::Broadwell => 16,
        M::Skylake | M::IceLake | M::Goldmont | M::GoldmontPlus | M::Tremont => 32,
        _ => return None,
    };
    let (from, to) = if microarchitecture == M::Silvermont {
        (intel::MSR_LASTBRANCH_FROM_EARLY, intel::MSR_LASTBRANCH_TO_EARLY)
    } else {
        (intel::MSR_LASTBRANCH_FROM, intel::MSR_LASTBRANCH_TO)
    };
    // It reports format 1, and has the bit of format 3 (Linux, `intel_pmu_lbr_init_knl`).
    let is_modest = microarchitecture == M::KnightsLanding && format == 1;
    Some(Registers {
        select: Msr::new(intel::MSR_LBR_SELECT),
        from: Msr::new(from),
        to: Msr::new(to),
        info: Msr::new(intel::MSR_LBR_INFO),
        layout: Layout::of_format(if is_modest { 3 } else { format })?,
        depth,
        freeze: intel_freeze(cpu),
        // They record calls only with both kinds of jumps (Linux, `nhm_lbr_sel_map`).
        has_kinds: !matches!(microarchitecture, M::Nehalem | M::Westmere | M::Silvermont),
    })
}

/// Returns how records of an Intel processor freeze, by its version of performance monitoring.
fn intel_freeze(cpu: &impl Cpuid) -> Freeze {
    match LeafAEax::from_bits(cpu.cpuid(leaf::ARCHITECTURAL_PERFMON, 0).eax).version() {
        0 | 1 => Freeze::None,
        2 | 3 => Freeze::Ends,
        _ => Freeze::Until(
            Msr::new(perfmon::IA32_PERF_GLOBAL_OVF_CTRL),
            perfmon::GlobalStatus::new().with_lbr_frz(true).into_bits(),
        ),
    }
}

/// Returns the registers of an AMD processor with the Last Branch Stack of version 2 (Linux,
/// arch/x86/events/amd/lbr.c).
fn of_amd(cpu: &impl Cpuid) -> Result<Registers, MissingFeature> {
    let last = cpu.cpuid(leaf::EXTENDED_MAXIMUM, 0).eax;
    let perfmon = cpu.cpuid(leaf::EXTENDED_PERFMON, 0);
    let (features, sizes) = (Leaf80000022Eax::from_bits(perfmon.eax), Leaf80000022Ebx::from_bits(perfmon.ebx));
    let depth = sizes.lbr_stack_size().min(MAX_DEPTH);
    if last < leaf::EXTENDED_PERFMON || !features.lbr_stack() || !depth.is_power_of_two() {
        let cores = Leaf80000008Ebx::from_bits(cpu.cpuid(leaf::EXTENDED_CORES, 0).ebx);
        let has_brs = last >= leaf::EXTENDED_CORES && cores.brs();
        return Err(if has_brs { MissingFeature::BranchSampling } else { MissingFeature::NoRecords });
    }
    let frozen = perfmon_v2::GlobalStatus::new().with_lbrs_frozen(true).into_bits();
    let freeze = Freeze::Until(Msr::new(perfmon_v2::PERF_CNTR_GLOBAL_STATUS_CLR), frozen);
    let from = Msr::new(amd::LBR_STACK_FROM);
    Ok(Registers {
        select: Msr::new(amd::LBR_SELECT),
        from,
        to: from.at(1),
        info: from,
        layout: Layout::Amd,
        depth,
        freeze: if features.lbr_and_pmc_freeze() { freeze } else { Freeze::None },
        has_kinds: true,
    })
}

impl Registers {
    /// Returns whether the entries are a ring, whose newest MSR_LASTBRANCH_TOS names. Otherwise it is entry 0.
    pub const fn is_ring(self) -> bool {
        !matches!(self.layout, Layout::Architectural | Layout::Amd)
    }

    /// Returns whether IA32_DEBUGCTL can have a part in the recording. Of AMD, only processors that freeze are known to
    /// have its upper bits.
    pub const fn has_debug_control(self) -> bool {
        !matches!((self.layout, self.freeze), (Layout::Amd, Freeze::None))
    }

    /// Returns the value of the register that chooses the branches; of architectural records it also enables.
    pub const fn selected(self, filter: Filter) -> u64 {
        if matches!(self.layout, Layout::Architectural) { filter.control() } else { filter.select() }
    }

    /// Returns the bits that a recording sets in registers with other uses: those that enable it, and those that let
    /// interrupts freeze it, which branches of kernel mode need. Where no bit is set, the register is not accessed.
    pub const fn controls(self, filter: Filter) -> [(Msr, u64); 2] {
        let by_debug_control = DebugCtl::new().with_lbr(self.is_ring()).with_freeze_lbrs_on_pmi(filter.kernel());
        let enables = DebugExtnCtl::new().with_lbr_v2_en(matches!(self.layout, Layout::Amd));
        [(IA32_DEBUGCTL, by_debug_control.into_bits()), (DEBUG_EXTN_CTL, enables.into_bits())]
    }

    /// Returns the registers of an entry.
    pub fn entry(self, index: u8) -> impl Iterator<Item = Msr> {
        let [from, to, info] = [self.from, self.to, self.info].map(|first| self.of_entry(first, index));
        [from, to].into_iter().chain(self.layout.has_info().then_some(info))
    }

    /// Returns the register of an entry, of that of entry 0. Those of AMD alternate.
    pub const fn of_entry(self, first: Msr, index: u8) -> Msr {
        first.at(if matches!(self.layout, Layout::Amd) { 2 * index } else { index })
    }
}
