//! Branches that a processor takes.

use super::Processor;
use crate::{
    bits::bit,
    debug_store::Branch,
    last_branches::{BranchKind, TakenBranch},
    mode::Mode,
};

/// `IA32_DEBUGCTL`, `DebugCtl` of AMD.
const DEBUGCTL: u32 = 0x1D9;
/// The status registers with the bit for frozen records: `IA32_PERF_GLOBAL_STATUS`, `PerfCntrGlobalStatus`.
const STATUS: [u32; 2] = [0x38E, 0xC000_0300];
/// That bit.
const FROZEN: u32 = 58;

/// Where interrupts lead, and the code there.
const HANDLER: u64 = 0xFFFF_F800_0000_1000;
/// The code that writes registers.
const WRITER: u64 = 0xFFFF_F800_0000_2000;

impl Processor {
    /// Takes a branch in `mode`. If the Branch Trace Store is on for that mode, writes a record to memory. A record
    /// that reaches the threshold makes an interrupt pending if BTINT is set; no status bit reports it.
    pub fn branch(&mut self, mode: Mode, branch: Branch) {
        if self.debug_store.branch(mode, branch) {
            self.raise();
        }
    }

    /// Takes a branch, which the last branch records keep if they are on and let it through.
    pub fn take_branch(&mut self, branch: &TakenBranch) {
        let debugctl = self.debugctl();
        let frozen = STATUS.iter().any(|status| self.pmu.rdmsr(*status).is_some_and(|status| bit(status, FROZEN)));
        self.last_branches.take(branch, debugctl, frozen);
    }

    /// Returns whether the last branch records are on.
    #[must_use]
    pub fn keeps_last_branches(&self) -> bool {
        self.last_branches.is_on(self.debugctl())
    }

    fn debugctl(&self) -> u64 {
        self.debug_store.rdmsr(DEBUGCTL).or_else(|| self.pmu.rdmsr(DEBUGCTL)).unwrap_or_default()
    }

    /// Empties the last branch records, as a deep sleep of the core does without the knowledge of Windows.
    pub fn lose_last_branches(&mut self) {
        self.last_branches.clear();
    }

    /// Lets AMD also record branches of wrong paths, entries that are none, and the first instruction of a fused pair
    /// as the source.
    pub fn set_unkind_branches(&mut self, are_unkind: bool) {
        self.last_branches.set_unkind(are_unkind);
    }

    /// Takes the branches that lead to the code of an interrupt.
    pub(super) fn enter_interrupt(&mut self) {
        let (from, to, kind) = (self.debug_store.place(), HANDLER, BranchKind::Far);
        self.take_branch(&TakenBranch { from, to, kind, ..TakenBranch::default() });
        for number in 0..3 {
            let (from, kind) = (HANDLER + 0x10 * number, BranchKind::DirectCall);
            self.take_branch(&TakenBranch { from, to: from + 0x100, kind, ..TakenBranch::default() });
        }
    }

    /// Takes the branch behind a write of a register: the return from the function that writes.
    pub(super) fn leave_writer(&mut self) {
        let (from, to, kind) = (WRITER, WRITER + 0x100, BranchKind::Return);
        self.take_branch(&TakenBranch { from, to, kind, ..TakenBranch::default() });
    }

    /// Returns whether a branch is one of the code that [writes registers](Self::wrmsr).
    #[must_use]
    pub fn is_of_writer(from: u64) -> bool {
        from == WRITER
    }
}
