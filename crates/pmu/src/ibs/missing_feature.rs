//! Why ops or fetches cannot be sampled.

/// A missing feature of a processor. Replies have its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum MissingFeature {
    /// It has no Instruction-Based Sampling, or firmware hides it.
    NoUnit = 0,
    /// A hypervisor runs the system, and none is known to let a guest use the registers; some show them in CPUID.
    Hypervisor = 1,
    /// Firmware has chosen no entry of the local vector table for the interrupt of the unit, which could then be one of
    /// another purpose.
    NoEntry = 2,
    /// Another program has unmasked that entry, and gets the interrupts.
    Interrupts = 3,
    /// The registers exist, and nothing is sampled.
    NotDelivered = 4,
    /// It counts no ops between samples, only cycles, or samples fetches alone.
    NoOps = 5,
    /// It samples at cycles and at ops, and the event is neither.
    OtherEvent = 6,
    /// It does not sample fetches.
    NoFetches = 7,
}

impl MissingFeature {
    /// All values, in the order of their numbers.
    pub const ALL: [Self; 8] = [
        Self::NoUnit,
        Self::Hypervisor,
        Self::NoEntry,
        Self::Interrupts,
        Self::NotDelivered,
        Self::NoOps,
        Self::OtherEvent,
        Self::NoFetches,
    ];

    /// Returns the value with this number.
    #[must_use]
    pub fn from_number(number: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|missing_feature| *missing_feature as u64 == number)
    }
}
