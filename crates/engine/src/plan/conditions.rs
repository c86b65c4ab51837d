//! The checks of the conditions of events.

use pmu::state::CounterSet;
use pmu::{ProcessorIndex, Source};
use protocol::{BRANCHES, ErrorCode, EventRequest, StartHeader, event_flags, flags, modes};

use crate::event::{Condition, EventFilter, PlannedEvent};
use crate::plan::served::Served;
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

/// Lets the counters of a processor decide on the condition of its sampled event, if there is one alone, they can
/// [reload](pmu::state::CounterState::reloaded) each other, and a condition that its own event is compared in is all
/// that the other one is counted for. `own` has an entry for each event with a counter of its own.
#[inline(never)] // for the stack of its caller
pub(super) fn let_counters_decide(
    events: &[PlannedEvent],
    served: &[Served],
    own: &mut [Counted],
    reloadable: CounterSet,
) {
    let position = |index: usize| {
        let before = served.get(..index)?.iter().filter(|served| served.own().is_some()).count();
        served.get(index)?.own().map(|wanted| (before, wanted.state))
    };
    let is_here = |(_, (event, served)): &(usize, (&PlannedEvent, &Served))| {
        event.sampled && !matches!(served, Served::Elsewhere)
    };
    let mut sampled = events.iter().zip(served).enumerate().filter(is_here);
    let (Some((index, (event, Served::Own { frequency: 0, .. }))), None) = (sampled.next(), sampled.next()) else {
        return;
    };
    let pair = || {
        let (first, state) = position(index)?;
        let (other, count) = event.condition?.reached(u16::try_from(index).ok()?, state.interval())?;
        let (second, _) =
            position(other.into()).filter(|_| events.get(usize::from(other)).is_some_and(|one| one.beside))?;
        Some((first, second, count))
    };
    let Some((first, second, count)) = pair().filter(|_| !reloadable.is_empty()) else { return };
    if let Ok([sampled, silent]) = own.get_disjoint_mut([first, second]) {
        for Counted { wanted, .. } in [&mut *sampled, &mut *silent] {
            wanted.within = wanted.within.and(reloadable);
            wanted.state = wanted.state.with_reloaded(true);
        }
        silent.wanted.state = silent.wanted.state.with_interval(count).with_silent(true);
    }
}

/// Checks that an interrupt of the processor that was added last can read the events of each condition.
#[inline(never)] // for the stack of its caller
pub(super) fn check(session: &Session, processor: ProcessorIndex, hal: &Hal) -> Result<(), Refusal> {
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
