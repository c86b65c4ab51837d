//! Event Tracing for Windows of a fake system.

use std::io;
use std::sync::Arc;

use super::event::FakeEvent;
use super::model::ModelMachine;
use super::shared::Shared;
use system::trace::{TraceError, TraceLosses, TracePlan, TraceSession, TraceSink};

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
