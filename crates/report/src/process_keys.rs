//! Which process had an ID at which time.

use std::ops::RangeInclusive;

use recording::Process;
use rustc_hash::FxHashMap;

/// A process. Windows gives the ID of a process that has ended to another one, so the ID alone does not identify it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcessKey {
    /// Process ID, [`KERNEL`](recording::KERNEL) or [`UNKNOWN`](protocol::UNKNOWN).
    pub id: u32,
    /// Time of its creation in units of the recording's clock; 0 if it is unknown.
    pub created: u64,
}

impl ProcessKey {
    /// Returns the process of a block.
    #[must_use]
    pub fn of(process: &Process) -> Self {
        Self { id: process.id, created: process.created.unwrap_or_default() }
    }
}

/// A process with an unknown time of creation.
impl From<u32> for ProcessKey {
    fn from(id: u32) -> Self {
        Self { id, created: 0 }
    }
}

/// The times at which the processes of each ID were created.
#[derive(Debug, Clone, Default)]
pub(crate) struct Creations {
    /// In ascending order.
    by_id: FxHashMap<u32, Vec<u64>>,
}

impl Creations {
    /// Adds a process, unless it is known.
    pub fn add(&mut self, ProcessKey { id, created }: ProcessKey) {
        let times = self.by_id.entry(id).or_default();
        if let Err(place) = times.binary_search(&created) {
            times.insert(place, created);
        }
    }

    /// Forgets the other processes with the ID of `newest`, and returns them.
    pub fn replace(&mut self, newest: ProcessKey) -> impl Iterator<Item = ProcessKey> {
        let others = self.by_id.insert(newest.id, vec![newest.created]).unwrap_or_default();
        let others = others.into_iter().map(move |created| ProcessKey { created, ..newest });
        others.filter(move |other| *other != newest)
    }

    /// Returns the process that had an ID at a time: the last that was created before. If none was, the first: its
    /// time of creation is not exact.
    pub fn at(&self, id: u32, time: u64) -> ProcessKey {
        self.by_id.get(&id).map_or(id.into(), |created| at(id, created, time))
    }

    /// Returns the process that had an ID during `times`, if it was only one.
    pub fn during(&self, id: u32, times: &RangeInclusive<u64>) -> Option<ProcessKey> {
        let Some(created) = self.by_id.get(&id) else { return Some(id.into()) };
        let [first, last] = [*times.start(), *times.end()].map(|time| at(id, created, time));
        (first == last).then_some(first)
    }

    /// Returns all processes that had an ID, the oldest first.
    pub fn of_id(&self, id: u32) -> impl Iterator<Item = ProcessKey> {
        self.by_id.get(&id).into_iter().flatten().map(move |created| ProcessKey { id, created: *created })
    }
}

/// Returns the last process that was created before `time`, or the first one.
fn at(id: u32, created: &[u64], time: u64) -> ProcessKey {
    let before = created.partition_point(|created| *created <= time);
    ProcessKey { id, created: created.get(before.saturating_sub(1)).copied().unwrap_or_default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_belongs_to_the_process_that_was_created_last() {
        let mut creations = Creations::default();
        for created in [500, 100, 300, 100] {
            creations.add(ProcessKey { id: 8, created });
        }
        creations.add(12.into());
        let at = |id, time| creations.at(id, time).created;
        assert_eq!(
            [0, 99, 100, 299, 300, 499, 500, u64::MAX].map(|time| at(8, time)),
            [100, 100, 100, 100, 300, 300, 500, 500]
        );
        assert_eq!([at(12, 0), at(12, 7), at(16, 7)], [0; 3]);
        let during = |times| creations.during(8, &times).map(|process| process.created);
        assert_eq!([during(0..=299), during(299..=300), during(300..=499)], [Some(100), None, Some(300)]);
        assert!(creations.of_id(8).map(|process| process.created).eq([100, 300, 500]));
    }
}
