//! What an entry holds, by its layout.

use x86_defs::amd::last_branches::{LbrFrom, LbrTo};
use x86_defs::intel::last_branches::LbrInfo;

/// A branch that the processor took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Branch {
    /// Address of the branch instruction. On AMD, that of the instruction before it if the processor executes both as
    /// one.
    pub from: u64,
    /// Address of the target.
    pub to: u64,
    /// Core clock cycles since the branch before it, saturating; 0 if the processor does not count them.
    pub cycles: u16,
    /// Whether the processor had predicted it otherwise; `None` if it does not report that.
    pub mispredicted: Option<bool>,
    /// Its type, if the processor reports it.
    pub branch_type: Option<BranchType>,
}

/// Type of a branch, with its number in IA32_LBR_x_INFO.BR_TYPE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
#[expect(missing_docs, reason = "the names say it")]
pub enum BranchType {
    Conditional = 0,
    IndirectJump = 1,
    DirectJump = 2,
    IndirectCall = 3,
    DirectCall = 4,
    Return = 5,
    /// All other numbers.
    Other = 6,
}

impl BranchType {
    const fn of_number(number: u8) -> Self {
        match number {
            0 => Self::Conditional,
            1 => Self::IndirectJump,
            2 => Self::DirectJump,
            3 => Self::IndirectCall,
            4 => Self::DirectCall,
            5 => Self::Return,
            _ => Self::Other,
        }
    }
}

/// What an entry holds: that of Intel by LBR_FMT of IA32_PERF_CAPABILITIES (SDM Vol. 3B 19.4.8.1; Linux,
/// arch/x86/events/intel/lbr.c).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// 1 and 2: addresses.
    Addresses,
    /// 3: FROM\[63\] is a misprediction.
    Mispredicted,
    /// 4: also FROM\[62:61\], about transactions.
    Transactions,
    /// 5 and 7: MSR_LBR_INFO_x has everything else.
    Info,
    /// 6: 3, and TO\[63:48\] are cycles.
    Cycles,
    /// Architectural records: the third register has everything else.
    Architectural,
    /// AMD's version 2.
    Amd,
}

impl Layout {
    /// Returns the layout of a legacy format.
    pub const fn of_format(format: u8) -> Option<Self> {
        match format {
            1 | 2 => Some(Self::Addresses),
            3 => Some(Self::Mispredicted),
            4 => Some(Self::Transactions),
            5 | 7 => Some(Self::Info),
            6 => Some(Self::Cycles),
            _ => None,
        }
    }

    /// Returns whether an entry has a third register.
    pub const fn has_info(self) -> bool {
        matches!(self, Self::Info | Self::Architectural)
    }

    /// Returns whether an entry is empty, and so are those before it: deep sleep empties all at once. That of Intel has
    /// no source then, that of AMD neither of the bits of its target.
    pub const fn is_empty(self, from_or_to: u64) -> bool {
        match self {
            Self::Amd => {
                let to = LbrTo::from_bits(from_or_to);
                !to.valid() && !to.spec()
            }
            _ => from_or_to == 0,
        }
    }

    /// Returns the branch of an entry that is not empty; `None` for one of AMD that was not taken, or is no branch.
    pub const fn branch(self, from: u64, to: u64, info: u64) -> Option<Branch> {
        let by_sign = Some(from >> 63 != 0);
        let plain = Branch { from, to, cycles: 0, mispredicted: None, branch_type: None };
        let info = LbrInfo::from_bits(info);
        Some(match self {
            Self::Addresses => plain,
            Self::Mispredicted => Branch { from: sign_extended(from, 62), mispredicted: by_sign, ..plain },
            Self::Transactions => Branch { from: sign_extended(from, 60), mispredicted: by_sign, ..plain },
            Self::Cycles => {
                let [.., low, high] = to.to_le_bytes();
                let (from, to) = (sign_extended(from, 62), sign_extended(to, 47));
                Branch { from, to, cycles: u16::from_le_bytes([low, high]), mispredicted: by_sign, branch_type: None }
            }
            Self::Info => Branch { cycles: info.cyc_cnt(), mispredicted: Some(info.mispred()), ..plain },
            Self::Architectural => {
                let cycles = if info.cyc_cnt_valid() { info.cyc_cnt() } else { 0 };
                let branch_type = Some(BranchType::of_number(info.br_type()));
                Branch { cycles, mispredicted: Some(info.mispred()), branch_type, ..plain }
            }
            Self::Amd => {
                let (from, to) = (LbrFrom::from_bits(from), LbrTo::from_bits(to));
                if !to.valid() || to.is_no_branch() {
                    return None;
                }
                let mispredicted = Some(from.mispredict());
                Branch { from: sign_extended(from.ip(), 57), to: sign_extended(to.ip(), 57), mispredicted, ..plain }
            }
        })
    }
}

/// Returns an address whose bits above `bit` are copies of it.
const fn sign_extended(address: u64, bit: u32) -> u64 {
    let unused = 63 - bit;
    ((address << unused).cast_signed() >> unused).cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const USER: u64 = 0x7FF6_1234_5678;
    const KERNEL: u64 = 0xFFFF_F801_1234_5678;
    const PLAIN: Branch = Branch { from: USER, to: KERNEL, cycles: 0, mispredicted: None, branch_type: None };

    #[test]
    fn each_legacy_format_has_its_addresses_and_its_flags() {
        let (right, wrong) = (Some(false), Some(true));
        let back = Branch { from: KERNEL, to: USER, ..PLAIN };
        for (format, from, to, info, expected) in [
            (1, USER, KERNEL, 0, PLAIN),
            (2, USER, KERNEL, 0, PLAIN),
            (3, USER, KERNEL, 0, Branch { mispredicted: right, ..PLAIN }),
            (3, USER | 1 << 63, KERNEL, 0, Branch { mispredicted: wrong, ..PLAIN }),
            (3, KERNEL & !(1 << 63), USER, 0, Branch { mispredicted: right, ..back }),
            (4, USER | 7 << 61, KERNEL, 0, Branch { mispredicted: wrong, ..PLAIN }),
            // Without transactions, bits 62 and 61 are zero and no copies of the sign.
            (4, KERNEL & !(7 << 61), USER, 0, Branch { mispredicted: right, ..back }),
            (5, USER, KERNEL, 1 << 63 | 7, Branch { cycles: 7, mispredicted: wrong, ..PLAIN }),
            (7, USER, KERNEL, 7, Branch { cycles: 7, mispredicted: right, ..PLAIN }),
            (6, USER, KERNEL << 16 >> 16 | 9 << 48, 0, Branch { cycles: 9, mispredicted: right, ..PLAIN }),
        ] {
            assert_eq!(Layout::of_format(format).unwrap().branch(from, to, info), Some(expected), "format {format}");
        }
        for format in [0, 8, 0x3F] {
            assert_eq!(Layout::of_format(format), None, "format {format}");
        }
    }

    #[test]
    fn architectural_records_say_whether_cycles_are_valid_and_which_type_a_branch_has() {
        let info = LbrInfo::new().with_cyc_cnt(7).with_br_type(5).with_mispred(true);
        let branch = |info: LbrInfo| Layout::Architectural.branch(USER, KERNEL, info.into_bits());
        let expected = Branch { mispredicted: Some(true), branch_type: Some(BranchType::Return), ..PLAIN };
        assert_eq!(branch(info), Some(expected));
        let valid = branch(info.with_cyc_cnt_valid(true).with_br_type(9));
        assert_eq!(valid, Some(Branch { cycles: 7, branch_type: Some(BranchType::Other), ..expected }));
    }

    #[test]
    fn amds_entries_are_branches_only_if_they_retired_and_are_some() {
        let (from, to) = ((KERNEL & ((1 << 58) - 1)) | 1 << 63, USER);
        let (valid, speculative, no_branch) = (1_u64 << 63, 1_u64 << 62, 1_u64 << 61);
        let taken = Branch { from: KERNEL, to: USER, mispredicted: Some(true), ..PLAIN };
        for (bits, is_empty, expected) in [
            (0, true, None),
            (no_branch, true, None),
            (speculative, false, None),
            (valid, false, Some(taken)),
            (valid | speculative, false, Some(taken)),
            (valid | no_branch, false, None),
        ] {
            assert_eq!(Layout::Amd.is_empty(to | bits), is_empty, "{bits:#x}");
            assert_eq!(Layout::Amd.branch(from, to | bits, 0), expected, "{bits:#x}");
        }
    }
}
