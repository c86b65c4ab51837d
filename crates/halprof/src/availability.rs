//! The best grade of truth that a group can have, and why it has no better one.

use std::fmt;

use crate::quality::{Disturbance, Grade};
use crate::verification::ThreadReading;

/// The best grade of a group's counts on this machine, and the reasons why the better ones are unavailable.
///
/// A single region can still be graded worse, for the reason in its [`Quality`](crate::Quality).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Availability {
    grade: Grade,
    reading: Option<ThreadReading>,
    verified: bool,
    unavailable: Vec<(Grade, Unavailable)>,
}

impl Availability {
    pub(crate) fn new(
        grade: Grade,
        reading: Option<ThreadReading>,
        verified: bool,
        unavailable: Vec<(Grade, Unavailable)>,
    ) -> Self {
        Self { grade, reading, verified, unavailable }
    }

    /// Returns the best grade.
    #[must_use]
    pub fn grade(&self) -> Grade {
        self.grade
    }

    /// Returns how virtualized counts are read; `None` if the group has another grade.
    #[must_use]
    pub fn reading(&self) -> Option<ThreadReading> {
        self.reading
    }

    /// Returns whether virtualized counts are [verified](crate::verification) on this machine.
    #[must_use]
    pub fn is_verified(&self) -> bool {
        self.verified
    }

    /// Returns why a grade is unavailable; `None` if it is the group's or a worse one.
    #[must_use]
    pub fn why_not(&self, grade: Grade) -> Option<&Unavailable> {
        self.unavailable.iter().find(|(other, _)| *other == grade).map(|(_, why)| why)
    }

    /// Returns the grades that are better than the group's, each with the reason why it is unavailable.
    pub fn unavailable(&self) -> impl Iterator<Item = (Grade, &Unavailable)> {
        self.unavailable.iter().map(|(grade, why)| (*grade, why))
    }
}

impl fmt::Display for Availability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.grade.fmt(f)?;
        if self.grade == Grade::Virtualized && !self.verified {
            f.write_str(", unverified on this machine (.\\client selftest --threads verifies it)")?;
        }
        self.unavailable.iter().try_for_each(|(grade, why)| write!(f, "; not {grade}: {why}"))
    }
}

/// Why a grade is unavailable.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unavailable {
    /// Windows lacks a function for thread profiling.
    MissingFunction {
        /// Its name.
        name: &'static str,
    },
    /// The thread is profiled already, by another group or by another library.
    AlreadyProfiled,
    /// Windows refused to profile the thread.
    ProfilingFailed {
        /// The error of Windows.
        reason: String,
    },
    /// The driver or Windows refused the session.
    Refused {
        /// The refusal.
        reason: String,
    },
    /// Windows profiles the thread and reads fewer counters than were enabled.
    TooFewCounters {
        /// Number of counters that were enabled.
        enabled: u32,
        /// Number of counters that Windows reads.
        read: u32,
    },
    /// An event has no counter with an index that thread profiling can use.
    NoThreadCounter {
        /// The event.
        event: String,
    },
    /// Programs cannot execute RDPMC, which ReadThreadProfilingData needs, and the way without it is not verified on
    /// this machine.
    Unverified,
    /// Programs cannot execute RDPMC, and the way without it does not work.
    NoThreadMemory {
        /// The reason.
        reason: String,
    },
    /// A counter does not count under the hypervisor, or only a part.
    DoesNotCount {
        /// Its CPU.
        cpu: u32,
    },
    /// An event counts in kernel mode.
    KernelMode,
}

impl Unavailable {
    /// Returns what the user can do about it, if anything.
    #[must_use]
    pub fn remedy(&self) -> Option<&'static str> {
        matches!(self, Self::Unverified).then_some(".\\client selftest --threads")
    }
}

/// Why ReadThreadProfilingData is not called for counters.
const NO_RDPMC: &str = "programs cannot execute RDPMC on this machine (CR4.PCE is clear)";

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MissingFunction { name } => write!(f, "this Windows has no {name}"),
            Self::AlreadyProfiled => f.write_str("the thread is profiled already, by another group or library"),
            Self::ProfilingFailed { reason } => write!(f, "Windows did not profile the thread: {reason}"),
            Self::Refused { reason } => f.write_str(reason),
            Self::TooFewCounters { enabled, read } => {
                write!(f, "Windows reads {read} of {enabled} counters for the thread")
            }
            Self::NoThreadCounter { event } => {
                write!(f, "{event} has a counter that Windows cannot read for a thread")
            }
            Self::Unverified => write!(
                f,
                "{NO_RDPMC}, and reading counters without it is not verified (.\\client selftest --threads verifies it)"
            ),
            Self::NoThreadMemory { reason } => write!(f, "{NO_RDPMC}, and {reason}"),
            Self::DoesNotCount { cpu } => Disturbance::DoesNotCount { cpu: *cpu }.fmt(f),
            Self::KernelMode => Disturbance::KernelMode.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_has_the_grade_and_the_reason_for_every_better_one() {
        let missing = Unavailable::MissingFunction { name: "EnableThreadProfiling" };
        let all = [(Grade::Virtualized, missing.clone()), (Grade::Undisturbed, missing.clone())];
        let availability = Availability::new(Grade::Disturbed, None, false, all.to_vec());
        assert_eq!(
            availability.to_string(),
            "disturbed; not virtualized: this Windows has no EnableThreadProfiling; not undisturbed: this Windows has \
             no EnableThreadProfiling"
        );
        assert_eq!(availability.why_not(Grade::Undisturbed), Some(&missing));
        assert_eq!(availability.why_not(Grade::Disturbed), None);
        let best = |verified| {
            Availability::new(Grade::Virtualized, Some(ThreadReading::Function), verified, Vec::new()).to_string()
        };
        assert_eq!(best(false), "virtualized, unverified on this machine (.\\client selftest --threads verifies it)");
        assert_eq!(best(true), "virtualized");
    }

    #[test]
    fn a_machine_without_rdpmc_for_programs_says_why_and_what_to_do() {
        let unverified =
            Availability::new(Grade::Undisturbed, None, false, vec![(Grade::Virtualized, Unavailable::Unverified)]);
        assert_eq!(
            unverified.to_string(),
            "undisturbed; not virtualized: programs cannot execute RDPMC on this machine (CR4.PCE is clear), and \
             reading counters without it is not verified (.\\client selftest --threads verifies it)"
        );
        assert_eq!(Unavailable::Unverified.remedy(), Some(".\\client selftest --threads"));
        let memory = Unavailable::NoThreadMemory { reason: "Size is 0".to_owned() };
        assert_eq!(
            (memory.to_string().as_str(), memory.remedy()),
            ("programs cannot execute RDPMC on this machine (CR4.PCE is clear), and Size is 0", None)
        );
    }
}
