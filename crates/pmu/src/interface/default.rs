//! The Default interface: no counters.

use super::{Enabled, ProfileInterface, Support};
use crate::cpu::{Cpu, Msr};
use crate::disturbance::Disturbance;
use crate::source::{ProfileSource, Source};
use crate::state::{Active, CounterSet, CpuCounters, FoundMsrs, PerCpuPmu, SavedMsrs};

/// ProfileTime alone (HAL interface selection, section 4).
pub const SOURCES: [ProfileSource; 1] = [ProfileSource { source: Source::TIME, name: "Time", select: 0 }];

/// The Default interface.
#[derive(Debug, Clone, Copy)]
pub struct Default;

impl ProfileInterface for Default {
    fn counters(&self) -> u8 {
        0
    }

    fn width(&self) -> u8 {
        0
    }

    fn support(&self, _source: &ProfileSource) -> Support {
        Support::Supported
    }

    fn enabled(&self, _cpu: &impl Cpu) -> Option<Enabled> {
        None
    }

    fn initialize(&self, _cpu: &impl Cpu, _found: FoundMsrs) -> SavedMsrs {
        SavedMsrs::default()
    }

    fn readback_ok(&self, _cpu: &impl Cpu) -> bool {
        true
    }

    fn enable(&self, _cpu: &impl Cpu, _row: CpuCounters<'_>, _counters: CounterSet) {}

    fn disable(&self, _cpu: &impl Cpu, _row: CpuCounters<'_>, _counters: CounterSet) {}

    fn check_overflow(&self, _cpu: &impl Cpu, _active: Active) -> CounterSet {
        CounterSet::NONE
    }

    fn counter_register(&self, _row: CpuCounters<'_>, _counter: u8) -> Msr {
        Msr::new(0)
    }

    fn compare(&self, _cpu: &impl Cpu, _row: CpuCounters<'_>, _differs: impl FnMut(CounterSet, Disturbance)) {}

    #[inline]
    fn serve<const SPECIAL: bool>(&self, _cpu: &impl Cpu, _pmu: &PerCpuPmu, _interrupting: CounterSet) -> CounterSet {
        CounterSet::NONE
    }

    fn release(&self, _cpu: &impl Cpu, _found: SavedMsrs) {}
}
