//! Reads a recording block by block.

use std::io::{self, Read};

use protocol::SampleRecord;
use serde::de::DeserializeOwned;
use thiserror::Error;
use zerocopy::{FromZeros, IntoBytes};

use crate::block::Block;
use crate::frame::{BlockHeader, BlockKind, FORMAT_VERSION, FileHeader, MAGIC, OLDEST_VERSION};

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
    #[error(
        "the recording has format version {file}, but this program reads versions {OLDEST_VERSION} to {FORMAT_VERSION}"
    )]
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
    /// The size of the payload is not a multiple of the size of a sample.
    #[error("{0} bytes are not a whole number of samples")]
    PartialSample(u32),
    /// The payload is not JSON, or does not match the kind of the block.
    #[error("the JSON of the block is invalid")]
    Json(#[from] serde_json::Error),
    /// The first block is not a session, or a later block is one.
    #[error("the first block must be a session, and no other block may be one")]
    Session,
    /// Data follows the summary.
    #[error("the file continues after the summary")]
    AfterEnd,
}

/// An iterator over the blocks of a recording. Unless it ends after a summary, its last item is an error.
///
/// One block at a time is in memory, at most 32 MiB.
#[derive(Debug)]
pub struct Reader<R> {
    source: R,
    /// Offset of the next block in the file.
    offset: u64,
    number: u64,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Blocks,
    Summarized,
    Done,
}

impl<R: Read> Reader<R> {
    /// Reads the file header.
    ///
    /// # Errors
    /// If the file cannot be read, or is not a recording of this version.
    pub fn new(mut source: R) -> Result<Self, ReadError> {
        let mut header = FileHeader::new_zeroed();
        let length =
            read_full(&mut source, header.as_mut_bytes()).map_err(|cause| ReadError::Read { offset: 0, cause })?;
        let FileHeader { magic, version, reserved } = header;
        let whole = length == size_of::<FileHeader>();
        let begun = length.min(MAGIC.len());
        if length == 0 || magic.get(..begun) != MAGIC.get(..begun) {
            return Err(ReadError::NotARecording);
        }
        if !whole {
            return Err(ReadError::CutOff { offset: 0 });
        }
        if !(OLDEST_VERSION..=FORMAT_VERSION).contains(&version) {
            return Err(ReadError::Version { file: version });
        }
        if reserved != 0 {
            return Err(ReadError::Damaged { offset: 0, cause: BlockError::FileHeader(reserved) });
        }
        Ok(Self { source, offset: length as u64, number: 0, state: State::Blocks })
    }

    /// Reads the next block; `None` at the end of the file.
    fn block(&mut self) -> Result<Option<Block>, ReadError> {
        let mut header = BlockHeader::new_zeroed();
        let length = self.fill(header.as_mut_bytes())?;
        match (self.state, length) {
            (State::Summarized, 0) => return Ok(None),
            (State::Summarized, _) => return Err(self.damaged(BlockError::AfterEnd)),
            (_, length) if length < size_of::<BlockHeader>() => return Err(ReadError::CutOff { offset: self.offset }),
            _ => {}
        }
        let kind = self.check(&header).map_err(|damage| self.damaged(damage))?;
        let block = match kind {
            BlockKind::Session => Block::Session(self.json(&header)?),
            BlockKind::Process => Block::Process(self.json(&header)?),
            BlockKind::Samples => Block::Samples(self.samples(&header)?),
            BlockKind::Summary => Block::Summary(self.json(&header)?),
        };
        self.offset += size_of::<BlockHeader>() as u64 + u64::from(header.length);
        self.number += 1;
        if kind == BlockKind::Summary {
            self.state = State::Summarized;
        }
        Ok(Some(block))
    }

    /// Checks that a block with this header is valid at this position, and returns its kind.
    fn check(&self, header: &BlockHeader) -> Result<BlockKind, BlockError> {
        if header.checksum() != header.header_crc {
            return Err(BlockError::BlockHeader);
        }
        if header.number != self.number {
            return Err(BlockError::Order { expected: self.number, found: header.number });
        }
        let kind = BlockKind::from_number(header.kind).ok_or(BlockError::Kind(header.kind))?;
        if (kind == BlockKind::Session) != (self.number == 0) {
            return Err(BlockError::Session);
        }
        if header.length as usize > kind.max_payload() {
            return Err(BlockError::TooLong { length: header.length, max: kind.max_payload() });
        }
        if kind == BlockKind::Samples && !(header.length as usize).is_multiple_of(size_of::<SampleRecord>()) {
            return Err(BlockError::PartialSample(header.length));
        }
        Ok(kind)
    }

    fn json<T: DeserializeOwned>(&mut self, header: &BlockHeader) -> Result<T, ReadError> {
        let mut payload = vec![0; header.length as usize];
        self.payload(header, &mut payload)?;
        serde_json::from_slice(&payload).map_err(|cause| self.damaged(cause.into()))
    }

    fn samples(&mut self, header: &BlockHeader) -> Result<Vec<SampleRecord>, ReadError> {
        let mut samples = vec![SampleRecord::new_zeroed(); header.length as usize / size_of::<SampleRecord>()];
        self.payload(header, samples.as_mut_bytes())?;
        Ok(samples)
    }

    fn payload(&mut self, header: &BlockHeader, payload: &mut [u8]) -> Result<(), ReadError> {
        if self.fill(payload)? < payload.len() {
            return Err(ReadError::CutOff { offset: self.offset });
        }
        if crc32fast::hash(payload) != header.payload_crc {
            return Err(self.damaged(BlockError::Payload { length: header.length }));
        }
        Ok(())
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<usize, ReadError> {
        read_full(&mut self.source, bytes).map_err(|cause| ReadError::Read { offset: self.offset, cause })
    }

    fn damaged(&self, cause: BlockError) -> ReadError {
        ReadError::Damaged { offset: self.offset, cause }
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = Result<Block, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.state == State::Done {
            return None;
        }
        let block = self.block().transpose();
        if !matches!(block, Some(Ok(_))) {
            self.state = State::Done;
        }
        block
    }
}

/// Fills the buffer as far as the source has bytes. Returns the number of bytes read.
fn read_full(source: &mut impl Read, mut bytes: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while !bytes.is_empty() {
        match source.read(bytes) {
            Ok(0) => break,
            Ok(length) => {
                filled += length;
                bytes = bytes.get_mut(length..).unwrap_or_default();
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
