//! The command line.

pub mod duration;
pub mod number;

mod annotate;
mod branches;
mod common;
mod control_area;
mod diff;
#[cfg(test)]
mod documents;
mod encode;
mod events;
mod export;
#[cfg(test)]
mod generated;
mod last_branches;
#[cfg(test)]
mod malformed_events;
mod mem;
mod perf;
mod powershell;
mod record;
mod report;
mod selection;
mod session;
mod spgo;
mod stat;
mod tasks;
mod top;
pub mod usage;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use halprof::event::SourceName;
use halprof::text::processors::ProcessorList;
use pmu::Kind;

use counts::event_list::EventList;
use counts::names::Names;
use user_error::exit;

pub use annotate::AnnotateArgs;
pub use branches::BranchesArgs;
#[cfg(test)]
pub use branches::ShortRing;
pub use common::{BackendArgs, Force, Json};
pub use control_area::ControlAreaArgs;
pub use diff::{DiffArgs, DiffColumn, FailAbove, Work};
pub use encode::EncodeArgs;
pub use events::{EventsAction, EventsArgs};
pub use export::{ExportArgs, ExportFormat, FlamegraphArgs, SchedArgs, ScriptArgs};
pub use last_branches::LastBranchArgs;
pub use mem::{
    AccessField, AccessType, C2cArgs, C2cReportArgs, C2cVerb, MemArgs, MemRecordArgs, MemReportArgs, MemVerb,
};
pub use record::RecordArgs;
pub use report::{FieldName, RecordingArgs, ReportArgs};
pub use selection::{ProcessName, SelectionArgs, TimeRange};
pub use session::SessionArgs;
pub use spgo::SpgoArgs;
pub use stat::{Aggregation, STAT_HELP, StatArgs};
pub use top::TopArgs;

const EXAMPLES: &str = "\
EXAMPLES
  .\\client install                            install and start the driver
  .\\client list                               what can be counted here
  .\\client list l3_miss                       events with this in their names
  .\\client stat -- cmd /c dir                 count while a command runs
  .\\client stat -e \"TotalIssues,TotalCycles\" -C 0-3 -- app.exe
  .\\client record -- app.exe                  sample while a command runs
  .\\client report                             those samples by function
  .\\client annotate main                      the instructions of a function
  .\\client top                                the functions that run now
  .\\client branches -C 0 --duration 0.1s      every branch of CPU 0
  .\\client start BranchInstructions           count until `.\\client stop`
  .\\client read --per-cpu                     what has been counted so far
  .\\client stop --all                         stop, with the final counts
  .\\client uninstall                          stop and remove the driver
  .\\client diagnose --cpuid dump.txt          what the driver would do elsewhere
  .\\client encode MEM_LOAD_RETIRED.L3_MISS    registers and counters of an event

SOURCES
  A source has its name in the HAL, with or without \"Profile\", in any case
  (BranchInstructions, profilebranchinstructions), or its number (6, 0x06). An
  event can also have its maker's name (MEM_LOAD_RETIRED.L3_MISS) or perf's
  (branch-misses). An event can end in :u (user mode only) or :k (kernel mode only); an event that
  is sampled can also end in :p (precise).
";

/// Hardware performance counters of Windows' HAL, at the command line.
#[derive(Debug, Parser)]
#[command(
    name = "client",
    // Whatever the file is called: "client.exe" in PowerShell, "client" in a command prompt.
    bin_name = "client",
    version,
    max_term_width = 80,
    after_help = format!("{EXAMPLES}\n{}", exit::help()),
    arg_required_else_help = true
)]
pub struct Cli {
    /// The verb to run.
    #[command(subcommand)]
    pub verb: Verb,
    /// When output has colors.
    #[command(flatten)]
    pub color: agent_arguments::color::ColorArgs,
}

/// The verbs of the client.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Install the driver and start it; needs an elevated prompt
    #[command(after_help = INSTALL_HELP)]
    Install(InstallArgs),
    /// Stop the driver and remove it; needs an elevated prompt
    Uninstall,
    /// Show whether the driver is running, and its sessions
    Status(Json),
    /// Show the profile interface, why it was chosen, and the processors
    Info(Json),
    /// List the profile sources that can be counted here, or search all events
    #[command(
        after_help = "EXAMPLES\n  .\\client list\n  .\\client list l3_miss             (searches the processor's events)\n  .\\client list metrics             (lists its metrics)\n  .\\client list \"MEM_LOAD*\" --cpuid dump.txt\n  .\\client list --all --json\n  .\\client list --interface amd64   (needs no driver)"
    )]
    List(ListArgs),
    /// Show one source
    #[command(after_help = "EXAMPLES\n  .\\client query TotalIssues\n  .\\client query 0x19 --json")]
    Query(QueryArgs),
    /// Show how an event is encoded, and which counters count it; needs no driver
    #[command(after_help = encode::HELP)]
    Encode(EncodeArgs),
    /// Import the makers' files of events, with descriptions; needs no driver
    #[command(after_help = events::HELP)]
    Events(EventsArgs),
    /// Set the interval of a source: events between two interrupts
    #[command(after_help = INTERVAL_HELP)]
    Interval(IntervalArgs),
    /// Start counting until `stop`, even if this prompt is closed
    #[command(
        after_help = "EXAMPLES\n  .\\client start TotalIssues BranchInstructions:u\n  .\\client start TotalCycles -C \"0,2-3\""
    )]
    Start(StartArgs),
    /// Stop what `start` started, and show its final counts
    #[command(after_help = "EXAMPLES\n  .\\client stop TotalIssues\n  .\\client stop --all --per-cpu")]
    Stop(StopArgs),
    /// Show the counts of what `start` started
    #[command(
        after_help = "EXAMPLES\n  .\\client read\n  .\\client read TotalIssues --per-cpu\n  .\\client read --json"
    )]
    Read(ReadArgs),
    /// Count while a command runs, as `perf stat -a` does
    #[command(after_help = STAT_HELP)]
    Stat(StatArgs),
    /// Sample where events occur on processors, as `perf record -a` does
    #[command(after_help = record::HELP)]
    Record(RecordArgs),
    /// Show where events occur while they occur, as `perf top` does
    #[command(after_help = top::HELP)]
    Top(TopArgs),
    /// Show which branches processors take most often, from a record of each
    #[command(after_help = branches::HELP)]
    Branches(BranchesArgs),
    /// Show, allocate or free the control areas of Intel's Debug Store
    #[command(after_help = control_area::HELP)]
    ControlArea(ControlAreaArgs),
    /// Show the samples of a recording by columns, as `perf report` does
    #[command(after_help = report::REPORT_HELP)]
    Report(ReportArgs),
    /// Record loads and stores with the addresses of their data, and show what served them
    #[command(after_help = mem::HELP)]
    Mem(MemArgs),
    /// Show the cache lines that threads share, as `perf c2c report` does
    #[command(after_help = mem::C2C_HELP)]
    C2c(C2cArgs),
    /// Show the instructions of a function with their samples, as `perf annotate` does
    #[command(after_help = annotate::HELP)]
    Annotate(AnnotateArgs),
    /// Convert a recording for other programs
    #[command(after_help = export::EXPORT_HELP)]
    Export(ExportArgs),
    /// Compare two recordings, or two files of `stat --json`, with statistical errors
    #[command(after_help = diff::HELP)]
    Diff(DiffArgs),
    /// Print the samples of a recording as `perf script` does
    #[command(after_help = export::SCRIPT_HELP)]
    Script(ScriptArgs),
    /// Show how long threads ran, waited and were ready, as `perf sched latency` does
    #[command(after_help = export::SCHED_HELP)]
    Sched(SchedArgs),
    /// Make a profile for a compiler from the last branches of a run, for llvm-profgen
    #[command(after_help = spgo::HELP)]
    Spgo(SpgoArgs),
    /// Draw a recording as a flame graph
    #[command(after_help = export::FLAMEGRAPH_HELP)]
    Flamegraph(FlamegraphArgs),
    /// Count and sample work whose numbers are known, and compare
    #[command(after_help = SELFTEST_HELP)]
    Selftest(SelftestArgs),
    /// Show what the driver would do on a processor; needs no driver
    #[command(after_help = DIAGNOSE_HELP)]
    Diagnose(DiagnoseArgs),
    /// Count and sample all the time, for Prometheus, OpenTelemetry and profile servers
    #[command(after_help = agent_arguments::HELP, subcommand)]
    Agent(agent_arguments::AgentVerb),
}

const INTERVAL_HELP: &str = "\
Sampling begins with this interval, and `record` then moves it towards the
frequency of its -F. `record -e SOURCE@INTERVAL` keeps an interval.

EXAMPLES
  .\\client interval BranchInstructions 100k
";

const SELFTEST_HELP: &str = "\
Executes loops with a known number of instructions and branches on each of the
processors, counts them in user mode and in kernel mode, and samples them. Of
ten rounds the smallest count is taken, because interrupts and other programs
only add to it. A count may differ by 0.5 %, a share of samples by 5 points. It
takes about a second for each processor.

With --stacks, a loop is also executed through three nested calls and sampled
with a trace session, as with `record -g`. 95 % of the samples must have a call
stack, and each stack must begin with the return addresses of the calls.

With --threads, Windows counts the instructions of this thread: alone, while
another thread competes for the processor, and in a long region with the highest
priority, which tells how many bits Windows keeps. This takes 5 to 10 seconds
for each processor, which responds slowly meanwhile. If the counts are right,
programs that use the library see them as verified on this machine, until
Windows, the processor or the driver changes. If one is wrong, they do not.

With --backend hal, or without the driver, Windows' own HAL counts the loops of
this process, in both modes and to 2 %. With --compare it does so after the
driver, and must agree with it.

EXAMPLES
  .\\client selftest
  .\\client selftest --compare
  .\\client selftest --stacks
  .\\client selftest --threads
  .\\client selftest -C 0-7 --json > selftest.json
";

const DIAGNOSE_HELP: &str = "\
Chooses the profile interface from CPUID, as the driver does on the boot
processor, and shows the reason and the sources that can be used. Only CPUID is
read: only the driver can check whether a hypervisor really has the counters
that CPUID reports. Without FILE, the current processor is used, which on a
hybrid machine can be a different one each time.

With --live the driver reads every register that a session can touch, on each
processor, and every counter, and writes none: the state of the machine before
the first session, for a report of a problem. --json has it all in one file.

FILES
  Dumps in the format of AIDA64 and InstLatx64, with lines such as
    CPUID 0000000A: 07300403-00000000-00000000-00000603
  and the output of `cpuid -1 -r` on Linux, in UTF-8 or, as PowerShell writes
  it, in UTF-16. If there are several processors, the first is used.

EXAMPLES
  .\\client diagnose
  .\\client diagnose --cpuid dump.txt --json
  cpuid -1 -r | .\\client diagnose --cpuid -
  .\\client diagnose --live
  .\\client diagnose --live --json > machine.json
";

/// Text after the help of `install`.
const INSTALL_HELP: &str = "\
The file is checked before the running driver is stopped: it must be halprof's
driver, of this client's protocol version, with a signature that this Windows
can accept. The old file is kept until the new driver has started and answered.
If any step fails, the old driver is put back, and started if it ran before.

EXAMPLES
  .\\client install
  .\\client install --driver D:\\build\\halprof.sys";

/// Arguments of `install`.
#[derive(Debug, Args)]
pub struct InstallArgs {
    /// The driver's file [default: halprof.sys beside client.exe]
    #[arg(long, value_name = "PATH")]
    pub driver: Option<PathBuf>,
    /// Install without starting
    #[arg(long)]
    pub no_start: bool,
    /// Replace the driver although detached sessions run, which ends them
    #[arg(long)]
    pub end_sessions: bool,
    /// Let Windows judge the signature, even if it is expected to refuse it
    #[arg(long)]
    pub any_signature: bool,
}

/// Arguments of `list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Search every event and metric of the processor by its name, as part of it or with * and ?; needs no driver
    pub pattern: Option<String>,
    /// Also those that this machine does not support, and why; with PATTERN, deprecated names too
    #[arg(long)]
    pub all: bool,
    /// The whole table of a profile interface instead; needs no driver
    #[arg(long, value_enum, ignore_case = true, conflicts_with_all = ["all", "pattern"], value_name = "NAME")]
    pub interface: Option<InterfaceName>,
    /// With PATTERN: a CPUID dump; - is standard input [default: this processor]
    #[arg(long, requires = "pattern", value_name = "FILE")]
    pub cpuid: Option<PathBuf>,
    #[command(flatten)]
    pub backend: BackendArgs,
    #[command(flatten)]
    pub format: Json,
}

/// A profile interface, as users type it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum InterfaceName {
    /// No counters, only the timer
    Default,
    /// Intel's architectural performance monitoring
    Emon,
    /// AMD's performance counters
    Amd64,
    /// Pentium 4 and the Xeons of its time
    Netburst,
    /// Pentium Pro, II, III and Pentium M
    P6,
    /// The first Pentium: its counters can count but not sample
    Pentium,
}

impl From<InterfaceName> for Kind {
    fn from(name: InterfaceName) -> Self {
        match name {
            InterfaceName::Default => Self::Default,
            InterfaceName::Emon => Self::Emon,
            InterfaceName::Amd64 => Self::Amd64,
            InterfaceName::Netburst => Self::NetBurst,
            InterfaceName::P6 => Self::P6,
            InterfaceName::Pentium => Self::Pentium,
        }
    }
}

/// Arguments of `query`.
#[derive(Debug, Args)]
pub struct QueryArgs {
    /// Name or number
    pub source: SourceName,
    #[command(flatten)]
    pub format: Json,
}

/// Arguments of `interval`.
#[derive(Debug, Args)]
pub struct IntervalArgs {
    /// Name or number
    pub source: SourceName,
    /// The interval, such as 100000 or 100k; limited to the range of the source
    #[arg(value_parser = number::parse)]
    pub interval: u32,
    #[command(flatten)]
    pub format: Json,
}

/// Arguments of `start`.
#[derive(Debug, Args)]
pub struct StartArgs {
    /// Sources, or events as cpu/event=0xC0,umask=0/, each with :u or :k for one mode only; on a hybrid
    /// cpu_core/SOURCE/ and cpu_atom/SOURCE/ for one core type
    #[arg(required = true, value_name = "SOURCE")]
    pub events: Vec<EventList>,
    /// Processors, such as 0,2-3 [default: every active one]
    #[arg(short = 'C', long = "cpu", value_name = "LIST")]
    pub processors: Option<ProcessorList>,
    #[command(flatten)]
    pub force: Force,
    #[command(flatten)]
    pub format: Json,
}

/// Arguments of `stop`.
#[derive(Debug, Args)]
pub struct StopArgs {
    /// What to stop
    #[arg(required_unless_present = "all", value_name = "SOURCE")]
    pub sources: Vec<Names<SourceName>>,
    /// Stop everything that `start` started
    #[arg(long, conflicts_with = "sources")]
    pub all: bool,
    /// A row for each processor as well
    #[arg(short = 'A', long)]
    pub per_cpu: bool,
    #[command(flatten)]
    pub format: Json,
}

/// Arguments of `read`.
#[derive(Debug, Args)]
pub struct ReadArgs {
    /// What to read [default: everything that `start` started]
    #[arg(value_name = "SOURCE")]
    pub sources: Vec<Names<SourceName>>,
    /// A row for each processor as well
    #[arg(short = 'A', long)]
    pub per_cpu: bool,
    #[command(flatten)]
    pub format: Json,
}

/// Arguments of `selftest`.
#[derive(Debug, Args)]
pub struct SelftestArgs {
    /// Processors, such as 0,2-3 [default: the first one, on hybrids of each core type]
    #[arg(short = 'C', long = "cpu", value_name = "LIST")]
    pub processors: Option<ProcessorList>,
    /// Also test call stacks
    #[arg(long)]
    pub stacks: bool,
    /// Also test counts of threads, and save whether they are right
    #[arg(long)]
    pub threads: bool,
    /// Also count the loops by Windows' own HAL, and compare with the driver
    #[arg(long, conflicts_with = "backend")]
    pub compare: bool,
    #[command(flatten)]
    pub backend: BackendArgs,
    #[command(flatten)]
    pub force: Force,
    #[command(flatten)]
    pub format: Json,
}

/// Arguments of `diagnose`.
#[derive(Debug, Args)]
pub struct DiagnoseArgs {
    /// A CPUID dump; - is standard input [default: this processor]
    #[arg(long, value_name = "FILE")]
    pub cpuid: Option<PathBuf>,
    /// Let the driver read the registers of this machine; it writes none
    #[arg(long, conflicts_with = "cpuid")]
    pub live: bool,
    #[command(flatten)]
    pub format: Json,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn parse(line: &str) -> Result<Verb, clap::Error> {
        Cli::try_parse_from(["client"].into_iter().chain(line.split_whitespace())).map(|cli| cli.verb)
    }

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_line_of_every_help_fits_a_console() {
        let mut command = Cli::command();
        command.build();
        for command in [&command].into_iter().chain(command.get_subcommands()) {
            let help = command.clone().render_long_help().to_string();
            assert!(help.lines().all(|line| line.len() <= 80), "{help}");
        }
    }

    #[test]
    fn options_after_the_command_belong_to_the_command() {
        for line in ["stat -e 2,6:u -C 0 -- app --json -e -- x", "stat -e 2 -e 6:u -C 0 app --json -e -- x"] {
            let Ok(Verb::Stat(args)) = parse(line) else { panic!("{line}") };
            assert_eq!(args.command, ["app", "--json", "-e", "--", "x"], "{line}");
            assert_eq!((args.events.iter().flat_map(|list| &list.0).count(), args.json), (2, false), "{line}");
        }
    }

    #[test]
    fn sources_can_be_separated_by_spaces_or_commas() {
        for line in ["start TotalIssues 6:u", "start TotalIssues,6:u"] {
            let Ok(Verb::Start(args)) = parse(line) else { panic!("{line}") };
            assert_eq!(args.events.iter().flatten().map(|member| member.event.modes).collect::<Vec<_>>(), [3, 1]);
        }
    }

    #[test]
    fn invalid_command_lines_have_the_usage_exit_code() {
        for line in [
            "",
            "frobnicate",
            "start",
            "stop",
            "stop --all 2",
            "stat -e 2",
            "stat --json --csv -e 2 -- app",
            "stat -e 2:x -- app",
            "stat -e 2:p -- app",
            "start 2:up",
            "start 2 -C 3-1",
            "interval 2",
            "control-area make",
            "control-area --current -C 0",
            "interval 2 -5",
            "interval 2 4294967296",
            "list --interface itanium",
            "list --interface emon --all",
            "diagnose --cpuid",
            "diagnose dump.txt",
        ] {
            assert_eq!(parse(line).unwrap_err().exit_code(), exit::Exit::Usage.code(), "{line}");
        }
    }
}
