//! Threads, processors and switches.

use crate::{
    Configuration, ConfigureError, Ledger, Mode, Processors,
    profile::{Profile, ProfileHandle},
};
use bench_protocol::{EventCount, Random, Scheduling, Work};
use std::collections::{BTreeMap, BTreeSet};

/// WrPreempted, WrQuantumEnd and WrDelayExecution of KWAIT_REASON.
const PREEMPTED: u64 = 1 << 32;
const QUANTUM_END: u64 = 1 << 30;
const DELAY_EXECUTION: u64 = 1 << 11;

/// Most cycles of a delay.
const MAX_DELAY: u64 = 100_000_000;

/// The seed of decisions that belong to no thread.
const NO_THREAD: u64 = u64::MAX;

/// A thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadId(pub u64);

/// A thread, from its first call on.
#[derive(Debug)]
pub(crate) struct Thread {
    /// The processors that it may use.
    pub affinity: u64,
    /// Where it ran last.
    last: Option<u32>,
    random: Random,
    pub ledger: Ledger,
    pub profile: Option<Profile>,
    has_ended: bool,
}

/// The threads on the processors of a machine, and what Windows counts for them.
///
/// A thread that is unknown runs from its first call on, on any processor. If every processor has a running thread, it
/// displaces one of them, which is a switch for that thread.
#[derive(Debug)]
pub struct Scheduler {
    pub(crate) behavior: Scheduling,
    pub(crate) configuration: Configuration,
    pub(crate) threads: BTreeMap<ThreadId, Thread>,
    /// Number of threads that have started, ended ones included.
    started: u64,
    /// The running thread of each processor.
    pub(crate) running: Vec<Option<ThreadId>>,
    kinds: BTreeSet<(u16, u16)>,
    /// Cycles since the start, in which something ran or a delay passed.
    time: u64,
    next_handle: u64,
    random: Random,
}

impl Scheduler {
    /// Returns a scheduler without threads, for up to 64 processors.
    #[must_use]
    pub fn new(behavior: Scheduling, processors: u32) -> Self {
        let count = usize::try_from(processors.clamp(1, u64::BITS)).unwrap_or(1);
        Self {
            random: Random::new(behavior.seed, NO_THREAD),
            kinds: behavior.kinds.iter().copied().collect(),
            behavior,
            configuration: Configuration::default(),
            threads: BTreeMap::new(),
            started: 0,
            running: vec![None; count],
            time: 0,
            next_handle: 1,
        }
    }

    /// Returns how threads are scheduled.
    #[must_use]
    pub const fn behavior(&self) -> &Scheduling {
        &self.behavior
    }

    /// Changes how threads are scheduled. Threads, profiles and ledgers stay.
    pub fn set_behavior(&mut self, behavior: Scheduling) {
        self.random = Random::new(behavior.seed, NO_THREAD);
        self.kinds.extend(&behavior.kinds);
        for (number, thread) in (0..).zip(self.threads.values_mut()) {
            thread.random = Random::new(behavior.seed, number);
        }
        self.behavior = behavior;
    }

    /// Configures the hardware counters for thread profiling by their indexes for RDPMC, or clears the configuration if
    /// there are none: KeSetHardwareCounterConfiguration.
    ///
    /// # Errors
    /// There are too many counters, a thread profiles, or other counters are configured.
    pub fn configure(&mut self, counters: &[u64]) -> Result<(), ConfigureError> {
        let is_profiling = self.profiling() > 0;
        self.configuration.set(counters, is_profiling)
    }

    /// Returns the indexes of the configured counters.
    #[must_use]
    pub fn configured(&self) -> &[u64] {
        self.configuration.counters()
    }

    /// Returns the number of threads that profile.
    #[must_use]
    pub fn profiling(&self) -> usize {
        self.threads.values().filter(|thread| thread.profile.is_some()).count()
    }

    /// Returns the number of processors.
    #[must_use]
    pub fn processors(&self) -> u32 {
        u32::try_from(self.running.len()).unwrap_or(u32::MAX)
    }

    /// Sets the number of processors. Threads that run on one that is removed are switched out.
    pub fn set_processors(&mut self, machine: &mut dyn Processors, count: u32) {
        let count = count.clamp(1, u64::BITS);
        for removed in count..self.processors() {
            if let Some(thread) = self.running_thread(removed) {
                self.switch_out(machine, thread, PREEMPTED);
            }
        }
        self.running.resize(usize::try_from(count).unwrap_or(1), None);
    }

    /// Returns the cycles since the start, on all processors: a clock that no event stops.
    #[must_use]
    pub const fn time(&self) -> u64 {
        self.time
    }

    /// Returns the ledger of a thread.
    #[must_use]
    pub fn ledger(&self, thread: ThreadId) -> Ledger {
        self.threads.get(&thread).map(|thread| thread.ledger.clone()).unwrap_or_default()
    }

    /// Returns the threads, in the order of their numbers.
    pub fn threads(&self) -> impl Iterator<Item = ThreadId> {
        self.threads.keys().copied()
    }

    /// Forgets the threads that have ended and are wanted, and returns their ledgers.
    pub fn take_ended(&mut self, is_wanted: impl Fn(ThreadId) -> bool) -> Vec<(ThreadId, Ledger)> {
        let ended = self.threads.extract_if(.., |id, thread| thread.has_ended && is_wanted(*id));
        ended.map(|(id, thread)| (id, thread.ledger)).collect()
    }

    /// Returns the processor on which a thread runs now, if it runs.
    #[must_use]
    pub fn running_on(&self, thread: ThreadId) -> Option<u32> {
        let place = self.running.iter().position(|running| *running == Some(thread))?;
        u32::try_from(place).ok()
    }

    /// Executes work as a thread, in slices, between which anything can happen to it.
    pub fn run(&mut self, machine: &mut dyn Processors, thread: ThreadId, work: &Work) {
        let slices = u64::from(self.behavior.slices.max(1));
        for slice in 0..slices {
            let part = |events: &[EventCount]| -> Vec<EventCount> {
                let share = |(event, umask, count): &EventCount| {
                    let count = count / slices + u64::from(slice < count % slices);
                    (count > 0).then_some((*event, *umask, count))
                };
                events.iter().filter_map(share).collect()
            };
            self.execute(machine, thread, Mode::User, &part(&work.user));
            self.execute(machine, thread, Mode::Kernel, &part(&work.kernel));
            self.step(machine, thread);
        }
    }

    /// Switches a thread out, as if its time were over, and lets other threads run. It stays switched out until its
    /// next call.
    pub fn preempt(&mut self, machine: &mut dyn Processors, thread: ThreadId) {
        self.switch_out(machine, thread, QUANTUM_END);
    }

    /// Lets a thread wait: it is switched out, and others run until its next call.
    pub fn wait(&mut self, machine: &mut dyn Processors, thread: ThreadId) {
        self.run_on(machine, thread);
        self.switch_out(machine, thread, DELAY_EXECUTION);
    }

    /// Ends a thread. Windows frees its profile.
    pub fn end(&mut self, machine: &mut dyn Processors, thread: ThreadId) {
        self.switch_out(machine, thread, 0);
        if let Some(thread) = self.threads.get_mut(&thread) {
            thread.profile = None;
            thread.has_ended = true;
        }
    }

    /// Returns whether a thread is known and has not ended.
    #[must_use]
    pub fn is_alive(&self, thread: ThreadId) -> bool {
        self.threads.get(&thread).is_some_and(|thread| !thread.has_ended)
    }

    /// Returns the state of a thread, which is made by its first call. An ended thread whose number is used again is
    /// the same thread for the ledger.
    pub(crate) fn thread(&mut self, thread: ThreadId) -> &mut Thread {
        let seed = self.behavior.seed;
        let thread = self.threads.entry(thread).or_insert_with(|| {
            self.started += 1;
            Thread {
                affinity: u64::MAX,
                last: None,
                random: Random::new(seed, self.started),
                ledger: Ledger::default(),
                profile: None,
                has_ended: false,
            }
        });
        thread.has_ended = false;
        thread
    }

    /// Switches a thread in, if it does not run, and returns its processor.
    pub(crate) fn run_on(&mut self, machine: &mut dyn Processors, thread: ThreadId) -> u32 {
        if let Some(processor) = self.running_on(thread) {
            return processor;
        }
        let processor = self.choose(thread);
        if let Some(other) = self.running_thread(processor) {
            self.switch_out(machine, other, PREEMPTED);
        }
        self.set_running(processor, Some(thread));
        self.kernel_alone(machine, processor);
        let state = self.thread(thread);
        if state.last.is_some_and(|last| last != processor) {
            state.ledger.migrations += 1;
        }
        state.last = Some(processor);
        if let Some(profile) = &mut state.profile {
            profile.begin(machine, processor);
        }
        self.kernel_part(machine, thread);
        processor
    }

    /// Chooses the processor of a thread that is switched in: where it ran last, or another one.
    fn choose(&mut self, thread: ThreadId) -> u32 {
        let migrate = self.behavior.migrate;
        let state = self.thread(thread);
        let (affinity, last) = (state.affinity, state.last);
        let (migrates, pick) = (state.random.percent(migrate), state.random.up_to(u64::MAX));
        let may = |processor: &u32| affinity >> processor & 1 == 1;
        let allowed: Vec<u32> = (0..self.processors()).filter(may).collect();
        if let Some(last) = last.filter(|last| allowed.contains(last) && !migrates) {
            return last;
        }
        let idle = |processor: &&u32| self.running_thread(**processor).is_none() && Some(**processor) != last;
        let others: Vec<u32> = allowed.iter().filter(idle).copied().collect();
        let from = if others.is_empty() { &allowed } else { &others };
        let place = usize::try_from(pick).unwrap_or_default() % from.len().max(1);
        from.get(place).copied().unwrap_or_default()
    }

    fn running_thread(&self, processor: u32) -> Option<ThreadId> {
        *self.running.get(usize::try_from(processor).ok()?)?
    }

    fn set_running(&mut self, processor: u32, thread: Option<ThreadId>) {
        let place = usize::try_from(processor).ok().and_then(|place| self.running.get_mut(place));
        if let Some(place) = place {
            *place = thread;
        }
    }

    /// Switches a thread out, if it runs, and lets other threads run on its processor. `reason` is 0 for a thread that
    /// ends.
    pub(crate) fn switch_out(&mut self, machine: &mut dyn Processors, thread: ThreadId, reason: u64) {
        let Some(processor) = self.running_on(thread) else { return };
        self.kernel_part(machine, thread);
        let accounting = self.behavior.accounting;
        let state = self.thread(thread);
        if reason != 0 {
            state.ledger.switches += 1;
        }
        if let Some(profile) = &mut state.profile {
            profile.switches = profile.switches.wrapping_add(1);
            profile.wait_reasons |= reason;
            profile.end(machine, processor, accounting);
        }
        self.set_running(processor, None);
        self.kernel_alone(machine, processor);
        for mode in [Mode::User, Mode::Kernel] {
            let most = self.behavior.others;
            let events = self.events(None, most, 1);
            self.pass(&events);
            machine.execute(processor, mode, &events);
        }
    }

    /// What can happen to a thread between two slices, and on its way into or out of a call.
    pub(crate) fn step(&mut self, machine: &mut dyn Processors, thread: ThreadId) {
        let Scheduling { preempt, interrupt, delay, kernel, .. } = self.behavior;
        let random = &mut self.thread(thread).random;
        let [preempted, interrupted, delayed] = [preempt, interrupt, delay].map(|share| random.percent(share));
        let pause = random.up_to(MAX_DELAY);
        if interrupted {
            let processor = self.run_on(machine, thread);
            let events = self.events(Some(thread), kernel, 1);
            self.pass(&events);
            machine.execute(processor, Mode::Kernel, &events);
            self.thread(thread).ledger.add_interrupt(&events);
        }
        if delayed {
            self.time = self.time.wrapping_add(pause);
        }
        if preempted {
            self.preempt(machine, thread);
        }
    }

    /// Executes events as a thread.
    pub(crate) fn execute(
        &mut self,
        machine: &mut dyn Processors,
        thread: ThreadId,
        mode: Mode,
        events: &[EventCount],
    ) {
        if events.is_empty() {
            return;
        }
        let processor = self.run_on(machine, thread);
        self.kinds.extend(events.iter().map(|(event, umask, _)| (*event, *umask)));
        let cycles = self.pass(events);
        machine.execute(processor, mode, events);
        let ledger = &mut self.thread(thread).ledger;
        ledger.cycles = ledger.cycles.wrapping_add(cycles);
        match mode {
            Mode::User => ledger.add_user(events),
            Mode::Kernel => ledger.add_kernel(events),
        }
    }

    /// Executes the kernel's part of a call or a switch as a thread.
    pub(crate) fn kernel_part(&mut self, machine: &mut dyn Processors, thread: ThreadId) {
        let events = self.events(Some(thread), self.behavior.kernel, 0);
        self.execute(machine, thread, Mode::Kernel, &events);
    }

    /// Executes the part of a switch that belongs to no thread: between the two reads of the counters.
    fn kernel_alone(&mut self, machine: &mut dyn Processors, processor: u32) {
        let events = self.events(None, self.behavior.kernel, 0);
        self.pass(&events);
        machine.execute(processor, Mode::Kernel, &events);
    }

    /// Executes the part of a call in user mode as a thread.
    pub(crate) fn user_part(&mut self, machine: &mut dyn Processors, thread: ThreadId) {
        let overhead = self.behavior.overhead;
        let kinds = self.kinds.iter().filter(|_| overhead > 0);
        let events: Vec<EventCount> = kinds.map(|(event, umask)| (*event, *umask, overhead)).collect();
        self.execute(machine, thread, Mode::User, &events);
    }

    /// Returns a random number of events of each kind, between `least` and `most`.
    fn events(&mut self, thread: Option<ThreadId>, most: u64, least: u64) -> Vec<EventCount> {
        let mut random = match thread {
            Some(thread) => self.thread(thread).random.clone(),
            None => self.random.clone(),
        };
        let number = |(event, umask): &(u16, u16)| (*event, *umask, random.up_to(most).max(least));
        let events: Vec<EventCount> = self.kinds.iter().map(number).filter(|(.., count)| *count > 0).collect();
        match thread {
            Some(thread) => self.thread(thread).random = random,
            None => self.random = random,
        }
        events
    }

    /// Advances the time by the cycles of events, and returns them.
    fn pass(&mut self, events: &[EventCount]) -> u64 {
        let most = events.iter().map(|(.., count)| *count).max().unwrap_or_default();
        let cycles = most.div_ceil(self.behavior.events_per_cycle.max(1));
        self.time = self.time.wrapping_add(cycles);
        cycles
    }

    pub(crate) const fn new_handle(&mut self) -> ProfileHandle {
        let handle = ProfileHandle(self.next_handle);
        self.next_handle += 1;
        handle
    }
}
