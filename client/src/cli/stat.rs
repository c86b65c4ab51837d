//! Arguments of `stat`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use halprof::text::processors::ProcessorList;

use super::common::{BackendArgs, Force};
use super::diff::percent;
use super::tasks::TaskArgs;
use crate::cli::duration;
use crate::cli::number;
use counts::event_list::LabelledEventList;

/// Text after the options of `stat` in `--help`.
pub const STAT_HELP: &str = "\
Counts what COMMAND and the processes that it starts execute, or the processes
and threads of -p and -t; -a counts everything that runs on the processors. As
with perf, standard output belongs to COMMAND: the counts go to standard error,
or to the file of -o. Ctrl-C ends COMMAND; the counts are still printed.

ONE PROCESS
  The driver counts processors, and samples tell whose the counts are: 4,000 of
  each event in a second on each CPU. Each count has its error (+-), such as 2 %
  after 10,000 samples. If the events cannot all be sampled at once, because they
  are more than the counters, everything is counted, as with -a, -I and -D; the
  first line says what the counts are of.
  If the driver is not installed, or with --backend hal, Windows' own HAL counts
  at each context switch: exactly, with the interrupts that the processes meet,
  and with the processes that those of -p start. Losses are said below the
  counts. What only the driver can do is refused.

EVENTS
  Without -e: cycles, instructions, branches and mispredicted branches, if this
  machine supports them and has free counters for them.
  An event has its name in the HAL (TotalIssues), its maker's name, in any case
  (MEM_LOAD_RETIRED.L3_MISS), or one of perf's: cycles, instructions, branches,
  branch-misses, cache-references, cache-misses, ref-cycles, cpu-clock. On a
  hybrid a maker's name counts on each core type that has it. .\\client encode
  EVENT shows registers and counters, and why the driver refuses an event.
  An event that this machine does not count is <not supported>, with the reason
  below the table; the others are counted, and COMMAND runs in any case. --strict
  refuses instead. .\\client query cycles shows what such a name stands for.
  An event without a source can be given as a raw event, as with perf:
    cpu/event=0xC2,umask=0x01,cmask=1,inv,edge/    also any, eq, umask=0x8050
    cpu/event=0xB7,umask=0x01,offcore_rsp=0x10001/ also frontend=0x15
    cpu/event=0xC2,umask=0x01,name=slots/          gives the row the name slots
    r1c2, cpu/r1c2/, cpu/INST_RETIRED.ANY/         number as a register value,
                                                   and a name among the terms
  with u or k after the last slash for one mode only. The numbers are in the
  processor's manual; a wrong number counts nothing, or something else. The
  driver knows on which counters most events count; .\\client query EVENT says so.
  If it does not know an event but you do, counters=0x3 among the terms allows
  counters 0 and 1 only (bit n is counter n). This never adds a counter.
  On a hybrid, an event number can be another event on each core type. Counts of
  the two are never added: each has a row. Only one type, as with perf:
    cpu_core/TotalCycles/    cpu_atom/event=0xD1,umask=0x20/u

MORE EVENTS THAN COUNTERS
  Events that do not fit on the counters at once take turns of 4 ms or more, on
  each processor. Their counts are scaled to all the time, and +- is half of the
  interval in which the true number lies in 95 of 100 cases, if the phases of
  COMMAND do not depend on the turns. --no-scale prints what was counted.
    {A,B}    are counted at the same time or not at all; {A,B}:u sets the mode
    A:D      has a counter all the time

METRICS
  -M IPC,TopdownL1 counts the events of metrics, in groups that are counted at
  the same time where they fit, and prints each metric below the counts. A
  metric without a value is n/a, with the reason: a division by zero, an event
  that this machine cannot count or that never had a counter. Metrics of Intel's
  and Linux's files can be imported: .\\client events import.

INTERVALS, RUNS AND SETS OF PROCESSORS
  -I 100 prints what was counted in each tenth of a second. Intervals end at
  multiples of it; a line has the time at which the counters were read.
  -r 10 runs COMMAND ten times. The standard error of a mean, in percent of it,
  is at the end of its row, as in perf: ( +-  0.25% ).
  S0-C1 is core 1 of package 0, as Windows reports them; the number behind it is
  that of its processors.

CSV
  [CPUn,]count,unit,event,running_ns,percent_running,metric,metric_unit
  One line per event, similar to `perf stat -x,`; CPUn with --per-cpu. The unit
  is empty. The percentage is below 100.00 if the event took turns with others.
  A count can be <not supported>, as in perf. Names with commas are quoted.
  With -I the seconds since the start come first. Sets other than processors have
  two fields: name and number of processors.
  Lines of metrics have no count; the unit of one without a value is the reason.
  With -r the error follows the event. --metric-only: metric,metric_unit,event.

TIMES
  User and system time are those of COMMAND's own process, without those of the
  processes that it starts.

EXIT CODE
  The exit code of COMMAND. If the client itself fails: see .\\client --help.
  With --fail-above: 27 if COMMAND ends with 0 and a count is worse.

EXAMPLES
  .\\client stat -- cmd /c dir
  .\\client stat -e \"TotalIssues:u,TotalIssues:k\" -- app.exe --option
  .\\client stat -e TotalCycles -C 0 --json -o counts.json -- app.exe
  .\\client stat -e \"TotalCycles,cpu/event=0xD1,umask=0x20/u\" -- app.exe
  .\\client stat -e \"instructions,MEM_LOAD_RETIRED.L3_MISS:u\" -- app.exe
  .\\client stat -M \"IPC,TopdownL1\" -- app.exe
  .\\client stat -I 500 --duration 10s
  .\\client stat -r 5 --per-core -e \"{cycles,instructions}\" -- app.exe
  .\\client stat -r 5 --json -o old.json -- app.exe
  .\\client stat --backend hal -p 1234 --duration 5s
  .\\client stat -r 5 --baseline old.json --fail-above 5% -- app.exe
";

/// The shortest interval between two lines of counts.
const LEAST_INTERVAL: Duration = Duration::from_millis(10);

/// Arguments of `stat`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub struct StatArgs {
    /// Sources to count, with commas; each can end in :u or :k, and in :D to have a counter all the time; {A,B} are
    /// counted at the same time
    #[arg(short, long = "event", value_name = "A,B,...")]
    pub events: Vec<LabelledEventList>,
    /// Metrics or groups of metrics to compute, with commas; .\client list metrics lists them
    #[arg(short = 'M', long, value_name = "NAME,...", value_delimiter = ',')]
    pub metrics: Vec<String>,
    /// Processors, such as 0,2-3 [default: every active one]
    #[arg(short = 'C', long = "cpu", value_name = "LIST")]
    pub processors: Option<ProcessorList>,
    #[command(flatten)]
    pub tasks: TaskArgs,
    #[command(flatten)]
    pub backend: BackendArgs,
    #[command(flatten)]
    pub force: Force,
    #[command(flatten)]
    pub aggregation: Aggregation,
    /// Print the counts of every 100 (milliseconds), 100ms or 5s
    #[arg(short = 'I', long, value_name = "TIME", value_parser = interval)]
    pub interval: Option<Duration>,
    /// With --interval, print the counts of the whole time as well
    #[arg(long, requires = "interval")]
    pub summary: bool,
    /// Count N times; print the mean of each count and its standard error
    #[arg(short, long, value_name = "N", conflicts_with = "interval", value_parser = number::within(1..=10_000))]
    pub repeat: Option<u32>,
    /// Begin to count 100 (milliseconds), 100ms or 5s after the command
    #[arg(short = 'D', long, value_name = "TIME", value_parser = duration::milliseconds)]
    pub delay: Option<Duration>,
    /// Count everything that runs on the processors, also beside a COMMAND; without one, end with Ctrl-C or after
    /// --duration
    #[arg(short, long)]
    pub all: bool,
    /// End after this time: 5s, 250ms or 1m
    #[arg(long, value_name = "TIME", conflicts_with = "command", value_parser = duration::nonzero)]
    duration: Option<Duration>,
    /// End after this time, as perf takes it: in milliseconds
    #[arg(long, value_name = "TIME", hide = true, conflicts_with_all = ["command", "duration"], value_parser = duration::milliseconds)]
    timeout: Option<Duration>,
    /// Print the metrics of -M without counts; without -M, the shares and frequencies beside the counts
    #[arg(long, conflicts_with = "json")]
    pub metric_only: bool,
    /// Print what was counted of events that took turns, not what it is scaled to
    #[arg(long)]
    pub no_scale: bool,
    /// Print JSON: one object, or one in a line for each interval
    #[arg(long, conflicts_with_all = ["csv", "separator"])]
    pub json: bool,
    /// Print a line per event, its fields separated by commas
    #[arg(long)]
    pub csv: bool,
    /// As --csv, with another character between the fields; \t is a tab
    #[arg(short = 'x', long = "field-separator", value_name = "CHAR", value_parser = separator)]
    pub separator: Option<u8>,
    /// Refuse if this machine does not count one of the events, instead of counting the others
    #[arg(long)]
    pub strict: bool,
    /// Write the counts to FILE; - is standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Compare the counts with those of FILE, which .\client stat --json -o wrote, as .\client diff does
    #[arg(long, value_name = "FILE", conflicts_with_all = ["interval", "json", "csv", "separator", "no_scale"])]
    pub baseline: Option<PathBuf>,
    /// End with exit code 27 if a count rose by more than P percent, significantly; see .\client diff --help
    #[arg(long, value_name = "P", requires = "baseline", value_parser = percent)]
    pub fail_above: Option<f64>,
    /// The command and its arguments
    #[arg(required_unless_present_any = ["all", "duration", "timeout", "processes", "threads"], trailing_var_arg = true)]
    pub command: Vec<OsString>,
}

/// What has a row of its own.
#[derive(Debug, Args)]
#[group(multiple = false)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub struct Aggregation {
    /// A row for each processor instead of the total
    #[arg(short = 'A', long)]
    pub per_cpu: bool,
    /// A row for each core, with the number of its processors
    #[arg(long)]
    pub per_core: bool,
    /// A row for each package of processors
    #[arg(long)]
    pub per_socket: bool,
    /// A row for each core type
    #[arg(long)]
    pub per_core_type: bool,
}

impl StatArgs {
    /// Returns when counting ends, at the latest.
    pub fn duration(&self) -> Option<Duration> {
        self.duration.or(self.timeout)
    }

    /// Returns whether neither events nor metrics are given.
    pub fn counts_defaults(&self) -> bool {
        self.events.is_empty() && self.metrics.is_empty()
    }

    /// Returns the character between the fields, if lines of fields are printed.
    pub fn separator(&self) -> Option<u8> {
        self.separator.or(self.csv.then_some(b','))
    }
}

fn interval(text: &str) -> Result<Duration, String> {
    match duration::milliseconds(text)? {
        interval if interval < LEAST_INTERVAL => {
            Err(format!("an interval has at least {} milliseconds", LEAST_INTERVAL.as_millis()))
        }
        interval => Ok(interval),
    }
}

fn separator(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"\\t" => Ok(b'\t'),
        [character]
            if character.is_ascii() && !character.is_ascii_alphanumeric() && !b"\".\n\r".contains(character) =>
        {
            Ok(*character)
        }
        _ => Err(format!("\"{text}\" cannot separate fields; write one character such as ; or \\t for a tab")),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        stat: StatArgs,
    }

    fn parse(line: &str) -> Result<StatArgs, clap::Error> {
        Line::try_parse_from(["stat"].into_iter().chain(line.split_whitespace())).map(|line| line.stat)
    }

    #[test]
    fn intervals_and_delays_are_milliseconds_and_durations_seconds() {
        for line in ["-I 250 -D 1000 --duration 2.5s", "-I 250ms -D 1s --duration 2500ms"] {
            let args = parse(line).unwrap();
            let milliseconds = [args.interval, args.delay, args.duration].map(|time| time.unwrap().as_millis());
            assert_eq!(milliseconds, [250, 1_000, 2_500], "{line}");
        }
        assert_eq!(parse("-r 0x10 app").unwrap().repeat, Some(16));
        for line in ["-I 9 app", "-I 0 app", "-I x app", "-D -1 app", "--duration 0", "-r 0 app", "-r 10001 app"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn a_separator_is_one_character_that_no_field_has() {
        let of = |line: &str| parse(line).map(|args| args.separator()).map_err(|error| error.kind());
        assert_eq!(
            [of("-x ; app"), of("-x \\t app"), of("--csv app"), of("app")],
            [Ok(Some(b';')), Ok(Some(b'\t')), Ok(Some(b',')), Ok(None)]
        );
        for line in ["-x ;; app", "-x a app", "-x . app", "-x \" app", "-x é app"] {
            assert!(of(line).is_err(), "{line}");
        }
    }

    #[test]
    fn options_that_contradict_each_other_are_refused() {
        for line in [
            "-A --per-core app",
            "--per-socket --per-core-type app",
            "-r 3 -I 100 app",
            "--json --csv app",
            "--json -x ; app",
            "--summary app",
            "--duration 1s app",
            "-e 2",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
        for line in ["-a", "--duration 1s", "-a --duration 1s -r 3", "-a -- app", "-I 100 --summary app"] {
            assert!(parse(line).is_ok(), "{line}");
        }
    }
}
