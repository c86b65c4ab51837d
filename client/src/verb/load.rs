//! Loads recordings for the verbs that read them.

use std::collections::BTreeSet;
use std::error::Error as _;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Read};
use std::path::{Path, PathBuf};

use recording::{ReadError, RecordedEvent, Session};
use report::{
    Column, Contents, Detail, ExportError, Filter, Missing, PerfMapProblem, Reason, SampledSource, SymbolFinder,
    SymbolIndex, Table, TimelineSample, folded, timeline,
};
use thiserror::Error as ThisError;

use super::context::Context;
use crate::cli::{ProcessName, RecordingArgs};
use crate::core_types::qualified;
use crate::error::{Error, OutOfMemory, UserError};
use crate::event::SourceName;
use crate::exit::Exit;
use crate::format::counted;
use crate::output::OutputError;
use crate::source;

/// The environment variable with the symbol path of Microsoft's debuggers.
const SYMBOL_PATH: &str = "_NT_SYMBOL_PATH";

/// The environment variable with the name of the computer.
const COMPUTER: &str = "COMPUTERNAME";

/// Maximum number of modules without symbols that a note names.
const MAX_MODULES: usize = 3;

/// Maximum number of names that an error lists.
const MAX_NAMES: usize = 5;

/// Why a recording cannot be shown.
#[derive(Debug, ThisError)]
pub enum RecordingError {
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
    #[error("the recording has no {what} {given}{}", recorded_instead(.recorded))]
    NotRecorded {
        /// "source" or "process".
        what: &'static str,
        /// The name, as the user typed it.
        given: String,
        /// Names that the recording has.
        recorded: Vec<String>,
    },
    /// The recording has no samples to draw.
    #[error("{} has no samples", .path.display())]
    NoSamples {
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
            Self::Unreadable { .. } => Exit::Recording,
            Self::NotRecorded { .. } | Self::NoSamples { .. } => Exit::NotRecorded,
            Self::SameFile { .. } => Exit::Usage,
        }
    }

    fn remedy(&self) -> Option<String> {
        let text = match self {
            Self::Unreadable { cause: ReadError::NotARecording, .. } => {
                "client report FILE, with a file that client record wrote"
            }
            Self::Unreadable { cause: ReadError::Version { .. }, .. } => "report, of the client that recorded it",
            Self::SameFile { .. } => "name another file with -o",
            Self::Unreadable { .. } | Self::NotRecorded { .. } | Self::NoSamples { .. } => return None,
        };
        Some(text.to_owned())
    }
}

/// A recording, with the symbols of the selected samples.
pub struct LoadedRecording {
    path: PathBuf,
    /// Contents of the recording.
    pub contents: Contents,
    /// Selection of the user.
    pub filter: Filter,
    /// Modules and symbols of the selected samples.
    pub symbol_index: SymbolIndex,
}

impl LoadedRecording {
    /// Reads a recording and resolves the selected samples.
    pub fn open(args: &RecordingArgs, detail: Detail) -> Result<Self, Error> {
        let mut loaded = Self::unresolved(args, detail)?;
        loaded.symbol_index = SymbolIndex::new(&loaded.contents, &loaded.filter, &loaded.finder(args)?);
        Ok(loaded)
    }

    /// Reads a recording and its timeline, and resolves the samples of the timeline.
    pub fn with_timeline(args: &RecordingArgs) -> Result<(Self, Vec<TimelineSample>), Error> {
        let mut loaded = Self::unresolved(args, Detail::default())?;
        let samples = timeline(&loaded.contents, &loaded.filter, loaded.reopen()?)
            .map_err(|error| loaded.export_error(error, None))?;
        let locations = samples.iter().map(TimelineSample::location);
        loaded.symbol_index = SymbolIndex::of(&loaded.contents.processes, locations, &loaded.finder(args)?);
        Ok((loaded, samples))
    }

    fn unresolved(args: &RecordingArgs, detail: Detail) -> Result<Self, Error> {
        let path = &args.file;
        let contents = Contents::read(reader(path)?, detail).map_err(|cause| unreadable(path, cause))?;
        let filter = filter(args, &contents)?;
        Ok(Self { path: path.clone(), contents, filter, symbol_index: SymbolIndex::default() })
    }

    /// Creates a finder of symbols and images for the recording.
    pub fn finder(&self, args: &RecordingArgs) -> Result<SymbolFinder, Error> {
        let finder = finder(args.symbols.clone(), self.path.parent())?;
        let recorded = self.contents.session.computer.as_deref();
        Ok(finder.with_perf_maps(perf_map_folders(recorded, std::env::var(COMPUTER).ok().as_deref())))
    }

    /// Returns the selected sources: the requested ones in order, then other sources that have samples.
    pub fn sources(&self) -> Vec<SampledSource> {
        let Session { events, processors, .. } = &self.contents.session;
        let on = |event: &RecordedEvent| {
            let (source, core_type) = (event.source, event.core_type);
            let counts = &self.contents.sample_counts;
            let each = processors.iter().map(move |processor| counts.source_on(source, *processor));
            each.filter(move |sampled| core_type == 0 || sampled.core_type == core_type).collect::<Vec<_>>()
        };
        let asked = events.iter().flat_map(on);
        let sampled = self.contents.sample_counts.totals().map(|(source, _)| source);
        let mut sources: Vec<SampledSource> = Vec::new();
        for source in asked.chain(sampled) {
            if self.filter.selects_source(source) && !sources.contains(&source) {
                sources.push(source);
            }
        }
        sources
    }

    /// Returns the first selected source, for output that has only one.
    pub fn one_source(&self) -> Result<SampledSource, Error> {
        self.sources().first().copied().ok_or_else(|| RecordingError::NoSamples { path: self.path.clone() }.into())
    }

    /// Returns the samples of [one source](Self::one_source) as folded stacks.
    pub fn folded(&self) -> Result<Vec<String>, Error> {
        let columns = [Column::Process, Column::Module, Column::Frames];
        let table = Table::new(&self.contents, &self.symbol_index, self.one_source()?, &columns, &self.filter);
        if table.rows.is_empty() {
            return Err(RecordingError::NoSamples { path: self.path.clone() }.into());
        }
        Ok(folded(&table))
    }

    /// Opens the recording again, to read single samples.
    pub fn reopen(&self) -> Result<impl Read, Error> {
        Ok(reader(&self.path)?)
    }

    /// Converts the error of an export to `output`.
    pub fn export_error(&self, error: ExportError, output: Option<&Path>) -> Error {
        match (error, output) {
            (ExportError::Read(cause), _) => unreadable(&self.path, cause).into(),
            (ExportError::Write(cause), Some(path)) => OutputError::File { path: path.to_owned(), cause }.into(),
            (ExportError::Write(cause), None) => OutputError::Stream(cause).into(),
        }
    }

    /// Opens `output` for writing.
    ///
    /// # Errors
    /// If it is the recording itself, or cannot be written.
    pub fn create(&self, output: &Path) -> Result<BufWriter<File>, Error> {
        let same =
            fs::canonicalize(output).is_ok_and(|output| fs::canonicalize(&self.path).is_ok_and(|path| path == output));
        if same {
            return Err(RecordingError::SameFile { path: output.to_owned() }.into());
        }
        let file = File::create(output).map_err(|cause| OutputError::File { path: output.to_owned(), cause })?;
        Ok(BufWriter::new(file))
    }

    /// Reports problems with the recording and its symbols on standard error. Returns the exit code.
    pub fn finish(&self, context: &mut Context) -> Result<i32, Error> {
        for line in self.notes() {
            context.warn(&line)?;
        }
        let Some(damage) = &self.contents.damage else { return Ok(Exit::Done.code()) };
        context.warn(&warning(damage))?;
        Ok(Exit::Incomplete.code())
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let unreadable = self.contents.sample_counts.unreadable();
        if unreadable > 0 {
            notes
                .push(format!("warning: {unreadable} records are damaged, or of kinds that this client does not know"));
        }
        let (absent, worse): (Vec<&Missing>, Vec<&Missing>) =
            self.symbol_index.missing().iter().partition(|missing| missing.reason == Reason::NotFound);
        let name = |missing: &Missing| self.symbol_index.modules().name(missing.module).to_owned();
        notes.extend(worse.iter().map(|missing| format!("note: no symbols for {}: {}", name(missing), missing.reason)));
        if !absent.is_empty() {
            let names: Vec<String> = absent.iter().take(MAX_MODULES).map(|missing| name(missing)).collect();
            let more = absent.len() - names.len();
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            notes.push(format!("note: no symbols for {}{more}; --symbols DIR says where they are", names.join(", ")));
        }
        notes.extend(self.symbol_index.perf_map_problems().iter().map(|PerfMapProblem { path, problem }| {
            let path = path.display();
            match problem {
                Ok(lines) => format!("warning: {path}: {} without a function left out", counted(*lines, "line")),
                Err(cause) => format!("warning: {path} cannot be read: {cause}"),
            }
        }));
        notes
    }
}

/// Creates a finder that searches `folders`, the folder `beside` the recording, and the symbol path of the environment.
pub fn finder(folders: Vec<PathBuf>, beside: Option<&Path>) -> Result<SymbolFinder, Error> {
    let finder = SymbolFinder::new(folders, beside.map(Path::to_owned), std::env::var(SYMBOL_PATH).ok());
    Ok(finder.map_err(|_| OutOfMemory)?)
}

/// Returns the folder in which just-in-time compilers write perf maps, for a recording of the computer `recorded`. The
/// numbers of its processes mean nothing on `this` computer if it is another one.
fn perf_map_folders(recorded: Option<&str>, this: Option<&str>) -> Vec<PathBuf> {
    if recorded == this { vec![std::env::temp_dir()] } else { Vec::new() }
}

fn reader(path: &Path) -> Result<BufReader<File>, RecordingError> {
    let file = File::open(path).map_err(|cause| unreadable(path, ReadError::Read { offset: 0, cause }))?;
    Ok(BufReader::new(file))
}

fn unreadable(path: &Path, cause: ReadError) -> RecordingError {
    RecordingError::Unreadable { path: path.to_owned(), cause }
}

fn filter(args: &RecordingArgs, contents: &Contents) -> Result<Filter, RecordingError> {
    let source = args.event.as_ref().map(|wanted| source_of(wanted, contents)).transpose()?;
    let core_type = args.event.as_ref().map(SourceName::core_type).filter(|core_type| *core_type != 0);
    let processes = args.process.as_ref().map(|wanted| processes_of(wanted, contents)).transpose()?;
    Ok(Filter { source, core_type, processes })
}

fn source_of(wanted: &SourceName, contents: &Contents) -> Result<u32, RecordingError> {
    let events = &contents.session.events;
    let core_type = wanted.core_type();
    let has_type = |of: u32| core_type == 0 || of == core_type;
    let is_sampled = has_type(0) || contents.session.core_types.iter().any(|one| has_type(one.core_type));
    let is_wanted = |event: &&RecordedEvent| {
        let is_type = event.core_type == 0 || has_type(event.core_type);
        is_sampled && is_type && source::is_named(wanted, event.source, &event.name)
    };
    events.iter().find(is_wanted).map(|event| event.source).ok_or_else(|| {
        let recorded = events.iter().map(|event| qualified(&event.name, event.core_type)).collect();
        RecordingError::NotRecorded { what: "source", given: wanted.to_string(), recorded }
    })
}

fn processes_of(wanted: &ProcessName, contents: &Contents) -> Result<BTreeSet<u32>, RecordingError> {
    let sampled: BTreeSet<u32> = contents.sample_counts.locations().map(|(location, _)| location.process).collect();
    let (given, meant): (String, BTreeSet<u32>) = match wanted {
        ProcessName::Number(number) => (number.to_string(), [*number].into()),
        ProcessName::Name(name) => (name.clone(), contents.processes.named(name).collect()),
    };
    if meant.is_disjoint(&sampled) {
        let mut recorded: Vec<String> =
            sampled.iter().filter_map(|id| contents.processes.name(*id)).map(ToOwned::to_owned).collect();
        recorded.sort_unstable();
        recorded.dedup();
        return Err(RecordingError::NotRecorded { what: "process", given, recorded });
    }
    Ok(meant)
}

/// Formats why a recording is incomplete.
fn warning(damage: &ReadError) -> String {
    let mut text = format!("warning: {damage}");
    let mut cause = damage.source();
    while let Some(error) = cause {
        // Writing to a `String` cannot fail.
        let _ = write!(text, "\n  because: {error}");
        cause = error.source();
    }
    text.push_str("\n  what stands before that was read, and nothing behind it");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn perf_maps_of_this_computer_do_not_belong_to_the_recording_of_another() {
        assert_eq!(perf_map_folders(Some("WS1"), Some("WS1")), [std::env::temp_dir()]);
        for (recorded, this) in [(Some("WS1"), Some("WS2")), (Some("WS1"), None), (None, Some("WS2"))] {
            assert!(perf_map_folders(recorded, this).is_empty(), "{recorded:?} {this:?}");
        }
    }
}
