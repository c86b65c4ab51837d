//! Why a recording cannot be read.

use std::io;

use thiserror::Error;

use crate::frame::FORMAT_VERSION;

/// Why no more blocks can be read. The blocks that were read before are complete and their checksums are correct.
#[derive(Debug, Error)]
pub enum ReadError {
    /// The system cannot read the file.
    #[error("the file cannot be read at byte {offset}")]
    Read {
        /// Start of the part that cannot be read.
        offset: u64,
        /// Error of the system.
        #[source]
        cause: io::Error,
    },
    /// The file is not a recording.
    #[error("the file is not a recording")]
    NotARecording,
    /// The recording has another version of the format.
    #[error("the recording has format version {file}, but this program reads version {FORMAT_VERSION}")]
    Version {
        /// Version of the file.
        file: u32,
    },
    /// The summary is missing: the writer was terminated, or is still writing.
    #[error("the recording was cut off after {offset} bytes")]
    CutOff {
        /// Size in bytes of the complete blocks and the file header.
        offset: u64,
    },
    /// The contents of the file are invalid.
    #[error("the recording is damaged at byte {offset}")]
    Damaged {
        /// Start of the invalid block, or of the file header.
        offset: u64,
        /// Defect of the block.
        #[source]
        cause: BlockError,
    },
}

/// Defect of a block or of the file header.
#[derive(Debug, Error)]
pub enum BlockError {
    /// The reserved field of the file header is not zero.
    #[error("the reserved field of the file header is {0:#x} instead of zero")]
    FileHeader(u32),
    /// The checksum of the block header is wrong.
    #[error("the checksum of the block header is wrong")]
    BlockHeader,
    /// The checksum of the payload is wrong.
    #[error("the checksum of the payload of {length} bytes is wrong")]
    Payload {
        /// Size of the payload in bytes.
        length: u32,
    },
    /// Blocks are missing, repeated or out of order.
    #[error("the block has number {found} instead of {expected}")]
    Order {
        /// Sequence number that the block should have.
        expected: u64,
        /// Sequence number of the block.
        found: u64,
    },
    /// This version of the format does not have the kind.
    #[error("block kind {0} is unknown")]
    Kind(u32),
    /// The payload is longer than its kind allows.
    #[error("the block has {length} bytes, but at most {max} are allowed")]
    TooLong {
        /// Size of the payload in bytes.
        length: u32,
        /// Maximum size of the payload in bytes.
        max: usize,
    },
    /// The checksum of the numbers at the start of a sample block is wrong, or they are incomplete.
    #[error("the start of the block of samples is invalid")]
    SamplesHead,
    /// The columns of a block cannot be decompressed.
    #[error("the columns of the block cannot be decompressed")]
    Compression(#[source] io::Error),
    /// The columns of a sample block are not those of samples.
    #[error("the columns of the block's samples are invalid")]
    Columns,
    /// The checksum of the numbers at the start of a block of stacks is wrong, or they are invalid.
    #[error("the start of the block of stacks is invalid")]
    StacksHead,
    /// Call stacks are missing, repeated or out of order.
    #[error("the stacks of the block begin with number {found} instead of {expected}")]
    StackOrder {
        /// Number that the first stack should have.
        expected: u32,
        /// Number of the first stack.
        found: u32,
    },
    /// The columns of a block of stacks are not those of stacks.
    #[error("the stacks of the block are invalid")]
    Stacks,
    /// A sample has a call stack that the recording does not have.
    #[error("there is no stack with number {0}")]
    UnknownStack(u32),
    /// The payload is not JSON, or does not match the kind of the block.
    #[error("the JSON of the block is invalid")]
    Json(#[from] serde_json::Error),
    /// The first block is not a session, or a later block is one.
    #[error("the first block must be a session, and no other block may be one")]
    Session,
    /// A session has more events or processors than any machine.
    #[error("the session has {found} {what}, but at most {max} are allowed")]
    SessionSize {
        /// `events` or `processors`.
        what: &'static str,
        /// Their number.
        found: usize,
        /// Maximum number.
        max: usize,
    },
    /// A part follows that is not of the same recording.
    #[error("the part that follows is of another recording")]
    Part,
    /// Data follows the summary.
    #[error("the file continues after the summary")]
    AfterEnd,
}
