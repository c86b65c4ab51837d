//! One logical processor: its PMU, its APIC, and what passes between them.

use crate::{
    CpuidFunction,
    apic::Apic,
    architectural,
    counter::CounterId,
    debug_store::{Branch, Counted, DebugStore, Memory, Precise, Stored},
    fault::GeneralProtection,
    identity,
    interrupt_mode::InterruptMode,
    ledger::{Ledger, LedgerEntry},
    pmu::{Pmu, Running},
    select::Selected,
};

/// The privilege of what executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// CPL 3.
    User,
    /// CPL 0.
    Kernel,
}

/// How often each instruction was executed, faults included. Writes by [`Processor::set_lvt`] are to memory and are
/// not here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Accesses {
    /// RDMSR.
    pub rdmsr: u64,
    /// WRMSR.
    pub wrmsr: u64,
    /// RDPMC.
    pub rdpmc: u64,
    /// How many of the three together faulted.
    pub faulted: u64,
}

/// A counter that interrupts: when it overflows, or by the records that its overflows write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interrupting {
    /// What it counts.
    pub selected: Selected,
    /// Whether it counts user mode.
    pub user: bool,
    /// Whether it counts kernel mode.
    pub kernel: bool,
    /// Events until it overflows; of a counter that writes records, until one comes to the threshold of their buffer, and
    /// when other counters write to it as well, the least that it can be.
    pub events: u64,
}

/// One logical processor, as far as its performance monitoring goes.
///
/// An MSR that is not of performance monitoring or of the APIC entry that serves it is absent here, whatever real
/// hardware has: the code under test has no business there.
pub struct Processor {
    cpuid: CpuidFunction,
    perf_capabilities: u64,
    pmu: Box<dyn Pmu>,
    debug_store: DebugStore,
    apic: Apic,
    /// At most one interrupt waits: the APIC has one entry for all counters.
    pending: bool,
    interrupt_mode: InterruptMode,
    ignores_absent_msrs: bool,
    ledger: Ledger,
    accesses: Accesses,
}

impl Processor {
    /// The processor that CPUID describes, after reset; of the APIC, as Windows' HAL leaves it, in xAPIC mode.
    #[must_use]
    pub fn new(cpuid: CpuidFunction) -> Self {
        let pmu = identity::pmu(&cpuid, 0);
        Self {
            debug_store: DebugStore::new(&cpuid, 0, pmu.is_there()),
            pmu,
            apic: Apic::new(&cpuid),
            cpuid,
            perf_capabilities: 0,
            pending: false,
            interrupt_mode: InterruptMode::default(),
            ignores_absent_msrs: false,
            ledger: Ledger::default(),
            accesses: Accesses::default(),
        }
    }

    /// With this in `IA32_PERF_CAPABILITIES`, where CPUID says there is one; 0 otherwise. The PMU and the Debug Store are as
    /// after reset, without memory.
    #[must_use]
    pub fn with_perf_capabilities(mut self, value: u64) -> Self {
        self.perf_capabilities = value;
        self.pmu = identity::pmu(&self.cpuid, value);
        self.debug_store = DebugStore::new(&self.cpuid, value, self.pmu.is_there());
        self
    }

    /// With bits 7, 11 and 12 of this in `IA32_MISC_ENABLE`, where there is one. Otherwise bit 7 says whether there are
    /// counters, and 11 and 12 that BTS and PEBS are there as far as CPUID tells.
    #[must_use]
    pub fn with_misc_enable(mut self, value: u64) -> Self {
        self.set_misc_enable(value);
        self
    }

    /// As [`with_misc_enable`](Self::with_misc_enable).
    pub fn set_misc_enable(&mut self, value: u64) {
        self.debug_store.set_misc_enable(value);
    }

    /// Maps memory, which the processor reads and writes by itself from now on; before, none is mapped.
    pub fn set_memory(&mut self, memory: Box<dyn Memory>) {
        self.debug_store.set_memory(memory);
    }

    /// With its APIC in x2APIC mode: the LVT entry is MSR 834H.
    #[must_use]
    pub fn with_x2apic(mut self) -> Self {
        self.apic.enter_x2apic();
        self
    }

    /// Under a hypervisor that hides accesses to absent MSRs instead of injecting #GP: they read as zero, and writes
    /// are dropped (KVM with `ignore_msrs`).
    #[must_use]
    pub fn with_absent_msrs_ignored(mut self) -> Self {
        self.ignores_absent_msrs = true;
        self
    }

    /// Interrupts behave in this way at the LVT entry from now on.
    pub fn set_interrupt_mode(&mut self, mode: InterruptMode) {
        self.interrupt_mode = mode;
    }

    /// The other thread of its core, which CPUID describes: both have the same performance monitoring registers. None
    /// where threads do not share them.
    #[must_use]
    pub fn other_thread(&self, cpuid: CpuidFunction) -> Option<Self> {
        Some(Self { pmu: self.pmu.other_thread()?, ..Self::new(cpuid) })
    }

    /// The processor loses its power and comes back, as over S3: the PMU and the Debug Store are as after reset, an interrupt
    /// that was pending is gone, and firmware and HAL have made the APIC what it was, its entry as the HAL wants it. The
    /// accounts stay, and memory is what it was.
    pub fn lose_power(&mut self) {
        self.pmu = identity::pmu(&self.cpuid, self.perf_capabilities);
        self.debug_store.lose_power();
        self.pending = false;
        self.apic.initialize_lvt();
    }

    /// CPUID: \[eax, ebx, ecx, edx\].
    #[must_use]
    pub fn cpuid(&self, leaf: u32, subleaf: u32) -> [u32; 4] {
        (self.cpuid)(leaf, subleaf)
    }

    /// The select of Intel's architectural event `index` (its bit in leaf 0AH, EBX). None when the processor does not
    /// report it; selecting it all the same does not fault, and counts whatever [`run`](Self::run) is told.
    #[must_use]
    pub fn architectural_event(&self, index: u8) -> Option<Selected> {
        architectural::event(index).filter(|_| identity::reports_architectural_event(&self.cpuid, index))
    }

    /// RDMSR at CPL 0.
    ///
    /// # Errors
    /// There is no such register.
    pub fn rdmsr(&mut self, msr: u32) -> Result<u64, GeneralProtection> {
        self.accesses.rdmsr += 1;
        let value = self.apic.rdmsr(msr).or_else(|| self.debug_store.rdmsr(msr)).or_else(|| self.pmu.rdmsr(msr));
        let absent = if self.ignores_absent_msrs { Ok(0) } else { Err(GeneralProtection) };
        self.note(value.map_or(absent, Ok))
    }

    /// WRMSR at CPL 0.
    ///
    /// # Errors
    /// There is no such register, it is read-only, or `value` has a reserved bit.
    pub fn wrmsr(&mut self, msr: u32, value: u64) -> Result<(), GeneralProtection> {
        self.accesses.wrmsr += 1;
        let was_open = self.apic.delivers();
        let written = self.apic.wrmsr(msr, value).or_else(|| self.debug_store.wrmsr(msr, value));
        let written = written.or_else(|| self.pmu.wrmsr(msr, value));
        if self.pmu.take_raised() {
            self.raise();
        }
        self.note_unmasked(was_open);
        let absent = if self.ignores_absent_msrs { Ok(()) } else { Err(GeneralProtection) };
        self.note(written.unwrap_or(absent))
    }

    /// RDPMC at CPL 0.
    ///
    /// # Errors
    /// There is no such counter.
    pub fn rdpmc(&mut self, index: u32) -> Result<u64, GeneralProtection> {
        self.accesses.rdpmc += 1;
        let value = self.pmu.rdpmc(index).ok_or(GeneralProtection);
        self.note(value)
    }

    /// The processor executes something in `mode`. `events` is asked, for each counter that counts in that mode, how
    /// many of what it selects happened.
    ///
    /// A counter that overflows with its interrupt enabled makes an interrupt pending, if none is and the status did not
    /// report an overflow of that counter already (Intel, version 2 and later). [`LedgerEntry::interrupts`] says how
    /// overflows merge. Each overflow of a counter that is enabled in `IA32_PEBS_ENABLE` writes a record to memory and
    /// loads the counter anew, and the record that reaches the threshold interrupts. The counter has an interrupt and a
    /// status bit of its own only if its control register asks for the interrupt. An event or a counter that cannot be
    /// recorded overflows as without `IA32_PEBS_ENABLE`.
    pub fn run(&mut self, mode: Mode, events: &dyn Fn(Selected) -> u64) {
        for counter in self.pmu.running() {
            let counts = match mode {
                Mode::User => counter.user,
                Mode::Kernel => counter.kernel,
            };
            let counted = if counts { events(counter.selected) } else { 0 };
            if counted == 0 {
                continue;
            }
            let (overflows, interrupts) = self.count(&counter, counted);
            let raised = interrupts && self.raise();
            self.ledger.add(LedgerEntry {
                counter: counter.id,
                selected: counter.selected,
                user: counter.user,
                kernel: counter.kernel,
                counted,
                overflows,
                interrupts: u64::from(raised),
            });
        }
    }

    /// Adds to a counter, and tells how often it overflowed and whether that is to interrupt.
    fn count(&mut self, counter: &Running, events: u64) -> (u64, bool) {
        let Running { id, interrupt, .. } = *counter;
        let was_stuck = self.pmu.is_stuck(id);
        let Some(precise) = self.precise(counter) else {
            let overflows = self.pmu.count(id, events);
            return (overflows, overflows > 0 && interrupt && !was_stuck);
        };
        let Some(counter) = self.pmu.counter_mut(id) else { return (0, false) };
        let Counted { overflows, reached } = self.debug_store.count(counter, precise, events);
        if reached {
            self.pmu.note_buffer();
        }
        let interrupts = overflows > 0 && interrupt && !was_stuck;
        if interrupts {
            self.pmu.note_overflow(id);
        }
        (overflows, reached || interrupts)
    }

    /// Raises an interrupt, unless one is pending. Returns whether it is pending now and was not before.
    fn raise(&mut self) -> bool {
        let is_lost = self.interrupt_mode == InterruptMode::LostWhileMasked && !self.apic.delivers();
        let raised = !self.pending && !is_lost;
        self.pending |= raised;
        raised
    }

    /// Raises another interrupt if the LVT entry was unmasked just now and the interrupt mode is so.
    fn note_unmasked(&mut self, was_open: bool) {
        let is_unmasked = !was_open && self.apic.delivers();
        if is_unmasked && self.interrupt_mode == InterruptMode::RaisedOnUnmask {
            let records = self.debug_store.records();
            self.pending |= self.pmu.has_interrupting_status(records);
        }
    }

    fn precise(&self, counter: &Running) -> Option<Precise> {
        self.debug_store.precise(counter.id, counter.selected, self.pmu.adaptive(counter.id))
    }

    /// The processor takes a branch in `mode`. Where the Branch Trace Store is on for it, it goes to memory; and if that
    /// comes to the threshold and is to interrupt, an interrupt becomes pending, of which no status tells.
    pub fn branch(&mut self, mode: Mode, branch: Branch) {
        if self.debug_store.branch(mode, branch) {
            self.raise();
        }
    }

    /// Whether branches of any mode go to memory.
    #[must_use]
    pub fn stores_branches(&self) -> bool {
        self.debug_store.stores_branches()
    }

    /// Where the code is, and the time-stamp counter, for the records of events from now on.
    pub fn set_place(&mut self, ip: u64, time: u64) {
        self.debug_store.set_place(ip, time);
    }

    /// The counters that raise an interrupt by themselves, with their next overflow or by records, and what each needs for
    /// it.
    #[must_use]
    pub fn interrupting_counters(&self) -> Vec<Interrupting> {
        let running = self.pmu.running();
        let sharing = running.iter().map(|counter| u64::from(self.precise(counter).is_some())).sum();
        let interrupting = |counter: &Running| {
            let Running { id, selected, user, kernel, interrupt } = *counter;
            let events = match self.precise(counter).filter(|_| !interrupt) {
                Some(precise) => self.debug_store.until_interrupt(self.pmu.counter(id)?, precise, sharing)?,
                None => self.pmu.until_overflow(id).filter(|_| interrupt && !self.pmu.is_stuck(id))?,
            };
            Some(Interrupting { selected, user, kernel, events })
        };
        running.iter().filter_map(interrupting).collect()
    }

    /// How many more events of `id` until it overflows. None when it does not count in any mode.
    #[must_use]
    pub fn until_overflow(&self, id: CounterId) -> Option<u64> {
        self.pmu.running().iter().find(|counter| counter.id == id)?;
        self.pmu.until_overflow(id)
    }

    /// The counters that count now, in any mode: general ones first, in the order of their numbers.
    #[must_use]
    pub fn enabled_counters(&self) -> Vec<(CounterId, Selected)> {
        self.pmu.running().iter().map(|counter| (counter.id, counter.selected)).collect()
    }

    /// Delivers the pending performance interrupt, if there is one and the APIC lets it through. Intel then masks the
    /// LVT entry, AMD does not.
    ///
    /// A pending interrupt outlives what raised it: stopping the counter or clearing its status does not recall it. What
    /// becomes of it behind a masked entry depends on the [mode](InterruptMode).
    pub fn take_interrupt(&mut self) -> bool {
        let taken = self.interrupt_due();
        if taken {
            self.pending = false;
            if self.pmu.masks_lvt_on_delivery() {
                self.apic.mask_lvt();
            }
        }
        taken
    }

    /// A performance interrupt was raised and not yet delivered.
    #[must_use]
    pub fn interrupt_pending(&self) -> bool {
        self.pending
    }

    /// [`take_interrupt`](Self::take_interrupt) would deliver one.
    #[must_use]
    pub fn interrupt_due(&self) -> bool {
        self.pending && self.apic.delivers()
    }

    /// What the counters were given since the processor was made or [`clear_ledger`](Self::clear_ledger).
    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// What went to memory since then.
    #[must_use]
    pub fn stored(&self) -> &Stored {
        self.debug_store.stored()
    }

    /// Begins new accounts, of counters and of memory.
    pub fn clear_ledger(&mut self) {
        self.ledger = Ledger::default();
        self.debug_store.clear();
    }

    /// How often the registers were accessed since the processor was made.
    #[must_use]
    pub fn accesses(&self) -> Accesses {
        self.accesses
    }

    /// Does what somebody else than the code under test does: its accesses are not in the [account](Self::accesses).
    pub fn uncounted<T>(&mut self, body: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.accesses;
        let result = body(self);
        self.accesses = before;
        result
    }

    /// Whether the registers of the APIC are MSRs, and not in memory.
    #[must_use]
    pub fn is_x2apic(&self) -> bool {
        self.apic.is_x2apic()
    }

    /// The LVT performance entry, as software reads it in memory.
    #[must_use]
    pub fn lvt(&self) -> u32 {
        self.apic.lvt()
    }

    /// Writes the LVT performance entry, as software does in memory: reserved and read-only bits are dropped.
    pub fn set_lvt(&mut self, value: u32) {
        let was_open = self.apic.delivers();
        self.apic.set_lvt(value);
        self.note_unmasked(was_open);
    }

    fn note<T>(&mut self, result: Result<T, GeneralProtection>) -> Result<T, GeneralProtection> {
        self.accesses.faulted += u64::from(result.is_err());
        result
    }
}
