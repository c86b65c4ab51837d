//! The command lines of the verbs that convert recordings for other programs.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use thiserror::Error as ThisError;

use super::{Json, RecordingArgs};
use crate::cli::number;
use user_error::UserError;
use user_error::exit::Exit;

/// Samples in a profile for the Firefox Profiler without `--max-samples`. If each is at a place of its own, the profile
/// has about 200 MB.
const DEFAULT_SAMPLES: u64 = 2_000_000;

/// Text after the options of `export` in `--help`.
pub const EXPORT_HELP: &str = "\
Only the selected samples are exported; .\\client report --help says how names and
times are matched. Losses and pauses are selected by event, CPU and time.

FORMATS
  firefox  a profile for https://profiler.firefox.com (Load a profile from file);
           the weight of a sample is the number of events that it represents;
           of more than 2,000,000 samples, every so many of each CPU and event
           are in the profile, with the events of those that are left out;
           --time selects a part with all samples, --max-samples N allows more
  html     a page for browsers in one file, which loads nothing from the network:
           flame graph, table, events over time, and what was lost
  folded   lines \"process;caller;...;function events\" for flame graph programs,
           of the first event of the recording, or of -e; _[k] marks kernel
           mode, and _[i] inlined functions; without call stacks the lines are
           \"process;module;symbol events\"; a process has its name, so that two
           runs of a program can be compared, and with --pid also its number;
           --branch-history has the last branches after the function, the newest
           first
  pprof    a profile for pprof: go tool pprof -http=: app.pb.gz; processes are
           labels, which -tagroot process shows as frames; -diff_base compares two
           with the same events, so select one with -e if theirs differ
  speedscope
           a profile for https://www.speedscope.app, with one part per event
  csv      a line for each sample, and for each loss and pause, in the order of
           time; names are written as they are, so import them into a
           spreadsheet as text: one that begins with = + - or @ is no formula
  json     sums by process, module, symbol and address
  autofdo  the last branches of one module (record -j any,u), for llvm-profgen, which
           makes a profile for clang and rustc of them:
             llvm-profgen --binary=app.exe --unsymbolized-profile=FILE
               --output=app.prof
           The module is that of --module, or the program that was recorded. They
           are compared with its image, and corrected where a processor names the
           instruction before a branch. `.\\client spgo` does all of this
All but csv, json and autofdo have the callers of each sample, if the recording has call
stacks (record -g). Incomplete stacks end with a frame such as [truncated] or
[no stack: taken elsewhere]. `.\\client script` prints the text of perf script,
which other programs read.

EXAMPLES
  .\\client export app.rec --format firefox -o app.json
  .\\client export app.rec --format html -o app.html
  .\\client export app.rec --format pprof -o app.pb.gz
  .\\client export app.rec --format csv --process app -o samples.csv
  .\\client export app.rec --format autofdo --module app.exe -o app.txt
";

/// Text after the options of `flamegraph` in `--help`.
pub const FLAMEGRAPH_HELP: &str = "\
Draws functions as boxes as wide as their share of the events, each on top of
its caller, if the recording has call stacks (record -g). Kernel mode, inlined
and other functions differ in color. Without call stacks, the boxes are
process, module, symbol and inlined functions. Without -e: the first event of
the recording. If only a part of the samples is selected, the graph is that
part: its subtitle says how much that is of all events. --branch-history draws
above each function the way on which the processor came to it: the target of the
newest last branch (record -b), the branch instruction, and so on to the oldest.
--latency draws the loads of mem record: the boxes are as wide as their share of
the cycles for which loads waited, with what served them on top.

EXAMPLES
  .\\client flamegraph app.rec -o app.svg
  .\\client flamegraph app.rec --latency -o loads.svg
";

/// Text after the options of `script` in `--help`.
pub const SCRIPT_HELP: &str = "\
Prints each sample as perf script does on Linux, for FlameGraph, speedscope,
Perfetto and other programs. The period of a sample is the number of its events.
The callers of a sample follow it if the recording has call stacks (record -g).
A function that is inlined has a line of its own. Samples are in the order of
time, those of all CPUs together. Losses and pauses have no line:
.\\client export --format csv has them. -F +brstack adds the last branches of a sample
(record -b) in a line FROM/TO/P/-/-/CYCLES ..., the newest first, with P if it
was predicted, M if not, and - if the processor does not report it; cycles are
those since the branch before it, 0 if they are not reported. Branches that the
process of the sample cannot have are left out, as in .\\client report --branch.

EXAMPLES
  .\\client script app.rec -e TotalCycles -o app.txt
  perl stackcollapse-perf.pl app.txt | perl flamegraph.pl > app.svg
";

/// Arguments of `export`.
#[derive(Debug, Args)]
pub struct ExportArgs {
    #[command(flatten)]
    pub recording: RecordingArgs,
    /// The format
    #[arg(long, value_enum, ignore_case = true, value_name = "FORMAT")]
    pub format: ExportFormat,
    /// Write to FILE [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Maximum number of samples in a profile for firefox [default: 2000000]
    #[arg(long, value_name = "N", value_parser = number::nonzero)]
    pub max_samples: Option<u64>,
    /// Show the numbers of processes in folded stacks
    #[arg(long)]
    pub pid: bool,
    /// Fold the last branches of each sample, the newest next to its function
    #[arg(long)]
    pub branch_history: bool,
}

impl ExportArgs {
    /// Checks that each option belongs to the format: one without effect would not be noticed.
    ///
    /// # Errors
    /// If one does not, or if the format is binary and would go to a terminal.
    pub fn check(&self, is_terminal: bool) -> Result<(), ExportOptionError> {
        if self.max_samples.is_some() && self.format != ExportFormat::Firefox {
            return Err(ExportOptionError::MaxSamples);
        }
        if self.pid && self.format != ExportFormat::Folded {
            return Err(ExportOptionError::Pid);
        }
        if self.branch_history && self.format != ExportFormat::Folded {
            return Err(ExportOptionError::BranchHistory);
        }
        if self.format == ExportFormat::Autofdo && !self.recording.selection.functions.is_empty() {
            return Err(ExportOptionError::Symbol);
        }
        let to_output = self.output.as_ref().is_none_or(|path| path.as_os_str() == "-");
        if is_terminal && to_output && self.format == ExportFormat::Pprof {
            return Err(ExportOptionError::Terminal);
        }
        Ok(())
    }

    /// Returns the maximum number of samples in a profile for the Firefox Profiler.
    pub fn max_samples(&self) -> u64 {
        self.max_samples.unwrap_or(DEFAULT_SAMPLES)
    }
}

/// An option with a format that it does not change.
#[derive(Debug, Clone, Copy, ThisError)]
pub enum ExportOptionError {
    #[error("--max-samples is only for --format firefox: the other formats have all samples")]
    MaxSamples,
    #[error("--pid is only for --format folded: the other formats have the numbers of processes")]
    Pid,
    #[error("--branch-history is only for --format folded: csv has the branches behind their samples")]
    BranchHistory,
    #[error("--symbol has no meaning for --format autofdo, which has the branches of a module")]
    Symbol,
    #[error("a profile for pprof is binary, and standard output is a terminal")]
    Terminal,
}

impl UserError for ExportOptionError {
    fn exit(&self) -> Exit {
        Exit::Usage
    }

    fn remedy(&self) -> Option<String> {
        Some(match self {
            Self::MaxSamples => "leave --max-samples out, or select a part with --time".to_owned(),
            Self::Symbol => "leave --symbol out".to_owned(),
            Self::Pid => "leave --pid out".to_owned(),
            Self::BranchHistory => "leave --branch-history out".to_owned(),
            Self::Terminal => "-o app.pb.gz".to_owned(),
        })
    }
}

/// A format of `export`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// The Firefox Profiler
    Firefox,
    /// A page for browsers
    Html,
    /// Programs that draw flame graphs
    Folded,
    /// pprof
    Pprof,
    /// speedscope
    Speedscope,
    /// Single samples
    Csv,
    /// Sums
    Json,
    /// llvm-profgen: the last branches of a module
    Autofdo,
}

/// Arguments of `flamegraph`.
#[derive(Debug, Args)]
pub struct FlamegraphArgs {
    #[command(flatten)]
    pub recording: RecordingArgs,
    /// Write the SVG to FILE; - is standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Draw where threads ran and where they waited in one graph of nanoseconds, of a recording with --off-cpu
    #[arg(long, conflicts_with = "event")]
    pub wall_clock: bool,
    /// Draw the last branches of the samples above each function, the newest first
    #[arg(long, conflicts_with = "wall_clock")]
    pub branch_history: bool,
    /// Draw for how long the loads of a recording of mem record waited, by function and by what served them
    #[arg(long, conflicts_with_all = ["wall_clock", "branch_history"])]
    pub latency: bool,
}

/// Text after the options in `sched --help`.
pub const SCHED_HELP: &str = "\
Shows for each thread how long it ran, waited, and was ready while others ran,
between the first and the last time that it ran on, from a recording with
--off-cpu. \"Switches\" is how often it ran on, \"Moved\" how often on another CPU
than before. \"Longest\" is the longest wait, and \"For\" what it waited for, by the
names of Windows: WrAlertByThreadId are locks of user mode, UserRequest handles,
WrDelayExecution is Sleep. Where Windows does not tell when a thread was made
ready, that time is in \"Wait\". Sorted by the time of the waits.

EXAMPLES
  .\\client record --off-cpu -p app.exe --duration 10s
  .\\client sched
  .\\client flamegraph -e offcpu-time -o waits.svg
";

/// Arguments of `sched`.
#[derive(Debug, Args)]
pub struct SchedArgs {
    #[command(flatten)]
    pub recording: RecordingArgs,
    /// Maximum number of threads
    #[arg(long, value_name = "N", default_value_t = 40)]
    pub top: usize,
    #[command(flatten)]
    pub format: Json,
}

/// Arguments of `script`.
#[derive(Debug, Args)]
pub struct ScriptArgs {
    #[command(flatten)]
    pub recording: RecordingArgs,
    /// Add a line with the last branches of each sample
    #[arg(short = 'F', long, value_name = "+brstack", value_parser = ["+brstack"], hide_possible_values = true)]
    pub fields: Option<String>,
    /// Write to FILE [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use crate::cli::{Cli, Verb};

    #[test]
    fn a_binary_format_is_not_written_to_a_terminal() {
        for (line, is_refused) in [
            ("--format pprof", true),
            ("--format pprof -o -", true),
            ("--format pprof -o x", false),
            ("--format folded", false),
        ] {
            let cli = Cli::try_parse_from(["client", "export"].into_iter().chain(line.split(' '))).unwrap();
            let Verb::Export(args) = cli.verb else { panic!("{line}") };
            assert_eq!(args.check(true).is_err(), is_refused, "{line}");
            assert!(args.check(false).is_ok(), "{line}");
        }
    }
}
