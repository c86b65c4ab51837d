//! An event to sample, from its name to the request.

use halprof::Driver;
use halprof::event::role::Role;
use halprof::event::{EventName, SampledEvent, SourceName, find, resolve};
use halprof::source::SourceInfo;
use pmu::Source;
use protocol::{EventRequest, ProcessorSet, event_flags, modes};

use user_error::Error;

/// Units of ProfileTime per second, and in a millisecond, the unit of the kernel's timers.
pub const TIME_UNITS: u32 = 10_000_000;
const TIMER_UNIT: u32 = 10_000;

/// An event as the user named it.
pub struct RequestedEvent {
    /// The source, or the event of the maker, on the counters that may count it.
    pub source: SourceInfo,
    /// [`protocol::modes`].
    pub modes: u32,
    /// What IBS samples, in bits of [`event_flags`].
    pub flags: u32,
    /// Its interval, if it has a fixed one.
    pub interval: Option<u32>,
    /// Whether it has no fixed interval, and happens about once in a cycle.
    pub follows_clock: bool,
}

impl RequestedEvent {
    /// Returns the events that a name means on these processors: on a hybrid, one for each core type that has it.
    ///
    /// # Errors
    /// If the machine does not have the event.
    pub fn of(sampled: &SampledEvent, processors: &ProcessorSet, connection: &Driver) -> Result<Vec<Self>, Error> {
        let SampledEvent { event: EventName { source, modes, counters, flags }, interval } = sampled;
        let of_each_cycle = if interval.is_none() { of_each_cycle(connection)? } else { Vec::new() };
        let requested = |mut found: SourceInfo| {
            let follows_clock = of_each_cycle.contains(&found.event.source);
            if *counters != 0 {
                found.event.counters = *counters;
            }
            let flags = flags & (event_flags::LOADS | event_flags::STORES | event_flags::FETCHES);
            Self { source: found, modes: *modes, flags, interval: *interval, follows_clock }
        };
        Ok(resolve(source, *modes, processors, connection)?.into_iter().map(requested).collect())
    }

    /// Returns the request for the event. An interval that the user named is fixed; otherwise, it is adjusted to
    /// `frequency`, from one near it if the event follows the `clock`, which has so many hertz. The interval of a timer
    /// is a whole number of milliseconds and is never adjusted.
    #[must_use]
    pub fn request(&self, frequency: u32, clock: Option<u64>) -> EventRequest {
        let Self { source, modes, flags, interval, follows_clock } = self;
        let range = source.minimum..=source.maximum;
        let clamp = |wanted: u32| wanted.max(*range.start()).min(*range.end());
        let (interval, frequency) = match interval {
            _ if source.event.source == Source::TIME.0 => {
                let wanted = interval.unwrap_or_else(|| TIME_UNITS / frequency.max(1));
                (clamp(wanted).next_multiple_of(TIMER_UNIT), 0)
            }
            Some(interval) => (clamp(*interval), 0),
            None => {
                let near = clock.filter(|_| *follows_clock).map(|hertz| hertz / u64::from(frequency.max(1)));
                (near.map_or(source.interval, |near| clamp(u32::try_from(near).unwrap_or(u32::MAX))), frequency)
            }
        };
        EventRequest { event: source.event, modes: *modes, interval, frequency, flags: *flags, ..EventRequest::EMPTY }
    }
}

/// Returns the requests that sample what these count, about `frequency` times a second on each processor, and on
/// counters of their own.
///
/// # Errors
/// If the driver does not answer.
pub fn sampling(
    counted: &[EventRequest],
    frequency: u32,
    clock: Option<u64>,
    connection: &Driver,
) -> Result<Vec<EventRequest>, Error> {
    let (sources, of_each_cycle) = (connection.sources()?, of_each_cycle(connection)?);
    let sampling = |request: &EventRequest| {
        let source = sources.of_event(request.event).unwrap_or_else(|| SourceInfo::from(request.event));
        let follows_clock = of_each_cycle.contains(&request.event.source);
        RequestedEvent { source, modes: request.modes, flags: 0, interval: None, follows_clock }
            .request(frequency, clock)
    };
    Ok(counted.iter().map(sampling).collect())
}

/// Returns the sources of the events that happen about once in a cycle.
fn of_each_cycle(driver: &Driver) -> Result<Vec<u64>, Error> {
    let sources = driver.sources()?;
    let of_hal = [Role::Cycles, Role::Instructions].into_iter().filter_map(|role| sources.with_role(role));
    let mut found: Vec<u64> = of_hal.map(|source| source.event.source).collect();
    for name in ["cycles", "instructions", "ref-cycles"] {
        // A machine that does not have it has other events.
        let named = find(&SourceName::Name(name.to_owned()), modes::BOTH, &ProcessorSet::EMPTY, driver);
        found.extend(named.into_iter().flatten().map(|source| source.event.source));
    }
    Ok(found)
}
