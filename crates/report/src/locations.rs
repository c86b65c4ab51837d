//! Locations of samples, and the samples at each of them.

use std::ops::AddAssign;

use protocol::{AnySample, Mode};
use rustc_hash::FxHashMap;

use crate::sampled_sources::SampledSource;

/// Properties that distinguish locations in addition to source, process, mode and address. Each needs more memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Detail {
    /// Distinguish threads.
    pub thread: bool,
    /// Distinguish processors.
    pub processor: bool,
}

/// Location of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SampleLocation {
    /// KPROFILE_SOURCE.
    pub source: u32,
    /// [Core type](SampledSource::core_type) of the processor.
    pub core_type: u32,
    /// The interrupted process, or [`UNKNOWN`](protocol::UNKNOWN).
    pub process: u32,
    /// The thread, or [`UNKNOWN`](protocol::UNKNOWN); 0 unless selected by [`Detail`].
    pub thread: u32,
    /// The processor; 0 unless selected by [`Detail`].
    pub processor: u32,
    /// Whether kernel mode was interrupted.
    pub kernel: bool,
    /// Whether the source has [an event for each mode](SampledSource::mode).
    pub by_mode: bool,
    /// The instruction pointer; for a branch its source, not its target.
    pub ip: u64,
}

impl SampleLocation {
    /// Returns the source on its core type.
    #[must_use]
    pub const fn sampled_source(&self) -> SampledSource {
        let mode = if self.kernel { Mode::Kernel } else { Mode::User };
        SampledSource {
            source: self.source,
            core_type: self.core_type,
            mode: if self.by_mode { Some(mode) } else { None },
        }
    }

    pub(crate) fn of(sample: &AnySample, detail: Detail) -> Self {
        Self {
            source: sample.source,
            core_type: 0,
            process: sample.process,
            thread: if detail.thread { sample.thread } else { 0 },
            processor: if detail.processor { sample.processor } else { 0 },
            kernel: sample.mode == Mode::Kernel,
            by_mode: false,
            ip: sample.ip,
        }
    }
}

/// Number of samples and of the events that they represent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SampleWeight {
    /// Samples.
    pub samples: u64,
    /// Events: the sum of the intervals of the samples.
    pub events: u64,
}

impl AddAssign for SampleWeight {
    fn add_assign(&mut self, other: Self) {
        self.samples += other.samples;
        self.events = self.events.saturating_add(other.events);
    }
}

/// The samples at each location: 32 bytes for a location.
#[derive(Debug, Clone, Default)]
pub(crate) struct Locations {
    /// The locations without their addresses, each once: there are few.
    groups: Vec<SampleLocation>,
    numbers: FxHashMap<SampleLocation, u32>,
    /// Number of the group of the last sample. Successive samples are mostly of one group.
    last: u32,
    weights: FxHashMap<Place, SampleWeight>,
}

/// A location by the number of its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Place {
    ip: u64,
    group: u32,
}

impl Locations {
    /// Adds samples at a location.
    #[inline]
    pub fn add(&mut self, location: SampleLocation, weight: SampleWeight) {
        let group = self.number_of(SampleLocation { ip: 0, ..location });
        *self.weights.entry(Place { ip: location.ip, group }).or_default() += weight;
    }

    #[inline]
    fn number_of(&mut self, group: SampleLocation) -> u32 {
        if self.groups.get(self.last as usize) != Some(&group) {
            self.last = *self.numbers.entry(group).or_insert_with(|| {
                self.groups.push(group);
                // A group has samples of its own, of which memory holds fewer than this.
                u32::try_from(self.groups.len() - 1).unwrap_or(u32::MAX)
            });
        }
        self.last
    }

    /// Returns every location and its samples, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (SampleLocation, SampleWeight)> {
        self.weights.iter().filter_map(|(Place { ip, group }, weight)| {
            let group = self.groups.get(*group as usize)?;
            Some((SampleLocation { ip: *ip, ..*group }, *weight))
        })
    }
}
