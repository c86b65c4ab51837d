//! The metric that `stat` prints beside a count: a share of another count, a frequency, or a rate.

use halprof::event::role::{self, Role};
use serde::Serialize;

use crate::EventCount;
use terminal::format::{real, scaled, seconds};

/// A metric derived from a count.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct Metric {
    /// Value of the metric.
    pub value: f64,
    /// Unit of the value.
    pub unit: String,
}

impl Metric {
    /// Returns whether it is a rate, which every event has.
    #[must_use]
    pub fn is_rate(&self) -> bool {
        self.unit.ends_with("/sec")
    }
}

/// Returns the role of the divisor for an event of this role, the unit, and whether the share is in percent.
fn share(role: Role) -> Option<(Role, &'static str, bool)> {
    match role {
        Role::Instructions => Some((Role::Cycles, "insn per cycle", false)),
        Role::BranchMisses => Some((Role::Branches, "% of all branches", true)),
        Role::LastLevelMisses => Some((Role::LastLevelReferences, "% of all LLC references", true)),
        Role::DataMisses => Some((Role::DataAccesses, "% of all dcache accesses", true)),
        Role::CodeMisses => Some((Role::CodeFetches, "% of all icache fetches", true)),
        Role::Cycles | Role::Branches | Role::LastLevelReferences | Role::DataAccesses | Role::CodeFetches => None,
    }
}

/// Returns the metric of an event; `all` are the events that were counted with it.
#[must_use]
pub fn of(event: &EventCount, all: &[EventCount]) -> Option<Metric> {
    if event.times.is_uncounted() {
        return None;
    }
    let role = role::of(&event.source);
    role.and_then(|role| share_of(event, role, all))
        .or_else(|| role.filter(|role| *role == Role::Cycles).and_then(|_| frequency(event)))
        .or_else(|| rate(event))
}

fn share_of(event: &EventCount, role: Role, all: &[EventCount]) -> Option<Metric> {
    let (whole, unit, percent) = share(role)?;
    // Only counts in the same modes and of the same core type are comparable. Of several, the one of the same group was
    // counted at the same times.
    let key = |one: &EventCount| (one.mode_bits, one.event.core_type);
    let all = all.iter().filter(|other| role::of(&other.source) == Some(whole) && key(other) == key(event));
    let whole = all.min_by_key(|other| other.group != event.group)?;
    let factor = if percent { 100.0 } else { 1.0 };
    (whole.scaled > 0)
        .then(|| Metric { value: factor * real(event.scaled) / real(whole.scaled), unit: unit.to_owned() })
}

/// Returns cycles per second of a processor, averaged over the processors.
fn frequency(event: &EventCount) -> Option<Metric> {
    let enabled: f64 = event.processors.iter().map(|one| seconds(one.times.enabled)).sum();
    (enabled > 0.0).then(|| Metric { value: real(event.scaled) / enabled / 1e9, unit: "GHz per processor".to_owned() })
}

fn rate(event: &EventCount) -> Option<Metric> {
    let (value, letter) = scaled(event.per_second?);
    Some(Metric { value, unit: format!("{letter}/sec") })
}

#[cfg(test)]
mod tests {
    use protocol::{CountRecord, Event};

    use super::*;
    use crate::by_event;
    use fake_system::{count, named};

    const SECOND: u64 = 10_000_000;

    fn metrics(records: &[CountRecord]) -> Vec<(String, String)> {
        let events = by_event(records, named);
        let metric = |event| {
            of(event, &events).map_or_else(String::new, |metric| format!("{:.3} {}", metric.value, metric.unit))
        };
        events.iter().map(|event| (event.name.clone(), metric(event))).collect()
    }

    #[test]
    fn instructions_are_divided_by_cycles_and_mispredictions_by_branches() {
        let records = [
            count(2, 0, 1_400_000, SECOND),
            count(0x13, 0, 1_000_000, SECOND),
            count(6, 0, 5_000_000, SECOND),
            count(11, 0, 50_000, SECOND),
        ];
        let texts: Vec<String> = metrics(&records).into_iter().map(|(_, text)| text).collect();
        assert_eq!(
            texts,
            ["1.400 insn per cycle", "0.001 GHz per processor", "5.000 M/sec", "1.000 % of all branches"]
        );
    }

    #[test]
    fn instructions_are_divided_by_the_cycles_of_their_core_type() {
        let on = |source, core_type, number| CountRecord {
            event: Event { core_type, ..count(source, 0, number, SECOND).event },
            ..count(source, 0, number, SECOND)
        };
        let records = [on(2, 0x40, 400), on(2, 0x20, 100), on(0x13, 0x40, 200), on(0x13, 0x20, 200)];
        let texts: Vec<String> = metrics(&records).into_iter().map(|(_, text)| text).take(2).collect();
        assert_eq!(texts, ["2.000 insn per cycle", "0.500 insn per cycle"]);
    }

    #[test]
    fn a_share_without_a_divisor_is_replaced_by_a_rate() {
        assert_eq!(metrics(&[count(2, 0, 2500, SECOND)])[0].1, "2.500 K/sec");
        assert_eq!(metrics(&[count(2, 0, 2500, SECOND), count(0x13, 0, 0, SECOND)])[0].1, "2.500 K/sec");
    }

    #[test]
    fn counts_in_different_modes_are_not_compared() {
        let user = CountRecord { modes: 1, ..count(2, 0, 100, SECOND) };
        assert_eq!(metrics(&[user, count(0x13, 0, 50, SECOND)])[0].1, "100.000 /sec");
        let cycles = CountRecord { modes: 1, ..count(0x13, 0, 50, SECOND) };
        assert_eq!(metrics(&[user, cycles])[0].1, "2.000 insn per cycle");
    }

    #[test]
    fn the_frequency_is_the_average_over_the_processors() {
        let records = [count(0x13, 0, 3_000_000_000, SECOND), count(0x13, 1, 1_000_000_000, SECOND)];
        assert_eq!(metrics(&records)[0].1, "2.000 GHz per processor");
    }

    #[test]
    fn no_metric_is_shown_without_elapsed_time() {
        assert_eq!(
            metrics(&[count(0x13, 0, 5, 0), count(6, 0, 5, 0)])
                .iter()
                .map(|(_, text)| text.as_str())
                .collect::<Vec<_>>(),
            ["", ""]
        );
    }
}
