//! The command line of `top`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use halprof::event::SampledEvent;
use halprof::text::processors::ProcessorList;

use super::common::{BackendArgs, Force};
use super::record::{RecordArgs, frequency};
use super::session::{SessionArgs, ring};
use super::tasks::TaskArgs;
use crate::cli::duration;
use crate::cli::number;
use counts::names::Names;

/// Text after the options in `--help`.
pub const HELP: &str = "\
Samples everything that runs on the chosen processors, like `.\\client record -a`,
and shows the functions with the largest shares. Every --delay, the shares are
updated, and the events so far lose an eighth of their weight. Without a
terminal, or with --batch, the samples of each delay are printed as text.

KEYS
  q, Ctrl-C  quit                      arrows, page keys  scroll
  p, space   pause, and go on          /  show only names with a text
  s          next event                h  help

LOSSES
  The head shows the samples that were lost since the last update, the time for
  which sampling paused because interrupts had used up their --budget, and the
  processor time of the client itself. Names are looked up beside the sampling:
  a slow symbol server delays updates, and loses no samples.

EXAMPLES
  .\\client top
  .\\client top -e \"TotalIssues:u,BranchMispredictions\" -C 0-3 --delay 500ms
  .\\client top --batch -n 3 --limit 5
";

/// Arguments of `top`.
#[derive(Debug, Args)]
pub struct TopArgs {
    /// Sources to sample, with commas [default: cycles]
    #[arg(short, long = "event", value_name = "A,B,...")]
    pub events: Vec<Names<SampledEvent>>,
    /// Samples per second on each processor, for events without an interval [default: 1000]
    #[arg(short = 'F', long, value_name = "HZ", value_parser = frequency)]
    pub freq: Option<u32>,
    /// Events between two samples, for events without an interval
    #[arg(short, long, value_name = "N", conflicts_with = "freq", value_parser = number::within(1..=u32::MAX))]
    pub count: Option<u32>,
    /// Processors, such as 0,2-3 [default: every active one]
    #[arg(short = 'C', long = "cpu", value_name = "LIST")]
    pub processors: Option<ProcessorList>,
    /// Time between two updates
    #[arg(short, long, value_name = "TIME", default_value = "2s", value_parser = delay)]
    pub delay: Duration,
    /// Print each update as text
    #[arg(short, long)]
    pub batch: bool,
    /// End after N updates
    #[arg(short = 'n', long, value_name = "N", value_parser = number::nonzero)]
    pub iterations: Option<u64>,
    /// Rows of each event in text
    #[arg(long, value_name = "N", default_value = "20", value_parser = number::rows)]
    pub limit: usize,
    /// A folder with symbols, or a symbol store; can be repeated
    #[arg(long, value_name = "DIR")]
    pub symbols: Vec<PathBuf>,
    #[command(flatten)]
    pub tasks: TaskArgs,
    #[command(flatten)]
    pub backend: BackendArgs,
    #[command(flatten)]
    pub force: Force,
    /// Capacity of the ring of each processor in records: a power of two [default: room for 2 s]
    #[arg(long, value_name = "N", value_parser = ring)]
    pub ring: Option<u32>,
    /// Maximum share of a processor's time for its interrupts [default: 25]
    #[arg(long, value_name = "PERCENT", value_parser = number::within(1..=90))]
    pub budget: Option<u32>,
}

impl TopArgs {
    /// Returns the arguments of a recording with the same samples, which runs until it is ended.
    pub fn record(&self) -> RecordArgs {
        let Self { processors, force, ring, budget, .. } = *self;
        RecordArgs {
            events: self.events.clone(),
            freq: self.freq,
            count: self.count,
            session: SessionArgs { processors, force, ring, budget, all: true, duration: None, command: Vec::new() },
            ..RecordArgs::default()
        }
    }
}

/// Shortest time between two updates: that in which the client fetches samples.
const SHORTEST: Duration = Duration::from_millis(100);

fn delay(text: &str) -> Result<Duration, String> {
    let delay = duration::parse(text)?;
    if delay < SHORTEST { Err("updates are at least 100ms apart".to_owned()) } else { Ok(delay) }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Verb};

    fn parse(line: &str) -> Result<TopArgs, clap::Error> {
        let cli = Cli::try_parse_from(["client", "top"].into_iter().chain(line.split_whitespace()))?;
        let Verb::Top(args) = cli.verb else { panic!("{line}") };
        Ok(args)
    }

    #[test]
    fn top_samples_like_record_and_updates_every_two_seconds() {
        let args = parse("").unwrap();
        assert_eq!((args.freq, args.delay, args.batch, args.iterations), (None, Duration::from_secs(2), false, None));
        let args = parse("-e 2,6:u -F 2k -C 0 --delay 500ms -b -n 3").unwrap();
        assert_eq!((args.freq, args.delay, args.batch), (Some(2000), Duration::from_millis(500), true));
        assert_eq!((args.events.iter().flatten().count(), args.iterations), (2, Some(3)));
        for line in ["--delay 99ms", "--delay x", "-n 0", "-F 0", "app.exe", "--duration 5s"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
