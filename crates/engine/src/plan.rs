//! Planning: everything that can be refused about a session, before a register is touched.

use alloc::vec::Vec;
use core::sync::atomic::AtomicU64;

use profile::state::CounterState;
use profile::{Hal, ProfileInterface, Source};
use protocol::status::{STATUS_INSUFFICIENT_RESOURCES, STATUS_INVALID_PARAMETER, STATUS_NOT_SUPPORTED};
use protocol::{Cause, EventRequest, ProcessorSet, flags, modes};

use crate::clients::ClientId;
use crate::machine::{Ground, Machine};
use crate::reply::{Refusal, Reply};
use crate::session::{Event, Place, Session};

/// The tags that a counter's state has room for, and so the sessions at a time.
pub const MOST_SESSIONS: u16 = 0xFFF;

/// Memory is short.
pub const NO_MEMORY: Refusal = Refusal::new(STATUS_INSUFFICIENT_RESOURCES, Cause::NoMemory);

/// Who wants a session, and of what kind.
#[derive(Debug, Clone, Copy)]
pub struct Applicant {
    /// The handle.
    pub client: ClientId,
    /// Its process.
    pub process: u32,
    /// [`flags`].
    pub flags: u32,
}

/// How an event is to be served: by a counter in this state, or by the timer.
type Wanted = Option<CounterState>;

/// What a session is planned among.
#[derive(Debug)]
pub struct Planner<'a, M> {
    /// The machine.
    pub ground: Ground<'a, M>,
    /// The sessions that run.
    pub others: &'a [Session],
}

impl<M: Machine> Planner<'_, M> {
    /// A session of this number with a counter or the timer for every event on every processor, or nothing at all.
    /// Refused for want of a counter, it tells who holds them.
    pub fn plan(
        &self,
        number: u64,
        applicant: Applicant,
        wanted: &ProcessorSet,
        events: &[EventRequest],
        reply: &mut Reply<'_>,
    ) -> Result<Session, Refusal> {
        let Ground { machine, hal } = self.ground;
        if applicant.flags & !flags::ALL != 0 {
            return Err(invalid(Cause::BadFlags, u64::from(applicant.flags)));
        }
        let detached = applicant.flags & flags::DETACHED != 0;
        let mut wanteds = with_room(events.len())?;
        for event in events {
            let wanted = how_to_serve(event, hal)?;
            if let Some(session) = self.detached_with(event).filter(|_| detached) {
                return Err(invalid(Cause::AlreadyStarted, session.number).source(event.source));
            }
            wanteds.push(wanted);
        }
        if wanteds.iter().any(Option::is_some) && !hal.is_promised() {
            return Err(Refusal::new(STATUS_NOT_SUPPORTED, Cause::CountersNotPromised));
        }
        let processors = choose(wanted, machine.processors())?;
        let mut session = Session {
            number,
            tag: self.free_tag()?,
            owner: (!detached).then_some(applicant.client),
            process: applicant.process,
            started: machine.now(),
            events: with_room(events.len())?,
            places: with_room(events.len() * processors.len())?,
            counts: with_room(events.len() * processors.len())?,
            processors,
        };
        session.events.extend(events.iter().map(|event| Event {
            source: event.source,
            modes: event.modes,
            running: true,
        }));
        let cells = events.len() * session.processors.len();
        session.counts.extend((0..cells).map(|_| AtomicU64::new(0)));
        self.reserve(&mut session, &wanteds, reply)?;
        Ok(session)
    }

    /// A counter or the timer for each event on each processor of the session, or none at all.
    fn reserve(&self, session: &mut Session, wanteds: &[Wanted], reply: &mut Reply<'_>) -> Result<(), Refusal> {
        let Ground { machine, hal } = self.ground;
        let Session { tag, processors, events, places, .. } = session;
        for processor in processors.iter() {
            for (wanted, event) in wanteds.iter().zip(events.iter()) {
                let place = match wanted {
                    None => Some(Place::Timer(machine.ticks(*processor))),
                    Some(state) => hal.reserve(*processor, state.with_owner(*tag)).map(Place::Counter),
                };
                if let Some(place) = place {
                    places.push(place);
                    continue;
                }
                let on_it = |other: &&Session| other.processors.binary_search(processor).is_ok();
                self.others.iter().filter(on_it).for_each(|other| other.tell_holders(reply));
                let needed = wanteds.iter().flatten().count() as u64;
                let refusal = Refusal::new(STATUS_INSUFFICIENT_RESOURCES, Cause::NoFreeCounter)
                    .source(event.source)
                    .processor(*processor)
                    .detail(u64::from(hal.interface().counters()), needed);
                session.give_back(hal);
                return Err(refusal);
            }
        }
        Ok(())
    }

    fn detached_with(&self, wanted: &EventRequest) -> Option<&Session> {
        self.others.iter().filter(|session| session.owner.is_none()).find(|session| {
            session.events.iter().any(|event| event.is_running(wanted.source) && event.modes == wanted.modes)
        })
    }

    fn free_tag(&self) -> Result<u16, Refusal> {
        let taken = |tag: &u16| self.others.iter().any(|session| session.tag == *tag);
        (1..=MOST_SESSIONS).find(|tag| !taken(tag)).ok_or(
            Refusal::new(STATUS_INSUFFICIENT_RESOURCES, Cause::TooManySessions).detail(u64::from(MOST_SESSIONS), 0),
        )
    }
}

/// How an event is served; refused if it can not be.
fn how_to_serve(event: &EventRequest, hal: &Hal) -> Result<Wanted, Refusal> {
    let bad_modes = invalid(Cause::BadModes, u64::from(event.modes)).source(event.source);
    hal.startable(Source(event.source))?;
    if event.modes & modes::BOTH == 0 || event.modes & !modes::BOTH != 0 {
        return Err(bad_modes);
    }
    if Source(event.source) == Source::TIME {
        // A timer goes on in both modes.
        return if event.modes == modes::BOTH { Ok(None) } else { Err(bad_modes) };
    }
    let state = hal.state_for(Source(event.source), false)?;
    Ok(Some(state.with_user(event.modes & modes::USER != 0).with_kernel(event.modes & modes::KERNEL != 0)))
}

/// A value of the request is out of its range.
pub const fn invalid(cause: Cause, detail: u64) -> Refusal {
    Refusal::new(STATUS_INVALID_PARAMETER, cause).detail(detail, 0)
}

fn with_room<T>(length: usize) -> Result<Vec<T>, Refusal> {
    let mut items = Vec::new();
    items.try_reserve_exact(length).map_err(|_| NO_MEMORY)?;
    Ok(items)
}

/// The processors meant, in ascending order: all active ones, or those of the set, which must be active.
fn choose(wanted: &ProcessorSet, active: u32) -> Result<Vec<u32>, Refusal> {
    let mut chosen = with_room(active as usize)?;
    if wanted.is_empty() {
        chosen.extend(0..active);
    }
    for processor in wanted.iter() {
        if processor >= active {
            return Err(invalid(Cause::NoSuchProcessor, u64::from(active)).processor(processor));
        }
        chosen.push(processor);
    }
    if chosen.is_empty() { Err(invalid(Cause::NoProcessor, u64::from(active))) } else { Ok(chosen) }
}
