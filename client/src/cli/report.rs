//! The command lines of the verbs that read recordings.

use std::convert::Infallible;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use report::Column;

use crate::event::SourceName;
use crate::number;

/// Text after the options of `report` in `--help`.
pub const REPORT_HELP: &str = "\
Shows the samples of a recording by columns. The overhead is the share of all
events of the source, including those that -e and --process exclude. --error
shows its uncertainty: half the width of its 95 % confidence interval, for
samples that are independent of each other.

SYMBOLS
  The names of functions come from PDBs, from symbols and debug information of
  images, or from their exports. These are searched for in --symbols, at the
  recorded path of the module, beside the recording, and in the path of the
  environment variable _NT_SYMBOL_PATH, which can name symbol servers:
    srv*C:\\symbols*https://msdl.microsoft.com/download/symbols
  Only files of the recorded build are used.
  --inline attributes the samples of an inlined function to it, marked
  (inlined), and not to the function that has its code.

COMPILED CODE
  The names of code that a just-in-time compiler (.NET, Java, JavaScript) made
  come from perf maps: files perf-PID.map of lines START SIZE NAME. These are
  searched for in --symbols and beside the recording, and in %TEMP% if this
  is the recorded computer. .NET writes them with DOTNET_PerfMapEnabled=1, on
  Linux only; on Windows the file must come from another tool. Samples in no
  module and no map have one row [JIT or unmapped] for each region of 64 KiB.

ONE ORDER
  --merge shows the samples of each processor in the order in which they were
  taken, and its precise records (record -e SOURCE:p) between them, by their
  numbers: an ordinary sample with number 5 is between records 4 and 5. Times
  are in milliseconds; on most processors, the time of a record is when it was
  fetched. A record of a batch has no process. It is assigned to one if the
  ordinary samples on both sides have the same process and thread: as far as the
  samples show, nothing else ran in between.

EXAMPLES
  client report
  client report app.rec --process app --sort symbol --limit 10 --error
  client report app.rec -e TotalCycles --sort module,processor --json
  client report app.rec --merge --limit 1000 | more
";

/// Text after the options of `export` in `--help`.
pub const EXPORT_HELP: &str = "\
FORMATS
  firefox  a profile for https://profiler.firefox.com (Load a profile from file);
           the weight of a sample is the number of events that it represents
  folded   lines \"process;module;symbol events\" for flame graph programs, of
           the first event of the recording, or of -e
  csv      a line for each sample, and for each loss and pause
  json     sums by process, module, symbol and address

EXAMPLES
  client export app.rec --format firefox -o app.json
  client export app.rec --format csv --process app -o samples.csv
";

/// Text after the options of `flamegraph` in `--help`.
pub const FLAMEGRAPH_HELP: &str = "\
Draws process, module, symbol and inlined functions as boxes as wide as their share of the events.
Recordings hold no call stacks. Without -e: the first event of the recording.

EXAMPLES
  client flamegraph app.rec -o app.svg
";

/// Maximum number of rows of each source or processor in text, without `--limit`.
const DEFAULT_ROWS: usize = 40;

/// The recording, the selected samples and the symbols.
#[derive(Debug, Args)]
pub struct RecordingArgs {
    /// The recording
    #[arg(value_name = "FILE", default_value = "halprof.rec")]
    pub file: PathBuf,
    /// Only samples of this source
    #[arg(short, long, value_name = "SOURCE")]
    pub event: Option<SourceName>,
    /// Only samples in processes with this name or ID
    #[arg(long, value_name = "NAME|ID")]
    pub process: Option<ProcessName>,
    /// A folder with symbols; can be repeated
    #[arg(long, value_name = "DIR")]
    pub symbols: Vec<PathBuf>,
}

/// A process, as users type it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcessName {
    /// A process ID.
    Number(u32),
    /// The file name of a program, in any case, with or without `.exe`.
    Name(String),
}

impl FromStr for ProcessName {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(text.parse().map_or_else(|_| Self::Name(text.to_owned()), Self::Number))
    }
}

/// Arguments of `report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    #[command(flatten)]
    pub recording: RecordingArgs,
    /// The columns by which samples are grouped, with commas
    #[arg(
        long,
        value_enum,
        ignore_case = true,
        value_delimiter = ',',
        default_value = "process,module,symbol",
        value_name = "A,B,..."
    )]
    pub sort: Vec<ColumnName>,
    /// Show single samples in order, with the precise records
    #[arg(long, conflicts_with_all = ["sort", "percent_limit", "error"])]
    pub merge: bool,
    /// At most N rows of each source, or processor [default: 40 in text]
    #[arg(long, value_name = "N", value_parser = number::rows)]
    pub limit: Option<usize>,
    /// Only rows with this overhead or more
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub percent_limit: Option<f64>,
    /// Show the uncertainty of the overhead
    #[arg(long)]
    pub error: bool,
    #[command(flatten)]
    pub names: NameOptions,
    #[command(flatten)]
    pub format: ReportFormat,
}

impl ReportArgs {
    /// Returns the columns by which samples are grouped.
    pub fn columns(&self) -> impl Iterator<Item = Column> {
        self.sort.iter().map(|name| match name {
            ColumnName::Symbol if self.names.inline => Column::InlinedSymbol,
            name => Column::from(*name),
        })
    }

    /// Returns the maximum number of rows for each source or processor. Output for programs is complete by default.
    pub fn max_rows(&self) -> Option<usize> {
        self.limit.or((!self.format.json && !self.format.csv).then_some(DEFAULT_ROWS))
    }
}

/// Which names are shown, and how.
#[derive(Debug, Args)]
pub struct NameOptions {
    /// Do not shorten names to fit 80 columns
    #[arg(long)]
    pub wide: bool,
    /// The symbol is the innermost function, even if it is inlined
    #[arg(long, conflicts_with = "merge")]
    pub inline: bool,
}

/// Output formats of `report` other than text.
#[derive(Debug, Args)]
pub struct ReportFormat {
    /// Print one JSON object
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// Print a line for each row, its fields separated by commas
    #[arg(long)]
    pub csv: bool,
}

/// A column, as users type it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ColumnName {
    /// Name and number of the process
    Process,
    /// The program or library
    Module,
    /// The function
    Symbol,
    /// The address
    Address,
    /// Number of the thread
    Thread,
    /// Number of the processor
    Processor,
}

impl From<ColumnName> for Column {
    fn from(name: ColumnName) -> Self {
        match name {
            ColumnName::Process => Self::Process,
            ColumnName::Module => Self::Module,
            ColumnName::Symbol => Self::Symbol,
            ColumnName::Address => Self::Address,
            ColumnName::Thread => Self::Thread,
            ColumnName::Processor => Self::Processor,
        }
    }
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| (0.0..=100.0).contains(number));
    number.ok_or_else(|| format!("\"{text}\" is not a percentage; write 1 or 0.5"))
}

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
}

/// A format of `export`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// The Firefox Profiler
    Firefox,
    /// Programs that draw flame graphs
    Folded,
    /// Single samples
    Csv,
    /// Sums
    Json,
}

/// Arguments of `flamegraph`.
#[derive(Debug, Args)]
pub struct FlamegraphArgs {
    #[command(flatten)]
    pub recording: RecordingArgs,
    /// Write the SVG to FILE; - is standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Verb};
    use crate::exit::Exit;

    fn parse(line: &str) -> Result<Verb, clap::Error> {
        Cli::try_parse_from(["client"].into_iter().chain(line.split_whitespace())).map(|cli| cli.verb)
    }

    #[test]
    fn a_report_has_process_module_and_symbol_by_default() {
        let columns = |line: &str| match parse(line) {
            Ok(Verb::Report(args)) => args.sort,
            other => panic!("{line}: {other:?}"),
        };
        assert_eq!(columns("report"), [ColumnName::Process, ColumnName::Module, ColumnName::Symbol]);
        for line in ["report a.rec --sort address,THREAD", "report --sort address --sort thread a.rec"] {
            assert_eq!(columns(line), [ColumnName::Address, ColumnName::Thread], "{line}");
        }
    }

    #[test]
    fn a_process_is_a_number_only_if_all_characters_belong_to_it() {
        for (text, wanted) in [("12", Some(12)), ("0", Some(0)), ("12a", None), ("4294967296", None), ("app.exe", None)]
        {
            let Ok(name) = text.parse::<ProcessName>();
            assert_eq!(name, wanted.map_or_else(|| ProcessName::Name(text.to_owned()), ProcessName::Number));
        }
    }

    #[test]
    fn invalid_command_lines_have_the_usage_exit_code() {
        for line in [
            "report --sort",
            "report --sort colour",
            "report --json --csv",
            "report --percent-limit 101",
            "report --percent-limit -1",
            "report --percent-limit NaN",
            "report --limit -1",
            "report --merge --sort module",
            "report --merge --error",
            "report --merge --percent-limit 1",
            "report a.rec b.rec",
            "export",
            "export --format pprof",
            "flamegraph",
        ] {
            assert_eq!(parse(line).unwrap_err().exit_code(), Exit::Usage.code(), "{line}");
        }
    }
}
