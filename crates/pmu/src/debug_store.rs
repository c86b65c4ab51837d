//! Intel's Debug Store: what a processor has of it, and the registers that make it write (SDM Vol. 3B, "Debug Store (DS)
//! Mechanism"; seed 004). What it writes is read by [`debug_store`].
//!
//! Nothing here is called unless somebody asked for branches or for precise samples.

use debug_store::Layout;
use debug_store::pebs::Format;
use x86_defs::cpuid::{Leaf1Ecx, Leaf1Edx, LeafAEax, Signature, VENDOR_INTEL, leaf};
use x86_defs::intel::debug_control::{self, DebugCtl};
use x86_defs::intel::debug_store::{self as registers, PebsEnable};

use crate::cpu::{self, Cpu, Cpuid, Msr};
use crate::interface::emon::{self, PreciseEvents};
use crate::state::CounterSet;

const IA32_DEBUGCTL: Msr = Msr::new(debug_control::IA32_DEBUGCTL);
const IA32_PEBS_ENABLE: Msr = Msr::new(registers::IA32_PEBS_ENABLE);
const IA32_DS_AREA: Msr = Msr::new(registers::IA32_DS_AREA);

/// What is missing. The numbers travel to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingFeature {
    /// Another vendor's processor.
    NotIntel,
    /// CPUID.1:EDX\[21\] is clear.
    NoDebugStore,
    /// CPUID.1:ECX\[2\] is clear: the save area has not its 64-bit form.
    NotWide,
    /// IA32_MISC_ENABLE\[7\] is clear.
    NoMonitoring,
    /// IA32_MISC_ENABLE\[11\] is set.
    BranchesUnavailable,
    /// IA32_MISC_ENABLE\[12\] is set.
    PebsUnavailable,
    /// CPUID.1:ECX\[4\] is clear: branches of one mode alone can not be had.
    NoModes,
    /// PEBS_FMT of IA32_PERF_CAPABILITIES is none that is known.
    UnknownFormat(u8),
    /// Of an event: it has no precise form.
    NotPrecise,
    /// The profile interface is not Emon of version 2 or later.
    NotInInterface,
}

impl MissingFeature {
    /// Its number for the client, and one that goes with it.
    #[must_use]
    pub const fn numbers(self) -> (u32, u8) {
        match self {
            Self::NotIntel => (0, 0),
            Self::NoDebugStore => (1, 0),
            Self::NotWide => (2, 0),
            Self::NoMonitoring => (3, 0),
            Self::BranchesUnavailable => (4, 0),
            Self::PebsUnavailable => (5, 0),
            Self::NoModes => (6, 0),
            Self::UnknownFormat(format) => (7, format),
            Self::NotPrecise => (8, 0),
            Self::NotInInterface => (9, 0),
        }
    }
}

/// What a processor has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facilities {
    /// Branch Trace Store.
    pub branches: Result<(), MissingFeature>,
    /// PEBS, with the format of its records.
    pub precise: Result<Format, MissingFeature>,
    /// General counters that record, from the first.
    pub counters: u8,
    /// Which events they record.
    pub events: PreciseEvents,
    /// Branches of one mode alone can be had.
    pub modes: bool,
}

/// In which modes branches are recorded; neither: they are not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Modes {
    /// User mode.
    pub user: bool,
    /// Kernel mode.
    pub kernel: bool,
}

/// What another program has in the registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForeignUse {
    /// IA32_DEBUGCTL.
    pub control: u64,
    /// IA32_PEBS_ENABLE, or 0 where there is none.
    pub records: u64,
}

/// Looks at the current processor: at registers only where CPUID promises them, at most two reads. Any IRQL at which the
/// processor stays the same.
///
/// # Errors
/// What is missing for everything.
pub fn examine(cpu: &impl Cpu) -> Result<Facilities, MissingFeature> {
    let vendor = cpu.cpuid(leaf::VENDOR, 0);
    let features = cpu.cpuid(leaf::FEATURES, 0);
    let (wide, misc) = (Leaf1Ecx::from_bits(features.ecx), Leaf1Edx::from_bits(features.edx));
    if [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes).as_flattened() != VENDOR_INTEL {
        return Err(MissingFeature::NotIntel);
    }
    if !misc.ds() || !misc.msr() {
        return Err(MissingFeature::NoDebugStore);
    }
    if !wide.dtes64() {
        return Err(MissingFeature::NotWide);
    }
    if vendor.eax < leaf::ARCHITECTURAL_PERFMON || version(cpu) < 2 {
        return Err(MissingFeature::NotInInterface);
    }
    let enabled = cpu::misc_enable(cpu);
    if !enabled.perfmon_available() {
        return Err(MissingFeature::NoMonitoring);
    }
    let format = if wide.pdcm() { emon::pebs_format(cpu) } else { 0 };
    Ok(Facilities {
        branches: if enabled.bts_unavailable() { Err(MissingFeature::BranchesUnavailable) } else { Ok(()) },
        precise: match Format::from_number(format) {
            _ if enabled.pebs_unavailable() => Err(MissingFeature::PebsUnavailable),
            Some(format) => Ok(format),
            None => Err(MissingFeature::UnknownFormat(format)),
        },
        counters: if is_alone(cpu) { 1 } else { counters(format) },
        events: PreciseEvents::of(cpu),
        modes: wide.ds_cpl(),
    })
}

/// Returns the version of architectural performance monitoring of the current processor, which has to have that leaf.
fn version(cpu: &impl Cpuid) -> u8 {
    LeafAEax::from_bits(cpu.cpuid(leaf::ARCHITECTURAL_PERFMON, 0).eax).version()
}

/// What is put back when the Debug Store is given back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SavedDebugStore {
    area: u64,
    /// The modes that were off, though nothing was traced.
    control: DebugCtl,
}

/// Returns what another program does with the Debug Store of the current processor, which has these `facilities`: branches
/// are traced, or events are recorded. At most two reads. PROFILE_LEVEL.
///
/// An address in IA32_DS_AREA alone says nothing: Windows writes one at boot, and leaves it there while nothing is recorded.
pub fn in_use_elsewhere(cpu: &impl Cpu, facilities: &Facilities) -> Option<ForeignUse> {
    let control = cpu.rdmsr(IA32_DEBUGCTL);
    let records = if facilities.precise.is_ok() { cpu.rdmsr(IA32_PEBS_ENABLE) } else { 0 };
    let traced = DebugCtl::from_bits(control);
    let is_used = traced.tr() || traced.bts() || traced.btint() || records != 0;
    is_used.then_some(ForeignUse { control, records })
}

/// The save area of the current processor is at this address from now on; answers what was there before. PROFILE_LEVEL.
pub fn take(cpu: &impl Cpu, address: u64) -> SavedDebugStore {
    let saved =
        SavedDebugStore { area: cpu.rdmsr(IA32_DS_AREA), control: DebugCtl::from_bits(cpu.rdmsr(IA32_DEBUGCTL)) };
    cpu.wrmsr(IA32_DS_AREA, address);
    saved
}

/// Returns whether the save area of the current processor, which has a Debug Store, is at this address. PROFILE_LEVEL.
pub fn is_at(cpu: &impl Cpu, address: u64) -> bool {
    cpu.rdmsr(IA32_DS_AREA) == address
}

/// The registers of the current processor are as they were found, unless somebody else has put a save area of his own in the
/// place of that at `address`: then they are his. Branches are not traced any more. PROFILE_LEVEL.
pub fn release(cpu: &impl Cpu, address: u64, saved: SavedDebugStore, records: bool) {
    if is_at(cpu, address) {
        if records {
            record(cpu, CounterSet::NONE);
        }
        cpu.wrmsr(IA32_DS_AREA, saved.area);
    }
}

/// Branches of these modes are written to the buffer of the save area from now on, with an interrupt at its threshold; of
/// neither mode: none, and the modes are off that were `saved` so. What else the register controls stays. PROFILE_LEVEL.
pub fn trace(cpu: &impl Cpu, modes: Modes, saved: SavedDebugStore) {
    let on = modes.user || modes.kernel;
    let (off_os, off_usr) =
        if on { (!modes.kernel, !modes.user) } else { (saved.control.bts_off_os(), saved.control.bts_off_usr()) };
    let control = DebugCtl::from_bits(cpu.rdmsr(IA32_DEBUGCTL))
        .with_tr(on)
        .with_bts(on)
        .with_btint(on)
        .with_bts_off_os(off_os)
        .with_bts_off_usr(off_usr);
    cpu.wrmsr(IA32_DEBUGCTL, control.into_bits());
}

/// Overflows of these counters are recorded from now on, and of no others. PROFILE_LEVEL.
pub fn record(cpu: &impl Cpu, counters: CounterSet) {
    cpu.wrmsr(IA32_PEBS_ENABLE, PebsEnable::new().with_general(counters.bits()).into_bits());
}

/// The records have been fetched: the status that tells of them is cleared. PROFILE_LEVEL.
pub fn acknowledge(cpu: &impl Cpu) {
    emon::acknowledge_records(cpu);
}

/// General counters that record on most processors with the format of this number.
const fn counters(format: u8) -> u8 {
    if format == 0 { 1 } else { MAX_COUNTERS }
}

/// The most that are used: newer ones have more.
const MAX_COUNTERS: u8 = 4;

// Each has a place in the area that it is loaded from again.
const _: () = assert!(MAX_COUNTERS <= Layout::V62.general_resets());

/// Whether only general counter 0 records, whatever the format: on Silvermont, Airmont, Knights Landing, Knights Mill and
/// Goldmont (SDM Vol. 3B, "Performance Monitoring for Silvermont", "for Goldmont Processors", Table 21-18), told by family 6
/// and their models (SDM Vol. 4, "CPUID Signature Values of DisplayFamily_DisplayModel").
fn is_alone(cpu: &impl Cpuid) -> bool {
    let signature = Signature::from_bits(cpu.cpuid(leaf::FEATURES, 0).eax);
    signature.family() == 6
        && matches!(signature.model(), 0x37 | 0x4A | 0x4D | 0x5A | 0x5D | 0x4C | 0x57 | 0x85 | 0x5C | 0x5F)
}
