//! The tests of counts of threads: Windows counts known work for the thread that executes it.
//!
//! The count of a region is what Windows reported. The library replaces it only by a number with the same low 32 bits,
//! and only in a region without a context switch. The long slice therefore begins with a pause, which is a switch.
//!
//! On a machine where programs cannot execute RDPMC, the counters are read without it, and a passed test is what makes
//! the library read them so.

use halprof::event::role::Role;
use halprof::event::suffix;
use halprof::verification::ThreadReading;
use halprof::{Builder, Counts, Disturbance, ErrorKind, Grade, Machine, Quality, ThreadGroup};
use protocol::{flags, modes};

use super::tester::{ITERATIONS, NO_SOURCE, TOLERANCE, Tester};
use super::{Check, OF_LONG_SLICE, OF_SWITCHED_THREAD, OF_THREAD, ROUNDS, Unit, Verdict};
use system::known_work::{Function, INSTRUCTIONS, KnownWork};
use terminal::format::{counted, real};
use user_error::Error;

/// If Windows drops high bits of what a slice counted, it drops a multiple of this. A slice is the time between two
/// context switches.
const MODULUS: u64 = 1 << 32;

/// Instructions of the long slice: not a multiple of [`MODULUS`], and half of them are still more than it.
const LONG: u64 = 5 * MODULUS / 2;

/// Attempts to execute them in two slices at most.
const LONG_ATTEMPTS: u32 = 3;

/// Why a test of a thread that is switched is not done.
const NO_SWITCH: &str = "Windows counted no context switch of the thread";

/// The tests of threads on a processor.
pub struct ThreadChecks {
    /// The tests.
    pub checks: [Check; 3],
    /// How the counters were read; `None` if they could not be.
    pub reading: Option<ThreadReading>,
    /// Whether Windows keeps more than 32 bits of a slice; `false` if that is unknown.
    pub keeps_64_bits: bool,
}

/// The result of a measurement.
enum Measured {
    /// Number of instructions.
    Count(u64),
    /// The counts cannot be used, for this reason.
    Disturbed(String),
    /// What is tested did not happen.
    NotTested(String),
}

/// What a count of the long slice tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kept {
    /// Windows kept every bit.
    EveryBit,
    /// Windows dropped high bits.
    LowBits,
    /// The count is right, but the thread was switched out so often that maybe no slice was long.
    Unknown,
    /// The count is wrong.
    Nothing,
}

impl Kept {
    /// Returns what a count tells, given the number of context switches. One or two of them are those of the pauses
    /// around the work.
    fn of(measured: u64, switches: u32) -> Self {
        let is_close = |missing: u64| {
            let complete = real(measured) + real(missing);
            (complete - real(LONG)).abs() <= real(LONG) * TOLERANCE
        };
        let longest_slice = LONG / u64::from(switches.max(1));
        if is_close(0) {
            return if longest_slice > MODULUS { Self::EveryBit } else { Self::Unknown };
        }
        let mut dropped = (1..=LONG / MODULUS).map(|times| times * MODULUS);
        if dropped.any(is_close) { Self::LowBits } else { Self::Nothing }
    }
}

impl Tester<'_> {
    /// Tests counts of threads.
    pub fn threads(&self, machine: &Machine) -> Result<ThreadChecks, Error> {
        let source = self.source(Role::Instructions)?;
        let event = source.as_ref().map(|(_, name)| format!("{name}{}", suffix(modes::USER)));
        let short = real(ITERATIONS * INSTRUCTIONS);
        let checks = [(OF_THREAD, short), (OF_SWITCHED_THREAD, short), (OF_LONG_SLICE, real(LONG))];
        let checks = checks.map(|(name, expected)| Check {
            event: event.clone(),
            ..self.check(name, Unit::Events, expected, expected * TOLERANCE)
        });
        let untested = |checks: [Check; 3], reason: &str| ThreadChecks {
            checks: checks.map(|check| check.untested(reason.to_owned())),
            reading: None,
            keeps_64_bits: false,
        };
        let Some((_, name)) = source else { return Ok(untested(checks, NO_SOURCE)) };
        let mut group = match self.group(machine, &name) {
            Ok(group) => group,
            Err(error) if error.kind() == ErrorKind::GradeUnavailable => {
                return Ok(untested(checks, &Error::from(error).in_one_line()));
            }
            Err(error) => return Err(error.into()),
        };
        let [alone, switched, long] = checks;
        let alone = alone.with_measured(self.count_thread(&mut group));
        let switched = switched.with_measured(self.count_switched_thread(&mut group));
        let (long, keeps_64_bits) = self.long_slice(&mut group, long);
        let reading = group.availability().reading();
        Ok(ThreadChecks { checks: [alone, switched, long], reading, keeps_64_bits })
    }

    /// Returns a group for this thread, which is restricted to the processor.
    fn group(&self, machine: &Machine, event: &str) -> Result<ThreadGroup, halprof::Error> {
        let builder = Builder::new().event(event)?.user().pin(self.processor).require(Grade::Virtualized);
        // Without RDPMC in user mode, this test is what decides whether the library may count.
        let builder = builder.allow_unverified();
        let builder = if self.flags & flags::FORCE == 0 { builder } else { builder.force() };
        builder.build_for_thread_on(machine)
    }

    /// Counts the work.
    fn count_thread(&self, group: &mut ThreadGroup) -> Result<Measured, Error> {
        least_difference(group, |times| self.execute(&[work(times * ITERATIONS)]), |_| true)
    }

    /// Counts the work while another thread competes for the processor. A pause before each part of the work lets it
    /// run, so that there are context switches however long Windows lets a thread run.
    fn count_switched_thread(&self, group: &mut ThreadGroup) -> Result<Measured, Error> {
        let _competitor = match self.system.compete(self.processor) {
            Ok(competitor) => competitor,
            Err(cause) => return Ok(Measured::NotTested(format!("no other thread can run on the CPU: {cause}"))),
        };
        let part = |_| {
            self.system.pause();
            self.execute(&[work(ITERATIONS)])
        };
        let is_switched = |counts: &Counts| counts.context_switches().is_some_and(|switches| switches > 0);
        least_difference(group, |times| (0..times).try_for_each(part), is_switched)
    }

    /// Tests what Windows keeps of a long slice. Returns whether it is known to keep more than 32 bits.
    fn long_slice(&self, group: &mut ThreadGroup, check: Check) -> (Check, bool) {
        // Otherwise every thread that is ready ends the slice.
        let _priority = match self.system.raise_priority() {
            Ok(priority) => priority,
            Err(cause) => {
                return (check.untested(format!("the priority of the thread cannot be raised: {cause}")), false);
            }
        };
        // ReadThreadProfilingData computes what the running slice counted. Elsewhere only the switch that ends a slice
        // shows what Windows keeps of it.
        let ends_slice = group.availability().reading() == Some(ThreadReading::Memory);
        let mut last = Measured::NotTested(String::new());
        for _ in 0..LONG_ATTEMPTS {
            let counts = region(group, || {
                self.system.pause();
                self.execute(&[work(LONG / INSTRUCTIONS)])?;
                if ends_slice {
                    self.system.pause();
                }
                Ok(())
            });
            let counts = match counts {
                Ok(counts) => counts,
                Err(error) => return (check.failed(error.in_one_line()), false),
            };
            let switches = counts.context_switches().unwrap_or_default();
            let count = match usable(&counts) {
                Ok(count) => count,
                Err(why) => {
                    last = why;
                    continue;
                }
            };
            let check_count = |check: Check| check.with(Ok(real(count)));
            match Kept::of(count, switches) {
                // Without the switches of the pauses, the count may be the driver's.
                _ if switches < 1 + u32::from(ends_slice) => last = Measured::NotTested(NO_SWITCH.to_owned()),
                Kept::EveryBit => return (check_count(check), true),
                Kept::LowBits => return (Check { verdict: Verdict::Passed, ..check_count(check) }, false),
                Kept::Nothing => return (check_count(check), false),
                Kept::Unknown => {
                    let switches = counted(switches.into(), "time");
                    let reason = format!("the thread was switched out {switches}, and no slice was certainly long");
                    last = Measured::NotTested(reason);
                }
            }
        }
        (check.with_measured(Ok(last)), false)
    }
}

impl Check {
    fn with_measured(self, measured: Result<Measured, Error>) -> Self {
        match measured {
            Ok(Measured::Count(count)) => self.with(Ok(real(count))),
            Ok(Measured::Disturbed(reason)) => self.failed(reason),
            Ok(Measured::NotTested(reason)) => self.untested(reason),
            Err(error) => self.with(Err(error)),
        }
    }
}

fn work(iterations: u64) -> KnownWork {
    KnownWork { function: Function::First, iterations }
}

/// Returns the counts of a region of the thread.
fn region(group: &mut ThreadGroup, work: impl FnOnce() -> Result<(), Error>) -> Result<Counts, Error> {
    group.begin()?;
    if let Err(error) = work() {
        group.cancel();
        return Err(error);
    }
    Ok(group.end()?)
}

/// Returns the number of instructions of a region, or why they cannot be compared with known work.
fn usable(counts: &Counts) -> Result<u64, Measured> {
    match &counts.quality {
        // The comparison with the work tells whether bits are missing.
        Quality::Virtualized { .. } | Quality::Disturbed(Disturbance::MayHaveTruncated { .. }) => {
            Ok(counts.iter().map(|(_, count)| count).sum())
        }
        // Too much else runs on the CPU, which says nothing about its counts.
        Quality::Disturbed(why @ Disturbance::SwitchedWhileRead) => Err(Measured::NotTested(why.to_string())),
        other => Err(Measured::Disturbed(other.to_string())),
    }
}

/// Counts work that is done once and twice, in several rounds. Returns the difference of the smallest counts of the
/// wanted regions.
fn least_difference(
    group: &mut ThreadGroup,
    work: impl Fn(u64) -> Result<(), Error>,
    is_wanted: impl Fn(&Counts) -> bool,
) -> Result<Measured, Error> {
    let (mut least, mut disturbed) = ([None; 2], None);
    for _ in 0..ROUNDS {
        for (least, times) in least.iter_mut().zip(1..) {
            let counts = region(group, || work(times))?;
            match usable(&counts) {
                Ok(count) if is_wanted(&counts) => *least = Some(least.map_or(count, |least: u64| least.min(count))),
                Ok(_) => {}
                Err(why) => disturbed = Some(why),
            }
        }
    }
    Ok(match (least, disturbed) {
        ([Some(once), Some(twice)], _) => Measured::Count(twice.saturating_sub(once)),
        (_, Some(why)) => why,
        (_, None) => Measured::NotTested(NO_SWITCH.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_slice_tells_how_many_bits_windows_keeps() {
        for (measured, switches, wanted) in [
            (LONG, 1, Kept::EveryBit),
            (LONG + 10_000_000, 2, Kept::EveryBit),
            (LONG, 3, Kept::Unknown),
            (LONG - MODULUS, 1, Kept::LowBits),
            (LONG - 2 * MODULUS + 1_000, 9, Kept::LowBits),
            (LONG + MODULUS, 1, Kept::Nothing),
            (LONG / 100 * 99, 1, Kept::Nothing),
            (0, 1, Kept::Nothing),
        ] {
            assert_eq!(Kept::of(measured, switches), wanted, "{measured} {switches}");
        }
        for slices in 1..=2 {
            assert!(LONG / slices > MODULUS && !(LONG / slices).is_multiple_of(MODULUS));
        }
    }
}
