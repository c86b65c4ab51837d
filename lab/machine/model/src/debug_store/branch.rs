//! Branch records (SDM Vol. 3B, "BTS and DS Save Area": 64-bit branch trace record).

/// A taken branch, an interrupt or an exception.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Branch {
    /// The address of the branch.
    pub from: u64,
    /// The target address.
    pub to: u64,
    /// Whether the processor predicted the branch.
    pub predicted: bool,
}

/// Bit "Branch Predicted" of the third word.
const PREDICTED: u32 = 4;

impl Branch {
    pub(super) fn record(self) -> [u64; 3] {
        [self.from, self.to, u64::from(self.predicted) << PREDICTED]
    }
}
