//! Writes the samples of a session to a file while it is running.
//!
//! | module | thread |
//! |---|---|
//! | `fetching` | fetches samples from the driver |
//! | `scanning` | queries processes and modules |
//! | `joining` | joins samples with their call stacks, if they are recorded |
//! | `collecting` | keeps samples with their call stacks in memory, for a test of them |
//! | `off_cpu` | finds the times in which threads did not run; in the thread of the trace session |
//! | `tracing` | the trace session, which has a thread of its own, and what its events are for |
//! | `writing` | writes the file |
//! | this one | waits for the end of the recording, and shows what the observer received |
//!
//! `batch` limits what is between them: the memory for samples that are not written yet. With call stacks, `budget`
//! limits the memory for events that are not joined yet and for joined samples that are not written yet.

pub mod command;
pub mod off_cpu;
pub mod processes;
pub mod ring;
pub mod sampled_event;
pub mod sampling;
pub mod tasks;

mod batch;
mod budget;
mod collecting;
mod family;
mod fetching;
mod joining;
mod progress;
mod scanning;
mod tracing;
mod writing;

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use halprof::SampleStream;
use halprof::text::argument::argument;
use protocol::{CountRecord, SampleRecord};
use recording::{
    Count, Limits, Methods, Process, RecordedSession, RecordedTasks, Summary, WriteError, move_parts, remove_parts,
};
use thiserror::Error as ThisError;

pub use self::batch::{Batch, Buffers};
pub use self::collecting::StackCollector;
use self::family::{Family, Remaining};
pub use self::fetching::Shares;
#[cfg(test)]
pub use self::fetching::sampled;
use self::fetching::{FetchState, Fetcher, SampleReceiver};
use self::joining::StackedSamples;
use self::progress::Progress;
use self::scanning::{Receivers, Scanner, Sightings};
use self::tracing::RunningTrace;
pub use self::tracing::{TraceResult, Tracing};
use self::writing::Target;
use crate::processes::Processes;
use counts::disturbance;
use counts::record_counts::RecordCounts;
use system::{ProcessSource, System};
use user_error::exit::Exit;
use user_error::output_error::OutputError;
use user_error::{Error, UserError};

/// Time between two looks at the command, at Ctrl-C and at the observer.
const POLL: Duration = Duration::from_millis(50);

/// The file was created, and cannot be written to its end.
#[derive(Debug, ThisError)]
#[error("the recording could not be written to its end")]
pub struct Unwritten {
    /// The file.
    pub path: PathBuf,
    /// Error of the system or of the format.
    #[source]
    pub cause: WriteError,
}

impl UserError for Unwritten {
    fn exit(&self) -> Exit {
        Exit::Unwritten
    }

    fn remedy(&self) -> Option<String> {
        let path = self.path.display().to_string();
        let path = argument(&path);
        Some(format!("-o on a disk with free space; to read what was written before:\n       .\\client report {path}"))
    }
}

/// Receives processes and samples while they are recorded.
pub trait SampleObserver {
    /// Receives the session before its processes and samples.
    fn begin(&mut self, _session: &RecordedSession) {}
    /// Receives a process, or modules that it loaded later.
    fn process(&mut self, process: &Process);
    /// Receives samples.
    fn samples(&mut self, samples: &[SampleRecord]);
    /// Returns whether it shows on the terminal what is recorded.
    fn is_display(&self) -> bool {
        false
    }
    /// Runs about ten times a second or more often. Returns whether to go on.
    ///
    /// # Errors
    /// If what it received cannot be shown, which ends the session.
    fn poll(&mut self) -> Result<bool, Error> {
        Ok(true)
    }
}

/// What the other threads report to the one that waits for the end.
enum Event {
    /// Samples for the observer.
    Samples(Arc<Batch>),
    /// A process for the observer.
    Process(Process),
    /// All samples were fetched, or no more can be.
    Fetched(Result<(), Error>),
    /// The file cannot be written.
    Unwritten(WriteError),
}

/// What is written to the file.
enum Output {
    Samples(Arc<Batch>),
    Stacked(StackedSamples),
    Process(Process),
    Methods(Methods),
}

/// A recording in progress.
pub struct Recorder<'a, 'b> {
    file: Option<RecordedFile<'a>>,
    observer: Option<&'b mut dyn SampleObserver>,
    progress: Progress,
    events: Receiver<Event>,
    /// For threads that are started later.
    sender: Sender<Event>,
    sightings: Arc<Sightings>,
    scanner: Option<JoinHandle<()>>,
    fetch_state: Arc<FetchState>,
    fetcher: Option<JoinHandle<()>>,
    /// The trace session, until it is stopped.
    trace: Option<RunningTrace>,
    trace_result: Option<TraceResult>,
    /// The processes and threads that are recorded.
    tasks: RecordedTasks,
    /// The processes of the command, until samples are fetched.
    family: Option<Family>,
    /// Whether all samples were fetched.
    is_fetched: bool,
}

/// The file of a recording.
struct RecordedFile<'a> {
    path: &'a Path,
    /// Where the recording that the file had before is kept.
    old: Option<PathBuf>,
    /// Ends when all senders have ended.
    thread: Option<JoinHandle<Option<Target>>>,
    /// For threads that are started later.
    sender: Option<Sender<Output>>,
}

/// What a recorder needs of the machine.
pub struct RecorderSetup<'a> {
    /// The machine.
    pub system: &'a dyn System,
    /// Its processes.
    pub source: Box<dyn ProcessSource>,
    /// The processes found so far.
    pub processes: Processes,
    /// How much of the file is kept.
    pub limits: Limits,
    /// The trace session that delivers call stacks, if they are recorded.
    pub tracing: Option<Tracing>,
    /// The processes of the command, if only they are recorded.
    pub family: Option<Family>,
}

/// The file cannot be created, or an earlier recording cannot be moved out of its way.
#[derive(Debug, ThisError)]
#[error("cannot write {}", .path.display())]
pub struct Uncreated {
    /// The file.
    pub path: PathBuf,
    /// Error of the system.
    #[source]
    pub cause: io::Error,
}

impl UserError for Uncreated {
    fn exit(&self) -> Exit {
        Exit::Unwritten
    }

    fn remedy(&self) -> Option<String> {
        Some("-o with a file in a folder that exists and where you can write".to_owned())
    }
}

fn uncreated(path: &Path) -> impl FnOnce(io::Error) -> Uncreated {
    |cause| Uncreated { path: path.to_owned(), cause }
}

/// Opens the file without truncating it.
///
/// # Errors
/// If the file cannot be created.
pub fn open(path: &Path) -> Result<File, Uncreated> {
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(path);
    file.map_err(uncreated(path))
}

/// Returns where the earlier recording in a file is kept: `FILE.old`, as by perf.
fn old_path(path: &Path) -> PathBuf {
    let mut old = path.as_os_str().to_owned();
    old.push(".old");
    old.into()
}

/// Makes room for a recording. A file with contents is kept under another name, which is returned, with its parts.
/// Empty files and devices are left alone; parts without their recording are deleted.
fn keep_old(path: &Path, file: File) -> io::Result<(File, Option<PathBuf>)> {
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Ok((file, None));
    }
    if metadata.len() == 0 {
        remove_parts(path)?;
        return Ok((file, None));
    }
    // Windows refuses to rename some files that are open.
    drop(file);
    let old = old_path(path);
    fs::rename(path, &old)?;
    move_parts(path, &old)?;
    Ok((File::create(path)?, Some(old)))
}

/// Removes the file if it is empty, after a recording that did not start.
pub fn remove_if_empty(file: &File, path: &Path) {
    if file.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() == 0) {
        // If this fails, an empty file remains.
        let _ = fs::remove_file(path);
    }
}

impl<'a, 'b> Recorder<'a, 'b> {
    /// Writes the session block to the file, if there is one. A recording that the file has is kept in another file.
    ///
    /// # Errors
    /// If the system has no resources for the threads, or the file cannot be written.
    pub fn begin(
        file: Option<(&'a Path, File)>,
        mut observer: Option<&'b mut dyn SampleObserver>,
        session: &RecordedSession,
        setup: RecorderSetup,
    ) -> Result<Self, Error> {
        let (sender, events) = mpsc::channel();
        let RecorderSetup { system, source, mut processes, limits, tracing, family } = setup;
        let begun = file.map(|(path, file)| RecordedFile::begin(path, file, session, limits, &sender));
        let file = begun.transpose()?;
        let is_display = observer.as_ref().map_or(file.is_none(), |observer| observer.is_display());
        if let Some(observer) = &mut observer {
            observer.begin(session);
        }
        processes.set_clock(session.clock);
        let sightings = tracing.as_ref().map(Tracing::sightings).unwrap_or_default();
        let sender_of = |file: &RecordedFile| file.sender.clone();
        if let Some(tracing) = &tracing {
            // Windows' own rundown of threads can come late, or not at all.
            let threads = source.threads().unwrap_or_default();
            tracing.follow(&session.tasks, &threads, (session.events.len(), session.clock));
        }
        let trace = tracing.map(|tracing| tracing.run(session.clock, file.as_ref().and_then(sender_of)));
        let scanner = Scanner {
            processes,
            source,
            sightings: Arc::clone(&sightings),
            receivers: Receivers {
                file: file.as_ref().and_then(|file| file.sender.clone()),
                observer: observer.is_some().then(|| sender.clone()),
            },
        };
        Ok(Self {
            file,
            observer,
            progress: Progress::new(!is_display && system.shows_progress(!session.command.is_empty())),
            events,
            sender,
            sightings,
            scanner: Some(thread::spawn(move || scanner.run())),
            fetch_state: Arc::default(),
            fetcher: None,
            trace,
            trace_result: None,
            tasks: session.tasks.clone(),
            family,
            is_fetched: false,
        })
    }

    /// Returns where the recording that the file had before is kept.
    #[must_use]
    pub fn old_file(&self) -> Option<&Path> {
        self.file.as_ref()?.old.as_deref()
    }

    /// Queries the process of the command, which has started.
    pub fn track_command(&self, command: u32) {
        self.sightings.add_command(command);
    }

    /// Records a process.
    pub fn record_process(&mut self, process: Process) {
        if let Some(observer) = &mut self.observer {
            observer.process(&process);
        }
        if let Some(sender) = self.file.as_ref().and_then(|file| file.sender.as_ref()) {
            // A thread that has ended has reported why.
            let _ = sender.send(Output::Process(process));
        }
    }

    /// Begins to fetch samples. A stopped session has at most `max_left` records left.
    pub fn fetch(&mut self, stream: SampleStream, max_left: u64) {
        let file = self.file.as_ref().and_then(|file| file.sender.clone());
        let fetcher = Fetcher {
            stream,
            receiver: match self.trace.as_ref().and_then(RunningTrace::input) {
                Some(joiner) => Some(SampleReceiver::Joiner(joiner)),
                None => file.map(SampleReceiver::File),
            },
            observer: self.observer.is_some().then(|| self.sender.clone()),
            tasks: self.tasks.clone(),
            family: self.family.take(),
            sightings: Arc::clone(&self.sightings),
            state: Arc::clone(&self.fetch_state),
            max_left,
        };
        let events = self.sender.clone();
        self.fetcher = Some(thread::spawn(move || {
            // It is dropped if another error ended the recording.
            let _ = events.send(Event::Fetched(fetcher.run()));
        }));
    }

    /// Waits for a twentieth of a second, but not beyond `until`, while samples are recorded. Returns whether the
    /// driver has no more.
    ///
    /// # Errors
    /// If the driver does not answer, or the file cannot be written.
    pub fn step(&mut self, until: Option<Instant>) -> Result<bool, Error> {
        // A thread that has ended has sent its last event before, unless it panicked.
        let has_ended = self.fetcher.as_ref().is_none_or(JoinHandle::is_finished);
        let end = Instant::now() + POLL;
        let end = until.map_or(end, |until| until.min(end));
        loop {
            match self.events.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(event) => {
                    if self.receive(event)? {
                        return Ok(true);
                    }
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
            if Instant::now() >= end {
                break;
            }
        }
        self.progress.show(&self.fetch_state.record_counts());
        Ok(has_ended)
    }

    /// Passes an event to the observer. Returns whether all samples were fetched.
    fn receive(&mut self, event: Event) -> Result<bool, Error> {
        match (event, &mut self.observer) {
            (Event::Samples(batch), Some(observer)) => observer.samples(batch.records()),
            (Event::Process(process), Some(observer)) => observer.process(&process),
            (Event::Samples(_) | Event::Process(_), None) => {}
            (Event::Fetched(outcome), _) => {
                self.is_fetched = true;
                return outcome.map(|()| true);
            }
            (Event::Unwritten(cause), _) => return Err(self.unwritten(cause)),
        }
        Ok(false)
    }

    fn unwritten(&self, cause: WriteError) -> Error {
        unwritten(self.file.as_ref().map_or(Path::new(""), |file| file.path), cause).into()
    }

    /// Lets the observer show what it received. Returns whether to go on.
    ///
    /// # Errors
    /// If the observer fails.
    pub fn poll(&mut self) -> Result<bool, Error> {
        self.observer.as_mut().map_or(Ok(true), |observer| observer.poll())
    }

    /// Fetches the remaining samples of a stopped session, and queries every process a last time.
    ///
    /// # Errors
    /// If the driver does not answer, or the file cannot be written.
    pub fn drain(&mut self) -> Result<(), Error> {
        self.fetch_state.stop();
        // The observer's samples hold memory that the thread may wait for.
        while !self.is_fetched && !self.step(None)? {}
        join(&mut self.fetcher);
        // After the last samples, and before the last query of their processes.
        self.trace_result = self.trace.take().map(RunningTrace::stop);
        self.sightings.finish();
        join(&mut self.scanner);
        while let Ok(event) = self.events.try_recv() {
            self.receive(event)?;
        }
        Ok(())
    }

    /// Returns what became of the trace session, after [`drain`](Self::drain).
    pub fn trace_result(&mut self) -> Option<TraceResult> {
        self.trace_result.take()
    }

    /// Takes the numbers of the samples that were filtered, after [`drain`](Self::drain).
    fn take_shares(&self) -> Shares {
        self.fetch_state.take_shares()
    }

    /// Takes what was left of the processes of the command, after [`drain`](Self::drain).
    fn take_remaining(&self) -> Remaining {
        self.fetch_state.take_remaining()
    }

    /// Returns how often the recorder was woken to fetch samples until the stop.
    #[must_use]
    pub fn wakeups(&self) -> u64 {
        self.fetch_state.wakeups()
    }

    /// Writes the end of the file, and to the summary how many of the samples were kept. Returns the counts of records
    /// and the size of the file in bytes.
    ///
    /// # Errors
    /// If the file cannot be written to its end.
    pub fn finish(mut self, summary: &mut Summary) -> Result<(RecordCounts, u64), Error> {
        let record_counts = self.fetch_state.record_counts();
        let Some(file) = &mut self.file else { return Ok((record_counts, 0)) };
        let path = file.path;
        let target = file.join();
        // The error of the thread that writes is the last event.
        while let Ok(event) = self.events.try_recv() {
            self.receive(event)?;
        }
        let Some(target) = target else { return Ok((record_counts, 0)) };
        let file = target.finish(summary).map_err(|cause| unwritten(path, cause))?;
        let length = file.metadata().map_err(|cause| OutputError::File { path: path.to_owned(), cause })?.len();
        Ok((record_counts, length))
    }
}

/// Ends the threads of a recording that failed. What they have is written.
impl Drop for Recorder<'_, '_> {
    fn drop(&mut self) {
        self.fetch_state.abandon();
        self.sightings.abandon();
        // The thread that fetches may wait for the memory of samples that the observer did not receive.
        self.events = mpsc::channel().1;
        join(&mut self.fetcher);
        self.trace.take().map(RunningTrace::stop);
        join(&mut self.scanner);
        if let Some(file) = &mut self.file {
            file.join();
        }
    }
}

/// Waits for the end of a thread.
fn join<T>(thread: &mut Option<JoinHandle<T>>) -> Option<T> {
    // A panic of the thread has been reported on standard error.
    thread.take()?.join().ok()
}

impl<'a> RecordedFile<'a> {
    fn begin(
        path: &'a Path,
        file: File,
        session: &RecordedSession,
        limits: Limits,
        events: &Sender<Event>,
    ) -> Result<Self, Error> {
        let (file, old) = keep_old(path, file).map_err(uncreated(path))?;
        let target = Target::begin(path, file, session, limits).map_err(|cause| unwritten(path, cause))?;
        let (sender, input) = mpsc::channel();
        let events = events.clone();
        let thread = thread::spawn(move || writing::run(target, &input, &events));
        Ok(Self { path, old, thread: Some(thread), sender: Some(sender) })
    }

    /// Waits until everything is written. The other senders must have ended.
    fn join(&mut self) -> Option<Target> {
        self.sender = None;
        join(&mut self.thread).flatten()
    }
}

/// Converts the final counts of a session for the file.
fn counts(records: &[CountRecord], shares: &Shares) -> Vec<Count> {
    let count = |record: &CountRecord| {
        let CountRecord { index: event, processor, count, samples, lost, throttled, unmet, recorder, .. } = *record;
        Count {
            event,
            processor,
            count,
            samples,
            lost,
            throttled,
            unmet,
            filtered: shares.get(&(event, processor)).map_or(0, |share| share.others.samples),
            disturbed: disturbance::recorded(record),
            recorder,
        }
    };
    records.iter().map(count).collect()
}

fn unwritten(path: &Path, cause: WriteError) -> Unwritten {
    Unwritten { path: path.to_owned(), cause }
}

#[cfg(test)]
mod tests;
