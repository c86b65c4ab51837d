//! Events and user parts of the last seconds.

use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeBounds;
use std::time::Duration;

/// Values by key, in the order in which they arrived for each key. The oldest are forgotten.
#[derive(Debug)]
pub struct Recent<K, V> {
    values: BTreeMap<(K, u64), V>,
    /// Time of arrival and key of each, and its frames.
    arrivals: VecDeque<(Duration, (K, u64), usize)>,
    /// Number of the next value.
    next: u64,
    frames: usize,
}

impl<K, V> Default for Recent<K, V> {
    fn default() -> Self {
        Self { values: BTreeMap::new(), arrivals: VecDeque::new(), next: 0, frames: 0 }
    }
}

impl<K: Ord + Copy, V> Recent<K, V> {
    /// Adds a value that holds so many frames.
    pub fn add(&mut self, key: K, value: V, frames: usize, now: Duration) {
        let key = (key, self.next);
        self.next += 1;
        self.values.insert(key, value);
        self.arrivals.push_back((now, key, frames));
        self.frames += frames;
    }

    /// Returns the values of a range of keys, in ascending order.
    pub fn range(&self, range: impl RangeBounds<(K, u64)>) -> impl Iterator<Item = (K, &V)> {
        self.values.range(range).map(|((key, _), value)| (*key, value))
    }

    /// Returns the values of a key.
    pub fn with_key(&self, key: K) -> impl Iterator<Item = &V> {
        self.range((key, 0)..=(key, u64::MAX)).map(|(_, value)| value)
    }

    /// Forgets the values that arrived before a time, and the oldest ones until the limits are kept.
    pub fn trim(&mut self, before: Duration, max_values: usize, max_frames: usize) {
        while let Some((arrived, key, frames)) = self.arrivals.front().copied()
            && (arrived < before || self.values.len() > max_values || self.frames > max_frames)
        {
            self.arrivals.pop_front();
            self.values.remove(&key);
            self.frames -= frames;
        }
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns the number of their frames.
    pub const fn frames(&self) -> usize {
        self.frames
    }
}
