//! The checks of the conditions of events.

use pmu::placement::Wanted;
use pmu::state::CounterSet;
use pmu::{ProcessorIndex, Source};
use protocol::{BRANCHES, ErrorCode, EventRequest, StartHeader, event_flags, flags, modes};

use crate::event::{Condition, EventFilter, PlannedEvent};
use crate::reply::{Refusal, invalid};
use crate::rounds::Counted;
use crate::sampler::{Hal, MAX_CONDITIONS};
use crate::session::{Count, Place, Session};

/// Returns the condition of an event of a request of so many, if it has one. Only an interrupt can decide it, and only
/// of counters that count all the time.
pub(super) fn requested(
    request: &EventRequest,
    header: &StartHeader,
    events: usize,
) -> Result<Option<Condition>, Refusal> {
    let EventRequest { event, modes, interval, flags, ratio, limit, .. } = *request;
    let is_above = match flags & (event_flags::BELOW | event_flags::ABOVE) {
        0 if (ratio, limit) == ([0; 2], [0; 2]) => return Ok(None),
        event_flags::BELOW => false,
        event_flags::ABOVE => true,
        other => return Err(invalid(ErrorCode::BadFlags, other.into()).source(event.source)),
    };
    let is_interrupted = interval != 0 && event.source != BRANCHES && Source(event.source) != Source::TIME;
    let is_decided = modes & modes::PRECISE == 0 && header.flags & flags::MULTIPLEX == 0;
    if !is_interrupted || !is_decided || ratio.iter().any(|index| usize::from(*index) >= events) {
        return Err(invalid(ErrorCode::BadCondition, 0).source(event.source));
    }
    Ok(Some(Condition { ratio, is_above, limit }))
}

/// Lets the counters of a processor decide on the condition of its sampled event, by [reloading each
/// other](pmu::state::CounterState::reloaded): if there is one such event alone, it is one of the two that are
/// compared, and the other is counted for nothing else.
#[inline(never)] // for the stack of its caller
pub(super) fn let_counters_decide(session: &Session, own: &mut [Counted], reloadable: CounterSet) {
    if reloadable.is_empty() {
        return;
    }
    let row = session.events.iter().zip(session.last_row());
    let is_served = row.filter(|(event, (place, _))| event.sampled && !matches!(place, Place::Elsewhere)).count() != 0;
    let event_of = |own: &Counted| session.events.get(own.event);
    let mut sampled = own.iter().filter(|own| event_of(own).is_some_and(|event| event.sampled));
    if let (Some(Counted { event, wanted, frequency: 0, .. }), None) = (sampled.next(), sampled.next())
        && !is_served
        && let (index, interval) = (*event, wanted.state.interval())
        && let Some(condition) = session.events.get(index).and_then(|event| event.condition)
        && let Some((other, count)) = condition.reached(u16::try_from(index).unwrap_or(u16::MAX), interval)
        && let other = usize::from(other)
        && session.events.get(other).is_some_and(|event| event.beside)
        && let Some(Counted { wanted, .. }) = own.iter_mut().find(|own| own.event == other)
    {
        wanted.state = wanted.state.with_reloaded(true).with_silent(true).with_interval(count);
        if let Some(Counted { wanted, .. }) = own.iter_mut().find(|own| own.event == index) {
            wanted.state = wanted.state.with_reloaded(true);
        }
    }
}

/// Leaves the decision to the handler, if it was that of counters: gives all events all counters that they can have.
/// Returns whether it was.
pub(super) fn let_handler_decide(own: &mut [Counted]) -> bool {
    let did_counters = own.iter().any(|counted| counted.wanted.state.reloaded());
    if did_counters {
        for Counted { wanted, counters, .. } in own {
            *wanted = Wanted { state: wanted.state.alone(), within: *counters };
        }
    }
    did_counters
}

/// Checks that an interrupt of the processor that was added last can read the events of each condition.
#[inline(never)] // for the stack of its caller
pub(super) fn check(session: &Session, processor: ProcessorIndex, hal: &Hal) -> Result<(), Refusal> {
    if session.events.iter().all(|event| event.condition.is_none()) {
        return Ok(()); // as most sessions
    }
    let conditional = |(event, ..): &(&PlannedEvent, Place, &Count)| event.condition.is_some();
    if let Some((event, ..)) = session.running(processor, EventFilter::ALL).filter(conditional).nth(MAX_CONDITIONS) {
        return Err(invalid(ErrorCode::BadCondition, 2).source(event.requested.source));
    }
    let unreadable = |counter: &u8| {
        hal.interface_of(processor).unit().has(*counter) || hal.cpu_counters(processor).get(*counter).precise()
    };
    for (event, place, _) in session.running(processor, EventFilter::ALL) {
        if let (Some(condition), Place::Counter(_)) = (event.condition, place)
            && session.ratio_counters(processor, condition).is_none_or(|both| both.iter().any(unreadable))
        {
            let refusal = invalid(ErrorCode::BadCondition, 1).source(event.requested.source);
            return Err(refusal.processor(processor));
        }
    }
    Ok(())
}
