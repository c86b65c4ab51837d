//! Why last branches cannot be recorded.

/// A missing feature of a processor. Replies have its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum MissingFeature {
    /// It has no last branch records that the driver knows, or a hypervisor hides them.
    NoRecords = 0,
    /// It has AMD's Branch Sampling (Zen 3), which holds interrupts back until sixteen branches were taken: a driver of
    /// Windows is not called before a processor waits for interrupts, where it would have to be switched off.
    BranchSampling = 1,
    /// The registers exist, and record nothing of the code that accesses them: a hypervisor keeps their values only.
    NotDelivered = 2,
    /// An interrupt does not stop the records, so that branches of kernel mode would be those of the interrupt handler.
    NoFreeze = 3,
    /// Branches cannot be chosen by their kind.
    NoKinds = 4,
}

impl MissingFeature {
    /// All values, in the order of their numbers.
    pub const ALL: [Self; 5] =
        [Self::NoRecords, Self::BranchSampling, Self::NotDelivered, Self::NoFreeze, Self::NoKinds];

    /// Returns the value with this number.
    #[must_use]
    pub fn from_number(number: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|missing_feature| *missing_feature as u64 == number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_values_are_one_to_one() {
        for (number, missing_feature) in (0..).zip(MissingFeature::ALL) {
            assert_eq!((missing_feature as u64, MissingFeature::from_number(number)), (number, Some(missing_feature)));
        }
        assert_eq!(MissingFeature::from_number(5), None);
    }
}
