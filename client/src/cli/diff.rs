//! The command line of `diff`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use report::Column;

use super::selection::SelectionArgs;
use crate::cli::number;

/// Text after the options in `--help`.
pub const HELP: &str = "\
OLD and NEW are two recordings, or two files of .\\client stat --json -o FILE.

RECORDINGS
  For each event, the total of its events, and a row for each function, or other
  names of --sort: the old and the new share of all events, and the change in
  percentage points. The options that select samples are those of report; the
  shares stay those of all events.
  A share rises if something else falls. The column Events has the change of the
  row's own events, in percent of the old total: what became more or less.
  With --latency the shares are those of the wall time, as in report.

COUNTS
  A row for each event: the old and the new count, and the change in percent.
  Counts of stat -r N have an error, by Student's distribution, and so have
  scaled counts of events that took turns. Another count of one run has none:
  it says nothing about what the next run counts.

UNIT OF WORK
  With --work OLD,NEW, the work that each of the two did, for example requests
  served: totals, changes of events and counts are those of one unit. Without it,
  both did the same work.

STATISTICAL ERROR
  +/- is half the width of the 95 % confidence interval of the change, on its
  wider side; --json has both bounds. It is that of independent samples, of two
  recordings. How much runs of a program differ is only known by repeating them.
  A change with ~ is not significant: its interval contains zero.

--fail-above P
  Ends with exit code 27 if something became worse by more than P, significantly:
    the total of an event rose by more than P percent,
    the events of a row of a recording rose by more than P percent of the old
    total, or
    a row of counts rose by more than P percent.
  It rose by more than P significantly if its whole confidence interval is above
  P. For this decision, the intervals are wider than those shown: all of them
  together contain the true changes in 95 of 100 cases (Bonferroni's correction),
  so many rows do not fail by chance. Less is never worse. Each row that failed
  has a ! at its change. Counts without an error are refused. Shares decide
  nothing: that of a function rises if another one becomes faster.

EXAMPLES
  .\\client diff old.rec new.rec
  .\\client diff old.rec new.rec --sort module --process app --fail-above 2%
  .\\client stat -r 10 --json -o old.json -- app.exe
  .\\client diff old.json new.json --fail-above 5%
  .\\client diff old.rec new.rec --work 12000,15500 --fail-above 5%
";

/// Maximum number of rows of each event in text, without `--limit`.
const DEFAULT_ROWS: usize = 40;

/// Arguments of `diff`.
#[derive(Debug, Args)]
pub struct DiffArgs {
    /// The recording or the counts to compare with
    pub old: PathBuf,
    /// The recording or the counts
    pub new: PathBuf,
    #[command(flatten)]
    pub selection: SelectionArgs,
    /// The names by which samples are grouped
    #[arg(
        long,
        value_enum,
        ignore_case = true,
        value_delimiter = ',',
        default_value = "module,symbol",
        value_name = "A,B,..."
    )]
    pub sort: Vec<DiffColumn>,
    /// Compare the shares of the wall time instead: while N CPUs run a process, each has a Nth of it
    #[arg(long)]
    pub latency: bool,
    /// At most N rows of each event [default: 40 in text]
    #[arg(long, value_name = "N", value_parser = number::rows)]
    pub limit: Option<usize>,
    #[command(flatten)]
    pub fail: FailAbove,
    /// Units of work that OLD and NEW did; changes are those of one unit
    #[arg(long, value_name = "OLD,NEW", value_parser = work)]
    pub work: Option<Work>,
    /// Do not shorten names to fit the terminal; in a pipe or a file they never are
    #[arg(long)]
    pub wide: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

impl DiffArgs {
    /// Returns the maximum number of rows. Output for programs is complete by default.
    pub fn max_rows(&self) -> usize {
        self.limit.unwrap_or(if self.json { usize::MAX } else { DEFAULT_ROWS })
    }
}

/// The units of work that both measurements did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Work {
    pub old: f64,
    pub new: f64,
}

impl Work {
    /// The work of two measurements of the same work.
    pub const SAME: Self = Self { old: 1.0, new: 1.0 };
}

/// When a change is a failure.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct FailAbove {
    /// End with exit code 27 if something became worse by more than P percent, significantly
    #[arg(long, value_name = "P", value_parser = percent)]
    pub fail_above: Option<f64>,
}

/// A name by which two recordings can be compared, as users type it. Addresses and threads differ in each run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DiffColumn {
    /// Name of the process
    #[value(aliases = ["comm", "pid"])]
    Process,
    /// The program or library
    #[value(aliases = ["dso"])]
    Module,
    /// The function
    #[value(aliases = ["sym"])]
    Symbol,
    /// Number of the processor
    #[value(aliases = ["cpu"])]
    Processor,
}

impl DiffColumn {
    /// Returns the name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Module => "module",
            Self::Symbol => "symbol",
            Self::Processor => "processor",
        }
    }
}

impl From<DiffColumn> for Column {
    fn from(name: DiffColumn) -> Self {
        match name {
            DiffColumn::Process => Self::Process,
            DiffColumn::Module => Self::Module,
            DiffColumn::Symbol => Self::Symbol,
            DiffColumn::Processor => Self::Processor,
        }
    }
}

/// Parses a percentage, with or without its sign.
pub(super) fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim_end();
    let number = number.parse().ok().filter(|number: &f64| *number >= 0.0 && number.is_finite());
    number.ok_or_else(|| format!("\"{text}\" is not a percentage; write 5 or 0.5%"))
}

fn work(text: &str) -> Result<Work, String> {
    let units = |text: &str| text.trim().parse().ok().filter(|units: &f64| *units > 0.0 && units.is_finite());
    let both = text.split_once(',').and_then(|(old, new)| Some(Work { old: units(old)?, new: units(new)? }));
    both.ok_or_else(|| format!("\"{text}\" is not the work of two measurements; write 12000,15500"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::STAT_HELP;
    use user_error::exit::Exit;

    #[test]
    fn the_help_names_the_exit_code() {
        let code = Exit::Worse.code();
        assert!(HELP.contains(&format!("Ends with exit code {code} if")), "{HELP}");
        assert!(STAT_HELP.contains(&format!("With --fail-above: {code} if COMMAND")), "{STAT_HELP}");
    }

    #[test]
    fn work_is_two_positive_numbers() {
        assert_eq!(work("1.5, 200"), Ok(Work { old: 1.5, new: 200.0 }));
        for text in ["", "1", "1,", "0,1", "1,-1", "1,NaN", "inf,1", "1,2,3", "a,b"] {
            assert_eq!(work(text), Err(format!("\"{text}\" is not the work of two measurements; write 12000,15500")));
        }
    }

    #[test]
    fn a_percentage_can_end_in_its_sign() {
        for (text, number) in [("5%", 5.0), ("5", 5.0), ("0.5 %", 0.5), ("0", 0.0), ("250%", 250.0)] {
            assert_eq!(percent(text), Ok(number), "{text}");
        }
        for text in ["", "%", "-1", "NaN", "inf", "5%%", "five"] {
            assert_eq!(percent(text), Err(format!("\"{text}\" is not a percentage; write 5 or 0.5%")));
        }
    }
}
