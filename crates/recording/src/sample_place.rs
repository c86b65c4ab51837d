//! The fields of a sample, and what the samples of a place share.

use protocol::{RecordKind, SampleRecord};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The fields of a [`SampleRecord`], as its documentation names them.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Row {
    pub time: u64,
    pub address: u64,
    pub ids: [u32; 2],
    pub processor: u32,
    pub source: u32,
    pub number: u32,
    pub kind: u16,
    pub mode: u16,
    pub last: u64,
}

const _: () = assert!(size_of::<Row>() == size_of::<SampleRecord>());

/// What the samples of a place have in common. The target is part of a branch; of other kinds, the last field counts
/// upward and is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SamplePlace {
    pub address: u64,
    pub target: u64,
    pub ids: [u32; 2],
    pub source: u32,
    pub kind: u16,
    pub mode: u16,
    /// Number of the call stack.
    pub stack: u32,
}

impl SamplePlace {
    pub fn of(row: &Row, stack: u32) -> Self {
        let Row { address, ids, source, kind, mode, last, .. } = *row;
        Self { address, target: if is_branch(kind) { last } else { 0 }, ids, source, kind, mode, stack }
    }

    /// Returns a record with the fields of the place; the others are zero.
    pub fn record(self) -> SampleRecord {
        let Self { address, target, ids, source, kind, mode, .. } = self;
        let row = Row { time: 0, address, ids, processor: 0, source, number: 0, kind, mode, last: target };
        zerocopy::transmute!(row)
    }
}

pub const fn is_branch(kind: u16) -> bool {
    kind == RecordKind::Branch as u16 || kind == RecordKind::LastBranch as u16
}
