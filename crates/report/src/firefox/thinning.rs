//! Selection of the samples of a profile if it cannot have all.

use protocol::AnySample;
use recording::StackId;
use rustc_hash::FxHashMap;

use crate::sampled_sources::SampledSource;

/// Maximum weight of a sample in a profile. The next sample has what is more.
const MAX_WEIGHT: u64 = i32::MAX.cast_unsigned() as u64;

/// How many of the selected samples a profile has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thinned {
    /// Number of selected samples.
    pub selected: u64,
    /// Number of samples in the profile.
    pub written: u64,
    /// Number of samples of a processor and source for which the profile has one.
    pub step: u64,
}

/// Selects every so many samples of each processor and source. A selected sample has the events of all for which it
/// stands, so the sums of each processor and source are exact.
#[derive(Debug)]
pub struct Thinning {
    step: u64,
    runs: FxHashMap<(u32, SampledSource), Run>,
}

/// The samples since the last one that was selected.
#[derive(Debug)]
struct Run {
    samples: u64,
    events: u64,
    last: AnySample,
    stack: StackId,
}

impl Thinning {
    /// Creates a selection of at most `max` of `samples`. Each of `runs` processors and sources has at least one.
    pub fn new(samples: u64, max: u64, runs: u64) -> Self {
        // The last samples of a run have one that stands for fewer than the others do.
        let step = if samples <= max { 1 } else { samples.div_ceil(max.saturating_sub(runs).max(1)) };
        Self { step, runs: FxHashMap::default() }
    }

    /// Returns the number of samples for which one is selected.
    pub fn step(&self) -> u64 {
        self.step
    }

    /// Returns the sample if it is selected, with the events for which it stands.
    pub fn add(&mut self, sample: &AnySample, stack: StackId, source: SampledSource) -> Option<AnySample> {
        if self.step == 1 {
            return Some(*sample);
        }
        let new = Run { samples: 0, events: 0, last: *sample, stack };
        let run = self.runs.entry((sample.processor, source)).or_insert(new);
        run.samples += 1;
        run.events = run.events.saturating_add(sample.events);
        (run.last, run.stack) = (*sample, stack);
        if run.samples < self.step {
            return None;
        }
        run.samples = 0;
        let events = run.events.min(MAX_WEIGHT);
        run.events -= events;
        Some(AnySample { events, ..*sample })
    }

    /// Returns the last samples, which stand for fewer than the others do, in the order of their times, and their call
    /// stacks.
    pub fn finish(self) -> Vec<(AnySample, StackId)> {
        let rest = self.runs.into_values().filter(|run| run.samples > 0 || run.events > 0);
        let mut rest: Vec<(AnySample, StackId)> =
            rest.map(|run| (AnySample { events: run.events, ..run.last }, run.stack)).collect();
        rest.sort_by_key(|(sample, _)| (sample.time, sample.processor, sample.event));
        rest
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use protocol::Mode;

    use super::*;

    fn sample(processor: u32, source: u32, time: u64, events: u64) -> AnySample {
        AnySample { time, ip: 0x1000, process: 4, thread: 8, processor, event: source, events, mode: Mode::User }
    }

    #[test]
    fn events_that_one_sample_cannot_have_are_those_of_the_next() {
        let mut thinning = Thinning::new(6, 4, 1);
        let events = [1 << 31, 1 << 30, 1 << 29, 1, 1, 1];
        let kept: Vec<u64> = (0_u64..)
            .zip(events)
            .filter_map(|(time, events)| thinning.add(&sample(0, 1, time, events), StackId::NOT_RECORDED, 1.into()))
            .map(|sample| sample.events)
            .collect();
        assert_eq!(kept, [MAX_WEIGHT, (1 << 30) + 1 + (1 << 29) + 1, 2]);
        assert_eq!(thinning.finish(), []);
    }

    proptest! {
        #[test]
        fn sums_are_exact_and_the_maximum_holds(
            samples in prop::collection::vec((0_u32..3, 1_u32..3, 1_u64..1000), 0..500), max in 6_u64..600
        ) {
            let samples = samples.into_iter().zip(0_u64..);
            let samples: Vec<AnySample> =
                samples.map(|((processor, source, events), time)| sample(processor, source, time, events)).collect();
            let mut thinning = Thinning::new(samples.len() as u64, max, 6);
            let mut kept: Vec<AnySample> =
                samples.iter().filter_map(|one| thinning.add(one, StackId::NOT_RECORDED, one.event.into())).collect();
            let step = usize::try_from(thinning.step()).unwrap();
            kept.extend(thinning.finish().into_iter().map(|(sample, _)| sample));
            prop_assert!(kept.len() as u64 <= max.max(7), "{} of {}, step {}", kept.len(), max, step);
            let sums = |samples: &[AnySample]| {
                let mut sums: BTreeMap<(u32, u32), u64> = BTreeMap::new();
                for one in samples {
                    *sums.entry((one.processor, one.event)).or_default() += one.events;
                }
                sums
            };
            prop_assert_eq!(sums(&kept), sums(&samples));
            // Every so many samples of each, and the last one.
            for key in sums(&samples).into_keys() {
                let of = |samples: &[AnySample]| -> Vec<u64> {
                    samples.iter().filter(|one| (one.processor, one.event) == key).map(|one| one.time).collect()
                };
                let all = of(&samples);
                let wanted: Vec<u64> = all.chunks(step).filter_map(|run| run.last().copied()).collect();
                prop_assert_eq!(of(&kept), wanted);
            }
        }
    }
}
