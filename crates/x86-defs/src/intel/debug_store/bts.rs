//! Records of the branch trace store (BTS).

use bitfield_struct::bitfield;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// 64-bit branch trace record: a branch, an interrupt or an exception (SDM Vol. 3B 19.4.9, Figure "64-bit Branch Trace
/// Record Format").
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct BtsRecord {
    /// Last branch from: the address of the branch.
    pub from: u64,
    /// Last branch to: the target of the branch.
    pub to: u64,
    /// Flags.
    pub flags: BtsFlags,
}

/// Third word of a [`BtsRecord`] (same figure).
#[bitfield(u64)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct BtsFlags {
    #[bits(4)]
    _reserved: u8,
    /// Branch Predicted. Zero on processors that do not report predictions.
    pub predicted: bool,
    #[bits(59)]
    _reserved: u64,
}

const _: () = assert!(size_of::<BtsRecord>() == 24);
