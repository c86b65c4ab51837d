//! The thread that fetches samples. It waits for the driver, and for memory if the disk is slow; never for the disk
//! itself, for a query of a process or for the terminal.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use halprof::SampleStream;
use halprof::counting::SampledShare;
use protocol::{Record, SampleRecord, UNKNOWN};
use recording::RecordedTasks;

use super::batch::{Batch, Buffers};
use super::family::{Family, Remaining};
use super::joining::Input;
use super::scanning::Sightings;
use super::tasks::TaskError;
use super::{Event, Output};
use counts::record_counts::RecordCounts;
use user_error::Error;

/// Maximum time for which a request waits for samples.
const WAIT: Duration = Duration::from_millis(100);

/// What the thread shares with the one that started it.
#[derive(Debug, Default)]
pub struct FetchState {
    /// Whether the session is stopped: requests need not wait.
    is_stopped: AtomicBool,
    /// Whether no more samples are needed.
    is_abandoned: AtomicBool,
    /// Number of answers of the driver until the stop: how often the thread was woken.
    wakeups: AtomicU64,
    record_counts: Mutex<RecordCounts>,
    shares: Mutex<Shares>,
    remaining: Mutex<Remaining>,
}

/// The samples of the processes and threads that are recorded, and those of all others, by event and processor; empty
/// if all are recorded.
pub type Shares = BTreeMap<(u32, u32), SampledShare>;

impl FetchState {
    /// Notes that the session was stopped.
    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::Release);
    }

    /// Ends the thread after its present request.
    pub fn abandon(&self) {
        self.is_abandoned.store(true, Ordering::Release);
    }

    /// Returns how often the thread was woken until the stop.
    pub fn wakeups(&self) -> u64 {
        self.wakeups.load(Ordering::Relaxed)
    }

    /// Returns the counts of the records that were fetched.
    pub fn record_counts(&self) -> RecordCounts {
        *self.record_counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the numbers of the samples that were kept and filtered.
    pub fn take_shares(&self) -> Shares {
        std::mem::take(&mut self.shares.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes what was left of the processes of the command.
    pub fn take_remaining(&self) -> Remaining {
        std::mem::take(&mut self.remaining.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Receives the samples for the file.
pub enum SampleReceiver {
    /// The thread that writes it.
    File(Sender<Output>),
    /// The thread that joins them with their stacks.
    Joiner(Sender<Input>),
}

/// Fetches the samples of a session and passes them on.
pub struct Fetcher {
    /// The samples.
    pub stream: SampleStream,
    /// What receives the samples for the file, if one is written.
    pub receiver: Option<SampleReceiver>,
    /// The observer, if there is one.
    pub observer: Option<Sender<Event>>,
    /// The processes and threads whose samples are passed on.
    pub tasks: RecordedTasks,
    /// The processes of the command, if only their samples are passed on.
    pub family: Option<Family>,
    /// The processes that have samples.
    pub sightings: Arc<Sightings>,
    /// Shared with the thread that started it.
    pub state: Arc<FetchState>,
    /// Maximum number of records that a stopped session has left.
    pub max_left: u64,
}

impl Fetcher {
    /// Fetches until the session is stopped and has no more samples.
    pub fn run(mut self) -> Result<(), Error> {
        let buffers = Buffers::new();
        let mut processes = HashSet::new();
        let mut shares = Shares::new();
        while !self.state.is_abandoned.load(Ordering::Acquire) {
            let is_stopped = self.state.is_stopped.load(Ordering::Acquire);
            let wait = if is_stopped { Duration::ZERO } else { WAIT };
            let (mut fetched, mut updated) = (0, Ok(()));
            let Self { stream, tasks, family, .. } = &mut self;
            let (batch, is_last) = buffers.fetch(stream, wait, |record| {
                if let Some(family) = family.as_mut().filter(|_| fetched == 0) {
                    updated = family.update(Instant::now());
                }
                fetched += 1;
                tasks.is_all() || is_kept(record, tasks, family.as_ref(), &mut shares)
            })?;
            updated.map_err(|cause| TaskError::Command { cause })?;
            self.state.wakeups.fetch_add((!is_stopped).into(), Ordering::Relaxed);
            if is_stopped {
                self.max_left = self.max_left.checked_sub(fetched).ok_or_else(SampleStream::too_many)?;
            }
            if !batch.records().is_empty() {
                self.state.record_counts.lock().unwrap_or_else(PoisonError::into_inner).add(batch.records());
                if self.receiver.is_some() || self.observer.is_some() {
                    processes.extend(sampled(batch.records()));
                    self.sightings.add(&mut processes);
                }
                self.pass_on(batch);
            }
            if is_last || is_stopped && fetched == 0 {
                break;
            }
        }
        *self.state.shares.lock().unwrap_or_else(PoisonError::into_inner) = shares;
        if let Some(family) = self.family {
            let remaining = family.remaining(Instant::now()).map_err(|cause| TaskError::Command { cause })?;
            *self.state.remaining.lock().unwrap_or_else(PoisonError::into_inner) = remaining;
        }
        Ok(())
    }

    /// Passes samples on. A receiver that has ended has reported why.
    fn pass_on(&self, batch: Batch) {
        let batch = Arc::new(batch);
        match &self.receiver {
            Some(SampleReceiver::File(file)) => {
                let _ = file.send(Output::Samples(Arc::clone(&batch)));
            }
            Some(SampleReceiver::Joiner(joiner)) => {
                let _ = joiner.send(Input::Samples(Arc::clone(&batch)));
            }
            None => {}
        }
        if let Some(observer) = &self.observer {
            let _ = observer.send(Event::Samples(batch));
        }
    }
}

/// Returns whether a record belongs to one of these tasks, or to none. Notes a sample in either case.
fn is_kept(record: &SampleRecord, tasks: &RecordedTasks, family: Option<&Family>, shares: &mut Shares) -> bool {
    let is_of_tasks = |process, thread| match family {
        Some(family) => family.contains(process),
        None => tasks.select(process, thread),
    };
    let record = record.parse().ok();
    match record {
        Some(Record::LastBranch(branch)) => return is_of_tasks(branch.process, branch.thread),
        Some(Record::Access(access)) => return is_of_tasks(access.process, access.thread),
        _ => {}
    }
    let Some(sample) = record.and_then(|record| record.sample()) else { return true };
    let is_kept = is_of_tasks(sample.process, sample.thread);
    let share = shares.entry((sample.event, sample.processor)).or_default();
    if is_kept { &mut share.own } else { &mut share.others }.add(sample.events);
    is_kept
}

/// Returns the processes of the samples among `records`; most repetitions are left out.
pub fn sampled(records: &[SampleRecord]) -> impl Iterator<Item = u32> {
    let mut last = None;
    let samples = records.iter().filter_map(|record| record.parse().ok()?.sample());
    samples.map(|sample| sample.process).filter(move |id| *id != UNKNOWN && last.replace(*id) != Some(*id))
}
