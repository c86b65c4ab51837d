//! Bounds of a buffer. The index is untrusted: the processor writes it, and so can any code that can write to the save
//! area.

/// A BTS or PEBS buffer of the save area. All fields are linear addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Buffer {
    /// Start of the buffer.
    pub base: u64,
    /// Address of the next record.
    pub index: u64,
    /// End of the buffer: the byte after its last record.
    pub maximum: u64,
}

impl Buffer {
    /// Returns the number of bytes written to a buffer of `length` bytes; 0 if the addresses contradict each other or
    /// `length`.
    #[must_use]
    pub fn written(self, length: usize) -> usize {
        let within = self.base <= self.index && self.index <= self.maximum;
        let bytes = if within { self.index.wrapping_sub(self.base) } else { 0 };
        usize::try_from(bytes).ok().filter(|bytes| *bytes <= length).unwrap_or(0)
    }

    /// Returns the threshold for an interrupt after `records` records of `size` bytes. 0 records count as 1, and the
    /// threshold is at most the end of the buffer.
    #[must_use]
    pub const fn threshold(self, size: u64, records: u64) -> u64 {
        let records = if records == 0 { 1 } else { records };
        let threshold = self.base.saturating_add(records.saturating_mul(size));
        if threshold < self.maximum { threshold } else { self.maximum }
    }

    /// Creates an empty buffer of as many whole records of `size` bytes as fit into `length` bytes.
    #[must_use]
    pub const fn whole(base: u64, length: u64, size: u64) -> Self {
        let records = match length.checked_div(size) {
            Some(records) => records,
            None => 0,
        };
        Self { base, index: base, maximum: base.saturating_add(records.saturating_mul(size)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn written_bytes_lie_between_base_and_index() {
        let buffer = |base, index, maximum| Buffer { base, index, maximum };
        for (buffer, written) in [
            (buffer(0x1000, 0x1000, 0x2000), 0),
            (buffer(0x1000, 0x1018, 0x2000), 0x18),
            (buffer(0x1000, 0x2000, 0x2000), 0x1000),
            (buffer(0x1000, 0x2001, 0x2000), 0),
            (buffer(0x1000, 0x0FFF, 0x2000), 0),
            (buffer(0x1000, 0x2800, 0x3000), 0),
            (buffer(u64::MAX, 0, 0), 0),
            (buffer(0, u64::MAX, u64::MAX), 0),
        ] {
            assert_eq!(buffer.written(0x1000), written, "{buffer:x?}");
        }
    }

    #[test]
    fn threshold_follows_the_requested_number_of_records() {
        let buffer = Buffer::whole(0x1000, 250, 24);
        assert_eq!(buffer.maximum, 0x1000 + 10 * 24);
        for (wanted, records) in [(0, 1), (1, 1), (9, 9), (10, 10), (11, 10), (u64::MAX, 10)] {
            assert_eq!(buffer.threshold(24, wanted), 0x1000 + records * 24, "{wanted}");
        }
    }

    proptest! {
        #[test]
        fn written_never_exceeds_the_buffer(base: u64, index: u64, maximum: u64, length in 0_usize..10_000) {
            let buffer = Buffer { base, index, maximum };
            prop_assert!(buffer.written(length) <= length);
        }

        #[test]
        fn threshold_lies_within_the_buffer(base in 0..u64::MAX / 4, length in 24..100_000_u64, records: u64) {
            let buffer = Buffer::whole(base, length, 24);
            let threshold = buffer.threshold(24, records);
            prop_assert!(buffer.base < threshold && threshold <= buffer.maximum);
            prop_assert_eq!((threshold - buffer.base) % 24, 0);
        }
    }
}
