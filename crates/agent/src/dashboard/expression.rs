//! Expressions of PromQL. Names of metrics come from [`Family`], so that none can be misspelled.

use crate::family::Family;

/// The labels that Prometheus adds to every sample of a target.
pub const TARGET: [&str; 2] = ["job", "instance"];

/// What filters a panel by the targets that the user selected.
const SELECTED_TARGETS: [&str; 2] = [r#"job=~"$job""#, r#"instance=~"$instance""#];

/// What filters a panel by the events that the user selected.
pub const SELECTED_EVENTS: &str = r#"event=~"$event""#;

/// Where an expression is evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueryPlace {
    /// In Grafana, for the targets that the user selected, over a range that Grafana chooses.
    Panel,
    /// In Prometheus, for every target, over this range.
    Rule(&'static str),
}

impl QueryPlace {
    /// Returns the samples of a family for which the matchers hold.
    pub fn select(self, family: Family, matchers: &[&str]) -> String {
        let targets: &[&str] = if self == Self::Panel { &SELECTED_TARGETS } else { &[] };
        match [targets, matchers].concat().as_slice() {
            [] => family.promql(),
            matchers => format!("{}{{{}}}", family.promql(), matchers.join(", ")),
        }
    }

    /// Returns the growth per second of a family.
    pub fn rate(self, family: Family, matchers: &[&str]) -> String {
        self.over("rate", family, matchers)
    }

    /// Returns the growth of a family.
    pub fn increase(self, family: Family, matchers: &[&str]) -> String {
        self.over("increase", family, matchers)
    }

    /// Returns the growth of a family, for targets that were scraped at the beginning of the range as well.
    /// `VictoriaMetrics` takes a counter without an earlier sample for one that began at zero (if it is small), so that
    /// the first scrape of an agent would count all that occurred before.
    pub fn increase_of_known(self, family: Family, matchers: &[&str]) -> String {
        let growth = self.increase(family, matchers);
        format!("({growth} and on ({}) up offset {} == 1)", TARGET.join(", "), self.range())
    }

    /// Returns a function of the samples in the range.
    pub fn over(self, function: &str, family: Family, matchers: &[&str]) -> String {
        format!("{function}({}[{}])", self.select(family, matchers), self.range())
    }

    const fn range(self) -> &'static str {
        match self {
            Self::Panel => "$__rate_interval",
            Self::Rule(range) => range,
        }
    }

    /// Returns the share of the enabled time in which each event had a counter.
    pub fn running_share(self, matchers: &[&str]) -> String {
        let time = |family| sum_by(&["event"], &self.rate(family, matchers));
        format!("{} / {}", time(Family::EventRunning), time(Family::EventEnabled))
    }

    /// Returns the growth per second of a family that is summed over CPUs, as the mean of a CPU.
    pub fn rate_per_cpu(self, family: Family) -> String {
        format!("{} / {}", self.rate(family, &[]), self.select(Family::Cpus, &[]))
    }

    /// Returns the share of samples that were lost.
    pub fn lost_share(self, lost: Family, delivered: Family) -> String {
        let (lost, delivered) = (self.rate(lost, &[]), self.rate(delivered, &[]));
        format!("{lost} / ({delivered} + {lost})")
    }
}

/// Returns the sum for each target and set of these labels.
pub fn sum_by(labels: &[&str], expression: &str) -> String {
    format!("sum by ({}) ({expression})", [&TARGET, labels].concat().join(", "))
}
