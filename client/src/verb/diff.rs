//! `diff`: compares two recordings, or two outputs of `stat --json`, with the statistical error of each change.

mod counts;
mod samples;
mod text;

use std::io::Read;
use std::path::{Path, PathBuf};

use report::{Change, Confidence, Estimate};
use serde::Serialize;
use thiserror::Error as ThisError;

use crate::cli::{DiffArgs, FailAbove, Work};
use crate::reading::open::{RecordingError, reader, unreadable};
use terminal::context::Context;
use terminal::document::Document;
use user_error::exit::Exit;
use user_error::{Error, UserError};

pub use counts::{SavedStat, compare as compare_counts};
pub use text::text;

/// First byte of a recording, which no text has.
const RECORDING: u8 = 0x89;

/// Two measurements that are compared.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Comparison {
    /// What is compared.
    pub kind: Kind,
    /// What the names of each row are.
    pub columns: Vec<&'static str>,
    /// Whether the shares of rows are those of the wall time.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub latency: bool,
    /// The limit of `--fail-above`, as a share.
    pub fail_above: Option<f64>,
    /// The units of work of `--work`, of the old and the new one: totals, counts and events of rows are those of one
    /// unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work: Option<[f64; 2]>,
    /// For how many seconds the old and the new one were measured, if both files say so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elapsed_seconds: Option<[f64; 2]>,
    /// Whether a change is worse than the limit.
    pub failed: bool,
    /// The compared events of recordings, or one section with all counts.
    pub sections: Vec<Section>,
    /// Events that only one of the two has.
    pub unmatched: Vec<String>,
}

impl Document for Comparison {
    const SCHEMA: &'static str = "halprof.diff/1";
}

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Recordings: the values of rows are shares, and their changes are differences of shares.
    Samples,
    /// Counts: the changes are relative to the old count.
    Counts,
}

/// An event of two recordings, or all counts.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Section {
    /// The event of two recordings.
    pub event: Option<String>,
    /// The events that all samples represent; the change is relative.
    pub total: Option<ChangedRow>,
    /// Lost samples as a share of all samples, in the old and the new recording.
    pub lost_shares: Option<[f64; 2]>,
    /// The rows by the size of their change, the largest first.
    pub rows: Vec<ChangedRow>,
}

/// A value that is compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ChangedRow {
    /// The names of the row: those of `--sort`, the event of a count, or none for a total.
    pub names: Vec<String>,
    /// The old value.
    pub old: f64,
    /// The new value.
    pub new: f64,
    /// The change; `None` if it is infinite, from zero.
    pub change: Option<f64>,
    /// Lower bound of its 95 % confidence interval; `None` if the error is unknown, or the bound is infinite.
    pub low: Option<f64>,
    /// Upper bound.
    pub high: Option<f64>,
    /// Whether the interval does not contain zero; `None` if the error is unknown.
    pub significant: Option<bool>,
    /// Whether the change is worse than the limit of `--fail-above`: that of the events, if it is known.
    pub failed: bool,
    /// The events of a row of recordings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<ChangedEvents>,
}

/// The events of a row of recordings, and their change as a share of the old total.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ChangedEvents {
    /// The old number.
    pub old: f64,
    /// The new number.
    pub new: f64,
    /// Their difference as a share of the events of all rows of the old recording; `None` if it has none.
    pub change: Option<f64>,
    /// Lower bound of its 95 % confidence interval.
    pub low: Option<f64>,
    /// Upper bound.
    pub high: Option<f64>,
}

impl ChangedRow {
    /// Creates a row. `change` computes the change with a confidence; it is `None` if the error is unknown.
    fn new(
        names: Vec<String>,
        [old, new]: [f64; 2],
        relative: bool,
        judge: &Judge,
        change: impl Fn(Confidence) -> Option<Change>,
    ) -> Self {
        let known = change(Confidence::OF_EACH);
        let plain = match relative {
            false => new - old,
            true if old > 0.0 => new / old - 1.0,
            true if new > 0.0 => f64::INFINITY,
            true => 0.0,
        };
        let finite = |number: f64| Some(number).filter(|number| number.is_finite());
        Self {
            names,
            old,
            new,
            change: finite(plain),
            low: known.and_then(|known| finite(known.low)),
            high: known.and_then(|known| finite(known.high)),
            significant: known.map(|known| known.is_significant()),
            failed: judge.fails(change),
            events: None,
        }
    }

    /// Adds the events of a row, by whose change it is judged.
    fn with_events(self, [old, new]: [&Estimate; 2], whole: f64, judge: &Judge) -> Self {
        let change = |confidence| (whole > 0.0).then(|| Change::of_amounts(old, new, whole, confidence));
        let known = change(Confidence::OF_EACH);
        let events = ChangedEvents {
            old: old.value,
            new: new.value,
            change: known.map(|known| known.change),
            low: known.map(|known| known.low),
            high: known.map(|known| known.high),
        };
        Self { failed: judge.fails(change), events: Some(events), ..self }
    }
}

/// Decides whether a change is a failure.
struct Judge {
    /// The limit, as a share.
    limit: Option<f64>,
    /// The confidence of all changes together.
    confidence: Confidence,
}

impl Judge {
    fn new(fail: FailAbove, changes: usize) -> Self {
        Self { limit: fail.fail_above.map(|percent| percent / 100.0), confidence: Confidence::of_all(changes) }
    }

    /// Returns whether a change is above the limit with the confidence of all changes together.
    fn fails(&self, change: impl Fn(Confidence) -> Option<Change>) -> bool {
        self.limit.is_some_and(|limit| change(self.confidence).is_some_and(|all| all.low > limit))
    }
}

impl Comparison {
    fn new(
        kind: Kind,
        columns: Vec<&'static str>,
        fail: FailAbove,
        mut sections: Vec<Section>,
        unmatched: Vec<String>,
    ) -> Self {
        for section in &mut sections {
            let size = |row: &ChangedRow| row.change.map_or(f64::INFINITY, f64::abs);
            section
                .rows
                .sort_by(|one, other| size(other).total_cmp(&size(one)).then_with(|| one.names.cmp(&other.names)));
        }
        let mut all = sections.iter().flat_map(|section| section.total.iter().chain(&section.rows));
        let failed = all.any(|row| row.failed);
        let fail_above = fail.fail_above.map(|percent| percent / 100.0);
        Self {
            kind,
            columns,
            latency: false,
            fail_above,
            work: None,
            elapsed_seconds: None,
            failed,
            sections,
            unmatched,
        }
    }

    /// Says for which work the comparison was made, and for how many seconds the two were measured.
    fn with_work(self, work: Option<Work>, elapsed_seconds: [Option<f64>; 2]) -> Self {
        let elapsed_seconds = if let [Some(old), Some(new)] = elapsed_seconds { Some([old, new]) } else { None };
        Self { work: work.map(|Work { old, new }| [old, new]), elapsed_seconds, ..self }
    }

    /// Returns the exit code.
    pub fn exit(&self) -> Exit {
        if self.failed { Exit::Worse } else { Exit::Done }
    }
}

/// Why two files cannot be compared.
#[derive(Debug, ThisError)]
pub enum DiffError {
    /// A file is neither a recording nor JSON of `stat`.
    #[error("{} is neither a recording nor the output of .\\client stat --json", .path.display())]
    Neither {
        /// The file.
        path: PathBuf,
        /// Why it is not JSON of `stat`.
        #[source]
        cause: serde_json::Error,
    },
    /// One file is a recording and the other one has counts.
    #[error("{} is a recording, and {} has counts", .recording.display(), .counts.display())]
    TwoKinds {
        /// The recording.
        recording: PathBuf,
        /// The counts.
        counts: PathBuf,
    },
    /// The two have no event in common.
    #[error("the two have no event in common: {}", .events.join(", "))]
    NothingInCommon {
        /// The events of both.
        events: Vec<String>,
    },
    /// `--fail-above` with a count that has no error.
    #[error("the count of {event} has no error, so --fail-above cannot decide")]
    NoError {
        /// The event.
        event: String,
    },
    /// Options that select samples, with files of counts.
    #[error("options that select samples do not apply to counts")]
    Selection,
}

impl UserError for DiffError {
    fn exit(&self) -> Exit {
        match self {
            Self::Neither { .. } => Exit::Recording,
            Self::NothingInCommon { .. } => Exit::NotRecorded,
            Self::TwoKinds { .. } | Self::NoError { .. } | Self::Selection => Exit::Usage,
        }
    }

    fn remedy(&self) -> Option<String> {
        let text = match self {
            Self::Neither { .. } => "a file of .\\client record -o FILE, or of .\\client stat --json -o FILE",
            Self::NoError { .. } => "count several runs: .\\client stat -r 5 --json -o FILE -- COMMAND",
            Self::Selection => "leave them out, or compare two recordings",
            Self::TwoKinds { .. } | Self::NothingInCommon { .. } => return None,
        };
        Some(text.to_owned())
    }
}

pub fn run(args: &DiffArgs, context: &mut Context) -> Result<i32, Error> {
    let mut comparison = match [read(&args.old)?, read(&args.new)?] {
        [Measured::Recording, Measured::Recording] => samples::compare(args, context)?,
        [Measured::Counts(old), Measured::Counts(new)] => {
            if !args.selection.is_empty() || args.latency {
                return Err(DiffError::Selection.into());
            }
            counts::compare(&old, &new, args.fail, args.work)?
        }
        [Measured::Recording, Measured::Counts(_)] => return Err(two_kinds(&args.old, &args.new)),
        [Measured::Counts(_), Measured::Recording] => return Err(two_kinds(&args.new, &args.old)),
    };
    if args.json {
        comparison.sections.iter_mut().for_each(|section| section.rows.truncate(args.max_rows()));
        context.json(&comparison)?;
    } else {
        context.say(&text(&comparison, args.max_rows(), context.width(args.wide)))?;
    }
    Ok(comparison.exit().code())
}

/// Reads a file of `stat --json`.
pub fn read_counts(path: &Path) -> Result<SavedStat, Error> {
    match read(path)? {
        Measured::Counts(counts) => Ok(counts),
        Measured::Recording => {
            let cause = serde::de::Error::custom("it is a recording");
            Err(DiffError::Neither { path: path.to_owned(), cause }.into())
        }
    }
}

fn two_kinds(recording: &Path, counts: &Path) -> Error {
    DiffError::TwoKinds { recording: recording.to_owned(), counts: counts.to_owned() }.into()
}

/// What a file has.
enum Measured {
    /// A recording, which is read later.
    Recording,
    Counts(SavedStat),
}

fn read(path: &Path) -> Result<Measured, Error> {
    let failed = |cause| -> RecordingError { unreadable(path, recording::ReadError::Read { offset: 0, cause }) };
    let mut file = reader(path)?;
    let mut bytes = Vec::new();
    Read::by_ref(&mut file).take(1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes == [RECORDING] {
        return Ok(Measured::Recording);
    }
    file.read_to_end(&mut bytes).map_err(failed)?;
    let counts = serde_json::from_slice(&bytes);
    Ok(Measured::Counts(counts.map_err(|cause| DiffError::Neither { path: path.to_owned(), cause })?))
}
