//! The newest samples of a recording with a limit, in files beside it: a ring on disk.
//!
//! The recording has the processes. Its samples are in `FILE.part1`, `FILE.part2` and so on, each of which is a
//! recording without a summary. While a limit is exceeded, the part with the oldest samples is deleted. At the end the
//! parts are appended to the recording, and each is deleted when it has been. Until then,
//! [`JoinedFile`](crate::JoinedFile) reads them together.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use protocol::{RecordKind, SampleRecord};

use crate::block::{Kept, RecordedSession};
use crate::stack::SampleStack;
use crate::writer::{WriteError, Writer};

/// Follows the name of the recording in the name of a part, before its number.
const SUFFIX: &str = ".part";

/// Number of parts that are as large, or cover as much time, as the limit allows.
const PARTS: u64 = 8;

/// Units of [`Kept::elapsed`] per second.
const UNITS: u128 = 10_000_000;

/// What is kept of a recording.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// Maximum size of the parts in bytes. A block that was just written can exceed it.
    pub bytes: Option<u64>,
    /// Time that is kept. An eighth more can be, and a block.
    pub time: Option<Duration>,
}

impl Limits {
    /// Returns whether everything is kept.
    #[must_use]
    pub fn are_none(&self) -> bool {
        *self == Self::default()
    }
}

/// Returns the path of a part of a recording.
fn part_path(recording: &Path, number: u32) -> PathBuf {
    let mut path = recording.as_os_str().to_owned();
    path.push(format!("{SUFFIX}{number}"));
    path.into()
}

/// Returns the numbers and paths of the parts that a recording has, in ascending order.
///
/// # Errors
/// If the folder cannot be read.
pub fn existing_parts(recording: &Path) -> io::Result<Vec<(u32, PathBuf)>> {
    let folder = recording.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    let mut prefix = recording.file_name().unwrap_or_default().to_owned();
    prefix.push(SUFFIX);
    let number = |name: &OsStr| {
        let digits = name.as_encoded_bytes().strip_prefix(prefix.as_encoded_bytes())?;
        str::from_utf8(digits).ok()?.parse().ok()
    };
    let mut parts = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        parts.extend(number(&name).map(|number| (number, folder.join(name))));
    }
    parts.sort_unstable();
    Ok(parts)
}

/// Deletes the parts of a recording.
///
/// # Errors
/// If the folder cannot be read, or a part cannot be deleted.
pub fn remove_parts(recording: &Path) -> io::Result<()> {
    existing_parts(recording)?.into_iter().try_for_each(|(_, part)| fs::remove_file(part))
}

/// Renames the parts of a recording that was renamed. Those that `to` had are deleted.
///
/// # Errors
/// If the folder cannot be read, or a part cannot be deleted or renamed.
pub fn move_parts(from: &Path, to: &Path) -> io::Result<()> {
    remove_parts(to)?;
    existing_parts(from)?.into_iter().try_for_each(|(number, part)| fs::rename(part, part_path(to, number)))
}

/// Writes the newest samples of a recording.
#[derive(Debug)]
pub struct Parts {
    recording: PathBuf,
    session: RecordedSession,
    /// Limits in bytes, and in units of the session's clock.
    bytes: u64,
    time: u64,
    /// The parts with samples, the newest last.
    files: VecDeque<Part>,
    /// Number of samples that were removed.
    removed: u64,
}

#[derive(Debug)]
struct Part {
    path: PathBuf,
    writer: Writer<File>,
    samples: u64,
    /// Earliest and latest time of a record.
    times: [u64; 2],
}

impl Part {
    /// Counts records that were written.
    fn count<'a>(&mut self, records: impl Iterator<Item = &'a SampleRecord>) {
        for record in records {
            let [earliest, latest] = self.times;
            self.times = [earliest.min(record.time()), latest.max(record.time())];
            self.samples += u64::from(record.kind().is_some_and(RecordKind::is_sample));
        }
    }

    fn remove(self) -> Result<(), WriteError> {
        // The file is closed first: not every system deletes an open one.
        drop(self.writer);
        Ok(fs::remove_file(self.path)?)
    }
}

impl Parts {
    /// Prepares to write parts of a recording, which has none.
    #[must_use]
    pub fn new(recording: &Path, session: &RecordedSession, limits: Limits) -> Self {
        Self {
            recording: recording.to_owned(),
            session: session.clone(),
            bytes: limits.bytes.unwrap_or(u64::MAX),
            time: limits.time.map_or(u64::MAX, |time| ticks(time, session.clock)),
            files: VecDeque::new(),
            removed: 0,
        }
    }

    /// Adds samples, and removes old ones that exceed a limit.
    ///
    /// # Errors
    /// If a part cannot be written or removed.
    pub fn samples(&mut self, records: &[SampleRecord]) -> Result<(), WriteError> {
        if records.is_empty() {
            return Ok(());
        }
        let part = self.part()?;
        part.writer.samples(records)?;
        part.count(records.iter());
        self.remove_old()
    }

    /// Adds samples with their call stacks, and removes old ones that exceed a limit.
    ///
    /// # Errors
    /// If a part cannot be written or removed.
    pub fn stacked_samples(&mut self, samples: &[(SampleRecord, SampleStack)]) -> Result<(), WriteError> {
        if samples.is_empty() {
            return Ok(());
        }
        let part = self.part()?;
        part.writer.stacked_samples(samples)?;
        part.count(samples.iter().map(|(record, _)| record));
        self.remove_old()
    }

    /// Returns the newest part, or a new one if it is full.
    fn part(&mut self) -> Result<&mut Part, WriteError> {
        if self.files.back().is_none_or(|part| self.is_full(part)) {
            self.session.part += 1;
            let path = part_path(&self.recording, self.session.part);
            let writer = Writer::new(File::create(&path)?, &self.session)?;
            if let Some(full) = self.files.back_mut() {
                full.writer.forget_stacks();
            }
            self.files.push_back(Part { path, writer, samples: 0, times: [u64::MAX, 0] });
        }
        Ok(self.files.back_mut().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?)
    }

    fn remove_old(&mut self) -> Result<(), WriteError> {
        while self.exceed_limits() {
            let Some(oldest) = self.files.pop_front() else { break };
            self.removed += oldest.samples;
            oldest.remove()?;
        }
        Ok(())
    }

    fn is_full(&self, part: &Part) -> bool {
        let [earliest, latest] = part.times;
        part.writer.written() >= self.bytes / PARTS || latest.saturating_sub(earliest) >= self.time / PARTS
    }

    /// Returns whether the oldest part must be removed. The newest one always stays.
    fn exceed_limits(&self) -> bool {
        let (Some(oldest), true) = (self.files.front(), self.files.len() > 1) else { return false };
        let bytes: u64 = self.files.iter().map(|part| part.writer.written()).sum();
        let ([_, latest_of_oldest], [_, latest]) = (oldest.times, self.times());
        bytes > self.bytes || latest.saturating_sub(latest_of_oldest) > self.time
    }

    /// Appends the parts to the recording and deletes them. Returns what was kept, if anything was removed.
    ///
    /// # Errors
    /// If a part cannot be read or deleted, or the recording cannot be written.
    pub fn append_to(self, recording: &mut Writer<File>) -> Result<Option<Kept>, WriteError> {
        let [earliest, latest] = self.times();
        for part in self.files {
            recording.append(File::open(&part.path)?, part.writer.blocks())?;
            part.remove()?;
        }
        let ticks = u128::from(latest.saturating_sub(earliest));
        let elapsed = ticks * UNITS / u128::from(self.session.clock.max(1));
        let kept = Kept { elapsed: u64::try_from(elapsed).unwrap_or(u64::MAX), removed: self.removed };
        Ok((kept.removed > 0).then_some(kept))
    }

    /// Returns the earliest and the latest time of a record.
    fn times(&self) -> [u64; 2] {
        let times = self.files.iter().map(|part| part.times);
        times.fold([u64::MAX, 0], |[first, last], [earliest, latest]| [first.min(earliest), last.max(latest)])
    }
}

/// Returns a time in units of a clock, rounded up.
fn ticks(time: Duration, clock: u64) -> u64 {
    let ticks = (time.as_nanos() * u128::from(clock)).div_ceil(1_000_000_000);
    u64::try_from(ticks).unwrap_or(u64::MAX)
}
