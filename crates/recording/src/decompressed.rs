//! Blocks of samples that are decompressed.

use zstd::bulk::Decompressor;

use crate::columns::SampleColumns;
use crate::divided_columns::DividedColumns;
use crate::error::{BlockError, ReadError};
use crate::frame::{MAX_COLUMNS, MAX_SAMPLES, SamplesHead};
use crate::place_counts::PlaceCounts;
use crate::tree::Numbers;

/// The samples of a block, of which only the columns that are needed are decoded.
#[derive(Debug)]
pub struct DecompressedSamples {
    /// Offset of the block in the file.
    offset: u64,
    head: SamplesHead,
    /// The call stacks before the block.
    numbers: Numbers,
    bytes: Vec<u8>,
}

impl DecompressedSamples {
    /// Decompresses the payload of a block. A wrong payload cannot make it allocate more than a valid one.
    pub(crate) fn new(offset: u64, head: SamplesHead, frame: &[u8], numbers: Numbers) -> Result<Self, BlockError> {
        let [count, places, length] = [head.samples, head.places, head.columns].map(|number| number as usize);
        if !(1..=MAX_SAMPLES).contains(&count) || !(1..=count).contains(&places) || length > MAX_COLUMNS {
            return Err(BlockError::Columns);
        }
        let bytes = Decompressor::new().and_then(|mut one| one.decompress(frame, length));
        let bytes = bytes.map_err(BlockError::Compression)?;
        if bytes.len() != length {
            return Err(BlockError::Columns);
        }
        Ok(Self { offset, head, numbers, bytes })
    }

    /// Returns the samples by columns. A place occurs once, so that what depends on it need not be done for each
    /// sample.
    ///
    /// # Errors
    /// If the block is damaged.
    pub fn columns(&self) -> Result<SampleColumns, ReadError> {
        self.decode(SampleColumns::decode)
    }

    /// Returns how many samples each place has, which takes less time than [`columns`](Self::columns).
    ///
    /// # Errors
    /// If the block is damaged: the same errors as of [`columns`](Self::columns).
    pub fn place_counts(&self) -> Result<PlaceCounts, ReadError> {
        self.decode(PlaceCounts::decode)
    }

    fn decode<T>(&self, decode: impl FnOnce(&DividedColumns<'_>) -> Result<T, BlockError>) -> Result<T, ReadError> {
        let decoded = DividedColumns::of(&self.head, self.numbers, &self.bytes).and_then(|columns| decode(&columns));
        decoded.map_err(|cause| ReadError::Damaged { offset: self.offset, cause })
    }
}
