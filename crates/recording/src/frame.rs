//! Layouts of the file header and of block headers.

use protocol::SampleRecord;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Version of the file format; any change of layout or meaning increments it.
pub const FORMAT_VERSION: u32 = 3;

/// Oldest version that can still be read. Version 2 has neither core types nor disturbed counts.
pub const OLDEST_VERSION: u32 = 2;

/// Maximum number of samples in a block.
pub const MAX_SAMPLES: usize = 1 << 16;

/// Maximum size of a JSON payload in bytes. The final counts of every event of the largest session on every processor
/// fit.
pub const MAX_JSON: usize = 32 << 20;

/// Signature of the file. It is not valid UTF-8, and a transfer in text mode changes its line feed.
pub const MAGIC: [u8; 8] = *b"\x89HALPRF\n";

const _: () = assert!(cfg!(target_endian = "little"), "layouts are written as they are in memory");

/// Header of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct FileHeader {
    /// [`MAGIC`].
    pub magic: [u8; 8],
    /// [`FORMAT_VERSION`].
    pub version: u32,
    /// Zero.
    pub reserved: u32,
}

/// Header of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct BlockHeader {
    /// A [`BlockKind`].
    pub kind: u32,
    /// Size of the payload in bytes.
    pub length: u32,
    /// Sequence number of the block, from 0.
    pub number: u64,
    /// CRC-32 of the payload.
    pub payload_crc: u32,
    /// CRC-32 of the preceding fields.
    pub header_crc: u32,
}

const _: () = assert!(size_of::<FileHeader>() == 16 && size_of::<BlockHeader>() == 24);

impl BlockHeader {
    /// Creates the header of a block; `None` if the payload is too long for its kind.
    pub fn new(kind: BlockKind, number: u64, payload: &[u8]) -> Option<Self> {
        let length = u32::try_from(payload.len()).ok().filter(|_| payload.len() <= kind.max_payload())?;
        let header = Self { kind: kind as u32, length, number, payload_crc: crc32fast::hash(payload), header_crc: 0 };
        Some(Self { header_crc: header.checksum(), ..header })
    }

    /// Returns the correct value of [`header_crc`](Self::header_crc).
    pub fn checksum(&self) -> u32 {
        let bytes = self.as_bytes();
        crc32fast::hash(bytes.strip_suffix(self.header_crc.as_bytes()).unwrap_or(bytes))
    }
}

/// Kind of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum BlockKind {
    /// [`Session`](crate::Session).
    Session = 1,
    /// [`Process`](crate::Process).
    Process = 2,
    /// Samples.
    Samples = 3,
    /// [`Summary`](crate::Summary).
    Summary = 4,
}

impl BlockKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Session, Self::Process, Self::Samples, Self::Summary];

    /// Returns the kind with this number.
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u32 == number)
    }

    /// Returns the maximum size of the payload in bytes.
    pub fn max_payload(self) -> usize {
        match self {
            Self::Samples => MAX_SAMPLES * size_of::<SampleRecord>(),
            Self::Session | Self::Process | Self::Summary => MAX_JSON,
        }
    }
}
