//! The command line of `record`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use events::condition::Condition;
use halprof::event::SampledEvent;
use protocol::{MAX_BATCH, MAX_FREQUENCY};
use recording::Limits;
use stacks::CallGraph;

use super::common::BackendArgs;
use super::last_branches::LastBranchArgs;
use super::session::SessionArgs;
use super::tasks::TaskArgs;
use crate::cli::duration;
use crate::cli::number;
use counts::names::Names;

/// Samples per second on each processor without `-F`.
const DEFAULT_FREQUENCY: u32 = 1_000;

/// Smallest limit in bytes: several blocks of samples.
const MIN_SIZE: u64 = 10_000_000;

/// Text after the options in `--help`.
pub const HELP: &str = "\
Samples COMMAND and the processes that it starts, or with -a everything that
runs: each time a counter has counted INTERVAL events, the address, the process
and the thread are written to FILE. `.\\client report` reads FILE, and can
show one process. Standard output belongs to COMMAND. Ctrl-C ends COMMAND and
the recording; FILE is still complete. Without COMMAND, recording ends with
Ctrl-C or after --duration. With both, it ends at whichever is first: when the
time is over, COMMAND continues, and the exit code is 0. An earlier recording in
FILE is kept as FILE.old.

To record for hours until something happens, --keep-last or --max-size keeps the
newest samples. Until the end they are in FILE.part1, FILE.part2 and so on; when
a limit is reached, the oldest of them is deleted. If the client is terminated,
they are read with FILE. --max-size does not limit FILE itself, which has the
processes.

ONE PROCESS
  -p PID or -p app.exe writes only the samples of these processes, -t TID those
  of threads; the others are counted as filtered. The recording ends when all of
  them have ended, or with COMMAND, Ctrl-C or --duration if one of these is
  first. Processes that they start, and those that get a name later, are not
  recorded; those of COMMAND are (without -p), if they start in its job.
  Interrupts belong to the process that they interrupt: with :u there are none.

EVENTS
  SOURCE[:u|:k][@INTERVAL], with an interval such as 65536, 100k or 2M. Without
  an interval, the first is that of the source (.\\client query SOURCE), and it is
  adjusted to take as many samples per second as -F says. Without -e: cycles.
  An event without a source can be given as a raw event, as with perf:
    cpu/event=0xC2,umask=0x01,cmask=1,inv,edge/    also any, eq, umask=0x8050
    cpu/event=0xCD,umask=0x01,ldlat=30/p           loads of 30 cycles or more;
                                                   also offcore_rsp=, frontend=
    r1c2, cpu/r1c2/, cpu/INST_RETIRED.ANY/         number as a register value,
                                                   and a name among the terms
  with u or k after the last slash for one mode only. The numbers are in the
  processor's manual; a wrong number samples nothing, or something else. A term
  counters=0x3 allows only counters 0 and 1.
  On a hybrid, cpu_core/SOURCE/ and cpu_atom/event=0xD1,umask=0x20/ sample on
  processors of one core type; without it, each type has a part of the report.

CONDITIONS
  --when \"IPC<0.5\" writes a sample only if the ratio was below 0.5 in its window:
  the time of the CPU since the overflow before it, whatever threads ran. The
  ratio is one event divided by another (\"cache-misses/instructions>0.01\"), or
  a metric that is one (.\\client list metrics), in the modes of the sampled
  event. At its end, record tells how many windows met the condition: the others
  are no losses. Events with :p and the source Time have no condition.

PRECISE EVENTS
  With :p (or :up, :kp; :pp and :ppp mean the same: always the best that the
  processor has) the processor itself records which instruction caused the event
  (Intel's PEBS); an interrupt comes a few instructions later. The sources of
  instructions, branches and mispredicted branches have a precise form, and
  events that Intel lists as precise. From Ice Lake on, instructions are recorded
  by fixed counter 0 if it is free, without skid (INST_RETIRED.PREC_DIST).
  With --batch the processor writes more than one record before it interrupts:
  this costs less, but the records do not have a process. `.\\client report
  --merge` infers the process where it can.

CALL STACKS
  With -g, Windows walks the stack of each sample (Event Tracing for Windows),
  and the report can show callers. --call-graph kernel records the callers in
  kernel mode only: samples in user mode then have none. --call-graph user
  records those in user mode only; for a sample in kernel mode, they are the
  code that entered the kernel. Samples of code that Windows cannot interrupt to
  walk the stack (at DISPATCH_LEVEL), and of :p events, which the processor
  records itself, have no call stack. Of `.\\client branches`, each record is a
  branch, such as a call, and not a stack. If Windows refuses the trace session,
  samples are recorded without call stacks.
  --etl writes the call stacks to a file for Windows Performance Analyzer, beside
  the processes, threads and images; FILE then has samples without call stacks.

LAST BRANCHES
  With -b, each sample of a counter has the last 8 to 32 taken branches before it
  (LBR), with mispredictions and cycles where the processor reports them. -j any,u
  records those of user mode only, -j any_call,any_ret calls and returns: any,
  any_call, any_ret, ind_call, ind_jmp, call, cond, jmp, far; u, k. A context
  switch does not remove branches: reports cut those of another process. Events
  with :p and the source Time have none.

OFF THE CPU
  With --off-cpu, each time in which a thread did not run is a sample of the event
  offcpu-time, in nanoseconds: where it ran on (-g), whether it waited or another
  thread ran in its place, what it waited for, and which thread made it ready.
  `.\\client report` shows the event beside the others, `.\\client flamegraph -e
  offcpu-time` where threads wait, and `.\\client sched` each thread. With -p only
  of those processes; of the whole machine it costs much: each context switch is
  an event of Windows with a stack. A wait that has not ended has no stack.

WITHOUT THE DRIVER
  If the driver is not installed, or with --backend hal, Windows' own HAL samples
  one to four events on all CPUs at fixed intervals, with stacks: no :u, :k, :p,
  --when, --etl, --budget or -C. Samples come two seconds later.

EXIT CODE
  The exit code of COMMAND. If the client itself fails: see .\\client --help.

EXAMPLES
  .\\client record -- app.exe --option
  .\\client record -e \"TotalIssues:u@100k,BranchMispredictions@10k\" -- app.exe
  .\\client record -e TotalIssues:p@1M --batch 64 -- app.exe
  .\\client record -e cycles@1M --when \"IPC<0.5\" -- app.exe
  .\\client record -g -- app.exe
  .\\client record -F 4k -C 0-3 -o app.rec -- app.exe
  .\\client record -j any,u -- app.exe
  .\\client record -p app.exe,4711 -g
  .\\client record -p app.exe --off-cpu
  .\\client record -a --duration 10s
  .\\client record -a --keep-last 60s
";

/// Arguments of `record`.
#[derive(Debug, Clone, Default, Args)]
pub struct RecordArgs {
    /// Sources to sample, with commas
    #[arg(short, long = "event", value_name = "A,B,...")]
    pub events: Vec<Names<SampledEvent>>,
    /// Samples per second on each processor, for events without an interval [default: 1000]
    #[arg(short = 'F', long, value_name = "HZ", value_parser = frequency)]
    pub freq: Option<u32>,
    /// Events between two samples, for events without an interval
    #[arg(short, long, value_name = "N", conflicts_with = "freq", value_parser = number::within(1..=u32::MAX))]
    pub count: Option<u32>,
    /// Sample only where a ratio of events is below or above a number, such as "IPC<0.5"
    #[arg(long, value_name = "RATIO")]
    pub when: Option<Condition>,
    /// Records of :p events that a processor writes before it interrupts [default: 1]
    #[arg(long, value_name = "N", conflicts_with_all = ["processes", "threads"], value_parser = number::within(1..=MAX_BATCH))]
    pub batch: Option<u32>,
    /// Write the samples to FILE
    #[arg(short, long, value_name = "FILE", default_value = "halprof.rec", value_parser = file)]
    pub output: PathBuf,
    /// Keep the newest samples, of at most SIZE bytes such as 500M or 10GB
    #[arg(long, value_name = "SIZE", value_parser = max_size)]
    pub max_size: Option<u64>,
    /// Keep the samples of at least the last TIME, such as 60s
    #[arg(long, value_name = "TIME", value_parser = duration::nonzero)]
    pub keep_last: Option<Duration>,
    #[command(flatten)]
    pub branches: LastBranchArgs,
    #[command(flatten)]
    pub stacks: StackArgs,
    #[command(flatten)]
    pub tasks: TaskArgs,
    #[command(flatten)]
    pub backend: BackendArgs,
    #[command(flatten)]
    pub session: SessionArgs,
}

/// Call stacks.
#[derive(Debug, Clone, Default, Args)]
pub struct StackArgs {
    /// Record call stacks: --call-graph both
    #[arg(short = 'g')]
    pub both: bool,
    /// Record the callers in kernel mode, in user mode, or both
    #[arg(long, value_name = "MODE")]
    pub call_graph: Option<CallGraphMode>,
    /// Let Windows write the call stacks to FILE, for Windows Performance Analyzer, and not to the recording
    #[arg(long, value_name = "FILE", conflicts_with_all = ["both", "call_graph"], value_parser = file)]
    pub etl: Option<PathBuf>,
    /// Record when threads did not run, and why, as the event offcpu-time
    #[arg(long, conflicts_with = "etl")]
    pub off_cpu: bool,
}

impl StackArgs {
    /// Returns which callers are recorded, if any are.
    pub fn graph(&self) -> Option<CallGraph> {
        let mode =
            self.call_graph.or((self.both || self.off_cpu || self.etl.is_some()).then_some(CallGraphMode::Both))?;
        Some(match mode {
            CallGraphMode::Kernel => CallGraph::Kernel,
            CallGraphMode::User => CallGraph::User,
            CallGraphMode::Both => CallGraph::Both,
        })
    }
}

/// Which callers are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CallGraphMode {
    /// Those in kernel mode
    Kernel,
    /// Those in user mode
    User,
    /// All
    Both,
}

impl RecordArgs {
    /// Returns the samples per second on each processor, for events without an interval.
    pub fn frequency(&self) -> u32 {
        self.freq.unwrap_or(DEFAULT_FREQUENCY)
    }

    /// Returns how much is kept.
    pub fn limits(&self) -> Limits {
        Limits { bytes: self.max_size, time: self.keep_last }
    }
}

/// Parses the file of a recording. In other options, `-` is standard output.
pub(super) fn file(text: &str) -> Result<PathBuf, String> {
    match text {
        "-" => Err("a recording is binary; write -o FILE, which .\\client script FILE prints".to_owned()),
        path => Ok(path.into()),
    }
}

fn max_size(text: &str) -> Result<u64, String> {
    let in_bytes = text.strip_suffix('B').filter(|number| number.ends_with(['k', 'K', 'm', 'M', 'g', 'G']));
    match number::large(in_bytes.unwrap_or(text))? {
        bytes if bytes < MIN_SIZE => Err("the size must be at least 10M".to_owned()),
        bytes => Ok(bytes),
    }
}

pub(super) fn frequency(text: &str) -> Result<u32, String> {
    match number::parse(text)? {
        number @ 1..=MAX_FREQUENCY => Ok(number),
        _ => Err(format!("a frequency is from 1 to {MAX_FREQUENCY}")),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Verb};
    use halprof::event::SourceName;
    use user_error::exit::Exit;

    fn parse(line: &str) -> Result<RecordArgs, clap::Error> {
        let cli = Cli::try_parse_from(["client", "record"].into_iter().chain(line.split_whitespace()))?;
        let Verb::Record(args) = cli.verb else { panic!("{line}") };
        Ok(args)
    }

    #[test]
    fn options_after_the_command_belong_to_the_command() {
        for line in ["-e 2,6:u@10k -F 2k -- app -a --ring x", "-e 2 -e 6:u@10k -F 2k app -a --ring x"] {
            let args = parse(line).unwrap();
            let SessionArgs { command, ring, all, .. } = &args.session;
            assert_eq!(command, &["app", "-a", "--ring", "x"], "{line}");
            assert_eq!((*ring, *all, args.freq), (None, false, Some(2_000)), "{line}");
            let intervals: Vec<_> = args.events.iter().flatten().map(|event| event.interval).collect();
            assert_eq!(intervals, [None, Some(10_000)], "{line}");
            assert_eq!(args.events.iter().flatten().nth(1).unwrap().event.source, SourceName::Number(6));
        }
    }

    #[test]
    fn record_without_a_command_runs_for_a_time_or_until_ctrl_c() {
        for line in ["", "-e 2", "--all", "-C 0"] {
            let SessionArgs { duration, command, .. } = parse(line).unwrap().session;
            assert_eq!((duration, command.len()), (None, 0), "{line}");
        }
        let SessionArgs { duration, command, .. } = parse("--duration 5s -- app").unwrap().session;
        assert_eq!((duration, command.len()), (Some(Duration::from_secs(5)), 1));
        for line in ["-a --duration 0.5s --ring 64 --budget 90", "--duration 0.5s --ring 64 --budget 90"] {
            let SessionArgs { duration, ring, budget, .. } = parse(line).unwrap().session;
            assert_eq!((duration, ring, budget), (Some(Duration::from_millis(500)), Some(64), Some(90)), "{line}");
        }
        assert!(parse("--all").unwrap().session.duration.is_none());
    }

    #[test]
    fn the_default_frequency_is_1000() {
        assert_eq!(parse("-a").unwrap().frequency(), 1_000);
    }

    #[test]
    fn everything_is_kept_without_a_limit() {
        assert!(parse("-a").unwrap().limits().are_none());
        let limits = parse("-a --max-size 10M --keep-last 1.5s").unwrap().limits();
        assert_eq!(limits, Limits { bytes: Some(10_000_000), time: Some(Duration::from_millis(1_500)) });
        for (text, bytes) in
            [("20MB", 20_000_000), ("1GB", 1_000_000_000), ("30000kB", 30_000_000), ("0x1312D0B", 0x131_2D0B)]
        {
            assert_eq!(max_size(text), Ok(bytes), "{text}");
        }
        for text in ["MB", "20B", "20MiB", "20MBB", "20mb"] {
            assert!(max_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn call_stacks_are_recorded_if_asked_for() {
        for (line, graph) in [
            ("-a", None),
            ("-a -g", Some(CallGraph::Both)),
            ("-a --call-graph both", Some(CallGraph::Both)),
            ("-a --call-graph kernel", Some(CallGraph::Kernel)),
            ("-g --call-graph user -- app -g", Some(CallGraph::User)),
            ("-a --etl x.etl", Some(CallGraph::Both)),
        ] {
            assert_eq!(parse(line).unwrap().stacks.graph(), graph, "{line}");
        }
    }

    #[test]
    fn invalid_command_lines_have_the_usage_exit_code() {
        for line in [
            "-a --duration 0",
            "-a --duration -1",
            "-a --duration inf",
            "-a --duration NaN",
            "-a --duration 1e30",
            "-a -e 2@0",
            "-a -e 2@",
            "-a -e 2@5G",
            "-a -F 0",
            "-a -F 100001",
            "-a --ring 100",
            "-a --ring 32",
            "-a --ring 2097152",
            "-a -e 2:p --batch 0",
            "-a -e 2:p --batch 1025",
            "-a --budget 0",
            "-a --budget 91",
            "-a --max-size 9999k",
            "-a --max-size 1T",
            "-a --keep-last 0",
            "-a --call-graph dwarf",
            "-a --call-graph",
            "-a -g --etl x.etl",
            "-F 99 -c 1000",
            "--when IPC",
            "--when IPC<=1",
            "--when A+B<1",
            "-c 0",
            "-a --call-graph user --etl x.etl",
        ] {
            assert_eq!(parse(line).unwrap_err().exit_code(), Exit::Usage.code(), "{line}");
        }
    }
}
