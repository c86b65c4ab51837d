//! Totals of sampling since the driver was loaded.

use protocol::InfoReply;
use serde::Serialize;

use terminal::format::{grouped, seconds};

/// Totals of all sessions.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct Totals {
    /// Performance monitor interrupts served.
    interrupts: u64,
    /// Interrupts in which no counter of this driver had overflowed.
    spurious: u64,
    /// Samples delivered to clients.
    delivered: u64,
    /// Samples lost because a ring was full, or because the interrupt did not arrive before the counter stopped or a
    /// tick recovered it.
    lost: u64,
    /// Overflows dropped because the processor had spent its interrupt budget.
    throttled: u64,
    /// Samples that were not fetched before their session ended.
    discarded: u64,
    /// Number of times a processor had spent its budget.
    throttles: u64,
    /// Number of times the machine slept.
    sleeps: u64,
    /// Total time for which it slept.
    asleep_seconds: f64,
}

impl From<&InfoReply> for Totals {
    fn from(reply: &InfoReply) -> Self {
        let InfoReply {
            interrupts, spurious, delivered, lost, throttled, discarded, throttles, sleeps, asleep, ..
        } = *reply;
        let asleep_seconds = seconds(asleep);
        Self { interrupts, spurious, delivered, lost, throttled, discarded, throttles, sleeps, asleep_seconds }
    }
}

impl Totals {
    /// Returns the totals as properties of the driver. Zeros are omitted.
    #[must_use]
    pub fn rows(&self) -> Vec<(&'static str, String)> {
        let interrupts = [(self.interrupts, "served"), (self.spurious, "of them spurious")];
        let samples = [
            (self.delivered, "fetched"),
            (self.lost, "lost"),
            (self.throttled, "throttled"),
            (self.discarded, "never fetched"),
        ];
        let throttles = [(self.throttles, "times a processor had spent its budget")];
        let slept = match self.sleeps {
            0 => String::new(),
            1 => format!("once, for {:.3} s", self.asleep_seconds),
            times => format!("{} times, for {:.3} s in all", grouped(times), self.asleep_seconds),
        };
        let rows = [
            ("Interrupts", list(&interrupts)),
            ("Samples", list(&samples)),
            ("Throttling", list(&throttles)),
            ("Slept", slept),
        ];
        rows.into_iter().filter(|(_, text)| !text.is_empty()).collect()
    }
}

fn list(numbers: &[(u64, &str)]) -> String {
    let happened = numbers.iter().filter(|(number, _)| *number > 0);
    happened.map(|(number, what)| format!("{} {what}", grouped(*number))).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use zerocopy::FromZeros;

    use super::*;

    #[test]
    fn totals_omit_zeros() {
        let none = InfoReply::new_zeroed();
        assert!(Totals::from(&none).rows().is_empty());
        let some = InfoReply { interrupts: 1_234, delivered: 1_200, ..none };
        let row = |name, text: &str| (name, text.to_owned());
        assert_eq!(Totals::from(&some).rows(), [row("Interrupts", "1,234 served"), row("Samples", "1,200 fetched")]);
        let all = InfoReply { spurious: 1, lost: 2, throttled: 3, discarded: 4, throttles: 5, ..some };
        let all = InfoReply { sleeps: 2, asleep: 15_000_000, ..all };
        assert_eq!(
            Totals::from(&all).rows(),
            [
                row("Interrupts", "1,234 served, 1 of them spurious"),
                row("Samples", "1,200 fetched, 2 lost, 3 throttled, 4 never fetched"),
                row("Throttling", "5 times a processor had spent its budget"),
                row("Slept", "2 times, for 1.500 s in all"),
            ]
        );
    }
}
