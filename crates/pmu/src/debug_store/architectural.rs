//! The registers of architectural PEBS (see [`x86_defs::intel::architectural_pebs`]). Nothing here needs a Debug Store.

use debug_store::pebs::Format;
use x86_defs::intel::architectural_pebs::{
    self as registers, CounterConfig, INDEX_UNIT, PAGE_SHIFT, PebsBase, PebsIndex,
};

use super::Numbering;
use crate::cpu::{Cpu, Msr};
use crate::first_access::{Faulted, FirstAccess, GuardedCpu};
use crate::interface::emon::{AccessCounters, PmuCapabilities, Recorders, config};
use crate::state::CounterSet;

const IA32_PEBS_BASE: Msr = Msr::new(registers::IA32_PEBS_BASE);
const IA32_PEBS_INDEX: Msr = Msr::new(registers::IA32_PEBS_INDEX);

/// Size of a page of a buffer in bytes.
pub const BUFFER_PAGE: u32 = 1 << PAGE_SHIFT;

/// Memory into which a processor writes records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordBuffer {
    /// Physical address, a multiple of [`BUFFER_PAGE`].
    pub address: u64,
    /// The buffer has 2 to this power pages, at most 15.
    pub pages_log2: u8,
    /// Bytes that are written before an interrupt, a multiple of 16.
    pub threshold: u32,
}

impl RecordBuffer {
    /// Returns the size in bytes.
    #[must_use]
    pub const fn bytes(self) -> u32 {
        BUFFER_PAGE << (self.pages_log2 & 0xF)
    }

    const fn base(self) -> u64 {
        PebsBase::new().with_page(self.address >> PAGE_SHIFT).with_size(self.pages_log2 & 0xF).into_bits()
    }

    /// Returns the index of an empty buffer.
    const fn empty(self) -> u64 {
        PebsIndex::new().with_en(true).with_thresh((self.threshold / INDEX_UNIT as u32) & 0x7F_FFFF).into_bits()
    }
}

/// The registers as they were found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct SavedBuffer {
    base: u64,
    index: u64,
}

/// How far a buffer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Bytes.
    pub bytes: u32,
    /// A record had no room.
    pub is_full: bool,
}

/// Returns IA32_PEBS_INDEX if records are written, which another program wants then; else 0.
pub(super) fn in_use(cpu: &impl Cpu) -> u64 {
    let index = PebsIndex::from_bits(cpu.rdmsr(IA32_PEBS_INDEX));
    if index.en() { index.into_bits() } else { 0 }
}

/// Returns whether the current processor has this buffer.
pub(super) fn has(cpu: &impl Cpu, address: u64) -> bool {
    PebsBase::from_bits(cpu.rdmsr(IA32_PEBS_BASE)).page() == address >> PAGE_SHIFT
}

/// Reads the registers.
pub(super) fn found(cpu: &impl Cpu) -> SavedBuffer {
    SavedBuffer { base: cpu.rdmsr(IA32_PEBS_BASE), index: cpu.rdmsr(IA32_PEBS_INDEX) }
}

/// Gives the current processor a buffer, which is empty.
pub(super) fn give(cpu: &impl Cpu, buffer: RecordBuffer) {
    cpu.wrmsr(IA32_PEBS_BASE, buffer.base());
    empty(cpu, buffer);
}

/// Takes the buffer from the current processor. No counter records any more.
pub(super) fn take_away(cpu: &impl Cpu, saved: SavedBuffer) {
    cpu.wrmsr(IA32_PEBS_INDEX, saved.index);
    cpu.wrmsr(IA32_PEBS_BASE, saved.base);
}

/// Returns how far the buffer of the current processor is written. One read.
///
/// # IRQL
/// PROFILE_LEVEL.
pub fn written(cpu: &impl Cpu) -> Written {
    let index = PebsIndex::from_bits(cpu.rdmsr(IA32_PEBS_INDEX));
    Written { bytes: index.wr() * u32::from(INDEX_UNIT), is_full: index.full() }
}

/// Empties the buffer of the current processor. One write.
///
/// # IRQL
/// PROFILE_LEVEL.
pub fn empty(cpu: &impl Cpu, buffer: RecordBuffer) {
    cpu.wrmsr(IA32_PEBS_INDEX, buffer.empty());
}

/// Records the overflows of a counter, which is loaded with the lower half of `reload` after each record, and with the
/// access of memory if it `has_access`; or records them no longer. The counters are frozen, or this one stands still.
/// One write.
///
/// # IRQL
/// PROFILE_LEVEL.
pub fn configure(cpu: &impl Cpu, numbering: Numbering, counter: u8, reload: Option<u64>, has_access: bool) {
    let value = reload.map_or(CounterConfig::new(), |reload| recording((reload & 0xFFFF_FFFF) as u32, has_access));
    cpu.wrmsr(config_of(numbering, counter), value.into_bits());
}

const fn recording(reload: u32, has_access: bool) -> CounterConfig {
    CounterConfig::new().with_reload(reload).with_aux(has_access).with_en(true)
}

const fn config_of(numbering: Numbering, counter: u8) -> Msr {
    config([registers::IA32_PMC_GP0_CFG_C, registers::IA32_PMC_FX0_CFG_C], counter, numbering.first_fixed)
}

/// Accesses the registers for the first time, those of the counters that record among them.
pub(super) fn access_first(first: &FirstAccess<'_, impl GuardedCpu>, recorders: Recorders) -> Result<(), Faulted> {
    first.read_write(IA32_PEBS_BASE)?;
    first.read_write(IA32_PEBS_INDEX)?;
    let capabilities = PmuCapabilities::of(first.cpuid());
    let numbering = Numbering { format: Format::Architectural, first_fixed: capabilities.count(), accesses: None };
    let general = CounterSet::first(recorders.general).and(CounterSet::from_bits(capabilities.general().into()));
    let fixed = recorders.fixed && capabilities.fixed() & 1 == 1;
    let all = if fixed { general.with(numbering.first_fixed) } else { general };
    all.iter().try_for_each(|counter| first.read_write(config_of(numbering, counter)).map(|_| ()))
}

/// Tries what [`give`] and [`empty`] write. No counter records meanwhile.
pub(super) fn try_buffer(first: &FirstAccess<'_, impl GuardedCpu>, buffer: RecordBuffer) -> Result<(), Faulted> {
    first.try_value(IA32_PEBS_BASE, buffer.base())?;
    first.try_value(IA32_PEBS_INDEX, buffer.empty())
}

/// Tries what [`configure`] writes for any reload value. None of these counters counts.
pub(super) fn try_counters(
    first: &FirstAccess<'_, impl GuardedCpu>,
    numbering: Numbering,
    counters: CounterSet,
    accesses: AccessCounters,
) -> Result<(), Faulted> {
    counters.iter().try_for_each(|counter| {
        let (msr, has_access) = (config_of(numbering, counter), accesses.operation(counter).is_some());
        first.trying(msr, |_| {
            [recording(u32::MAX, has_access), recording(0, has_access), CounterConfig::new()]
                .into_iter()
                .try_for_each(|config| first.demand(msr, config.into_bits()))
        })
    })
}
