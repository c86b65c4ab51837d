//! Blocks with samples and call stacks that are not decoded yet.

use std::io::{Read, Seek, SeekFrom};
use std::ops::RangeInclusive;

use protocol::SampleRecord;
use zerocopy::FromBytes;

use crate::block::{Block, Methods, Process, RecordedSession, Summary};
use crate::columns::SampleColumns;
use crate::decompressed::DecompressedSamples;
use crate::error::{BlockError, ReadError};
use crate::frame::{BlockHeader, SamplesHead, StacksHead};
use crate::stack::StackId;
use crate::tree::{Numbers, StackNodes};

/// A block of which the samples are not decoded yet.
#[derive(Debug)]
pub enum EncodedBlock {
    /// As [`Block::Session`].
    Session(RecordedSession),
    /// As [`Block::Process`].
    Process(Process),
    /// As [`Block::Methods`].
    Methods(Methods),
    /// Call stacks; other threads can decode them.
    Stacks(EncodedStacks),
    /// Samples; other threads can decode them.
    Samples(EncodedSamples),
    /// As [`Block::Summary`].
    Summary(Summary),
}

impl EncodedBlock {
    /// Returns the block with its samples or call stacks.
    ///
    /// # Errors
    /// If the block is damaged.
    pub fn decode(self) -> Result<Block, ReadError> {
        Ok(match self {
            Self::Session(session) => Block::Session(session),
            Self::Process(process) => Block::Process(process),
            Self::Methods(methods) => Block::Methods(methods),
            Self::Stacks(stacks) => Block::Stacks(stacks.decode()?),
            Self::Samples(samples) => samples.columns()?.into(),
            Self::Summary(summary) => Block::Summary(summary),
        })
    }
}

/// The samples of a block as they are in the file. They are checked when they are decoded.
#[derive(Debug)]
pub struct EncodedSamples {
    /// Offset of the block in the file.
    pub(crate) offset: u64,
    pub(crate) header: BlockHeader,
    pub(crate) payload: Vec<u8>,
    /// The call stacks before the block.
    pub(crate) numbers: Numbers,
}

/// Where a block of samples is in a file, to read it again.
#[derive(Debug, Clone, Copy)]
pub struct SamplesPosition {
    offset: u64,
    header: BlockHeader,
    numbers: Numbers,
}

impl SamplesPosition {
    /// Reads the block from the file that it was read from.
    ///
    /// # Errors
    /// If the file cannot be read, or has become shorter.
    pub fn read(self, input: &mut (impl Read + Seek + ?Sized)) -> Result<EncodedSamples, ReadError> {
        let Self { offset, header, numbers } = self;
        let mut payload = vec![0; header.length as usize];
        let start = SeekFrom::Start(offset + size_of::<BlockHeader>() as u64);
        let read = input.seek(start).and_then(|_| input.read_exact(&mut payload));
        read.map_err(|cause| ReadError::Read { offset, cause })?;
        Ok(EncodedSamples { offset, header, payload, numbers })
    }
}

/// Call stacks of a block as they are in the file. They are checked when they are decoded.
#[derive(Debug)]
pub struct EncodedStacks {
    /// Offset of the block in the file.
    pub(crate) offset: u64,
    pub(crate) header: BlockHeader,
    pub(crate) head: StacksHead,
    pub(crate) payload: Vec<u8>,
    /// The call stacks up to the end of the block.
    pub(crate) numbers: Numbers,
}

impl EncodedStacks {
    /// Returns the nodes of the tree of call stacks.
    ///
    /// # Errors
    /// If the block is damaged.
    pub fn decode(&self) -> Result<StackNodes, ReadError> {
        let frame = self.payload.get(size_of::<StacksHead>()..).unwrap_or_default();
        checked(&self.header, &self.payload, self.offset, || self.numbers.decode(&self.head, frame))
    }
}

/// Decodes a payload if its checksum is correct.
pub fn checked<T>(
    header: &BlockHeader,
    payload: &[u8],
    offset: u64,
    decode: impl FnOnce() -> Result<T, BlockError>,
) -> Result<T, ReadError> {
    let decoded = if crc32fast::hash(payload) == header.payload_crc {
        decode()
    } else {
        Err(BlockError::Payload { length: header.length })
    };
    decoded.map_err(|cause| ReadError::Damaged { offset, cause })
}

impl EncodedSamples {
    /// Returns where the block is in the file.
    #[must_use]
    pub const fn position(&self) -> SamplesPosition {
        let Self { offset, header, numbers, .. } = *self;
        SamplesPosition { offset, header, numbers }
    }

    /// Returns the samples.
    ///
    /// # Errors
    /// If the block is damaged.
    pub fn decode(&self) -> Result<Vec<SampleRecord>, ReadError> {
        Ok(self.columns()?.records().collect())
    }

    /// Returns the samples and their call stacks.
    ///
    /// # Errors
    /// If the block is damaged.
    pub fn decode_stacked(&self) -> Result<Vec<(SampleRecord, StackId)>, ReadError> {
        let columns = self.columns()?;
        Ok(columns.records().zip(columns.sample_stacks()).collect())
    }

    /// Returns the samples by columns. A place occurs once, so that what depends on it need not be done for each
    /// sample.
    ///
    /// # Errors
    /// If the block is damaged.
    pub fn columns(&self) -> Result<SampleColumns, ReadError> {
        self.decompress()?.columns()
    }

    /// Decompresses the block, to decode what is needed of it.
    ///
    /// # Errors
    /// If the block is damaged.
    pub fn decompress(&self) -> Result<DecompressedSamples, ReadError> {
        self.checked(|| {
            let (head, frame) = self.head()?;
            DecompressedSamples::new(self.offset, head, frame, self.numbers)
        })
    }

    /// Returns the earliest and the latest time of the samples, which columns need not be decoded for; `None` if there
    /// are no samples.
    ///
    /// # Errors
    /// If the block is damaged.
    pub fn times(&self) -> Result<Option<RangeInclusive<u64>>, ReadError> {
        self.checked(|| {
            let (head, _) = self.head()?;
            Ok((head.samples > 0).then_some(head.earliest..=head.latest))
        })
    }

    /// Checks the checksum, which costs little of what decoding costs.
    ///
    /// # Errors
    /// If the block is damaged.
    pub fn verify(&self) -> Result<(), ReadError> {
        self.checked(|| Ok(()))
    }

    fn checked<T>(&self, decode: impl FnOnce() -> Result<T, BlockError>) -> Result<T, ReadError> {
        checked(&self.header, &self.payload, self.offset, decode)
    }

    /// Returns the start of the payload of columns, and the rest.
    fn head(&self) -> Result<(SamplesHead, &[u8]), BlockError> {
        let (head, frame) = SamplesHead::read_from_prefix(&self.payload).map_err(|_| BlockError::SamplesHead)?;
        if head.checksum() != head.crc {
            return Err(BlockError::SamplesHead);
        }
        Ok((head, frame))
    }
}

impl From<SampleColumns> for Block {
    fn from(columns: SampleColumns) -> Self {
        if !columns.have_stacks() {
            return Self::Samples(columns.records().collect());
        }
        Self::StackedSamples(columns.records().zip(columns.sample_stacks()).collect())
    }
}
