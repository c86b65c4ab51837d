//! Writes a recording block by block.

use std::io::{self, Write};

use protocol::SampleRecord;
use serde::Serialize;
use thiserror::Error;
use zerocopy::IntoBytes;

use crate::block::{Process, Session, Summary};
use crate::frame::{BlockHeader, BlockKind, FORMAT_VERSION, FileHeader, MAGIC, MAX_SAMPLES};

/// Why a block was not written.
#[derive(Debug, Error)]
pub enum WriteError {
    /// The system did not write all of the block. The file may end in a partial block, so no other block may follow.
    #[error("the block could not be written")]
    Write(#[from] io::Error),
    /// The block is longer than readers accept; nothing was written.
    #[error("a block of {length} bytes is longer than readers accept")]
    TooLong {
        /// Size of the payload in bytes.
        length: usize,
    },
}

/// Writes a recording. Each block goes to `sink` in one write, without delay; a buffered sink would defeat this.
#[derive(Debug)]
pub struct Writer<W> {
    sink: W,
    /// The block being written; its allocation is reused.
    bytes: Vec<u8>,
    number: u64,
    written: u64,
}

impl<W: Write> Writer<W> {
    /// Creates the file with its header and the session block.
    ///
    /// # Errors
    /// If the session block cannot be written.
    pub fn new(sink: W, session: &Session) -> Result<Self, WriteError> {
        let mut writer = Self { sink, bytes: Vec::new(), number: 0, written: 0 };
        let header = FileHeader { magic: MAGIC, version: FORMAT_VERSION, reserved: 0 };
        writer.bytes.extend_from_slice(header.as_bytes());
        writer.json(BlockKind::Session, session)?;
        Ok(writer)
    }

    /// Adds a process, or modules that it loaded later. Modules that exceed one block are split over several.
    ///
    /// # Errors
    /// If a block cannot be written.
    pub fn process(&mut self, process: &Process) -> Result<(), WriteError> {
        let written = self.json(BlockKind::Process, process);
        if !matches!(written, Err(WriteError::TooLong { .. })) || process.modules.len() < 2 {
            return written;
        }
        let (first, rest) = process.modules.split_at(process.modules.len() / 2);
        for modules in [first, rest] {
            self.process(&Process { id: process.id, name: process.name.clone(), modules: modules.to_vec() })?;
        }
        Ok(())
    }

    /// Adds samples, split over several blocks if they exceed one.
    ///
    /// # Errors
    /// If a block cannot be written.
    pub fn samples(&mut self, samples: &[SampleRecord]) -> Result<(), WriteError> {
        samples.chunks(MAX_SAMPLES).try_for_each(|samples| self.block(BlockKind::Samples, samples.as_bytes()))
    }

    /// Writes the summary, which ends the file, and returns the sink.
    ///
    /// # Errors
    /// If the summary cannot be written.
    pub fn finish(mut self, summary: &Summary) -> Result<W, WriteError> {
        self.json(BlockKind::Summary, summary)?;
        self.sink.flush()?;
        Ok(self.sink)
    }

    /// Returns the number of bytes of the blocks written so far, including the file header.
    pub fn written(&self) -> u64 {
        self.written
    }

    fn json(&mut self, kind: BlockKind, value: &impl Serialize) -> Result<(), WriteError> {
        let payload = serde_json::to_vec(value).map_err(io::Error::from)?;
        self.block(kind, &payload)
    }

    fn block(&mut self, kind: BlockKind, payload: &[u8]) -> Result<(), WriteError> {
        let header =
            BlockHeader::new(kind, self.number, payload).ok_or(WriteError::TooLong { length: payload.len() })?;
        self.bytes.extend_from_slice(header.as_bytes());
        self.bytes.extend_from_slice(payload);
        let outcome = self.sink.write_all(&self.bytes);
        let length = self.bytes.len() as u64;
        self.bytes.clear();
        outcome?;
        self.written += length;
        self.number += 1;
        Ok(())
    }
}
