//! A recorded branch.

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

impl Branch {
    /// Returns a branch of the legacy formats with MSR_LBR_INFO_x, which report no type.
    pub(super) const fn with_info(from: u64, to: u64, info: LbrInfo) -> Self {
        Self { from, to, cycles: info.cyc_cnt(), mispredicted: Some(info.mispred()), branch_type: None }
    }

    /// Returns a branch of architectural records.
    pub(super) const fn architectural(from: u64, to: u64, info: LbrInfo) -> Self {
        let cycles = if info.cyc_cnt_valid() { info.cyc_cnt() } else { 0 };
        let branch_type = BranchType::of_number(info.br_type());
        Self { from, to, cycles, mispredicted: Some(info.mispred()), branch_type: Some(branch_type) }
    }
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

/// Returns an address whose bits above `bit` are copies of it.
pub(super) const fn sign_extended(address: u64, bit: u32) -> u64 {
    let unused = 63 - bit;
    ((address << unused).cast_signed() >> unused).cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_extended_from_the_bit_that_the_format_says() {
        for (address, bit, extended) in [
            (0x8000_7FF6_1234_5678, 62, 0x0000_7FF6_1234_5678),
            (0x7FFF_F801_1234_5678, 62, 0xFFFF_F801_1234_5678),
            (0xFFFF_F801_1234_5678, 62, 0xFFFF_F801_1234_5678),
            (0x9FFF_F801_1234_5678, 60, 0xFFFF_F801_1234_5678),
            (0x8000_7FF6_1234_5678, 60, 0x0000_7FF6_1234_5678),
            (0x0123_7FF6_1234_5678, 47, 0x0000_7FF6_1234_5678),
            (0x0123_F801_1234_5678, 47, 0xFFFF_F801_1234_5678),
            (0x03FF_F801_1234_5678, 57, 0xFFFF_F801_1234_5678),
        ] {
            assert_eq!(sign_extended(address, bit), extended, "{address:#x} from bit {bit}");
        }
    }

    #[test]
    fn only_architectural_records_say_whether_cycles_are_valid_and_which_type_a_branch_has() {
        let info = LbrInfo::new().with_cyc_cnt(7).with_br_type(5).with_mispred(true);
        let expected = Branch { from: 1, to: 2, cycles: 7, mispredicted: Some(true), branch_type: None };
        assert_eq!(Branch::with_info(1, 2, info), expected);
        let architectural = Branch { cycles: 0, branch_type: Some(BranchType::Return), ..expected };
        assert_eq!(Branch::architectural(1, 2, info), architectural);
        let valid = Branch::architectural(1, 2, info.with_cyc_cnt_valid(true).with_br_type(9));
        assert_eq!(valid, Branch { cycles: 7, branch_type: Some(BranchType::Other), ..expected });
    }
}
