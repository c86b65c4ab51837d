//! Last branch records: legacy ones, which depend on the model, and architectural ones.

use bitfield_struct::bitfield;

/// MSR_LASTBRANCH_0_FROM_IP of processors before Nehalem, and of Silvermont and Airmont (SDM Vol. 4, tables of these
/// processors).
pub const MSR_LASTBRANCH_FROM_EARLY: u32 = 0x040;

/// MSR_LASTBRANCH_0_TO_IP of the same processors.
pub const MSR_LASTBRANCH_TO_EARLY: u32 = 0x060;

/// MSR_LASTBRANCH_0_FROM_IP of the others: entry n is at this address plus n (SDM Vol. 4).
pub const MSR_LASTBRANCH_FROM: u32 = 0x680;

/// MSR_LASTBRANCH_0_TO_IP of the others.
pub const MSR_LASTBRANCH_TO: u32 = 0x6C0;

/// MSR_LBR_INFO_0: [`LbrInfo`], with the formats that have it.
pub const MSR_LBR_INFO: u32 = 0xDC0;

/// MSR_LASTBRANCH_TOS: the index of the newest entry; read-only (SDM Vol. 4).
pub const MSR_LASTBRANCH_TOS: u32 = 0x1C9;

/// MSR_LBR_SELECT: [`LbrSelect`] (SDM Vol. 3B 19.9.2).
pub const MSR_LBR_SELECT: u32 = 0x1C8;

/// IA32_LBR_CTL: [`LbrCtl`] (SDM Vol. 3B, "Last Branch Records"; Vol. 4, "Architectural MSRs").
pub const IA32_LBR_CTL: u32 = 0x14CE;

/// IA32_LBR_DEPTH: the number of entries. A write sets all of them to zero.
pub const IA32_LBR_DEPTH: u32 = 0x14CF;

/// IA32_LBR_0_FROM_IP; entry 0 is the newest.
pub const IA32_LBR_FROM: u32 = 0x1500;

/// IA32_LBR_0_TO_IP.
pub const IA32_LBR_TO: u32 = 0x1600;

/// IA32_LBR_0_INFO: [`LbrInfo`].
pub const IA32_LBR_INFO: u32 = 0x1200;

/// MSR_LBR_SELECT: a set bit keeps branches from being recorded, except the last one (SDM Vol. 3B 19.9.2).
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct LbrSelect {
    /// CPL_EQ_0: those that end in ring 0.
    pub cpl_eq_0: bool,
    /// CPL_NEQ_0: those that end in rings 1 to 3.
    pub cpl_neq_0: bool,
    /// JCC: conditional branches.
    pub jcc: bool,
    /// NEAR_REL_CALL.
    pub near_rel_call: bool,
    /// NEAR_IND_CALL.
    pub near_ind_call: bool,
    /// NEAR_RET.
    pub near_ret: bool,
    /// NEAR_IND_JMP.
    pub near_ind_jmp: bool,
    /// NEAR_REL_JMP.
    pub near_rel_jmp: bool,
    /// FAR_BRANCH.
    pub far_branch: bool,
    /// EN_CALLSTACK: call-stack mode, from Haswell on.
    pub en_callstack: bool,
    #[bits(54)]
    _reserved: u64,
}

/// IA32_LBR_CTL: a set bit lets branches be recorded (SDM Vol. 4, "Architectural MSRs").
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct LbrCtl {
    /// LBREn.
    pub lbr_en: bool,
    /// OS: those that end in ring 0.
    pub os: bool,
    /// USR: those that end in rings 1 to 3.
    pub usr: bool,
    /// CALL_STACK: call-stack mode.
    pub call_stack: bool,
    #[bits(12)]
    _reserved: u16,
    /// COND: conditional branches.
    pub cond: bool,
    /// NEAR_REL_JMP.
    pub near_rel_jmp: bool,
    /// NEAR_IND_JMP.
    pub near_ind_jmp: bool,
    /// NEAR_REL_CALL.
    pub near_rel_call: bool,
    /// NEAR_IND_CALL.
    pub near_ind_call: bool,
    /// NEAR_RET.
    pub near_ret: bool,
    /// OTHER_BRANCH.
    pub other_branch: bool,
    #[bits(41)]
    _reserved: u64,
}

/// MSR_LBR_INFO_x and IA32_LBR_x_INFO. The upper fields are zero in the legacy formats (SDM Vol. 3B, "LBR_INFO").
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct LbrInfo {
    /// CYC_CNT: core clock cycles since the branch before, saturating.
    pub cyc_cnt: u16,
    #[bits(16)]
    _reserved: u16,
    /// Occurrences of counters 0 to 3, if they log events.
    pub pmc_cnt: u8,
    #[bits(16)]
    _reserved: u16,
    /// BR_TYPE: type of the branch.
    #[bits(4)]
    pub br_type: u8,
    /// CYC_CNT_VALID.
    pub cyc_cnt_valid: bool,
    /// TSX_ABORT.
    pub tsx_abort: bool,
    /// IN_TSX.
    pub in_tsx: bool,
    /// MISPRED.
    pub mispred: bool,
}
