//! Intel's Debug Store: its features on a processor, and the registers that control it (SDM Vol. 3B, "Debug Store (DS)
//! Mechanism"; HAL control area). [`debug_store`] decodes its records. Precise records of
//! [architectural PEBS](architectural) do without it.
//!
//! These functions are called only for sessions that request branches or precise samples.

pub mod architectural;
mod errata;

use core::convert::Infallible;

use debug_store::pebs::Format;
use x86_defs::cpuid::{IntelProcessor, Leaf1Ecx, Leaf1Edx, LeafAEax, Signature, VENDOR_INTEL, leaf};
use x86_defs::intel::debug_control::{self, DebugCtl};
use x86_defs::intel::debug_store::area::GENERAL_RESETS_V62;
use x86_defs::intel::debug_store::area::word::{PEBS_COUNTER_RESET, PEBS_FIXED_RESET_4, PEBS_FIXED_RESET_5};
use x86_defs::intel::debug_store::pebs::RecordFormat;
use x86_defs::intel::debug_store::{self as registers, PebsEnable};
use x86_defs::intel::misc_enable::MiscEnable;
use x86_defs::intel::perfmon::{GLOBAL_FIXED_SHIFT, PerfCapabilities};

use crate::cpu::{Cpu, Cpuid, IA32_MISC_ENABLE, Msr};
use crate::first_access::{Faulted, FirstAccess, GuardedCpu};
use crate::interface::emon::{self, AccessCounters, IA32_PERF_CAPABILITIES, MAX_GENERAL, Microarchitecture, Recorders};
use crate::state::CounterSet;

use architectural::{RecordBuffer, SavedBuffer};

const IA32_DEBUGCTL: Msr = Msr::new(debug_control::IA32_DEBUGCTL);
const IA32_PEBS_ENABLE: Msr = Msr::new(registers::IA32_PEBS_ENABLE);
const IA32_DS_AREA: Msr = Msr::new(registers::IA32_DS_AREA);
const MSR_PEBS_DATA_CFG: Msr = Msr::new(registers::MSR_PEBS_DATA_CFG);

/// Value of MSR_PEBS_DATA_CFG that asks for the memory access group alone.
const MEMORY_GROUP: u64 = RecordFormat::new().with_memory(true).into_bits();

/// A missing feature. Replies have its [numbers](Self::numbers).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingFeature {
    /// The vendor is not Intel.
    NotIntel,
    /// CPUID.1:EDX\[21\] is clear.
    NoDebugStore,
    /// CPUID.1:ECX\[2\] is clear: the save area does not have its 64-bit layout.
    NotWide,
    /// IA32_MISC_ENABLE\[7\] is clear.
    NoMonitoring,
    /// IA32_MISC_ENABLE\[11\] is set.
    BranchesUnavailable,
    /// IA32_MISC_ENABLE\[12\] is set.
    PebsUnavailable,
    /// CPUID.1:ECX\[4\] is clear: BTS cannot be restricted to one mode.
    NoModes,
    /// PEBS_FMT of IA32_PERF_CAPABILITIES is unknown.
    UnknownFormat(u8),
    /// The event has no precise form.
    NotPrecise,
    /// The profile interface is not Emon of version 2 or later.
    NotInInterface,
    /// Errata of the processor make precise records unusable.
    Errata,
    /// Precise records need a newer revision of the microcode.
    OldMicrocode,
}

impl MissingFeature {
    /// All values, in the order of their numbers; the unknown format is 0.
    pub const ALL: [Self; 12] = [
        Self::NotIntel,
        Self::NoDebugStore,
        Self::NotWide,
        Self::NoMonitoring,
        Self::BranchesUnavailable,
        Self::PebsUnavailable,
        Self::NoModes,
        Self::UnknownFormat(0),
        Self::NotPrecise,
        Self::NotInInterface,
        Self::Errata,
        Self::OldMicrocode,
    ];

    /// Returns the value with these numbers. The second is ignored if the first has none.
    #[must_use]
    pub fn from_numbers(number: u32, detail: u8) -> Option<Self> {
        let found = Self::ALL.into_iter().find(|missing_feature| missing_feature.numbers().0 == number)?;
        Some(if matches!(found, Self::UnknownFormat(_)) { Self::UnknownFormat(detail) } else { found })
    }

    /// Returns the number of the value, and the number that belongs to it.
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
            Self::Errata => (10, 0),
            Self::OldMicrocode => (11, 0),
        }
    }
}

/// Debug Store features of a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facilities {
    /// Branch Trace Store.
    pub branches: Result<(), MissingFeature>,
    /// PEBS, with the format of its records.
    pub precise: Result<Format, MissingFeature>,
    /// The counters that record.
    pub recorders: Recorders,
    /// The microarchitecture, which determines the events that they record.
    pub microarchitecture: Microarchitecture,
    /// Whether BTS can be restricted to one mode.
    pub modes: bool,
}

/// Modes in which branches are recorded; with neither, none are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Modes {
    /// User mode.
    pub user: bool,
    /// Kernel mode.
    pub kernel: bool,
}

/// Registers of another program that uses the Debug Store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForeignUse {
    /// IA32_DEBUGCTL, without FREEZE_WHILE_SMM.
    pub control: u64,
    /// IA32_PEBS_ENABLE; with architectural PEBS, IA32_PEBS_INDEX if it is enabled. 0 if no records are written.
    pub records: u64,
}

/// Examines the current processor. It reads only registers that CPUID enumerates, at most three.
///
/// # Errors
/// The missing feature, if it makes the whole Debug Store unusable.
///
/// # IRQL
/// Any at which the thread stays on its processor.
pub fn examine(cpu: &impl Cpu) -> Result<Facilities, MissingFeature> {
    match examine_by(cpu, |msr| Ok::<u64, Infallible>(cpu.rdmsr(msr))) {
        Ok(examined) => examined,
    }
}

/// Accesses for the first time the registers that [`examine`] reads, and returns what it does.
pub(crate) fn examine_first(
    first: &FirstAccess<'_, impl GuardedCpu>,
) -> Result<Result<Facilities, MissingFeature>, Faulted> {
    examine_by(first.cpuid(), |msr| first.read(msr))
}

/// Accesses for the first time the register of the save area. The caller knows that the processor has a Debug Store.
pub(crate) fn access_save_area(first: &FirstAccess<'_, impl GuardedCpu>) -> Result<(), Faulted> {
    first.read_write(IA32_DS_AREA).map(|_| ())
}

/// Accesses for the first time the registers that control what the processor records by itself.
pub(crate) fn access_first(first: &FirstAccess<'_, impl GuardedCpu>) -> Result<(), Faulted> {
    let Ok(facilities) = examine_first(first)? else { return Ok(()) };
    let has_store = has_store(first.cpuid());
    if has_store {
        first.read_write(IA32_DEBUGCTL)?;
    }
    if let Ok(format) = facilities.precise {
        if format.is_architectural() {
            architectural::access_first(first, facilities.recorders)?;
        } else {
            first.read_write(IA32_PEBS_ENABLE)?;
        }
        emon::access_records(first, format)?;
    }
    if has_store { access_save_area(first) } else { Ok(()) }
}

/// Tries what [`take`] writes.
pub(crate) fn try_place(first: &FirstAccess<'_, impl GuardedCpu>, place: Place) -> Result<(), Faulted> {
    if let Some(address) = place.area {
        first.try_value(IA32_DS_AREA, address)?;
    }
    if place.has_accesses {
        first.trying(MSR_PEBS_DATA_CFG, |_| first.demand(MSR_PEBS_DATA_CFG, MEMORY_GROUP))?;
    }
    place.buffer.map_or(Ok(()), |buffer| architectural::try_buffer(first, buffer))
}

/// Tries what [`trace`] writes for these modes. TR is written alone, so that no branch is recorded.
pub(crate) fn try_trace(first: &FirstAccess<'_, impl GuardedCpu>, modes: Modes) -> Result<(), Faulted> {
    let found = DebugCtl::from_bits(first.read(IA32_DEBUGCTL)?);
    let traced = traced(found, modes, modes.user || modes.kernel, DebugCtl::new());
    first.try_value(IA32_DEBUGCTL, traced.with_tr(false).into_bits())?;
    first.try_value(IA32_DEBUGCTL, found.with_tr(true).into_bits())?;
    first.try_value(IA32_DEBUGCTL, without_freezes(found).into_bits())
}

/// Returns the register as it is while no counter of the driver counts.
const fn without_freezes(control: DebugCtl) -> DebugCtl {
    control.with_freeze_perfmon_on_pmi(false).with_freeze_while_smm(false)
}

/// Tries what [`enable_pebs`] writes. None of these counters counts.
pub(crate) fn try_pebs(
    first: &FirstAccess<'_, impl GuardedCpu>,
    numbering: Numbering,
    counters: CounterSet,
    accesses: AccessCounters,
) -> Result<(), Faulted> {
    if numbering.format.is_architectural() {
        return architectural::try_counters(first, numbering, counters, accesses);
    }
    first.try_value(IA32_PEBS_ENABLE, numbering.enabled(counters, accesses).into_bits())
}

/// Examines the current processor with this function that reads its registers.
fn examine_by<E>(
    cpu: &impl Cpuid,
    read: impl Fn(Msr) -> Result<u64, E>,
) -> Result<Result<Facilities, MissingFeature>, E> {
    let store = enumerated(cpu);
    let architectural = emon::architectural_recorders(cpu).filter(|_| store != Err(MissingFeature::NotIntel));
    if let (Err(missing_feature), None) = (store, architectural) {
        return Ok(Err(missing_feature));
    }
    let enabled = MiscEnable::from_bits(read(IA32_MISC_ENABLE)?);
    if !enabled.perfmon_available() {
        return Ok(Err(MissingFeature::NoMonitoring));
    }
    let wide = Leaf1Ecx::from_bits(cpu.cpuid(leaf::FEATURES, 0).ecx);
    let capabilities = PerfCapabilities::from_bits(if wide.pdcm() { read(IA32_PERF_CAPABILITIES)? } else { 0 });
    let precise = match Format::from_number(capabilities.pebs_format()) {
        // IA32_MISC_ENABLE[12] is about IA32_PEBS_ENABLE (Linux does not look at it here, intel_pmu_init).
        _ if architectural.is_some() => Ok(Format::Architectural),
        _ if enabled.pebs_unavailable() => Err(MissingFeature::PebsUnavailable),
        Some(format) if !format.is_architectural() => errata::check(cpu, &read)?.map(|()| format),
        _ => Err(MissingFeature::UnknownFormat(capabilities.pebs_format())),
    };
    let alone = is_alone(cpu).then_some(Recorders { general: 1, fixed: false });
    Ok(Ok(Facilities {
        branches: store.and(if enabled.bts_unavailable() { Err(MissingFeature::BranchesUnavailable) } else { Ok(()) }),
        precise,
        recorders: architectural.or(alone).unwrap_or_else(|| recorders(capabilities)),
        microarchitecture: Microarchitecture::of(cpu),
        modes: wide.ds_cpl(),
    }))
}

/// Returns whether the current processor has a Debug Store that the driver can use, by CPUID.
fn has_store(cpu: &impl Cpuid) -> bool {
    enumerated(cpu).is_ok()
}

/// Checks whether CPUID enumerates a Debug Store that the driver can use.
fn enumerated(cpu: &impl Cpuid) -> Result<(), MissingFeature> {
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
    Ok(())
}

/// Returns the version of architectural performance monitoring of the current processor, which has to have that leaf.
fn version(cpu: &impl Cpuid) -> u8 {
    LeafAEax::from_bits(cpu.cpuid(leaf::ARCHITECTURAL_PERFMON, 0).eax).version()
}

/// Memory that a processor writes by itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Place {
    /// Linear address of the save area, if the processor writes branches, or precise records through the Debug Store.
    pub area: Option<u64>,
    /// Buffer of architectural PEBS, if the processor writes to one.
    pub buffer: Option<RecordBuffer>,
    /// Whether MSR_PEBS_DATA_CFG asks for the accesses of memory.
    pub has_accesses: bool,
}

/// Register values to restore when the Debug Store is released.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SavedDebugStore {
    area: u64,
    /// MSR_PEBS_DATA_CFG, if the driver writes it.
    groups: u64,
    buffer: SavedBuffer,
    /// Modes that were off although branches were not traced.
    control: DebugCtl,
}

/// Returns the registers of another program that uses the Debug Store of the current processor, which has these
/// `facilities`: it traces branches or records events. At most two reads.
///
/// An address in IA32_DS_AREA alone is no sign of use: Windows writes one at boot, and leaves it there while nothing is
/// recorded.
///
/// # IRQL
/// PROFILE_LEVEL.
pub fn in_use_elsewhere(cpu: &impl Cpu, facilities: &Facilities) -> Option<ForeignUse> {
    // The driver itself may have set FREEZE_WHILE_SMM.
    let control = if has_store(cpu) { cpu.rdmsr(IA32_DEBUGCTL) } else { 0 };
    let traced = DebugCtl::from_bits(control).with_freeze_while_smm(false);
    let records = match facilities.precise {
        Ok(Format::Architectural) => architectural::in_use(cpu),
        Ok(_) => cpu.rdmsr(IA32_PEBS_ENABLE),
        Err(_) => 0,
    };
    let is_used = traced.tr() || traced.bts() || traced.btint() || records != 0;
    is_used.then_some(ForeignUse { control: traced.into_bits(), records })
}

/// Lets the current processor write to this place; returns the previous registers.
///
/// # IRQL
/// PROFILE_LEVEL.
pub fn take(cpu: &impl Cpu, place: Place) -> SavedDebugStore {
    let mut saved = SavedDebugStore::default();
    if let Some(address) = place.area {
        saved.area = cpu.rdmsr(IA32_DS_AREA);
        saved.control = DebugCtl::from_bits(cpu.rdmsr(IA32_DEBUGCTL));
        cpu.wrmsr(IA32_DS_AREA, address);
    }
    if place.has_accesses {
        saved.groups = cpu.rdmsr(MSR_PEBS_DATA_CFG);
        cpu.wrmsr(MSR_PEBS_DATA_CFG, MEMORY_GROUP);
    }
    if let Some(buffer) = place.buffer {
        saved.buffer = architectural::found(cpu);
        architectural::give(cpu, buffer);
    }
    saved
}

/// Lets the processor write to this place again after a wake. If branches are to be [traced](trace), IA32_DEBUGCTL
/// contains afterwards what [`take`] found, except the bits that stop counters: the trial of its start has written
/// beside that, not beside what the wake has left.
///
/// # IRQL
/// PROFILE_LEVEL.
pub fn take_again(cpu: &impl Cpu, place: Place, saved: SavedDebugStore, traces: bool) {
    if traces {
        cpu.wrmsr(IA32_DEBUGCTL, without_freezes(saved.control).into_bits());
    }
    if let Some(address) = place.area {
        cpu.wrmsr(IA32_DS_AREA, address);
    }
    if place.has_accesses {
        cpu.wrmsr(MSR_PEBS_DATA_CFG, MEMORY_GROUP);
    }
    if let Some(buffer) = place.buffer {
        architectural::give(cpu, buffer);
    }
}

/// Returns whether the current processor may write to memory at one of these addresses: the linear one of a save area,
/// the physical one of a buffer of architectural PEBS. The registers that can hold them exist.
///
/// # IRQL
/// PROFILE_LEVEL.
pub fn is_at(cpu: &impl Cpu, area: u64, buffer: Option<u64>) -> bool {
    has_store(cpu) && cpu.rdmsr(IA32_DS_AREA) == area || buffer.is_some_and(|address| architectural::has(cpu, address))
}

/// Returns whether the precise records of the current processor still go to this place: no other program has replaced
/// it.
///
/// # IRQL
/// PROFILE_LEVEL.
pub fn records_to(cpu: &impl Cpu, place: Place) -> bool {
    match place.buffer {
        Some(buffer) => architectural::has(cpu, buffer.address),
        None => place.area.is_some_and(|address| cpu.rdmsr(IA32_DS_AREA) == address),
    }
}

/// Stops recording if `records` is set, and restores the registers. Those that another program has changed since belong
/// to that program and stay unchanged. Branch tracing must have been stopped, and no counter may record by
/// architectural PEBS.
///
/// # IRQL
/// PROFILE_LEVEL.
pub fn release(cpu: &impl Cpu, place: Place, saved: SavedDebugStore, records: bool) {
    if let Some(address) = place.area
        && cpu.rdmsr(IA32_DS_AREA) == address
    {
        if records && place.buffer.is_none() {
            cpu.wrmsr(IA32_PEBS_ENABLE, PebsEnable::new().into_bits());
        }
        cpu.wrmsr(IA32_DS_AREA, saved.area);
    }
    if place.has_accesses && cpu.rdmsr(MSR_PEBS_DATA_CFG) == MEMORY_GROUP {
        cpu.wrmsr(MSR_PEBS_DATA_CFG, saved.groups);
    }
    if let Some(buffer) = place.buffer
        && architectural::has(cpu, buffer.address)
    {
        architectural::take_away(cpu, saved.buffer);
    }
}

/// Starts to trace branches in these modes into the buffer of the save area, with an interrupt at its threshold. With
/// neither mode it stops tracing and restores the mode bits from `saved`. Other bits of the register are unchanged.
///
/// # IRQL
/// PROFILE_LEVEL.
pub fn trace(cpu: &impl Cpu, modes: Modes, saved: SavedDebugStore) {
    let on = modes.user || modes.kernel;
    let control = traced(DebugCtl::from_bits(cpu.rdmsr(IA32_DEBUGCTL)), modes, on, saved.control);
    cpu.wrmsr(IA32_DEBUGCTL, control.into_bits());
}

/// Returns the register with the recording on in these modes, or off, with the mode bits of `saved`.
const fn traced(found: DebugCtl, modes: Modes, on: bool, saved: DebugCtl) -> DebugCtl {
    let (off_os, off_usr) = if on { (!modes.kernel, !modes.user) } else { (saved.bts_off_os(), saved.bts_off_usr()) };
    found.with_tr(on).with_bts(on).with_btint(on).with_bts_off_os(off_os).with_bts_off_usr(off_usr)
}

/// Records the overflows of exactly these counters, of those in `accesses` with their access of memory.
///
/// # IRQL
/// PROFILE_LEVEL.
pub fn enable_pebs(cpu: &impl Cpu, numbering: Numbering, counters: CounterSet, accesses: AccessCounters) {
    cpu.wrmsr(IA32_PEBS_ENABLE, numbering.enabled(counters, accesses).into_bits());
}

/// Clears the PEBS status after the records have been fetched.
///
/// # IRQL
/// PROFILE_LEVEL.
pub fn acknowledge(cpu: &impl Cpu, format: Format) {
    emon::acknowledge_records(cpu, format);
}

/// Returns the counters that record on most processors with this record format. From format 4 on all do where
/// PEBS_BASELINE is set, and fixed counter 0, which the event files name (SDM Vol. 3B, "Extended PEBS").
const fn recorders(capabilities: PerfCapabilities) -> Recorders {
    let general = match capabilities.pebs_format() {
        0 => 1,
        1..4 => 4,
        4.. => MAX_GENERAL,
    };
    Recorders { general, fixed: capabilities.pebs_format() >= 4 && capabilities.pebs_baseline() }
}

/// Words of the save area that a processor with this record format may read, with the reset values of its counters;
/// those of architectural PEBS are copies for the driver.
#[must_use]
pub const fn save_area_words(format: Format) -> u16 {
    match format {
        Format::Core2 | Format::Nehalem | Format::Haswell | Format::Skylake => PEBS_COUNTER_RESET + GENERAL_RESETS_V62,
        Format::Adaptive => PEBS_FIXED_RESET_4 + 1,
        Format::Adaptive5 | Format::Adaptive6 | Format::Architectural => MOST_SAVE_AREA_WORDS,
    }
}

/// The most of [`save_area_words`].
pub const MOST_SAVE_AREA_WORDS: u16 = PEBS_FIXED_RESET_5 + 1;

/// How records, IA32_PEBS_ENABLE and the save area number the counters of a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbering {
    /// Format of the records.
    pub format: Format,
    /// Index of the first fixed counter in the profile interface.
    pub first_fixed: u8,
    /// The microarchitecture, which determines how accesses of memory are encoded, if records can have some.
    pub accesses: Option<Microarchitecture>,
}

impl Numbering {
    /// Returns the word of the save area from which the processor loads a counter after a record.
    // Never inlined: it would cost the deepest path of the handler more stack.
    #[inline(never)]
    #[must_use]
    pub const fn reset_word(self, counter: u8) -> u16 {
        match counter.checked_sub(self.first_fixed) {
            None => PEBS_COUNTER_RESET.wrapping_add(counter as u16),
            Some(number) if (self.format as u8) < Format::Adaptive5 as u8 => {
                PEBS_FIXED_RESET_4.wrapping_add(number as u16)
            }
            Some(number) => PEBS_FIXED_RESET_5.wrapping_add(number as u16),
        }
    }

    /// Returns the counters of a record.
    #[must_use]
    pub const fn counters(self, bits: u64) -> CounterSet {
        let general = bits & 0xFFFF_FFFF & !(u64::MAX << self.first_fixed);
        CounterSet::from_bits(general | bits >> GLOBAL_FIXED_SHIFT << self.first_fixed)
    }

    /// Returns the size in bytes of the largest record.
    #[must_use]
    pub const fn largest_record(self) -> u16 {
        if self.accesses.is_some() { self.format.size_with_access() } else { self.format.least_size() }
    }

    /// Returns IA32_PEBS_ENABLE with these counters, of which those in `accesses` record accesses of memory.
    fn enabled(self, counters: CounterSet, accesses: AccessCounters) -> PebsEnable {
        let all = u64::from(counters.bits());
        let general = all & !(u64::MAX << self.first_fixed);
        let fixed = all >> self.first_fixed;
        let (has_latency_bits, has_store_bit) = self.accesses.map_or((false, false), |microarchitecture| {
            (microarchitecture.has_latency_bits(), microarchitecture.has_store_bit())
        });
        let latency = if has_latency_bits { u64::from(counters.and(accesses.loads).bits()) } else { 0 };
        let has_stores = has_store_bit && !counters.and(accesses.stores).is_empty();
        PebsEnable::from_bits(general | (fixed | latency) << GLOBAL_FIXED_SHIFT).with_precise_store(has_stores)
    }
}

/// Returns whether only general counter 0 records, whatever the format: on Silvermont, Airmont, Knights Landing,
/// Knights Mill and Goldmont (SDM Vol. 3B, "Performance Monitoring for Silvermont", "for Goldmont Processors", Table
/// 21-18).
fn is_alone(cpu: &impl Cpuid) -> bool {
    use IntelProcessor::{Goldmont, KnightsLanding, Silvermont};
    let signature = Signature::from_bits(cpu.cpuid(leaf::FEATURES, 0).eax);
    matches!(IntelProcessor::of(signature), Some(Silvermont | KnightsLanding | Goldmont))
}
