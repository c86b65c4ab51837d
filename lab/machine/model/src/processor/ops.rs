//! Ops and fetches of a processor, as far as Instruction-Based Sampling sees them.

use super::Processor;
use crate::ibs::{ExecutedFetch, ExecutedOp, OpKind};
use crate::select::Selected;

impl Processor {
    /// Lets these ops retire, in order. Counters do not count them.
    pub fn retire_ops(&mut self, ops: &[ExecutedOp]) {
        for op in ops {
            self.ibs.retire(op);
        }
    }

    /// Sets the ops that the processor executes in turn while it [runs](Self::run), as many as take the cycles that it
    /// runs for. Without any, they compute, at the [place](Self::set_place) of the script.
    pub fn set_ops(&mut self, ops: Vec<ExecutedOp>) {
        self.ibs.set_ops(ops);
    }

    /// Sets the fetches that happen in turn while the processor [runs](Self::run), one for four instructions. Without
    /// any, the L1 cache delivers them from the [place](Self::set_place) of the script.
    pub fn set_fetches(&mut self, fetches: Vec<ExecutedFetch>) {
        self.ibs.set_fetches(fetches);
    }

    /// Sets `IBSCTL`, the entry of the local vector table for Instruction-Based Sampling, as firmware leaves it; 0 is
    /// none.
    pub fn set_ibs_entry(&mut self, entry: u64) {
        self.ibs.set_entry(entry);
    }

    /// Lets ops retire and fetches happen for as long as an access to a register takes.
    pub fn retire_access(&mut self) {
        const CYCLES: u64 = 50;
        self.run_ops(&|_, _| CYCLES);
    }

    /// Lets ops retire and fetches happen for as long as the code takes that is executed.
    pub(super) fn run_ops(&mut self, events: &dyn Fn(Selected, u64) -> u64) {
        const CYCLES: u16 = 0x076;
        const INSTRUCTIONS: u16 = 0x0C0;
        if self.ibs.follows_fetches() {
            self.ibs.fetch(events(Selected::event(INSTRUCTIONS, 0), 0) / 4, self.debug_store.place());
        }
        if self.ibs.is_counting() {
            let other = ExecutedOp { ip: self.debug_store.place(), cycles: 1, kind: OpKind::Other };
            self.ibs.run(events(Selected::event(CYCLES, 0), 0), other);
        }
    }
}
