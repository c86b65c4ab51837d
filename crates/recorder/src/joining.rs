//! The thread that joins samples with their call stacks. It waits for samples and events, and for memory if the disk is
//! slow.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use protocol::SampleRecord;
use recording::SampleStack;
use stacks::{Joiner, SampleEvent, StackCounts, UserPart};

use super::Output;
use super::batch::Batch;
use super::budget::{Budget, Share};

/// Time between two looks at samples that have waited for long enough.
const PAUSE: Duration = Duration::from_millis(50);

/// Number of messages after which joined samples are passed on although more messages are there. After a stall, those
/// can have the stacks of samples that have waited for long enough.
const MAX_MESSAGES: usize = 1 << 16;

/// What the thread receives.
pub enum Input {
    /// Samples of the driver.
    Samples(Arc<Batch>),
    /// An event for a sample.
    Event(Box<SampleEvent>, Share),
    /// Frames in user mode.
    UserPart(UserPart, Share),
    /// Times in which threads did not run, with their stacks.
    OffCpu(Vec<(SampleRecord, SampleStack)>),
}

/// Samples with their stacks.
pub struct StackedSamples {
    /// The samples.
    pub samples: Vec<(SampleRecord, SampleStack)>,
    /// Their number, also when they were taken.
    count: usize,
    _share: Share,
}

impl StackedSamples {
    /// Returns the number of samples.
    pub const fn len(&self) -> usize {
        self.count
    }
}

/// Joins samples with their stacks.
pub struct JoinThread {
    /// Ends when all senders have ended.
    pub input: Receiver<Input>,
    /// The rules.
    pub joiner: Joiner,
    /// Receives the samples.
    pub file: Option<Sender<Output>>,
    /// Memory for samples that are not written yet.
    pub budget: Arc<Budget>,
}

impl JoinThread {
    /// Joins until all senders have ended. Returns how many samples have stacks.
    pub fn run(mut self) -> StackCounts {
        let begin = Instant::now();
        loop {
            match self.input.recv_timeout(PAUSE) {
                Ok(message) => self.add(message, begin.elapsed()),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            for _ in 0..MAX_MESSAGES {
                let Ok(message) = self.input.try_recv() else { break };
                self.add(message, begin.elapsed());
            }
            let joined = self.joiner.take(begin.elapsed());
            self.pass_on(joined);
        }
        let rest = self.joiner.finish();
        self.pass_on(rest);
        self.joiner.counts()
    }

    fn add(&mut self, message: Input, now: Duration) {
        match message {
            Input::Samples(batch) => self.joiner.records(batch.records(), now),
            Input::Event(event, _share) => self.joiner.event(*event, now),
            Input::UserPart(part, _share) => self.joiner.user_part(part, now),
            Input::OffCpu(found) => self.pass_on(found),
        }
    }

    /// Passes samples on. A receiver that has ended has reported why.
    fn pass_on(&self, samples: Vec<(SampleRecord, SampleStack)>) {
        let (Some(file), false) = (&self.file, samples.is_empty()) else { return };
        let callers: usize = samples.iter().map(|(_, stack)| callers(stack)).sum();
        let bytes = size_of_val(&*samples) + callers * size_of::<u64>();
        let share = self.budget.take(bytes);
        let _ = file.send(Output::Stacked(StackedSamples { count: samples.len(), samples, _share: share }));
    }
}

fn callers(stack: &SampleStack) -> usize {
    match stack {
        SampleStack::Stack(stack) => stack.callers.len(),
        SampleStack::Missing(_) | SampleStack::NotRecorded => 0,
    }
}
