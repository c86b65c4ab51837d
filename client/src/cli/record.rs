//! The command line of `record`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use protocol::{MOST_FREQUENCY, RING};

use super::Force;
use crate::cli::names::Names;
use crate::event::SampledEvent;
use crate::number;
use crate::processors::ProcessorList;

/// What follows the options in `--help`.
pub const HELP: &str = "\
Samples everything that runs on the chosen processors while COMMAND runs, not
COMMAND alone: each time a counter has counted INTERVAL events, where the
processor was is written to FILE, with the process and the thread. `client
report` reads FILE, and can show one process. Standard output is left to
COMMAND. Ctrl-C ends COMMAND and the recording; FILE is complete all the same.

EVENTS
  SOURCE[:u|:k][@INTERVAL], with an interval such as 65536, 100k or 2M. Without
  an interval: the one in force (client query SOURCE), or with -F one that is
  moved until there are as many samples a second as it says. Without -e: cycles.
  An event that no source has goes by its numbers, as with perf:
    cpu/event=0xC2,umask=0x01,cmask=1,inv,edge/
  with u or k behind the last slash for one mode alone. The processor's manual
  has the numbers; a wrong one samples nothing, or something else.

EXIT CODE
  That of COMMAND. When the client itself fails: its own (client --help).

EXAMPLES
  client record -- app.exe --option
  client record -e TotalIssues:u@100k,BranchMispredictions@10k -- app.exe
  client record -F 1k -C 0-3 -o app.rec -- app.exe
  client record -a --duration 10
";

/// Arguments of `record`.
#[derive(Debug, Args)]
pub struct RecordArgs {
    /// Sources to sample, with commas
    #[arg(short, long = "event", value_name = "A,B,...")]
    pub events: Vec<Names<SampledEvent>>,
    /// Samples a second and processor, of events without an interval
    #[arg(short = 'F', long, value_name = "HZ", value_parser = frequency)]
    pub freq: Option<u32>,
    /// Processors, such as 0,2-3 [default: every active one]
    #[arg(short = 'C', long = "cpu", value_name = "LIST")]
    pub processors: Option<ProcessorList>,
    #[command(flatten)]
    pub force: Force,
    /// Write the samples to FILE
    #[arg(short, long, value_name = "FILE", default_value = "halprof.rec")]
    pub output: PathBuf,
    /// Records that each processor keeps until they are fetched: a power of two
    #[arg(long, value_name = "N", default_value = "8192", value_parser = ring)]
    pub ring: u32,
    /// The most of a processor's time for its interrupts [default: 25]
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(1..=90))]
    pub budget: Option<u32>,
    /// Run no command: until Ctrl-C, or for --duration
    #[arg(short, long, conflicts_with = "command")]
    pub all: bool,
    /// End after so many seconds
    #[arg(long, value_name = "SECONDS", requires = "all", conflicts_with = "command", value_parser = seconds)]
    pub duration: Option<Duration>,
    /// The command and its arguments
    #[arg(required_unless_present = "all", trailing_var_arg = true, allow_hyphen_values = true)]
    pub command: Vec<OsString>,
}

fn frequency(text: &str) -> Result<u32, String> {
    match number::parse(text)? {
        number @ 1..=MOST_FREQUENCY => Ok(number),
        _ => Err(format!("a frequency is from 1 to {MOST_FREQUENCY}")),
    }
}

fn ring(text: &str) -> Result<u32, String> {
    match number::parse(text)? {
        number if number.is_power_of_two() && RING.contains(&number) => Ok(number),
        _ => Err(format!("a ring has room for a power of two from {} to {} records", RING.start(), RING.end())),
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let number = text.parse().ok().filter(|number: &f64| *number > 0.0);
    let duration = number.and_then(|number| Duration::try_from_secs_f64(number).ok());
    duration.ok_or_else(|| format!("\"{text}\" is no number of seconds; write 10 or 0.5"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Verb};
    use crate::event::SourceName;
    use crate::exit::Exit;

    fn parse(line: &str) -> Result<RecordArgs, clap::Error> {
        let cli = Cli::try_parse_from(["client", "record"].into_iter().chain(line.split_whitespace()))?;
        let Verb::Record(args) = cli.verb else { panic!("{line}") };
        Ok(args)
    }

    #[test]
    fn options_after_the_command_are_the_commands_own() {
        for line in ["-e 2,6:u@10k -F 1k -- app -a --ring x", "-e 2 -e 6:u@10k -F 1k app -a --ring x"] {
            let args = parse(line).unwrap();
            assert_eq!(args.command, ["app", "-a", "--ring", "x"], "{line}");
            assert_eq!((args.ring, args.all, args.freq), (8_192, false, Some(1_000)), "{line}");
            let intervals: Vec<_> = args.events.iter().flatten().map(|event| event.interval).collect();
            assert_eq!(intervals, [None, Some(10_000)], "{line}");
            assert_eq!(args.events.iter().flatten().nth(1).unwrap().event.source, SourceName::Number(6));
        }
    }

    #[test]
    fn without_a_command_it_runs_for_a_time_or_until_it_is_interrupted() {
        let args = parse("-a --duration 0.5 --ring 64 --budget 90").unwrap();
        assert_eq!((args.duration, args.ring, args.budget), (Some(Duration::from_millis(500)), 64, Some(90)));
        assert!(parse("--all").unwrap().duration.is_none());
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_the_code_of_usage() {
        for line in [
            "",
            "-e 2",
            "-a -- app",
            "--duration 5 -- app",
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
            "-a --budget 0",
            "-a --budget 91",
        ] {
            assert_eq!(parse(line).unwrap_err().exit_code(), Exit::Usage.code(), "{line}");
        }
    }
}
