//! The command lines of `mem` and `c2c`.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueEnum};
use report::{AccessColumn, LineSize};

use super::record::RecordArgs;
use super::report::{RecordingArgs, ReportFormat};
use crate::cli::number;

/// Text after the options of `mem` in `--help`.
pub const HELP: &str = "\
Loads and stores with the address of their data, what served them, and how long
loads waited: Intel's PEBS with load latency, AMD's IBS. `.\\client mem record`
records them, `.\\client mem report` shows them, `.\\client c2c` shows the cache
lines that threads share.

EXAMPLES
  .\\client mem record -- app.exe
  .\\client mem report
  .\\client c2c
";

/// Text after the options of `mem record` in `--help`.
pub const RECORD_HELP: &str = "\
Chooses the events of the processor's cores, and samples them as
`.\\client record` does: the other options are those of record. On Intel loads are
recorded that took at least so many cycles as --ldlat says. On AMD the ops of IBS
are sampled (ibs_op//), and those that load or store are kept. -e samples other
events instead, as record -e takes them, with :p.

EXAMPLES
  .\\client mem record -- app.exe
  .\\client mem record --type load --ldlat 50 -- app.exe
  .\\client mem record -p app.exe --duration 10s
  .\\client mem record -a -c 20k -o app.rec --duration 10s
";

/// Text after the options of `mem report` in `--help`.
pub const REPORT_HELP: &str = "\
Shows what served the accesses of a recording. Share is that of the samples'
events, Latency that of the cycles for which all loads waited, each with its
standard error. Mean and 90% are cycles, from the dispatch of a load until it had
its data. Lock is the share of locked accesses, Walk of those whose address was
in no TLB. Rows are in the order of Latency.

COLUMNS
  --sort groups by one or more of
    source (mem)              what served the access
    latency (local_weight)    classes of the latency: a histogram
    snoop tlb lock blocked    what the record says beside it
    operation                 load or store
    process thread            of the instruction, as its
    module symbol (dso, sym)  module and function
    data (symbol_daddr)       the address of the data
    line (dcacheline)         its cache line of 64 bytes
    page                      its page of 4 KiB
    type member (typeoff)     the structure that the data is in, and the member
    variable                  the variable with the member: node->next
  --type is --sort type,member. PDBs have types: those of modules with the data,
  or with the instruction, which says what its registers lead to. Data without a
  name is [unknown], with the operand of the instruction.
  Addresses of user mode are those of a process, those of the kernel of all.
  A code that means nothing in the manuals is \"unknown\" with its number.

EXAMPLES
  .\\client mem report
  .\\client mem report app.rec --sort \"symbol,source\" --limit 20
  .\\client mem report app.rec --sort latency
  .\\client mem report app.rec --type
  .\\client mem report app.rec --sort line --module app --json
";

/// Text after the options of `c2c` in `--help`.
pub const C2C_HELP: &str = "\
Shows cache lines with loads that found a modified copy in another core's cache
(HITM), the most frequent first: how many copies were in this node and in
others, its other loads and stores, then for each offset the thread and the
function, on how many CPUs, and the mean cycles of its loads. Shared is false if
each thread has its own offsets (false sharing), true if they have the same
ones, mixed if some are the same. One thread in the samples is none of these:
the other one was not sampled, or the thread moved to another CPU.
Addresses of user mode are compared within a process only: memory that two
processes share has a line in each. Those of the kernel are compared over all.
Only the first byte of an access is known, so accesses that overlap can have
different offsets. Records of Zen 3 do not tell modified copies.

EXAMPLES
  .\\client mem record -a --duration 10s
  .\\client c2c
  .\\client c2c app.rec --double-cl --limit 3
  .\\client c2c app.rec --process app --type --json
";

/// Maximum number of rows in text without `--limit`.
const DEFAULT_ROWS: usize = 40;

/// Maximum number of cache lines in text without `--limit`.
const DEFAULT_LINES: usize = 10;

/// Arguments of `mem`.
#[derive(Debug, Args)]
pub struct MemArgs {
    /// What to do
    #[command(subcommand)]
    pub verb: MemVerb,
}

/// What `mem` does.
#[derive(Debug, Subcommand)]
pub enum MemVerb {
    /// Sample loads and stores with their addresses, as `perf mem record` does
    #[command(after_help = RECORD_HELP, mut_arg("threads", |arg| arg.short(None)))]
    Record(MemRecordArgs),
    /// Show what served loads and stores, as `perf mem report` does
    #[command(after_help = REPORT_HELP)]
    Report(MemReportArgs),
}

/// Arguments of `mem record`.
#[derive(Debug, Args)]
pub struct MemRecordArgs {
    /// What to sample: load, store [default: both, where the processor records both]
    #[arg(
        short = 't',
        long = "type",
        value_enum,
        ignore_case = true,
        value_name = "TYPE,...",
        value_delimiter = ',',
        hide_possible_values = true,
        conflicts_with = "events"
    )]
    pub types: Vec<AccessType>,
    /// Only loads that took at least so many core clock cycles [default: 30; not on AMD]
    #[arg(long, value_name = "N", value_parser = number::within(3..=65_535), conflicts_with = "events")]
    pub ldlat: Option<u32>,
    /// Only accesses of code in user mode
    #[arg(long, conflicts_with_all = ["all_kernel", "events"])]
    pub all_user: bool,
    /// Only accesses of code in kernel mode
    #[arg(long, conflicts_with = "events")]
    pub all_kernel: bool,
    #[command(flatten)]
    pub record: RecordArgs,
}

impl MemRecordArgs {
    /// Returns the letter of the mode in which the chosen events are sampled; empty for both.
    pub const fn mode(&self) -> &'static str {
        match (self.all_user, self.all_kernel) {
            (true, _) => "u",
            (_, true) => "k",
            _ => "",
        }
    }
}

/// A kind of access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AccessType {
    /// Loads
    Load,
    /// Stores
    Store,
}

/// Arguments of `mem report`.
#[derive(Debug, Args)]
pub struct MemReportArgs {
    #[command(flatten)]
    pub recording: RecordingArgs,
    /// The names by which accesses are grouped [default: source]
    #[arg(
        short,
        long,
        value_parser = columns(),
        ignore_case = true,
        value_delimiter = ',',
        hide_possible_values = true,
        value_name = "NAME,..."
    )]
    pub sort: Vec<AccessField>,
    /// Group by the structure and the member of the data, from the types of PDBs: --sort type,member
    #[arg(long = "type", conflicts_with = "sort")]
    pub by_type: bool,
    /// At most N rows of each event [default: 40 in text]
    #[arg(long, value_name = "N", value_parser = number::rows)]
    pub limit: Option<usize>,
    /// Do not shorten names to fit the terminal; in a pipe or a file they never are
    #[arg(long)]
    pub wide: bool,
    #[command(flatten)]
    pub format: ReportFormat,
}

impl MemReportArgs {
    /// Returns the names by which accesses are grouped.
    pub fn fields(&self) -> &[AccessField] {
        match &self.sort[..] {
            [] if self.by_type => &[AccessField::Type, AccessField::Member],
            [] => &[AccessField::Source],
            fields => fields,
        }
    }

    /// Returns the maximum number of rows.
    pub fn max_rows(&self) -> Option<usize> {
        self.limit.or(self.format.is_text().then_some(DEFAULT_ROWS))
    }
}

/// Arguments of `c2c`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct C2cArgs {
    /// What to do
    #[command(subcommand)]
    pub verb: Option<Box<C2cVerb>>,
    #[command(flatten)]
    pub report: C2cReportArgs,
}

/// What `c2c` does.
#[derive(Debug, Subcommand)]
pub enum C2cVerb {
    /// Sample loads and stores with their addresses: `mem record`
    #[command(after_help = RECORD_HELP, mut_arg("threads", |arg| arg.short(None)))]
    Record(MemRecordArgs),
    /// Show the cache lines that threads share, as `c2c` alone does
    #[command(after_help = C2C_HELP)]
    Report(C2cReportArgs),
}

/// Arguments of `c2c report`.
#[derive(Debug, Args)]
pub struct C2cReportArgs {
    #[command(flatten)]
    pub recording: RecordingArgs,
    /// Take the two lines of 128 bytes that processors fetch together for one
    #[arg(long)]
    pub double_cl: bool,
    /// Name the data at each offset, by the types of PDBs
    #[arg(long = "type")]
    pub by_type: bool,
    /// At most N lines [default: 10 in text]
    #[arg(long, value_name = "N", value_parser = number::rows)]
    pub limit: Option<usize>,
    /// Do not shorten names to fit the terminal; in a pipe or a file they never are
    #[arg(long)]
    pub wide: bool,
    #[command(flatten)]
    pub format: ReportFormat,
}

impl C2cReportArgs {
    /// Returns what is taken for a line.
    pub const fn size(&self) -> LineSize {
        if self.double_cl { LineSize::Two } else { LineSize::One }
    }

    /// Returns the maximum number of lines.
    pub fn max_lines(&self) -> Option<usize> {
        self.limit.or(self.format.is_text().then_some(DEFAULT_LINES))
    }
}

/// A column of `mem report`, as users type it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AccessField {
    /// What served the access
    #[value(aliases = ["mem"])]
    Source,
    /// Classes of the latency
    #[value(aliases = ["local_weight", "weight"])]
    Latency,
    /// What the other caches answered
    Snoop,
    /// How the address was translated
    Tlb,
    /// Whether the access was locked
    #[value(aliases = ["locked"])]
    Lock,
    /// Which earlier store the load waited for
    Blocked,
    /// Load or store
    Operation,
    /// The process
    #[value(aliases = ["comm", "pid"])]
    Process,
    /// The thread
    #[value(aliases = ["tid"])]
    Thread,
    /// The module of the instruction
    #[value(aliases = ["dso"])]
    Module,
    /// The function of the instruction
    #[value(aliases = ["sym", "symbol_iaddr"])]
    Symbol,
    /// The address of the data
    #[value(aliases = ["symbol_daddr"])]
    Data,
    /// Its cache line
    #[value(aliases = ["dcacheline"])]
    Line,
    /// Its page
    Page,
    /// The structure of the data
    Type,
    /// Its member
    #[value(aliases = ["typeoff"])]
    Member,
    /// The variable and its member
    Variable,
}

impl AccessField {
    /// Returns the column.
    pub const fn column(self) -> AccessColumn {
        match self {
            Self::Source => AccessColumn::Source,
            Self::Latency => AccessColumn::Latency,
            Self::Snoop => AccessColumn::Snoop,
            Self::Tlb => AccessColumn::Translation,
            Self::Lock => AccessColumn::Locked,
            Self::Blocked => AccessColumn::Blocked,
            Self::Operation => AccessColumn::Operation,
            Self::Process => AccessColumn::Process,
            Self::Thread => AccessColumn::Thread,
            Self::Module => AccessColumn::Module,
            Self::Symbol => AccessColumn::Symbol,
            Self::Data => AccessColumn::Data,
            Self::Line => AccessColumn::Line,
            Self::Page => AccessColumn::Page,
            Self::Type => AccessColumn::Type,
            Self::Member => AccessColumn::Member,
            Self::Variable => AccessColumn::Variable,
        }
    }

    /// Returns whether it is an address of data.
    pub const fn is_address(self) -> bool {
        matches!(self, Self::Data | Self::Line | Self::Page)
    }

    /// Returns whether it is from the types of PDBs.
    pub const fn is_type(self) -> bool {
        matches!(self, Self::Type | Self::Member | Self::Variable)
    }

    /// Returns whether its texts can be long.
    pub const fn is_name(self) -> bool {
        self.is_address() || self.is_type() || matches!(self, Self::Process | Self::Module | Self::Symbol)
    }

    /// Returns its name in output for programs.
    pub fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// Returns its heading.
    pub const fn heading(self) -> &'static str {
        match self {
            Self::Source => "Source",
            Self::Latency => "Cycles",
            Self::Snoop => "Snoop",
            Self::Tlb => "TLB",
            Self::Lock => "Locked",
            Self::Blocked => "Blocked",
            Self::Operation => "Operation",
            Self::Process => "Process",
            Self::Thread => "Thread",
            Self::Module => "Module",
            Self::Symbol => "Symbol",
            Self::Data => "Data",
            Self::Line => "Line",
            Self::Page => "Page",
            Self::Type => "Type",
            Self::Member => "Member",
            Self::Variable => "Variable",
        }
    }
}

/// Returns the parser of the columns, with the names of perf.
fn columns() -> impl TypedValueParser<Value = AccessField> {
    let names = AccessField::value_variants().iter().filter_map(ValueEnum::to_possible_value);
    PossibleValuesParser::new(names).try_map(|name| AccessField::from_str(&name, true))
}
