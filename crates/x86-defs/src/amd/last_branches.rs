//! Last Branch Stack version 2 (APM Vol. 2 13.1.1.9; PPR for family 19h models 10h to 1Fh).

use bitfield_struct::bitfield;

/// DebugExtnCtl, MSRC000_010F: [`DebugExtnCtl`].
pub const DEBUG_EXTN_CTL: u32 = 0xC000_010F;

/// LbrSelect, MSRC000_010E: the layout of [`LbrSelect`](crate::intel::last_branches::LbrSelect) in bits 8:0.
pub const LBR_SELECT: u32 = 0xC000_010E;

/// LbrStackFromIp of entry 0, the newest: [`LbrFrom`]. That of entry n is at this address plus 2n; its
/// [`LbrTo`] follows it.
pub const LBR_STACK_FROM: u32 = 0xC001_0300;

/// DebugExtnCtl (PPR for family 19h, MSRC000_010F).
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct DebugExtnCtl {
    #[bits(2)]
    _reserved: u8,
    /// BrsEn: Branch Sampling of Zen 3.
    pub brs_en: bool,
    #[bits(3)]
    _other: u8,
    /// LbrV2En: records last branches.
    pub lbr_v2_en: bool,
    #[bits(57)]
    _reserved: u64,
}

/// LbrStackFromIp.
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct LbrFrom {
    /// Address of the branch, without the copies of its sign.
    #[bits(58)]
    pub ip: u64,
    #[bits(5)]
    _reserved: u8,
    /// Mispredict.
    pub mispredict: bool,
}

/// LbrStackToIp.
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct LbrTo {
    /// Address of the target, without the copies of its sign.
    #[bits(58)]
    pub ip: u64,
    #[bits(3)]
    _reserved: u8,
    /// Reserved. Set in entries that are no branches (erratum 1452).
    pub is_no_branch: bool,
    /// Spec: the branch was recorded before it retired.
    pub spec: bool,
    /// Valid. With `spec`, the branch was on the right path.
    pub valid: bool,
}
