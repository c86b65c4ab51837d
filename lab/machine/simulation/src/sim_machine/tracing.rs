//! Events for Event Tracing for Windows, as the machine's engine writes them.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use engine::{Engine, TraceEvent};
use protocol::trace::{Loss, Sample, SessionStart, SessionStop};

use super::{SimMachine, lock};

/// What the machine keeps for events.
#[derive(Default)]
pub struct Tracing {
    written: Mutex<Vec<WrittenEvent>>,
    /// Whether the DPCs that write events wait.
    holds_dpcs: AtomicBool,
}

/// An event that the engine wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WrittenEvent {
    /// Of [`TraceEvent::Sample`].
    Sample(Sample),
    /// Of [`TraceEvent::Lost`].
    Lost(Loss),
    /// Of [`TraceEvent::Throttled`].
    Throttled(Loss),
    /// Of [`TraceEvent::SessionStart`].
    SessionStart(SessionStart, String),
    /// Of [`TraceEvent::SessionStop`].
    SessionStop(SessionStop),
}

impl From<&TraceEvent<'_>> for WrittenEvent {
    fn from(event: &TraceEvent<'_>) -> Self {
        match *event {
            TraceEvent::Sample(sample) => Self::Sample(sample),
            TraceEvent::Lost(loss) => Self::Lost(loss),
            TraceEvent::Throttled(loss) => Self::Throttled(loss),
            TraceEvent::SessionStart(start, name) => Self::SessionStart(start, name.to_owned()),
            TraceEvent::SessionStop(stop) => Self::SessionStop(stop),
        }
    }
}

impl SimMachine {
    /// Runs the DPC of a processor that has events, unless DPCs are [held](Self::hold_dpcs).
    pub(super) fn run_dpc(&self, engine: &Engine<&Self>, processor: u32, has_events: bool) {
        if has_events && !self.tracing.holds_dpcs.load(Ordering::Relaxed) {
            self.write_events(engine, processor);
        }
    }

    /// Writes the events of a processor, as its DPC does.
    pub fn write_events(&self, engine: &Engine<&Self>, processor: u32) {
        while let Some(event) = engine.sampler().take_event(self.current(processor)) {
            self.add_event(&event);
        }
    }

    /// Sets whether the DPCs that write events wait, as while the processors run at DISPATCH_LEVEL.
    pub fn hold_dpcs(&self, hold: bool) {
        self.tracing.holds_dpcs.store(hold, Ordering::Relaxed);
    }

    /// Returns the events written since the last call.
    #[must_use]
    pub fn take_events(&self) -> Vec<WrittenEvent> {
        core::mem::take(&mut lock(&self.tracing.written))
    }

    pub(super) fn add_event(&self, event: &TraceEvent<'_>) {
        lock(&self.tracing.written).push(event.into());
    }
}
