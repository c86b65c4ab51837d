//! The counters of sessions that programs read on their own processor, without the engine and its lock.
//!
//! Each counter of a processor notes the session that it counts for, from the begin of the session to its end on that
//! processor. Only the processor accesses the notes, at PROFILE_LEVEL, as a read does. So a session is found here
//! exactly while its counters run, and the table needs no lock and never fills up.

use core::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};

use pmu::state::CounterSet;
use pmu::{Cpu, CurrentCpu};
use protocol::{DETACHED, GroupReply, GroupRequest, ReplyHeader, group_flags, group_state};
use zerocopy::FromZeros;

use super::Sampler;
use crate::clients::ClientId;
use crate::time::Ticks;

/// The session that a counter counts for.
#[derive(Debug)]
struct GroupCounter {
    /// Number of the session, or [`NO_SESSION`].
    session: AtomicU64,
    /// Handle of the session.
    owner: AtomicUsize,
    /// 1 if the session is detached and has no handle.
    detached: AtomicU8,
    /// Index of the event in the session.
    event: AtomicU8,
    /// Number of events of the session, and of those that have a counter on the processor.
    events: AtomicU8,
    members: AtomicU8,
}

/// As a session: none. No session has the number.
const NO_SESSION: u64 = DETACHED;

/// The counters of one processor, each with its session.
#[derive(Debug)]
pub struct Groups([GroupCounter; CounterSet::MOST as usize]);

/// A group of counters of a session on a processor.
#[derive(Debug, Clone, Copy)]
pub struct Group {
    /// Number of the session.
    pub session: u64,
    /// Handle of the session. `None` if it is detached.
    pub owner: Option<ClientId>,
    /// Number of events of the session, at most [`MAX_GROUP`](protocol::MAX_GROUP).
    pub events: u8,
    /// Number of events that have a counter on the processor.
    pub members: u8,
}

impl GroupCounter {
    const fn new() -> Self {
        Self {
            session: AtomicU64::new(NO_SESSION),
            owner: AtomicUsize::new(0),
            detached: AtomicU8::new(0),
            event: AtomicU8::new(0),
            events: AtomicU8::new(0),
            members: AtomicU8::new(0),
        }
    }
}

impl Groups {
    pub const fn new() -> Self {
        Self([const { GroupCounter::new() }; CounterSet::MOST as usize])
    }

    fn of(&self, counter: u8) -> Option<&GroupCounter> {
        self.0.get(usize::from(counter))
    }

    /// Returns which of these counters count for a session that this handle may read, and the number of its events.
    /// `None` if it has no counter here, or one that does not run.
    fn find(&self, running: CounterSet, session: u64, client: ClientId) -> Option<(CounterSet, u8)> {
        let mut found = CounterSet::NONE;
        let (mut events, mut members) = (0, 0);
        for counter in running.iter() {
            let Some(one) = self.of(counter) else { continue };
            if one.session.load(Ordering::Relaxed) == session
                && (one.owner.load(Ordering::Relaxed) == client.0 || one.detached.load(Ordering::Relaxed) == 1)
            {
                found = found.with(counter);
                events = one.events.load(Ordering::Relaxed);
                members = one.members.load(Ordering::Relaxed);
            }
        }
        (session != NO_SESSION && !found.is_empty() && found.len() == u32::from(members)).then_some((found, events))
    }
}

impl Sampler {
    /// Lets programs read the counters of a session on the current processor. `counters` has each of them with the
    /// index of its event.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn begin_group(
        &self,
        current: CurrentCpu<'_, impl Cpu>,
        group: Group,
        counters: impl Iterator<Item = (u8, u8)>,
    ) {
        let Some(per_cpu) = self.per_cpu(current.index()) else { return };
        let Group { session, owner, events, members } = group;
        for (counter, event) in counters {
            if let Some(one) = per_cpu.groups.of(counter) {
                one.session.store(session, Ordering::Relaxed);
                one.owner.store(owner.map_or(0, |owner| owner.0), Ordering::Relaxed);
                one.detached.store(owner.is_none().into(), Ordering::Relaxed);
                one.event.store(event, Ordering::Relaxed);
                one.events.store(events, Ordering::Relaxed);
                one.members.store(members, Ordering::Relaxed);
            }
        }
    }

    /// Ends that for a session, before a counter of it stops.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn end_group(&self, current: CurrentCpu<'_, impl Cpu>, session: u64) {
        let Some(per_cpu) = self.per_cpu(current.index()) else { return };
        for one in per_cpu.groups.0.iter().filter(|one| one.session.load(Ordering::Relaxed) == session) {
            one.session.store(NO_SESSION, Ordering::Relaxed);
        }
    }

    /// Reads the counters of a session on the current processor into `reply`, each with one RDPMC, between two reads of
    /// `clock`. With [`group_flags::COMPARE`] it then compares the registers of the processor.
    ///
    /// Returns `None` and leaves `reply` if it does not have what the request needs: the session is not on this
    /// processor, or not the client's, or cannot be read so; a flag is unknown; the processor sleeps. The
    /// [engine](crate::Engine::serve) then says why.
    ///
    /// No other processor is concerned, and nothing is locked. A session has been started by a handle that had agreed
    /// on the version, and its number is never used again: the note of a counter is all that is needed to admit a
    /// request.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    #[inline(never)] // both ways to it are in the driver
    pub fn read_group(
        &self,
        current: CurrentCpu<'_, impl Cpu>,
        clock: &impl Fn() -> Ticks,
        client: ClientId,
        request: GroupRequest,
        reply: &mut GroupReply,
    ) -> Option<()> {
        let GroupRequest { session, flags, reserved } = request;
        if flags & !group_flags::ALL != 0 || reserved != 0 {
            return None;
        }
        let groups = &self.per_cpu(current.index())?.groups;
        // While a processor sleeps none of its counters is active.
        let running = self.hal.cpu_counters(current.index()).active.all;
        let (counters, events) = groups.find(running, session, client)?;
        let count = events.into();
        let header =
            ReplyHeader { processor: current.index().number(), count, total: count, ..ReplyHeader::new_zeroed() };
        reply.zero();
        reply.header = header;
        reply.time_before = clock().0;
        self.hal.counts(current, counters, |counter, count, value| {
            let event = groups.of(counter).map_or(0, |one| one.event.load(Ordering::Relaxed));
            let place = usize::from(event);
            if let (Some(of_event), Some(read)) = (reply.counts.get_mut(place), reply.values.get_mut(place)) {
                (*of_event, *read) = (count, value);
            }
            reply.counted |= 1_u32.wrapping_shl(event.into());
        });
        let time_after = clock();
        if flags & group_flags::COMPARE != 0 {
            self.compare(current, time_after);
        }
        reply.time_after = time_after.0;
        reply.generation = self.hal.interruptions(current);
        // CR4 of the thread that asks: its processor is not left before the reply is complete.
        reply.state = if current.cpu().user_rdpmc() { group_state::USER_RDPMC } else { 0 };
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: ClientId = ClientId(9);

    /// Lets counters count for a session of three events, of which some have a counter here.
    fn note(groups: &Groups, session: u64, counters: &[u8], members: u8) {
        for counter in counters {
            let one = groups.of(*counter).unwrap();
            one.session.store(session, Ordering::Relaxed);
            one.owner.store(OWNER.0, Ordering::Relaxed);
            one.events.store(3, Ordering::Relaxed);
            one.members.store(members, Ordering::Relaxed);
        }
    }

    fn set(counters: &[u8]) -> CounterSet {
        counters.iter().copied().collect()
    }

    #[test]
    fn a_group_is_read_whole_or_not_at_all() {
        let groups = Groups::new();
        note(&groups, 5, &[0, 2], 2);
        note(&groups, 6, &[1], 1);
        // A session of which one counter was not noted.
        note(&groups, 7, &[3], 2);
        // The end of a session leaves the rest of the note.
        note(&groups, NO_SESSION, &[4], 1);
        for (running, session, found) in [
            (&[0, 1, 2, 3][..], 5, Some(&[0, 2][..])),
            (&[0, 2], 5, Some(&[0, 2])),
            (&[0, 1, 3], 5, None),
            (&[2], 5, None),
            (&[], 5, None),
            (&[0, 1, 2, 3], 6, Some(&[1])),
            (&[0, 2, 3], 6, None),
            (&[0, 1, 2, 3], 7, None),
            (&[0, 1, 2, 3], 8, None),
            (&[0, 1, 2, 3, 4], NO_SESSION, None),
        ] {
            let wanted = found.map(|counters| (set(counters), 3));
            assert_eq!(groups.find(set(running), session, OWNER), wanted, "{running:?} {session}");
            assert_eq!(groups.find(set(running), session, ClientId(1)), None, "of another handle");
        }
    }
}
