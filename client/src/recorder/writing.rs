//! The thread that writes the file, which can stall for seconds.

use std::io::Write;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use protocol::SampleRecord;
use recording::{MAX_SAMPLES, WriteError, Writer};

use super::{Event, Output};

/// Maximum time for which samples are collected for a block. If the client is terminated, those are lost.
const COLLECT: Duration = Duration::from_secs(1);

/// Writes what it receives until all senders have ended, and returns the writer. An error is reported once, and the
/// rest is dropped.
pub fn run<W: Write>(writer: Writer<W>, input: &Receiver<Output>, events: &Sender<Event>) -> Option<Writer<W>> {
    let mut blocks = Blocks { writer, collected: Vec::new(), due: None };
    // The error is dropped if another one ended the recording.
    blocks.write_all(input).map_err(|cause| events.send(Event::Unwritten(cause))).ok()?;
    Some(blocks.writer)
}

/// Collects samples of small replies, because large blocks are compressed better.
struct Blocks<W> {
    writer: Writer<W>,
    collected: Vec<SampleRecord>,
    /// When the collected samples must be written.
    due: Option<Instant>,
}

impl<W: Write> Blocks<W> {
    fn write_all(&mut self, input: &Receiver<Output>) -> Result<(), WriteError> {
        loop {
            let wait = self.due.map_or(COLLECT, |due| due.saturating_duration_since(Instant::now()));
            match input.recv_timeout(wait) {
                Ok(Output::Samples(batch)) => self.add(batch.records())?,
                Ok(Output::Process(process)) => self.writer.process(&process)?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return self.flush(),
            }
            if self.due.is_some_and(|due| Instant::now() >= due) {
                self.flush()?;
            }
        }
    }

    fn add(&mut self, records: &[SampleRecord]) -> Result<(), WriteError> {
        if self.collected.len() + records.len() > MAX_SAMPLES {
            self.flush()?;
        }
        if records.len() > MAX_SAMPLES / 2 {
            self.flush()?;
            return self.writer.samples(records);
        }
        self.collected.extend_from_slice(records);
        self.due.get_or_insert_with(|| Instant::now() + COLLECT);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), WriteError> {
        self.due = None;
        self.writer.samples(&self.collected)?;
        self.collected.clear();
        Ok(())
    }
}
