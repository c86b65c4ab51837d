//! How far the counts of a region can be trusted, and the evidence for it.
//!
//! The rules are pure functions of what was observed at both ends of a region. A rule that lacks evidence answers with
//! a [`Disturbance`]: a count is exact only if that is proven.

use std::fmt;
use std::time::Duration;

/// The three grades of truth, from the best to the worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Grade {
    /// Windows switches the counters with the thread.
    Virtualized,
    /// The counters of the CPU, while nothing but the thread ran on it in user mode.
    Undisturbed,
    /// A value that is not proven to be exact.
    Disturbed,
}

impl fmt::Display for Grade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Virtualized => "virtualized",
            Self::Undisturbed => "undisturbed",
            Self::Disturbed => "disturbed",
        })
    }
}

/// How far the counts of a region can be trusted.
///
/// Counts are exact unless they are [`Disturbed`](Self::Disturbed).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Quality {
    /// Windows counted for the thread alone, through context switches and migrations.
    Virtualized {
        /// Whether `.\client selftest` has compared the counts of Windows with known work on this machine, with this
        /// build of Windows and this driver. If not, "exact" relies on the documentation of Windows.
        verified: bool,
    },
    /// The counters of the CPU are those of the thread, because nothing else ran in user mode: Windows counted no
    /// context switch of the thread from before the first until after the last reading.
    ///
    /// The counts of a [`CpuGroup`](crate::CpuGroup) have this grade if each counter ran all the time and no other
    /// program changed its registers.
    Undisturbed,
    /// The values are not proven to be exact, for this reason.
    Disturbed(Disturbance),
}

impl Quality {
    /// Returns the grade without its details.
    #[must_use]
    pub fn grade(&self) -> Grade {
        match self {
            Self::Virtualized { .. } => Grade::Virtualized,
            Self::Undisturbed => Grade::Undisturbed,
            Self::Disturbed(_) => Grade::Disturbed,
        }
    }

    /// Returns whether the counts are exact.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.grade() != Grade::Disturbed
    }
}

impl fmt::Display for Quality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Virtualized { verified: true } => f.write_str("virtualized"),
            Self::Virtualized { verified: false } => f.write_str("virtualized, unverified on this machine"),
            Self::Undisturbed => f.write_str("undisturbed"),
            Self::Disturbed(disturbance) => write!(f, "disturbed: {disturbance}"),
        }
    }
}

/// Why counts are not proven to be exact.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Disturbance {
    /// The thread was switched out, so the counters of the CPU also counted other threads.
    ContextSwitches {
        /// Number of context switches.
        count: u32,
    },
    /// The region began on one CPU and ended on another.
    Migrated {
        /// CPU at the begin.
        from: u32,
        /// CPU at the end.
        to: u32,
    },
    /// The machine slept.
    Slept {
        /// For how long.
        duration: Duration,
    },
    /// Another program changed registers of the counters, or the driver had to stop and start them.
    CountersChanged {
        /// The CPU on which it was found.
        cpu: u32,
    },
    /// A counter did not count a known loop, or only a part of it: the hypervisor does not let it count.
    DoesNotCount {
        /// Its CPU.
        cpu: u32,
    },
    /// Windows may keep only the low 32 bits of what a counter counted between two context switches, and more events
    /// were possible. [`ThreadGroup::checkpoint`](crate::ThreadGroup::checkpoint) splits long regions.
    MayHaveTruncated {
        /// The event, as the builder got it.
        event: String,
    },
    /// What Windows reported for an event contradicts what the driver counted on the same CPU.
    Contradiction {
        /// The event, as the builder got it.
        event: String,
    },
    /// The thread was switched out during every attempt to read its counters, at an end of the region.
    SwitchedWhileRead,
    /// An event counts in kernel mode, where interrupts count for whatever they interrupt. Only Windows can tell them
    /// apart.
    KernelMode,
    /// This Windows lacks the functions for thread profiling or refuses them, so nothing tells whether other threads
    /// ran.
    NoThreadProfiling,
    /// Windows reported no cycle time for the region, so its count of context switches is not trusted either.
    NotAccounted,
    /// A check of the counters failed, so it is unknown whether another program changed them.
    NotChecked {
        /// The error.
        reason: String,
    },
    /// Events took turns on the counters of a CPU, and the counts are scaled.
    TookTurns,
    /// An event had no counter at all in the region, because others had their turns.
    NotCounted {
        /// The event, as the builder got it.
        event: String,
    },
}

impl fmt::Display for Disturbance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ContextSwitches { count: 1 } => f.write_str("the thread was switched out once"),
            Self::ContextSwitches { count } => write!(f, "the thread was switched out {count} times"),
            Self::Migrated { from, to } => write!(f, "the thread moved from CPU {from} to CPU {to}"),
            Self::Slept { duration } => write!(f, "the machine slept for {:.3} s", duration.as_secs_f64()),
            Self::CountersChanged { cpu } => {
                write!(f, "another program changed counters of CPU {cpu}, or they were restarted")
            }
            Self::DoesNotCount { cpu } => write!(f, "a counter of CPU {cpu} does not count under this hypervisor"),
            Self::MayHaveTruncated { event } => {
                write!(f, "the region was too long to prove that Windows kept every bit of {event}")
            }
            Self::Contradiction { event } => {
                write!(f, "Windows and the driver counted different numbers of {event} on the same CPU")
            }
            Self::SwitchedWhileRead => f.write_str("the thread was switched out whenever its counters were read"),
            Self::KernelMode => {
                f.write_str("events in kernel mode include interrupts, which have nothing to do with the thread")
            }
            Self::NoThreadProfiling => f.write_str("Windows does not tell whether other threads ran"),
            Self::NotAccounted => f.write_str("Windows reported no cycle time for the thread"),
            Self::NotChecked { reason } => write!(f, "the counters could not be checked: {reason}"),
            Self::TookTurns => f.write_str("events took turns on the counters, and the counts are scaled"),
            Self::NotCounted { event } => write!(f, "{event} had no counter in the region"),
        }
    }
}

/// What was observed at one end of a region, outside of the measured part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Observation {
    /// Context switches and cycle time of the thread, read before everything else at the begin and after everything
    /// else at the end; `None` if the thread is not profiled.
    pub(crate) accounting: Option<Accounting>,
    /// CPU of the group reading.
    pub(crate) cpu: u32,
    /// Generation of the counts of that CPU.
    pub(crate) generation: u64,
    /// Time that the machine has slept.
    pub(crate) asleep: Duration,
}

/// Windows' account of the thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Accounting {
    /// Number of context switches. It wraps.
    pub(crate) context_switches: u32,
    /// Cycle time.
    pub(crate) cycle_time: u64,
}

/// What was observed at both ends of a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Ends {
    pub(crate) begin: Observation,
    pub(crate) end: Observation,
}

/// What a look at the counters of all CPUs found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AllCpus {
    /// Since the session began, no other program changed a register.
    Unchanged,
    /// Another program changed a register on this CPU.
    Changed(u32),
    /// The driver did not answer.
    Failed(String),
}

impl Ends {
    /// Returns the number of context switches from the first to the last reading; `None` if they were not counted.
    pub(crate) fn context_switches(&self) -> Option<u32> {
        let (begin, end) = (self.begin.accounting?, self.end.accounting?);
        Some(end.context_switches.wrapping_sub(begin.context_switches))
    }

    /// Returns the cycles that Windows charged to the thread; `None` if it was not profiled.
    pub(crate) fn cycles(&self) -> Option<u64> {
        let (begin, end) = (self.begin.accounting?, self.end.accounting?);
        Some(end.cycle_time.saturating_sub(begin.cycle_time))
    }

    /// Returns whether the thread is proven to have run on one CPU, without another thread, all the time.
    pub(crate) fn is_one_slice(&self) -> bool {
        self.context_switches() == Some(0)
    }

    /// Returns the sleep during the region.
    fn slept(&self) -> Result<(), Disturbance> {
        if self.begin.asleep == self.end.asleep {
            return Ok(());
        }
        Err(Disturbance::Slept { duration: self.end.asleep.saturating_sub(self.begin.asleep) })
    }

    /// Checks that both readings are of the same CPU, and that its counters were not interrupted.
    fn same_counters(&self) -> Result<(), Disturbance> {
        if self.begin.cpu != self.end.cpu {
            return Err(Disturbance::Migrated { from: self.begin.cpu, to: self.end.cpu });
        }
        self.same_generation()
    }

    /// Checks that the counters were not interrupted, if both readings are of the same CPU.
    fn same_generation(&self) -> Result<(), Disturbance> {
        if self.begin.cpu == self.end.cpu && self.begin.generation != self.end.generation {
            return Err(Disturbance::CountersChanged { cpu: self.end.cpu });
        }
        Ok(())
    }

    /// Checks that Windows accounted for the thread at all. A function that succeeds and reports zeros must not count
    /// as a proof.
    fn accounted(&self) -> Result<(), Disturbance> {
        let (Some(begin), Some(end)) = (self.begin.accounting, self.end.accounting) else {
            return Err(Disturbance::NoThreadProfiling);
        };
        if end.cycle_time == begin.cycle_time { Err(Disturbance::NotAccounted) } else { Ok(()) }
    }

    /// Proves that the counters of the CPU counted this thread alone.
    ///
    /// # Errors
    /// The reason why it is not proven.
    pub(crate) fn prove_undisturbed(&self, counts_kernel: bool) -> Result<(), Disturbance> {
        if counts_kernel {
            return Err(Disturbance::KernelMode);
        }
        self.slept()?;
        self.accounted()?;
        if let count @ 1.. = self.context_switches().unwrap_or_default() {
            return Err(Disturbance::ContextSwitches { count });
        }
        self.same_counters()
    }

    /// Proves that no counter was interrupted on which Windows counted for the thread. `all_cpus` is called if the
    /// thread may have run on several CPUs.
    ///
    /// # Errors
    /// The reason why it is not proven.
    pub(crate) fn prove_virtualized(&self, all_cpus: impl FnOnce() -> AllCpus) -> Result<(), Disturbance> {
        self.slept()?;
        self.accounted()?;
        if self.is_one_slice() {
            return self.same_counters();
        }
        self.same_generation()?;
        match all_cpus() {
            AllCpus::Unchanged => Ok(()),
            AllCpus::Changed(cpu) => Err(Disturbance::CountersChanged { cpu }),
            AllCpus::Failed(reason) => Err(Disturbance::NotChecked { reason }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: Observation = Observation {
        accounting: Some(Accounting { context_switches: u32::MAX, cycle_time: 100 }),
        cpu: 3,
        generation: 7,
        asleep: Duration::from_secs(5),
    };
    const END: Observation =
        Observation { accounting: Some(Accounting { context_switches: u32::MAX, cycle_time: 200 }), ..BEGIN };

    fn switched(count: u32) -> Accounting {
        Accounting { context_switches: u32::MAX.wrapping_add(count), cycle_time: 200 }
    }

    type Proof = Result<(), Disturbance>;

    /// What was observed at the end, and what follows in both grades if no register of any CPU was changed.
    fn table() -> Vec<(Observation, Proof, Proof)> {
        let slept = || Err(Disturbance::Slept { duration: Duration::from_secs(2) });
        let moved = || Err(Disturbance::Migrated { from: 3, to: 4 });
        let changed = || Err(Disturbance::CountersChanged { cpu: 3 });
        let switches = |count| Err(Disturbance::ContextSwitches { count });
        let asleep = Duration::from_secs(7);
        let stopped = Accounting { cycle_time: 100, ..END.accounting.unwrap() };
        vec![
            (END, Ok(()), Ok(())),
            (
                Observation { accounting: None, ..END },
                Err(Disturbance::NoThreadProfiling),
                Err(Disturbance::NoThreadProfiling),
            ),
            (
                Observation { accounting: Some(stopped), ..END },
                Err(Disturbance::NotAccounted),
                Err(Disturbance::NotAccounted),
            ),
            (Observation { asleep, ..END }, slept(), slept()),
            (Observation { asleep, accounting: Some(switched(1)), cpu: 4, generation: 8 }, slept(), slept()),
            (Observation { accounting: Some(switched(1)), ..END }, switches(1), Ok(())),
            (Observation { accounting: Some(switched(9)), ..END }, switches(9), Ok(())),
            (Observation { accounting: Some(switched(1)), generation: 8, ..END }, switches(1), changed()),
            // Another CPU has generations of its own.
            (Observation { accounting: Some(switched(2)), cpu: 4, generation: 8, ..END }, switches(2), Ok(())),
            // Without a context switch this is a contradiction, and nothing is proven.
            (Observation { cpu: 4, ..END }, moved(), moved()),
            (Observation { generation: 8, ..END }, changed(), changed()),
            (Observation { generation: 6, ..END }, changed(), changed()),
        ]
    }

    #[test]
    fn a_region_is_graded_by_what_was_observed_at_its_ends() {
        for (end, undisturbed, virtualized) in table() {
            let ends = Ends { begin: BEGIN, end };
            assert_eq!(ends.prove_undisturbed(false), undisturbed, "{end:?}");
            assert_eq!(ends.prove_virtualized(|| AllCpus::Unchanged), virtualized, "{end:?}");
            assert_eq!(ends.prove_undisturbed(true), Err(Disturbance::KernelMode), "{end:?}");
        }
    }

    #[test]
    fn all_cpus_are_looked_at_only_if_the_thread_may_have_left_its_own() {
        let moved = Observation { accounting: Some(switched(2)), cpu: 4, ..END };
        for end in [moved, Observation { cpu: 3, ..moved }] {
            let ends = Ends { begin: BEGIN, end };
            let changed = ends.prove_virtualized(|| AllCpus::Changed(9));
            assert_eq!(changed, Err(Disturbance::CountersChanged { cpu: 9 }));
            let failed = ends.prove_virtualized(|| AllCpus::Failed("no answer".to_owned()));
            assert_eq!(failed, Err(Disturbance::NotChecked { reason: "no answer".to_owned() }));
        }
        let ends = Ends { begin: BEGIN, end: END };
        assert_eq!(ends.prove_virtualized(|| panic!("one CPU, looked at by the group readings")), Ok(()));
    }

    #[test]
    fn the_worst_grade_is_the_last() {
        assert!(Grade::Virtualized < Grade::Undisturbed && Grade::Undisturbed < Grade::Disturbed);
        let qualities = [
            (Quality::Virtualized { verified: true }, "virtualized", true),
            (Quality::Virtualized { verified: false }, "virtualized, unverified on this machine", true),
            (Quality::Undisturbed, "undisturbed", true),
            (
                Quality::Disturbed(Disturbance::ContextSwitches { count: 1 }),
                "disturbed: the thread was switched out once",
                false,
            ),
        ];
        for (quality, text, exact) in qualities {
            assert_eq!((quality.to_string().as_str(), quality.is_exact()), (text, exact));
        }
    }
}
