//! Which branches are recorded.

use bitfield_struct::bitfield;
use x86_defs::intel::last_branches::{LbrCtl, LbrSelect};

use super::Branch;

/// The branches that are recorded: those of these modes and kinds. Requests have the same bits.
#[bitfield(u16)]
#[derive(PartialEq, Eq)]
pub struct Filter {
    /// Those that end in user mode.
    pub user: bool,
    /// Those that end in kernel mode.
    pub kernel: bool,
    /// Conditional branches.
    pub conditional: bool,
    /// Near relative jumps.
    pub direct_jump: bool,
    /// Near indirect jumps.
    pub indirect_jump: bool,
    /// Near relative calls.
    pub direct_call: bool,
    /// Near indirect calls.
    pub indirect_call: bool,
    /// Near returns.
    pub near_return: bool,
    /// Far branches, interrupts and exceptions.
    pub far: bool,
    /// Zero.
    #[bits(7)]
    pub reserved: u8,
}

impl Filter {
    /// Every branch of kernel mode.
    pub(super) const KERNEL: Self = Self::EVERY_KIND.with_kernel(true);

    const EVERY_KIND: Self = Self::new()
        .with_conditional(true)
        .with_direct_jump(true)
        .with_indirect_jump(true)
        .with_direct_call(true)
        .with_indirect_call(true)
        .with_near_return(true)
        .with_far(true);

    const fn kinds(self) -> Self {
        self.with_user(false).with_kernel(false)
    }

    /// Returns whether it asks for something that has a meaning: a mode and a kind.
    #[must_use]
    pub const fn is_sound(self) -> bool {
        (self.user() || self.kernel()) && self.kinds().0 != 0 && self.reserved() == 0
    }

    /// Returns whether it chooses by mode alone.
    pub(super) const fn has_every_kind(self) -> bool {
        self.kinds().0 == Self::EVERY_KIND.0
    }

    /// Returns whether it includes a branch, as far as its mode tells. In user mode, a return from the kernel is one of
    /// them.
    pub(super) const fn includes(self, branch: Branch) -> bool {
        let ends_in_kernel = branch.to >> 63 != 0;
        if ends_in_kernel { self.kernel() } else { self.user() }
    }

    /// Returns MSR_LBR_SELECT, or LbrSelect of AMD, whose bits exclude branches.
    pub(super) const fn select(self) -> u64 {
        LbrSelect::new()
            .with_cpl_eq_0(!self.kernel())
            .with_cpl_neq_0(!self.user())
            .with_jcc(!self.conditional())
            .with_near_rel_jmp(!self.direct_jump())
            .with_near_ind_jmp(!self.indirect_jump())
            .with_near_rel_call(!self.direct_call())
            .with_near_ind_call(!self.indirect_call())
            .with_near_ret(!self.near_return())
            .with_far_branch(!self.far())
            .into_bits()
    }

    /// Returns IA32_LBR_CTL, whose bits include branches.
    pub(super) const fn control(self) -> u64 {
        LbrCtl::new()
            .with_lbr_en(true)
            .with_os(self.kernel())
            .with_usr(self.user())
            .with_cond(self.conditional())
            .with_near_rel_jmp(self.direct_jump())
            .with_near_ind_jmp(self.indirect_jump())
            .with_near_rel_call(self.direct_call())
            .with_near_ind_call(self.indirect_call())
            .with_near_ret(self.near_return())
            .with_other_branch(self.far())
            .into_bits()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// LBR_SELECT 0x3 excludes nothing but the modes (Linux, `lbr_sel_map`: LBR_KERNEL is bit 0, LBR_USER bit 1).
    #[test]
    fn registers_have_the_bits_of_the_manuals() {
        let any = Filter::EVERY_KIND;
        for (filter, select, control) in [
            (any.with_user(true), 0x001, 0x7F_0005),
            (any.with_kernel(true), 0x002, 0x7F_0003),
            (any.with_user(true).with_kernel(true), 0x000, 0x7F_0007),
            (Filter::new().with_user(true).with_conditional(true), 0x1F9, 0x01_0005),
            (Filter::new().with_user(true).with_direct_jump(true), 0x17D, 0x02_0005),
            (Filter::new().with_user(true).with_indirect_jump(true), 0x1BD, 0x04_0005),
            (Filter::new().with_user(true).with_direct_call(true), 0x1F5, 0x08_0005),
            (Filter::new().with_user(true).with_indirect_call(true), 0x1ED, 0x10_0005),
            (Filter::new().with_user(true).with_near_return(true), 0x1DD, 0x20_0005),
            (Filter::new().with_user(true).with_far(true), 0x0FD, 0x40_0005),
        ] {
            assert!(filter.is_sound());
            assert_eq!((filter.select(), filter.control()), (select, control), "{filter:?}");
        }
    }

    #[test]
    fn a_filter_needs_a_mode_and_a_kind() {
        let any = Filter::EVERY_KIND;
        for (filter, is_sound) in [
            (Filter::new(), false),
            (any, false),
            (Filter::new().with_user(true), false),
            (any.with_user(true), true),
            (Filter::from_bits(any.with_user(true).into_bits() | 1 << 15), false),
        ] {
            assert_eq!(filter.is_sound(), is_sound, "{filter:?}");
        }
    }
}
