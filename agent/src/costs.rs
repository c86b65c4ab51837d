//! What counting costs each CPU, and the lengths of intervals that stay within a budget.
//!
//! The numbers are upper bounds of the accesses of performance registers: RDMSR, WRMSR and RDPMC. A test compares them
//! with the accesses that the engine makes for an agent on each processor of the test bench.

use std::time::Duration;

use agent::config::Budget;
use protocol::{InfoReply, ROUND};
use thiserror::Error as ThisError;

use user_error::UserError;
use user_error::exit::Exit;

/// Accesses that an operation makes beside those for its counters: global registers, extra registers, the LVT entry.
const FIXED: u32 = 12;

/// Accesses for each counter that is compared and read.
const READ: u32 = 2;

/// Accesses for each counter that is compared, stopped, read, and programmed again.
const SWITCH: u32 = 7;

/// Accesses with which a start tries an event under a guard: of the event select, and of an extra register or the
/// second counter of a pair.
const TRY: u32 = 8;

/// Accesses with which a start also tries a counter that samples.
const TRY_SAMPLED: u32 = 4;

/// Accesses with which a start under a hypervisor tries whether a counter counts, and beside them: two runs of a loop,
/// each with a counter loaded, selected, read twice and deselected.
const TRY_COUNTER: (u32, u32) = (10, 12);

/// Accesses of an interrupt for one counter.
pub const INTERRUPT: u32 = 12;

/// Interrupts for each sample that is due, at most. When the rate of an event rises, the first samples come too early.
const BURST: u32 = 2;

/// Samples per second for which at least to plan: about 20 samples come before a short interval has followed.
const MIN_FREQUENCY: u32 = 50;

/// Ticks per second of the driver on a CPU while a counter samples.
const TICKS: u32 = 100;

/// Accesses of a tick for each counter, which is compared, and beside them.
const TICK: (u32, u32) = (1, 8);

/// Time between two readings that the driver makes by itself, to keep counters from wrapping unnoticed.
pub const UPKEEP: Duration = Duration::from_secs(10);

/// The shortest time between two starts of the session.
pub const PAUSE: Duration = Duration::from_secs(2);

/// The budget does not suffice even for the slowest plan.
#[derive(Debug, ThisError, PartialEq, Eq)]
#[error("the budget of {given} {what} a second is too small: the slowest plan takes {needed}")]
pub struct BudgetTooSmall {
    what: &'static str,
    given: u32,
    needed: u32,
}

impl UserError for BudgetTooSmall {
    fn exit(&self) -> Exit {
        Exit::Usage
    }

    fn remedy(&self) -> Option<String> {
        Some("a larger [budget], a longer interval, or in [profiles] a lower frequency or event = \"Time\"".to_owned())
    }
}

/// How samples are taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sampling {
    /// Samples per second on a CPU.
    pub frequency: u32,
    /// Whether a counter overflows for each sample. If not, a timer of the kernel expires.
    pub by_counter: bool,
}

/// Accesses of registers, and interrupts and timer expiries, on a CPU in a second, or in all.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Cost {
    /// Accesses.
    pub accesses: f64,
    /// Interrupts and timer expiries.
    pub interrupts: f64,
}

/// What counting so many events costs a CPU that has so many counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Costs {
    counters: u32,
    events: u32,
    /// Whether a start tries whether its counters count.
    tries: bool,
}

impl Costs {
    /// Returns the costs of a number of events on the processors of a driver.
    pub fn of(info: &InfoReply, events: usize) -> Self {
        Self { counters: info.counters, events: u32::try_from(events).unwrap_or(u32::MAX), tries: info.hypervisor != 0 }
    }

    /// Returns the most accesses of a reading.
    pub const fn reading(self) -> u32 {
        READ * self.counters + FIXED
    }

    /// Returns the most accesses of the begin of a round, or of a stop.
    pub const fn switch(self) -> u32 {
        SWITCH * self.counters + FIXED
    }

    /// Returns the most accesses of a start, which first tries each event and, under a hypervisor, each counter.
    pub const fn start(self) -> u32 {
        let counters = if self.tries { TRY_COUNTER.0.saturating_mul(self.counters) + TRY_COUNTER.1 } else { 0 };
        self.switch().saturating_add(TRY.saturating_mul(self.events)).saturating_add(counters)
    }

    /// Returns the most accesses of a tick.
    pub const fn tick(self) -> u32 {
        TICK.0 * self.counters + TICK.1
    }

    /// Returns the most that samples cost in a second.
    pub fn sampling(self, sampling: Sampling) -> Cost {
        let overflows = f64::from(BURST) * f64::from(sampling.frequency.max(MIN_FREQUENCY));
        self.profile(sampling, overflows, Duration::from_secs(1))
    }

    /// Returns the most that a profile costs, with its start and its stop, in a time in which the counter overflows so
    /// often. For a timer, the overflows do not count.
    pub fn profile(self, sampling: Sampling, overflows: f64, time: Duration) -> Cost {
        if !sampling.by_counter {
            return Cost { accesses: 0.0, interrupts: f64::from(sampling.frequency) * time.as_secs_f64() };
        }
        let ticks = f64::from(TICKS) * time.as_secs_f64();
        let begin_and_end = f64::from(self.start()) + f64::from(TRY_SAMPLED) + f64::from(self.switch());
        let accesses = f64::from(INTERRUPT) * overflows + f64::from(self.tick()) * ticks + begin_and_end;
        Cost { accesses, interrupts: overflows + ticks }
    }

    /// Returns the shortest round that keeps within the budget, if the counters are read in this interval and samples
    /// are taken, too.
    ///
    /// # Errors
    /// Even the longest round would exceed the budget.
    pub fn round(self, budget: Budget, interval: Duration, sampling: Sampling) -> Result<Duration, BudgetTooSmall> {
        let samples = self.sampling(sampling);
        let accesses = f64::from(self.reading()) * (1.0 / interval.as_secs_f64() + 1.0 / UPKEEP.as_secs_f64())
            + (f64::from(self.start()) + f64::from(self.switch())) / PAUSE.as_secs_f64()
            + samples.accesses;
        let [shortest, longest] =
            [ROUND.start(), ROUND.end()].map(|round| Duration::from_nanos(100 * u64::from(*round)));
        let limits = [
            ("register accesses", budget.register_accesses_per_second, accesses, f64::from(self.switch())),
            ("interrupts", budget.interrupts_per_second, samples.interrupts, 1.0),
        ];
        let mut round = shortest.as_secs_f64();
        for (what, given, others, of_round) in limits {
            let left = f64::from(given) - others;
            if left * longest.as_secs_f64() < of_round {
                return Err(BudgetTooSmall { what, given, needed: whole(others + of_round / longest.as_secs_f64()) });
            }
            round = round.max(of_round / left);
        }
        // The timers of the kernel have whole milliseconds.
        Ok(Duration::from_millis(u64::from(whole(round * 1_000.0))).min(longest))
    }
}

/// Returns the next whole number.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast saturates, and costs are positive")]
fn whole(number: f64) -> u32 {
    number.ceil() as u32
}

#[cfg(test)]
mod tests {
    use zerocopy::FromZeros as _;

    use super::*;

    const fn budget(register_accesses_per_second: u32, interrupts_per_second: u32) -> Budget {
        Budget { register_accesses_per_second, interrupts_per_second }
    }

    fn info() -> InfoReply {
        InfoReply { counters: 8, ..InfoReply::new_zeroed() }
    }

    const fn samples(frequency: u32, by_counter: bool) -> Sampling {
        Sampling { frequency, by_counter }
    }

    #[test]
    fn the_round_is_as_short_as_the_budget_allows() {
        let ten = Duration::from_secs(10);
        let costs = Costs::of(&info(), 0); // 28 for a reading, 68 for a switch, 16 for a tick
        for (budget, sampling, expected) in [
            (budget(1_000_000, 1_000), samples(0, false), 4),
            (budget(1_000_000, 100), samples(0, false), 10),
            (budget(1_000_000, 100), samples(50, false), 20),
            // 1,000 - 2 * 2.8 - 68 = 926.4 accesses are left for rounds.
            (budget(1_000, 1_000), samples(0, false), 74),
            (budget(144, 100), samples(0, false), 966),
            // Samples by a counter: twice 50 interrupts, and 100 ticks.
            (budget(1_000_000, 250), samples(50, true), 20),
            // 4,000 - 2 * 2.8 - 68 - 100 * 12 - 100 * 16 - 2 * 68 - 4 = 986.4 accesses are left.
            (budget(4_000, 10_000), samples(50, true), 69),
        ] {
            let round = costs.round(budget, ten, sampling).unwrap();
            assert_eq!(round.as_millis(), expected, "{budget:?}, {sampling:?}");
        }
    }

    #[test]
    fn a_budget_that_is_too_small_is_refused_with_what_would_suffice() {
        let ten = Duration::from_secs(10);
        for (budget, sampling) in [
            (budget(100, 100), samples(0, false)),
            (budget(1_000, 49), samples(49, false)),
            (budget(2_500, 1_000), samples(49, true)),
            (budget(10_000, 100), samples(49, true)),
        ] {
            let refused = Costs::of(&info(), 20).round(budget, ten, sampling).unwrap_err();
            let enough = match refused.what {
                "interrupts" => Budget { interrupts_per_second: refused.needed, ..budget },
                _ => Budget { register_accesses_per_second: refused.needed, ..budget },
            };
            assert!(Costs::of(&info(), 20).round(enough, ten, sampling).is_ok(), "{refused:?}");
        }
    }

    #[test]
    fn ticks_are_those_of_the_driver() {
        assert_eq!(TICKS, engine::TICKS_PER_SECOND);
    }
}
