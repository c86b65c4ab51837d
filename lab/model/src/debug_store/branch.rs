//! Records of branches (SDM Vol. 3B, "BTS and DS Save Area": 64-bit branch trace record).

/// A branch that was taken, an interrupt or an exception.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Branch {
    /// The address of the branch.
    pub from: u64,
    /// Where it went.
    pub to: u64,
    /// The processor had predicted it.
    pub predicted: bool,
}

/// In the third word: Branch Predicted.
const PREDICTED: u32 = 4;

impl Branch {
    pub(super) fn record(self) -> [u64; 3] {
        [self.from, self.to, u64::from(self.predicted) << PREDICTED]
    }
}
