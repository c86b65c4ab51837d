//! The options that select samples of a recording.

use std::convert::Infallible;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use halprof::event::SourceName;
use halprof::text::processors::ProcessorList;

use crate::cli::duration;
use crate::cli::number;

/// The selected samples, and where their symbols are.
#[derive(Debug, Default, Args)]
pub struct SelectionArgs {
    /// Only samples of this source
    #[arg(short, long, value_name = "SOURCE")]
    pub event: Option<SourceName>,
    /// Only samples on these processors, such as 0,2-3
    #[arg(short = 'C', long = "cpu", value_name = "LIST")]
    pub processors: Option<ProcessorList>,
    /// Only samples in processes with this name or ID; can be repeated
    #[arg(long = "process", value_name = "NAME|ID", value_delimiter = ',')]
    pub processes: Vec<ProcessName>,
    /// Only samples in these threads
    #[arg(long = "thread", value_name = "ID,...", value_delimiter = ',', value_parser = number::parse)]
    pub threads: Vec<u32>,
    /// Only samples in this module; can be repeated
    #[arg(long = "module", value_name = "NAME", value_delimiter = ',')]
    pub modules: Vec<String>,
    /// Only samples in this function; can be repeated
    #[arg(long = "symbol", value_name = "NAME")]
    pub functions: Vec<String>,
    /// Only samples of this time since the start: 1s-2s, 1.5s- or -250ms
    #[arg(long, value_name = "FROM-TO", allow_hyphen_values = true)]
    pub time: Option<TimeRange>,
    /// A folder with symbols, or a symbol store; can be repeated
    #[arg(long, value_name = "DIR")]
    pub symbols: Vec<PathBuf>,
}

impl SelectionArgs {
    /// Returns whether no option selects samples.
    pub fn is_empty(&self) -> bool {
        let Self { event, processors, processes, threads, modules, functions, time, symbols: _ } = self;
        let names = processes.is_empty() && threads.is_empty() && modules.is_empty() && functions.is_empty();
        event.is_none() && processors.is_none() && names && time.is_none()
    }
}

/// A process, as users type it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcessName {
    /// A process ID.
    Number(u32),
    /// The file name of a program, in any case, with or without `.exe`; `*` and `?` stand for other characters.
    Name(String),
}

impl FromStr for ProcessName {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        let number = if text.starts_with("0x") { number::parse(text).ok() } else { text.parse().ok() };
        Ok(number.map_or_else(|| Self::Name(text.to_owned()), Self::Number))
    }
}

/// A part of the time of a recording, from its start: `from` is in it, `to` is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeRange {
    /// First time.
    pub from: Duration,
    /// End; `None` is the end of the recording.
    pub to: Option<Duration>,
    /// The range as the user typed it.
    pub text: String,
}

impl FromStr for TimeRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let malformed = || format!("\"{text}\" is not a range of time; write 1s-2s, 1s- or -250ms");
        let (from, to) = text.split_once('-').ok_or_else(malformed)?;
        let bound = |text: &str| match text {
            "" => Ok(None),
            text => duration::parse(text).map(Some).map_err(|_| malformed()),
        };
        let (from, to) = (bound(from)?, bound(to)?);
        match (from, to) {
            (None, None) => Err(malformed()),
            (Some(from), Some(to)) if from >= to => Err(format!("{text} ends before it begins")),
            (from, to) => Ok(Self { from: from.unwrap_or_default(), to, text: text.to_owned() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_a_number_only_if_all_characters_belong_to_it() {
        for (text, wanted) in [
            ("12", Some(12)),
            ("0", Some(0)),
            ("0x1F4", Some(500)),
            ("12a", None),
            ("4k", None),
            ("4294967296", None),
            ("app.exe", None),
        ] {
            let Ok(name) = text.parse::<ProcessName>();
            assert_eq!(name, wanted.map_or_else(|| ProcessName::Name(text.to_owned()), ProcessName::Number));
        }
    }

    #[test]
    fn a_range_of_time_can_lack_one_end() {
        for (text, from, to) in [
            ("1s-2s", 1000, Some(2000)),
            ("1s-2.5s", 1000, Some(2500)),
            ("1s-", 1000, None),
            ("-250ms", 0, Some(250)),
            ("0-1ms", 0, Some(1)),
        ] {
            let range: TimeRange = text.parse().unwrap();
            assert_eq!((range.from, range.to), (Duration::from_millis(from), to.map(Duration::from_millis)), "{text}");
        }
    }

    #[test]
    fn a_malformed_range_of_time_says_what_to_write() {
        for text in ["", "-", "5", "1s", "1s--2s", "1s-2s-3s", "1-2", "a-b", "1s - 2s"] {
            let wanted = format!("\"{text}\" is not a range of time; write 1s-2s, 1s- or -250ms");
            assert_eq!(text.parse::<TimeRange>(), Err(wanted));
        }
        for text in ["2s-1s", "1s-1s", "1s-1000ms", "0-0"] {
            assert_eq!(text.parse::<TimeRange>(), Err(format!("{text} ends before it begins")));
        }
    }
}
