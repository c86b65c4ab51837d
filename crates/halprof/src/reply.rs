//! Replies of the driver, validated before use.

use protocol::{ErrorCode, ReplyHeader};
use thiserror::Error;
use zerocopy::{FromBytes, IntoBytes};

/// Why a reply is invalid.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InvalidReply {
    /// The reply is shorter than its structure.
    #[error("it has {got} bytes and needs {wanted}")]
    TooShort {
        /// Bytes received.
        got: usize,
        /// Bytes required.
        wanted: usize,
    },
    /// The reply claims more bytes than the buffer has.
    #[error("it claims {claimed} bytes where there was room for {room}")]
    TooLong {
        /// Bytes claimed by the driver.
        claimed: usize,
        /// Size of the buffer.
        room: usize,
    },
    /// Records announced in the header are missing.
    #[error("it announces {announced} records and has {got} bytes of them")]
    MissingRecords {
        /// Records announced.
        announced: u32,
        /// Bytes after the header.
        got: usize,
    },
    /// The reply has more records than the total in its header.
    #[error("it carries {count} of {total} records")]
    MoreThanAll {
        /// Records in the reply.
        count: u32,
        /// Total in the header.
        total: u32,
    },
    /// The total exceeds the number of records that any driver can have.
    #[error("it announces {total} records, more than any driver has")]
    Absurd {
        /// Total in the header.
        total: u32,
    },
    /// The record is of another source than requested.
    #[error("it is about the source {got:#04x} and not about {wanted:#04x}")]
    OtherSource {
        /// The requested source.
        wanted: u64,
        /// The source in the reply.
        got: u64,
    },
    /// The list grew between all requests for it.
    #[error("its list grows faster than it can be read")]
    Growing,
    /// A stopped session returned more samples than its rings can hold.
    #[error("there are more samples in it than the driver can have kept")]
    Endless,
}

/// A reply with a complete header.
#[derive(Debug)]
pub struct Reply<B = Vec<u8>> {
    /// Header of the reply.
    pub header: ReplyHeader,
    buffer: B,
    /// Size of the reply in bytes.
    length: usize,
}

impl<B: AsRef<[u8]>> Reply<B> {
    /// Creates a reply from the buffer of a request; `length` is the number of bytes that the driver reports.
    pub fn new(buffer: B, length: usize) -> Result<Self, InvalidReply> {
        let room = buffer.as_ref().len();
        let bytes = buffer.as_ref().get(..length).ok_or(InvalidReply::TooLong { claimed: length, room })?;
        let header = prefix::<ReplyHeader>(bytes)?;
        Ok(Self { header, buffer, length })
    }

    fn bytes(&self) -> &[u8] {
        self.buffer.as_ref().get(..self.length).unwrap_or_default()
    }

    /// Returns whether the request succeeded.
    pub fn is_success(&self) -> bool {
        // NT_SUCCESS: severity success or informational.
        self.header.status >> 31 == 0 && self.header.cause == ErrorCode::None as u32
    }

    /// Returns the reply as a structure that begins with the header.
    pub fn layout<T: FromBytes>(&self) -> Result<T, InvalidReply> {
        prefix(self.bytes())
    }

    /// Returns the records after the header.
    pub fn records<T: FromBytes + IntoBytes>(&self) -> Result<Vec<T>, InvalidReply> {
        let records = self.record_bytes::<T>()?;
        Ok(records.chunks_exact(size_of::<T>()).filter_map(|chunk| T::read_from_bytes(chunk).ok()).collect())
    }

    /// Returns the bytes of the records after the header.
    pub fn record_bytes<T>(&self) -> Result<&[u8], InvalidReply> {
        let ReplyHeader { count, total, .. } = self.header;
        if count > total {
            return Err(InvalidReply::MoreThanAll { count, total });
        }
        let body = self.bytes().get(size_of::<ReplyHeader>()..).unwrap_or_default();
        let missing = InvalidReply::MissingRecords { announced: count, got: body.len() };
        let wanted = (count as usize).checked_mul(size_of::<T>()).ok_or_else(|| missing.clone())?;
        body.get(..wanted).ok_or(missing)
    }
}

fn prefix<T: FromBytes>(bytes: &[u8]) -> Result<T, InvalidReply> {
    T::read_from_prefix(bytes)
        .map(|(layout, _)| layout)
        .map_err(|_| InvalidReply::TooShort { got: bytes.len(), wanted: size_of::<T>() })
}

#[cfg(test)]
mod tests {
    use protocol::{CountRecord, InfoReply, SessionEvent, SourceRecord};
    use zerocopy::FromZeros;

    use super::*;

    fn bytes(count: u32, total: u32, body: usize) -> Vec<u8> {
        let header = ReplyHeader { count, total, ..ReplyHeader::new_zeroed() };
        [header.as_bytes(), &vec![0; body]].concat()
    }

    #[test]
    fn records_are_returned_only_if_all_announced_ones_arrived() {
        let size = size_of::<SessionEvent>();
        let cases =
            [(0, 0, 0, Some(0)), (2, 2, 2 * size, Some(2)), (1, 5, 2 * size, Some(1)), (2, 2, 2 * size - 1, None)];
        for (count, total, body, wanted) in cases {
            let bytes = bytes(count, total, body);
            let length = bytes.len();
            let records = Reply::new(bytes, length).unwrap().records::<SessionEvent>();
            assert_eq!(records.ok().map(|records| records.len()), wanted, "{count} {total} {body}");
        }
    }

    #[test]
    fn impossible_lengths_and_counts_are_rejected() {
        assert_eq!(Reply::new(vec![0; 47], 47).unwrap_err(), InvalidReply::TooShort { got: 47, wanted: 48 });
        assert_eq!(Reply::new(vec![0; 48], 49).unwrap_err(), InvalidReply::TooLong { claimed: 49, room: 48 });
        let reply = Reply::new(bytes(2, 1, 96), 144).unwrap();
        assert_eq!(reply.records::<CountRecord>().unwrap_err(), InvalidReply::MoreThanAll { count: 2, total: 1 });
        let reply = Reply::new(bytes(u32::MAX, u32::MAX, 128), 176).unwrap();
        let missing = InvalidReply::MissingRecords { announced: u32::MAX, got: 128 };
        assert_eq!(reply.records::<SourceRecord>().unwrap_err(), missing);
        let long = size_of::<InfoReply>();
        let reply = Reply::new(bytes(u32::MAX, u32::MAX, long - 48), long).unwrap();
        assert_eq!(reply.layout::<InfoReply>().map(|info| info.header.count), Ok(u32::MAX));
    }

    #[test]
    fn success_needs_a_status_and_no_cause() {
        for (status, cause, success) in
            [(0, 0, true), (0x4000_0000, 0, true), (0x8000_0005, 0, false), (0xC000_009A, 4, false), (0, 4, false)]
        {
            let header = ReplyHeader { status, cause, ..ReplyHeader::new_zeroed() };
            let reply = Reply::new(header.as_bytes().to_vec(), 48).unwrap();
            assert_eq!(reply.is_success(), success, "{status:#X} {cause}");
        }
    }
}
