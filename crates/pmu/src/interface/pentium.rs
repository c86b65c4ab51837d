//! The Pentium interface: two counters with one control register, without interrupts (HAL PMU design, section 1.2; SDM
//! Vol. 3B, "Performance Monitoring (Pentium Processors)").
//!
//! The counters count but cannot sample. RDPMC came only with MMX, so they are read as registers. None of these
//! processors ever ran a 64-bit Windows, so the code is tested only against the model.

mod sources;

use x86_defs::intel::pentium::{self, COUNTERS, Cesr, CesrHalf, WIDTH};

use super::{Enabled, ProfileInterface, Support};
use crate::cpu::{Cpu, Msr};
use crate::disturbance::Disturbance;
use crate::first_access::{Faulted, FirstAccess, GuardedCpu};
use crate::source::ProfileSource;
use crate::state::{Active, CounterSet, CounterState, CpuCounters, FoundMsrs, PerCpuPmu, SavedMsrs};

pub use sources::SOURCES;

const CESR: Msr = Msr::new(pentium::CESR);
const CTR0: Msr = Msr::new(pentium::CTR0);

/// Returns the half of CESR that starts a counter in this state.
fn half(state: CounterState) -> CesrHalf {
    let select = SOURCES.get(usize::from(state.event())).map_or(0, |source| source.select);
    CesrHalf::from_bits((select & 0xFFFF) as u16).with_user(state.user()).with_kernel(state.kernel())
}

/// Returns CESR with these counters on, as `cpu_counters` says.
fn cesr(cpu_counters: CpuCounters<'_>, counters: CounterSet) -> Cesr {
    let half = |counter| if counters.has(counter) { half(cpu_counters.get(counter)) } else { CesrHalf::new() };
    Cesr::new().with_counter0(half(0)).with_counter1(half(1))
}

/// Accesses every register for the first time.
pub(super) fn access_first(first: &FirstAccess<'_, impl GuardedCpu>) -> Result<(), Faulted> {
    first.trying(CESR, |_| {
        first.demand(CESR, SELECT)?;
        first.demand(CESR, 0)?;
        for counter in 0..COUNTERS {
            let counter = CTR0.at(counter);
            first.trying(counter, |_| first.demand(counter, COUNT).and_then(|()| first.demand(counter, 0)))?;
        }
        Ok(())
    })
}

/// An event in no mode.
const SELECT: u64 = 0x0000_0016;

/// Has bits above bit 31, which must be kept too.
const COUNT: u64 = 0x5A_2468_ACE1;

/// The Pentium interface.
#[derive(Debug, Clone, Copy)]
pub struct Pentium;

impl ProfileInterface for Pentium {
    fn counters(&self) -> u8 {
        COUNTERS
    }

    fn width(&self) -> u8 {
        WIDTH
    }

    fn interrupts(&self) -> bool {
        false
    }

    /// One RDMSR.
    fn read(&self, cpu: &impl Cpu, counter: u8) -> u64 {
        cpu.rdmsr(CTR0.at(counter))
    }

    /// Every processor of this interface supports the whole table.
    fn support(&self, _source: &ProfileSource) -> Support {
        Support::Supported
    }

    /// One read.
    fn enabled(&self, cpu: &impl Cpu) -> Option<Enabled> {
        let cesr = Cesr::from_bits(cpu.rdmsr(CESR));
        let counts = |counter: &u8| {
            let half = if *counter == 0 { cesr.counter0() } else { cesr.counter1() };
            half.user() || half.kernel()
        };
        let counter = (0..COUNTERS).find(counts)?;
        Some(Enabled { counter, register: CESR, value: cesr.into_bits() })
    }

    /// One write.
    fn initialize(&self, cpu: &impl Cpu, _found: FoundMsrs) -> SavedMsrs {
        cpu.wrmsr(CESR, 0);
        SavedMsrs::default()
    }

    /// The counter counts meanwhile: its modes are its enable flags. It does not interrupt.
    fn try_event(
        &self,
        first: &FirstAccess<'_, impl GuardedCpu>,
        _cpu_counters: CpuCounters<'_>,
        counter: u8,
        state: CounterState,
    ) -> Result<(), Faulted> {
        let found = Cesr::from_bits(first.read(CESR)?);
        let tried = if counter == 0 { found.with_counter0(half(state)) } else { found.with_counter1(half(state)) };
        first.try_value(CESR, tried.into_bits())
    }

    fn readback_ok(&self, cpu: &impl Cpu) -> bool {
        let readback_ok = |register, value| {
            cpu.wrmsr(register, value);
            let kept = cpu.rdmsr(register) == value;
            cpu.wrmsr(register, 0);
            kept
        };
        readback_ok(CESR, SELECT) && readback_ok(CTR0, COUNT)
    }

    /// One write for each counter, and one that starts all at once. The half of another counter is rewritten with its
    /// current value.
    fn enable(&self, cpu: &impl Cpu, cpu_counters: CpuCounters<'_>, counters: CounterSet) {
        for counter in counters.iter() {
            cpu.wrmsr(CTR0.at(counter), 0);
        }
        cpu.wrmsr(CESR, cesr(cpu_counters, cpu_counters.active.all.or(counters)).into_bits());
    }

    /// One write.
    fn disable(&self, cpu: &impl Cpu, cpu_counters: CpuCounters<'_>, counters: CounterSet) {
        cpu.wrmsr(CESR, cesr(cpu_counters, cpu_counters.active.all.without(counters)).into_bits());
    }

    fn counter_register(&self, _cpu_counters: CpuCounters<'_>, counter: u8) -> Msr {
        CTR0.at(counter)
    }

    /// One read.
    #[inline(never)]
    fn compare(&self, cpu: &impl Cpu, cpu_counters: CpuCounters<'_>, mut differs: impl FnMut(CounterSet, Disturbance)) {
        let (found, active) = (Cesr::from_bits(cpu.rdmsr(CESR)), cpu_counters.active.all);
        let ours = cesr(cpu_counters, active);
        // The half of a counter that is not active is not the driver's.
        let first = if active.has(0) { ours.counter0() } else { found.counter0() };
        let second = if active.has(1) { ours.counter1() } else { found.counter1() };
        let expected = Cesr::new().with_counter0(first).with_counter1(second);
        let halves = [(0, found.counter0() != first), (1, found.counter1() != second)];
        let changed = halves.into_iter().filter(|(_, is_changed)| *is_changed).map(|(counter, _)| counter).collect();
        if let Some(disturbance) = Disturbance::of(CESR, found.into_bits(), expected.into_bits()) {
            differs(changed, disturbance);
        }
    }

    fn check_overflow(&self, _cpu: &impl Cpu, _active: Active) -> CounterSet {
        CounterSet::NONE
    }

    #[inline]
    fn serve<const SPECIAL: bool>(&self, _cpu: &impl Cpu, _pmu: &PerCpuPmu, _interrupting: CounterSet) -> CounterSet {
        CounterSet::NONE
    }

    fn release(&self, cpu: &impl Cpu, _found: SavedMsrs) {
        cpu.wrmsr(CESR, 0);
    }
}
