//! Event Tracing for Windows of a fake system.

use std::io;
use std::sync::Arc;

use super::model::ModelMachine;
use super::shared::Shared;
use crate::trace::raw::{Guid, STACK_TRACE64};
use crate::trace::{Extension, RawEvent, TraceError, TraceLosses, TracePlan, TraceSession, TraceSink};

/// An event that a fake session delivers.
#[derive(Debug, Clone, Default)]
pub struct FakeEvent {
    /// Provider.
    pub provider: Guid,
    /// ID, or the type of a MOF event.
    pub number: u16,
    /// Version.
    pub version: u8,
    /// Process and thread.
    pub task: [u32; 2],
    /// Time.
    pub time: u64,
    /// Payload.
    pub payload: Vec<u8>,
    /// MatchId and frames of each stack.
    pub stacks: Vec<(u64, Vec<u64>)>,
}

impl FakeEvent {
    fn deliver(&self, sink: &mut TraceSink) {
        let bytes = |(match_id, frames): &(u64, Vec<u64>)| -> Vec<u8> {
            [&[*match_id][..], frames].concat().into_iter().flat_map(u64::to_le_bytes).collect()
        };
        let items: Vec<Vec<u8>> = self.stacks.iter().map(bytes).collect();
        let extensions: Vec<_> = items.iter().map(|bytes| Extension { kind: STACK_TRACE64, bytes }).collect();
        let [process, thread] = self.task;
        sink(&RawEvent {
            provider: self.provider,
            id: self.number,
            opcode: u8::try_from(self.number).unwrap(),
            version: self.version,
            process,
            thread,
            time: self.time,
            payload: &self.payload,
            extensions: &extensions,
            ..RawEvent::EMPTY
        });
    }
}

/// Changes events before they are delivered.
pub type Change = fn(&mut Vec<FakeEvent>);

/// The trace sessions of a fake system.
#[derive(Debug, Default)]
pub struct FakeTrace {
    /// Win32 error code with which sessions are refused.
    pub refusal: Shared<Option<i32>>,
    /// Events that are delivered when a session starts, and when it is stopped.
    pub events: Shared<[Vec<FakeEvent>; 2]>,
    /// Changes the events of the model's driver, which are delivered when a session is stopped.
    pub change: Shared<Option<Change>>,
    /// What is lost.
    pub losses: Shared<TraceLosses>,
    /// The sessions that were started.
    pub started: Shared<Vec<TracePlan>>,
    /// Number of those that were stopped.
    pub stopped: Shared<usize>,
}

impl FakeTrace {
    /// Starts a session, which also has the events of the model's driver.
    pub fn start(
        self: &Arc<Self>,
        plan: &TracePlan,
        mut sink: TraceSink,
        model: Option<&Arc<ModelMachine>>,
    ) -> Result<Box<dyn TraceSession>, TraceError> {
        if let Some(code) = self.refusal.get() {
            return Err(TraceError::at("StartTrace")(io::Error::from_raw_os_error(code)));
        }
        self.started.borrow().push(plan.clone());
        let [first, last] = self.events.take();
        for event in first {
            event.deliver(&mut sink);
        }
        if let Some(model) = model {
            model.set_wants_events(true);
        }
        Ok(Box::new(FakeSession { trace: Arc::clone(self), sink: Some(sink), last, model: model.cloned() }))
    }
}

struct FakeSession {
    trace: Arc<FakeTrace>,
    sink: Option<TraceSink>,
    last: Vec<FakeEvent>,
    model: Option<Arc<ModelMachine>>,
}

impl TraceSession for FakeSession {
    fn stop(&mut self) -> io::Result<TraceLosses> {
        let mut sink = self.sink.take().unwrap();
        if let Some(model) = &self.model {
            let mut written = model.take_events();
            model.set_wants_events(false);
            if let Some(change) = self.trace.change.get() {
                change(&mut written);
            }
            self.last.append(&mut written);
        }
        for event in &self.last {
            event.deliver(&mut sink);
        }
        *self.trace.stopped.borrow() += 1;
        Ok(self.trace.losses.get())
    }
}

impl Drop for FakeSession {
    fn drop(&mut self) {
        *self.trace.stopped.borrow() += usize::from(self.sink.is_some());
    }
}
