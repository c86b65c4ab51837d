//! The table of functions of an [`Interface`]: each calls that of its variant. A match instead of a table of pointers,
//! because the handler makes no indirect call.

use super::{Enabled, Interface, ProfileInterface, Support};
use crate::constraints::Listing;
use crate::cpu::{Cpu, Msr};
use crate::disturbance::Disturbance;
use crate::first_access::{Faulted, FirstAccess, GuardedCpu};
use crate::placement::Wanted;
use crate::source::{ProfileSource, RawEvent};
use crate::state::{Active, CounterSet, CounterState, CpuCounters, FoundMsrs, PerCpuPmu, SavedMsrs};

macro_rules! each {
    ($self:ident, $interface:ident => $call:expr) => {
        match $self {
            Interface::Default($interface) => $call,
            Interface::Emon($interface) => $call,
            Interface::Amd64($interface) => $call,
            Interface::NetBurst($interface) => $call,
            Interface::P6($interface) => $call,
            Interface::Pentium($interface) => $call,
        }
    };
}

impl Interface {
    /// Serves an interrupt of a processor that is no longer made. Never inlined: the others would pay for it.
    #[cold]
    #[inline(never)]
    fn serve_old(&self, cpu: &impl Cpu, pmu: &PerCpuPmu, interrupting: CounterSet) -> CounterSet {
        each!(self, interface => interface.serve::<true>(cpu, pmu, interrupting))
    }
}

impl ProfileInterface for Interface {
    fn counters(&self) -> u8 {
        each!(self, interface => interface.counters())
    }

    fn width(&self) -> u8 {
        each!(self, interface => interface.width())
    }

    fn width_of(&self, counter: u8) -> u8 {
        each!(self, interface => interface.width_of(counter))
    }

    fn interrupts(&self) -> bool {
        each!(self, interface => interface.interrupts())
    }

    #[inline]
    fn read(&self, cpu: &impl Cpu, counter: u8) -> u64 {
        each!(self, interface => interface.read(cpu, counter))
    }

    fn counters_for(&self, source: &ProfileSource) -> CounterSet {
        each!(self, interface => interface.counters_for(source))
    }

    fn counters_in_state(&self, source: &ProfileSource, state: CounterState, all: CounterSet) -> CounterSet {
        each!(self, interface => interface.counters_in_state(source, state, all))
    }

    fn listing(&self, source: &ProfileSource) -> Listing {
        each!(self, interface => interface.listing(source))
    }

    fn merges(&self, source: &ProfileSource) -> bool {
        each!(self, interface => interface.merges(source))
    }

    fn assign(&self, cpu_counters: CpuCounters<'_>, wanted: &[Wanted], assigned: &mut [u8]) -> Result<(), usize> {
        each!(self, interface => interface.assign(cpu_counters, wanted, assigned))
    }

    fn preferred(&self, wanted: &Wanted) -> Option<CounterSet> {
        each!(self, interface => interface.preferred(wanted))
    }

    fn with_safe_interval(&self, cpu_counters: CpuCounters<'_>, state: CounterState) -> CounterState {
        each!(self, interface => interface.with_safe_interval(cpu_counters, state))
    }

    fn support(&self, source: &ProfileSource) -> Support {
        each!(self, interface => interface.support(source))
    }

    fn raw_counters(&self, source: &ProfileSource, event: RawEvent) -> Result<CounterSet, Support> {
        each!(self, interface => interface.raw_counters(source, event))
    }

    fn enabled(&self, cpu: &impl Cpu) -> Option<Enabled> {
        each!(self, interface => interface.enabled(cpu))
    }

    fn initialize(&self, cpu: &impl Cpu, found: FoundMsrs) -> SavedMsrs {
        each!(self, interface => interface.initialize(cpu, found))
    }

    fn readback_ok(&self, cpu: &impl Cpu) -> bool {
        each!(self, interface => interface.readback_ok(cpu))
    }

    fn excludes_smm(&self) -> bool {
        each!(self, interface => interface.excludes_smm())
    }

    fn present(&self) -> CounterSet {
        each!(self, interface => interface.present())
    }

    fn try_event(
        &self,
        first: &FirstAccess<'_, impl GuardedCpu>,
        cpu_counters: CpuCounters<'_>,
        counter: u8,
        state: CounterState,
    ) -> Result<(), Faulted> {
        each!(self, interface => interface.try_event(first, cpu_counters, counter, state))
    }

    fn forget(&self, cpu: &impl Cpu, counters: CounterSet) {
        each!(self, interface => interface.forget(cpu, counters));
    }

    fn enable(&self, cpu: &impl Cpu, cpu_counters: CpuCounters<'_>, counters: CounterSet) {
        each!(self, interface => interface.enable(cpu, cpu_counters, counters));
    }

    fn disable(&self, cpu: &impl Cpu, cpu_counters: CpuCounters<'_>, counters: CounterSet) {
        each!(self, interface => interface.disable(cpu, cpu_counters, counters));
    }

    fn check_overflow(&self, cpu: &impl Cpu, active: Active) -> CounterSet {
        each!(self, interface => interface.check_overflow(cpu, active))
    }

    fn counter_register(&self, cpu_counters: CpuCounters<'_>, counter: u8) -> Msr {
        each!(self, interface => interface.counter_register(cpu_counters, counter))
    }

    fn compare(&self, cpu: &impl Cpu, cpu_counters: CpuCounters<'_>, differs: impl FnMut(CounterSet, Disturbance)) {
        each!(self, interface => interface.compare(cpu, cpu_counters, differs));
    }

    #[inline]
    fn serve<const SPECIAL: bool>(&self, cpu: &impl Cpu, pmu: &PerCpuPmu, interrupting: CounterSet) -> CounterSet {
        match self {
            Self::Amd64(interface) => interface.serve::<SPECIAL>(cpu, pmu, interrupting),
            Self::Emon(interface) => interface.serve::<SPECIAL>(cpu, pmu, interrupting),
            _ => self.serve_old(cpu, pmu, interrupting),
        }
    }

    fn acknowledge(&self, cpu: &impl Cpu) {
        each!(self, interface => interface.acknowledge(cpu));
    }

    fn disarm(&self, cpu: &impl Cpu, cpu_counters: CpuCounters<'_>, counters: CounterSet) {
        each!(self, interface => interface.disarm(cpu, cpu_counters, counters));
    }

    fn freeze(&self, cpu: &impl Cpu, cpu_counters: CpuCounters<'_>) {
        each!(self, interface => interface.freeze(cpu, cpu_counters));
    }

    fn unfreeze(&self, cpu: &impl Cpu, cpu_counters: CpuCounters<'_>) {
        each!(self, interface => interface.unfreeze(cpu, cpu_counters));
    }

    fn release(&self, cpu: &impl Cpu, saved: SavedMsrs) {
        each!(self, interface => interface.release(cpu, saved));
    }
}
