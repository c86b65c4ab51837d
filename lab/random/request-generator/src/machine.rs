//! The machine, as far as valid requests depend on it.

use protocol::SourceRecord;

/// The limits of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceLimits {
    /// KPROFILE_SOURCE.
    pub source: u64,
    /// The smallest interval.
    pub minimum: u32,
    /// The largest interval.
    pub maximum: u32,
    /// Mask of the counters that record it precisely.
    pub precise: u32,
}

impl SourceLimits {
    /// Returns the limits of a source as the driver lists it.
    #[must_use]
    pub const fn of(record: &SourceRecord) -> Self {
        let SourceRecord { source, minimum, maximum, precise, .. } = *record;
        Self { source, minimum, maximum, precise }
    }
}

/// What valid requests depend on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Machine {
    /// Number of active processors at first.
    pub active: u32,
    /// Maximum number of processors.
    pub processors: u32,
    /// The supported sources. May be empty.
    pub sources: Vec<SourceLimits>,
    /// The core types of a hybrid; empty on other machines.
    pub core_types: Vec<u32>,
}
