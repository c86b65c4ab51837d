//! Writes the events of the engine for Event Tracing for Windows.

use engine::TraceEvent;
use protocol::trace::EventId;
use zerocopy::IntoBytes;

use crate::nt::etw::Provider;
use crate::sampler;

/// The provider. It exists from [`register`] to [`unregister`].
static PROVIDER: Provider = Provider::new(follow_trace_sessions);

/// Registers the provider. Without it, the driver works and writes no events.
///
/// # IRQL
/// PASSIVE_LEVEL.
pub fn register() {
    // A driver that counts is worth more than one that is not loaded.
    let _ = PROVIDER.register();
}

/// Unregisters the provider.
///
/// # IRQL
/// PASSIVE_LEVEL.
pub fn unregister() {
    PROVIDER.unregister();
}

/// Adopts whether a trace session wants events.
fn follow_trace_sessions() {
    if let Some(sampler) = sampler::get() {
        sampler.set_wants_events(wants_samples());
    }
}

/// Returns whether a trace session wants samples or losses.
///
/// # IRQL
/// Any.
pub fn wants_samples() -> bool {
    PROVIDER.wants(EventId::Sample) || PROVIDER.wants(EventId::Lost)
}

/// Returns whether a trace session wants the events of sessions.
///
/// # IRQL
/// Any.
pub fn wants_session_events() -> bool {
    PROVIDER.wants(EventId::SessionStart)
}

/// Writes an event, if a trace session wants it.
///
/// # IRQL
/// At most DISPATCH_LEVEL.
pub fn write(event: &TraceEvent<'_>) {
    match event {
        TraceEvent::Sample(sample) => PROVIDER.write(EventId::Sample, &[sample.as_bytes()]),
        TraceEvent::Lost(loss) => PROVIDER.write(EventId::Lost, &[loss.as_bytes()]),
        TraceEvent::Throttled(loss) => PROVIDER.write(EventId::Throttled, &[loss.as_bytes()]),
        TraceEvent::SessionStart(start, name) => {
            let length = u16::try_from(name.len()).unwrap_or(0);
            let name = name.as_bytes().get(..length.into()).unwrap_or_default();
            PROVIDER.write(EventId::SessionStart, &[start.as_bytes(), &length.to_le_bytes(), name]);
        }
        TraceEvent::SessionStop(stop) => PROVIDER.write(EventId::SessionStop, &[stop.as_bytes()]),
    }
}
