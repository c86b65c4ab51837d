//! Reads a recording block by block.

use std::io::{self, Read};

use protocol::Sample;
use serde::de::DeserializeOwned;
use thiserror::Error;
use zerocopy::{FromZeros, IntoBytes};

use crate::block::Block;
use crate::frame::{BlockHead, BlockKind, FORMAT_VERSION, FileHeader, MAGIC};

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
    #[error("the file is no recording")]
    NotARecording,
    /// The recording has another version of the format.
    #[error("the recording has version {file} of the format, and this program reads version {FORMAT_VERSION}")]
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
        cause: Damage,
    },
}

/// Defect of a block or of the file header.
#[derive(Debug, Error)]
pub enum Damage {
    /// The reserved field of the file header is not zero.
    #[error("the file header has {0:#x} where zero belongs")]
    Header(u32),
    /// The checksum of the block header is wrong.
    #[error("the checksum of the block's head is wrong")]
    Head,
    /// The checksum of the payload is wrong.
    #[error("the checksum of the block's {length} bytes is wrong")]
    Payload {
        /// Size of the payload in bytes.
        length: u32,
    },
    /// Blocks are missing, repeated or out of order.
    #[error("the block has the number {found} where number {expected} belongs")]
    Order {
        /// Sequence number that the block should have.
        expected: u64,
        /// Sequence number of the block.
        found: u64,
    },
    /// This version of the format does not have the kind.
    #[error("there is no block of kind {0}")]
    Kind(u32),
    /// The payload is longer than its kind allows.
    #[error("the block has {length} bytes, and there can be no more than {most}")]
    TooLong {
        /// Size of the payload in bytes.
        length: u32,
        /// Maximum size of the payload in bytes.
        most: usize,
    },
    /// The size of the payload is not a multiple of the size of a sample.
    #[error("{0} bytes are no whole number of samples")]
    Fraction(u32),
    /// The payload is not JSON, or does not match the kind of the block.
    #[error("the text of the block says something else than it should")]
    Text(#[from] serde_json::Error),
    /// The first block is not a session, or a later block is one.
    #[error("the session does not come first, and once")]
    Session,
    /// Data follows the summary.
    #[error("the file goes on after its end")]
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
    Over,
}

impl<R: Read> Reader<R> {
    /// Reads the file header.
    ///
    /// # Errors
    /// If the file cannot be read, or is not a recording of this version.
    pub fn new(mut source: R) -> Result<Self, ReadError> {
        let mut header = FileHeader::new_zeroed();
        let length = fill(&mut source, header.as_mut_bytes()).map_err(|cause| ReadError::Read { offset: 0, cause })?;
        let FileHeader { magic, version, reserved } = header;
        let whole = length == size_of::<FileHeader>();
        let begun = length.min(MAGIC.len());
        if length == 0 || magic.get(..begun) != MAGIC.get(..begun) {
            return Err(ReadError::NotARecording);
        }
        if !whole {
            return Err(ReadError::CutOff { offset: 0 });
        }
        if version != FORMAT_VERSION {
            return Err(ReadError::Version { file: version });
        }
        if reserved != 0 {
            return Err(ReadError::Damaged { offset: 0, cause: Damage::Header(reserved) });
        }
        Ok(Self { source, offset: length as u64, number: 0, state: State::Blocks })
    }

    /// Reads the next block; `None` at the end of the file.
    fn block(&mut self) -> Result<Option<Block>, ReadError> {
        let mut head = BlockHead::new_zeroed();
        let length = self.fill(head.as_mut_bytes())?;
        match (self.state, length) {
            (State::Summarized, 0) => return Ok(None),
            (State::Summarized, _) => return Err(self.damaged(Damage::AfterEnd)),
            (_, length) if length < size_of::<BlockHead>() => return Err(ReadError::CutOff { offset: self.offset }),
            _ => {}
        }
        let kind = self.check(&head).map_err(|damage| self.damaged(damage))?;
        let block = match kind {
            BlockKind::Session => Block::Session(self.text(&head)?),
            BlockKind::Process => Block::Process(self.text(&head)?),
            BlockKind::Samples => Block::Samples(self.samples(&head)?),
            BlockKind::Summary => Block::Summary(self.text(&head)?),
        };
        self.offset += size_of::<BlockHead>() as u64 + u64::from(head.length);
        self.number += 1;
        if kind == BlockKind::Summary {
            self.state = State::Summarized;
        }
        Ok(Some(block))
    }

    /// Checks that a block with this header is valid at this position, and returns its kind.
    fn check(&self, head: &BlockHead) -> Result<BlockKind, Damage> {
        if head.checksum() != head.head {
            return Err(Damage::Head);
        }
        if head.number != self.number {
            return Err(Damage::Order { expected: self.number, found: head.number });
        }
        let kind = BlockKind::from_number(head.kind).ok_or(Damage::Kind(head.kind))?;
        if (kind == BlockKind::Session) != (self.number == 0) {
            return Err(Damage::Session);
        }
        if head.length as usize > kind.longest() {
            return Err(Damage::TooLong { length: head.length, most: kind.longest() });
        }
        if kind == BlockKind::Samples && !(head.length as usize).is_multiple_of(size_of::<Sample>()) {
            return Err(Damage::Fraction(head.length));
        }
        Ok(kind)
    }

    fn text<T: DeserializeOwned>(&mut self, head: &BlockHead) -> Result<T, ReadError> {
        let mut payload = vec![0; head.length as usize];
        self.payload(head, &mut payload)?;
        serde_json::from_slice(&payload).map_err(|cause| self.damaged(cause.into()))
    }

    fn samples(&mut self, head: &BlockHead) -> Result<Vec<Sample>, ReadError> {
        let mut samples = vec![Sample::new_zeroed(); head.length as usize / size_of::<Sample>()];
        self.payload(head, samples.as_mut_bytes())?;
        Ok(samples)
    }

    fn payload(&mut self, head: &BlockHead, payload: &mut [u8]) -> Result<(), ReadError> {
        if self.fill(payload)? < payload.len() {
            return Err(ReadError::CutOff { offset: self.offset });
        }
        if crc32fast::hash(payload) != head.payload {
            return Err(self.damaged(Damage::Payload { length: head.length }));
        }
        Ok(())
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<usize, ReadError> {
        fill(&mut self.source, bytes).map_err(|cause| ReadError::Read { offset: self.offset, cause })
    }

    fn damaged(&self, cause: Damage) -> ReadError {
        ReadError::Damaged { offset: self.offset, cause }
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = Result<Block, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.state == State::Over {
            return None;
        }
        let block = self.block().transpose();
        if !matches!(block, Some(Ok(_))) {
            self.state = State::Over;
        }
        block
    }
}

/// Fills the buffer as far as the source has bytes. Returns the number of bytes read.
fn fill(source: &mut impl Read, mut bytes: &mut [u8]) -> io::Result<usize> {
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
