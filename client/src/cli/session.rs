//! Arguments of the verbs that fetch samples.

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;
use halprof::text::processors::ProcessorList;
use protocol::{ProcessorSet, RING, StartHeader};

use super::common::Force;
use crate::cli::duration;
use crate::cli::number;

/// Processors, capacity of the rings, duration and command.
#[derive(Debug, Clone, Default, Args)]
pub struct SessionArgs {
    /// Processors, such as 0,2-3 [default: every active one]
    #[arg(short = 'C', long = "cpu", value_name = "LIST")]
    pub processors: Option<ProcessorList>,
    #[command(flatten)]
    pub force: Force,
    /// Capacity of the ring of each processor in records: a power of two [default: room for 2 s]
    #[arg(long, value_name = "N", value_parser = ring)]
    pub ring: Option<u32>,
    /// Maximum share of a processor's time for its interrupts [default: 25]
    #[arg(long, value_name = "PERCENT", value_parser = number::within(1..=90))]
    pub budget: Option<u32>,
    /// All processors, as without it; if there is no COMMAND, end with Ctrl-C or after --duration
    #[arg(short, long)]
    pub all: bool,
    /// End after this time: 5s, 250ms or 1m; COMMAND continues
    #[arg(long, value_name = "TIME", value_parser = duration::nonzero)]
    pub duration: Option<Duration>,
    /// The command and its arguments
    #[arg(trailing_var_arg = true)]
    pub command: Vec<OsString>,
}

impl SessionArgs {
    /// Returns the header of the session.
    pub fn header(&self) -> StartHeader {
        StartHeader {
            flags: self.force.flags(),
            ring: self.ring.unwrap_or_default(),
            budget: self.budget.map_or(0, |percent| percent * 10),
            processors: self.processors.map_or(ProcessorSet::EMPTY, |list| list.0),
            ..StartHeader::EMPTY
        }
    }
}

pub(super) fn ring(text: &str) -> Result<u32, String> {
    match number::parse(text)? {
        number if number.is_power_of_two() && RING.contains(&number) => Ok(number),
        _ => Err(format!("a ring has room for a power of two from {} to {} records", RING.start(), RING.end())),
    }
}
