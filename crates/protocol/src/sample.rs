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
    /// The processor's own record (PEBS) of the instruction at `ip`, which made the event happen: no skid.
    Precise = 5,
    /// The same of a processor whose records have the instruction behind it.
    PreciseNext = 6,
    /// A branch from `ip` to `pebs_sequence` (BTS); `interval` is 1 where the processor tells that it had predicted it, else 0.
    Branch = 7,
    /// Too many interrupts in a row came on `processor` that no counter explained: nothing is sampled there from now on, until
    /// a session starts to sample there again.
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

    /// Whether it is counted among the samples of its event, and not what befell the sampling.
    #[must_use]
    pub const fn is_sample(self) -> bool {
        matches!(self, Self::Sample | Self::Precise | Self::PreciseNext | Self::Branch)
    }

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
        assert_eq!(SampleKind::from_number(9), None);
    }
}
