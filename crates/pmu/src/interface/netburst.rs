//! The NetBurst interface: Pentium 4 and Xeons of the same generation (HAL PMU design, sections 1.2 and 3.2; SDM Vol.
//! 3B, "Performance Monitoring (Processors Based on Intel NetBurst Microarchitecture)").
//!
//! A unit of the processor detects an event as configured in one of its two ESCRs. A counter that is wired to that ESCR
//! counts the event as configured in its own CCCR. Each counter is wired to one of the two ESCRs of any unit, its
//! column. The ESCR of a counter in use follows from its number and its event, so the state need not contain it.
//!
//! With Hyper-Threading, the two threads of a core share all these registers. Each thread uses only its own column, as
//! in Linux, so that neither writes registers of the other. The counters of the column are then numbered from 0, and
//! the thread determines the column.

mod assignment;
mod sources;

use bitfield_struct::bitfield;
use x86_defs::cpuid::{Leaf1Ebx, Leaf1Edx, Leaf4Eax, leaf};
use x86_defs::intel::misc_enable::MiscEnable;
use x86_defs::intel::netburst::{self, COUNTERS, Cccr, Escr, WIDTH};

use super::{Enabled, ProfileInterface, Support};
use crate::cpu::{Cpu, Cpuid, IA32_MISC_ENABLE, Msr};
use crate::disturbance::Disturbance;
use crate::first_access::{Faulted, FirstAccess, GuardedCpu};
use crate::lvt_pmi;
use crate::placement::Wanted;
use crate::source::ProfileSource;
use crate::state::{
    self, Active, CounterRegisters, CounterSet, CounterState, CpuCounters, FoundMsrs, PerCpuPmu, SavedMsrs,
};

use assignment::Layout;
use sources::{Event, Unit};

pub use sources::SOURCES;

const MSR_BPU_COUNTER0: Msr = Msr::new(netburst::MSR_BPU_COUNTER0);
const MSR_BPU_CCCR0: Msr = Msr::new(netburst::MSR_BPU_CCCR0);

/// Counters of each of two threads.
pub const THREAD_COUNTERS: u8 = 9;

const MASK: u64 = state::mask(WIDTH);

/// The counters of each column: two each of BPU, MS and FLAME, and three of IQ (SDM Vol. 3B, Table "Performance Counter
/// MSRs and Associated CCCR and ESCR MSRs").
const COLUMNS: [[u8; THREAD_COUNTERS as usize]; 2] = [[0, 1, 4, 5, 8, 9, 12, 13, 16], [2, 3, 6, 7, 10, 11, 14, 15, 17]];

/// The counters of the second column.
const SECOND_COLUMN: CounterSet = CounterSet::from_bits(0x2_CCCC);

/// Returns the ESCR that detects an event on a thread, as the state of its counter says.
const fn escr(event: Event, state: CounterState, thread: Thread) -> Escr {
    match thread {
        Thread::First => event.escr.with_t0_usr(state.user()).with_t0_os(state.kernel()),
        Thread::Second => event.escr.with_t1_usr(state.user()).with_t1_os(state.kernel()),
    }
}

/// Returns the CCCR that starts a counter of a thread, as its state says.
const fn cccr(event: Event, state: CounterState, thread: Thread) -> Cccr {
    let started = event.unit.cccr().with_enable(true);
    match thread {
        Thread::First => started.with_ovf_pmi_t0(state.interrupt()),
        Thread::Second => started.with_ovf_pmi_t1(state.interrupt()),
    }
}

/// A thread of a core; without Hyper-Threading always the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Thread {
    First,
    Second,
}

/// State of a processor at [`ProfileInterface::initialize`].
#[bitfield(u64)]
struct Standing {
    /// Whether performance monitoring is available.
    available: bool,
    /// Whether the processor is the second thread of its core.
    second: bool,
    #[bits(62)]
    __: u64,
}

impl Standing {
    const fn of(saved: SavedMsrs) -> Self {
        Self::from_bits(saved.global)
    }

    const fn thread(self) -> Thread {
        if self.second() { Thread::Second } else { Thread::First }
    }
}

/// The NetBurst interface of a processor.
#[derive(Debug, Clone, Copy)]
pub struct NetBurst {
    layout: Layout,
}

impl NetBurst {
    /// Creates the interface for the current processor; CPUID reports its threads.
    ///
    /// # IRQL
    /// Any.
    #[must_use]
    pub fn new(cpu: &impl Cpuid) -> Self {
        Self { layout: if is_threaded(cpu) { Layout::Threads } else { Layout::Whole } }
    }

    /// Returns the thread of the current processor: the lowest bit of its APIC ID (SDM Vol. 3A, "Hierarchical Mapping
    /// of Shared Resources").
    fn thread(self, cpu: &impl Cpuid) -> Thread {
        match self.layout {
            Layout::Threads if Leaf1Ebx::from_bits(cpu.cpuid(leaf::FEATURES, 0).ebx).initial_apic_id() & 1 == 1 => {
                Thread::Second
            }
            _ => Thread::First,
        }
    }

    /// Returns the number in the core of a thread's counter.
    fn of_core(self, thread: Thread, counter: u8) -> u8 {
        let [first, second] = &COLUMNS;
        let column = match (self.layout, thread) {
            (Layout::Whole, _) => return counter,
            (Layout::Threads, Thread::First) => first,
            (Layout::Threads, Thread::Second) => second,
        };
        column.get(usize::from(counter)).copied().unwrap_or(counter)
    }

    /// Returns whether each counter has the index of its counter of the core. The second thread of a core has others.
    pub(super) const fn has_own_indexes(self) -> bool {
        matches!(self.layout, Layout::Whole)
    }

    /// Accesses every register for the first time: IA32_MISC_ENABLE and, if performance monitoring is available, those
    /// of the current thread.
    pub(super) fn access_first(self, first: &FirstAccess<'_, impl GuardedCpu>) -> Result<(), Faulted> {
        if !MiscEnable::from_bits(first.read(IA32_MISC_ENABLE)?).perfmon_available() {
            return Ok(());
        }
        let thread = self.thread(first.cpuid());
        for counter in 0..self.counters() {
            let number = self.of_core(thread, counter);
            let cccr = MSR_BPU_CCCR0.at(number);
            first.trying(cccr, |_| {
                first.demand(cccr, ENABLED)?;
                first.demand(cccr, IDLE)?;
                first.demand(cccr, 0)?;
                let register = MSR_BPU_COUNTER0.at(number);
                first.trying(register, |_| {
                    first.counter(number.into())?;
                    try_load(first, register, COUNT).and_then(|()| try_load(first, register, 0))
                })
            })?;
        }
        self.escrs(thread).try_for_each(|escr| first.trying(escr, |_| first.demand(escr, 0)))
    }

    /// Returns both ESCRs of every unit in the table; for a thread, those of its column.
    fn escrs(self, thread: Thread) -> impl Iterator<Item = Msr> {
        let columns = match (self.layout, thread) {
            (Layout::Whole, _) => 0..2,
            (Layout::Threads, Thread::First) => 0..1,
            (Layout::Threads, Thread::Second) => 1..2,
        };
        Unit::ALL.into_iter().flat_map(move |unit| columns.clone().map(move |column| unit.escr(column)))
    }

    /// Clears the CCCRs of a thread's counters: one write each.
    fn clear(self, cpu: &impl Cpu, thread: Thread) {
        for counter in 0..self.counters() {
            cpu.wrmsr(MSR_BPU_CCCR0.at(self.of_core(thread, counter)), 0);
        }
    }

    /// Returns whether an active counter overflowed. The caller has read its CCCR; if the flag is clear, one RDPMC
    /// follows. The flag can be missed (Linux, `p4_pmu_clear_cccr_ovf`), but the counter has lost its top bit even
    /// then.
    fn has_overflowed(cccr: Cccr, cpu: &impl Cpu, counter: u8) -> bool {
        cccr.ovf() || cpu.rdpmc(u32::from(counter)) & state::top_bit(MASK) == 0
    }
}

/// Returns bit 7 of IA32_MISC_ENABLE.
fn is_available(cpu: &impl Cpu) -> bool {
    MiscEnable::from_bits(cpu.rdmsr(IA32_MISC_ENABLE)).perfmon_available()
}

/// Returns whether the cores of the current processor have two threads: more logical processors in the package
/// (CPUID.1:EBX\[23:16\], with HTT, EDX\[28\]) than cores (leaf 4, EAX\[31:26\] + 1).
fn is_threaded(cpu: &impl Cpuid) -> bool {
    let features = cpu.cpuid(leaf::FEATURES, 0);
    let cores = if cpu.cpuid(leaf::VENDOR, 0).eax >= leaf::CACHE_PARAMETERS {
        Leaf4Eax::from_bits(cpu.cpuid(leaf::CACHE_PARAMETERS, 0).eax).cores_minus_1() + 1
    } else {
        1
    };
    Leaf1Edx::from_bits(features.edx).htt() && Leaf1Ebx::from_bits(features.ebx).logical_processors() > cores
}

/// Loads a counter of the core twice: by erratum N15 the first write may have no effect (Linux, `p4_pmu_set_period`).
#[inline]
fn load(cpu: &impl Cpu, counter: u8, value: u64) {
    for _ in 0..2 {
        cpu.wrmsr(MSR_BPU_COUNTER0.at(counter), value);
    }
}

/// Tries to [load] a counter.
fn try_load(first: &FirstAccess<'_, impl GuardedCpu>, register: Msr, value: u64) -> Result<(), Faulted> {
    first.write(register, value)?;
    first.demand(register, value)
}

/// A CCCR that is not enabled.
const IDLE: u64 = Unit::Fsb.cccr().into_bits();

/// The flag that lets a counter count, without an event.
const ENABLED: u64 = Cccr::new().with_enable(true).into_bits();

/// Bit 31 is clear, and bits above it are set.
const COUNT: u64 = 0x5A_2468_ACE1;

impl ProfileInterface for NetBurst {
    fn counters(&self) -> u8 {
        match self.layout {
            Layout::Whole => COUNTERS,
            Layout::Threads => THREAD_COUNTERS,
        }
    }

    fn width(&self) -> u8 {
        WIDTH
    }

    /// One RDPMC; with Hyper-Threading also a CPUID, which identifies the thread.
    #[inline]
    fn read(&self, cpu: &impl Cpu, counter: u8) -> u64 {
        cpu.rdpmc(u32::from(self.of_core(self.thread(cpu), counter)))
    }

    fn counters_for(&self, source: &ProfileSource) -> CounterSet {
        Event::of_source(source).map_or(CounterSet::NONE, |event| self.layout.counters_of(event.unit))
    }

    fn assign(&self, cpu_counters: CpuCounters<'_>, wanted: &[Wanted], assigned: &mut [u8]) -> Result<(), usize> {
        assignment::assign(self.layout, cpu_counters, wanted, assigned)
    }

    /// Every processor of this interface supports the whole table.
    fn support(&self, _source: &ProfileSource) -> Support {
        Support::Supported
    }

    /// One read for each counter up to the enabled one, and one more.
    fn enabled(&self, cpu: &impl Cpu) -> Option<Enabled> {
        let thread = self.thread(cpu);
        let read = |counter| {
            let register = MSR_BPU_CCCR0.at(self.of_core(thread, counter));
            Enabled { counter, register, value: cpu.rdmsr(register) }
        };
        let mut all = (0..self.counters()).map(read);
        is_available(cpu).then(|| all.find(|enabled| Cccr::from_bits(enabled.value).enable())).flatten()
    }

    /// One read, and one write for each counter, or for each of the thread: the other thread's counters keep counting.
    fn initialize(&self, cpu: &impl Cpu, _found: FoundMsrs) -> SavedMsrs {
        let thread = self.thread(cpu);
        let available = is_available(cpu);
        if available {
            self.clear(cpu, thread);
        }
        let with_frozen = Standing::new().with_available(available).with_second(thread == Thread::Second);
        SavedMsrs { global: with_frozen.into_bits(), ..SavedMsrs::default() }
    }

    /// An ESCR that another counter uses too has the value already.
    fn try_event(
        &self,
        first: &FirstAccess<'_, impl GuardedCpu>,
        _cpu_counters: CpuCounters<'_>,
        counter: u8,
        state: CounterState,
    ) -> Result<(), Faulted> {
        let thread = self.thread(first.cpuid());
        let Some(event) = Event::of(state) else { return Ok(()) };
        let number = self.of_core(thread, counter);
        let column = u8::from(SECOND_COLUMN.has(number));
        first.try_value(event.unit.escr(column), escr(event, state, thread).into_bits())?;
        first.try_value(MSR_BPU_CCCR0.at(number), cccr(event, state, thread).with_enable(false).into_bits())?;
        let register = MSR_BPU_COUNTER0.at(number);
        let found = first.read(register)?;
        if !state.interrupt() {
            return Ok(());
        }
        first.restoring(register, found, || {
            let tried = try_load(first, register, MASK);
            first.write(register, found)?; // one write may have no effect, as in `load`
            tried
        })
    }

    fn readback_ok(&self, cpu: &impl Cpu) -> bool {
        if !is_available(cpu) {
            return false;
        }
        let counter = self.of_core(self.thread(cpu), 0);
        let (cccr, register) = (MSR_BPU_CCCR0.at(counter), MSR_BPU_COUNTER0.at(counter));
        cpu.wrmsr(cccr, IDLE);
        load(cpu, counter, COUNT);
        let kept = cpu.rdmsr(cccr) == IDLE && cpu.rdmsr(register) == COUNT;
        cpu.wrmsr(cccr, 0);
        load(cpu, counter, 0);
        kept
    }

    /// For each counter, in the order of the HAL PMU design: the ESCR, the counter twice, and the CCCR, which starts
    /// it: 4N writes. An ESCR that another counter uses too is rewritten with its current value.
    ///
    /// Never inlined: `Hal::start` inlines the other interfaces, and this one costs them registers there.
    #[inline(never)]
    fn enable(&self, cpu: &impl Cpu, cpu_counters: CpuCounters<'_>, counters: CounterSet) {
        let thread = Standing::of(cpu_counters.pmu.snapshot.saved()).thread();
        for counter in counters.iter() {
            let (state, number) = (cpu_counters.get(counter), self.of_core(thread, counter));
            if let Some(event) = Event::of(state) {
                let column = u8::from(SECOND_COLUMN.has(number));
                cpu.wrmsr(event.unit.escr(column), escr(event, state, thread).into_bits());
                let register = MSR_BPU_COUNTER0.at(number);
                let control = MSR_BPU_CCCR0.at(number);
                let place = CounterRegisters { register, control, index: number.into(), missing_bits: 64 - WIDTH };
                if let Some(started) = cpu_counters.pmu.started(counter) {
                    started.start(place, state);
                }
                load(cpu, number, state.initial_within(MASK));
                cpu.wrmsr(control, cccr(event, state, thread).into_bits());
            }
        }
    }

    /// Writes the CCCRs without enable and OVF_PMI flags, and without a pending OVF: N writes.
    fn disable(&self, cpu: &impl Cpu, cpu_counters: CpuCounters<'_>, counters: CounterSet) {
        let thread = Standing::of(cpu_counters.pmu.snapshot.saved()).thread();
        for counter in counters.iter() {
            if let Some(event) = Event::of(cpu_counters.get(counter)) {
                let cccr = MSR_BPU_CCCR0.at(self.of_core(thread, counter));
                cpu.wrmsr(cccr, event.unit.cccr().into_bits());
            }
        }
    }

    /// One read for each counter with an interval, and an RDPMC for each of them without OVF.
    fn check_overflow(&self, cpu: &impl Cpu, active: Active) -> CounterSet {
        let thread = self.thread(cpu);
        let overflowed = |counter: &u8| {
            let number = self.of_core(thread, *counter);
            Self::has_overflowed(Cccr::from_bits(cpu.rdmsr(MSR_BPU_CCCR0.at(number))), cpu, number)
        };
        active.interrupting.iter().filter(overflowed).collect()
    }

    fn counter_register(&self, cpu_counters: CpuCounters<'_>, counter: u8) -> Msr {
        let thread = Standing::of(cpu_counters.pmu.snapshot.saved()).thread();
        MSR_BPU_COUNTER0.at(self.of_core(thread, counter))
    }

    /// Two reads for each active counter: its CCCR, of which the processor itself changes OVF, and its ESCR.
    #[inline(never)]
    fn compare(&self, cpu: &impl Cpu, cpu_counters: CpuCounters<'_>, mut differs: impl FnMut(CounterSet, Disturbance)) {
        let thread = Standing::of(cpu_counters.pmu.snapshot.saved()).thread();
        for counter in cpu_counters.active.all.iter() {
            let (state, number) = (cpu_counters.get(counter), self.of_core(thread, counter));
            let Some(event) = Event::of(state) else { continue };
            let control = MSR_BPU_CCCR0.at(number);
            let found = Cccr::from_bits(cpu.rdmsr(control));
            let expected = cccr(event, state, thread).with_ovf(found.ovf());
            let selector = event.unit.escr(u8::from(SECOND_COLUMN.has(number)));
            let of_escr = Disturbance::of(selector, cpu.rdmsr(selector), escr(event, state, thread).into_bits());
            for disturbance in
                Disturbance::of(control, found.into_bits(), expected.into_bits()).into_iter().chain(of_escr)
            {
                differs(CounterSet::NONE.with(counter), disturbance);
            }
        }
    }

    /// One read for each counter with an interval, and an RDPMC for each of them without OVF; three writes and an RDPMC
    /// for each that overflowed. One whose count must miss nothing stands still from the write that clears its OVF
    /// until it is loaded, as in a bank, and takes a read and a write more.
    ///
    /// The LVT entry is unmasked after every OVF is clear, because OVF asserts the interrupt line; and before a counter
    /// runs again, because the interrupt of an overflow behind a masked entry may be lost. A counter that overflows
    /// between the check of its OVF and the unmasking waits for the next interrupt or tick.
    #[inline]
    fn serve<const SPECIAL: bool>(&self, cpu: &impl Cpu, pmu: &PerCpuPmu, interrupting: CounterSet) -> CounterSet {
        let (mut served, mut stopped) = (CounterSet::NONE, CounterSet::NONE);
        let thread = Standing::of(pmu.snapshot.saved()).thread();
        for (counter, started) in pmu.started_of(interrupting) {
            let number = self.of_core(thread, counter);
            let register = MSR_BPU_CCCR0.at(number);
            let cccr = Cccr::from_bits(cpu.rdmsr(register));
            if Self::has_overflowed(cccr, cpu, number) {
                // One that another program stopped stays so: the next comparison finds that.
                let stops = cccr.enable() && started.beyond().counted();
                cpu.wrmsr(register, cccr.with_ovf(false).with_enable(cccr.enable() && !stops).into_bits());
                served = served.with(counter);
                stopped = if stops { stopped.with(counter) } else { stopped };
            }
        }
        lvt_pmi::unmask(cpu);
        for (counter, started) in pmu.started_of(served) {
            let (value, initial) = (cpu.rdpmc(started.index()), started.initial());
            let number = self.of_core(thread, counter);
            load(cpu, number, initial);
            if stopped.has(counter) {
                let cccr = Cccr::from_bits(cpu.rdmsr(started.control()));
                cpu.wrmsr(started.control(), cccr.with_enable(true).into_bits());
            }
            started.overflowed(value, initial);
        }
        served
    }

    /// Clears every CCCR, and every ESCR of the units in the table; for a thread, those of its column.
    fn release(&self, cpu: &impl Cpu, saved: SavedMsrs) {
        let saved = Standing::of(saved);
        if !saved.available() {
            return;
        }
        self.clear(cpu, saved.thread());
        self.escrs(saved.thread()).for_each(|escr| cpu.wrmsr(escr, 0));
    }
}
