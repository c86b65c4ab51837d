//! Reads a recording block by block.

use std::io::{self, Read, Seek};
use std::ops::RangeInclusive;

use serde::de::DeserializeOwned;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

use crate::block::{Block, RecordedSession};
use crate::encoded::{EncodedBlock, EncodedSamples, EncodedStacks, checked};
use crate::error::{BlockError, ReadError};
use crate::frame::{
    BlockHeader, BlockKind, FORMAT_VERSION, FileHeader, MAGIC, MAX_PROCESSORS, SamplesHead, StacksHead,
};
use crate::tree::Numbers;

/// Maximum number of events of a session: the driver accepts 64. Many of them would cost their product with the
/// processors.
const MAX_EVENTS: usize = 1 << 10;

/// An iterator over the blocks of a recording. Unless it ends after a summary, its last item is an error.
///
/// One block at a time is in memory, at most 32 MiB.
#[derive(Debug)]
pub struct Reader<R> {
    source: R,
    /// Which blocks of samples are left out.
    skipping: Option<Skipping<R>>,
    /// Offset of the next block in the file.
    offset: u64,
    /// Number of the next block in its part.
    number: u64,
    /// Start time of the session, by which the parts of a recording are recognized.
    created: Option<u64>,
    /// The call stacks so far.
    numbers: Numbers,
    state: ReaderState,
}

/// Which blocks of samples are left out, and how to skip bytes of the source.
#[derive(Debug)]
struct Skipping<R> {
    /// Blocks that have samples at these times are read; `None` leaves out all.
    times: Option<RangeInclusive<u64>>,
    skip: fn(&mut R, i64) -> io::Result<()>,
}

impl<R> Skipping<R> {
    /// Skips the rest of a block.
    fn skip(&self, source: &mut R, length: usize, offset: u64) -> Result<(), ReadError> {
        let length = i64::try_from(length).unwrap_or(i64::MAX);
        (self.skip)(source, length).map_err(|cause| ReadError::Read { offset, cause })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReaderState {
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
        if version != FORMAT_VERSION {
            return Err(ReadError::Version { file: version });
        }
        if reserved != 0 {
            return Err(ReadError::Damaged { offset: 0, cause: BlockError::FileHeader(reserved) });
        }
        Ok(Self {
            source,
            skipping: None,
            offset: length as u64,
            number: 0,
            created: None,
            numbers: Numbers::default(),
            state: ReaderState::Blocks,
        })
    }

    /// Reads the next block without decoding its samples; `None` at the end of the file and after an error.
    pub fn next_encoded(&mut self) -> Option<Result<EncodedBlock, ReadError>> {
        if self.state == ReaderState::Done {
            return None;
        }
        let block = self.block().transpose();
        if !matches!(block, Some(Ok(_))) {
            self.state = ReaderState::Done;
        }
        block
    }

    /// Reads the next block that is not skipped; `None` at the end of the file.
    fn block(&mut self) -> Result<Option<EncodedBlock>, ReadError> {
        loop {
            let mut header = BlockHeader::new_zeroed();
            let mut length = self.fill(header.as_mut_bytes())?;
            if self.begins_part(&header, length)? {
                // What was read behind the header of the part is the start of the header of its first block.
                let bytes = header.as_mut_bytes();
                bytes.copy_within(size_of::<FileHeader>().., 0);
                let begun = size_of::<BlockHeader>() - size_of::<FileHeader>();
                length = begun + self.fill(bytes.get_mut(begun..).unwrap_or_default())?;
            }
            match (self.state, length) {
                (ReaderState::Summarized, 0) => return Ok(None),
                (ReaderState::Summarized, _) => return Err(self.damaged(BlockError::AfterEnd)),
                (_, length) if length < size_of::<BlockHeader>() => {
                    return Err(ReadError::CutOff { offset: self.offset });
                }
                _ => {}
            }
            let kind = self.check(&header).map_err(|damage| self.damaged(damage))?;
            let block = match kind {
                BlockKind::Session => self.session(&header)?.map(EncodedBlock::Session),
                BlockKind::Process => Some(EncodedBlock::Process(self.json(&header)?)),
                BlockKind::Methods => Some(EncodedBlock::Methods(self.json(&header)?)),
                BlockKind::Stacks => self.stacks(header)?.map(EncodedBlock::Stacks),
                BlockKind::Samples => self.samples(header)?.map(EncodedBlock::Samples),
                BlockKind::Summary => Some(EncodedBlock::Summary(self.json(&header)?)),
            };
            self.offset += size_of::<BlockHeader>() as u64 + u64::from(header.length);
            self.number += 1;
            if kind == BlockKind::Summary {
                self.state = ReaderState::Summarized;
            }
            if block.is_some() {
                return Ok(block);
            }
        }
    }

    /// Returns whether a part of the recording begins with these bytes, where a block would; if so, counts its blocks.
    fn begins_part(&mut self, start: &BlockHeader, length: usize) -> Result<bool, ReadError> {
        let whole = length == size_of::<BlockHeader>() && self.state == ReaderState::Blocks;
        let Ok((header, _)) = FileHeader::read_from_prefix(start.as_bytes()) else { return Ok(false) };
        if !whole || header.magic != MAGIC {
            return Ok(false);
        }
        if header.version != FORMAT_VERSION || header.reserved != 0 {
            return Err(self.damaged(BlockError::Part));
        }
        self.offset += size_of::<FileHeader>() as u64;
        self.number = 0;
        self.numbers.restart();
        Ok(true)
    }

    /// Reads the session, or skips its repetition in a part.
    fn session(&mut self, header: &BlockHeader) -> Result<Option<RecordedSession>, ReadError> {
        let session: RecordedSession = self.json(header)?;
        for (what, found, max) in
            [("events", session.events.len(), MAX_EVENTS), ("processors", session.processors.len(), MAX_PROCESSORS)]
        {
            if found > max {
                return Err(self.damaged(BlockError::SessionSize { what, found, max }));
            }
        }
        match self.created.replace(session.created_unix_ms) {
            None => Ok(Some(session)),
            Some(created) if created == session.created_unix_ms => Ok(None),
            Some(_) => Err(self.damaged(BlockError::Part)),
        }
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
        let max = kind.max_payload();
        if header.length as usize > max {
            return Err(BlockError::TooLong { length: header.length, max });
        }
        Ok(kind)
    }

    fn json<T: DeserializeOwned>(&mut self, header: &BlockHeader) -> Result<T, ReadError> {
        let mut payload = vec![0; header.length as usize];
        self.payload(header, &mut payload)?;
        serde_json::from_slice(&payload).map_err(|cause| self.damaged(cause.into()))
    }

    /// Reads call stacks, or skips them with all samples.
    fn stacks(&mut self, header: BlockHeader) -> Result<Option<EncodedStacks>, ReadError> {
        let offset = self.offset;
        if let Some(skipping @ Skipping { times: None, .. }) = &self.skipping {
            skipping.skip(&mut self.source, header.length as usize, offset)?;
            return Ok(None);
        }
        let mut payload = vec![0; header.length as usize];
        if self.fill(&mut payload)? < payload.len() {
            return Err(ReadError::CutOff { offset });
        }
        let head = checked(&header, &payload, offset, || {
            let head = StacksHead::read_from_prefix(&payload).map(|(head, _)| head);
            let head = head.ok().filter(|head| head.checksum() == head.crc).ok_or(BlockError::StacksHead)?;
            self.numbers.count(&head)?;
            Ok(head)
        })?;
        Ok(Some(EncodedStacks { offset, header, head, payload, numbers: self.numbers }))
    }

    /// Reads samples, or skips those of other times.
    fn samples(&mut self, header: BlockHeader) -> Result<Option<EncodedSamples>, ReadError> {
        let offset = self.offset;
        if let Some(skipping @ Skipping { times: None, .. }) = &self.skipping {
            skipping.skip(&mut self.source, header.length as usize, offset)?;
            return Ok(None);
        }
        let mut payload = vec![0; header.length as usize];
        let head_length = payload.len().min(size_of::<SamplesHead>());
        let (start, rest) = payload.split_at_mut(head_length);
        if self.fill(start)? < start.len() {
            return Err(ReadError::CutOff { offset });
        }
        if let Some(skipping @ Skipping { times: Some(times), .. }) = &self.skipping
            && let Ok(head) = SamplesHead::read_from_bytes(start)
            && head.checksum() == head.crc
            && (head.latest < *times.start() || head.earliest > *times.end())
        {
            skipping.skip(&mut self.source, rest.len(), offset)?;
            return Ok(None);
        }
        if self.fill(rest)? < rest.len() {
            return Err(ReadError::CutOff { offset });
        }
        Ok(Some(EncodedSamples { offset, header, payload, numbers: self.numbers }))
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
        let block = self.next_encoded()?.and_then(EncodedBlock::decode);
        if block.is_err() {
            self.state = ReaderState::Done;
        }
        Some(block)
    }
}

impl<R: Read + Seek> Reader<R> {
    /// Leaves out the blocks that have no sample at these times, without reading them: their start has the times. Other
    /// blocks are whole.
    #[must_use]
    pub fn within(mut self, times: RangeInclusive<u64>) -> Self {
        self.skipping = Some(Skipping { times: Some(times), skip: R::seek_relative });
        self
    }

    /// Leaves out all blocks of samples and of call stacks, without reading them.
    #[must_use]
    pub fn without_samples(mut self) -> Self {
        self.skipping = Some(Skipping { times: None, skip: R::seek_relative });
        self
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
