//! Writes a recording block by block.

use std::io::{self, Read, Write};

use protocol::SampleRecord;
use serde::Serialize;
use thiserror::Error;
use zerocopy::IntoBytes;

use crate::block::{Process, Session, Summary};
use crate::columns::Encoder;
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
    encoder: Encoder,
    number: u64,
    written: u64,
}

impl<W: Write> Writer<W> {
    /// Creates the file with its header and the session block.
    ///
    /// # Errors
    /// If the session block cannot be written.
    pub fn new(sink: W, session: &Session) -> Result<Self, WriteError> {
        let mut writer = Self { sink, bytes: Vec::new(), encoder: Encoder::new()?, number: 0, written: 0 };
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
            let Process { id, created, ref name, .. } = *process;
            self.process(&Process { id, created, name: name.clone(), modules: modules.to_vec() })?;
        }
        Ok(())
    }

    /// Adds samples, split over several blocks if they exceed one.
    ///
    /// # Errors
    /// If a block cannot be written.
    pub fn samples(&mut self, samples: &[SampleRecord]) -> Result<(), WriteError> {
        for samples in samples.chunks(MAX_SAMPLES) {
            let (head, frame) = self.encoder.encode(samples)?;
            let Self { bytes, number, .. } = self;
            append(bytes, BlockKind::Samples, *number, [head.as_bytes(), frame])?;
            self.write()?;
        }
        Ok(())
    }

    /// Appends another recording of the same session, which has no summary and `blocks` blocks.
    ///
    /// # Errors
    /// If it cannot be read or written.
    pub fn append(&mut self, mut part: impl Read, blocks: u64) -> Result<(), WriteError> {
        self.written += io::copy(&mut part, &mut self.sink)?;
        self.number = blocks;
        Ok(())
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

    /// Returns the number of blocks written so far, since the last part that was appended began.
    pub fn blocks(&self) -> u64 {
        self.number
    }

    fn json(&mut self, kind: BlockKind, value: &impl Serialize) -> Result<(), WriteError> {
        let payload = serde_json::to_vec(value).map_err(io::Error::from)?;
        append(&mut self.bytes, kind, self.number, [&payload, &[]])?;
        self.write()
    }

    /// Writes the block that was appended.
    fn write(&mut self) -> Result<(), WriteError> {
        let outcome = self.sink.write_all(&self.bytes);
        let length = self.bytes.len() as u64;
        self.bytes.clear();
        outcome?;
        self.written += length;
        self.number += 1;
        Ok(())
    }
}

/// Appends a block with a payload of two parts.
fn append(bytes: &mut Vec<u8>, kind: BlockKind, number: u64, payload: [&[u8]; 2]) -> Result<(), WriteError> {
    let length = payload.iter().map(|part| part.len()).sum();
    let header = BlockHeader::new(kind, number, payload).ok_or(WriteError::TooLong { length })?;
    bytes.extend_from_slice(header.as_bytes());
    for part in payload {
        bytes.extend_from_slice(part);
    }
    Ok(())
}
