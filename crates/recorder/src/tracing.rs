//! The trace session of a recording, and what its events are for.

use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use protocol::{Event, EventRequest, SampleRecord};
use recording::{OffCpuSummary, RecordedTasks, SampleStack};
use stacks::{CallGraph, Joiner, Limits, StackCounts, StackItem};

use super::Output;
use super::budget::Budget;
use super::joining::{Input, JoinThread};
use super::off_cpu::{self, OffCpu};
use super::scanning::Sightings;
use system::trace::{Meaning, TraceError, TraceLosses, TracePlan, TraceSession, TraceSink, interpret};

/// Maximum memory for events that are not joined yet, and for samples that are not written yet, in bytes.
const MAX_HELD: usize = 64 << 20;

/// Memory of a message besides its frames.
const MESSAGE: usize = 256;

/// A trace session before the recording begins: the driver must have events for its first samples.
pub struct Tracing {
    session: Box<dyn TraceSession>,
    /// Receives samples, and what the session delivers; `None` if Windows writes a file.
    joined: Option<Joined>,
    file: Option<PathBuf>,
    sightings: Arc<Sightings>,
    off_cpu: Option<Arc<Mutex<OffCpu>>>,
}

struct Joined {
    graph: CallGraph,
    requested: Vec<Event>,
    sender: Sender<Input>,
    input: Receiver<Input>,
}

/// A trace session of a recording.
pub struct RunningTrace {
    session: Box<dyn TraceSession>,
    thread: Option<(Sender<Input>, JoinHandle<StackCounts>)>,
    file: Option<PathBuf>,
    sightings: Arc<Sightings>,
    off_cpu: Option<Arc<Mutex<OffCpu>>>,
}

/// What became of a trace session.
#[derive(Debug)]
pub struct TraceResult {
    /// How many samples have stacks; `None` if Windows wrote a file.
    pub counts: Option<StackCounts>,
    /// The file that Windows wrote.
    pub file: Option<PathBuf>,
    /// What was lost, or why that is unknown.
    pub losses: io::Result<TraceLosses>,
    /// Number of events about processes and images for which there was no room.
    pub dropped: u64,
    /// What is missing of the times in which threads did not run; `None` if those were not recorded.
    pub off_cpu: Option<OffCpuSummary>,
}

impl Tracing {
    /// Starts a session by `trace` whose events are joined with samples of these requests, or written to the file of
    /// the plan.
    ///
    /// # Errors
    /// If Windows does not start the session.
    pub fn start(
        trace: impl FnOnce(&TracePlan, TraceSink) -> Result<Box<dyn TraceSession>, TraceError>,
        plan: &TracePlan,
        graph: CallGraph,
        requests: &[EventRequest],
    ) -> Result<Self, TraceError> {
        let sightings = Arc::<Sightings>::default();
        let (sender, input) = mpsc::channel();
        let off_cpu = plan.off_cpu.then(|| Arc::new(Mutex::new(OffCpu::new(graph))));
        let session = trace(plan, sink(sender.clone(), Arc::clone(&sightings), off_cpu.clone()))?;
        let requested = requests.iter().map(|request| request.event).collect();
        let joined = plan.file.is_none().then_some(Joined { graph, requested, sender, input });
        Ok(Self { session, joined, file: plan.file.clone(), sightings, off_cpu })
    }

    /// Returns what receives the processes and images.
    pub(super) fn sightings(&self) -> Arc<Sightings> {
        Arc::clone(&self.sightings)
    }

    /// Returns whether the session has context switches.
    #[must_use]
    pub const fn has_switches(&self) -> bool {
        self.off_cpu.is_some()
    }

    /// Begins to follow the threads of `tasks`, of which `threads` exist: process and ID of each. What is found is for
    /// the last of so many events.
    pub(super) fn follow(&self, tasks: &RecordedTasks, threads: &[(u32, u32)], (events, clock): (usize, u64)) {
        if let Some(off_cpu) = &self.off_cpu {
            let event = u32::try_from(events.saturating_sub(1)).unwrap_or(u32::MAX);
            let mut off_cpu = lock(off_cpu);
            for (process, id) in threads {
                off_cpu.add_thread(*process, *id);
            }
            off_cpu.begin(tasks.clone(), event, clock);
        }
    }

    /// Begins to join samples for the file of a recording with this clock.
    pub(super) fn run(self, clock: u64, file: Option<Sender<Output>>) -> RunningTrace {
        let Self { session, joined, file: trace_file, sightings, off_cpu } = self;
        let thread = joined.map(|Joined { graph, requested, sender, input }| {
            let joiner = Joiner::new(graph, Limits::default(), requested, clock);
            let join_thread = JoinThread { input, joiner, file, budget: Budget::new(MAX_HELD) };
            (sender, thread::spawn(move || join_thread.run()))
        });
        RunningTrace { session, thread, file: trace_file, sightings, off_cpu }
    }
}

impl RunningTrace {
    /// Returns what receives the samples; `None` if they have no stacks.
    pub(super) fn input(&self) -> Option<Sender<Input>> {
        self.thread.as_ref().map(|(sender, _)| sender.clone())
    }

    /// Stops the session, and waits until all samples were passed on. All other senders of samples must have ended.
    pub(super) fn stop(mut self) -> TraceResult {
        let losses = self.session.stop();
        // It holds the sink, and the sink a sender.
        drop(self.session);
        let off_cpu = self.off_cpu.map(|off_cpu| {
            let (found, summary) = lock(&off_cpu).finish();
            if let Some((sender, _)) = &self.thread {
                send(found, sender, &self.sightings);
            }
            summary
        });
        let counts = self.thread.and_then(|(sender, thread)| {
            drop(sender);
            // A panic of the thread has been reported on standard error.
            thread.join().ok()
        });
        TraceResult { counts, file: self.file, losses, dropped: self.sightings.dropped(), off_cpu }
    }
}

/// Returns the sink that passes on what the events mean. Receivers that have ended have reported why.
fn sink(joiner: Sender<Input>, sightings: Arc<Sightings>, off_cpu: Option<Arc<Mutex<OffCpu>>>) -> TraceSink {
    let budget = Budget::new(MAX_HELD);
    let share = move |stack: Option<&StackItem>| {
        let frames = stack.map_or(0, |stack| stack.frames.len());
        budget.take(MESSAGE + frames * size_of::<u64>())
    };
    Box::new(move |event| {
        if let Some(off_cpu) = &off_cpu {
            let mut off_cpu = lock(off_cpu);
            off_cpu.add(event);
            let found = off_cpu.take();
            drop(off_cpu);
            send(found, &joiner, &sightings);
        }
        interpret(event, |meaning| match meaning {
            Meaning::Sample(event) => {
                let share = share(event.stack.as_ref());
                let _ = joiner.send(Input::Event(Box::new(event), share));
            }
            Meaning::UserPart(part) => {
                let share = share(Some(&part.stack));
                let _ = joiner.send(Input::UserPart(part, share));
            }
            Meaning::Code(event) => sightings.add_code(event),
        });
    })
}

/// Passes on the times in which threads did not run, if there are any.
fn send(found: Vec<(SampleRecord, SampleStack)>, joiner: &Sender<Input>, sightings: &Sightings) {
    if !found.is_empty() {
        sightings.add(&mut off_cpu::processes(&found));
        // A receiver that has ended has reported why.
        let _ = joiner.send(Input::OffCpu(found));
    }
}

fn lock(off_cpu: &Mutex<OffCpu>) -> MutexGuard<'_, OffCpu> {
    off_cpu.lock().unwrap_or_else(PoisonError::into_inner)
}
