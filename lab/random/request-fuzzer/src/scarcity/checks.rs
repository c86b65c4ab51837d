//! What must be true of an episode in which something is scarce.

use protocol::{
    ALL_SOURCES, Code, CountRecord, ErrorCode, EventRequest, ExtraInUse, MAX_RING_BYTES, RegisterInUse, ReplyHeader,
    SampleRecord, StartHeader, StopRequest, flags,
};
use zerocopy::{FromBytes, IntoBytes};

use super::{IDLE, Scarcity};
use crate::book::{Session, has_counter};
use crate::episode::{Episode, HANDLES, LONGEST, Sleep};
use crate::registers::{Foreign, SELECT_3, SELECTS};

/// Number of sessions that can sample at a time.
const SUBSCRIBERS: u64 = 8;

/// Number of raw events that can be in use at a time.
const RAW_EVENTS: usize = 256;

/// The bit of a source that is a raw event.
const RAW: u64 = 1 << 63;

/// Returns the size of the rings of a session.
fn ring_bytes(header: &StartHeader, active: u32) -> u64 {
    let processors = if header.processors.is_empty() { active as usize } else { header.processors.iter().count() };
    u64::from(header.ring) * size_of::<SampleRecord>() as u64 * processors as u64
}

impl Episode<'_> {
    /// Returns the sessions that run and sample.
    fn samplers(&self) -> impl Iterator<Item = &Session> {
        self.sessions.iter().filter(|session| session.samples() && session.runs())
    }

    /// Returns the size of the rings of all sessions, including those that have ended and whose last records were not
    /// fetched.
    pub(crate) fn ring_bytes(&self) -> u64 {
        let samplers = self.sessions.iter().filter(|session| session.samples());
        samplers.map(|session| ring_bytes(&session.header, self.machine.active())).sum()
    }

    fn runs(&self) -> bool {
        self.has_orphans || self.sessions.iter().any(Session::runs)
    }

    fn is_used_elsewhere(&self, processor: u32) -> bool {
        self.foreign.get(processor as usize).is_some_and(Foreign::is_there)
    }

    /// Ends every session, and lets another program stop using counters, and mostly use another one.
    pub(crate) fn use_elsewhere(&mut self) {
        if self.sleep != Sleep::Awake {
            return;
        }
        for slot in 0..HANDLES {
            self.close(slot);
            self.open(slot);
        }
        self.input.clear();
        let detached = StopRequest { session: protocol::DETACHED, source: ALL_SOURCES, core_type: 0, reserved: 0 };
        self.input.extend_from_slice(detached.as_bytes());
        let reply = self.serve(0, Code::Stop as u32, LONGEST);
        self.follow(0, Code::Stop as u32, &reply);
        if self.runs() {
            return;
        }
        self.undo_foreign();
        if self.one_in(4) {
            return;
        }
        let processor = self.number(u64::from(self.machine.active()) - 1);
        // CPUID.(7,0):EDX[13]: the microcode may have counter 3, which the driver then leaves alone, whoever uses it.
        let [_, _, _, features] = self.traits.identity.cpuid().cpuid(7, 0);
        let is_left = features >> 13 & 1 == 1;
        let is_looked_at = |select: &u32| !is_left || *select != SELECT_3;
        let selects: Vec<u32> = SELECTS.into_iter().flatten().filter(is_looked_at).collect();
        for _ in 0..selects.len() {
            let Some(msr) = self.choices.pick(&selects).copied() else { return };
            if let Some(foreign) = self.foreign.get_mut(processor as usize)
                && foreign.enable(self.machine, processor, msr)
            {
                self.note(|| format!("another program uses the counter of {msr:#x} of {processor}"));
                self.used_after = self.stats.sleeps;
                return;
            }
        }
    }

    /// Notes a start that may have taken the counters of other programs, which it does not give back.
    pub(crate) fn note_force(&mut self) {
        if StartHeader::read_from_prefix(&self.input).is_ok_and(|(start, _)| start.flags & flags::FORCE != 0) {
            self.used_after = u64::MAX;
        }
    }

    /// Checks a refused start by what is known about what is scarce.
    pub(crate) fn check_refusal(&self, header: &ReplyHeader) {
        let Ok((start, rest)) = StartHeader::read_from_prefix(&self.input) else { return };
        let wanted = rest.chunks_exact(size_of::<EventRequest>());
        let running = || {
            let all = self.sessions.iter().flat_map(|session| &session.events);
            all.filter(|(_, runs)| *runs).map(|(event, _)| event)
        };
        match ErrorCode::from_number(header.cause) {
            Some(ErrorCode::TooManySessions) => {
                let samplers = self.samplers().count() as u64;
                assert_eq!((samplers, header.detail), (SUBSCRIBERS, [SUBSCRIBERS, 0]), "{header:?}");
            }
            Some(ErrorCode::RingsTooLarge) => {
                let wanted = self.ring_bytes() + ring_bytes(&start, self.machine.active());
                assert_eq!(header.detail, [wanted, MAX_RING_BYTES], "{header:?}");
                assert!(wanted > MAX_RING_BYTES, "{header:?}");
            }
            Some(ErrorCode::TooManyRawEvents) => {
                let used = running().filter(|event| event.event.source & RAW != 0).count();
                assert!(self.has_orphans || used + wanted.len() > RAW_EVENTS, "{used}: {header:?}");
            }
            Some(ErrorCode::ExtraRegisterTaken) => {
                let in_use = ExtraInUse::from_detail(header.detail[0]);
                // Two events of the request can need different values.
                let own = rest.chunks_exact(size_of::<EventRequest>());
                let own: Vec<_> = own.filter_map(|event| EventRequest::read_from_bytes(event).ok()).collect();
                let is_held = running().chain(&own).any(|event| event.event.extra == header.detail[1]);
                assert!(self.has_orphans || is_held, "{in_use:?}: {header:?}");
            }
            Some(ErrorCode::ForeignUse) => {
                let in_use = RegisterInUse::from_detail(header.detail[0]);
                assert!(self.is_used_elsewhere(header.processor), "{in_use:?}: {header:?}");
            }
            Some(ErrorCode::CountersDoNotWork) => {
                let idle = self.traits.scarcity == Some(Scarcity::WorkingCounters);
                assert_eq!((idle, header.processor), (true, IDLE), "{header:?}");
            }
            _ => {}
        }
    }

    /// Checks a session that has begun, with its first counts, before it is noted: it has nothing that is taken or does
    /// not work.
    pub(crate) fn check_scarce(&self, header: &StartHeader, counts: &[CountRecord]) {
        let mut counted = counts.iter().filter(|count| has_counter(count));
        match self.traits.scarcity {
            Some(Scarcity::Subscribers) => {
                let samplers = self.samplers().count() as u64;
                assert!(header.ring == 0 || samplers < SUBSCRIBERS, "a session beside {samplers} that sample");
            }
            Some(Scarcity::RingMemory) => {
                let bytes = self.ring_bytes() + ring_bytes(header, self.machine.active());
                assert!(bytes <= MAX_RING_BYTES, "rings of {bytes} bytes");
            }
            // The registers of another program lose their values in sleep.
            Some(Scarcity::FreeCounters)
                if header.flags & flags::FORCE == 0 && !self.runs() && self.used_after == self.stats.sleeps =>
            {
                let taken = counted.find(|count| self.is_used_elsewhere(count.processor));
                assert!(taken.is_none() || self.traits.foreign, "another program uses a counter there: {taken:?}");
            }
            Some(Scarcity::WorkingCounters) => {
                let idle = counted.find(|count| count.processor == IDLE);
                assert!(idle.is_none(), "no counter works there: {idle:?}");
            }
            _ => {}
        }
    }
}
