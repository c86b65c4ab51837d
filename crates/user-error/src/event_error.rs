//! Errors of the events of a command line.

use halprof::text::argument::argument;
use thiserror::Error;

use crate::UserError;
use crate::exit::Exit;

/// Why the events of a command line cannot be used.
#[derive(Debug, Error)]
pub enum EventError {
    /// `record --batch` without a precise event.
    #[error("--batch is for precise events, and none of the events is precise")]
    NothingPrecise,
    /// `record -F` with the interval of each event.
    #[error("-F is for events without an interval, and each event has one")]
    NoFrequency,
    /// `record -g` with precise events alone.
    #[error(
        "no event has call stacks: the processor records :p events itself, without an interrupt to walk a stack at"
    )]
    NothingInterrupts,
    /// `record -b` without an event whose samples have last branches.
    #[error("no event has last branches: samples of :p events and of Time have none")]
    NoBranches,
    /// An event with different counters.
    #[error("{name} is named twice, with different counters")]
    TwoNarrowings {
        /// Source and modes of the event.
        name: String,
    },
    /// An event with different names of its row.
    #[error("{name} is named twice, with different names of its row")]
    TwoLabels {
        /// Source and modes of the event.
        name: String,
    },
    /// `interval` with a core type.
    #[error("{name} has no interval of its own: a source has one for all core types")]
    CommonInterval {
        /// The source, as the user typed it.
        name: String,
        /// The source without the core type.
        plain: String,
    },
    /// `stat` or `record` without `-e` on a machine that supports none of the default events.
    #[error("none of the events that are used without -e is supported on this machine")]
    NoDefault,
}

impl UserError for EventError {
    fn exit(&self) -> Exit {
        match self {
            Self::NothingPrecise
            | Self::NoFrequency
            | Self::NothingInterrupts
            | Self::NoBranches
            | Self::TwoNarrowings { .. }
            | Self::TwoLabels { .. }
            | Self::CommonInterval { .. } => Exit::Usage,
            Self::NoDefault => Exit::UnsupportedSource,
        }
    }

    fn remedy(&self) -> Option<String> {
        let text = match self {
            Self::NothingPrecise => "-e SOURCE:p",
            Self::NoFrequency => "-e SOURCE@INTERVAL, or -F with -e SOURCE",
            Self::NothingInterrupts => "-e SOURCE without :p, or .\\client branches   (which code calls which)",
            Self::NoBranches => "-e cycles, or another event of a counter without :p",
            Self::TwoNarrowings { .. } => "one counters= with the bits of both, or two commands",
            Self::TwoLabels { .. } => "the event once, with one name=",
            Self::CommonInterval { plain, .. } => return Some(format!(".\\client interval {}", argument(plain))),
            Self::NoDefault => ".\\client info   (says why), or name others with -e",
        };
        Some(text.to_owned())
    }
}
