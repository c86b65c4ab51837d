//! How often blocks of code ran, and for how long.
//!
//! A block is the code from the target of a branch to the next branch instruction of the same sample. It has no taken
//! branch before its end, but it can have branches that were not taken.

use std::ops::AddAssign;

use crate::branch_table::LastBranchCount;
use crate::proportion::real;

/// Executions of a block, or of several.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BlockCount {
    /// Number of executions.
    pub count: u64,
    /// Number of executions of which the cycles are known.
    pub timed: u64,
    /// Sum of these core clock cycles.
    pub cycles: u64,
    /// Sum of their squares.
    pub squares: u128,
    /// Number of instructions of the block, with the branch at its end. Unknown before the code was
    /// [compared](crate::BranchProfile::agree), if it has an instruction that the decoder does not know, and of blocks
    /// that differ in it.
    pub instructions: Option<u32>,
}

impl BlockCount {
    /// Returns one execution. `cycles` are 0 if the processor does not report them.
    pub(crate) fn once(cycles: u16) -> Self {
        let cycles = u64::from(cycles);
        Self { count: 1, timed: (cycles > 0).into(), cycles, squares: u128::from(cycles).pow(2), instructions: None }
    }

    /// Returns the mean of the cycles.
    #[must_use]
    pub fn mean_cycles(&self) -> Option<f64> {
        (self.timed > 0).then(|| real(self.cycles) / real(self.timed))
    }

    /// Returns the standard error of the mean of the cycles; `None` if they are known of less than two executions.
    #[must_use]
    pub fn standard_error(&self) -> Option<f64> {
        let number = u128::from(self.timed);
        // n² times the variance of the values, without a difference of rounded numbers.
        let spread = number.saturating_mul(self.squares).saturating_sub(u128::from(self.cycles).pow(2));
        (number > 1).then(|| (real(spread) / (real(number) * real(number) * real(number - 1))).sqrt())
    }

    /// Returns the instructions per cycle.
    #[must_use]
    pub fn ipc(&self) -> Option<f64> {
        Some(f64::from(self.instructions?) / self.mean_cycles()?)
    }
}

impl AddAssign for BlockCount {
    fn add_assign(&mut self, other: Self) {
        self.instructions =
            if self.count == 0 || self.instructions == other.instructions { other.instructions } else { None };
        self.count += other.count;
        self.timed += other.timed;
        self.cycles += other.cycles;
        self.squares += other.squares;
    }
}

/// What last branches say of an instruction.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct InstructionCount {
    /// How often it ran as a part of blocks.
    pub executions: u64,
    /// How often it was a taken branch.
    pub taken: LastBranchCount,
    /// The blocks that end at it.
    pub blocks: BlockCount,
    /// Instructions per cycle of those of these blocks of which both are known.
    pub ipc: Option<f64>,
}
