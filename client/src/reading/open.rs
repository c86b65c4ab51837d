//! Opens recordings, and says why one cannot be shown.

use std::io::{self, BufReader, ErrorKind};
use std::path::{Path, PathBuf};

use halprof::text::argument::argument;
use recording::{JoinedFile, ReadError};
use thiserror::Error as ThisError;

use terminal::read_progress::ReadProgress;
use user_error::UserError;
use user_error::exit::Exit;

/// Maximum number of names that an error lists.
const MAX_NAMES: usize = 5;

/// Maximum number of functions that an error lists, each on a line.
const MAX_FUNCTIONS: usize = 8;

/// Why a recording cannot be shown.
#[derive(Debug, ThisError)]
pub enum RecordingError {
    /// There is no such file.
    #[error("the recording {} was not found", .path.display())]
    NotFound {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be opened.
    #[error("cannot read {}", .path.display())]
    Unopenable {
        /// The file.
        path: PathBuf,
        /// Error of the system.
        #[source]
        cause: io::Error,
    },
    /// The file cannot be read, or is not a recording.
    #[error("cannot read {}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        cause: ReadError,
    },
    /// The recording does not have the source or the process that the user named.
    #[error("{place} has no {what} {given}{}", recorded_instead(.recorded))]
    NotRecorded {
        /// The recording, or the part of it that other options select.
        place: &'static str,
        /// What the name stands for, such as "source" or "process".
        what: &'static str,
        /// The name, as the user typed it.
        given: String,
        /// Names that the recording has.
        recorded: Vec<String>,
    },
    /// A part of a name is in several functions.
    #[error("{given} matches {}", listed(.names))]
    Ambiguous {
        /// What the user typed.
        given: String,
        /// The functions that match.
        names: Vec<String>,
        /// What to type instead.
        remedy: String,
    },
    /// The recording has no samples to draw.
    #[error("{} has no samples", .path.display())]
    NoSamples {
        /// The recording.
        path: PathBuf,
    },
    /// The recording has no last branches.
    #[error("the samples of {} have no last branches", .path.display())]
    NoBranches {
        /// The recording.
        path: PathBuf,
    },
    /// No selected sample has an access.
    #[error("the samples of {} have no addresses of data", .path.display())]
    NoAccesses {
        /// The recording.
        path: PathBuf,
    },
    /// The output would replace the recording.
    #[error("{} is the recording itself", .path.display())]
    SameFile {
        /// The recording.
        path: PathBuf,
    },
}

fn listed(names: &[String]) -> String {
    let first: Vec<&str> = names.iter().take(MAX_FUNCTIONS).map(String::as_str).collect();
    let more = names.len() - first.len();
    let more = if more > 0 { format!("\n  and {more} more") } else { String::new() };
    format!("{} functions:\n  {}{more}", names.len(), first.join("\n  "))
}

fn recorded_instead(names: &[String]) -> String {
    match names.len() {
        0 => String::new(),
        1..=MAX_NAMES => format!("; it has {}", names.join(", ")),
        all => {
            let first: Vec<&str> = names.iter().take(MAX_NAMES).map(String::as_str).collect();
            format!("; it has {} and {} more", first.join(", "), all - MAX_NAMES)
        }
    }
}

impl UserError for RecordingError {
    fn exit(&self) -> Exit {
        match self {
            Self::NotFound { .. } | Self::Unopenable { .. } | Self::Unreadable { .. } => Exit::Recording,
            Self::NotRecorded { .. }
            | Self::Ambiguous { .. }
            | Self::NoSamples { .. }
            | Self::NoBranches { .. }
            | Self::NoAccesses { .. } => Exit::NotRecorded,
            Self::SameFile { .. } => Exit::Usage,
        }
    }

    fn remedy(&self) -> Option<String> {
        let text = match self {
            Self::NotFound { path } => {
                return Some(format!(
                    ".\\client record -o {} -- COMMAND   (makes one)",
                    argument(&path.display().to_string())
                ));
            }
            Self::Ambiguous { remedy, .. } => remedy,
            Self::Unreadable { cause: ReadError::NotARecording, .. } => {
                ".\\client report FILE, with a file that .\\client record wrote"
            }
            Self::Unreadable { cause: ReadError::Version { .. }, .. } => "report, of the client that recorded it",
            Self::NoBranches { .. } => ".\\client record -b -- COMMAND",
            Self::NoAccesses { .. } => ".\\client mem record -- COMMAND",
            Self::SameFile { .. } => "name another file with -o",
            Self::Unopenable { .. } | Self::Unreadable { .. } | Self::NotRecorded { .. } | Self::NoSamples { .. } => {
                return None;
            }
        };
        Some(text.to_owned())
    }
}

/// Opens a recording.
pub fn reader(path: &Path) -> Result<BufReader<ReadProgress<JoinedFile>>, RecordingError> {
    watched_reader(path, true)
}

/// Opens a recording. The progress of reading it is shown if `is_watched`, and if it takes long.
pub fn watched_reader(path: &Path, is_watched: bool) -> Result<BufReader<ReadProgress<JoinedFile>>, RecordingError> {
    let file = JoinedFile::open(path).map_err(|cause| match cause.kind() {
        ErrorKind::NotFound => RecordingError::NotFound { path: path.to_owned() },
        _ => RecordingError::Unopenable { path: path.to_owned(), cause },
    })?;
    let length = file.length().unwrap_or_default();
    Ok(BufReader::new(ReadProgress::new(file, length, is_watched)))
}

/// Returns the error of a recording that cannot be read.
pub fn unreadable(path: &Path, cause: ReadError) -> RecordingError {
    RecordingError::Unreadable { path: path.to_owned(), cause }
}
