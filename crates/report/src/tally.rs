//! Counting samples by place, in one pass.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use protocol::{Sample, SampleKind, modes};
use rustc_hash::FxHashMap;

/// What tells places apart besides source, process, mode and address. Each asks for more memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Detail {
    /// The thread.
    pub thread: bool,
    /// The processor.
    pub processor: bool,
}

/// Where samples fell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// KPROFILE_SOURCE.
    pub source: u32,
    /// The process that was interrupted, or [`UNKNOWN`](protocol::UNKNOWN).
    pub process: u32,
    /// The thread, or [`UNKNOWN`](protocol::UNKNOWN); 0 unless [`Detail`] asks for it.
    pub thread: u32,
    /// The processor; 0 unless [`Detail`] asks for it.
    pub processor: u32,
    /// Whether kernel mode was interrupted.
    pub kernel: bool,
    /// The instruction pointer; where a branch is, not where it went.
    pub ip: u64,
}

impl Place {
    pub(crate) fn of(sample: &Sample, detail: Detail) -> Self {
        Self {
            source: sample.source,
            process: sample.process,
            thread: if detail.thread { sample.thread } else { 0 },
            processor: if detail.processor { sample.processor } else { 0 },
            kernel: u32::from(sample.modes) == modes::KERNEL,
            ip: sample.ip,
        }
    }
}

/// The events that a sample stands for; a branch is one, and says something else in the place of its interval.
pub(crate) fn events(sample: &Sample, kind: SampleKind) -> u64 {
    if kind == SampleKind::Branch { 1 } else { sample.interval.into() }
}

/// How much fell somewhere.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Weight {
    /// Samples.
    pub samples: u64,
    /// Events that they stand for: the sum of their intervals.
    pub events: u64,
}

impl AddAssign for Weight {
    fn add_assign(&mut self, other: Self) {
        self.samples += other.samples;
        self.events = self.events.saturating_add(other.events);
    }
}

/// All samples of a source.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Total {
    /// How much.
    pub weight: Weight,
    /// Of the samples: the processor's own records of the instruction that made the event happen.
    pub precise: u64,
    /// Of the samples: its records of the instruction behind that.
    pub precise_next: u64,
    /// The sum of the squares of the intervals: how evenly the samples weigh.
    pub squares: u128,
}

/// What befell the sampling of a source on a processor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Disturbance {
    /// Samples that were lost.
    pub lost: u64,
    /// How often sampling paused because interrupts had spent their budget.
    pub pauses: u64,
    /// How long it paused in all, in units of the recording's clock; a pause that never ended is not in it.
    pub paused: u64,
    /// How often the machine slept.
    pub sleeps: u64,
    /// How long in all, in units of the recording's clock.
    pub slept: u64,
    /// How often sampling stopped because too many interrupts came that no counter explained.
    pub silences: u64,
}

/// Samples counted by place.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    detail: Detail,
    places: FxHashMap<Place, Weight>,
    totals: BTreeMap<u32, Total>,
    disturbances: BTreeMap<(u32, u32), Disturbance>,
    earliest: Option<u64>,
    unknown: u64,
}

impl Tally {
    /// Nothing counted yet.
    #[must_use]
    pub fn new(detail: Detail) -> Self {
        Self { detail, ..Self::default() }
    }

    /// Counts `samples`, in any order.
    pub fn add(&mut self, samples: &[Sample]) {
        for sample in samples {
            self.add_one(sample);
        }
        let earliest = samples.iter().map(|sample| sample.time).min();
        self.earliest = self.earliest.into_iter().chain(earliest).min();
    }

    fn add_one(&mut self, sample: &Sample) {
        let Some(kind) = SampleKind::from_number(sample.kind) else {
            self.unknown += 1;
            return;
        };
        if kind.is_sample() {
            let events = events(sample, kind);
            let weight = Weight { samples: 1, events };
            *self.places.entry(Place::of(sample, self.detail)).or_default() += weight;
            let total = self.totals.entry(sample.source).or_default();
            total.weight += weight;
            total.precise += u64::from(kind == SampleKind::Precise);
            total.precise_next += u64::from(kind == SampleKind::PreciseNext);
            total.squares += u128::from(events * events);
            return;
        }
        let disturbance = self.disturbances.entry((sample.source, sample.processor)).or_default();
        match kind {
            SampleKind::Sample | SampleKind::Precise | SampleKind::PreciseNext | SampleKind::Branch => {}
            SampleKind::Lost => disturbance.lost = disturbance.lost.saturating_add(sample.ip),
            SampleKind::Throttled => disturbance.pauses += 1,
            SampleKind::Resumed => disturbance.paused = disturbance.paused.saturating_add(sample.ip),
            SampleKind::Slept => {
                disturbance.sleeps += 1;
                disturbance.slept = disturbance.slept.saturating_add(sample.ip);
            }
            SampleKind::Silenced => disturbance.silences += 1,
        }
    }

    /// Every place and what fell there, in no order.
    pub fn places(&self) -> impl Iterator<Item = (&Place, Weight)> {
        self.places.iter().map(|(place, weight)| (place, *weight))
    }

    /// The sources that have samples, in ascending order, with all of theirs.
    pub fn totals(&self) -> impl Iterator<Item = (u32, Total)> {
        self.totals.iter().map(|(source, total)| (*source, *total))
    }

    /// All samples of `source`.
    #[must_use]
    pub fn total(&self, source: u32) -> Total {
        self.totals.get(&source).copied().unwrap_or_default()
    }

    /// What befell the sampling, by source and processor in ascending order. The source is
    /// [`ALL_SOURCES`](protocol::ALL_SOURCES) where it befell all that were sampled on the processor.
    pub fn disturbances(&self) -> impl Iterator<Item = (u32, u32, Disturbance)> {
        self.disturbances.iter().map(|((source, processor), disturbance)| (*source, *processor, *disturbance))
    }

    /// How often the machine slept, and how long in all, in units of the recording's clock: every processor tells of
    /// the same sleeps, if its ring had room.
    #[must_use]
    pub fn slept(&self) -> (u64, u64) {
        let told = self.disturbances.values().map(|disturbance| (disturbance.sleeps, disturbance.slept));
        told.max().unwrap_or_default()
    }

    /// The time of the earliest record, in units of the recording's clock.
    #[must_use]
    pub fn earliest(&self) -> Option<u64> {
        self.earliest
    }

    /// Records of a kind that this program does not know.
    #[must_use]
    pub fn unknown(&self) -> u64 {
        self.unknown
    }
}
