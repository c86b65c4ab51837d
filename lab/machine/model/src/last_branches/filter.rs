//! Which branches the registers let through. The mode of a branch is that of its target.

use super::entry::{BranchKind, TakenBranch};
use crate::bits::bit;

fn ends_in_kernel(branch: &TakenBranch) -> bool {
    bit(branch.to, 63)
}

/// Returns whether `MSR_LBR_SELECT` or `LbrSelect` does not suppress a branch (SDM Vol. 3B, "Filtering of Last Branch
/// Records").
pub(super) fn not_suppressed(select: u64, has_nehalems_filter: bool, branch: &TakenBranch) -> bool {
    let mode = u32::from(!ends_in_kernel(branch));
    let (jumps, indirect_jumps) = (7, 6);
    let kind = match branch.kind {
        BranchKind::Conditional => 2,
        BranchKind::DirectCall => 3,
        BranchKind::IndirectCall => 4,
        BranchKind::Return => 5,
        BranchKind::IndirectJump => indirect_jumps,
        BranchKind::DirectJump => jumps,
        BranchKind::Far => 8,
    };
    // Calls need both kinds of jumps, indirect calls the indirect ones (Linux, `nhm_lbr_sel_map`).
    let is_hidden = has_nehalems_filter
        && match branch.kind {
            BranchKind::DirectCall => bit(select, jumps) || bit(select, indirect_jumps),
            BranchKind::IndirectCall => bit(select, indirect_jumps),
            _ => false,
        };
    !bit(select, mode) && !bit(select, kind) && !is_hidden
}

/// Returns whether `IA32_LBR_CTL` captures a branch.
pub(super) fn captured(control: u64, branch: &TakenBranch) -> bool {
    let mode = if ends_in_kernel(branch) { 1 } else { 2 };
    let kind = match branch.kind {
        BranchKind::Conditional => 16,
        BranchKind::DirectJump => 17,
        BranchKind::IndirectJump => 18,
        BranchKind::DirectCall => 19,
        BranchKind::IndirectCall => 20,
        BranchKind::Return => 21,
        BranchKind::Far => 22,
    };
    bit(control, mode) && bit(control, kind)
}
