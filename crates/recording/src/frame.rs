//! The layouts around the payloads.

use protocol::Sample;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Version of the file; it changes with any layout or meaning.
pub const FORMAT_VERSION: u32 = 2;

/// The most samples in a block.
pub const MOST_SAMPLES: usize = 1 << 16;

/// The most bytes of a JSON payload: the final counts of every event that a session can have on every processor.
pub const MOST_TEXT: usize = 32 << 20;

/// No text, and damaged by a transfer that takes it for text.
pub const MAGIC: [u8; 8] = *b"\x89HALPRF\n";

const _: () = assert!(cfg!(target_endian = "little"), "layouts are written as they lie in memory");

/// The beginning of the file.
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

/// The beginning of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct BlockHead {
    /// A [`BlockKind`].
    pub kind: u32,
    /// Bytes of the payload.
    pub length: u32,
    /// Number of the block, from 0.
    pub number: u64,
    /// CRC-32 of the payload.
    pub payload: u32,
    /// CRC-32 of the fields before.
    pub head: u32,
}

const _: () = assert!(size_of::<FileHeader>() == 16 && size_of::<BlockHead>() == 24);

impl BlockHead {
    /// The head of the block with this number and payload; `None` where a payload of its kind can not be so long.
    pub fn new(kind: BlockKind, number: u64, payload: &[u8]) -> Option<Self> {
        let length = u32::try_from(payload.len()).ok().filter(|_| payload.len() <= kind.longest())?;
        let head = Self { kind: kind as u32, length, number, payload: crc32fast::hash(payload), head: 0 };
        Some(Self { head: head.checksum(), ..head })
    }

    /// What [`head`](Self::head) should be.
    pub fn checksum(&self) -> u32 {
        let bytes = self.as_bytes();
        crc32fast::hash(bytes.strip_suffix(self.head.as_bytes()).unwrap_or(bytes))
    }
}

/// What a block holds.
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

    /// The kind with this number.
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u32 == number)
    }

    /// The most bytes of its payload.
    pub fn longest(self) -> usize {
        match self {
            Self::Samples => MOST_SAMPLES * size_of::<Sample>(),
            Self::Session | Self::Process | Self::Summary => MOST_TEXT,
        }
    }
}
