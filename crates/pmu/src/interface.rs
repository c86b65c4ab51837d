//! Profile interfaces: the HAL's private table that hides the differences of the hardware (seed 003, 3.2).

pub mod amd64;
pub mod default;
pub mod emon;
pub mod netburst;
pub mod p6;
pub mod pentium;
mod unmanaged;

use crate::cpu::{Cpu, Cpuid};
use crate::source::{ProfileSource, RawEvent, Source};
use crate::state::{Active, CounterSet, CounterState, CpuCounters, SavedMsrs};

/// Which interface. The numbers travel to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Kind {
    /// No counters; ProfileTime alone.
    Default = 0,
    /// Intel's architectural performance monitoring.
    Emon = 1,
    /// AMD's performance counters.
    Amd64 = 2,
    /// Pentium 4 and the Xeons of its time.
    NetBurst = 3,
    /// Pentium Pro, II, III and Pentium M.
    P6 = 4,
    /// The first Pentium, with MMX or without.
    Pentium = 5,
}

impl Kind {
    /// Every interface, in the order of its number.
    pub const ALL: [Self; 6] = [Self::Default, Self::Emon, Self::Amd64, Self::NetBurst, Self::P6, Self::Pentium];

    /// As the symbol files of the HAL have it; of those that it has not, as Intel names them.
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

    /// The interface's table of sources, as the seeds have it; [`Interface::sources`] is the processor's.
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

/// Whether a source can be had, and if not, why. The numbers travel to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Support {
    /// It can.
    Supported = 0,
    /// The interface's table has it not.
    NotInInterface = 1,
    /// Leaf 0xA EAX\[31:24\] says that the event's EBX bit is not meaningful.
    EventNotEnumerated = 2,
    /// The event's bit in leaf 0xA EBX is set.
    EventNotAvailable = 3,
    /// The memory for the counters' state could not be had.
    NoMemory = 4,
    /// Amd64: the processor's family has no such event, or does not count it in the core.
    NotOnThisFamily = 5,
    /// Raw: the interface's registers do not take an event and a unit mask.
    NoRawEvents = 6,
    /// Raw: the processor's events have numbers of fewer bits.
    NoSuchEvent = 7,
}

/// A counter that overflowed and was loaded again.
#[derive(Debug, Clone, Copy)]
pub struct Reloaded {
    /// Which.
    pub counter: u8,
    /// What it is set to do.
    pub state: CounterState,
    /// What it held: the events since its overflow.
    pub value: u64,
    /// What it was loaded with.
    pub initial: u64,
    /// How many bits of 64 it has not.
    pub missing_bits: u8,
}

/// A counter that counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Enabled {
    /// Which.
    pub counter: u8,
    /// Its select register.
    pub select: u64,
}

/// What every interface does, each in its own registers: HalpProfileInterface.
///
/// The functions that take a [`Cpu`] act on the processor on which they run, at PROFILE_LEVEL, with its own
/// row of state; none of them can fail, allocate or wait.
pub trait ProfileInterface {
    /// Counters of each processor, at most [`CounterSet::MOST`].
    fn counters(&self) -> u8;

    /// Bits of a counter: of most of them, where they differ.
    fn width(&self) -> u8;

    /// Bits of this counter.
    fn width_of(&self, counter: u8) -> u8 {
        let _ = counter;
        self.width()
    }

    /// Whether a counter can interrupt when it overflows. One that can not counts, and is never given an interval.
    fn interrupts(&self) -> bool {
        true
    }

    /// What a counter holds: one RDPMC, where the processor has that.
    #[inline]
    fn read(&self, cpu: &impl Cpu, counter: u8) -> u64 {
        cpu.rdpmc(u32::from(counter))
    }

    /// The counters that can count the event of a row of the interface's table.
    fn counters_for(&self, source: &ProfileSource) -> CounterSet {
        let _ = source;
        CounterSet::first(self.counters())
    }

    /// Finds a counter that is free in `row` for each of `wanted`, for all of them together, and writes it to the same
    /// place of `assigned`.
    ///
    /// # Errors
    /// The place of an event that finds none: no other choice for the rest would have let all of them find one.
    fn assign(&self, row: CpuCounters<'_>, wanted: &[CounterState], assigned: &mut [u8]) -> Result<(), usize> {
        let mut free = row.counters(CounterState::is_free).iter();
        for (index, place) in assigned.iter_mut().enumerate().take(wanted.len()) {
            *place = free.next().ok_or(index)?;
        }
        Ok(())
    }

    /// QueryInformation: whether the processor offers the event of a row of the interface's table.
    fn support(&self, source: &ProfileSource) -> Support;

    /// The same of a raw event.
    fn raw_support(&self, event: RawEvent) -> Support {
        let _ = event;
        Support::NoRawEvents
    }

    /// A counter that counts although nobody has called [`initialize`](Self::initialize): somebody else's.
    fn enabled(&self, cpu: &impl Cpu) -> Option<Enabled>;

    /// InitializeProfiling: brings the registers to the state from which [`enable`](Self::enable) starts,
    /// all counters off. What has to be given back is answered, for [`release`](Self::release).
    fn initialize(&self, cpu: &impl Cpu) -> SavedMsrs;

    /// Whether the counters keep what is written to them. A hypervisor that only pretends to have the registers
    /// is found out here. After [`initialize`](Self::initialize).
    fn readback_ok(&self, cpu: &impl Cpu) -> bool;

    /// The overflows of counters that do not count are forgotten, so that the next interrupt does not tell of them. Where
    /// the counter itself tells of its overflow, loading it does that.
    fn forget(&self, cpu: &impl Cpu, counters: CounterSet) {
        let _ = (cpu, counters);
    }

    /// EnableMonitoring: sets up `counters` as their states in `row` say and starts them. Those that are
    /// active in `row` already go on undisturbed.
    fn enable(&self, cpu: &impl Cpu, row: CpuCounters<'_>, counters: CounterSet);

    /// DisableMonitoring: stops `counters`; the other active ones of `row` go on.
    fn disable(&self, cpu: &impl Cpu, row: CpuCounters<'_>, counters: CounterSet);

    /// CheckOverflowStatus: which of the active counters with an interval have overflowed.
    fn check_overflow(&self, cpu: &impl Cpu, active: Active) -> CounterSet;

    /// Serves a performance monitor interrupt: checks for overflow, loads each counter concerned again and gives it to
    /// `overflowed`. A status register is acknowledged, whatever it says of our counters, and the interrupt is let through
    /// again where the processor masked it. Answers the counters; none for an interrupt that is not ours, or late. The
    /// registers have to be ours.
    fn serve(&self, cpu: &impl Cpu, row: CpuCounters<'_>, overflowed: impl FnMut(Reloaded)) -> CounterSet;

    /// Clears what a status register says of our counters. The registers have to be ours.
    fn acknowledge(&self, cpu: &impl Cpu) {
        let _ = cpu;
    }

    /// Takes the interrupt bits away from `counters`, which were stopped, where [`disable`](Self::disable) leaves them.
    fn disarm(&self, cpu: &impl Cpu, row: CpuCounters<'_>, counters: CounterSet) {
        let _ = (cpu, row, counters);
    }

    /// All active counters stand still until [`unfreeze`](Self::unfreeze), where one register is over all of them.
    fn freeze(&self, cpu: &impl Cpu, row: CpuCounters<'_>) {
        let _ = (cpu, row);
    }

    /// They go on.
    fn unfreeze(&self, cpu: &impl Cpu, row: CpuCounters<'_>) {
        let _ = (cpu, row);
    }

    /// All counters off, their select registers clear, and what [`initialize`](Self::initialize) found put back.
    fn release(&self, cpu: &impl Cpu, saved: SavedMsrs);
}

/// The interface in use.
#[derive(Debug, Clone, Copy)]
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
    /// The interface of this kind, with what CPUID says of the processor on which it runs. Any IRQL.
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

    /// Which it is.
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

    /// Version of architectural performance monitoring, or 0.
    #[must_use]
    pub const fn pmu_version(&self) -> u8 {
        match self {
            Self::Emon(emon) => emon.version(),
            _ => 0,
        }
    }

    /// Counters that count one event each.
    #[must_use]
    pub const fn fixed_counters(&self) -> u8 {
        match self {
            Self::Emon(emon) => (emon.capabilities().fixed().count_ones() & 0xF) as u8,
            _ => 0,
        }
    }

    /// Its table of sources: the kind's, but for what depends on the processor.
    #[must_use]
    pub const fn sources(&self) -> &'static [ProfileSource] {
        match self {
            Self::Amd64(amd64) => amd64.sources(),
            _ => self.kind().sources(),
        }
    }

    /// What tells the processor of the interface from others of the same machine, as one word; 0 where nothing does.
    #[must_use]
    pub const fn capabilities(&self) -> u64 {
        match self {
            Self::Emon(emon) => emon.capabilities().into_bits(),
            _ => 0,
        }
    }

    /// The same interface on a processor with this [`capabilities`](Self::capabilities).
    #[must_use]
    #[inline]
    pub const fn with_capabilities(self, capabilities: u64) -> Self {
        match self {
            Self::Emon(_) => Self::Emon(emon::Emon::with_capabilities(emon::PmuCapabilities::from_bits(capabilities))),
            _ => self,
        }
    }

    /// The same with what only registers tell of the current processor. They have to be ours. PROFILE_LEVEL.
    #[must_use]
    pub fn examined(self, cpu: &impl Cpu) -> Self {
        match self {
            Self::Emon(emon) => Self::Emon(emon.examined(cpu)),
            _ => self,
        }
    }

    /// The same on a processor of which so many counters record these events precisely, from the first.
    #[must_use]
    pub const fn with_precise(self, counters: u8, events: emon::PreciseEvents) -> Self {
        match self {
            Self::Emon(emon) => Self::Emon(emon.with_precise(counters, events)),
            _ => self,
        }
    }

    /// The counters that record a source precisely.
    #[must_use]
    pub fn precise(&self, source: &ProfileSource) -> CounterSet {
        match self {
            Self::Emon(emon) => emon.precise(source),
            _ => CounterSet::NONE,
        }
    }

    /// The row of a source in the interface's table, and its index.
    #[must_use]
    pub fn find(&self, source: Source) -> Option<(u16, &'static ProfileSource)> {
        (0..).zip(self.sources()).find(|(_, row)| row.source == source)
    }
}

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

    fn assign(&self, row: CpuCounters<'_>, wanted: &[CounterState], assigned: &mut [u8]) -> Result<(), usize> {
        each!(self, interface => interface.assign(row, wanted, assigned))
    }

    fn support(&self, source: &ProfileSource) -> Support {
        each!(self, interface => interface.support(source))
    }

    fn raw_support(&self, event: RawEvent) -> Support {
        each!(self, interface => interface.raw_support(event))
    }

    fn enabled(&self, cpu: &impl Cpu) -> Option<Enabled> {
        each!(self, interface => interface.enabled(cpu))
    }

    fn initialize(&self, cpu: &impl Cpu) -> SavedMsrs {
        each!(self, interface => interface.initialize(cpu))
    }

    fn readback_ok(&self, cpu: &impl Cpu) -> bool {
        each!(self, interface => interface.readback_ok(cpu))
    }

    fn forget(&self, cpu: &impl Cpu, counters: CounterSet) {
        each!(self, interface => interface.forget(cpu, counters));
    }

    fn enable(&self, cpu: &impl Cpu, row: CpuCounters<'_>, counters: CounterSet) {
        each!(self, interface => interface.enable(cpu, row, counters));
    }

    fn disable(&self, cpu: &impl Cpu, row: CpuCounters<'_>, counters: CounterSet) {
        each!(self, interface => interface.disable(cpu, row, counters));
    }

    fn check_overflow(&self, cpu: &impl Cpu, active: Active) -> CounterSet {
        each!(self, interface => interface.check_overflow(cpu, active))
    }

    #[inline]
    fn serve(&self, cpu: &impl Cpu, row: CpuCounters<'_>, overflowed: impl FnMut(Reloaded)) -> CounterSet {
        each!(self, interface => interface.serve(cpu, row, overflowed))
    }

    fn acknowledge(&self, cpu: &impl Cpu) {
        each!(self, interface => interface.acknowledge(cpu));
    }

    fn disarm(&self, cpu: &impl Cpu, row: CpuCounters<'_>, counters: CounterSet) {
        each!(self, interface => interface.disarm(cpu, row, counters));
    }

    fn freeze(&self, cpu: &impl Cpu, row: CpuCounters<'_>) {
        each!(self, interface => interface.freeze(cpu, row));
    }

    fn unfreeze(&self, cpu: &impl Cpu, row: CpuCounters<'_>) {
        each!(self, interface => interface.unfreeze(cpu, row));
    }

    fn release(&self, cpu: &impl Cpu, saved: SavedMsrs) {
        each!(self, interface => interface.release(cpu, saved));
    }
}
