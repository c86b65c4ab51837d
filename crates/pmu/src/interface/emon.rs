//! The Emon interface: Intel's architectural performance monitoring, versions 1 to 6 (HAL Emon interface; SDM Vol. 3B,
//! 21.2).
//!
//! Version 1 has only select registers and counters. From version 2 on, a counter counts only while its bit in
//! IA32_PERF_GLOBAL_CTRL is set too, so one write stops any number of counters. There are also fixed counters, each for
//! one event. Their indexes follow those of the general counters. They are assigned first, which keeps the general
//! counters for other events. Where leaf 0x23 exists, it has the bitmaps of the counters, and says whether the select
//! registers have UMASK2 and EQ; leaf 0xA may then report fewer counters.
//!
//! | with N general and F fixed counters, k of them overflowed | writes, reads, RDPMC |
//! |---|---|
//! | start | (2N + F + 1) W, 1 W more if F > 0 |
//! | stop | 1 W |
//! | interrupt | 2 R + (3 + k) W + k P |
//!
//! Version 1: start 2N W, stop N W, interrupt Ns P + k W for Ns counters with an interval.

mod accesses;
mod capabilities;
mod changes;
mod extra;
mod first_access;
mod fixed;
mod freeze;
mod hidden;
mod memory_events;
mod microarchitecture;
mod perf_metrics;
mod precise;
mod reload;
mod reset;
mod sources;

use x86_defs::intel::perfmon::{self, FixedControl, GLOBAL_FIXED_SHIFT, GlobalStatus, PerfEvtSel};

use super::unmanaged::{self, Bank, Counters};
use super::{Enabled, ProfileInterface, Support, support};
use crate::constraints::{Class, Listing};
use crate::cpu::{Cpu, Cpuid, Msr};
use crate::disturbance::Disturbance;
use crate::first_access::{Faulted, FirstAccess, GuardedCpu};
use crate::lvt_pmi;
use crate::placement::{self, Wanted};
use crate::source::{ProfileSource, RawEvent, Sources};
use crate::state::{Active, CounterRegisters, CounterSet, CounterState, CpuCounters, FoundMsrs, PerCpuPmu, SavedMsrs};

pub use accesses::{AccessCounters, RecordedOperation};
pub use capabilities::{MAX_GENERAL, PmuCapabilities, Recorders, architectural_recorders, hides_counters};
pub use microarchitecture::Microarchitecture;
pub use perf_metrics::UnitCounts;
pub(crate) use perf_metrics::is_metric;
pub(crate) use precise::access_records;
pub use precise::{PreciseForm, acknowledge_records};
pub(crate) use reload::config;
pub use sources::{SOURCES, ebx_bit};

const IA32_PERFEVTSEL0: Msr = Msr::new(perfmon::IA32_PERFEVTSEL0);
const IA32_PMC0: Msr = Msr::new(perfmon::IA32_PMC0);
const IA32_A_PMC0: Msr = Msr::new(perfmon::IA32_A_PMC0);
const IA32_FIXED_CTR0: Msr = Msr::new(perfmon::IA32_FIXED_CTR0);
const IA32_FIXED_CTR_CTRL: Msr = Msr::new(perfmon::IA32_FIXED_CTR_CTRL);
const IA32_PERF_GLOBAL_CTRL: Msr = Msr::new(perfmon::IA32_PERF_GLOBAL_CTRL);
const IA32_PERF_GLOBAL_STATUS: Msr = Msr::new(perfmon::IA32_PERF_GLOBAL_STATUS);
const IA32_PERF_GLOBAL_OVF_CTRL: Msr = Msr::new(perfmon::IA32_PERF_GLOBAL_OVF_CTRL);
pub(crate) const IA32_PERF_CAPABILITIES: Msr = Msr::new(perfmon::IA32_PERF_CAPABILITIES);

/// Returns the value of an event select register that starts a counter in this state.
const fn started(select: u64, state: CounterState) -> PerfEvtSel {
    PerfEvtSel::from_bits(select)
        .with_usr(state.user())
        .with_os(state.kernel())
        .with_int(state.interrupts())
        .with_en(true)
}

/// The Emon interface of a processor.
#[derive(Debug, Clone, Copy)]
pub struct Emon {
    capabilities: PmuCapabilities,
}

impl Emon {
    /// Creates the interface for the current processor. Its highest leaf must be at least 0xA.
    ///
    /// # IRQL
    /// Any.
    #[must_use]
    pub fn new(cpu: &impl Cpuid) -> Self {
        Self { capabilities: PmuCapabilities::of(cpu) }
    }

    /// Creates the interface for a processor with these [`capabilities`](Self::capabilities).
    #[must_use]
    pub const fn with_capabilities(capabilities: PmuCapabilities) -> Self {
        Self { capabilities }
    }

    /// Returns the capabilities that distinguish the processor from others.
    #[must_use]
    pub const fn capabilities(self) -> PmuCapabilities {
        self.capabilities
    }

    /// Returns whether a counter of this source and the counter with the same number of the other thread disturb each
    /// other: MEM_UOPS_RETIRED, MEM_LOAD_UOPS_RETIRED and those of the last level cache.
    pub(crate) fn disturbs_other_thread(self, source: &ProfileSource) -> bool {
        let event = PerfEvtSel::from_bits(source.select).event_select();
        self.capabilities.disturbs_other_thread() && (0xD0..=0xD3).contains(&event)
    }

    /// Returns the event select register for a counter in this state, without the bits that the state contains itself.
    fn select(self, cpu_counters: CpuCounters<'_>, state: CounterState) -> u64 {
        let sources = Sources::new(&SOURCES);
        let select = cpu_counters.select_of(sources, state);
        let select = if state.alternate() { self.alternate_select(select) } else { select };
        if !state.precise() {
            return select;
        }
        let form = |source| self.capabilities.microarchitecture().listed_precise_form(&source);
        let form = cpu_counters.source_of(sources, state).and_then(form);
        self.with_access(form.map_or(select, |form| form.select(select)))
    }

    /// Returns the version of architectural performance monitoring.
    #[must_use]
    pub const fn version(&self) -> u8 {
        self.capabilities.version()
    }

    const fn has_global_control(self) -> bool {
        self.capabilities.has_global_control()
    }

    /// Returns the general counters. A full-width and a 32-bit write load the same value: no interval has more than 31
    /// bits.
    #[inline]
    const fn bank(self) -> Bank {
        let counters = if self.capabilities.full_width() { IA32_A_PMC0 } else { IA32_PMC0 };
        let top_bit = 1 << 63 >> self.capabilities.missing_bits();
        Bank { selects: IA32_PERFEVTSEL0, counters, stride: 1, all: self.general(), top_bit }
    }

    pub(super) const fn general(self) -> CounterSet {
        CounterSet::from_bits(self.capabilities.general() as u64)
    }

    /// Returns the fixed counters, by their indexes in this interface.
    pub(super) const fn fixed(self) -> CounterSet {
        CounterSet::from_bits((self.capabilities.fixed() as u64) << self.capabilities.count())
    }

    /// Returns the hardware index of a fixed counter; `None` for a general one.
    #[inline]
    pub(super) const fn number(self, counter: u8) -> Option<u8> {
        counter.checked_sub(self.capabilities.count())
    }

    /// Returns the bits of the counters in the global registers.
    const fn bits(self, counters: CounterSet) -> u64 {
        let all = counters.bits() as u64;
        (all & 0xFFFF_FFFF | all >> self.capabilities.count() << GLOBAL_FIXED_SHIFT) & self.capabilities.own()
    }

    /// Writes IA32_PERF_GLOBAL_CTRL with these counters on. Bits outside the interface keep the values that were found;
    /// those of the counter of slots and its metrics are as [`perf_metrics`] needs them.
    fn let_count(self, cpu: &impl Cpu, cpu_counters: CpuCounters<'_>, counters: CounterSet) {
        let control = cpu_counters.pmu.snapshot.control() & !self.capabilities.own() | self.bits(counters);
        cpu_counters.pmu.snapshot.set_control(control);
        cpu.wrmsr(IA32_PERF_GLOBAL_CTRL, control);
    }

    /// Returns the counters of these bits in the global registers.
    #[inline]
    const fn counters_in(self, global: u64) -> CounterSet {
        // General counters have lower bits than fixed ones in both forms, so no bit is lost. Other bits of the upper
        // half give no counter of the interface.
        CounterSet::from_bits(global & 0xFFFF_FFFF | global >> GLOBAL_FIXED_SHIFT << self.capabilities.count())
    }

    /// Returns the counters that count and record the event of a source, if a table lists it.
    fn class(self, source: &ProfileSource) -> Option<Class> {
        let select = PerfEvtSel::from_bits(source.select);
        let umask = u16::from_le_bytes([select.umask(), select.umask2()]);
        self.capabilities.microarchitecture().table().find(select.event_select().into(), umask, select.cmask() != 0)
    }

    /// Returns why the processor lacks the architectural event with this bit in leaf 0xA EBX, if it does.
    const fn lacks(self, bit: Option<u8>) -> Option<Support> {
        match bit {
            Some(bit) if !self.capabilities.enumerates(bit) => Some(Support::EventNotEnumerated),
            Some(bit) if self.capabilities.lacks(bit) => Some(Support::EventNotAvailable),
            _ => None,
        }
    }

    /// Returns the index of the fixed counter that counts the event of a source.
    fn fixed_for(self, source: &ProfileSource) -> Option<u8> {
        let number = fixed::number_for(source)?;
        (self.capabilities.fixed() >> number & 1 == 1).then_some(self.capabilities.count() + number)
    }
}

impl Counters for Emon {
    #[inline]
    fn place(self, counter: u8) -> CounterRegisters {
        match self.number(counter) {
            Some(number) => CounterRegisters {
                register: IA32_FIXED_CTR0.at(number),
                control: IA32_FIXED_CTR_CTRL,
                index: perfmon::RDPMC_FIXED | u32::from(number),
                missing_bits: self.capabilities.fixed_missing_bits(),
            },
            None => CounterRegisters {
                register: self.bank().counters.at(counter),
                control: self.bank().select(counter),
                index: u32::from(counter),
                missing_bits: self.capabilities.missing_bits(),
            },
        }
    }
}

impl ProfileInterface for Emon {
    /// Indexes for general counters up to the last one, then for fixed ones up to the last usable one.
    fn counters(&self) -> u8 {
        self.capabilities.counters()
    }

    fn width(&self) -> u8 {
        if self.capabilities.count() == 0 { 0 } else { self.capabilities.general_width() }
    }

    #[inline]
    fn width_of(&self, counter: u8) -> u8 {
        if self.number(counter).is_some() { self.capabilities.fixed_width() } else { self.capabilities.general_width() }
    }

    #[inline]
    fn read(&self, cpu: &impl Cpu, counter: u8) -> u64 {
        cpu.rdpmc(self.place(counter).index)
    }

    fn counters_for(&self, source: &ProfileSource) -> CounterSet {
        if let Some(counter) = self.unit_counter(source) {
            return counter;
        }
        let general = || self.class(source).map_or(self.general(), |class| class.counters().and(self.general()));
        match self.fixed_for(source) {
            Some(counter) if fixed::is_alone(source) => CounterSet::NONE.with(counter),
            Some(counter) => general().with(counter),
            None if fixed::is_raw(source) => CounterSet::NONE,
            None => general(),
        }
    }

    fn counters_in_state(&self, source: &ProfileSource, state: CounterState, all: CounterSet) -> CounterSet {
        let all = if state.precise() {
            self.precise(source)
        } else if state.alternate() {
            self.counters_for(&ProfileSource { select: self.alternate_select(source.select), ..*source })
        } else {
            all
        };
        let in_modes = CounterSet::from_bits(self.capabilities.general_in(state.user(), state.kernel()).into());
        all.without(self.general().without(in_modes))
    }

    /// Leaf 0xA enumerates the events of the interface's table. Core and Core 2 list the events with constraints, and
    /// no others.
    fn listing(&self, source: &ProfileSource) -> Listing {
        let is_complete =
            matches!(self.capabilities.microarchitecture(), Microarchitecture::Core | Microarchitecture::Core2);
        let is_fixed = self.unit_counter(source).is_some() || fixed::number_for(source).is_some();
        if !source.source.is_raw() || is_complete || is_fixed || self.class(source).is_some() {
            Listing::Known
        } else {
            Listing::Unlisted
        }
    }

    /// Assigns fixed counters first, which keeps the general counters for other events.
    fn assign(&self, cpu_counters: CpuCounters<'_>, wanted: &[Wanted], assigned: &mut [u8]) -> Result<(), usize> {
        self.check_unit(cpu_counters, wanted)?;
        let free = cpu_counters.counters(CounterState::is_free);
        placement::assign_wanted(free, self.fixed(), wanted, assigned)
    }

    /// The events of the unit must count in the same modes.
    fn preferred(&self, wanted: &Wanted) -> Option<CounterSet> {
        wanted.within.and(self.unit()).is_empty().then_some(self.fixed())
    }

    /// INST_RETIRED.PREC_DIST needs a multiple of 64, at least 128, where
    /// [`Action::AlignPeriods`](crate::errata::workarounds::Action::AlignPeriods) applies.
    fn with_safe_interval(&self, cpu_counters: CpuCounters<'_>, state: CounterState) -> CounterState {
        const PREC_DIST: (u8, u8) = (0xC0, 0x01);
        if !self.capabilities.aligns_periods() || !state.interrupt() {
            return state;
        }
        let select = PerfEvtSel::from_bits(self.select(cpu_counters, state));
        if (select.event_select(), select.umask()) == PREC_DIST {
            state.with_interval((state.interval() & !63).max(128))
        } else {
            state
        }
    }

    fn support(&self, source: &ProfileSource) -> Support {
        self.lacks(ebx_bit(source)).unwrap_or(Support::Supported) // includes ProfileTime
    }

    /// Event numbers have 8 bits, unit masks 16 where leaf 0x23 reports UMASK2. If the table contains the event too,
    /// leaf 0xA decides whether it exists, whatever the other fields say.
    fn raw_counters(&self, source: &ProfileSource, event: RawEvent) -> Result<CounterSet, Support> {
        /// The fields of the select that name the event.
        const NAME: u64 = RawEvent::new().with_umask(0xFFFF).with_event(0xFF).select();
        if event.event() > 0xFF {
            return Err(Support::NoSuchEvent);
        }
        if let Some(counter) = self.unit_counter(source) {
            let is_plain = event == RawEvent::new().with_event(event.event()).with_umask(event.umask());
            return if is_plain && !counter.is_empty() { Ok(counter) } else { Err(Support::NoMetrics) };
        }
        if event.any() && !self.capabilities.any_thread() {
            return Err(Support::NoAnyThread);
        }
        if let Some(lack) = super::lacks_version_6(event, self.capabilities.umask2(), self.capabilities.eq()) {
            return Err(lack);
        }
        match self.lacks(sources::architectural(source.select & NAME)) {
            None => support::some(self.counters_for(source)),
            Some(lack) => Err(lack),
        }
    }

    /// One read for each general counter, and one for all fixed ones.
    fn enabled(&self, cpu: &impl Cpu) -> Option<Enabled> {
        self.bank().enabled(cpu).or_else(|| {
            let fixed = self.fixed();
            let control = if fixed.is_empty() { 0 } else { cpu.rdmsr(IA32_FIXED_CTR_CTRL) };
            let of = |counter| {
                let field = FixedControl::from_register(control, self.number(counter)?).into_bits();
                (field != 0).then_some(Enabled { counter, register: IA32_FIXED_CTR_CTRL, value: control })
            };
            fixed.iter().find_map(of)
        })
    }

    /// N writes for N general counters; from version 2 on two writes more, with fixed counters another write, and with
    /// IA32_DEBUGCTL one read and, if it changes, another write. Counters outside the interface keep counting.
    fn initialize(&self, cpu: &impl Cpu, found: FoundMsrs) -> SavedMsrs {
        self.bank().clear(cpu);
        if !self.has_global_control() {
            return SavedMsrs::default();
        }
        cpu.wrmsr(IA32_PERF_GLOBAL_CTRL, found.global & !self.capabilities.own());
        let freeze = freeze::take(cpu, self.capabilities, found.debug);
        cpu.wrmsr(IA32_PERF_GLOBAL_OVF_CTRL, self.capabilities.clearable());
        if !self.fixed().is_empty() {
            cpu.wrmsr(IA32_FIXED_CTR_CTRL, fixed::others(self.capabilities, found.fixed));
        }
        SavedMsrs { global: found.global, fixed: found.fixed, freeze }
    }

    fn excludes_smm(&self) -> bool {
        self.capabilities.freeze_while_smm()
    }

    fn present(&self) -> CounterSet {
        self.general().or(self.fixed()).or(self.unit())
    }

    fn try_event(
        &self,
        first: &FirstAccess<'_, impl GuardedCpu>,
        cpu_counters: CpuCounters<'_>,
        counter: u8,
        state: CounterState,
    ) -> Result<(), Faulted> {
        if self.unit().has(counter) {
            return Ok(());
        }
        if self.general().has(counter) {
            let select = started(self.select(cpu_counters, state), state).with_en(false);
            first.try_value(self.bank().select(counter), select.into_bits())?;
        }
        Counters::try_interval(*self, first, counter, state)
    }

    fn readback_ok(&self, cpu: &impl Cpu) -> bool {
        self.bank().readback_ok(cpu) && self.fixed().iter().all(|counter| self.fixed_readback_ok(cpu, counter))
    }

    /// Costs one write; none in version 1.
    fn forget(&self, cpu: &impl Cpu, counters: CounterSet) {
        if self.has_global_control() {
            cpu.wrmsr(IA32_PERF_GLOBAL_OVF_CTRL, self.bits(counters));
        }
    }

    /// Reads no register: `cpu_counters` has the other active counters.
    fn enable(&self, cpu: &impl Cpu, cpu_counters: CpuCounters<'_>, counters: CounterSet) {
        let all = cpu_counters.active.all.or(counters);
        if self.capabilities.needs_reset() {
            reset::before_start(*self, cpu, cpu_counters, counters);
        }
        self.bank().load(cpu, cpu_counters, counters.and(self.general()), |state| {
            started(self.select(cpu_counters, state), state).into_bits()
        });
        let fixed = counters.and(self.fixed());
        for counter in fixed.iter() {
            self.start(cpu, cpu_counters, counter);
        }
        self.set_reloads(cpu, cpu_counters, counters, true);
        let unit_starts = self.start_unit(cpu, cpu_counters, counters);
        if unit_starts || !fixed.is_empty() {
            cpu.wrmsr(IA32_FIXED_CTR_CTRL, fixed::control(self.capabilities, cpu_counters, all));
        }
        if self.has_global_control() {
            self.let_count(cpu, cpu_counters, all);
        }
    }

    /// Costs one write; in version 1, one for each counter. Two more for each that others reload.
    fn disable(&self, cpu: &impl Cpu, cpu_counters: CpuCounters<'_>, counters: CounterSet) {
        if self.has_global_control() {
            self.let_count(cpu, cpu_counters, cpu_counters.active.all.without(counters));
            self.set_reloads(cpu, cpu_counters, counters, false);
        } else {
            self.bank().clear_selects(cpu, counters);
        }
    }

    /// Costs one read; in version 1, one RDPMC for each counter with an interval.
    fn check_overflow(&self, cpu: &impl Cpu, active: Active) -> CounterSet {
        if self.has_global_control() {
            self.counters_in(cpu.rdmsr(IA32_PERF_GLOBAL_STATUS) & PmuCapabilities::EVERY).and(active.interrupting)
        } else {
            unmanaged::overflowed(cpu, active.interrupting, self.bank().top_bit)
        }
    }

    fn counter_register(&self, _cpu_counters: CpuCounters<'_>, counter: u8) -> Msr {
        if self.unit().has(counter) {
            return self.unit_register(counter);
        }
        self.place(counter).register
    }

    /// One read for each active general counter, and one for all fixed ones; from version 2 on one of the global
    /// control register, from version 4 on one of the status, which reports frozen counters, and one of IA32_DEBUGCTL
    /// where it can stop counters.
    // Never inlined: one frame for all interfaces would cost the deepest path of the handler more stack.
    #[inline(never)]
    fn compare(&self, cpu: &impl Cpu, cpu_counters: CpuCounters<'_>, mut differs: impl FnMut(CounterSet, Disturbance)) {
        self.bank().compare(cpu, cpu_counters, &mut differs);
        let active = cpu_counters.active.all;
        if !active.and(self.fixed().or(self.unit())).is_empty() {
            let found = cpu.rdmsr(IA32_FIXED_CTR_CTRL);
            let (others, changed) = self.unit_changes(cpu_counters.pmu, found);
            cpu_counters.pmu.snapshot.set_fixed_control(others);
            if let Some((counters, disturbance)) = changed {
                differs(counters, disturbance);
            }
            let expected = fixed::control(self.capabilities, cpu_counters, active);
            let field =
                |register, counter| self.number(counter).map(|number| FixedControl::from_register(register, number));
            let is_changed = |counter: &u8| field(found, *counter) != field(expected, *counter);
            let changed: CounterSet = active.and(self.fixed()).iter().filter(is_changed).collect();
            if !changed.is_empty() {
                differs(changed, Disturbance { register: IA32_FIXED_CTR_CTRL.address(), found, expected });
            }
        }
        if self.has_global_control() {
            let (_, changed) = self.changes(cpu_counters.pmu, cpu.rdmsr(IA32_PERF_GLOBAL_CTRL));
            let status = if self.capabilities.ctr_frz() { cpu.rdmsr(IA32_PERF_GLOBAL_STATUS) } else { 0 };
            let stopped =
                freeze::compare(cpu, cpu_counters.pmu, self.capabilities).map(|disturbance| (active, disturbance));
            let all = changed.into_iter().chain(freeze::frozen(active, status)).chain(stopped);
            all.for_each(|(counters, disturbance)| differs(counters, disturbance));
        }
    }

    /// Also unmasks the LVT entry, which the processor masked when it delivered the interrupt. From version 2 on, the
    /// driver's counters stand still meanwhile.
    ///
    /// Version 1 cannot stop all counters at once. The entry is therefore unmasked before the first counter is read,
    /// because the interrupt of an overflow behind a masked entry may be lost.
    #[inline]
    fn serve<const SPECIAL: bool>(&self, cpu: &impl Cpu, pmu: &PerCpuPmu, interrupting: CounterSet) -> CounterSet {
        let emon = Self::with_capabilities(PmuCapabilities::from_bits(pmu.snapshot.capabilities()));
        if emon.has_global_control() {
            emon.serve_by_status::<SPECIAL>(cpu, pmu, interrupting)
        } else {
            lvt_pmi::unmask(cpu);
            emon.bank().serve::<SPECIAL>(cpu, pmu, interrupting)
        }
    }

    /// One read and one write; none in version 1.
    fn acknowledge(&self, cpu: &impl Cpu) {
        if self.has_global_control() {
            let status = cpu.rdmsr(IA32_PERF_GLOBAL_STATUS) & self.capabilities.clearable();
            cpu.wrmsr(IA32_PERF_GLOBAL_OVF_CTRL, status);
        }
    }

    /// One write for each general counter, and one for all fixed ones; none in version 1.
    fn disarm(&self, cpu: &impl Cpu, cpu_counters: CpuCounters<'_>, counters: CounterSet) {
        if self.has_global_control() {
            self.bank().clear_selects(cpu, counters.and(self.general()));
            if !counters.and(self.fixed()).is_empty() {
                cpu.wrmsr(
                    IA32_FIXED_CTR_CTRL,
                    fixed::control(self.capabilities, cpu_counters, cpu_counters.active.all),
                );
            }
        }
    }

    /// Costs one write, and one read, because the write would remove the traces of a program that changed the register;
    /// unfreezing costs another write.
    fn freeze(&self, cpu: &impl Cpu, cpu_counters: CpuCounters<'_>) {
        if self.has_global_control() && !cpu_counters.active.all.is_empty() {
            let control = self.checked_control(cpu, cpu_counters.pmu);
            cpu.wrmsr(IA32_PERF_GLOBAL_CTRL, control & !self.capabilities.own());
        }
    }

    fn unfreeze(&self, cpu: &impl Cpu, cpu_counters: CpuCounters<'_>) {
        if self.has_global_control() && !cpu_counters.active.all.is_empty() {
            cpu.wrmsr(IA32_PERF_GLOBAL_CTRL, cpu_counters.pmu.snapshot.control());
        }
    }

    fn release(&self, cpu: &impl Cpu, saved: SavedMsrs) {
        self.bank().clear(cpu);
        if !self.fixed().is_empty() {
            cpu.wrmsr(IA32_FIXED_CTR_CTRL, fixed::others(self.capabilities, saved.fixed));
        }
        if self.has_global_control() {
            cpu.wrmsr(IA32_PERF_GLOBAL_OVF_CTRL, self.capabilities.clearable());
            freeze::put_back(cpu, saved.freeze);
            cpu.wrmsr(IA32_PERF_GLOBAL_CTRL, saved.global);
        }
    }
}

impl Emon {
    /// The order matters. The LVT entry is unmasked after the status is cleared, because a set status bit may raise
    /// another interrupt then; and before the counters restart, because the interrupt of an overflow behind a masked
    /// entry may be lost.
    #[inline]
    fn serve_by_status<const SPECIAL: bool>(
        self,
        cpu: &impl Cpu,
        pmu: &PerCpuPmu,
        interrupting: CounterSet,
    ) -> CounterSet {
        let (mut control, own) = (pmu.snapshot.control(), self.capabilities.own());
        // The writes below would remove the traces of a program that changed the register.
        let found = cpu.rdmsr(IA32_PERF_GLOBAL_CTRL);
        if found != control {
            control = self.note_changes(pmu, found);
        }
        cpu.wrmsr(IA32_PERF_GLOBAL_CTRL, control & !own);
        let status = cpu.rdmsr(IA32_PERF_GLOBAL_STATUS) & self.capabilities.clearable();
        if GlobalStatus::from_bits(status).ctr_frz() {
            freeze::note_frozen(pmu, status);
        }
        let ours = self.counters_in(status).and(interrupting);
        unmanaged::reload_overflowed::<SPECIAL>(self, cpu, pmu, ours);
        // Also clears bits of counters that were stopped before their interrupt arrived, and those of frozen counters,
        // which would not count. Writes even if no bit is set: spurious interrupts are too rare for a branch.
        cpu.wrmsr(IA32_PERF_GLOBAL_OVF_CTRL, status);
        lvt_pmi::unmask(cpu);
        cpu.wrmsr(IA32_PERF_GLOBAL_CTRL, control);
        ours
    }

    /// Returns whether a fixed counter keeps a value written to it.
    fn fixed_readback_ok(self, cpu: &impl Cpu, counter: u8) -> bool {
        let Some(number) = self.number(counter) else { return true };
        unmanaged::readback_ok(cpu, IA32_FIXED_CTR0.at(number), unmanaged::COUNT)
    }
}
