//! The thread that writes the file, which can stall for seconds.

use std::fs::File;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use protocol::SampleRecord;
use recording::{
    Limits, MAX_SAMPLES, Methods, Parts, Process, RecordedSession, SampleStack, Summary, WriteError, Writer,
};

use super::joining::StackedSamples;
use super::{Event, Output};

/// Maximum time for which samples are collected for a block. If the client is terminated, those are lost.
const COLLECT: Duration = Duration::from_secs(1);

/// A file that is written.
pub struct Target {
    writer: Writer<File>,
    /// Has the samples, if only the newest are kept.
    parts: Option<Parts>,
}

impl Target {
    /// Writes the session.
    pub fn begin(path: &Path, file: File, session: &RecordedSession, limits: Limits) -> Result<Self, WriteError> {
        let parts = (!limits.are_none()).then(|| Parts::new(path, session, limits));
        Ok(Self { writer: Writer::new(file, session)?, parts })
    }

    fn process(&mut self, process: &Process) -> Result<(), WriteError> {
        self.writer.process(process)
    }

    fn samples(&mut self, records: &[SampleRecord]) -> Result<(), WriteError> {
        match &mut self.parts {
            Some(parts) => parts.samples(records),
            None => self.writer.samples(records),
        }
    }

    fn methods(&mut self, methods: &Methods) -> Result<(), WriteError> {
        self.writer.methods(methods)
    }

    fn stacked_samples(&mut self, samples: &[(SampleRecord, SampleStack)]) -> Result<(), WriteError> {
        match &mut self.parts {
            Some(parts) => parts.stacked_samples(samples),
            None => self.writer.stacked_samples(samples),
        }
    }

    /// Writes the summary, to which it adds what was kept.
    pub fn finish(mut self, summary: &mut Summary) -> Result<File, WriteError> {
        if let Some(parts) = self.parts {
            summary.kept = parts.append_to(&mut self.writer)?;
        }
        self.writer.finish(summary)
    }
}

/// Writes what it receives until all senders have ended, and returns the target. An error is reported once, and the
/// rest is dropped.
pub fn run(target: Target, input: &Receiver<Output>, events: &Sender<Event>) -> Option<Target> {
    let mut blocks = Blocks { target, collected: Vec::new(), stacked: Vec::new(), due: None };
    // The error is dropped if another one ended the recording.
    blocks.write_all(input).map_err(|cause| events.send(Event::Unwritten(cause))).ok()?;
    Some(blocks.target)
}

/// Collects samples of small replies, because large blocks are compressed better.
struct Blocks {
    target: Target,
    collected: Vec<SampleRecord>,
    /// Samples with stacks; a recording has either these or the others. They keep their share of the memory.
    stacked: Vec<StackedSamples>,
    /// When the collected samples must be written.
    due: Option<Instant>,
}

impl Blocks {
    fn write_all(&mut self, input: &Receiver<Output>) -> Result<(), WriteError> {
        loop {
            let wait = self.due.map_or(COLLECT, |due| due.saturating_duration_since(Instant::now()));
            match input.recv_timeout(wait) {
                Ok(Output::Samples(batch)) => self.add(batch.records())?,
                Ok(Output::Stacked(samples)) => self.add_stacked(samples)?,
                Ok(Output::Process(process)) => self.target.process(&process)?,
                Ok(Output::Methods(methods)) => self.target.methods(&methods)?,
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
            return self.target.samples(records);
        }
        self.collected.extend_from_slice(records);
        self.due.get_or_insert_with(|| Instant::now() + COLLECT);
        Ok(())
    }

    fn add_stacked(&mut self, samples: StackedSamples) -> Result<(), WriteError> {
        let collected: usize = self.stacked.iter().map(StackedSamples::len).sum();
        let is_much = collected + samples.len() >= MAX_SAMPLES / 2;
        self.stacked.push(samples);
        self.due.get_or_insert_with(|| Instant::now() + COLLECT);
        if is_much { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), WriteError> {
        self.due = None;
        let mut samples = Vec::new();
        for part in &mut self.stacked {
            samples.append(&mut part.samples);
        }
        self.target.stacked_samples(&samples)?;
        self.stacked.clear();
        self.target.samples(&self.collected)?;
        self.collected.clear();
        Ok(())
    }
}
