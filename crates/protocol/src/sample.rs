//! Kinds of [`Sample`](crate::Sample) records.

/// Kind of a [`Sample`](crate::Sample) record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum SampleKind {
    /// A counter overflowed at `ip`.
    Sample = 0,
    /// `ip` samples of `source` were lost on `processor` before this record.
    Lost = 1,
    /// The interrupts of `processor` used up their budget: sampling stops there from now on.
    Throttled = 2,
    /// Sampling resumed on `processor` after a pause of `ip` units of time.
    Resumed = 3,
    /// The machine slept for `ip` units of time, during which nothing was sampled on `processor`.
    Slept = 4,
    /// A PEBS record of the instruction at `ip`, which caused the event: no skid.
    Precise = 5,
    /// A PEBS record of a processor that records the address of the next instruction in `ip`.
    PreciseNext = 6,
    /// A branch from `ip` to `pebs_sequence` (BTS); `interval` is 1 if the processor reports that it predicted the
    /// branch, else 0.
    Branch = 7,
    /// Too many consecutive interrupts arrived on `processor` without an overflowed counter: nothing is sampled there
    /// until a session starts to sample there again.
    Silenced = 8,
}

impl SampleKind {
    /// Every kind, in the order of its number.
    pub const ALL: [Self; 9] = [
        Self::Sample,
        Self::Lost,
        Self::Throttled,
        Self::Resumed,
        Self::Slept,
        Self::Precise,
        Self::PreciseNext,
        Self::Branch,
        Self::Silenced,
    ];

    /// Returns whether the record counts as a sample of its event; other kinds report on the sampling itself.
    #[must_use]
    pub const fn is_sample(self) -> bool {
        matches!(self, Self::Sample | Self::Precise | Self::PreciseNext | Self::Branch)
    }

    /// Returns the kind with this number.
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
        assert_eq!(SampleKind::from_number(9), None);
    }
}
