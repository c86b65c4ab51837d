//! The P6 interface: Pentium Pro, II, III and Pentium M (HAL PMU design, sections 1.2 and 3.2; SDM Vol. 3B,
//! "Performance Monitoring (P6 Family Processor)").
//!
//! Two counters with one select register each; the enable flag of the first register enables both. None of these
//! processors ever ran a 64-bit Windows, so the code is tested only against the model.

mod sources;

use x86_defs::intel::p6::{self, COUNTERS, PerfEvtSel, WIDTH};

use super::unmanaged::{self, Bank, Counters};
use super::{Enabled, ProfileInterface, Support};
use crate::constraints::tables;
use crate::cpu::{Cpu, Msr};
use crate::disturbance::Disturbance;
use crate::first_access::{Faulted, FirstAccess, GuardedCpu};
use crate::lvt_pmi;
use crate::source::{ProfileSource, RawEvent, Sources};
use crate::state::{self, Active, CounterSet, CounterState, CpuCounters, FoundMsrs, PerCpuPmu, SavedMsrs};

pub use sources::SOURCES;

const PERF_EVT_SEL0: Msr = Msr::new(p6::PERF_EVT_SEL0);
const PERF_CTR0: Msr = Msr::new(p6::PERF_CTR0);

const BANK: Bank = Bank {
    selects: PERF_EVT_SEL0,
    counters: PERF_CTR0,
    stride: 1,
    all: CounterSet::first(COUNTERS),
    top_bit: state::top_bit(state::mask(WIDTH)),
};

/// All counters.
const ALL: CounterSet = CounterSet::first(COUNTERS);

/// The first counter; its select register has the enable flag of both counters.
const FIRST: CounterSet = CounterSet::NONE.with(0);

/// Counts nothing itself, but lets both counters count.
const OPEN: PerfEvtSel = PerfEvtSel::new().with_en(true);

/// Returns what starts a counter as its state says, once EN is set.
fn started(cpu_counters: CpuCounters<'_>, counter: u8) -> PerfEvtSel {
    started_in(cpu_counters, cpu_counters.get(counter))
}

/// Returns the same for a counter in this state.
fn started_in(cpu_counters: CpuCounters<'_>, state: CounterState) -> PerfEvtSel {
    PerfEvtSel::from_bits(cpu_counters.select_of(Sources::new(&SOURCES), state))
        .with_usr(state.user())
        .with_os(state.kernel())
        .with_int(state.interrupt())
}

const fn counts(select: PerfEvtSel) -> bool {
    select.usr() || select.os()
}

/// Accesses every register for the first time. The enable flag of the first select register is clear meanwhile: it lets
/// the second counter count, which then would not keep the value that is tried.
pub(super) fn access_first(first: &FirstAccess<'_, impl GuardedCpu>) -> Result<(), Faulted> {
    first.trying(PERF_EVT_SEL0, |_| {
        first.write(PERF_EVT_SEL0, 0)?;
        BANK.access_first(first, FIRST)
    })
}

/// The P6 interface.
#[derive(Debug, Clone, Copy)]
pub struct P6;

impl ProfileInterface for P6 {
    fn counters(&self) -> u8 {
        COUNTERS
    }

    fn width(&self) -> u8 {
        WIDTH
    }

    fn counters_for(&self, source: &ProfileSource) -> CounterSet {
        let select = PerfEvtSel::from_bits(source.select);
        let class = tables::P6.find(select.event_select().into(), select.umask().into(), false);
        class.map_or(ALL, |class| class.counters().and(ALL))
    }

    /// Every processor of this interface supports the whole table.
    fn support(&self, _source: &ProfileSource) -> Support {
        Support::Supported
    }

    /// Event numbers have 8 bits.
    fn raw_counters(&self, source: &ProfileSource, event: RawEvent) -> Result<CounterSet, Support> {
        match super::lacks_version_6(event, false, false) {
            _ if event.event() > 0xFF => Err(Support::NoSuchEvent),
            Some(lack) => Err(lack),
            None => Ok(self.counters_for(source)),
        }
    }

    /// One read, and a second one if the enable flag is set and the first counter is idle.
    fn enabled(&self, cpu: &impl Cpu) -> Option<Enabled> {
        let read = |counter| PerfEvtSel::from_bits(cpu.rdmsr(PERF_EVT_SEL0.at(counter)));
        let is_open = read(0).en();
        let mut all = (0..COUNTERS).map(|counter| (counter, read(counter)));
        let (counter, select) = all.find(|(_, select)| is_open && counts(*select))?;
        Some(Enabled { counter, register: PERF_EVT_SEL0.at(counter), value: select.into_bits() })
    }

    /// Two writes.
    fn initialize(&self, cpu: &impl Cpu, _found: FoundMsrs) -> SavedMsrs {
        BANK.clear(cpu);
        SavedMsrs::default()
    }

    /// The first counter counts meanwhile if the second one does: they have one enable flag.
    fn try_event(
        &self,
        first: &FirstAccess<'_, impl GuardedCpu>,
        cpu_counters: CpuCounters<'_>,
        counter: u8,
        state: CounterState,
    ) -> Result<(), Faulted> {
        let register = PERF_EVT_SEL0.at(counter);
        let found = PerfEvtSel::from_bits(first.read(register)?);
        first.try_value(register, started_in(cpu_counters, state).with_en(found.en()).into_bits())?;
        Counters::try_interval(BANK, first, counter, state)
    }

    fn readback_ok(&self, cpu: &impl Cpu) -> bool {
        BANK.readback_ok(cpu)
    }

    /// 2N writes, the first select register last, because it enables both counters; and one more to set its flag if
    /// only the second counter counts.
    fn enable(&self, cpu: &impl Cpu, cpu_counters: CpuCounters<'_>, counters: CounterSet) {
        for counter in counters.iter() {
            BANK.start(cpu, cpu_counters, counter);
        }
        if counters.has(1) {
            cpu.wrmsr(PERF_EVT_SEL0.at(1), started(cpu_counters, 1).into_bits());
        }
        if counters.has(0) {
            cpu.wrmsr(PERF_EVT_SEL0, started(cpu_counters, 0).with_en(true).into_bits());
        } else if cpu_counters.active.all.is_empty() {
            cpu.wrmsr(PERF_EVT_SEL0, OPEN.into_bits());
        }
    }

    /// N writes; and one more to clear the flag if only the second counter was active.
    fn disable(&self, cpu: &impl Cpu, cpu_counters: CpuCounters<'_>, counters: CounterSet) {
        let left = cpu_counters.active.all.without(counters);
        BANK.clear_selects(cpu, counters.without(FIRST));
        if left.is_empty() {
            BANK.clear_selects(cpu, FIRST);
        } else if counters.has(0) {
            cpu.wrmsr(PERF_EVT_SEL0, OPEN.into_bits());
        }
    }

    /// One RDPMC for each counter with an interval.
    fn check_overflow(&self, cpu: &impl Cpu, active: Active) -> CounterSet {
        unmanaged::overflowed(cpu, active.interrupting, BANK.top_bit)
    }

    fn counter_register(&self, _cpu_counters: CpuCounters<'_>, counter: u8) -> Msr {
        PERF_CTR0.at(counter)
    }

    /// One read for each active counter, and one more if only the second one is active. The first select register
    /// concerns both counters if it differs in the flag that enables both.
    #[inline(never)]
    fn compare(&self, cpu: &impl Cpu, cpu_counters: CpuCounters<'_>, mut differs: impl FnMut(CounterSet, Disturbance)) {
        let active = cpu_counters.active.all;
        let found = PerfEvtSel::from_bits(cpu.rdmsr(PERF_EVT_SEL0));
        let expected = if active.has(0) { started(cpu_counters, 0).with_en(true) } else { found.with_en(true) };
        if let Some(disturbance) = Disturbance::of(PERF_EVT_SEL0, found.into_bits(), expected.into_bits()) {
            differs(if found.en() { FIRST } else { active }, disturbance);
        }
        if active.has(1) {
            let (register, expected) = (PERF_EVT_SEL0.at(1), started(cpu_counters, 1).into_bits());
            if let Some(disturbance) = Disturbance::of(register, cpu.rdmsr(register), expected) {
                differs(CounterSet::NONE.with(1), disturbance);
            }
        }
    }

    /// As a bank. The LVT entry is unmasked first, as in version 1 of Emon.
    #[inline]
    fn serve<const SPECIAL: bool>(&self, cpu: &impl Cpu, pmu: &PerCpuPmu, interrupting: CounterSet) -> CounterSet {
        lvt_pmi::unmask(cpu);
        BANK.serve::<SPECIAL>(cpu, pmu, interrupting)
    }

    fn release(&self, cpu: &impl Cpu, _found: SavedMsrs) {
        BANK.clear(cpu);
    }
}
