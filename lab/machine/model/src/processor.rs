//! One logical processor: its PMU, its local APIC, and the interrupts between them.

mod branches;
mod execution;
mod interrupts;
mod ops;

use crate::{
    CpuidFunction,
    apic::Apic,
    architectural,
    countable::Countable,
    counter::CounterId,
    debug_store::{DebugStore, Fragments, Memory, RecordedAccess, Stored},
    extra::ExtraRegisters,
    fault::{FaultingAccess, GeneralProtection, Quirk},
    ibs::Ibs,
    identity,
    interrupt_mode::InterruptMode,
    last_branches::LastBranches,
    ledger::Ledger,
    movement::{Movement, Movements},
    pmu::{Pmu, Running, hides_counters},
    reload::Reloads,
    select::Selected,
};
use std::collections::BTreeSet;

/// `IA32_PERF_GLOBAL_CTRL`.
const GLOBAL_CTRL: u32 = 0x38F;

/// Numbers of executed instructions, also of those that faulted, without memory writes by [`Processor::set_lvt`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Accesses {
    /// RDMSR.
    pub rdmsr: u64,
    /// WRMSR.
    pub wrmsr: u64,
    /// RDPMC.
    pub rdpmc: u64,
    /// Number of these instructions that faulted.
    pub faulted: u64,
}

/// A counter that interrupts, either on overflow or when its PEBS records reach the threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interrupting {
    /// The selected event.
    pub selected: Selected,
    /// Whether the counter counts in user mode.
    pub user: bool,
    /// Whether the counter counts in kernel mode.
    pub kernel: bool,
    /// Events until the interrupt: until the counter overflows or, for a counter that writes PEBS records, until a
    /// record reaches the threshold. A lower bound if several counters write to the PEBS buffer.
    pub events: u64,
}

/// The performance monitoring part of one logical processor.
///
/// All MSRs except those of performance monitoring and of its APIC entry are absent, even if real hardware has them:
/// the code under test must not access them.
pub struct Processor {
    cpuid: CpuidFunction,
    perf_capabilities: u64,
    countable: Countable,
    pmu: Box<dyn Pmu>,
    debug_store: DebugStore,
    last_branches: LastBranches,
    ibs: Ibs,
    extra: ExtraRegisters,
    reloads: Reloads,
    apic: Apic,
    /// At most one interrupt is pending: the APIC has one entry for all counters.
    pending: bool,
    interrupt_mode: InterruptMode,
    masks_on_delivery: bool,
    ignores_absent_msrs: bool,
    /// What firmware writes at each resume.
    firmware: Vec<(u32, u64)>,
    faulting: BTreeSet<FaultingAccess>,
    quirks: Vec<Quirk>,
    movements: Movements,
    ledger: Ledger,
    accesses: Accesses,
}

impl Processor {
    /// Creates the processor that CPUID describes, after reset. The APIC is in xAPIC mode, as the Windows HAL
    /// initializes it.
    #[must_use]
    pub fn new(cpuid: CpuidFunction) -> Self {
        let pmu = identity::pmu(&cpuid, 0);
        Self {
            debug_store: DebugStore::new(&cpuid, 0, pmu.is_there()),
            last_branches: LastBranches::new(&cpuid, 0),
            ibs: Ibs::new(&cpuid),
            extra: ExtraRegisters::new(&cpuid, pmu.is_there()),
            reloads: Reloads::new(&cpuid),
            pmu,
            apic: Apic::new(&cpuid),
            countable: Countable::read(&cpuid),
            cpuid,
            perf_capabilities: 0,
            pending: false,
            interrupt_mode: InterruptMode::default(),
            masks_on_delivery: false,
            ignores_absent_msrs: false,
            firmware: Vec::new(),
            faulting: BTreeSet::new(),
            quirks: Vec::new(),
            movements: Movements::default(),
            ledger: Ledger::default(),
            accesses: Accesses::default(),
        }
    }

    /// Sets `IA32_PERF_CAPABILITIES`, which otherwise is 0 (if CPUID enumerates it). Resets the PMU and the Debug Store
    /// and unmaps all memory.
    #[must_use]
    pub fn with_perf_capabilities(mut self, value: u64) -> Self {
        self.perf_capabilities = value;
        self.pmu = identity::pmu(&self.cpuid, value);
        self.debug_store = DebugStore::new(&self.cpuid, value, self.pmu.is_there());
        self.last_branches = LastBranches::new(&self.cpuid, value);
        self
    }

    /// Sets bits 7, 11 and 12 of `IA32_MISC_ENABLE`, if the processor has it. By default, bit 7 reports whether the
    /// processor has counters, and bits 11 and 12 report BTS and PEBS as available if CPUID enumerates the Debug Store.
    #[must_use]
    pub fn with_misc_enable(mut self, value: u64) -> Self {
        self.set_misc_enable(value);
        self
    }

    /// Sets the same bits as [`with_misc_enable`](Self::with_misc_enable).
    pub fn set_misc_enable(&mut self, value: u64) {
        self.debug_store.set_misc_enable(value);
    }

    /// Sets the revision of the microcode, which otherwise is newer than every known update.
    pub fn set_microcode(&mut self, revision: u32) {
        self.debug_store.set_microcode(revision);
    }

    /// Sets how records of architectural PEBS are written, if the processor has it.
    pub fn set_fragments(&mut self, fragments: Fragments) {
        self.debug_store.set_fragments(fragments);
    }

    /// Sets whether records of architectural PEBS are late: they arrive in memory when `IA32_PERF_GLOBAL_CTRL` is
    /// written, or with the next code that is executed.
    pub fn set_late_records(&mut self, are_late: bool) {
        self.debug_store.set_late(are_late);
    }

    /// Writes the records that are late.
    pub(super) fn let_records_arrive(&mut self) {
        if self.debug_store.arrive() {
            self.pmu.note_buffer();
            self.raise();
        }
    }

    /// Maps the memory of the Debug Store. Before this call, no memory is mapped.
    pub fn set_memory(&mut self, memory: Box<dyn Memory>) {
        self.debug_store.set_memory(memory);
    }

    /// Switches the APIC to x2APIC mode: the LVT entry is MSR 834H.
    #[must_use]
    pub fn with_x2apic(mut self) -> Self {
        self.enter_x2apic();
        self
    }
    /// As [`with_x2apic`](Self::with_x2apic).
    pub fn enter_x2apic(&mut self) {
        self.apic.enter_x2apic();
    }

    /// Lets absent MSRs read as zero and ignore writes instead of raising #GP, like KVM with `ignore_msrs`.
    #[must_use]
    pub fn with_absent_msrs_ignored(mut self) -> Self {
        self.ignores_absent_msrs = true;
        self
    }

    /// Makes exactly these accesses fault, whatever CPUID enumerates, like a hypervisor that lacks a register.
    pub fn set_faulting(&mut self, faulting: impl IntoIterator<Item = FaultingAccess>) {
        self.faulting = faulting.into_iter().collect();
    }

    /// Lets a hypervisor treat registers in exactly these ways, until the processor is replaced.
    pub fn set_quirks(&mut self, quirks: impl IntoIterator<Item = Quirk>) {
        self.quirks = quirks.into_iter().collect();
    }

    /// Sets how much of its events a counter counts. The [ledger](Self::ledger) has all of them.
    pub fn set_movement(&mut self, counter: CounterId, movement: Movement) {
        self.movements.set(counter, movement);
    }

    /// Makes general counters count zero of exactly these events, given by number and unit mask.
    pub fn set_filtered(&mut self, events: impl IntoIterator<Item = (u16, u16)>) {
        self.movements.set_filtered(events);
    }

    /// Returns the other thread of the core, which shares performance monitoring registers or an erratum of them;
    /// `cpuid` is that of the other thread. Returns `None` if threads have nothing in common.
    #[must_use]
    pub fn other_thread(&self, cpuid: CpuidFunction) -> Option<Self> {
        let (pmu, extra) = (self.pmu.other_thread(), self.extra.other_thread());
        if pmu.is_none() && extra.is_none() {
            return None;
        }
        let own = Self::new(cpuid).with_perf_capabilities(self.perf_capabilities);
        let pmu = pmu.unwrap_or_else(|| identity::pmu(&own.cpuid, own.perf_capabilities));
        let extra = extra.unwrap_or_else(|| ExtraRegisters::new(&own.cpuid, pmu.is_there()));
        Some(Self { pmu, extra, ..own })
    }

    /// Returns another core of the node, which counts the events of the northbridge with the same counters; `cpuid` is
    /// that of the other core. Returns `None` if cores have nothing in common.
    #[must_use]
    pub fn other_core(&self, cpuid: CpuidFunction) -> Option<Self> {
        let pmu = self.pmu.other_core()?;
        Some(Self { pmu, ..Self::new(cpuid) })
    }

    /// Takes the processor through a loss of power and the resume from it, as in S3. The PMU and the Debug Store are
    /// reset, a pending interrupt is lost, and firmware and the HAL restore the APIC and its entry, unless the HAL
    /// [forgets](Self::set_lvt_forgotten) the entry. Ledger, access counts and memory keep their contents.
    pub fn lose_power(&mut self) {
        self.pmu = identity::pmu(&self.cpuid, self.perf_capabilities);
        self.debug_store.lose_power();
        self.last_branches.lose_power();
        self.ibs.lose_power();
        self.extra.lose_power();
        self.reloads.lose_power();
        self.pending = false;
        self.apic.lose_power();
        for (msr, value) in self.firmware.clone() {
            // What the processor does not have, firmware does not set.
            let _ = self.store(msr, value);
        }
    }

    /// Sets what registers hold after each [loss of power](Self::lose_power), instead of the values of the reset.
    /// Firmware, or a hypervisor that restores the state of a guest, writes them, whatever a [`Quirk`] refuses.
    pub fn set_firmware(&mut self, values: impl IntoIterator<Item = (u32, u64)>) {
        self.firmware = values.into_iter().collect();
    }

    /// Executes CPUID and returns \[eax, ebx, ecx, edx\].
    #[must_use]
    pub fn cpuid(&self, leaf: u32, subleaf: u32) -> [u32; 4] {
        (self.cpuid)(leaf, subleaf)
    }

    /// Returns the selection of Intel's architectural event `index` (its bit in leaf 0AH, EBX), or `None` if the
    /// processor does not enumerate it. Selecting such an event does not fault; it counts the events that
    /// [`run`](Self::run) supplies.
    #[must_use]
    pub fn architectural_event(&self, index: u8) -> Option<Selected> {
        architectural::event(index).filter(|_| identity::reports_architectural_event(&self.cpuid, index))
    }

    /// Returns whether the processor has counters that CPUID may not report.
    #[must_use]
    pub fn hides_counters(&self) -> bool {
        hides_counters(&*self.cpuid)
    }

    /// Executes RDMSR at CPL 0.
    ///
    /// # Errors
    /// The register does not exist.
    pub fn rdmsr(&mut self, msr: u32) -> Result<u64, GeneralProtection> {
        self.accesses.rdmsr += 1;
        if self.faulting.contains(&FaultingAccess::Rdmsr(msr)) {
            return self.note(Err(GeneralProtection));
        }
        if self.quirks.iter().any(|quirk| quirk.hides(msr)) {
            return Ok(0);
        }
        let value = self.apic.rdmsr(msr).or_else(|| self.debug_store.rdmsr(msr)).or_else(|| self.pmu.rdmsr(msr));
        let value = value
            .or_else(|| self.last_branches.rdmsr(msr))
            .or_else(|| self.ibs.rdmsr(msr))
            .or_else(|| self.extra.rdmsr(msr))
            .or_else(|| self.reloads.rdmsr(msr));
        let absent = if self.ignores_absent_msrs { Ok(0) } else { Err(GeneralProtection) };
        self.note(value.map_or(absent, Ok))
    }

    /// Executes WRMSR at CPL 0.
    ///
    /// # Errors
    /// The register does not exist or is read-only, `value` sets a reserved bit, or a [`Quirk`] makes it fault.
    pub fn wrmsr(&mut self, msr: u32, value: u64) -> Result<(), GeneralProtection> {
        self.accesses.wrmsr += 1;
        if self.faulting.contains(&FaultingAccess::Wrmsr(msr)) {
            return self.note(Err(GeneralProtection));
        }
        let filter = |value, quirk: &Quirk| match value {
            Ok(Some(value)) => quirk.filter(msr, value),
            other => other,
        };
        let value = match self.quirks.iter().fold(Ok(Some(value)), filter) {
            Ok(Some(value)) => value,
            Ok(None) => return Ok(()),
            Err(fault) => return self.note(Err(fault)),
        };
        if msr == GLOBAL_CTRL {
            self.let_records_arrive();
        }
        let was_open = self.apic.delivers();
        let written = self.store(msr, value);
        self.leave_writer();
        if self.pmu.take_raised() {
            self.raise();
        }
        self.note_unmasked(was_open);
        let absent = if self.ignores_absent_msrs { Ok(()) } else { Err(GeneralProtection) };
        self.note(written.unwrap_or(absent))
    }

    /// Writes a register. Returns `None` if the processor does not have it.
    fn store(&mut self, msr: u32, value: u64) -> Option<Result<(), GeneralProtection>> {
        let written = self.apic.wrmsr(msr, value).or_else(|| self.debug_store.wrmsr(msr, value));
        let written = written.or_else(|| self.pmu.wrmsr(msr, value)).or_else(|| self.extra.wrmsr(msr, value));
        let written = written.or_else(|| self.last_branches.wrmsr(msr, value)).or_else(|| self.ibs.wrmsr(msr, value));
        written.or_else(|| self.reloads.wrmsr(msr, value))
    }

    /// Executes RDPMC at CPL 0.
    ///
    /// # Errors
    /// The counter does not exist.
    pub fn rdpmc(&mut self, index: u32) -> Result<u64, GeneralProtection> {
        self.accesses.rdpmc += 1;
        let is_faulting = self.faulting.contains(&FaultingAccess::Rdpmc(index));
        let value = self.pmu.rdpmc(index).filter(|_| !is_faulting).ok_or(GeneralProtection);
        self.note(value)
    }

    /// Returns whether branches of any mode are written to memory.
    #[must_use]
    pub fn stores_branches(&self) -> bool {
        self.debug_store.stores_branches()
    }

    /// Sets the instruction pointer and the time-stamp counter of the PEBS records that follow.
    pub fn set_place(&mut self, ip: u64, time: u64) {
        self.debug_store.set_place(ip, time);
    }

    /// Sets the loads that counters of load latency measure, without those below their threshold, and the stores that
    /// counters of stores record, each in turn.
    pub fn set_accesses(&mut self, loads: Vec<RecordedAccess>, stores: Vec<RecordedAccess>) {
        self.debug_store.set_accesses(loads, stores);
    }

    /// Returns the counters that will interrupt, on overflow or through PEBS records, with the events that each still
    /// needs; without those that do not count [all](Movement::All) of their events.
    #[must_use]
    pub fn interrupting_counters(&self) -> Vec<Interrupting> {
        let running = self.running();
        let sharing = running.iter().map(|counter| u64::from(self.precise(counter).is_some())).sum();
        let interrupting = |counter: &Running| {
            let Running { id, selected, user, kernel, interrupt } = *counter;
            if !self.movements.is_whole(id, selected) {
                return None;
            }
            let events = match self.precise(counter).filter(|_| !interrupt) {
                Some(precise) => self.debug_store.until_interrupt(self.pmu.counter(id)?, precise, sharing)?,
                None => self.pmu.until_overflow(id).filter(|_| interrupt && !self.pmu.is_stuck(id))?,
            };
            Some(Interrupting { selected, user, kernel, events })
        };
        running.iter().filter_map(interrupting).collect()
    }

    /// Returns the number of events until counter `id` overflows, or `None` if it counts in no mode.
    #[must_use]
    pub fn until_overflow(&self, id: CounterId) -> Option<u64> {
        self.running().iter().find(|counter| counter.id == id)?;
        self.pmu.until_overflow(id)
    }

    /// Returns the counters that are enabled in any mode, whether or not they can count their event: general counters
    /// first, then by number.
    #[must_use]
    pub fn enabled_counters(&self) -> Vec<(CounterId, Selected)> {
        self.pmu.running().iter().map(|counter| (counter.id, counter.selected)).collect()
    }

    /// Returns the ledger since the processor was created or since [`clear_ledger`](Self::clear_ledger).
    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Returns the totals of the Debug Store over the same time.
    #[must_use]
    pub fn stored(&self) -> &Stored {
        self.debug_store.stored()
    }

    /// Clears the ledger and the totals of the Debug Store.
    pub fn clear_ledger(&mut self) {
        self.ledger = Ledger::default();
        self.debug_store.clear();
    }

    /// Returns the access counts since the processor was created.
    #[must_use]
    pub fn accesses(&self) -> Accesses {
        self.accesses
    }

    /// Runs `body` without counting its [accesses](Self::accesses), for code other than the code under test.
    pub fn uncounted<T>(&mut self, body: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.accesses;
        let result = body(self);
        self.accesses = before;
        result
    }

    fn note<T>(&mut self, result: Result<T, GeneralProtection>) -> Result<T, GeneralProtection> {
        self.accesses.faulted += u64::from(result.is_err());
        result
    }
}
