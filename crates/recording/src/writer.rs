//! Writing a recording, block by block.

use std::io::{self, Write};

use protocol::Sample;
use serde::Serialize;
use thiserror::Error;
use zerocopy::IntoBytes;

use crate::block::{Process, Session, Summary};
use crate::frame::{BlockHead, BlockKind, FORMAT_VERSION, FileHeader, MAGIC, MOST_SAMPLES};

/// Why a block was not written.
#[derive(Debug, Error)]
pub enum WriteError {
    /// The system did not take it. What it took of the block before is no block: nothing can follow it.
    #[error("the system did not take the block")]
    Write(#[from] io::Error),
    /// The block is longer than a reader takes; nothing was written.
    #[error("a block of {length} bytes is longer than a reader takes")]
    TooLong {
        /// Bytes of its payload.
        length: usize,
    },
}

/// A recording that is being written. Each block goes to `sink` in one write, and none is held back: give it no buffer.
#[derive(Debug)]
pub struct Writer<W> {
    sink: W,
    /// The block being written, and room for the next.
    bytes: Vec<u8>,
    number: u64,
    written: u64,
}

impl<W: Write> Writer<W> {
    /// Begins the file.
    ///
    /// # Errors
    /// When the session's block can not be written.
    pub fn new(sink: W, session: &Session) -> Result<Self, WriteError> {
        let mut writer = Self { sink, bytes: Vec::new(), number: 0, written: 0 };
        let header = FileHeader { magic: MAGIC, version: FORMAT_VERSION, reserved: 0 };
        writer.bytes.extend_from_slice(header.as_bytes());
        writer.text(BlockKind::Session, session)?;
        Ok(writer)
    }

    /// Adds a process, or modules of it that were not known before.
    ///
    /// # Errors
    /// When a block can not be written; its modules are spread over as many as it takes.
    pub fn process(&mut self, process: &Process) -> Result<(), WriteError> {
        let written = self.text(BlockKind::Process, process);
        if !matches!(written, Err(WriteError::TooLong { .. })) || process.modules.len() < 2 {
            return written;
        }
        let (first, rest) = process.modules.split_at(process.modules.len() / 2);
        for modules in [first, rest] {
            self.process(&Process { id: process.id, name: process.name.clone(), modules: modules.to_vec() })?;
        }
        Ok(())
    }

    /// Adds samples, in as many blocks as it takes.
    ///
    /// # Errors
    /// When a block can not be written.
    pub fn samples(&mut self, samples: &[Sample]) -> Result<(), WriteError> {
        samples.chunks(MOST_SAMPLES).try_for_each(|samples| self.block(BlockKind::Samples, samples.as_bytes()))
    }

    /// Ends the file, and gives back what it was written to.
    ///
    /// # Errors
    /// When the last block can not be written.
    pub fn finish(mut self, summary: &Summary) -> Result<W, WriteError> {
        self.text(BlockKind::Summary, summary)?;
        self.sink.flush()?;
        Ok(self.sink)
    }

    /// Bytes written so far.
    pub fn written(&self) -> u64 {
        self.written
    }

    fn text(&mut self, kind: BlockKind, value: &impl Serialize) -> Result<(), WriteError> {
        let payload = serde_json::to_vec(value).map_err(io::Error::from)?;
        self.block(kind, &payload)
    }

    fn block(&mut self, kind: BlockKind, payload: &[u8]) -> Result<(), WriteError> {
        let head = BlockHead::new(kind, self.number, payload).ok_or(WriteError::TooLong { length: payload.len() })?;
        self.bytes.extend_from_slice(head.as_bytes());
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
