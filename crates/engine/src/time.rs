//! Points in time.

/// A point in time of a session.
#[derive(Debug, Clone, Copy)]
pub struct Timestamp {
    /// Units of 100 ns.
    pub time: u64,
    /// How long the machine had slept by then, in the same units.
    pub asleep: u64,
}
