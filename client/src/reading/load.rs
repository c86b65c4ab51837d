//! Loads recordings for the verbs that read them.

use std::collections::HashSet;
use std::error::Error as _;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use recording::{ReadError, RecordedEvent, RecordedSession};
use report::{
    AccessNames, Accesses, Contents, Detail, ExportError, Filter, Input, LastBranchStats, LastBranchTable, Missing,
    NamePattern, PerfMapProblem, Reason, SampleLocation, SampledSource, SymbolFinder, SymbolIndex, TimelineSample,
    pprof, timeline,
};

use crate::cli::{RecordingArgs, SelectionArgs};
use crate::reading::open::{RecordingError, reader, unreadable, watched_reader};
use crate::reading::selection::{filter, resolved_names, slice};
use terminal::context::Context;
use terminal::format::counted;
use user_error::exit::Exit;
use user_error::output_error::OutputError;
use user_error::{Error, OutOfMemory};

/// The environment variable with the symbol path of Microsoft's debuggers.
const SYMBOL_PATH: &str = "_NT_SYMBOL_PATH";

/// The environment variable with the name of the computer.
const COMPUTER: &str = "COMPUTERNAME";

/// Maximum number of modules without symbols that a note names.
const MAX_MODULES: usize = 3;

/// Makes folded stacks of the samples of a source that a filter selects.
type Fold = fn(&Contents, &SymbolIndex, SampledSource, &Filter) -> Vec<String>;

/// A recording, with the symbols of the selected samples.
#[derive(Debug)]
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
        Self::open_file(args.file(), &args.selection, detail)
    }

    /// Reads the recording at `path` and resolves the selected samples.
    pub fn open_file(path: &Path, selection: &SelectionArgs, detail: Detail) -> Result<Self, Error> {
        let mut loaded = Self::unresolved(path, selection, detail)?;
        loaded.resolve(selection)?;
        Ok(loaded)
    }

    /// Resolves the selected samples and their callers.
    fn resolve(&mut self, selection: &SelectionArgs) -> Result<(), Error> {
        let finder = self.finder(selection)?;
        let Self { contents, filter, symbol_index, .. } = self;
        *symbol_index = SymbolIndex::new(contents, filter, &finder);
        let is_selected = |location: &SampleLocation| filter.selects(location.sampled_source(), location.process);
        let locations = contents.sample_counts.locations().filter(|(location, _)| is_selected(location));
        let locations = locations.map(|(location, weight)| (location, weight.events));
        filter.symbols = resolved_names(filter, locations, symbol_index)?;
        Ok(())
    }

    /// Reads a recording whose samples have their last branches as call stacks, and resolves all of them.
    pub fn with_branch_history(args: &RecordingArgs, detail: Detail) -> Result<(Self, LastBranchStats), Error> {
        let mut loaded = Self::with_branches_unresolved(args, Detail { stacks: false, ..detail })?;
        let read = loaded.contents.use_branch_history(&loaded.filter, &mut reader(args.file())?);
        let stats = read.map_err(|error| loaded.export_error(error, None))?;
        loaded.resolve(&args.selection)?;
        Ok((loaded, stats))
    }

    /// Reads a recording with call stacks, or with last branches as call stacks.
    pub fn with_stacks(args: &RecordingArgs, has_branch_history: bool) -> Result<Self, Error> {
        let detail = Detail { stacks: true, ..Detail::default() };
        if has_branch_history {
            return Ok(Self::with_branch_history(args, detail)?.0);
        }
        Self::open(args, detail)
    }

    /// Reads a recording with last branches, without its symbols.
    ///
    /// # Errors
    /// If it has none, or cannot be read.
    pub fn with_branches_unresolved(args: &RecordingArgs, detail: Detail) -> Result<Self, Error> {
        let loaded = Self::unresolved(args.file(), &args.selection, detail)?;
        loaded.require_branches()?;
        Ok(loaded)
    }

    /// Checks that the recording has last branches.
    ///
    /// # Errors
    /// If it has none.
    pub fn require_branches(&self) -> Result<(), RecordingError> {
        match self.contents.session.last_branches {
            0 => Err(RecordingError::NoBranches { path: self.path.clone() }),
            _ => Ok(()),
        }
    }

    /// Reads a recording, and resolves the selected samples and the ends of their last branches.
    pub fn open_with_branches(args: &RecordingArgs, detail: Detail) -> Result<Self, Error> {
        let mut loaded = Self::open(args, detail)?;
        if loaded.contents.session.last_branches == 0 {
            return Ok(loaded);
        }
        let table = LastBranchTable::read(&loaded.contents, &loaded.filter, &mut reader(args.file())?)
            .map_err(|error| loaded.export_error(error, None))?;
        let finder = loaded.finder(&args.selection)?;
        let Self { contents, filter, symbol_index, .. } = &mut loaded;
        *symbol_index = SymbolIndex::with(contents, filter, table.ends().map(|(location, _)| location), &finder);
        Ok(loaded)
    }

    /// Reads a recording and its timeline, and resolves the samples of the timeline.
    pub fn with_timeline(args: &RecordingArgs, detail: Detail) -> Result<(Self, Vec<TimelineSample>), Error> {
        let (path, selection) = (args.file(), &args.selection);
        let mut loaded = Self::unresolved(path, selection, detail)?;
        let mut samples = timeline(&loaded.contents, &loaded.filter, &mut reader(path)?)
            .map_err(|error| loaded.export_error(error, None))?;
        let finder = loaded.finder(selection)?;
        let Self { contents, filter, symbol_index, .. } = &mut loaded;
        let locations = || samples.iter().map(|one| one.location(&contents.processes));
        let all = locations().chain(contents.callers(locations()));
        *symbol_index = SymbolIndex::of(&contents.processes, all, &finder);
        let locations = samples.iter().map(|one| (one.location(&contents.processes), one.sample.events));
        filter.symbols = resolved_names(filter, locations, symbol_index)?;
        samples.retain(|one| filter.selects_names(&one.location(&contents.processes), symbol_index));
        Ok((loaded, samples))
    }

    /// Reads a recording and the last branches of its samples, and resolves their ends.
    pub fn with_last_branches(args: &RecordingArgs) -> Result<(Self, LastBranchTable), Error> {
        let mut loaded = Self::with_branches_unresolved(args, Detail::default())?;
        let table = LastBranchTable::read(&loaded.contents, &loaded.filter, &mut reader(args.file())?)
            .map_err(|error| loaded.export_error(error, None))?;
        let finder = loaded.finder(&args.selection)?;
        let Self { contents, filter, symbol_index, .. } = &mut loaded;
        *symbol_index = SymbolIndex::of(&contents.processes, table.ends().map(|(location, _)| location), &finder);
        filter.symbols = resolved_names(filter, table.sources(), symbol_index)?;
        Ok((loaded, table))
    }

    /// Reads a recording and the accesses of its samples, and resolves their instructions.
    ///
    /// # Errors
    /// If it has none, or cannot be read.
    pub fn with_accesses(args: &RecordingArgs) -> Result<(Self, Accesses), Error> {
        let mut loaded = Self::unresolved(args.file(), &args.selection, Detail::default())?;
        let mut accesses = loaded.read_accesses(&mut reader(args.file())?)?;
        if accesses.is_empty() {
            return Err(RecordingError::NoAccesses { path: loaded.path }.into());
        }
        let finder = loaded.finder(&args.selection)?;
        let Self { contents, filter, symbol_index, .. } = &mut loaded;
        let locations = || accesses.all().iter().map(|access| (access.location(), access.events.into()));
        *symbol_index = SymbolIndex::of(&contents.processes, locations().map(|(location, _)| location), &finder);
        filter.symbols = resolved_names(filter, locations(), symbol_index)?;
        accesses.retain(filter, symbol_index);
        Ok((loaded, accesses))
    }

    /// Reads the accesses of the samples of a recording whose samples are resolved. Those without a precise sample are
    /// not read again.
    pub fn accesses(&self, output: Option<&Path>) -> Result<Accesses, Error> {
        if self.contents.sample_counts.totals().all(|(_, total)| total.precise + total.precise_next == 0) {
            return Ok(Accesses::default());
        }
        let mut accesses = self.read_accesses(&mut self.reopen(output)?)?;
        accesses.retain(&self.filter, &self.symbol_index);
        Ok(accesses)
    }

    fn read_accesses(&self, input: &mut dyn Input) -> Result<Accesses, Error> {
        Accesses::read(&self.contents, &self.filter, input).map_err(|error| self.export_error(error, None))
    }

    /// Names the data of accesses by the types of PDBs. Without any, nothing is searched.
    pub fn access_names(&self, accesses: &Accesses, selection: &SelectionArgs) -> Result<AccessNames, Error> {
        if accesses.is_empty() {
            return Ok(AccessNames::default());
        }
        Ok(AccessNames::new(accesses, &self.contents, &self.symbol_index, &self.finder(selection)?))
    }

    /// Reads the recording at `path` without its symbols.
    pub fn unresolved(path: &Path, selection: &SelectionArgs, detail: Detail) -> Result<Self, Error> {
        let slice = slice(selection, path)?;
        let contents = Contents::read_slice(&mut reader(path)?, detail, slice.clone());
        let contents = contents.map_err(|cause| unreadable(path, cause))?;
        let filter = filter(selection, slice, &contents, path)?;
        Ok(Self { path: path.to_owned(), contents, filter, symbol_index: SymbolIndex::default() })
    }

    /// Creates a finder of symbols and images for the recording.
    pub fn finder(&self, selection: &SelectionArgs) -> Result<SymbolFinder, Error> {
        let finder = finder(selection.symbols.clone(), self.path.parent())?;
        let recorded = self.contents.session.computer.as_deref();
        Ok(finder.with_perf_maps(perf_map_folders(recorded, std::env::var(COMPUTER).ok().as_deref())))
    }

    /// Returns the selected sources: the requested ones in order, then other sources that have samples.
    pub fn sources(&self) -> Vec<SampledSource> {
        let RecordedSession { events, processors, .. } = &self.contents.session;
        let on = |(index, event): (u32, &RecordedEvent)| {
            let core_type = event.core_type;
            let counts = &self.contents.sample_counts;
            let each = processors.iter().map(|processor| counts.source_on(index, *processor));
            each.filter(move |sampled| core_type == 0 || sampled.core_type == core_type).collect::<Vec<_>>()
        };
        let asked = (0..).zip(events).flat_map(on);
        let sampled = self.contents.sample_counts.totals().map(|(source, _)| source);
        let mut seen = HashSet::new();
        asked.chain(sampled).filter(|source| self.filter.selects_source(*source) && seen.insert(*source)).collect()
    }

    /// Returns the first selected source, for output that has only one.
    pub fn one_source(&self) -> Result<SampledSource, Error> {
        self.sources().first().copied().ok_or_else(|| self.no_samples())
    }

    /// Returns the error that there is nothing to draw.
    pub fn no_samples(&self) -> Error {
        RecordingError::NoSamples { path: self.path.clone() }.into()
    }

    /// Writes the selected samples as a profile for pprof.
    pub fn pprof(&self, out: &mut dyn Write) -> Result<(), ExportError> {
        pprof(&self.contents, &self.symbol_index, &self.filter, out)
    }

    /// Returns the samples of [one source](Self::one_source) as folded stacks, which `fold` makes.
    pub fn folded(&self, fold: Fold) -> Result<Vec<String>, Error> {
        let lines = fold(&self.contents, &self.symbol_index, self.one_source()?, &self.filter);
        if lines.is_empty() {
            return Err(self.no_samples());
        }
        Ok(lines)
    }

    /// Opens the recording again, to read single samples. While they are written to a terminal, no progress is shown.
    pub fn reopen(&self, output: Option<&Path>) -> Result<impl Input, Error> {
        Ok(watched_reader(&self.path, output.is_some() || !io::stdout().is_terminal())?)
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
        let chosen =
            |pattern: &NamePattern| Some(format!("note: --symbol {} is {}", pattern.as_str(), pattern.chosen()?));
        let mut notes: Vec<String> = self.filter.symbols.iter().filter_map(chosen).collect();
        let unreadable = self.contents.sample_counts.unreadable();
        if unreadable > 0 {
            notes
                .push(format!("warning: {unreadable} records are damaged, or of kinds that this client does not know"));
        }
        let modules = self.symbol_index.modules();
        for Missing { module, reason } in self.symbol_index.missing() {
            match reason {
                Reason::NotFound | Reason::OnlyExports => {}
                Reason::Unverified(_) => {
                    notes.push(format!("note: the names of {} can be wrong: {reason}", modules.name(*module)));
                }
                _ => notes.push(format!("note: no symbols for {}: {reason}", modules.name(*module))),
            }
        }
        for (reason, what, searched) in
            [(Reason::NotFound, "no symbols", "they"), (Reason::OnlyExports, "only exported names", "symbols")]
        {
            let missing = self.symbol_index.missing().iter().filter(|missing| missing.reason == reason);
            let names: Vec<&str> = missing.map(|missing| modules.name(missing.module)).collect();
            let (first, more) = names.split_at(names.len().min(MAX_MODULES));
            let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
            if !names.is_empty() {
                let first = first.join(", ");
                notes.push(format!("note: {what} for {first}{more}; --symbols DIR says where {searched} are"));
            }
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

/// Formats why a recording is incomplete.
fn warning(damage: &ReadError) -> String {
    let mut text = format!("warning: {damage}");
    let mut cause = damage.source();
    while let Some(error) = cause {
        // Writing to a `String` cannot fail.
        let _ = write!(text, "\n  because: {error}");
        cause = error.source();
    }
    text.push_str("\n  the output has everything before that, and nothing after it");
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
