//! Writes a recording block by block.

use std::io::{self, Read, Write};
use std::iter;

use protocol::SampleRecord;
use serde::Serialize;
use thiserror::Error;
use zerocopy::IntoBytes;

use crate::block::{Methods, Process, RecordedSession, Summary};
use crate::columns::Encoder;
use crate::frame::{BlockHeader, BlockKind, FORMAT_VERSION, FileHeader, MAGIC, MAX_SAMPLES};
use crate::stack::{SampleStack, StackId};
use crate::tree::{Interner, NODE_LIMIT};

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
    interner: Interner,
    number: u64,
    written: u64,
}

impl<W: Write> Writer<W> {
    /// Creates the file with its header and the session block.
    ///
    /// # Errors
    /// If the session block cannot be written.
    pub fn new(sink: W, session: &RecordedSession) -> Result<Self, WriteError> {
        let (encoder, interner) = (Encoder::new()?, Interner::new(NODE_LIMIT));
        let mut writer = Self { sink, bytes: Vec::new(), encoder, interner, number: 0, written: 0 };
        let header = FileHeader { magic: MAGIC, version: FORMAT_VERSION, reserved: 0 };
        writer.bytes.extend_from_slice(header.as_bytes());
        writer.json(BlockKind::Session, session)?;
        Ok(writer)
    }

    /// Limits the memory for call stacks to about 30 bytes for each of so many callers. When there are more, stacks
    /// that were written before are written again when they recur.
    #[must_use]
    pub fn with_node_limit(self, nodes: usize) -> Self {
        Self { interner: Interner::new(nodes), ..self }
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

    /// Adds functions that a just-in-time compiler made. Those that exceed one block are split over several.
    ///
    /// # Errors
    /// If a block cannot be written.
    pub fn methods(&mut self, methods: &Methods) -> Result<(), WriteError> {
        let written = self.json(BlockKind::Methods, methods);
        if !matches!(written, Err(WriteError::TooLong { .. })) || methods.methods.len() < 2 {
            return written;
        }
        let (first, rest) = methods.methods.split_at(methods.methods.len() / 2);
        for part in [first, rest] {
            self.methods(&Methods { methods: part.to_vec(), ..*methods })?;
        }
        Ok(())
    }

    /// Adds samples without call stacks, split over several blocks if they exceed one. Their cookies are not written.
    ///
    /// # Errors
    /// If a block cannot be written.
    pub fn samples(&mut self, samples: &[SampleRecord]) -> Result<(), WriteError> {
        let stacks = iter::repeat(StackId::NOT_RECORDED.number());
        samples.chunks(MAX_SAMPLES).try_for_each(|samples| self.sample_block(samples, stacks.clone()))
    }

    /// Adds samples, each with its call stack or the reason why it has none, as [`samples`](Self::samples) does.
    ///
    /// # Errors
    /// If a block cannot be written.
    pub fn stacked_samples(&mut self, samples: &[(SampleRecord, SampleStack)]) -> Result<(), WriteError> {
        let mut rest = samples;
        while !rest.is_empty() {
            let numbers = rest.iter().take(MAX_SAMPLES).map_while(|(_, stack)| self.interner.number_of(stack));
            let numbers: Vec<u32> = numbers.collect();
            self.stack_blocks()?;
            let (written, others) = rest.split_at(numbers.len());
            if written.is_empty() {
                self.interner.forget();
                continue;
            }
            let records: Vec<SampleRecord> = written.iter().map(|(record, _)| *record).collect();
            self.sample_block(&records, numbers.into_iter())?;
            rest = others;
        }
        Ok(())
    }

    /// Frees the memory for call stacks.
    pub(crate) fn forget_stacks(&mut self) {
        self.interner.forget();
    }

    /// Writes the nodes of the tree of call stacks that are not written yet.
    fn stack_blocks(&mut self) -> Result<(), WriteError> {
        while let Some((head, columns)) = self.interner.next_block() {
            let frame = self.encoder.compress(columns)?;
            append(&mut self.bytes, BlockKind::Stacks, self.number, [head.as_bytes(), frame])?;
            self.write()?;
        }
        Ok(())
    }

    fn sample_block(&mut self, samples: &[SampleRecord], stacks: impl Iterator<Item = u32>) -> Result<(), WriteError> {
        let (head, frame) = self.encoder.encode(samples, stacks)?;
        append(&mut self.bytes, BlockKind::Samples, self.number, [head.as_bytes(), frame])?;
        self.write()
    }

    /// Appends another recording of the same session, which has no summary and `blocks` blocks.
    ///
    /// # Errors
    /// If it cannot be read or written.
    pub fn append(&mut self, mut part: impl Read, blocks: u64) -> Result<(), WriteError> {
        self.written += io::copy(&mut part, &mut self.sink)?;
        self.number = blocks;
        self.interner.forget();
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
