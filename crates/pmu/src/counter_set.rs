//! A set of counters, and the mask of a number of bits.

/// A set of counters of one processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CounterSet(u32);

impl CounterSet {
    /// The empty set.
    pub const NONE: Self = Self(0);

    /// Maximum number of counters of a processor.
    pub const MOST: u8 = 32;

    /// Returns the set with `counter`.
    #[must_use]
    pub const fn with(self, counter: u8) -> Self {
        Self(self.0 | 1 << (counter % Self::MOST))
    }

    /// Returns whether the set contains `counter`.
    #[must_use]
    pub const fn has(self, counter: u8) -> bool {
        self.0 & 1 << (counter % Self::MOST) != 0
    }

    /// Returns the set without the counters in `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Returns the set as a mask: bit n is counter n.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Creates a set from a mask: bit n is counter n; bits beyond [`MOST`](Self::MOST) are ignored.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self((bits & 0xFFFF_FFFF) as u32)
    }

    /// Returns the set of the first `count` counters.
    #[must_use]
    pub const fn first(count: u8) -> Self {
        Self((mask(count) & 0xFFFF_FFFF) as u32)
    }

    /// Returns the intersection.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns the union.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns whether the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the number of counters.
    #[must_use]
    pub const fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// Iterates over the counters in ascending order.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        let mut left = self.0;
        core::iter::from_fn(move || {
            if left == 0 {
                return None;
            }
            let counter = (left.trailing_zeros() & 0xFF) as u8;
            left &= left.wrapping_sub(1);
            Some(counter)
        })
    }
}

impl FromIterator<u8> for CounterSet {
    fn from_iter<T: IntoIterator<Item = u8>>(counters: T) -> Self {
        counters.into_iter().fold(Self::NONE, Self::with)
    }
}

/// Returns the mask of a counter with this width.
#[must_use]
pub const fn mask(width: u8) -> u64 {
    let missing_bits = 64_u32.saturating_sub(width as u32);
    match u64::MAX.checked_shr(missing_bits) {
        Some(mask) => mask,
        None => 0,
    }
}
