//! What a request says by itself: its checks, before a processor is looked at.

use pmu::extra::Selector;
use pmu::interval::IntervalRange;
use pmu::source::FullEvent;
use pmu::state::CounterSet;
use pmu::{CoreType, Source};
use protocol::{
    BRANCHES, ErrorCode, EventRequest, MAX_BATCH, MAX_BUDGET, MAX_FREQUENCY, RING, ROUND, StartHeader, event_flags,
    flags, modes,
};

use super::no_such_core_type;
use crate::event::Service;
use crate::hardware_recording;
use crate::platform::{EngineContext, Platform};
use crate::reply::{Refusal, invalid};
use crate::sampler::Hal;

/// Returns the core type that a request names for an event.
pub(super) fn named_core_type(event: &EventRequest, hal: &Hal) -> Result<Option<CoreType>, Refusal> {
    match CoreType::from_number(event.core_type) {
        _ if event.core_type == 0 => Ok(None),
        Some(core_type) if hal.is_hybrid() => Ok(Some(core_type)),
        Some(_) | None => Err(no_such_core_type(event.source, event.core_type, 0)),
    }
}

/// Returns the counters that the client allows for an event.
pub(super) const fn within(event: &EventRequest) -> CounterSet {
    match event.counters {
        0 => CounterSet::first(CounterSet::MOST),
        mask => CounterSet::from_bits(mask as u64),
    }
}

/// Returns how an event is served, or refuses it.
pub(super) fn how_to_serve<M: Platform>(
    event: &EventRequest,
    EngineContext { platform, hal, .. }: EngineContext<'_, M>,
) -> Result<Service, Refusal> {
    let bad_modes = invalid(ErrorCode::BadModes, u64::from(event.modes)).source(event.source);
    if event.counters != 0 && (event.source == BRANCHES || Source(event.source) == Source::TIME) {
        return Err(invalid(ErrorCode::BadCounters, 0).source(event.source).detail(0, event.counters.into()));
    }
    let precise = event.modes & modes::PRECISE != 0;
    let modes_alone = event.modes & !modes::PRECISE;
    let are_modes = modes_alone & modes::BOTH != 0 && modes_alone & !modes::BOTH == 0;
    if event.source == BRANCHES {
        check_full(event)?;
        return if are_modes && !precise { hardware_recording::branches(event) } else { Err(bad_modes) };
    }
    check_full(event)?;
    hal.startable(Source(event.source))?;
    check_sampling(event)?;
    if !are_modes || (precise && event.interval == 0) {
        return Err(bad_modes);
    }
    if Source(event.source) == Source::TIME {
        // A timer cannot be restricted to one mode.
        if event.modes != modes::BOTH {
            return Err(bad_modes);
        }
        let sampled = Some(event.interval).filter(|interval| *interval != 0);
        let wanted = sampled.map_or_else(|| hal.source_information(Source::TIME).map(|time| time.interval), Ok)?;
        return Ok(Service::Time { interval: platform.timer_interval(wanted) });
    }
    let state = if event.event == 0 {
        hal.state_for(Source(event.source), event.interval != 0)?
    } else {
        let full = FullEvent::from_bits(event.event);
        if full.selector() == Selector::LoadLatency as u8 && !precise {
            return Err(invalid(ErrorCode::PreciseOnly, 0).source(event.source));
        }
        hal.state_for_full(full, event.extra, event.interval != 0)?
    };
    let state = state.with_interval(event.interval);
    let state = state.with_user(event.modes & modes::USER != 0).with_kernel(event.modes & modes::KERNEL != 0);
    let counted = event.interval != 0 && event.flags & event_flags::COUNTED != 0;
    Ok(Service::Counter { state: state.with_precise(precise).with_counted(counted), frequency: event.frequency })
}

/// Checks that the whole event, if the request has one, is the one for which its source stands.
fn check_full(event: &EventRequest) -> Result<(), Refusal> {
    let full = FullEvent::from_bits(event.event);
    let number = full.raw().source();
    let has_known_register = match full.selector() {
        0 => event.extra == 0,
        selector => Selector::from_number(selector).is_some(),
    };
    let is_whole = full.is_valid() && number.0 == event.source && number.raw().is_some() && has_known_register;
    if is_whole || (event.event, event.extra) == (0, 0) {
        return Ok(());
    }
    Err(invalid(ErrorCode::BadEvent, event.event).source(event.source))
}

/// Checks the interval and the frequency of an event.
fn check_sampling(event: &EventRequest) -> Result<(), Refusal> {
    let range = IntervalRange::of(Source(event.source));
    let bad = |cause, from, to| Err(invalid(cause, from).detail(from, to).source(event.source));
    match (event.interval, event.frequency) {
        (0, 0) => Ok(()),
        (0, _) => bad(ErrorCode::BadFrequency, 0, 0),
        (interval, _) if range.clamp(interval) != interval => {
            bad(ErrorCode::BadInterval, range.minimum.into(), range.maximum.into())
        }
        // Nothing adapts the interval of a timer.
        (_, frequency) if Source(event.source) == Source::TIME && frequency != 0 => bad(ErrorCode::BadFrequency, 0, 0),
        (_, frequency) if frequency > MAX_FREQUENCY => bad(ErrorCode::BadFrequency, MAX_FREQUENCY.into(), 0),
        _ => Ok(()),
    }
}

/// Checks the parameters of the session against its events.
pub(super) fn check(header: &StartHeader, sampled: bool, events: &[EventRequest]) -> Result<(), Refusal> {
    let StartHeader { flags, ring, budget, batch, round, reserved: _, ref processors } = *header;
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
        Err(invalid(ErrorCode::BadFlags, u64::from(event.flags)).source(event.source))
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
