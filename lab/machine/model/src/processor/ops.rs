//! Ops that a processor executes, as far as Instruction-Based Sampling sees them.

use super::Processor;
use crate::ibs::ExecutedOp;

impl Processor {
    /// Lets these ops retire, in order. Counters do not count them.
    pub fn retire_ops(&mut self, ops: &[ExecutedOp]) {
        for op in ops {
            self.ibs.retire(op);
        }
    }

    /// Sets `IBSCTL`, the entry of the local vector table for Instruction-Based Sampling, as firmware leaves it; 0 is
    /// none.
    pub fn set_ibs_entry(&mut self, entry: u64) {
        self.ibs.set_entry(entry);
    }
}
