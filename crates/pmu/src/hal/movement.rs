//! Whether the counters of a processor count.
//!
//! Under a hypervisor a counter can have every register and count nothing: because the hypervisor only stores the
//! registers, because the host uses the real counter, or because it filters the event (Linux commit 66bb8a065f5a, "KVM:
//! x86: PMU Event Filter"). So a known loop runs on the counters before a session begins on them.
//!
//! Nothing is believed for longer than a session: how much a host lets a guest count depends on what the host counts
//! itself, and on how many counters the guest uses at the same time. So each start tries the counters of its session
//! together.

use core::sync::atomic::Ordering;

use super::Hal;
use crate::cpu::Cpu;
use crate::current_cpu::{CurrentCpu, ProcessorIndex};
use crate::first_access::{FirstAccess, GuardedCpu};
use crate::hypervisor::Hypervisor;
use crate::interface::{Interface, ProfileInterface};
use crate::known_loop::{ITERATIONS, LEAST_INSTRUCTIONS};
use crate::source::{ProfileSource, RawEvent};
use crate::state::{self, CounterSet, CounterState, CpuCounters, RawSlot, Tried};

/// How much a counter counted of the known loop. The protocol uses these numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u32)]
pub enum Movement {
    /// Everything, as far as that can be told; or it was not tried.
    #[default]
    Counts = 0,
    /// Nothing.
    StandsStill = 1,
    /// Less than the loop has.
    CountsPart = 2,
}

impl Movement {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; 3] = [Self::Counts, Self::StandsStill, Self::CountsPart];

    /// Returns the kind with this number.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|movement| *movement as u32 == number)
    }
}

/// An event that the loop causes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    Instructions = 0,
    Cycles = 1,
    Branches = 2,
    ReferenceCycles = 3,
}

impl Known {
    /// Those that general counters count.
    const GENERAL: [Self; 3] = [Self::Instructions, Self::Cycles, Self::Branches];

    /// The events of fixed counters 0 to 2 (SDM Vol. 3B, 21.2.2, Table 21-2).
    const FIXED: [Self; 3] = [Self::Instructions, Self::Cycles, Self::ReferenceCycles];

    /// Returns the event on a general counter: the architectural event of Intel (SDM Vol. 3B, 21.2.1.2), or PMCx0C0,
    /// PMCx076 and PMCx0C2, which all of AMD's families have. Guests have no other interface.
    const fn event(self, interface: &Interface) -> Option<RawEvent> {
        let number = match (interface, self) {
            (Interface::Emon(_) | Interface::Amd64(_), Self::Instructions) => 0xC0,
            (Interface::Emon(_), Self::Cycles) => 0x3C,
            (Interface::Emon(_), Self::Branches) => 0xC4,
            (Interface::Amd64(_), Self::Cycles) => 0x76,
            (Interface::Amd64(_), Self::Branches) => 0xC2,
            _ => return None,
        };
        Some(RawEvent::new().with_event(number))
    }

    /// Returns the counters that count the event, if the processor has it.
    fn counters(self, interface: &Interface) -> CounterSet {
        self.event(interface)
            .and_then(|event| interface.raw_counters(&ProfileSource::of_raw(event), event).ok())
            .unwrap_or_default()
    }

    const fn bit(self) -> u32 {
        1 << self as u32
    }

    /// Returns the least number that the loop causes, by which a counter is judged.
    const fn least(self) -> u64 {
        /// No processor retires more instructions in a cycle.
        const WIDEST: u64 = 16;
        let times = ITERATIONS as u64;
        match self {
            Self::Instructions => LEAST_INSTRUCTIONS,
            Self::Branches => times - times / 16,
            Self::Cycles => 2 * times / WIDEST,
            // Its clock may be slow.
            Self::ReferenceCycles => 1,
        }
    }
}

/// Counts in both modes.
const BOTH: CounterState = CounterState::FREE.with_user(true).with_kernel(true);

/// Returns places for [`Known::GENERAL`], which [`known_states`] selects.
fn known_slots(interface: &Interface) -> [RawSlot; Known::GENERAL.len()] {
    let slots: [RawSlot; Known::GENERAL.len()] = core::array::from_fn(|_| RawSlot::default());
    for (slot, event) in slots.iter().zip(Known::GENERAL) {
        if let Some(event) = event.event(interface) {
            slot.set(&ProfileSource::of_raw(event), 0);
        }
    }
    slots
}

/// Returns [`Known::GENERAL`] with the states that select them.
fn known_states(interface: &Interface) -> impl Iterator<Item = (Known, CounterState)> {
    Known::GENERAL.into_iter().zip((interface.sources().first_raw()..).map(|index| BOTH.of(index)))
}

/// Counters by the event that they count, of [`Known::GENERAL`].
#[derive(Debug, Clone, Copy, Default)]
struct ByEvent([CounterSet; Known::GENERAL.len()]);

impl ByEvent {
    fn each(counters: impl Fn(Known) -> CounterSet) -> Self {
        Self(Known::GENERAL.map(counters))
    }

    /// Returns the same with these counters for `event`.
    fn with(mut self, event: Known, counters: CounterSet) -> Self {
        if let Some(set) = self.0.get_mut(event as usize) {
            *set = counters;
        }
        self
    }

    fn of(&self, event: Known) -> CounterSet {
        self.0.get(event as usize).copied().unwrap_or_default()
    }
}

/// The counters that are tried.
#[derive(Debug, Clone, Copy, Default)]
struct Candidates {
    fixed: CounterSet,
    /// All others.
    general: CounterSet,
    /// Those of them that can count each event.
    able: ByEvent,
    /// Those of them that are reserved for it.
    reserved: ByEvent,
}

/// The counters of one run of the loop.
#[derive(Debug, Clone, Copy, Default)]
struct Run {
    general: ByEvent,
    fixed: CounterSet,
}

impl Run {
    fn all(&self) -> CounterSet {
        self.general.0.iter().fold(self.fixed, |all, counters| all.or(*counters))
    }
}

/// What a run shows.
#[derive(Debug, Clone, Copy, Default)]
struct Outcome {
    still: CounterSet,
    partial: CounterSet,
}

impl<E> Hal<E> {
    /// Returns whether counters must be [tried](Self::try_counters): under any hypervisor.
    #[must_use]
    pub fn must_try_counters(&self) -> bool {
        self.boot.hypervisor != Hypervisor::None
    }

    /// Tries what [`try_counters`](Self::try_counters) will write on the current processor, which is `processor`. An
    /// event that a counter does not take is left out of the loop. The first accesses were made.
    ///
    /// # IRQL
    /// Below DISPATCH_LEVEL.
    pub(super) fn try_known(&self, processor: ProcessorIndex, first: &FirstAccess<'_, impl GuardedCpu>) {
        let Some(cpu_counters) = self.find(processor).filter(|_| self.must_try_counters()) else { return };
        let interface = self.whole_interface_with(cpu_counters.pmu);
        let raw = known_slots(&interface);
        let (tried, mut taken) = (CpuCounters { raw: &raw, ..cpu_counters }, 0);
        for (event, state) in known_states(&interface) {
            let counters = event.counters(&interface).without(interface.fixed());
            let mut each = counters.iter();
            if each.all(|counter| interface.try_event(first, tried, counter, state).is_ok()) {
                taken |= event.bit();
            }
        }
        cpu_counters.pmu.tried.taken.store(taken, Ordering::Relaxed);
    }

    /// Runs the loop on `counters` of the current processor together, which are initialized and do not run. Each counts
    /// the event that it is reserved for, if the loop causes that event, and instructions too: a counter that counts
    /// neither these nor cycles stands still. The states of the counters, and the counters that run, stay as they are.
    ///
    /// Costs, for N general counters, 3N writes, 2N RDPMC and those of a start and a stop; twice that if the loop does
    /// not cause the events of all, or if a counter does not count instructions.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    #[inline(never)]
    pub fn try_counters(&self, current: CurrentCpu<'_, impl Cpu>, counters: CounterSet) {
        let Some(Candidates { fixed, general, able, reserved }) = self.candidates(current.index(), counters) else {
            return;
        };
        let instructions = general.and(able.of(Known::Instructions));
        let none = ByEvent::default();
        let first = Run { fixed, general: none.with(Known::Instructions, instructions) };
        let found = self.run_loop(current, first);
        let silent = found.still.and(instructions).or(general.without(instructions));
        let (cycles, branches) = (reserved.of(Known::Cycles), reserved.of(Known::Branches));
        let on_cycles = cycles.or(silent).without(branches).and(able.of(Known::Cycles));
        let general = none.with(Known::Branches, branches).with(Known::Cycles, on_cycles);
        let second = Run { fixed: CounterSet::NONE, general };
        let more = self.run_loop(current, second);
        let judged = first.all().or(second.all());
        let counted = second.all().without(more.still);
        let still = found.still.and(fixed).or(silent.and(judged).without(counted));
        let own = reserved.of(Known::Instructions).and(found.still).or(cycles.or(branches).and(more.still));
        let partial = found.partial.or(more.partial).without(still);
        if let Some(pmu) = self.pmu(current.index()) {
            pmu.tried.store(Tried { all: judged, still, partial }, own.without(still));
        }
    }

    /// Returns those of `counters` that can be tried, if there are any.
    // Never inlined into `try_counters`, which is on a deeper path.
    #[inline(never)]
    fn candidates(&self, processor: ProcessorIndex, counters: CounterSet) -> Option<Candidates> {
        let cpu_counters = self.find(processor)?;
        let interface = self.whole_interface_with(cpu_counters.pmu);
        let idle = interface.all().and(counters).without(cpu_counters.active.all);
        if idle.is_empty() || !self.must_try_counters() || cpu_counters.pmu.is_asleep() {
            return None;
        }
        let general = idle.without(interface.fixed());
        let taken = cpu_counters.pmu.tried.taken.load(Ordering::Relaxed);
        let able = ByEvent::each(|event| match taken & event.bit() {
            0 => CounterSet::NONE,
            _ => event.counters(&interface).without(interface.fixed()),
        });
        let reserved = ByEvent::each(|event| {
            let of = event.event(&interface).map(|event| ProfileSource::of_raw(event).select);
            let is_it = |counter: &u8| {
                let state = cpu_counters.get(*counter);
                (state.user() || state.kernel()) && Some(cpu_counters.select_of(interface.sources(), state)) == of
            };
            able.of(event).and(general).iter().filter(is_it).collect()
        });
        Some(Candidates { fixed: idle.and(interface.fixed()), general, able, reserved })
    }

    /// Runs the loop once, and compares what the counters count with what the loop causes. The difference of two
    /// readings tells, because some hypervisors add to what is written (2^31 in Parallels: rr issue 1818).
    // Never inlined, nor what it calls: `enable` is on a deep path.
    #[inline(never)]
    fn run_loop(&self, current: CurrentCpu<'_, impl Cpu>, run: Run) -> Outcome {
        if run.all().is_empty() {
            return Outcome::default();
        }
        self.begin_run(current, run);
        current.cpu().run_loop(ITERATIONS);
        self.end_run(current, run)
    }

    /// Starts the counters of a run. Their own states and their first values are kept where their next start writes
    /// anyway, because the stack has no room for those of all counters.
    #[inline(never)]
    fn begin_run(&self, current: CurrentCpu<'_, impl Cpu>, run: Run) {
        let Some(mut cpu_counters) = self.find(current.index()) else { return };
        let interface = self.whole_interface_with(cpu_counters.pmu);
        let raw = known_slots(&interface);
        cpu_counters.raw = &raw;
        let begin = |counters: CounterSet, state: CounterState| {
            for (counter, started) in cpu_counters.pmu.started_of(counters) {
                let own = cpu_counters.get(counter);
                started.total.loaded(own.into_bits());
                cpu_counters.set(counter, state.owned_by(own.owner()));
            }
        };
        begin(run.fixed, BOTH);
        known_states(&interface).for_each(|(event, state)| begin(run.general.of(event), state));
        interface.enable(current.cpu(), cpu_counters, run.all());
        for (counter, started) in cpu_counters.pmu.started_of(run.all()) {
            started.set_select(interface.read(current.cpu(), counter));
        }
    }

    /// Judges the counters of a run by their last values, and stops them.
    #[inline(never)]
    fn end_run(&self, current: CurrentCpu<'_, impl Cpu>, run: Run) -> Outcome {
        let mut outcome = Outcome::default();
        let Some(cpu_counters) = self.find(current.index()) else { return outcome };
        let interface = self.whole_interface_with(cpu_counters.pmu);
        for (counter, started) in cpu_counters.pmu.started_of(run.all()) {
            let now = interface.read(current.cpu(), counter);
            let moved = now.wrapping_sub(started.select()) & state::mask(interface.width_of(counter));
            let general = Known::GENERAL.into_iter().find(|event| run.general.of(*event).has(counter));
            let event = general.or_else(|| Known::FIXED.get(usize::from(interface.fixed_number(counter)?)).copied());
            match event {
                Some(_) if moved == 0 => outcome.still = outcome.still.with(counter),
                Some(event) if moved < event.least() => outcome.partial = outcome.partial.with(counter),
                Some(_) | None => {}
            }
        }
        interface.disable(current.cpu(), cpu_counters, run.all());
        interface.disarm(current.cpu(), cpu_counters, run.all());
        for (counter, started) in cpu_counters.pmu.started_of(run.all()) {
            cpu_counters.set(counter, CounterState::from_bits(started.total.value()));
        }
        outcome
    }

    /// Returns which counters of a processor were tried, with the results of each counter's last loop.
    #[must_use]
    pub fn tried(&self, processor: ProcessorIndex) -> Tried {
        self.pmu(processor).map_or_else(Tried::default, |pmu| pmu.tried.load())
    }

    /// Returns the union of [`tried`](Self::tried) over all processors.
    #[must_use]
    pub fn tried_anywhere(&self) -> Tried {
        self.each_cpu().map(|per_cpu| per_cpu.pmu.tried.load()).fold(Tried::default(), |sum, one| Tried {
            all: sum.all.or(one.all),
            still: sum.still.or(one.still),
            partial: sum.partial.or(one.partial),
        })
    }

    /// Returns how much a counter counts of the event that it was reserved for when it was last tried.
    #[must_use]
    pub fn movement(&self, processor: ProcessorIndex, counter: u8) -> Movement {
        let Some(pmu) = self.pmu(processor) else { return Movement::Counts };
        let Tried { still, partial, .. } = pmu.tried.load();
        if still.or(pmu.tried.filtered()).has(counter) {
            Movement::StandsStill
        } else if partial.has(counter) {
            Movement::CountsPart
        } else {
            Movement::Counts
        }
    }

    /// Returns whether every counter of a processor was tried and stands still.
    #[must_use]
    pub fn counts_nothing(&self, processor: ProcessorIndex) -> bool {
        let all = self.interface_of(processor).all();
        !all.is_empty() && all.without(self.tried(processor).still).is_empty()
    }
}
