//! Layouts of the file header and of block headers.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Version of the file format; any change of layout or meaning increments it.
pub const FORMAT_VERSION: u32 = 6;

/// Maximum number of samples in a block.
pub const MAX_SAMPLES: usize = 1 << 16;

/// Maximum number of processors of a session, which is that of Windows.
pub const MAX_PROCESSORS: usize = 1 << 11;

/// Maximum size of a JSON payload in bytes. The final counts of every event of the largest session on every processor
/// fit.
pub const MAX_JSON: usize = 32 << 20;

/// Maximum size of the columns of a block before compression: 37 bytes for each place, 26 for each sample, and one for
/// the width of each column.
pub const MAX_COLUMNS: usize = MAX_SAMPLES * (37 + 26) + 13;

/// Maximum number of nodes in a block of stacks.
pub const MAX_NODES: usize = 1 << 16;

/// Maximum size of the columns of a block of stacks before compression: 12 bytes for each node, and one for the width
/// of each column.
pub const MAX_STACK_COLUMNS: usize = MAX_NODES * 12 + 2;

/// Returns the maximum size of a zstd frame with columns that cannot be compressed (ZSTD_COMPRESSBOUND).
const fn max_frame(columns: usize) -> usize {
    columns + columns / 256
}

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

/// Start of the payload of a sample block, which can be read without the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SamplesHead {
    /// Earliest time of a sample.
    pub earliest: u64,
    /// Latest time of a sample.
    pub latest: u64,
    /// Number of samples.
    pub samples: u32,
    /// Number of places.
    pub places: u32,
    /// Size of the columns in bytes before compression.
    pub columns: u32,
    /// CRC-32 of the preceding fields.
    pub crc: u32,
}

/// Start of the payload of a block of stacks, which can be read without the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct StacksHead {
    /// Number of the first node.
    pub first: u32,
    /// Number of nodes.
    pub nodes: u32,
    /// Size of the columns in bytes before compression.
    pub columns: u32,
    /// CRC-32 of the preceding fields.
    pub crc: u32,
}

const _: () = assert!(size_of::<FileHeader>() == 16 && size_of::<BlockHeader>() == 24);
const _: () = assert!(size_of::<SamplesHead>() == 32 && size_of::<StacksHead>() == 16);

impl StacksHead {
    /// Creates the start of a payload.
    pub fn new([first, nodes, columns]: [u32; 3]) -> Self {
        let head = Self { first, nodes, columns, crc: 0 };
        Self { crc: head.checksum(), ..head }
    }

    /// Returns the correct value of [`crc`](Self::crc).
    pub fn checksum(&self) -> u32 {
        let bytes = self.as_bytes();
        crc32fast::hash(bytes.strip_suffix(self.crc.as_bytes()).unwrap_or(bytes))
    }
}

impl SamplesHead {
    /// Creates the start of a payload.
    pub fn new([samples, places, columns]: [u32; 3], [earliest, latest]: [u64; 2]) -> Self {
        let head = Self { earliest, latest, samples, places, columns, crc: 0 };
        Self { crc: head.checksum(), ..head }
    }

    /// Returns the correct value of [`crc`](Self::crc).
    pub fn checksum(&self) -> u32 {
        let bytes = self.as_bytes();
        crc32fast::hash(bytes.strip_suffix(self.crc.as_bytes()).unwrap_or(bytes))
    }
}

impl BlockHeader {
    /// Creates the header of a block with a payload of these parts; `None` if it is too long for its kind.
    pub fn new(kind: BlockKind, number: u64, payload: [&[u8]; 2]) -> Option<Self> {
        let length: usize = payload.iter().map(|part| part.len()).sum();
        let max = kind.max_payload();
        let length = u32::try_from(length).ok().filter(|length| *length as usize <= max)?;
        let mut payload_crc = crc32fast::Hasher::new();
        for part in payload {
            payload_crc.update(part);
        }
        let payload_crc = payload_crc.finalize();
        let header = Self { kind: kind as u32, length, number, payload_crc, header_crc: 0 };
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
    /// [`RecordedSession`](crate::RecordedSession).
    Session = 1,
    /// [`Process`](crate::Process).
    Process = 2,
    /// Samples.
    Samples = 3,
    /// [`Summary`](crate::Summary).
    Summary = 4,
    /// Nodes of the [tree of call stacks](crate::StackTree).
    Stacks = 5,
    /// [`Methods`](crate::Methods).
    Methods = 6,
}

impl BlockKind {
    /// Every kind.
    pub const ALL: [Self; 6] =
        [Self::Session, Self::Process, Self::Samples, Self::Summary, Self::Stacks, Self::Methods];

    /// Returns the kind with this number.
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u32 == number)
    }

    /// Returns the maximum size of the payload in bytes.
    pub const fn max_payload(self) -> usize {
        match self {
            Self::Samples => size_of::<SamplesHead>() + max_frame(MAX_COLUMNS),
            Self::Stacks => size_of::<StacksHead>() + max_frame(MAX_STACK_COLUMNS),
            Self::Session | Self::Process | Self::Summary | Self::Methods => MAX_JSON,
        }
    }
}
