//! The thread that queries processes and their modules, which can take seconds.

use std::collections::HashSet;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use recording::{Methods, Process};

use super::{Event, Output};
use crate::processes::{ProcessList, Processes};
use system::ProcessSource;
use system::trace::CodeEvent;

/// Maximum number of events of a trace session that were not taken note of yet.
const MAX_CODE_EVENTS: usize = 1 << 18;

/// The processes that have samples and were not taken note of yet.
#[derive(Debug, Default)]
pub struct Sightings {
    state: Mutex<ScannerState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct ScannerState {
    processes: HashSet<u32>,
    command: Option<u32>,
    phase: Phase,
    /// What the trace session reported.
    code: Vec<CodeEvent>,
    /// Number of such events that found no room.
    dropped: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Sampling,
    /// All samples were fetched: every process is queried a last time.
    Last,
    /// No more processes are needed.
    Abandoned,
}

impl Sightings {
    fn lock(&self) -> MutexGuard<'_, ScannerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds processes, and empties the set.
    pub fn add(&self, processes: &mut HashSet<u32>) {
        if !processes.is_empty() {
            self.lock().processes.extend(processes.drain());
            self.changed.notify_one();
        }
    }

    /// Adds the process of the command, which has started.
    pub fn add_command(&self, command: u32) {
        self.lock().command = Some(command);
        self.changed.notify_one();
    }

    /// Adds what a trace session tells, unless much of it was not taken note of yet.
    pub fn add_code(&self, event: CodeEvent) {
        let mut state = self.lock();
        if state.code.len() < MAX_CODE_EVENTS {
            state.code.push(event);
            drop(state);
            self.changed.notify_one();
        } else {
            state.dropped += 1;
        }
    }

    /// Returns how many events of the trace session found no room.
    pub fn dropped(&self) -> u64 {
        self.lock().dropped
    }

    /// Ends the thread after a last query of the processes.
    pub fn finish(&self) {
        self.end(Phase::Last);
    }

    /// Ends the thread after its present query.
    pub fn abandon(&self) {
        self.end(Phase::Abandoned);
    }

    fn end(&self, phase: Phase) {
        self.lock().phase = phase;
        self.changed.notify_one();
    }

    fn is_abandoned(&self) -> bool {
        self.lock().phase == Phase::Abandoned
    }

    /// Waits for something new, at most until `due`, and takes it.
    fn next(&self, due: Option<Instant>) -> ScannerState {
        let mut state = self.lock();
        let is_idle = |state: &ScannerState| {
            state.processes.is_empty()
                && state.code.is_empty()
                && state.command.is_none()
                && state.phase == Phase::Sampling
        };
        while is_idle(&state) {
            let Some(due) = due else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        let ScannerState { processes, command, phase, code, dropped } = &mut *state;
        ScannerState {
            processes: std::mem::take(processes),
            command: command.take(),
            phase: *phase,
            code: std::mem::take(code),
            dropped: *dropped,
        }
    }
}

/// Queries processes when their samples arrive, and reports what is new of them.
pub struct Scanner {
    /// The processes found so far.
    pub processes: Processes,
    /// The processes of the machine.
    pub source: Box<dyn ProcessSource>,
    /// Which processes have samples.
    pub sightings: Arc<Sightings>,
    /// Where it reports.
    pub receivers: Receivers,
}

/// What receives processes.
pub struct Receivers {
    /// The file, if one is written.
    pub file: Option<Sender<Output>>,
    /// The observer, if there is one.
    pub observer: Option<Sender<Event>>,
}

impl Scanner {
    /// Queries processes until the last query.
    pub fn run(mut self) {
        loop {
            let ScannerState { processes, command, phase, code, .. } = self.sightings.next(self.processes.next_query());
            let now = Instant::now();
            for event in code {
                self.processes.note(event, &*self.source, now);
            }
            if let Some(command) = command {
                self.processes.track_command(command, now);
            }
            self.processes.schedule(processes, now);
            if phase == Phase::Last {
                self.processes.schedule_last();
            }
            let mut running = ProcessList::default();
            self.processes.refresh(&*self.source, &mut running, now);
            let Self { processes, source, sightings, receivers } = &mut self;
            while !sightings.is_abandoned()
                && processes.query_next(&**source, &mut running, now, |process| receivers.report(process))
            {}
            while let Some(methods) = processes.take_methods() {
                receivers.report_methods(methods);
            }
            match phase {
                Phase::Sampling => {}
                Phase::Last => {
                    if let Some(kernel) = processes.query_kernel(&**source, now) {
                        receivers.report(kernel);
                    }
                    break;
                }
                Phase::Abandoned => break,
            }
        }
    }
}

impl Receivers {
    /// Passes a process on. A receiver that has ended has reported why.
    fn report(&self, process: Process) {
        if let Some(observer) = &self.observer {
            let _ = observer.send(Event::Process(process.clone()));
        }
        if let Some(file) = &self.file {
            let _ = file.send(Output::Process(process));
        }
    }

    /// Passes functions of a process on, as above.
    fn report_methods(&self, methods: Methods) {
        if let Some(file) = &self.file {
            let _ = file.send(Output::Methods(methods));
        }
    }
}
