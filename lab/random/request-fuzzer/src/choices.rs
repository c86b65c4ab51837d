//! Decisions from bytes, so that every fuzzer that makes bytes can lead an episode.

use std::iter::{self, Peekable};

use bench_protocol::Random;

/// The decisions of an episode. Each takes as many bytes as the number of its outcomes needs.
///
/// Bytes behind the end are zero. The outcome for zero is the usual one, which leads to nothing more.
pub struct Choices<'a> {
    bytes: Peekable<&'a mut dyn Iterator<Item = u8>>,
}

impl<'a> Choices<'a> {
    /// Takes the decisions from these bytes, which may be endless.
    pub fn new(bytes: &'a mut dyn Iterator<Item = u8>) -> Self {
        Self { bytes: bytes.peekable() }
    }

    /// Returns whether every byte was used.
    pub fn is_empty(&mut self) -> bool {
        self.bytes.peek().is_none()
    }

    /// Returns a number up to `most`. Larger bytes make a larger number.
    pub fn up_to(&mut self, most: u64) -> u64 {
        let bits = (u64::BITS - most.leading_zeros()).next_multiple_of(8);
        let drawn = (0..bits / 8).fold(0, |drawn, _| drawn << 8 | u64::from(self.bytes.next().unwrap_or_default()));
        let scaled = (u128::from(drawn) * (u128::from(most) + 1)) >> bits;
        u64::try_from(scaled).unwrap_or(most)
    }

    /// Returns true for one of `count` outcomes.
    pub fn one_in(&mut self, count: u64) -> bool {
        let last = count.saturating_sub(1);
        self.up_to(last) == last
    }

    /// Returns one of the values, or `None` if there are none. Then no byte is used.
    pub fn pick<'v, T>(&mut self, values: &'v [T]) -> Option<&'v T> {
        let last = values.len().checked_sub(1)?;
        values.get(usize::try_from(self.up_to(last as u64)).unwrap_or_default())
    }

    /// Returns true for this share of the outcomes.
    pub fn percent(&mut self, share: u32) -> bool {
        self.up_to(99) + u64::from(share) >= 100
    }
}

/// Returns endless random bytes of a seed for one subject.
pub fn random_bytes(seed: u64, subject: u64) -> impl Iterator<Item = u8> {
    let mut random = Random::new(seed, subject);
    iter::repeat_with(move || random.up_to(u64::MAX).to_le_bytes()).flatten()
}
