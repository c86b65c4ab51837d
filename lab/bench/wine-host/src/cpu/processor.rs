//! The processors of the machine. Each has a model of its registers and a source of events.

use crate::{
    cpu::{
        branches::Branches, clock::Clock, fair_lock::FairLock, interrupt_sites::InterruptSites, lvt,
        pmi_handler::RegisteredHandler, pmi_signal::PmiSignal, time_mode::TimeMode, topology::Topology,
    },
    lock::lock,
    nt,
};
use bench_protocol::{EventCount, Instruction, InterruptSite};
use cpuid_dumps::CpuIdentity;
use model::{Memory, Mode, Processor, Selected};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, atomic::AtomicBool},
    time::Duration,
};

/// The longest time between two updates of a processor in real time.
const UPDATE_INTERVAL: Duration = Duration::from_millis(10);

/// The interval at which an inactive processor checks whether it is active.
const IDLE_INTERVAL: Duration = Duration::from_secs(1);

/// The time between two branches in real time, while branches are stored.
const BRANCH_INTERVAL: Duration = Duration::from_micros(50);

/// `IA32_PERF_GLOBAL_STATUS` (SDM, "Architectural Performance Monitoring Version 2 Facilities"), and its bit OvfBuffer.
const GLOBAL_STATUS: u32 = 0x38E;
const OVF_BUFFER: u64 = 1 << 62;

/// The distance in bytes between the instruction of the last PEBS record and the interrupt.
const SKID: u64 = 3;

/// The longest time by which a processor falls behind while interrupts are handled. Time beyond it is skipped.
const MAX_BEHIND: Duration = Duration::from_millis(100);

/// One processor.
pub struct Core {
    pub number: u32,
    /// Held at HIGH_LEVEL and during register accesses.
    pub high_level: FairLock,
    /// Held by the one thread at DISPATCH_LEVEL or above, which may be in a DPC routine but not in an interrupt.
    pub dispatch_level: FairLock,
    /// Held during KeIpiGenericCall.
    pub ipi: FairLock,
    pub pmi: PmiSignal,
    /// Whether a stepping thread delivers the interrupts of this processor, and not the usual thread.
    pub is_stepped: AtomicBool,
    /// The handler of the profile interrupt that runs on this processor now.
    pub running_handler: Mutex<Option<RegisteredHandler>>,
    pub state: Mutex<State>,
    /// Of the machine.
    pub time_mode: &'static TimeMode,
    /// Of the machine.
    pub topology: &'static Topology,
}

/// The state that changes with time.
pub struct State {
    pub processor: Processor,
    /// Number of calls of the profile interrupt's handler.
    pub delivered: u64,
    /// Accesses whose faults the driver would have handled, and that did not fault.
    pub guarded: BTreeSet<(Instruction, u32)>,
    /// The sites at which interrupts arrive.
    pub sites: InterruptSites,
    /// The same sites, at which clock interrupts arrive. They are counted for themselves.
    pub clock_sites: InterruptSites,
    /// The site of the last interrupt.
    pub last_site: Option<InterruptSite>,
    /// The site under the DPC that runs: that of the last interrupt before it.
    pub dpc_site: Option<InterruptSite>,
    /// Set while an interrupt is handled. No events happen then, because a real handler takes no noticeable time.
    pub interrupted: bool,
    pub clock: Clock,
    pub phase: Option<Phase>,
    branches: Branches,
}

/// A phase in which events in real time occur more often.
#[derive(Clone, Copy)]
pub struct Phase {
    /// The phase lasts while a counter has this event selected: event select and unit mask.
    pub counted: (u16, u16),
    /// Factor of all rates.
    pub factor: u32,
}

/// A function that returns the memory for the Debug Store of a processor, by the processor's number.
pub type MemoryOf = fn(u32) -> Box<dyn Memory>;

/// The type of all processors.
#[derive(Clone, Copy)]
pub struct ProcessorType {
    pub identity: &'static CpuIdentity,
    pub x2apic: bool,
    pub memory: MemoryOf,
}

impl ProcessorType {
    /// Returns processor `number` after reset.
    pub fn reset_state(self, number: u32) -> State {
        let identity = self.identity.of_processor(number);
        let processor = Processor::new(Box::new(self.identity.cpuid_of_processor(number)));
        self.with_devices(number, processor.with_perf_capabilities(identity.perf_capabilities()))
    }

    /// Returns processor `number` after reset as the second thread of the core of `first`. Returns None if threads have
    /// nothing in common.
    pub fn second_thread(self, number: u32, first: &Processor) -> Option<State> {
        let second = if self.identity.has_related_threads() {
            first.other_thread(Box::new(self.identity.cpuid_of_processor(number)))
        } else {
            first.other_thread(Box::new(self.identity.cpuid_of_second_thread()))
        };
        second.map(|processor| self.with_devices(number, processor))
    }

    fn with_devices(self, number: u32, mut processor: Processor) -> State {
        processor.set_memory((self.memory)(number));
        lvt::initialize(&mut processor);
        State {
            processor: if self.x2apic { processor.with_x2apic() } else { processor },
            delivered: 0,
            guarded: BTreeSet::new(),
            sites: InterruptSites::default(),
            clock_sites: InterruptSites::default(),
            last_site: None,
            dpc_site: None,
            interrupted: false,
            clock: Clock::default(),
            phase: None,
            branches: Branches::default(),
        }
    }
}

impl Core {
    /// Calls `body` with the state of the processor, up to date in real time.
    pub fn with<T>(&self, body: impl FnOnce(&mut State) -> T) -> T {
        let mut state = lock(&self.state);
        if self.time_mode.is_real() {
            state.catch_up();
        }
        let result = body(&mut state);
        let due = state.processor.interrupt_due();
        drop(state);
        if due {
            self.pmi.notify();
        }
        result
    }

    /// Returns how long the thread that delivers interrupts may sleep.
    pub fn until_interrupt(&self) -> Duration {
        if self.number >= self.topology.active() {
            return IDLE_INTERVAL;
        }
        if !self.time_mode.is_real() {
            return UPDATE_INTERVAL;
        }
        let ticks = self.with(|state| if state.processor.interrupt_due() { Some(0) } else { state.until_overflow() });
        ticks.map_or(UPDATE_INTERVAL, nt::duration).min(UPDATE_INTERVAL)
    }
}

impl State {
    /// Advances real time to now, but not beyond an overflow, a record or a branch that raises an interrupt: the
    /// interrupt must be handled first.
    fn catch_up(&mut self) {
        let mut behind = self.clock.behind(nt::time_stamp());
        while behind > 0 && !self.interrupted && !self.processor.interrupt_due() {
            self.clock.set_factor(self.factor());
            let next = [self.until_overflow(), self.until_branch()].into_iter().flatten().min();
            let step = next.map_or(behind, |next| next.clamp(1, behind));
            self.advance(step);
            behind -= step;
        }
        let limit = nt::ticks(MAX_BEHIND);
        if behind > limit {
            self.clock.skip(behind - limit);
        }
    }

    /// Returns the factor of the rates in the phase of now.
    fn factor(&self) -> u32 {
        let is_in = |Phase { counted: (event, umask), .. }: &Phase| {
            let enabled = self.processor.enabled_counters();
            enabled.iter().any(|(_, what)| (what.event, what.umask) == (*event, *umask))
        };
        self.phase.filter(is_in).map_or(1, |phase| phase.factor)
    }

    /// Returns the ticks until the next overflow that makes an interrupt pending, if there will be one.
    fn until_overflow(&self) -> Option<u64> {
        if self.processor.interrupt_pending() {
            return None;
        }
        self.processor.interrupting_counters().iter().map(|counter| self.clock.ticks_until(counter)).min()
    }

    /// Returns the ticks until the next branch, if branches are stored.
    fn until_branch(&self) -> Option<u64> {
        self.processor.stores_branches().then(|| self.branches.ticks_until(nt::ticks(BRANCH_INTERVAL)))
    }

    /// Sets the address of new PEBS records to the site of the next interrupt.
    fn set_record_site(&mut self) {
        if let Some(site) = self.sites.peek() {
            self.processor.set_place(site.ip, nt::time_stamp());
        }
    }

    /// Returns the distance in bytes between the site and the interrupt that is delivered now. It is nonzero for an
    /// interrupt of the PEBS buffer.
    pub fn skid(&mut self) -> u64 {
        let status = self.processor.uncounted(|processor| processor.rdmsr(GLOBAL_STATUS));
        if status.is_ok_and(|status| status & OVF_BUFFER != 0) { SKID } else { 0 }
    }

    /// Returns the ticks that were skipped.
    pub const fn skipped(&self) -> u64 {
        self.clock.skipped()
    }

    fn advance(&mut self, ticks: u64) {
        self.clock.advance(ticks);
        self.set_record_site();
        let mut selected: Vec<Selected> = self.processor.enabled_counters().into_iter().map(|(_, what)| what).collect();
        selected.sort_unstable();
        selected.dedup();
        if self.processor.keeps_last_branches() {
            for branch in self.branches.last_branches(&self.sites.sites()) {
                self.processor.take_branch(&branch);
            }
        }
        for mode in [Mode::User, Mode::Kernel] {
            let events: BTreeMap<Selected, u64> =
                selected.iter().map(|what| (*what, self.clock.count_events(*what, mode, ticks))).collect();
            self.processor.run(mode, &|what| events.get(&what).copied().unwrap_or_default());
        }
        let is_due = self.processor.stores_branches() && self.branches.advance(ticks, nt::ticks(BRANCH_INTERVAL));
        if is_due && let Some((mode, branch)) = self.branches.next_branch(&self.sites.sites()) {
            self.processor.branch(mode, branch);
        }
    }

    /// Executes the events of a script.
    pub fn run(&mut self, mode: Mode, events: &[EventCount]) {
        self.set_record_site();
        self.processor.run(mode, &|what| {
            let same = events.iter().filter(|(event, umask, _)| (*event, *umask) == (what.event, what.umask));
            same.map(|(_, _, count)| *count).sum()
        });
    }
}
