//! The command lines of the verbs that read recordings.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use report::{CallOrder, Column};
use thiserror::Error as ThisError;

use super::selection::SelectionArgs;
use crate::cli::number;
use user_error::UserError;
use user_error::exit::Exit;

/// Text after the options of `report` in `--help`.
pub const REPORT_HELP: &str = "\
Shows the samples of a recording by columns. The overhead is the share of all
events of the source, including those that other options exclude. --error
shows its uncertainty: half the width of its 95 % confidence interval, for
samples that are independent of each other.

SELECTION
  --cpu, --process, --thread, --module, --symbol and --time show only a part of
  the samples; a sample must match all of them. An option that is repeated
  selects what one of its values selects. In names, * and .. stand for any
  characters and ? for one. Processes and modules match in any case and without
  .exe or .dll. --symbol takes a function as it is shown, shortened or not; if
  none matches, in any case; if none does, a part of a name that only one
  function has. The code of an inlined function belongs to both functions.
  --time counts from the first record of the recording, and the end does not
  belong to the range.

SYMBOLS
  The names of functions come from PDBs, from symbols and debug information of
  images, or from their exports. These are searched for in --symbols, at the
  recorded path of the module, beside the recording, and in the path of the
  environment variable _NT_SYMBOL_PATH, which can name symbol servers:
    srv*C:\\symbols*https://msdl.microsoft.com/download/symbols
  A folder can be a symbol store too, with one tier or two, file.ptr, and packed
  files (app.pd_).
  Only files of the recorded build are used. An image can name a file with its
  symbols (.gnu_debuglink). Code without a name is MODULE+OFFSET, with one row
  for each function that the image describes. A function with (+2 folded)
  stands for two more: their code is equal, so the linker kept one.
  --inline attributes the samples of an inlined function to it, marked
  (inlined), and not to the function that has its code.

CALL STACKS
  If the recording has call stacks (record -g), --children adds the samples of
  the functions that a row calls: Children is the share of the samples of which
  the row or a function that it calls, directly or not, was interrupted. A
  recursive function counts once. Self is the row alone. -g caller draws what
  each row calls, -g callee from where it is called, down to 0.5 % of all
  events; [k] is kernel mode. Filters apply to the sampled address, not to its
  callers. A stack that is not complete ends with a note such as [truncated] or
  [no stack: taken elsewhere]. --merge --stack shows the stack of each sample.

LATENCY
  --latency shows what users wait for. While N processors run a process, each of
  its samples has a Nth of the wall time: a second on one processor counts as
  much as a second on all. It is the share of the time in which the process ran,
  not of that in which it waited. A processor runs a process while it has samples
  of it, at most one and a half of their periods apart: the sampled processors
  count, so record them all. Near lost samples and pauses, and in recordings with
  --when, the number is unknown, and the samples have no latency. --parallelism 1
  shows the serial phases only, and --sort parallelism how much runs on how many
  processors; both imply --latency.

COMPILED CODE
  The names of code that a just-in-time compiler (.NET, Java, JavaScript) made
  are in recordings with call stacks. Other names come from perf maps: files
  perf-PID.map of lines START SIZE NAME. These are searched for in --symbols
  and beside the recording, and in %TEMP% if this is the recorded computer.
  .NET writes them with DOTNET_PerfMapEnabled=1, on Linux only; on Windows the
  file must come from another tool. Samples in no module and no map have one
  row [JIT or unmapped] for each region of 64 KiB.

LAST BRANCHES
  If the recording has last branches (record -b), --branch shows them by source
  and target: how often each was among the branches before a sample, the share
  of records that say that it was mispredicted, and the mean of the cycles since
  the branch before it, where the processor reports these. The branches of a
  sample are cut at the first with an address that its process cannot have: a
  context switch does not remove those of another process. --module and --symbol
  select where a branch begins, all other options the samples.
  --blocks shows the code between two of them, which ran without another taken
  branch: Time is its share of the cycles of all blocks, Cycles the mean of an
  execution with its standard error SE, where the processor reports cycles, and
  IPC the instructions of its image per cycle; without cycles, Share is that of
  the executions.
  It needs all kinds of branches (-b, or -j any,u). Without the image, ranges are
  as they were recorded. Pairs of branches that enclose no such code are counted.
  --branch-history shows below each row the ways on which the processor came to
  its samples: the target of the newest branch, the branch instruction, and so
  on to the oldest, down to 0.5 % of all events. Successive executions of a loop
  are shown once.

ONE ORDER
  --merge shows the samples of each processor in the order in which they were
  taken, and its precise records (record -e SOURCE:p) between them, by their
  numbers: an ordinary sample with number 5 is between records 4 and 5. Times
  are in milliseconds; on most processors, the time of a record is when it was
  fetched. A record of a batch has no process. It is assigned to one, with the
  mark ~, if the ordinary samples on both sides have the same process and
  thread: as far as the samples show, nothing else ran in between.

EXAMPLES
  .\\client report
  .\\client report app.rec --process app --sort symbol --limit 10 --error
  .\\client report app.rec --cpu 0-3 --time 1s-2.5s --module ntdll
  .\\client report app.rec --fields \"overhead,error,events,symbol\"
  .\\client report app.rec -e TotalCycles --sort \"module,processor\" --json
  .\\client report app.rec --merge --limit 1000 | more
  .\\client report app.rec --children --sort symbol
  .\\client report app.rec --latency --sort symbol --parallelism 1-2
  .\\client report app.rec -g callee --limit 5
  .\\client report app.rec --branch --module app
  .\\client report app.rec --blocks --limit 10
";

/// The columns by which samples are grouped without `--sort` and `--fields`.
const DEFAULT_COLUMNS: [FieldName; 3] = [FieldName::Process, FieldName::Module, FieldName::Symbol];

/// Maximum number of rows of each source or processor in text, without `--limit`.
const DEFAULT_ROWS: usize = 40;

/// The recording and the selected samples.
#[derive(Debug, Args)]
pub struct RecordingArgs {
    /// The recording
    #[arg(value_name = "FILE", default_value = "halprof.rec")]
    file: PathBuf,
    /// The recording, as perf takes it
    #[arg(short, long, value_name = "FILE", hide = true, conflicts_with = "file")]
    input: Option<PathBuf>,
    #[command(flatten)]
    pub selection: SelectionArgs,
}

impl RecordingArgs {
    /// Returns the arguments of a recording.
    pub const fn of(file: PathBuf, selection: SelectionArgs) -> Self {
        Self { file, input: None, selection }
    }

    /// Returns the recording.
    pub fn file(&self) -> &Path {
        self.input.as_ref().unwrap_or(&self.file)
    }
}

/// Arguments of `report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    #[command(flatten)]
    pub recording: RecordingArgs,
    /// The names by which samples are grouped: process, module, symbol, address, thread, processor, parallelism
    /// [default: those in --fields, or process,module,symbol]
    #[arg(
        long,
        value_parser = grouping(),
        ignore_case = true,
        value_delimiter = ',',
        hide_possible_values = true,
        value_name = "A,B,..."
    )]
    pub sort: Vec<FieldName>,
    /// The columns to show, in this order: overhead, children, latency, error, samples, events, and names as in --sort
    #[arg(
        long,
        value_enum,
        ignore_case = true,
        value_delimiter = ',',
        hide_possible_values = true,
        value_name = "A,B,...",
        conflicts_with_all = ["json", "csv", "error"]
    )]
    pub fields: Vec<FieldName>,
    #[command(flatten)]
    pub calls: CallOptions,
    /// Show the share of the wall time as well, and sort by it: while N CPUs run a process, each has a Nth of it
    #[arg(long, conflicts_with_all = ["merge", "children", "call_graph"])]
    pub latency: bool,
    /// Only samples while so many CPUs ran their process, such as 1,2-4; implies --latency
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_parser = levels,
        conflicts_with_all = ["merge", "children", "call_graph"]
    )]
    pub parallelism: Vec<RangeInclusive<u32>>,
    /// Show single samples in order, with the precise records
    #[arg(long, conflicts_with_all = ["sort", "fields", "percent_limit", "error"])]
    pub merge: bool,
    #[command(flatten)]
    pub branches: BranchOptions,
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
    ///
    /// # Errors
    /// If a name in `--fields` is none of them.
    pub fn columns(&self) -> Result<Vec<Column>, FieldError> {
        let shown: Vec<FieldName> = self.fields.iter().copied().filter(|field| field.column().is_some()).collect();
        let names = match (&self.sort[..], &self.fields[..]) {
            ([], []) => &DEFAULT_COLUMNS[..],
            ([], _) => &shown,
            (sort, _) => match shown.iter().find(|column| !sort.contains(column)) {
                Some(column) => return Err(FieldError { column: *column }),
                None => sort,
            },
        };
        let column = |name: &FieldName| match name.column() {
            Some(Column::Symbol) if self.names.inline => Some(Column::InlinedSymbol),
            column => column,
        };
        Ok(names.iter().filter_map(column).collect())
    }

    /// Returns whether rows have the samples of the functions that they call.
    pub fn has_children(&self) -> bool {
        self.calls.children
            || self.calls.call_graph == Some(CallGraph::Caller)
            || self.fields.contains(&FieldName::Children)
    }

    /// Returns the direction in which calls are shown below each row.
    pub fn call_order(&self) -> Option<CallOrder> {
        let of_branches = self.branches.branch_history.then_some(CallOrder::Callee);
        of_branches.or(self.calls.call_graph.map(CallOrder::from))
    }

    /// Returns the columns to show.
    pub fn shown(&self) -> Vec<FieldName> {
        if !self.fields.is_empty() {
            return self.fields.clone();
        }
        let mut fields: Vec<FieldName> = self.has_children().then_some(FieldName::Children).into_iter().collect();
        fields.extend(self.has_latency().then_some(FieldName::Latency));
        fields.push(FieldName::Overhead);
        fields.extend(self.error.then_some(FieldName::Error));
        fields.push(FieldName::Samples);
        let sort = if self.sort.is_empty() { &DEFAULT_COLUMNS[..] } else { &self.sort };
        fields.extend(sort);
        fields
    }

    /// Returns whether the rows have their latency.
    pub fn has_latency(&self) -> bool {
        let mut names = self.sort.iter().chain(&self.fields);
        self.latency
            || !self.parallelism.is_empty()
            || names.any(|name| matches!(name, FieldName::Latency | FieldName::Parallelism))
    }

    /// Returns the maximum number of rows for each source or processor. Output for programs is complete by default.
    pub fn max_rows(&self) -> Option<usize> {
        self.limit.or(self.format.is_text().then_some(DEFAULT_ROWS))
    }
}

/// What is shown of call stacks.
#[derive(Debug, Args)]
pub struct CallOptions {
    /// Add the samples of the functions that a row calls, and sort by these
    #[arg(long, conflicts_with = "merge")]
    pub children: bool,
    /// Show what each row calls (caller; implies --children), or from where it is called (callee)
    #[arg(
        short = 'g',
        long = "call-graph",
        value_enum,
        ignore_case = true,
        value_name = "ORDER",
        conflicts_with_all = ["merge", "json", "csv"]
    )]
    pub call_graph: Option<CallGraph>,
    /// Show the call stack of each sample
    #[arg(long, requires = "merge")]
    pub stack: bool,
}

/// What is shown of last branches.
#[derive(Debug, Args)]
pub struct BranchOptions {
    /// Show the last branches of the samples by source and target
    #[arg(
        long,
        conflicts_with_all = [
            "merge", "sort", "fields", "children", "call_graph", "latency", "parallelism", "percent_limit", "error",
            "inline"
        ]
    )]
    pub branch: bool,
    /// Show the code between two last branches: how often it ran, and its cycles and instructions per cycle
    #[arg(
        long,
        conflicts_with_all = [
            "branch", "merge", "sort", "fields", "children", "call_graph", "latency", "parallelism", "percent_limit",
            "error", "inline"
        ]
    )]
    pub blocks: bool,
    /// Show the last branches below each row, the newest first, as -g callee shows callers
    #[arg(
        long,
        conflicts_with_all = [
            "branch", "blocks", "merge", "children", "call_graph", "latency", "parallelism", "json", "csv"
        ]
    )]
    pub branch_history: bool,
}

/// Which names are shown, and how.
#[derive(Debug, Args)]
pub struct NameOptions {
    /// Do not shorten names to fit the terminal; in a pipe or a file they never are
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

impl ReportFormat {
    /// Returns whether it is text.
    pub const fn is_text(&self) -> bool {
        !self.json && !self.csv
    }
}

/// The direction of calls, as users type it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CallGraph {
    /// From a function to those that it calls
    Caller,
    /// From a function to its callers
    Callee,
}

impl From<CallGraph> for CallOrder {
    fn from(order: CallGraph) -> Self {
        match order {
            CallGraph::Caller => Self::Caller,
            CallGraph::Callee => Self::Callee,
        }
    }
}

/// A column that `report` shows, as users type it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FieldName {
    /// Share of the events of the source, with those of the functions that are called
    #[value(aliases = ["overhead_children"])]
    Children,
    /// Share of the wall time
    Latency,
    /// Share of the events of the source
    Overhead,
    /// Uncertainty of the share
    Error,
    /// Number of samples
    #[value(aliases = ["sample"])]
    Samples,
    /// Number of events that the samples represent
    #[value(aliases = ["period"])]
    Events,
    /// Name and number of the process
    #[value(aliases = ["comm", "pid"])]
    Process,
    /// The program or library
    #[value(aliases = ["dso"])]
    Module,
    /// The function
    #[value(aliases = ["sym"])]
    Symbol,
    /// The address
    Address,
    /// Number of the thread
    #[value(aliases = ["tid"])]
    Thread,
    /// Number of the processor
    #[value(aliases = ["cpu"])]
    Processor,
    /// Number of processors that ran the process
    Parallelism,
}

impl FieldName {
    /// Returns the column, unless the field is a number.
    fn column(self) -> Option<Column> {
        Some(match self {
            Self::Process => Column::Process,
            Self::Module => Column::Module,
            Self::Symbol => Column::Symbol,
            Self::Address => Column::Address,
            Self::Thread => Column::Thread,
            Self::Processor => Column::Processor,
            Self::Parallelism => Column::Parallelism,
            Self::Children | Self::Latency | Self::Overhead | Self::Error | Self::Samples | Self::Events => {
                return None;
            }
        })
    }
}

/// Returns the parser of the columns by which samples are grouped.
fn grouping() -> impl TypedValueParser<Value = FieldName> {
    let columns = FieldName::value_variants().iter().filter(|field| field.column().is_some());
    PossibleValuesParser::new(columns.filter_map(ValueEnum::to_possible_value))
        .try_map(|name| FieldName::from_str(&name, true))
}

/// A name in `--fields` by which the samples are not grouped.
#[derive(Debug, ThisError)]
#[error("--fields has {}, but --sort has not", name(*.column))]
pub struct FieldError {
    /// The column.
    pub column: FieldName,
}

impl UserError for FieldError {
    fn exit(&self) -> Exit {
        Exit::Usage
    }

    fn remedy(&self) -> Option<String> {
        Some(format!("add {} to --sort, or leave --sort out: --fields groups by the names in it", name(self.column)))
    }
}

/// Returns a column as users type it.
fn name(column: FieldName) -> String {
    column.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Parses a number of processors, or a range of them.
fn levels(text: &str) -> Result<RangeInclusive<u32>, String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (number::parse(first)?, number::parse(last)?) {
        (first, last) if 0 < first && first <= last => Ok(first..=last),
        _ => Err(format!("\"{text}\" is no number of CPUs; write 1,2-4")),
    }
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| (0.0..=100.0).contains(number));
    number.ok_or_else(|| format!("\"{text}\" is not a percentage; write 1 or 0.5"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Verb};

    fn parse(line: &str) -> Result<Verb, clap::Error> {
        Cli::try_parse_from(["client"].into_iter().chain(line.split_whitespace())).map(|cli| cli.verb)
    }

    /// Returns the columns of a report and the fields that it shows.
    fn columns(line: &str) -> (Vec<Column>, Vec<FieldName>) {
        match parse(line) {
            Ok(Verb::Report(args)) => (args.columns().unwrap(), args.shown()),
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn a_report_has_process_module_and_symbol_by_default() {
        use Column::{Address, Module, Process, Symbol, Thread};
        assert_eq!(columns("report").0, [Process, Module, Symbol]);
        for line in ["report a.rec --sort address,THREAD", "report --sort address --sort thread a.rec"] {
            assert_eq!(columns(line).0, [Address, Thread], "{line}");
        }
    }

    #[test]
    fn names_in_the_fields_group_the_samples_unless_sort_does() {
        use FieldName as Field;
        for (line, wanted, shown) in [
            ("report --sort module", vec![Column::Module], vec![Field::Overhead, Field::Samples, Field::Module]),
            (
                "report --sort module --error",
                vec![Column::Module],
                vec![Field::Overhead, Field::Error, Field::Samples, Field::Module],
            ),
            (
                "report --fields symbol,events,thread",
                vec![Column::Symbol, Column::Thread],
                vec![Field::Symbol, Field::Events, Field::Thread],
            ),
            ("report --fields events", vec![], vec![Field::Events]),
            (
                "report --fields symbol,error --sort symbol,thread",
                vec![Column::Symbol, Column::Thread],
                vec![Field::Symbol, Field::Error],
            ),
        ] {
            assert_eq!(columns(line), (wanted, shown), "{line}");
        }
        let Ok(Verb::Report(args)) = parse("report --sort module --fields symbol,module") else { panic!() };
        assert_eq!(args.columns().unwrap_err().column, FieldName::Symbol);
    }

    #[test]
    fn children_are_shown_before_the_row_itself() {
        use FieldName as Field;
        for (line, children, shown) in [
            ("report --sort symbol", false, vec![Field::Overhead, Field::Samples, Field::Symbol]),
            ("report --sort symbol -g callee", false, vec![Field::Overhead, Field::Samples, Field::Symbol]),
            (
                "report --sort symbol -g caller",
                true,
                vec![Field::Children, Field::Overhead, Field::Samples, Field::Symbol],
            ),
            (
                "report --sort symbol --children --error",
                true,
                vec![Field::Children, Field::Overhead, Field::Error, Field::Samples, Field::Symbol],
            ),
            ("report --fields children,symbol", true, vec![Field::Children, Field::Symbol]),
        ] {
            let Ok(Verb::Report(args)) = parse(line) else { panic!("{line}") };
            assert_eq!((args.has_children(), args.shown()), (children, shown), "{line}");
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
            "report --merge --fields samples",
            "report --fields colour",
            "report --fields samples --json",
            "report --fields samples --csv",
            "report --fields samples --error",
            "report --cpu 3-1",
            "report --thread app",
            "report --time 2s-1s",
            "report --time 1m",
            "report --merge --percent-limit 1",
            "report --stack",
            "report --merge --children",
            "report -g",
            "report -g caller --json",
            "report -g up",
            "report --branch --merge",
            "report --branch --sort symbol",
            "report --branch --branch-history",
            "report --blocks --branch",
            "report --blocks --sort symbol",
            "report --branch-history -g caller",
            "report --branch-history --json",
            "report a.rec b.rec",
            "export",
            "export --format tiff",
            "export --format firefox --max-samples 0",
            "flamegraph",
        ] {
            assert_eq!(parse(line).unwrap_err().exit_code(), Exit::Usage.code(), "{line}");
        }
    }
}
