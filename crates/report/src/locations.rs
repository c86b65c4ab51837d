//! Locations of samples, and the samples at each of them.

use std::sync::Mutex;

use protocol::{AnySample, Mode};
use rayon::prelude::*;
use recording::StackId;

use crate::numbering::{Numbering, ThreadNumbering};
use crate::process_keys::ProcessKey;
use crate::sampled_sources::SampledSource;
use crate::sums::{Adder, SampleWeight, SharedSums, Sums};

/// Properties that distinguish locations in addition to source, process, mode and address. Each needs more memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub struct Detail {
    /// Distinguish threads.
    pub thread: bool,
    /// Distinguish processors.
    pub processor: bool,
    /// Distinguish call stacks, and keep them.
    pub stacks: bool,
    /// Distinguish on how many processors the process ran.
    pub parallelism: bool,
}

/// Location of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SampleLocation {
    /// Index of the event in [`RecordedSession::events`](recording::RecordedSession::events).
    pub event: u32,
    /// [Core type](SampledSource::core_type) of the processor.
    pub core_type: u32,
    /// The interrupted process; its ID is [`UNKNOWN`](protocol::UNKNOWN) if it is not known.
    pub process: ProcessKey,
    /// The thread, or [`UNKNOWN`](protocol::UNKNOWN); 0 unless selected by [`Detail`].
    pub thread: u32,
    /// The processor; 0 unless selected by [`Detail`].
    pub processor: u32,
    /// On how many processors the process ran; 0 if that is unknown, or unless selected by [`Detail`].
    pub parallelism: u32,
    /// Whether kernel mode was interrupted.
    pub kernel: bool,
    /// The instruction pointer; for a branch its source, not its target.
    pub ip: u64,
    /// The call stack; [`NOT_RECORDED`](StackId::NOT_RECORDED) unless selected by [`Detail`].
    pub stack: StackId,
}

impl SampleLocation {
    /// Returns the source on its core type.
    #[must_use]
    pub const fn sampled_source(&self) -> SampledSource {
        SampledSource { event: self.event, core_type: self.core_type }
    }

    pub(crate) fn of(sample: &AnySample, process: ProcessKey, detail: Detail) -> Self {
        Self {
            event: sample.event,
            core_type: 0,
            process,
            thread: if detail.thread { sample.thread } else { 0 },
            processor: if detail.processor { sample.processor } else { 0 },
            parallelism: 0,
            kernel: sample.mode == Mode::Kernel,
            ip: sample.ip,
            stack: StackId::NOT_RECORDED,
        }
    }
}

/// The samples at each location: 32 bytes for a location.
#[derive(Debug, Clone, Default)]
pub(crate) struct Locations {
    /// Locations without their addresses.
    groups: Numbering<SampleLocation>,
    sums: Sums<LocationKey>,
}

/// A location by the number of its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct LocationKey {
    ip: u64,
    group: u32,
    stack: StackId,
}

const _: () = assert!(size_of::<LocationKey>() == 16);

impl Locations {
    /// Returns the locations for threads that add to them.
    pub fn shared(&mut self) -> SharedLocations<'_> {
        SharedLocations { groups: Mutex::new(&mut self.groups), sums: self.sums.shared() }
    }

    /// Returns every location and its samples, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (SampleLocation, SampleWeight)> {
        self.sums.iter().filter_map(|(place, weight)| Some((self.location(place)?, weight)))
    }

    /// Returns the locations that `selects` accepts and their samples, in ascending order. Needs 16 bytes for each.
    pub fn sorted(
        &self,
        selects: impl Fn(&SampleLocation) -> bool,
    ) -> impl Iterator<Item = (SampleLocation, SampleWeight)> {
        let mut groups: Vec<(&SampleLocation, u32)> = self.groups.values().iter().zip(0..).collect();
        groups.sort_unstable();
        let mut ranks = vec![0; groups.len()];
        for ((_, group), rank) in groups.iter().zip(0_u32..) {
            if let Some(one) = ranks.get_mut(*group as usize) {
                *one = rank;
            }
        }
        let is_selected = |place: &LocationKey| self.location(place).is_some_and(|location| selects(&location));
        let selected = self.sums.iter().map(|(place, _)| place).filter(|place| is_selected(place));
        let mut places: Vec<(u32, u64, StackId)> =
            selected.filter_map(|place| Some((*ranks.get(place.group as usize)?, place.ip, place.stack))).collect();
        places.par_sort_unstable();
        places.into_iter().filter_map(move |(rank, ip, stack)| {
            let place = LocationKey { ip, group: groups.get(rank as usize)?.1, stack };
            Some((self.location(&place)?, self.sums.get(&place)?))
        })
    }

    /// Returns every location and its samples in parts, for several threads.
    pub fn parts(&self) -> impl IndexedParallelIterator<Item = impl Iterator<Item = (SampleLocation, SampleWeight)>> {
        let of = |(place, weight): (&LocationKey, &SampleWeight)| Some((self.location(place)?, *weight));
        self.sums.parts().par_iter().map(move |part| part.iter().filter_map(of))
    }

    fn location(&self, LocationKey { ip, group, stack }: &LocationKey) -> Option<SampleLocation> {
        Some(SampleLocation { ip: *ip, stack: *stack, ..*self.groups.get(*group)? })
    }
}

/// [`Locations`] to which several threads add.
#[derive(Debug)]
pub(crate) struct SharedLocations<'a> {
    groups: Mutex<&'a mut Numbering<SampleLocation>>,
    sums: SharedSums<'a, LocationKey>,
}

/// What one thread adds to [`SharedLocations`].
#[derive(Debug)]
pub(crate) struct LocationAdder<'a, 'b> {
    groups: ThreadNumbering<'a, 'b, SampleLocation>,
    sums: Adder<'a, 'b, LocationKey>,
}

impl<'a, 'b> LocationAdder<'a, 'b> {
    pub fn new(SharedLocations { groups, sums }: &'a SharedLocations<'b>) -> Self {
        Self { groups: ThreadNumbering::new(groups), sums: Adder::new(sums) }
    }

    /// Adds samples at a location.
    #[inline]
    pub fn add(&mut self, location: SampleLocation, weight: SampleWeight) {
        let group = self.group(location);
        self.add_to(group, location.ip, location.stack, weight);
    }

    /// Returns the number of the group of a location, which is independent of its address and its call stack.
    #[inline]
    pub fn group(&mut self, location: SampleLocation) -> u32 {
        self.groups.number_of(SampleLocation { ip: 0, stack: StackId::NOT_RECORDED, ..location })
    }

    /// Adds samples at a location of this group.
    #[inline]
    pub fn add_to(&mut self, group: u32, ip: u64, stack: StackId, weight: SampleWeight) {
        self.sums.add(LocationKey { ip, group, stack }, weight);
    }

    /// Adds what is not in the locations yet.
    pub fn finish(self) {
        self.sums.finish();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_location() -> impl Strategy<Value = SampleLocation> {
        (0..3_u32, 0..3_u64, any::<bool>(), 0..5_u64, 0..3_u32).prop_map(|(event, created, kernel, ip, stack)| {
            SampleLocation {
                event,
                core_type: 0,
                process: ProcessKey { id: 8, created },
                thread: 0,
                processor: 0,
                parallelism: 0,
                kernel,
                ip,
                stack: StackId::from_number(stack).unwrap_or_default(),
            }
        })
    }

    proptest! {
        #[test]
        fn sorted_locations_are_the_selected_ones_in_ascending_order(
            added in prop::collection::vec((any_location(), 1..9_u64), 0..200)
        ) {
            let mut locations = Locations::default();
            let shared = locations.shared();
            let mut adder = LocationAdder::new(&shared);
            for (location, events) in added {
                adder.add(location, SampleWeight { samples: 1, events });
            }
            adder.finish();
            drop(shared);
            let is_selected = |location: &SampleLocation| location.ip != 3;
            let mut wanted: Vec<_> = locations.iter().filter(|(location, _)| is_selected(location)).collect();
            wanted.sort_unstable_by_key(|(location, _)| *location);
            prop_assert_eq!(locations.sorted(is_selected).collect::<Vec<_>>(), wanted);
        }
    }
}
