//! BTS records (SDM Vol. 3B, "BTS and DS Save Area": 64-bit branch trace record).

use x86_defs::intel::debug_store::bts::BtsRecord;
use zerocopy::FromBytes;

/// Returns the complete records in the written part of a buffer, oldest first. An incomplete last record is ignored.
pub fn records(written: &[u8]) -> impl Iterator<Item = BtsRecord> {
    written.chunks_exact(size_of::<BtsRecord>()).filter_map(|bytes| BtsRecord::read_from_bytes(bytes).ok())
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
        let found: Vec<_> = records(&bytes).map(|record| (record.from, record.to, record.flags.predicted())).collect();
        assert_eq!(found, [(0x1400_1000, 0x1400_2000, true), (0xFFFF_F800_0000_1000, 0x1400_3000, false)]);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_as_many_records_as_fit(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            prop_assert_eq!(records(&bytes).count(), bytes.len() / 24);
        }
    }
}
