//! What the ABI needs from a group of the library.

use std::mem::size_of;
use std::time::Duration;

use crate::failure::Failure;
use crate::outcome::{HALPROF_DISTURBED, HALPROF_UNDISTURBED, HALPROF_VERIFIED, HALPROF_VIRTUALIZED, Outcome};

/// A group of events that counts regions.
pub trait Group {
    /// Returns the names of the events, in the order of the counts.
    fn events(&self) -> Vec<String>;
    /// Returns the best grade that a region can have, and why no better one.
    fn availability(&self) -> (Grade, String);
    /// Measures the library's own overhead, and leaves it out of later counts. Returns whether the caller's overhead is
    /// part of the counts, too.
    fn calibrate(&mut self) -> Result<bool, Failure>;
    /// Begins a region.
    fn begin(&mut self) -> Result<(), Failure>;
    /// Ends one part of a region and begins the next.
    fn checkpoint(&mut self) -> Result<(), Failure>;
    /// Ends a region. If it fails, the region goes on.
    fn end(&mut self) -> Result<Region, Failure>;
}

/// How exact the counts of a region are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grade {
    /// Windows switched the counters with the thread.
    Virtualized {
        /// A self test has proved this on the machine.
        verified: bool,
    },
    /// Nothing else ran on the CPU.
    Undisturbed,
    /// The counts are not exact.
    Disturbed,
}

impl Grade {
    /// Returns the constant of the header.
    pub const fn quality(self) -> u32 {
        match self {
            Self::Virtualized { .. } => HALPROF_VIRTUALIZED,
            Self::Undisturbed => HALPROF_UNDISTURBED,
            Self::Disturbed => HALPROF_DISTURBED,
        }
    }

    /// Returns the flags of a result.
    pub const fn flags(self) -> u32 {
        match self {
            Self::Virtualized { verified: true } => HALPROF_VERIFIED,
            _ => 0,
        }
    }
}

/// The counts of a region.
#[derive(Debug, Clone)]
pub struct Region {
    /// One count for each event of the group.
    pub counts: Vec<u64>,
    /// How exact they are.
    pub grade: Grade,
    /// Why the grade is [`Grade::Disturbed`]; empty for the others.
    pub reason: String,
    /// Time from begin to end.
    pub enabled: Duration,
    /// Time in which the counters counted.
    pub running: Duration,
}

impl Region {
    /// Returns the result that C programs see.
    pub fn outcome(&self) -> Outcome {
        let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Outcome {
            size: number(size_of::<Outcome>()),
            quality: self.grade.quality(),
            flags: self.grade.flags(),
            events: number(self.counts.len()),
            time_enabled: nanoseconds(self.enabled),
            time_running: nanoseconds(self.running),
        }
    }
}
