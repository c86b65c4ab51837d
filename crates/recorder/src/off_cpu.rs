//! The times in which threads did not run, from context switches.
//!
//! Windows delivers the events of each CPU in order, and those of a CPU later than those of another. All wait until
//! nothing that is earlier can arrive any more. The stack of a switch is that of the thread that runs from then on:
//! where it had waited. So a wait that has not ended has none.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::num::NonZero;

use protocol::{OffCpuKind, OffCpuRecord, OffCpuState, SampleRecord, UNKNOWN, is_kernel_address};
use recording::{CallStack, MissingStack, OffCpuSummary, RecordedTasks, SampleStack, StackEnd};
use stacks::CallGraph;
use system::lifetimes::Lifetimes;
use system::trace::RawTraceEvent;
use system::trace::profile::{Profiled, profiled};
use system::trace::switches::{Scheduling, scheduling, state};

/// Time by which an event can arrive late, in seconds: twice the time after which Windows delivers a buffer that is not
/// full.
const WINDOW_SECONDS: u64 = 2;

/// Maximum numbers of events and of frames that wait; the oldest do not wait any longer then.
const MAX_EVENTS: usize = 1 << 20;
const MAX_FRAMES: usize = 1 << 23;

/// Nanoseconds per second.
const NANOSECONDS: u128 = 1_000_000_000;

/// A thread at a time, as its ID can be given to another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Thread {
    /// It runs on a CPU.
    Runs { cpu: u32 },
    /// It does not.
    Off(Off),
}

/// A thread that does not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Off {
    since: u64,
    state: u8,
    reason: u8,
    /// The CPU that it left.
    cpu: u32,
    /// When it was made ready, and by which thread.
    ready: Option<(u64, u32)>,
}

impl Off {
    /// Returns whether it could have run from the begin.
    const fn is_ready(&self) -> bool {
        matches!(self.state, state::READY | state::STANDBY | state::DEFERRED_READY)
    }
}

/// What happened on a CPU at a time.
#[derive(Debug, Clone, Copy)]
enum Change {
    Switch { old: u32, new: u32, state: u8, reason: u8 },
    Ready { thread: u32, from_dpc: bool },
}

/// Finds the times in which threads did not run.
#[derive(Debug)]
pub struct OffCpu {
    graph: CallGraph,
    tasks: RecordedTasks,
    /// The processes of the tasks, whose IDs no others get.
    roots: Vec<(u32, u64)>,
    /// Index of the event among those of the recording.
    event: u32,
    /// Units of a time per second, which is known from the begin on.
    clock: Option<NonZero<u64>>,
    /// Time of the newest event.
    newest: u64,
    /// Events up to this time were followed.
    followed: u64,
    /// Number of events that arrived, which orders those of a CPU with the same time.
    arrived: u64,
    waiting: BTreeMap<(u64, u32, u64), Change>,
    /// The frames of each mode, by time of the switch and thread.
    stacks: BTreeMap<(u64, u32), [Vec<u64>; 2]>,
    /// Number of those frames.
    frames: usize,
    lifetimes: Lifetimes,
    threads: HashMap<u32, Thread>,
    /// The thread that runs on each CPU.
    running: HashMap<u32, u32>,
    found: Vec<(SampleRecord, SampleStack)>,
    summary: OffCpuSummary,
}

impl OffCpu {
    /// Collects events until [`begin`](Self::begin).
    #[must_use]
    pub fn new(graph: CallGraph) -> Self {
        Self {
            graph,
            tasks: RecordedTasks::default(),
            roots: Vec::new(),
            event: 0,
            clock: None,
            newest: 0,
            followed: 0,
            arrived: 0,
            waiting: BTreeMap::new(),
            stacks: BTreeMap::new(),
            frames: 0,
            lifetimes: Lifetimes::default(),
            threads: HashMap::new(),
            running: HashMap::new(),
            found: Vec::new(),
            summary: OffCpuSummary::default(),
        }
    }

    /// Begins to follow the threads of `tasks`, for an event of a recording with a clock of so many units per second.
    pub fn begin(&mut self, tasks: RecordedTasks, event: u32, clock: u64) {
        self.roots = tasks.processes.iter().map(|process| (*process, u64::MAX)).collect();
        (self.tasks, self.event, self.clock) = (tasks, event, NonZero::new(clock));
    }

    /// Adds a thread that existed before the session.
    pub fn add_thread(&mut self, process: u32, id: u32) {
        self.lifetimes.add_thread(id, process, 0);
    }

    /// Adds an event, of any kind.
    pub fn add(&mut self, event: &RawTraceEvent) {
        if let Some(Profiled::Stack { time, thread, frames }) = profiled(event) {
            self.frames += frames.len();
            let parts = self.stacks.entry((time, thread)).or_default();
            let (kernel, user) = frames.into_iter().partition::<Vec<u64>, _>(|frame| is_kernel_address(*frame));
            // Parts that arrive twice are alike.
            for (part, frames) in parts.iter_mut().zip([kernel, user]).filter(|(_, frames)| !frames.is_empty()) {
                *part = frames;
            }
            return self.keep_limits();
        }
        match scheduling(event, 0) {
            Some(Scheduling::Thread { id, process, started }) => self.lifetimes.add_thread(id, process, started),
            Some(Scheduling::Switch { cpu, switch }) => {
                let (old, new, state, reason) = (switch.old, switch.new, switch.state, switch.reason);
                self.wait(event.time, cpu, Change::Switch { old, new, state, reason });
            }
            Some(Scheduling::Ready { cpu, thread, from_dpc }) => {
                self.wait(event.time, cpu, Change::Ready { thread, from_dpc });
            }
            Some(Scheduling::Process { id, parent, started }) => self.lifetimes.add_process(id, parent, started),
            None => {}
        }
    }

    fn wait(&mut self, time: u64, cpu: u32, change: Change) {
        if time < self.followed {
            self.summary.late += 1;
            return;
        }
        self.arrived += 1;
        self.waiting.insert((time, cpu, self.arrived), change);
        if time > self.newest {
            self.newest = time;
            if let Some(clock) = self.clock {
                self.follow_until(time.saturating_sub(WINDOW_SECONDS.saturating_mul(clock.get())));
            }
        }
        self.keep_limits();
    }

    fn keep_limits(&mut self) {
        if self.waiting.len() > MAX_EVENTS || self.frames > MAX_FRAMES {
            let oldest = self.waiting.first_key_value().map_or(self.newest, |((time, ..), _)| *time);
            self.follow_until(oldest.midpoint(self.newest));
        }
    }

    /// Takes what was found.
    pub fn take(&mut self) -> Vec<(SampleRecord, SampleStack)> {
        std::mem::take(&mut self.found)
    }

    /// Follows what is left: nothing more will arrive. Returns what was found, and what was not.
    pub fn finish(&mut self) -> (Vec<(SampleRecord, SampleStack)>, OffCpuSummary) {
        self.follow_until(u64::MAX);
        for (id, thread) in std::mem::take(&mut self.threads) {
            if let Thread::Off(off) = thread
                && self.is_selected(id, off.since)
            {
                self.summary.open += 1;
                self.summary.open_time += self.nanoseconds(self.newest - off.since);
            }
        }
        (self.take(), self.summary)
    }

    fn follow_until(&mut self, end: u64) {
        while let Some(first) = self.waiting.first_entry().filter(|first| first.key().0 <= end) {
            let ((time, cpu, _), change) = first.remove_entry();
            self.followed = time;
            match change {
                Change::Ready { thread, from_dpc } => self.ready(time, cpu, thread, from_dpc),
                Change::Switch { old, new, state, reason } => {
                    if self.running.insert(cpu, new).is_some_and(|running| running != old) {
                        self.summary.lost += 1;
                    }
                    self.switch_out(old, Off { since: time, state, reason, cpu, ready: None });
                    self.switch_in(time, cpu, new);
                }
            }
        }
        // Stacks of earlier switches have been used.
        let later = self.stacks.split_off(&(end.saturating_add(1), 0));
        let used = std::mem::replace(&mut self.stacks, later);
        self.frames -= used.into_values().flatten().map(|part| part.len()).sum::<usize>().min(self.frames);
    }

    fn ready(&mut self, time: u64, cpu: u32, thread: u32, from_dpc: bool) {
        let waker = if from_dpc { 0 } else { self.running.get(&cpu).copied().unwrap_or_default() };
        if let Some(Thread::Off(off)) = self.threads.get_mut(&thread)
            && !off.is_ready()
        {
            // A thread whose stack was swapped out is made ready twice.
            off.ready.get_or_insert((time, waker));
        }
    }

    fn switch_out(&mut self, id: u32, off: Off) {
        // It runs on another CPU already, whose clock is behind.
        let runs_elsewhere = matches!(self.threads.get(&id), Some(Thread::Runs { cpu }) if *cpu != off.cpu);
        if id == 0 || runs_elsewhere {
            return;
        }
        if off.state == state::TERMINATED {
            self.threads.remove(&id);
        } else {
            self.threads.insert(id, Thread::Off(off));
        }
    }

    fn switch_in(&mut self, time: u64, cpu: u32, id: u32) {
        if id == 0 {
            return;
        }
        let before = self.threads.insert(id, Thread::Runs { cpu });
        let started = self.lifetimes.thread_at(id, time);
        match before {
            // Another thread had the ID then.
            Some(Thread::Off(off)) if self.lifetimes.thread_at(id, off.since) == started => {
                self.found(time, cpu, id, off);
            }
            Some(Thread::Runs { .. }) => {}
            Some(Thread::Off(_)) | None => {
                if started.is_none_or(|started| started == 0) && self.is_selected(id, time) {
                    self.summary.begun_before += 1;
                }
            }
        }
    }

    fn process_at(&self, id: u32, time: u64) -> u32 {
        let started = self.lifetimes.thread_at(id, time);
        self.lifetimes.process_of(id, started).map_or(UNKNOWN, |(process, _)| process)
    }

    fn is_selected(&self, id: u32, time: u64) -> bool {
        let is_descendant = || self.lifetimes.belongs_to(id, self.lifetimes.thread_at(id, time), &self.roots);
        self.tasks.select(self.process_at(id, time), id) || self.tasks.with_children && is_descendant()
    }

    fn nanoseconds(&self, duration: u64) -> u64 {
        let clock = self.clock.map_or(1, NonZero::get);
        u64::try_from(u128::from(duration) * NANOSECONDS / u128::from(clock)).unwrap_or(u64::MAX)
    }

    /// Adds the records of a thread that runs on.
    fn found(&mut self, time: u64, cpu: u32, thread: u32, off: Off) {
        if !self.is_selected(thread, time) {
            return;
        }
        let process = self.process_at(thread, time);
        let (ip, stack) = self.stack(time, thread, process);
        if matches!(stack, SampleStack::Missing(_)) {
            self.summary.without_stack += 1;
        }
        let Off { since, reason, cpu: left, .. } = off;
        let ready_at = off.ready.filter(|_| !off.is_ready());
        let (mut begin, event) = (since, self.event);
        let record = |state, time, processor, waker, duration| OffCpuRecord {
            time,
            ip,
            process,
            thread,
            processor,
            event,
            waker,
            kind: OffCpuKind::OffCpu,
            state,
            reason,
            duration,
        };
        if let Some((at, waker)) = ready_at {
            let waited = record(OffCpuState::Waiting, at, left, waker, self.nanoseconds(at - since));
            self.found.push((waited.into(), stack.clone()));
            begin = at;
        }
        let is_waiting = ready_at.is_none() && !off.is_ready();
        let state = if is_waiting { OffCpuState::WaitingOrReady } else { OffCpuState::Ready };
        let rest = record(state, time, cpu, 0, self.nanoseconds(time - begin));
        self.found.push((rest.into(), stack));
    }

    /// Returns the innermost frame and the callers of the stack with which a thread ran on.
    fn stack(&self, time: u64, thread: u32, process: u32) -> (u64, SampleStack) {
        let [kernel, user] = self.stacks.get(&(time, thread)).map_or([const { &Vec::new() }; 2], <[_; 2]>::each_ref);
        let frames = match self.graph {
            CallGraph::Kernel => kernel.clone(),
            CallGraph::User => user.clone(),
            CallGraph::Both => [&**kernel, user].concat(),
        };
        let Some((ip, callers)) = frames.split_first() else {
            return (0, SampleStack::Missing(MissingStack::EventLost));
        };
        let has_user = self.graph != CallGraph::Kernel && !stacks::KERNEL_ONLY.contains(&process);
        let end = if user.is_empty() && has_user { StackEnd::UserLost } else { StackEnd::Complete };
        (*ip, SampleStack::Stack(CallStack { callers: callers.to_vec(), end }))
    }
}

/// Returns the processes of the records.
#[must_use]
pub fn processes(found: &[(SampleRecord, SampleStack)]) -> HashSet<u32> {
    let samples = found.iter().filter_map(|(record, _)| record.parse().ok()?.sample());
    samples.map(|sample| sample.process).filter(|process| *process != UNKNOWN).collect()
}
