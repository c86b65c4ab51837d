//! Fixed counter 3, which counts slots, and the metrics of the top-down method, which divide them: MSR_PERF_METRICS
//! (SDM Vol. 3B, "Performance Metrics"; the order of the writes: Linux, arch/x86/events/intel/core.c,
//! `icl_update_topdown_event`).
//!
//! Each byte of MSR_PERF_METRICS is a fraction of fixed counter 3 in units of 1/255. Both begin at zero together, the
//! counter is written first, and both are read together and cleared at each reading. So the two registers are one unit
//! with one owner and one choice of modes. Its events have indexes like counters, from that of fixed counter 3 on, but
//! none of them interrupts.
//!
//! Without such an event, the driver leaves the unit to other programs: its bits in the control registers stay as they
//! were found until it starts. After it stopped, IA32_FIXED_CTR_CTRL has the field that was found, and
//! IA32_PERF_GLOBAL_CTRL gets its bits back when the driver releases the counters.
//!
//! | | writes, reads, RDPMC |
//! |---|---|
//! | start | 3 W, beside that of IA32_PERF_GLOBAL_CTRL |
//! | read | 4 W, 2 P |
//! | stop | 1 W, 2 P, beside that of IA32_PERF_GLOBAL_CTRL |

use x86_defs::intel::perfmon::{self, FixedControl, GlobalCtrl, PerfCapabilities};

use super::capabilities::{MAX_FIXED, PmuCapabilities};
use super::{
    Emon, IA32_FIXED_CTR_CTRL, IA32_FIXED_CTR0, IA32_PERF_CAPABILITIES, IA32_PERF_GLOBAL_CTRL, Microarchitecture,
    fixed, hides_counters,
};
use crate::cpu::{Cpu, Msr};
use crate::disturbance::Disturbance;
use crate::first_access::{Faulted, FirstAccess, GuardedCpu};
use crate::interface::{Enabled, unmanaged};
use crate::placement::Wanted;
use crate::source::{ProfileSource, RawEvent};
use crate::state::{CounterSet, CounterState, CpuCounters, PerCpuPmu};

pub(super) const MSR_PERF_METRICS: Msr = Msr::new(perfmon::MSR_PERF_METRICS);

/// Number of the fixed counter of slots.
pub(super) const SLOTS: u8 = 3;

const _: () = assert!(SLOTS == MAX_FIXED, "the unit follows the fixed counters of the interface");

/// RDPMC index of fixed counter 3.
pub(super) const RDPMC_SLOTS: u32 = perfmon::RDPMC_FIXED | SLOTS as u32;

/// What lets the unit count in IA32_PERF_GLOBAL_CTRL.
pub(super) const GLOBAL: u64 = GlobalCtrl::new().with_fixed(1 << SLOTS).with_perf_metrics(true).into_bits();

/// The field of fixed counter 3 in IA32_FIXED_CTR_CTRL.
pub(super) const FIELD: u64 = FixedControl::ALL.to_register(SLOTS);

/// Both modes in that field.
pub(super) const MODES: u64 = FixedControl::new().with_os(true).with_usr(true).to_register(SLOTS);

/// Intel's pseudo-encodings: event 0, with unit mask 04H for slots and from 80H on for the metrics (event files,
/// TOPDOWN.SLOTS; Linux, arch/x86/events/perf_event.h, `INTEL_TD_METRIC_RETIRING`).
const EVENT: u16 = 0x00;
const SLOTS_UMASK: u16 = 0x04;
const FIRST_METRIC_UMASK: u16 = 0x80;

/// The most metrics that a register has.
const MOST: u8 = 8;

/// The whole of a fraction.
const WHOLE: u64 = 0xFF;

impl Microarchitecture {
    /// Returns the number of metrics: four of level 1, from Golden Cove on four of level 2 as well.
    pub(super) const fn metrics(self) -> u8 {
        match self {
            Self::IceLake => 4,
            Self::GoldenCove | Self::RedwoodCove | Self::LionCove | Self::CougarCove | Self::CoyoteCove => MOST,
            _ => 0,
        }
    }
}

/// The events of the unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Slots,
    /// A metric, by the number of its byte.
    Metric(u8),
}

impl Part {
    /// Returns the event of an encoding.
    const fn of(event: u16, umask: u16) -> Option<Self> {
        match (event, umask) {
            (EVENT, SLOTS_UMASK) => Some(Self::Slots),
            (EVENT, FIRST_METRIC_UMASK..) if umask < FIRST_METRIC_UMASK + MOST as u16 => {
                let [number, _] = umask.to_le_bytes();
                Some(Self::Metric(number % MOST))
            }
            _ => None,
        }
    }

    /// Returns its index, counted from that of fixed counter 0.
    const fn number(self) -> u8 {
        match self {
            Self::Slots => SLOTS,
            Self::Metric(metric) => SLOTS + 1 + metric,
        }
    }
}

/// Returns whether an event by number is one of the unit.
pub(crate) fn is_metric(event: RawEvent) -> bool {
    Part::of(event.event(), event.umask()).is_some()
}

/// What the unit has counted since it was last read.
#[derive(Debug, Clone, Copy)]
pub struct UnitCounts {
    /// Value of fixed counter 3.
    slots: u64,
    /// Value of MSR_PERF_METRICS.
    metrics: u64,
}

impl UnitCounts {
    /// Returns what the event with this index, counted from that of fixed counter 0, has counted.
    ///
    /// The count of a metric is `slots * fraction / 255`, rounded down. A fraction is rounded as well, so a reading is
    /// wrong by up to 1/255 of its slots and one more. The four metrics of level 1 then differ from the slots by up to
    /// 4/255 of them and 4.
    fn of(self, number: u8) -> u64 {
        match number.checked_sub(SLOTS + 1) {
            // 48 bits of slots and 8 of the fraction fit.
            Some(metric) => self.slots.saturating_mul(self.metrics >> (8 * u32::from(metric & 7)) & WHOLE) / WHOLE,
            None => self.slots,
        }
    }
}

impl PmuCapabilities {
    /// Returns the number of indexes of counters and of the unit.
    pub(super) const fn indexes(self) -> u8 {
        if self.slots() { self.count() + SLOTS + 1 + self.microarchitecture().metrics() } else { self.counters() }
    }

    /// Returns the indexes of the unit: slots, then the metrics.
    pub(super) const fn unit(self) -> CounterSet {
        if !self.slots() {
            return CounterSet::NONE;
        }
        CounterSet::first(self.indexes()).without(CounterSet::first(self.count() + SLOTS))
    }
}

impl Emon {
    /// Returns the number of indexes of counters, slots and metrics.
    pub(in crate::interface) const fn indexes(self) -> u8 {
        self.capabilities.indexes()
    }

    /// Returns the indexes of slots and of the metrics.
    #[must_use]
    pub const fn unit(self) -> CounterSet {
        self.capabilities.unit()
    }

    /// Returns the index of an event of the unit, as a set; `None` for other events.
    pub(super) fn unit_counter(self, source: &ProfileSource) -> Option<CounterSet> {
        let event = source.source.raw()?;
        let part = Part::of(event.event(), event.umask())?;
        Some(CounterSet::NONE.with(self.capabilities.count() + part.number()).and(self.unit()))
    }

    /// Checks that the events of the unit among `wanted` count in the same modes, and that no other owner has it.
    ///
    /// # Errors
    /// The index of an event that cannot have it.
    pub(super) fn check_unit(self, cpu_counters: CpuCounters<'_>, wanted: &[Wanted]) -> Result<(), usize> {
        let way = |state: CounterState| (state.owner(), state.user(), state.kernel());
        let holds = |counter: u8| cpu_counters.get(counter);
        let mut held = self.unit().iter().map(holds).find(|state| !state.is_free()).map(way);
        let differs = |Wanted { state, within }: &Wanted| {
            !within.and(self.unit()).is_empty() && *held.get_or_insert(way(*state)) != way(*state)
        };
        wanted.iter().position(differs).map_or(Ok(()), Err)
    }

    /// Accesses the registers of the unit for the first time. Returns the interface without the unit if the processor
    /// does not have the metrics.
    pub(crate) fn access_unit(self, first: &FirstAccess<'_, impl GuardedCpu>) -> Result<Self, Faulted> {
        if !self.capabilities.slots() {
            return Ok(self);
        }
        let found = PerfCapabilities::from_bits(first.read(IA32_PERF_CAPABILITIES)?);
        if !found.perf_metrics_available() && !hides_counters(first.cpuid()) {
            return Ok(Self { capabilities: self.capabilities.with_slots(false) });
        }
        let slots = IA32_FIXED_CTR0.at(SLOTS);
        // The metrics are written after the counter.
        first.trying(MSR_PERF_METRICS, |_| {
            first.trying(slots, |_| {
                first.counter(RDPMC_SLOTS)?;
                first.counter(perfmon::RDPMC_METRICS)?;
                // A counter that counts for another program, which only a forced session disturbs, does not keep the
                // value.
                if first.read(IA32_FIXED_CTR_CTRL)? & FIELD != 0 {
                    first.write(slots, 0)?;
                    return first.write(MSR_PERF_METRICS, 0);
                }
                // A register that ignores writes may read as zero.
                first.demand(slots, unmanaged::COUNT)?;
                first.demand(slots, 0)?;
                first.demand(MSR_PERF_METRICS, 0)
            })
        })?;
        Ok(self)
    }

    /// Returns what lets the unit count in both modes in IA32_FIXED_CTR_CTRL; 0 if there is no unit. Its bits are tried
    /// before any counter counts: other sessions write the registers at PROFILE_LEVEL.
    pub(super) const fn unit_field(self) -> u64 {
        if self.capabilities.slots() { MODES } else { 0 }
    }

    /// Returns what lets the unit count in IA32_PERF_GLOBAL_CTRL; 0 if there is no unit.
    pub(super) const fn unit_bits(self) -> u64 {
        if self.capabilities.slots() { GLOBAL } else { 0 }
    }

    /// Returns fixed counter 3 if another program has enabled it: one read, or none while the driver uses the unit.
    pub(crate) fn unit_in_use(self, cpu: &impl Cpu, pmu: &PerCpuPmu) -> Option<Enabled> {
        if self.unit().is_empty() || self.uses_unit(pmu) {
            return None;
        }
        let value = cpu.rdmsr(IA32_FIXED_CTR_CTRL);
        let counter = self.capabilities.count() + SLOTS;
        (value & FIELD != 0).then_some(Enabled { counter, register: IA32_FIXED_CTR_CTRL, value })
    }

    /// Returns whether the unit counts.
    fn uses_unit(self, pmu: &PerCpuPmu) -> bool {
        !pmu.active().all.and(self.unit()).is_empty()
    }

    /// Returns the bits of the unit in IA32_PERF_GLOBAL_CTRL while it counts.
    pub(super) fn unit_control(self, pmu: &PerCpuPmu) -> u64 {
        if self.uses_unit(pmu) { GLOBAL } else { 0 }
    }

    /// Starts the unit from zero with the modes of `counters`, if some of them are its events and none counts yet. The
    /// caller writes IA32_PERF_GLOBAL_CTRL from the snapshot. Returns whether IA32_FIXED_CTR_CTRL is to be written too.
    #[cold]
    #[inline(never)]
    pub(super) fn start_unit(self, cpu: &impl Cpu, cpu_counters: CpuCounters<'_>, counters: CounterSet) -> bool {
        let pmu = cpu_counters.pmu;
        let Some(first) = counters.and(self.unit()).iter().next().filter(|_| !self.uses_unit(pmu)) else {
            return false;
        };
        let control = pmu.snapshot.control();
        if control & GLOBAL != 0 {
            // Another program left it on: the metrics are right only if both are written while they stand still.
            cpu.wrmsr(IA32_PERF_GLOBAL_CTRL, control & !GLOBAL);
        }
        cpu.wrmsr(IA32_FIXED_CTR0.at(SLOTS), 0);
        cpu.wrmsr(MSR_PERF_METRICS, 0);
        let state = cpu_counters.get(first);
        let field = FixedControl::new().with_os(state.kernel()).with_usr(state.user()).to_register(SLOTS);
        pmu.snapshot.set_fixed_control(pmu.snapshot.fixed_control() & !FIELD | field);
        pmu.snapshot.set_control(control | GLOBAL);
        true
    }

    /// Reads the unit, and lets it go on from zero.
    pub fn read_unit(self, cpu: &impl Cpu, pmu: &PerCpuPmu) -> UnitCounts {
        let control = pmu.snapshot.control();
        cpu.wrmsr(IA32_PERF_GLOBAL_CTRL, control & !GLOBAL);
        let counts = Self::unit_counts(cpu);
        cpu.wrmsr(IA32_FIXED_CTR0.at(SLOTS), 0);
        cpu.wrmsr(MSR_PERF_METRICS, 0);
        cpu.wrmsr(IA32_PERF_GLOBAL_CTRL, control);
        counts
    }

    /// Lets the next write of IA32_PERF_GLOBAL_CTRL stop the unit. [`end_unit`](Self::end_unit) follows that write.
    pub fn leave_unit(self, pmu: &PerCpuPmu) {
        pmu.snapshot.set_control(pmu.snapshot.control() & !GLOBAL);
    }

    /// Reads the stopped unit, and writes its field of IA32_FIXED_CTR_CTRL as it was found.
    pub fn end_unit(self, cpu: &impl Cpu, cpu_counters: CpuCounters<'_>) -> UnitCounts {
        let (counts, snapshot) = (Self::unit_counts(cpu), &cpu_counters.pmu.snapshot);
        snapshot.set_fixed_control(snapshot.fixed_control() & !FIELD | snapshot.saved().fixed & FIELD);
        cpu.wrmsr(IA32_FIXED_CTR_CTRL, fixed::control(self.capabilities, cpu_counters, cpu_counters.active.all));
        counts
    }

    fn unit_counts(cpu: &impl Cpu) -> UnitCounts {
        UnitCounts { slots: cpu.rdpmc(RDPMC_SLOTS), metrics: cpu.rdpmc(perfmon::RDPMC_METRICS) }
    }

    /// Returns what the event of the unit with this index has counted.
    #[must_use]
    pub fn unit_count(self, counts: UnitCounts, counter: u8) -> u64 {
        counts.of(counter.saturating_sub(self.capabilities.count()))
    }

    /// Returns the register that has the value of an event of the unit.
    pub(super) fn unit_register(self, counter: u8) -> Msr {
        if counter == self.capabilities.count() + SLOTS { IA32_FIXED_CTR0.at(SLOTS) } else { MSR_PERF_METRICS }
    }

    /// Compares the field of fixed counter 3 in IA32_FIXED_CTR_CTRL, which contains `found`, with what the driver
    /// wrote. Returns as well the value to expect from then on.
    pub(super) fn unit_changes(self, pmu: &PerCpuPmu, found: u64) -> (u64, Option<(CounterSet, Disturbance)>) {
        if !self.uses_unit(pmu) {
            return (found, None);
        }
        let expected = found & !FIELD | pmu.snapshot.fixed_control() & FIELD;
        let counters = pmu.active().all.and(self.unit());
        let disturbance = Disturbance::of(IA32_FIXED_CTR_CTRL, found, expected);
        (expected, disturbance.map(|disturbance| (counters, disturbance)))
    }

    /// Returns the events of the unit that a change of these bits of IA32_PERF_GLOBAL_CTRL concerns.
    pub(super) fn unit_in(self, pmu: &PerCpuPmu, changed: u64) -> CounterSet {
        if changed & GLOBAL == 0 { CounterSet::NONE } else { pmu.active().all.and(self.unit()) }
    }
}
