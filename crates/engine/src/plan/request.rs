//! What a request says by itself: its checks, before a processor is looked at.

use pmu::extra::Selector;
use pmu::interval::IntervalRange;
use pmu::source::RawEvent;
use pmu::state::CounterSet;
use pmu::{CoreType, Kind, Source};
use protocol::{
    BRANCHES, ErrorCode, Event, EventRequest, MAX_BATCH, MAX_BUDGET, MAX_FREQUENCY, RING, ROUND, StartHeader,
    event_flags, flags, modes,
};

use super::no_such_core_type;
use crate::event::Service;
use crate::hardware_recording;
use crate::platform::{EngineContext, Platform};
use crate::reply::{Refusal, invalid};
use crate::sampler::Hal;

/// Checks the core type that a request names for an event, if it names one.
pub(super) fn check_core_type(event: &Event, hal: &Hal) -> Result<(), Refusal> {
    let is_known = CoreType::from_number(event.core_type).is_some() && hal.is_hybrid();
    if event.core_type == 0 || is_known {
        return Ok(());
    }
    Err(no_such_core_type(event.source, event.core_type, 0))
}

/// Returns the counters that the client allows for an event.
pub(super) const fn within(event: &Event) -> CounterSet {
    match event.counters {
        0 => CounterSet::first(CounterSet::MOST),
        mask => CounterSet::from_bits(mask as u64),
    }
}

/// Returns how an event is served, or refuses it.
#[inline(never)] // its frame is smaller than that of its caller, which makes less code
pub(super) fn how_to_serve<M: Platform>(
    request: &EventRequest,
    EngineContext { platform, hal, .. }: EngineContext<'_, M>,
) -> Result<Service, Refusal> {
    let EventRequest { event, modes, interval, frequency, .. } = *request;
    let source = Source(event.source);
    let bad_modes = || invalid(ErrorCode::BadModes, u64::from(modes)).source(event.source);
    if event.counters != 0 && (event.source == BRANCHES || source == Source::TIME) {
        return Err(invalid(ErrorCode::BadCounters, 0).source(event.source).detail(0, event.counters.into()));
    }
    let precise = modes & modes::PRECISE != 0;
    let modes_alone = modes & !modes::PRECISE;
    let are_modes = modes_alone & modes::BOTH != 0 && modes_alone & !modes::BOTH == 0;
    check_event(&event)?;
    if event.source == BRANCHES {
        return if are_modes && !precise { hardware_recording::branches(request) } else { Err(bad_modes()) };
    }
    // The counters of a raw event are looked up for each kind of processor, and it is refused then; on a hybrid before
    // it is asked for its core type.
    if !source.is_raw() || hal.is_hybrid() {
        hal.startable(source)?;
    }
    check_sampling(request)?;
    if !are_modes || (precise && interval == 0) {
        return Err(bad_modes());
    }
    if source == Source::TIME {
        // A timer cannot be restricted to one mode.
        if modes != modes::BOTH {
            return Err(bad_modes());
        }
        let sampled = Some(interval).filter(|interval| *interval != 0);
        let wanted = sampled.map_or_else(|| hal.source_information(Source::TIME).map(|time| time.interval), Ok)?;
        return Ok(Service::Time { interval: platform.timer_interval(wanted) });
    }
    let selector = source.raw().map_or(0, |event| event.selector());
    if selector == Selector::LoadLatency as u8 && !precise {
        return Err(invalid(ErrorCode::PreciseOnly, 0).source(event.source));
    }
    let state = hal.startable_state(source, event.extra, interval != 0)?.with_interval(interval);
    let state = state.with_user(modes & modes::USER != 0).with_kernel(modes & modes::KERNEL != 0);
    let counted = interval != 0 && request.flags & event_flags::COUNTED != 0;
    // AMD's processors record nothing by themselves: ops are sampled beside a counter.
    let recorded = precise && hal.interface().kind() != Kind::Amd64;
    Ok(Service::Counter { state: state.with_precise(recorded).with_counted(counted), frequency })
}

/// Checks that a raw event has no other bits than those of its fields, and an event without an extra register no value
/// for one.
fn check_event(event: &Event) -> Result<(), Refusal> {
    let is_sound = match Source(event.source).raw().map(|raw| raw.selector()) {
        None => event.extra == 0 && !RawEvent::from_bits(event.source).is_event(),
        Some(0) => event.extra == 0,
        Some(selector) => Selector::from_number(selector).is_some(),
    };
    if is_sound {
        return Ok(());
    }
    Err(invalid(ErrorCode::BadEvent, event.source).source(event.source))
}

/// Checks the interval and the frequency of an event.
fn check_sampling(request: &EventRequest) -> Result<(), Refusal> {
    let source = Source(request.event.source);
    let range = IntervalRange::of(source);
    let bad = |cause, from, to| Err(invalid(cause, from).detail(from, to).source(source.0));
    match (request.interval, request.frequency) {
        (0, 0) => Ok(()),
        (0, _) => bad(ErrorCode::BadFrequency, 0, 0),
        (interval, _) if range.clamp(interval) != interval => {
            bad(ErrorCode::BadInterval, range.minimum.into(), range.maximum.into())
        }
        // Nothing adapts the interval of a timer.
        (_, frequency) if source == Source::TIME && frequency != 0 => bad(ErrorCode::BadFrequency, 0, 0),
        (_, frequency) if frequency > MAX_FREQUENCY => bad(ErrorCode::BadFrequency, MAX_FREQUENCY.into(), 0),
        _ => Ok(()),
    }
}

/// Checks the parameters of the session against its events.
pub(super) fn check(header: &StartHeader, sampled: bool, events: &[EventRequest]) -> Result<(), Refusal> {
    let StartHeader { flags, ring, budget, batch, round, last_branches: _, ref processors } = *header;
    let (least, most) = (u64::from(*RING.start()), u64::from(*RING.end()));
    let most_batch = if events.iter().any(|event| event.modes & modes::PRECISE != 0) { MAX_BATCH } else { 0 };
    if batch > most_batch {
        return Err(invalid(ErrorCode::BadBuffer, 0).detail(u64::from(most_batch.min(1)), most_batch.into()));
    }
    let beside_threads = flags & (flags::DETACHED | flags::MULTIPLEX) != 0 || sampled || !processors.is_empty();
    if flags & !flags::ALL != 0
        || (sampled && flags & flags::DETACHED != 0)
        || (flags & flags::THREADS != 0 && beside_threads)
        || (flags & flags::YIELDS != 0 && flags & (flags::DETACHED | flags::THREADS) != 0)
    {
        Err(invalid(ErrorCode::BadFlags, u64::from(flags)))
    } else if let Some(event) = events.iter().find(|event| event.flags & !event_flags::ALL != 0) {
        Err(invalid(ErrorCode::BadFlags, u64::from(event.flags)).source(event.event.source))
    } else if round != 0 && !(flags & flags::MULTIPLEX != 0 && ROUND.contains(&round)) {
        Err(invalid(ErrorCode::BadInterval, round.into()).detail(u64::from(*ROUND.start()), u64::from(*ROUND.end())))
    } else if sampled && !(ring.is_power_of_two() && RING.contains(&ring)) {
        Err(invalid(ErrorCode::BadRing, least).detail(least, most))
    } else if !sampled && ring != 0 {
        Err(invalid(ErrorCode::BadRing, 0))
    } else if budget > if sampled { MAX_BUDGET } else { 0 } {
        Err(invalid(ErrorCode::BadFrequency, if sampled { MAX_BUDGET.into() } else { 0 }))
    } else {
        Ok(())
    }
}
