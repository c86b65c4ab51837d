//! What counting costs each CPU, and the lengths of intervals that stay within a budget.
//!
//! The numbers are upper bounds of the accesses of performance registers: RDMSR, WRMSR and RDPMC. A test compares them
//! with the accesses that the engine makes for an agent on a Haswell and on a Zen 4.

use std::time::Duration;

use agent::config::Budget;
use protocol::ROUND;
use thiserror::Error as ThisError;

use crate::error::UserError;
use crate::exit::Exit;

/// Accesses that an operation makes beside those for its counters: global registers, extra registers, the LVT entry.
const FIXED: u32 = 12;

/// Accesses for each counter that is compared and read.
const READ: u32 = 3;

/// Accesses for each counter that is compared, stopped, read, and programmed again.
const SWITCH: u32 = 7;

/// Accesses of an interrupt for one counter.
pub const INTERRUPT: u32 = 12;

/// Time between two readings that the driver makes by itself, to keep counters from wrapping unnoticed.
const UPKEEP: Duration = Duration::from_secs(10);

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
        Some("a larger [budget], a longer interval in [counting], or a lower frequency in [profiles]".to_owned())
    }
}

/// What counting costs a CPU that has so many counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Costs {
    counters: u32,
}

impl Costs {
    /// Returns the costs with a number of counters, including fixed ones.
    pub const fn of(counters: u32) -> Self {
        Self { counters }
    }

    /// Returns the most accesses of a reading.
    pub const fn reading(self) -> u32 {
        READ * self.counters + FIXED
    }

    /// Returns the most accesses of the begin of a round, of a start or of a stop.
    pub const fn switch(self) -> u32 {
        SWITCH * self.counters + FIXED
    }

    /// Returns the shortest round that keeps within the budget, if the counters are read in this interval and samples
    /// are taken at this frequency.
    ///
    /// # Errors
    /// Even the longest round would exceed the budget.
    pub fn round(self, budget: Budget, interval: Duration, frequency: u32) -> Result<Duration, BudgetTooSmall> {
        let accesses = f64::from(self.reading()) * (1.0 / interval.as_secs_f64() + 1.0 / UPKEEP.as_secs_f64())
            + 2.0 * f64::from(self.switch()) / PAUSE.as_secs_f64()
            + f64::from(INTERRUPT * frequency);
        let [shortest, longest] =
            [ROUND.start(), ROUND.end()].map(|round| Duration::from_nanos(100 * u64::from(*round)));
        let limits = [
            ("register accesses", budget.register_accesses_per_second, accesses, f64::from(self.switch())),
            ("interrupts", budget.interrupts_per_second, f64::from(frequency), 1.0),
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
    use super::*;

    const fn budget(register_accesses_per_second: u32, interrupts_per_second: u32) -> Budget {
        Budget { register_accesses_per_second, interrupts_per_second }
    }

    #[test]
    fn the_round_is_as_short_as_the_budget_allows() {
        let ten = Duration::from_secs(10);
        let costs = Costs::of(8); // 36 for a reading, 68 for a switch
        for (budget, frequency, expected) in [
            (budget(1_000_000, 1_000), 0, 4),
            (budget(1_000_000, 100), 0, 10),
            (budget(1_000_000, 100), 50, 20),
            // 1,000 - 2 * 3.6 - 68 = 924.8 accesses are left for rounds.
            (budget(1_000, 1_000), 0, 74),
            (budget(144, 100), 0, 989),
        ] {
            let round = costs.round(budget, ten, frequency).unwrap();
            assert_eq!(round.as_millis(), expected, "{budget:?}, {frequency}");
        }
    }

    #[test]
    fn a_budget_that_is_too_small_is_refused_with_what_would_suffice() {
        let ten = Duration::from_secs(10);
        for (budget, frequency) in [(budget(100, 100), 0), (budget(1_000, 49), 49), (budget(600, 100), 50)] {
            let refused = Costs::of(8).round(budget, ten, frequency).unwrap_err();
            let enough = match refused.what {
                "interrupts" => Budget { interrupts_per_second: refused.needed, ..budget },
                _ => Budget { register_accesses_per_second: refused.needed, ..budget },
            };
            assert!(Costs::of(8).round(enough, ten, frequency).is_ok(), "{refused:?}");
        }
    }
}
