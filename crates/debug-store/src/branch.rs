//! BTS records (SDM Vol. 3B, "BTS and DS Save Area": 64-bit branch trace record).

use bitfield_struct::bitfield;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Record of a branch, an interrupt or an exception.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct BranchRecord {
    /// Address of the branch instruction.
    pub from: u64,
    /// Address of the target.
    pub to: u64,
    /// See [`BranchFlags`].
    pub flags: u64,
}

const _: () = assert!(size_of::<BranchRecord>() == 24);

/// Third word of a record.
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct BranchFlags {
    #[bits(4)]
    __: u8,
    /// Branch Predicted; always 0 on processors that do not report it.
    pub predicted: bool,
    #[bits(59)]
    __: u64,
}

impl BranchRecord {
    /// Returns whether the processor reported the branch as predicted.
    #[must_use]
    pub const fn predicted(&self) -> bool {
        BranchFlags::from_bits(self.flags).predicted()
    }
}

/// Returns the complete records in the written part of a buffer, oldest first. An incomplete last record is ignored.
pub fn records(written: &[u8]) -> impl Iterator<Item = BranchRecord> {
    written.chunks_exact(size_of::<BranchRecord>()).filter_map(|bytes| BranchRecord::read_from_bytes(bytes).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn record_has_source_target_and_prediction() {
        let mut bytes = Vec::new();
        for word in [0x1400_1000_u64, 0x1400_2000, 0x10, 0xFFFF_F800_0000_1000, 0x1400_3000, 0] {
            bytes.extend(word.to_le_bytes());
        }
        let found: Vec<_> = records(&bytes).map(|record| (record.from, record.to, record.predicted())).collect();
        assert_eq!(found, [(0x1400_1000, 0x1400_2000, true), (0xFFFF_F800_0000_1000, 0x1400_3000, false)]);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_as_many_records_as_fit(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            prop_assert_eq!(records(&bytes).count(), bytes.len() / 24);
        }
    }
}
