//! What a [`Sample`](crate::Sample) record says.

/// The kinds of records among samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum SampleKind {
    /// A counter overflowed here.
    Sample = 0,
    /// `ip` samples of `source` were lost on `processor` before this record.
    Lost = 1,
    /// The interrupts of `processor` had spent their budget: nothing is sampled there from now on.
    Throttled = 2,
    /// Sampling goes on on `processor`, after a pause of `ip` units of time.
    Resumed = 3,
    /// The machine slept for `ip` units of time, in which nothing was sampled on `processor`.
    Slept = 4,
}

impl SampleKind {
    /// Every kind, in the order of its number.
    pub const ALL: [Self; 5] = [Self::Sample, Self::Lost, Self::Throttled, Self::Resumed, Self::Slept];

    /// The kind with this number.
    #[must_use]
    pub fn from_number(number: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u16 == number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_kinds_are_one_to_one() {
        for (number, kind) in (0_u16..).zip(SampleKind::ALL) {
            assert_eq!((kind as u16, SampleKind::from_number(number)), (number, Some(kind)));
        }
        assert_eq!(SampleKind::from_number(5), None);
    }
}
