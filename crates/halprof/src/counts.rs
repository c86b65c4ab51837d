//! The counts of a region.

use std::sync::Arc;
use std::time::Duration;

use crate::quality::Quality;

/// What the events of a group counted in a region, and how far it can be trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counts {
    /// Time from the begin to the end of the region.
    ///
    /// For a [`CpuGroup`](crate::CpuGroup), the sum over its CPUs, without the time in which the machine slept.
    pub time_enabled: Duration,
    /// The part of `time_enabled` in which the events had counters: less than it only if events took turns. The counts
    /// are then scaled by `time_enabled / time_running` of their event; this is the smallest of all events.
    pub time_running: Duration,
    /// How far the counts can be trusted.
    pub quality: Quality,
    pub(crate) names: Arc<[String]>,
    /// In the order of `names`.
    pub(crate) values: Vec<u64>,
    pub(crate) context_switches: Option<u32>,
    pub(crate) cycle_time: Option<u64>,
}

impl Counts {
    /// Returns the count of an event by the name that the builder got; `None` if the group has no such event. Of an
    /// event that the builder got twice, this is the first.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<u64> {
        self.iter().find(|(other, _)| *other == name).map(|(_, count)| count)
    }

    /// Returns the names and counts of the events, in the order of the builder.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.names.iter().map(String::as_str).zip(self.values.iter().copied())
    }

    /// Returns how often Windows switched the thread out during the region, measurement included; `None` if it was not
    /// counted.
    #[must_use]
    pub fn context_switches(&self) -> Option<u32> {
        self.context_switches
    }

    /// Returns the time in which the thread ran, measurement included, in cycles of the time-stamp counter and without
    /// interrupts; `None` if it was not counted.
    #[must_use]
    pub fn cycle_time(&self) -> Option<u64> {
        self.cycle_time
    }

    /// Adds the counts of the next part of the same region.
    pub(crate) fn append(&mut self, next: Self) {
        let add = |one: &mut u64, other: u64| *one = one.saturating_add(other);
        self.values.iter_mut().zip(next.values).for_each(|(sum, count)| add(sum, count));
        self.time_enabled += next.time_enabled;
        self.time_running += next.time_running;
        self.context_switches = self.context_switches.zip(next.context_switches).map(|(a, b)| a.saturating_add(b));
        self.cycle_time = self.cycle_time.zip(next.cycle_time).map(|(a, b)| a.saturating_add(b));
        // Both parts are of one group, so an exact one has the grade of the group.
        if self.quality.is_exact() {
            self.quality = next.quality;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quality::Disturbance;

    fn counts(quality: Quality, values: [u64; 3]) -> Counts {
        let second = Duration::from_secs(1);
        Counts {
            time_enabled: second,
            time_running: second,
            quality,
            names: ["instructions", "cycles", "cycles"].map(str::to_owned).into(),
            values: values.to_vec(),
            context_switches: Some(2),
            cycle_time: None,
        }
    }

    #[test]
    fn counts_are_found_by_name_and_iterate_in_order() {
        let counts = counts(Quality::Undisturbed, [7, 9, 8]);
        assert_eq!((counts.get("cycles"), counts.get("Cycles")), (Some(9), None));
        assert_eq!(counts.iter().collect::<Vec<_>>(), [("instructions", 7), ("cycles", 9), ("cycles", 8)]);
    }

    #[test]
    fn parts_add_up_and_one_disturbed_part_disturbs_all() {
        let disturbed = || Quality::Disturbed(Disturbance::NotAccounted);
        let qualities = [
            (Quality::Undisturbed, Quality::Undisturbed, Quality::Undisturbed),
            (Quality::Undisturbed, disturbed(), disturbed()),
            (disturbed(), Quality::Undisturbed, disturbed()),
        ];
        for (first, second, wanted) in qualities {
            let mut sum = counts(first, [7, 9, u64::MAX]);
            sum.append(counts(second, [1, 2, 3]));
            assert_eq!((sum.quality, sum.values), (wanted, vec![8, 11, u64::MAX]));
            assert_eq!(
                (sum.time_enabled, sum.context_switches, sum.cycle_time),
                (Duration::from_secs(2), Some(4), None)
            );
        }
    }
}
