//! What processors record themselves: whether they can, and whether another session uses it.

use pmu::ProcessorIndex;
use protocol::status::{STATUS_DEVICE_BUSY, STATUS_INSUFFICIENT_RESOURCES, STATUS_NOT_SUPPORTED};
use protocol::{ErrorCode, StartHeader};

use super::Planner;
use crate::event::{PlannedEvent, Service};
use crate::hardware_recording::HardwareRecording;
use crate::ibs::IbsRecording;
use crate::last_branches::LastBranchRecording;
use crate::platform::Platform;
use crate::reply::Refusal;
use crate::sampler::Subscriber;
use crate::session::{Place, Session};
use crate::try_vec::NO_MEMORY;

impl<M: Platform> Planner<'_, M> {
    /// Checks that the processors can record the events, and that no other session uses the Debug Store.
    pub(super) fn check_traces(
        &self,
        recording: &mut HardwareRecording,
        events: &[PlannedEvent],
        processors: &[ProcessorIndex],
    ) -> Result<(), Refusal> {
        if let Some(other) = self.others.iter().find(|other| other.uses_debug_store()) {
            return Err(Refusal::new(STATUS_DEVICE_BUSY, ErrorCode::DebugStoreTaken).detail(other.number, 0));
        }
        recording.check(events, processors, self.context)?;
        if !recording.uses_store() {
            return Ok(());
        }
        // The processor writes to linear addresses then, also while it runs user code.
        match self.context.platform.is_shadowed() {
            Ok(false) => Ok(()),
            Ok(true) => Err(Refusal::new(STATUS_NOT_SUPPORTED, ErrorCode::Shadowed)),
            Err(STATUS_INSUFFICIENT_RESOURCES) => Err(NO_MEMORY),
            Err(status) => Err(Refusal::new(STATUS_NOT_SUPPORTED, ErrorCode::Shadowed).detail(status.into(), 0)),
        }
    }

    /// Plans the last branches that a request asks for. Branches go either into registers or to memory, of one session.
    pub(super) fn last_branches(
        &self,
        header: &StartHeader,
        events: &[PlannedEvent],
        processors: &[ProcessorIndex],
        subscriber: Option<Subscriber>,
    ) -> Result<Option<LastBranchRecording>, Refusal> {
        let is_traced = |event: &PlannedEvent| matches!(event.service, Service::Branches { .. });
        let needs_them = header.last_branches != 0 || events.iter().any(is_traced);
        if let Some(other) = self.others.iter().find(|other| needs_them && other.records_last_branches()) {
            return Err(Refusal::new(STATUS_DEVICE_BUSY, ErrorCode::LastBranchesTaken).detail(other.number, 0));
        }
        LastBranchRecording::plan(header, events, processors, subscriber, self.context)
    }

    /// Plans the sampling of ops or fetches, of one session.
    pub(super) fn ibs(
        &self,
        events: &[PlannedEvent],
        subscriber: Option<Subscriber>,
    ) -> Result<Option<IbsRecording>, Refusal> {
        let other = self.others.iter().find(|other| other.uses_ibs()).map(|other| other.number);
        IbsRecording::plan(events, subscriber, other, self.context)
    }
}

/// Adds the processor that was added last to a session that samples ops or fetches.
pub(super) fn add_ibs(session: &mut Session, processor: ProcessorIndex) -> Result<(), Refusal> {
    let event = session.ibs_recording.as_ref().map_or(0, IbsRecording::event);
    let place = session.last_row().get(event).map(|(place, _)| *place);
    match (&mut session.ibs_recording, session.events.get(event), place) {
        (Some(recording), Some(event), Some(Place::Counter(counter))) => recording.add(processor, event, counter),
        _ => Ok(()),
    }
}
