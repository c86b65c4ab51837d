//! An event to sample, from its name to the request.

use halprof::Driver;
use halprof::event::{SampledEvent, resolve};
use halprof::source::SourceInfo;
use pmu::Source;
use protocol::{EventRequest, ProcessorSet};

use user_error::Error;

/// Units of ProfileTime per second, and in a millisecond, the unit of the kernel's timers.
pub const TIME_UNITS: u32 = 10_000_000;
const TIMER_UNIT: u32 = 10_000;

/// An event as the user named it.
pub struct RequestedEvent {
    /// The source, or the event of the maker.
    pub source: SourceInfo,
    /// Number of the core type, or 0.
    pub core_type: u32,
    /// [`protocol::modes`].
    pub modes: u32,
    /// Counters that may count it, or 0.
    pub counters: u32,
    /// Its interval, if it has a fixed one.
    pub interval: Option<u32>,
}

impl RequestedEvent {
    /// Returns the events that a name means on these processors: on a hybrid, one for each core type that has it.
    ///
    /// # Errors
    /// If the machine does not have the event.
    pub fn of(sampled: &SampledEvent, processors: &ProcessorSet, connection: &Driver) -> Result<Vec<Self>, Error> {
        let SampledEvent { event, interval } = sampled;
        let found = resolve(&event.source, event.modes, processors, connection)?;
        Ok(found
            .into_iter()
            .map(|found| Self {
                source: found.source,
                core_type: found.core_type,
                modes: event.modes,
                counters: if event.counters == 0 { found.counters } else { event.counters },
                interval: *interval,
            })
            .collect())
    }

    /// Returns the request for the event. An interval that the user named is fixed; otherwise, it is adjusted to
    /// `frequency`. The interval of a timer is a whole number of milliseconds and is never adjusted.
    #[must_use]
    pub fn request(&self, frequency: u32) -> EventRequest {
        let Self { source, core_type, modes, counters, interval } = self;
        if source.id == Source::TIME.0 {
            let wanted = interval.unwrap_or_else(|| TIME_UNITS / frequency.max(1));
            let interval = wanted.clamp(source.minimum, source.maximum).next_multiple_of(TIMER_UNIT);
            let [core_type, modes, counters] = [*core_type, *modes, *counters];
            return EventRequest { source: source.id, modes, interval, core_type, counters, ..EventRequest::EMPTY };
        }
        let (interval, frequency) = match interval {
            Some(interval) => ((*interval).max(source.minimum).min(source.maximum), 0),
            None => (source.interval, frequency),
        };
        EventRequest {
            source: source.id,
            modes: *modes,
            interval,
            frequency,
            core_type: *core_type,
            counters: *counters,
            event: source.event,
            extra: source.extra,
            ..EventRequest::EMPTY
        }
    }
}
