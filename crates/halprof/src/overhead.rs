//! What measuring itself adds to the counts of a region.
//!
//! A region begins within the reading at its begin and ends within the one at its end, so it contains some instructions
//! of this crate. Calibration measures empty regions. The smallest count of each event is subtracted from later counts,
//! so that no work of a region is ever subtracted; the spread between the smallest and the largest remains as a bound
//! of the error.

/// Overhead of a region, from [`ThreadGroup::calibrate`](crate::ThreadGroup::calibrate).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overhead {
    events: Vec<EventOverhead>,
    regions: usize,
}

/// Overhead of one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventOverhead {
    name: String,
    smallest: u64,
    largest: u64,
}

impl EventOverhead {
    /// Returns the name of the event, as the builder got it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns what is subtracted from later counts: the smallest count of the empty regions.
    #[must_use]
    pub fn subtracted(&self) -> u64 {
        self.smallest
    }

    /// Returns how much the overhead of a region can differ from what is subtracted, as far as the empty regions showed
    /// it: a later empty region counts 0 plus or minus this.
    #[must_use]
    pub fn bound(&self) -> u64 {
        self.largest - self.smallest
    }
}

impl Overhead {
    /// Returns the overhead of the events, given the counts of empty regions, in the order of `names`. `None` without
    /// regions.
    pub(crate) fn of(names: &[String], regions: &[Vec<u64>]) -> Option<Self> {
        let of_event = |(index, name): (usize, &String)| {
            let counts = || regions.iter().filter_map(|counts| counts.get(index).copied());
            Some(EventOverhead { name: name.clone(), smallest: counts().min()?, largest: counts().max()? })
        };
        let events = names.iter().enumerate().map(of_event).collect::<Option<_>>()?;
        Some(Self { events, regions: regions.len() })
    }

    /// Returns the overhead of each event, in the order of the builder.
    pub fn events(&self) -> impl Iterator<Item = &EventOverhead> {
        self.events.iter()
    }

    /// Returns the overhead of an event.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&EventOverhead> {
        self.events.iter().find(|event| event.name == name)
    }

    /// Returns the number of empty regions that were measured.
    #[must_use]
    pub fn regions(&self) -> usize {
        self.regions
    }

    /// Subtracts the overhead from a count of the event with this index. Less than the overhead is no work.
    pub(crate) fn net(&self, index: usize, count: u64) -> u64 {
        count.saturating_sub(self.events.get(index).map_or(0, EventOverhead::subtracted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Vec<String> {
        ["instructions", "cycles"].map(str::to_owned).to_vec()
    }

    #[test]
    fn the_smallest_count_is_subtracted_and_the_spread_is_the_bound() {
        let overhead = Overhead::of(&names(), &[vec![40, 900], vec![42, 300], vec![40, 500]]).unwrap();
        let told: Vec<_> = overhead.events().map(|event| (event.name(), event.subtracted(), event.bound())).collect();
        assert_eq!(told, [("instructions", 40, 2), ("cycles", 300, 600)]);
        assert_eq!(overhead.get("cycles").map(EventOverhead::subtracted), Some(300));
        assert_eq!((overhead.get("branches"), overhead.regions()), (None, 3));
        assert_eq!(
            [(0, 41), (0, 39), (1, 1_000), (2, 7)].map(|(index, count)| overhead.net(index, count)),
            [1, 0, 700, 7]
        );
    }

    #[test]
    fn without_regions_there_is_no_overhead_to_tell() {
        assert_eq!(Overhead::of(&names(), &[]), None);
        assert_eq!(Overhead::of(&names(), &[vec![1]]), None, "an event without a count");
    }
}
