//! Samples by key, in a map that several threads fill.

use std::hash::{BuildHasher, Hash};
use std::ops::AddAssign;
use std::sync::{Mutex, PoisonError};

use rustc_hash::{FxBuildHasher, FxHashMap};

/// Number of parts of a map. A part that grows is in memory twice, and the others only once.
const PARTS: usize = 64;

/// Bits of a hash that are not in the number of a part.
const OTHER_BITS: u32 = u64::BITS - PARTS.ilog2();

/// Number of samples that a thread collects for a part before it locks the part.
const BATCH: usize = 256;

/// An odd number with bits in no pattern, so that the parts do not depend on the hashes within a part.
const MIX: u64 = 0x9E37_79B9_7F4A_7C15;

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

type Part<K> = FxHashMap<K, SampleWeight>;

/// Returns the number of the part that has `key`.
#[inline]
fn part_of<K: Hash>(key: &K) -> usize {
    let hash = FxBuildHasher.hash_one(key).wrapping_mul(MIX);
    (hash >> OTHER_BITS) as usize
}

/// The samples of each key.
#[derive(Debug, Clone)]
pub(crate) struct Sums<K> {
    parts: Vec<Part<K>>,
}

impl<K> Default for Sums<K> {
    fn default() -> Self {
        Self { parts: (0..PARTS).map(|_| Part::default()).collect() }
    }
}

impl<K: Hash + Eq> Sums<K> {
    /// Returns the samples of `key`.
    pub fn get(&self, key: &K) -> Option<SampleWeight> {
        self.parts.get(part_of(key))?.get(key).copied()
    }
}

impl<K> Sums<K> {
    /// Returns the map for threads that add to it.
    pub fn shared(&mut self) -> SharedSums<'_, K> {
        SharedSums { parts: self.parts.iter_mut().map(Mutex::new).collect() }
    }

    /// Returns the parts; a key is in one of them.
    pub fn parts(&self) -> &[Part<K>] {
        &self.parts
    }

    /// Returns every key and its samples, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, SampleWeight)> {
        self.parts.iter().flatten().map(|(key, weight)| (key, *weight))
    }
}

/// [`Sums`] to which several threads add.
#[derive(Debug)]
pub(crate) struct SharedSums<'a, K> {
    parts: Vec<Mutex<&'a mut Part<K>>>,
}

impl<K: Hash + Eq> SharedSums<'_, K> {
    fn add(&self, part: usize, samples: &mut Vec<(K, SampleWeight)>) {
        let Some(part) = self.parts.get(part) else { return };
        // A thread that panics adds the samples before the panic, and the panic ends the program.
        let mut part = part.lock().unwrap_or_else(PoisonError::into_inner);
        for (key, weight) in samples.drain(..) {
            *part.entry(key).or_default() += weight;
        }
    }
}

/// What one thread adds to [`SharedSums`].
#[derive(Debug)]
pub(crate) struct Adder<'a, 'b, K> {
    sums: &'a SharedSums<'b, K>,
    /// Samples that are not in the map yet, by part.
    collected: Vec<Vec<(K, SampleWeight)>>,
}

impl<'a, 'b, K: Hash + Eq> Adder<'a, 'b, K> {
    pub fn new(sums: &'a SharedSums<'b, K>) -> Self {
        Self { sums, collected: (0..PARTS).map(|_| Vec::new()).collect() }
    }

    /// Adds samples of `key`.
    #[inline]
    pub fn add(&mut self, key: K, weight: SampleWeight) {
        let part = part_of(&key);
        let Some(collected) = self.collected.get_mut(part) else { return };
        collected.push((key, weight));
        if collected.len() == BATCH {
            self.sums.add(part, collected);
        }
    }

    /// Adds what is not in the map yet.
    pub fn finish(mut self) {
        for (part, collected) in self.collected.iter_mut().enumerate() {
            self.sums.add(part, collected);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Compares with a map that one thread fills.
        #[test]
        fn sums_of_several_threads_are_those_of_one(
            keys in prop::collection::vec(prop_oneof![0_u64..4, any::<u64>()], 0..5000),
            threads in 1_usize..4,
            other in any::<u64>()
        ) {
            let weight = |key: &u64| SampleWeight { samples: 1, events: key % 1000 };
            let mut wanted: BTreeMap<u64, SampleWeight> = BTreeMap::new();
            for key in &keys {
                *wanted.entry(*key).or_default() += weight(key);
            }
            let mut sums = Sums::default();
            let shared = sums.shared();
            std::thread::scope(|scope| {
                for keys in keys.chunks(keys.len().div_ceil(threads).max(1)) {
                    let shared = &shared;
                    scope.spawn(move || {
                        let mut adder = Adder::new(shared);
                        for key in keys {
                            adder.add(*key, weight(key));
                        }
                        adder.finish();
                    });
                }
            });
            prop_assert!(wanted.iter().all(|(key, weight)| sums.get(key) == Some(*weight)));
            prop_assert_eq!(sums.get(&other), wanted.get(&other).copied());
            prop_assert_eq!(sums.iter().map(|(key, weight)| (*key, weight)).collect::<BTreeMap<_, _>>(), wanted);
        }
    }
}
