//! The event beside which some processors measure load latency.

use pmu::extra::Selector;
use pmu::{HalError, ProcessorIndex, Source, Support};

use crate::event::{PlannedEvent, Service};
use crate::reply::Refusal;
use crate::sampler::Hal;
use crate::session::Session;

/// Refuses an event whose load latency a processor measures only beside another one, without that.
pub(super) fn check(session: &Session, processor: ProcessorIndex, hal: &Hal) -> Result<(), Refusal> {
    let events = || session.events.iter().filter(|event| event.is_on(hal.core_type(processor)));
    let is_latency = |event: &&PlannedEvent| {
        let raw = Source(event.requested.source).raw();
        raw.is_some_and(|raw| raw.selector() == Selector::LoadLatency as u8)
    };
    let needs = |event: &&PlannedEvent| match event.service {
        Service::Counter { state, .. } => hal.needs_auxiliary(processor, state),
        _ => false,
    };
    // Few sessions have such an event, and only for these the processor is looked up.
    match session.events.iter().find(is_latency).and_then(|_| events().filter(is_latency).find(needs)) {
        Some(event) if !events().any(|other| other.is_auxiliary(session.round.is_some())) => {
            let source = Source(event.requested.source);
            Err(HalError::Unsupported(source, Support::NeedsAuxiliaryEvent).into())
        }
        _ => Ok(()),
    }
}
