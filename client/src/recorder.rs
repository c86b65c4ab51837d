//! Writes the samples of a session to a file while it is running.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use protocol::{CountRecord, SampleRecord};
use recording::{Count, Process, Session, Summary, WriteError, Writer};
use thiserror::Error as ThisError;

use crate::connection::{self, Connection};
use crate::disturbance;
use crate::error::{Error, UserError};
use crate::exit::Exit;
use crate::output::OutputError;
use crate::processes::Processes;
use crate::progress::Progress;
use crate::record_counts::RecordCounts;
use crate::system::System;

/// Maximum time for which a request waits for samples.
const WAIT: Duration = Duration::from_millis(100);

/// The same while processes are scheduled for a query.
const SHORT_WAIT: Duration = Duration::from_millis(10);

/// Maximum time for queries of processes between two requests.
const MAX_QUERY_TIME: Duration = Duration::from_millis(20);

/// Maximum number of samples in a reply.
const MAX_BATCH: usize = 16_384;

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
        let path = self.path.display();
        Some(format!("-o on a disk with free space; to read what was written before:\n       client report {path}"))
    }
}

/// The session from which samples are fetched.
#[derive(Clone, Copy)]
pub struct Samples<'a> {
    /// Connection to the driver.
    pub connection: &'a Connection,
    /// Number of the session.
    pub session: u64,
}

/// Receives processes and samples while they are recorded.
pub trait SampleObserver {
    /// Receives the session before its processes and samples.
    fn begin(&mut self, _session: &Session) {}
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

/// A recording in progress.
pub struct Recorder<'a, 'b> {
    /// The file, if one is written.
    file: Option<(&'a Path, Writer<File>)>,
    /// Where the recording that the file had before is kept.
    old_file: Option<PathBuf>,
    observer: Option<&'b mut dyn SampleObserver>,
    system: &'a dyn System,
    processes: Processes,
    progress: Progress,
    record_counts: RecordCounts,
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

/// Makes room for a recording. A file with contents is kept under another name, which is returned. Empty files and
/// devices are left alone.
fn keep_old(path: &Path, file: File) -> io::Result<(File, Option<PathBuf>)> {
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.len() == 0 {
        return Ok((file, None));
    }
    // Windows refuses to rename some files that are open.
    drop(file);
    let old = old_path(path);
    fs::rename(path, &old)?;
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
    pub fn begin(
        file: Option<(&'a Path, File)>,
        mut observer: Option<&'b mut dyn SampleObserver>,
        session: &Session,
        system: &'a dyn System,
        processes: Processes,
    ) -> Result<Self, Error> {
        let mut old_file = None;
        let begin = |(path, file): (&'a Path, File)| -> Result<_, Error> {
            let (file, old) = keep_old(path, file).map_err(uncreated(path))?;
            old_file = old;
            Ok((path, Writer::new(file, session).map_err(|cause| unwritten(path, cause))?))
        };
        let is_display = observer.as_ref().is_some_and(|observer| observer.is_display());
        if let Some(observer) = &mut observer {
            observer.begin(session);
        }
        Ok(Self {
            file: file.map(begin).transpose()?,
            old_file,
            observer,
            system,
            processes,
            progress: Progress::new(!is_display && system.shows_progress(!session.command.is_empty())),
            record_counts: RecordCounts::default(),
        })
    }

    /// Returns where the recording that the file had before is kept.
    pub fn old_file(&self) -> Option<&Path> {
        self.old_file.as_deref()
    }

    /// Queries the process of the command, which has started.
    pub fn track_command(&mut self, command: u32) -> Result<(), Error> {
        self.processes.track_command(command, Instant::now());
        self.query_processes(MAX_QUERY_TIME)
    }

    /// Records processes.
    pub fn record_processes(&mut self, changes: impl IntoIterator<Item = Process>) -> Result<(), Error> {
        for process in changes {
            if let Some((path, writer)) = &mut self.file {
                writer.process(&process).map_err(|cause| unwritten(path, cause))?;
            }
            if let Some(observer) = &mut self.observer {
                observer.process(&process);
            }
        }
        Ok(())
    }

    /// Fetches samples once and queries some of their processes. Waits for at most a tenth of a second, and not beyond
    /// `until`. Returns whether the driver has no more samples.
    pub fn step(&mut self, samples: Samples, until: Option<Instant>) -> Result<bool, Error> {
        let now = Instant::now();
        let longest = if self.processes.has_scheduled() { SHORT_WAIT } else { WAIT };
        let due = [until, self.processes.next_query()].into_iter().flatten().min();
        let wait = due.map_or(longest, |due| due.saturating_duration_since(now).min(longest));
        let (_, is_last) = self.fetch(samples, wait)?;
        self.query_processes(MAX_QUERY_TIME)?;
        self.progress.show(&self.record_counts);
        Ok(is_last)
    }

    /// Lets the observer show what it received. Returns whether to go on.
    pub fn poll(&mut self) -> Result<bool, Error> {
        self.observer.as_mut().map_or(Ok(true), |observer| observer.poll())
    }

    /// Fetches the remaining samples of a stopped session, at most `records`, and queries all processes that are
    /// scheduled.
    pub fn drain(&mut self, samples: Samples, mut records: u64) -> Result<(), Error> {
        loop {
            let (count, is_last) = self.fetch(samples, Duration::ZERO)?;
            if is_last || count == 0 {
                break;
            }
            records = records.checked_sub(count).ok_or_else(connection::too_many_samples)?;
        }
        self.query_processes(Duration::MAX)?;
        let kernel = self.processes.query_kernel(self.system, Instant::now());
        self.record_processes(kernel)
    }

    /// Writes the end of the file. Returns the counts of records and the size of the file in bytes.
    pub fn finish(self, summary: &Summary) -> Result<(RecordCounts, u64), Error> {
        let Some((path, writer)) = self.file else { return Ok((self.record_counts, 0)) };
        let file = writer.finish(summary).map_err(|cause| unwritten(path, cause))?;
        let length = file.metadata().map_err(|cause| OutputError::File { path: path.to_owned(), cause })?.len();
        Ok((self.record_counts, length))
    }

    /// Records one reply. Returns its number of records and whether it was the last.
    fn fetch(&mut self, samples: Samples, wait: Duration) -> Result<(u64, bool), Error> {
        let batch = samples.connection.samples(samples.session, wait, MAX_BATCH)?;
        if let Some((path, writer)) = &mut self.file {
            writer.samples(&batch.samples).map_err(|cause| unwritten(path, cause))?;
        }
        if let Some(observer) = &mut self.observer {
            observer.samples(&batch.samples);
        }
        self.record_counts.add(&batch.samples);
        self.processes.schedule(&batch.samples, Instant::now());
        Ok((batch.samples.len() as u64, batch.is_last))
    }

    fn query_processes(&mut self, max_time: Duration) -> Result<(), Error> {
        let changes = self.processes.query_scheduled(self.system, Instant::now(), max_time);
        self.record_processes(changes)
    }
}

/// Converts the final counts of a session for the file.
pub fn counts(records: &[CountRecord]) -> Vec<Count> {
    let count = |record: &CountRecord| {
        let CountRecord { source, modes, processor, count, samples, lost, throttled, .. } = *record;
        Count { source, modes, processor, count, samples, lost, throttled, disturbed: disturbance::recorded(record) }
    };
    records.iter().map(count).collect()
}

fn unwritten(path: &Path, cause: WriteError) -> Unwritten {
    Unwritten { path: path.to_owned(), cause }
}
