//! Joins samples with their call stacks and keeps them in memory, without a recording.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};

use protocol::SampleRecord;
use recording::SampleStack;

use super::batch::Batch;
use super::joining::Input;
use super::tracing::{RunningTrace, TraceResult, Tracing};
use super::{Output, join};

/// Records with what is known of their call stacks.
pub type StackedRecords = Vec<(SampleRecord, SampleStack)>;

/// Joins samples with their call stacks and keeps them.
pub struct StackCollector {
    trace: RunningTrace,
    input: Option<Sender<Input>>,
    thread: Option<JoinHandle<StackedRecords>>,
}

impl StackCollector {
    /// Begins to join samples with this clock. The session was started before the samples were taken.
    #[must_use]
    pub fn begin(tracing: Tracing, clock: u64) -> Self {
        let (sender, output) = mpsc::channel();
        let trace = tracing.run(clock, Some(sender));
        Self { input: trace.input(), trace, thread: Some(thread::spawn(move || keep(&output))) }
    }

    /// Adds samples of the driver.
    pub fn add(&self, batch: Batch) {
        if let Some(input) = &self.input {
            // The thread ends only when all senders have ended.
            let _ = input.send(Input::Samples(Arc::new(batch)));
        }
    }

    /// Stops the trace session. Returns all records, and what became of the session.
    #[must_use]
    pub fn finish(mut self) -> (StackedRecords, TraceResult) {
        // The session waits for the end of the senders.
        self.input = None;
        let result = self.trace.stop();
        (join(&mut self.thread).unwrap_or_default(), result)
    }
}

/// Receives until all senders have ended.
fn keep(output: &Receiver<Output>) -> StackedRecords {
    let mut records = Vec::new();
    for output in output {
        if let Output::Stacked(mut stacked) = output {
            records.append(&mut stacked.samples);
        }
    }
    records
}
