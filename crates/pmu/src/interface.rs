//! Profile interfaces: the HAL's private table of functions that hides hardware differences (HAL PMU design, section
//! 3.2).

pub mod amd64;
pub mod default;
mod dispatch;
pub mod emon;
pub mod netburst;
pub mod p6;
pub mod pentium;
mod support;
mod unmanaged;

use crate::constraints::Listing;
use crate::cpu::{Cpu, Cpuid, Msr};
use crate::disturbance::Disturbance;
use crate::first_access::{Faulted, FirstAccess, GuardedCpu};
use crate::interface::emon::Recorders;
use crate::placement::{self, Wanted};
use crate::source::{ProfileSource, RawEvent, Source, Sources};
use crate::state::{Active, CounterSet, CounterState, CpuCounters, FoundMsrs, PerCpuPmu, SavedMsrs};
use support::lacks_version_6;

pub use support::Support;

/// Kind of profile interface. The protocol uses these numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Kind {
    /// No counters, only ProfileTime.
    Default = 0,
    /// Intel's architectural performance monitoring.
    Emon = 1,
    /// AMD's performance counters.
    Amd64 = 2,
    /// Pentium 4 and Xeons of the same generation.
    NetBurst = 3,
    /// Pentium Pro, II, III and Pentium M.
    P6 = 4,
    /// The original Pentium, with or without MMX.
    Pentium = 5,
}

impl Kind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; 6] = [Self::Default, Self::Emon, Self::Amd64, Self::NetBurst, Self::P6, Self::Pentium];

    /// Returns the name: from the HAL's symbol files, or Intel's name for an interface that the HAL lacks.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Default => "Default",
            Self::Emon => "Emon",
            Self::Amd64 => "Amd64",
            Self::NetBurst => "NetBurst",
            Self::P6 => "P6",
            Self::Pentium => "Pentium",
        }
    }

    /// Returns the interface's table of sources, as in docs/hal-spec. [`Interface::sources`] returns that of the
    /// processor.
    #[must_use]
    pub const fn sources(self) -> &'static [ProfileSource] {
        match self {
            Self::Default => &default::SOURCES,
            Self::Emon => &emon::SOURCES,
            Self::Amd64 => &amd64::SOURCES,
            Self::NetBurst => &netburst::SOURCES,
            Self::P6 => &p6::SOURCES,
            Self::Pentium => &pentium::SOURCES,
        }
    }
}

/// A counter that is enabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Enabled {
    /// Index of the counter.
    pub counter: u8,
    /// Register that enables it.
    pub register: Msr,
    /// Value of that register.
    pub value: u64,
}

/// HalpProfileInterface: operations that every interface implements with its own registers.
///
/// The functions that take a [`Cpu`] act on the current processor, with its own `cpu_counters`. None of them fails,
/// allocates or waits.
///
/// # IRQL
/// PROFILE_LEVEL for functions that take a [`Cpu`].
pub trait ProfileInterface {
    /// Returns the number of counters per processor, at most [`CounterSet::MOST`].
    fn counters(&self) -> u8;

    /// Returns the counter width in bits; if widths differ, that of most counters.
    fn width(&self) -> u8;

    /// Returns the width of this counter in bits.
    fn width_of(&self, counter: u8) -> u8 {
        let _ = counter;
        self.width()
    }

    /// Returns whether counters interrupt on overflow. If not, they are never given an interval.
    fn interrupts(&self) -> bool {
        true
    }

    /// Reads a counter: one RDPMC, if the processor has it.
    #[inline]
    fn read(&self, cpu: &impl Cpu, counter: u8) -> u64 {
        cpu.rdpmc(u32::from(counter))
    }

    /// Returns the counters that can count the event of a table entry.
    fn counters_for(&self, source: &ProfileSource) -> CounterSet {
        let _ = source;
        CounterSet::first(self.counters())
    }

    /// Returns the counters that can count the event of a table entry in this state: in its modes, and precisely if it
    /// is precise. `all` are those that [can count it](Self::counters_for).
    fn counters_in_state(&self, source: &ProfileSource, state: CounterState, all: CounterSet) -> CounterSet {
        let _ = source;
        if state.precise() { CounterSet::NONE } else { all }
    }

    /// Returns whether the counters of a source are known.
    fn listing(&self, source: &ProfileSource) -> Listing {
        let _ = source;
        Listing::Known
    }

    /// Returns whether a source takes two counters, which are merged.
    fn merges(&self, source: &ProfileSource) -> bool {
        let _ = source;
        false
    }

    /// Assigns a counter that is free in `cpu_counters` to each of `wanted`, all of which may have only counters that
    /// [count them](Self::counters_in_state), and writes it to the same index of `assigned`. It considers all of them
    /// together.
    ///
    /// # Errors
    /// The index of an event without a counter. No other assignment would serve all events.
    fn assign(&self, cpu_counters: CpuCounters<'_>, wanted: &[Wanted], assigned: &mut [u8]) -> Result<(), usize> {
        placement::assign_wanted(cpu_counters.counters(CounterState::is_free), CounterSet::NONE, wanted, assigned)
    }

    /// Returns the counters that [`assign`](Self::assign) prefers for an event, if the event may have any counter of
    /// its own beside others that have theirs. `None` if its counter depends on those of others in another way.
    fn preferred(&self, wanted: &Wanted) -> Option<CounterSet> {
        let _ = wanted;
        None
    }

    /// Returns the state with an interval that the processor counts correctly: the same, or a slightly shorter one.
    fn with_safe_interval(&self, cpu_counters: CpuCounters<'_>, state: CounterState) -> CounterState {
        let _ = cpu_counters;
        state
    }

    /// QueryInformation: returns whether the processor has the event of a table entry.
    fn support(&self, source: &ProfileSource) -> Support;

    /// Returns the counters that can [count](Self::counters_for) a source, which is this raw event.
    ///
    /// # Errors
    /// Why the processor does not have the event.
    fn raw_counters(&self, source: &ProfileSource, event: RawEvent) -> Result<CounterSet, Support> {
        let _ = (source, event);
        Err(Support::NoRawEvents)
    }

    /// Returns a counter that is enabled before [`initialize`](Self::initialize), and so belongs to another program.
    fn enabled(&self, cpu: &impl Cpu) -> Option<Enabled>;

    /// InitializeProfiling: prepares the registers for [`enable`](Self::enable), with all counters off. Returns the
    /// values that [`release`](Self::release) restores: those of `found`, which the guarded accesses have tried. What a
    /// wake leaves in a register may be what a hypervisor refuses, so no bit of it is written back.
    fn initialize(&self, cpu: &impl Cpu, found: FoundMsrs) -> SavedMsrs;

    /// Returns whether the counters keep values written to them, which detects a hypervisor that only pretends to have
    /// the registers. Requires [`initialize`](Self::initialize).
    fn readback_ok(&self, cpu: &impl Cpu) -> bool;

    /// Returns whether the counters stand still in System Management Mode.
    fn excludes_smm(&self) -> bool {
        false
    }

    /// Returns the indexes of the counters that work.
    fn present(&self) -> CounterSet {
        CounterSet::first(self.counters())
    }

    /// Tries what a start of `counter`, which stands still, will write for this state, except what lets it count, and
    /// restores the registers. The caller may have other counters running.
    ///
    /// # Errors
    /// The fault, or the value that a register does not keep.
    ///
    /// # IRQL
    /// Below DISPATCH_LEVEL.
    fn try_event(
        &self,
        first: &FirstAccess<'_, impl GuardedCpu>,
        cpu_counters: CpuCounters<'_>,
        counter: u8,
        state: CounterState,
    ) -> Result<(), Faulted> {
        let _ = (first, cpu_counters, counter, state);
        Ok(())
    }

    /// Discards the overflows of counters that are stopped, so that the next interrupt does not report them. Does
    /// nothing if the counter's value shows its overflow, because loading it discards that.
    fn forget(&self, cpu: &impl Cpu, counters: CounterSet) {
        let _ = (cpu, counters);
    }

    /// EnableMonitoring: loads `counters` by their states in `cpu_counters` and starts them. Counters that are active
    /// there keep counting.
    fn enable(&self, cpu: &impl Cpu, cpu_counters: CpuCounters<'_>, counters: CounterSet);

    /// DisableMonitoring: stops `counters`. Other active counters of `cpu_counters` keep counting.
    fn disable(&self, cpu: &impl Cpu, cpu_counters: CpuCounters<'_>, counters: CounterSet);

    /// CheckOverflowStatus: returns the active counters with an interval that have overflowed.
    fn check_overflow(&self, cpu: &impl Cpu, active: Active) -> CounterSet;

    /// Returns the register that has the value of a counter.
    fn counter_register(&self, cpu_counters: CpuCounters<'_>, counter: u8) -> Msr;

    /// Compares the registers of the active counters of `cpu_counters` with the values that
    /// [`enable`](Self::enable) wrote. Passes each register that differs in bits of the driver to `differs`, with the
    /// counters that it concerns. Bits of other programs are noted, so that later writes keep them. The driver must own
    /// the registers.
    fn compare(&self, cpu: &impl Cpu, cpu_counters: CpuCounters<'_>, differs: impl FnMut(CounterSet, Disturbance));

    /// Serves a performance monitor interrupt of the processor with this state. The interface of any processor serves
    /// all, because the state has the capabilities of its processor. Finds the `interrupting` counters that overflowed,
    /// accounts and reloads each. It acknowledges the status register, whatever it reports about the driver's counters,
    /// and unmasks the LVT entry if the processor masked it. Returns the overflowed counters; none if the interrupt was
    /// late or belongs to other software. The driver must own the registers.
    ///
    /// Compiled for the common interrupt and again for all else, so that the handler of the common one makes no call.
    fn serve<const SPECIAL: bool>(&self, cpu: &impl Cpu, pmu: &PerCpuPmu, interrupting: CounterSet) -> CounterSet;

    /// Clears the status bits of the driver's counters. The driver must own the registers.
    fn acknowledge(&self, cpu: &impl Cpu) {
        let _ = cpu;
    }

    /// Clears the interrupt enable bits of `counters`, which are stopped, if [`disable`](Self::disable) leaves them
    /// set.
    fn disarm(&self, cpu: &impl Cpu, cpu_counters: CpuCounters<'_>, counters: CounterSet) {
        let _ = (cpu, cpu_counters, counters);
    }

    /// Stops all active counters until [`unfreeze`](Self::unfreeze), if one register controls all of them.
    fn freeze(&self, cpu: &impl Cpu, cpu_counters: CpuCounters<'_>) {
        let _ = (cpu, cpu_counters);
    }

    /// Restarts the counters that [`freeze`](Self::freeze) stopped.
    fn unfreeze(&self, cpu: &impl Cpu, cpu_counters: CpuCounters<'_>) {
        let _ = (cpu, cpu_counters);
    }

    /// Stops all counters, clears their select registers, and restores the values that [`initialize`](Self::initialize)
    /// found.
    fn release(&self, cpu: &impl Cpu, saved: SavedMsrs);
}

/// MAX_HW_COUNTERS (ntddk.h): the number of counters that thread profiling reads at most.
pub const THREAD_COUNTERS: u8 = 16;

/// A profile interface with the capabilities of a processor.
// With a tag of its own: to find the variant in a field of another one costs each interrupt four instructions.
#[derive(Debug, Clone, Copy)]
#[repr(u8)]
pub enum Interface {
    /// See [`default`].
    Default(default::Default),
    /// See [`emon`].
    Emon(emon::Emon),
    /// See [`amd64`].
    Amd64(amd64::Amd64),
    /// See [`netburst`].
    NetBurst(netburst::NetBurst),
    /// See [`p6`].
    P6(p6::P6),
    /// See [`pentium`].
    Pentium(pentium::Pentium),
}

impl Interface {
    /// Creates an interface of this kind for the current processor, from CPUID.
    ///
    /// # IRQL
    /// Any.
    #[must_use]
    pub fn new(kind: Kind, cpu: &impl Cpuid) -> Self {
        match kind {
            Kind::Default => Self::Default(default::Default),
            Kind::Emon => Self::Emon(emon::Emon::new(cpu)),
            Kind::Amd64 => Self::Amd64(amd64::Amd64::new(cpu)),
            Kind::NetBurst => Self::NetBurst(netburst::NetBurst::new(cpu)),
            Kind::P6 => Self::P6(p6::P6),
            Kind::Pentium => Self::Pentium(pentium::Pentium),
        }
    }

    /// Returns the kind.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Default(_) => Kind::Default,
            Self::Emon(_) => Kind::Emon,
            Self::Amd64(_) => Kind::Amd64,
            Self::NetBurst(_) => Kind::NetBurst,
            Self::P6(_) => Kind::P6,
            Self::Pentium(_) => Kind::Pentium,
        }
    }

    /// Returns the version of architectural performance monitoring, or 0.
    #[must_use]
    pub const fn pmu_version(&self) -> u8 {
        match self {
            Self::Emon(emon) => emon.version(),
            _ => 0,
        }
    }

    /// Returns the number of counters that exist: [`counters`](ProfileInterface::counters) without those that are left
    /// out.
    #[must_use]
    pub fn countable(&self) -> u8 {
        (self.all().len() & 0xFF) as u8
    }

    /// Returns the counters that exist, by their indexes.
    #[must_use]
    pub fn all(&self) -> CounterSet {
        match self {
            Self::Emon(emon) => emon.general().or(emon.fixed()),
            _ => CounterSet::first(self.counters()),
        }
    }

    /// Returns the fixed counters, by their indexes.
    #[must_use]
    pub const fn fixed(&self) -> CounterSet {
        match self {
            Self::Emon(emon) => emon.fixed(),
            _ => CounterSet::NONE,
        }
    }

    /// Returns the number by which the processor knows a fixed counter; `None` for a general one.
    #[must_use]
    pub const fn fixed_number(&self, counter: u8) -> Option<u8> {
        match self {
            Self::Emon(emon) => emon.number(counter),
            _ => None,
        }
    }

    /// Returns whether a register may let the counters stand still in System Management Mode.
    #[must_use]
    pub const fn may_exclude_smm(&self) -> bool {
        match self {
            Self::Emon(emon) => emon.capabilities().debug_control(),
            _ => false,
        }
    }

    /// Returns the number of fixed counters.
    #[must_use]
    pub const fn fixed_counters(&self) -> u8 {
        match self {
            Self::Emon(emon) => (emon.capabilities().fixed().count_ones() & 0xF) as u8,
            _ => 0,
        }
    }

    /// Returns the table of sources for this processor.
    #[must_use]
    pub const fn sources(&self) -> Sources {
        match self {
            Self::Amd64(amd64) => amd64.sources(),
            Self::Default(_) => Sources::new(Kind::Default.sources()),
            Self::Emon(_) => Sources::new(Kind::Emon.sources()),
            Self::NetBurst(_) => Sources::new(Kind::NetBurst.sources()),
            Self::P6(_) => Sources::new(Kind::P6.sources()),
            Self::Pentium(_) => Sources::new(Kind::Pentium.sources()),
        }
    }

    /// Returns the capabilities that distinguish the processors of a machine, as one word; 0 if they do not differ.
    #[must_use]
    pub const fn capabilities(&self) -> u64 {
        match self {
            Self::Emon(emon) => emon.capabilities().into_bits(),
            Self::Amd64(amd64) => amd64.capabilities(),
            _ => 0,
        }
    }

    /// Returns the same interface for a processor with these [`capabilities`](Self::capabilities), for the functions
    /// that take [`CpuCounters`]: Amd64 finds them there. The interrupt uses it, because it copies less.
    #[must_use]
    #[inline]
    pub const fn with_capabilities(&self, capabilities: u64) -> Self {
        match self {
            Self::Emon(_) => Self::Emon(emon::Emon::with_capabilities(emon::PmuCapabilities::from_bits(capabilities))),
            _ => *self,
        }
    }

    /// Returns the same interface for a processor with these [`capabilities`](Self::capabilities), also for the
    /// functions that do not take [`CpuCounters`].
    #[must_use]
    pub const fn of_processor(&self, capabilities: u64) -> Self {
        match self {
            Self::Amd64(amd64) => Self::Amd64(amd64.with_capabilities(capabilities)),
            _ => self.with_capabilities(capabilities),
        }
    }

    /// Accesses for the first time the registers of the interface, and the counters that it reads by RDPMC: every one
    /// that any other function touches. Returns the interface without the optional registers that fault.
    ///
    /// # Errors
    /// The fault of another register.
    ///
    /// # IRQL
    /// Below DISPATCH_LEVEL.
    pub(crate) fn access_first(self, first: &FirstAccess<'_, impl GuardedCpu>) -> Result<Self, Faulted> {
        match self {
            Self::Default(_) => Ok(self),
            Self::Emon(emon) => emon.access_first(first).map(Self::Emon),
            Self::Amd64(amd64) => amd64.access_first(first).map(Self::Amd64),
            Self::NetBurst(netburst) => netburst.access_first(first).map(|()| self),
            Self::P6(_) => p6::access_first(first).map(|()| self),
            Self::Pentium(_) => pentium::access_first(first).map(|()| self),
        }
    }

    /// Reads the control registers that other programs use too. The [first accesses](Self::access_first) were made,
    /// so that each has taken what it contains.
    ///
    /// # Errors
    /// The fault.
    ///
    /// # IRQL
    /// Below DISPATCH_LEVEL.
    pub(crate) fn found(self, first: &FirstAccess<'_, impl GuardedCpu>) -> Result<FoundMsrs, Faulted> {
        match self {
            Self::Emon(emon) => emon.found(first),
            Self::Amd64(amd64) => amd64.found(first),
            _ => Ok(FoundMsrs::default()),
        }
    }

    /// Reads the same registers again, and tries those that no longer contain what is `known` of them: another program,
    /// or a sleep, has changed them since. Returns what they contain.
    ///
    /// # Errors
    /// The fault of a register that the driver cannot do without.
    ///
    /// # IRQL
    /// Below DISPATCH_LEVEL.
    pub(crate) fn try_found(
        self,
        first: &FirstAccess<'_, impl GuardedCpu>,
        known: FoundMsrs,
    ) -> Result<FoundMsrs, Faulted> {
        let found = self.found(first)?;
        match self {
            Self::Emon(emon) => emon.try_found(first, found, known),
            Self::Amd64(amd64) => amd64.try_found(first, found, known),
            _ => Ok(found),
        }
    }

    /// Returns the interface for a processor with these recorders.
    #[must_use]
    pub const fn with_recorders(self, recorders: Recorders) -> Self {
        match self {
            Self::Emon(emon) => Self::Emon(emon.with_recorders(recorders)),
            _ => self,
        }
    }

    /// Returns the index of the first fixed counter, behind those of all general ones.
    #[must_use]
    pub fn first_fixed(&self) -> u8 {
        match self {
            Self::Emon(emon) => emon.capabilities().count(),
            _ => self.counters(),
        }
    }

    /// Returns the counters that record a source precisely, if the processor has PEBS.
    #[must_use]
    pub fn recorded(&self, source: &ProfileSource) -> CounterSet {
        match self {
            Self::Emon(emon) => emon.recorded(source),
            _ => CounterSet::NONE,
        }
    }

    /// Returns the number of indexes of a processor: of its counters, and of [slots and metrics](Self::unit).
    #[must_use]
    pub fn indexes(&self) -> u8 {
        match self {
            Self::Emon(emon) => emon.indexes(),
            _ => self.counters(),
        }
    }

    /// Returns the indexes of slots and of the metrics of the top-down method, which have no counters of their own.
    #[must_use]
    #[inline]
    pub const fn unit(&self) -> CounterSet {
        match self {
            Self::Emon(emon) => emon.unit(),
            _ => CounterSet::NONE,
        }
    }

    /// Returns the counters that RDPMC reads by the same index on every processor of this kind: those that Windows'
    /// thread profiling can be configured with, which takes an index below [`THREAD_COUNTERS`]. Fixed counters, slots
    /// and metrics have other indexes for RDPMC.
    #[must_use]
    pub fn thread_counters(&self) -> CounterSet {
        let counters = match self {
            Self::Emon(emon) => emon.general(),
            Self::NetBurst(netburst) if netburst.has_own_indexes() => CounterSet::first(self.counters()),
            Self::Amd64(_) | Self::P6(_) => CounterSet::first(self.counters()),
            Self::Default(_) | Self::NetBurst(_) | Self::Pentium(_) => CounterSet::NONE,
        };
        counters.and(CounterSet::first(THREAD_COUNTERS))
    }

    /// Returns how many events of a counter that records precisely follow its overflow until the record is written,
    /// including the event that writes it.
    #[must_use]
    pub const fn events_to_record(&self, counter: u8) -> u64 {
        match self {
            Self::Emon(emon) => emon.events_to_record(counter),
            _ => 0,
        }
    }

    /// Returns the table entry of a source, and its index.
    #[must_use]
    pub fn find(&self, source: Source) -> Option<(u16, ProfileSource)> {
        self.sources().find(source)
    }
}
