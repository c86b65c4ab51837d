//! A taken branch, and how the registers hold it.

use super::facts::{Format, Layout};
use crate::bits::ones;

/// What kind of branch it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BranchKind {
    /// A conditional branch.
    #[default]
    Conditional,
    /// A near indirect jump.
    IndirectJump,
    /// A near relative jump.
    DirectJump,
    /// A near indirect call.
    IndirectCall,
    /// A near relative call.
    DirectCall,
    /// A near return.
    Return,
    /// A far branch, an interrupt, an exception or a return from one.
    Far,
}

/// A branch that code took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TakenBranch {
    /// Address of the branch.
    pub from: u64,
    /// Address of the target.
    pub to: u64,
    /// Its kind.
    pub kind: BranchKind,
    /// Whether the processor had predicted it otherwise.
    pub mispredicted: bool,
    /// Cycles since the branch before.
    pub cycles: u16,
}

/// Distance of the two instructions of a fused pair: a compare of a register takes three bytes.
const FUSED: u64 = 3;

/// The registers of an entry: FROM, TO and INFO.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Entry(pub(super) [u64; 3]);

impl Entry {
    /// Returns the entry of a branch in a format (SDM Vol. 3B, "Last Branch Recording"; APM Vol. 2, 13.1.1.9).
    pub(super) fn of(branch: &TakenBranch, format: &Format, is_fused: bool) -> Self {
        let TakenBranch { from, to, mispredicted, cycles, kind } = *branch;
        let flag = |bit: u32| u64::from(mispredicted) << bit;
        let info = flag(63) | u64::from(cycles);
        Self(match format {
            Format::Legacy { layout, .. } => match layout {
                Layout::Addresses => [from, to, 0],
                Layout::Mispredicted => [from & ones(63) | flag(63), to, 0],
                // No transactions: bits 62 and 61 are clear, and no copies of the sign.
                Layout::Transactions => [from & ones(61) | flag(63), to, 0],
                Layout::Info => [from, to, info],
                Layout::Cycles => [from & ones(63) | flag(63), to & ones(48) | u64::from(cycles) << 48, 0],
            },
            // Bit 60: the cycles are valid; bits 59:56: the type.
            Format::Architectural => [from, to, info | 1 << 60 | (kind.number() << 56)],
            // Bit 63 of the target: valid.
            Format::Amd => {
                let from = if is_fused { from - FUSED } else { from };
                [from & ones(58) | flag(63), to & ones(58) | 1 << 63, 0]
            }
        })
    }

    /// Returns an entry of AMD that was recorded on a wrong path, or is no branch at all (erratum 1452).
    pub(super) fn speculative(branch: &TakenBranch, is_branch: bool) -> Self {
        let (wrong, none) = (1 << 62, 0b11 << 61 | 1 << 63);
        Self([branch.to & ones(58), branch.from & ones(58) | if is_branch { wrong } else { none }, 0])
    }
}

impl BranchKind {
    /// Returns the number in `BR_TYPE`.
    fn number(self) -> u64 {
        match self {
            Self::Conditional => 0,
            Self::IndirectJump => 1,
            Self::DirectJump => 2,
            Self::IndirectCall => 3,
            Self::DirectCall => 4,
            Self::Return => 5,
            Self::Far => 8,
        }
    }
}
