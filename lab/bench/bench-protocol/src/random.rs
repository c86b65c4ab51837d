//! Decisions that depend on the seed of a script.

/// A sequence of pseudo-random numbers (SplitMix64; Steele, Lea and Flood: "Fast Splittable Pseudorandom Number
/// Generators", 2014).
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Returns the sequence of a seed for one subject, such as an event or a thread. The sequences of other subjects
    /// are unrelated.
    #[must_use]
    pub const fn new(seed: u64, subject: u64) -> Self {
        let mut random = Self(seed);
        let mixed = random.next();
        Self(mixed ^ subject.wrapping_mul(0xD6E8_FEB8_6659_FD93))
    }

    const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number up to `most`.
    pub const fn up_to(&mut self, most: u64) -> u64 {
        match most.checked_add(1) {
            Some(count) => self.next() % count,
            None => self.next(),
        }
    }

    /// Returns true in one of `count` calls, which must not be 0.
    pub const fn one_in(&mut self, count: u64) -> bool {
        self.up_to(count - 1) == 0
    }

    /// Returns one of the values, or `None` if there are none. Then no number is drawn.
    pub fn pick<'a, T>(&mut self, values: &'a [T]) -> Option<&'a T> {
        let last = values.len().checked_sub(1)?;
        values.get(usize::try_from(self.up_to(last as u64)).unwrap_or_default())
    }

    /// Returns true in this share of the calls.
    pub const fn percent(&mut self, share: u32) -> bool {
        // The number is drawn for every share, so that a share does not change later decisions.
        self.next() % 100 < share as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_kept_and_subjects_differ() {
        for share in [0, 1, 30, 99, 100] {
            let count = (0..20_000).filter(|subject| Random::new(7, *subject).percent(share)).count();
            assert!(count.abs_diff(200 * share as usize) < 400, "{share} %: {count}");
            let mut random = Random::new(7, 0);
            let count = (0..20_000).filter(|_| random.percent(share)).count();
            assert!(count.abs_diff(200 * share as usize) < 400, "{share} % of one subject: {count}");
        }
        assert_eq!(Random::new(7, 3).up_to(u64::MAX), Random::new(7, 3).up_to(u64::MAX));
        assert_ne!(Random::new(7, 3).up_to(u64::MAX), Random::new(7, 4).up_to(u64::MAX));
        assert_ne!(Random::new(8, 3).up_to(u64::MAX), Random::new(7, 3).up_to(u64::MAX));
        assert_eq!((0..40_000).filter(|subject| Random::new(7, *subject).one_in(4)).count() / 1_000, 10);
        let mut random = Random::new(7, 0);
        assert_eq!(random.pick::<u8>(&[]), None);
        let picked: std::collections::BTreeSet<u8> =
            (0..100).filter_map(|_| random.pick(&[3, 5, 7]).copied()).collect();
        assert_eq!(picked, [3, 5, 7].into());
        assert!((0..1_000).all(|subject| Random::new(1, subject).up_to(2) <= 2));
    }
}
