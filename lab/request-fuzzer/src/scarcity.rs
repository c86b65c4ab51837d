//! Episodes in which one thing is scarce. Random requests nearly never reach the refusals that tell it.

use cpuid_dumps::CpuIdentity;
use model::Quirk;
use pmu::extra::Selector;
use pmu::source::RawEvent;
use protocol::{
    ALL_SOURCES, Code, CountRecord, ErrorCode, EventRequest, ExtraInUse, MAX_EVENTS, MAX_RING_BYTES, ProcessorSet,
    RING, RegisterInUse, ReplyHeader, SampleRecord, StartHeader, StopRequest, flags, modes,
};
use simulation::SimMachine;
use zerocopy::{FromBytes, IntoBytes};

use crate::book::{Session, has_counter};
use crate::episode::{Episode, HANDLES, LONGEST, Sleep};
use crate::generate::{Generator, put};
use crate::registers::{Foreign, SELECT_3, SELECTS, of_counters};

/// What is scarce in an episode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scarcity {
    /// Sessions that can sample at a time.
    Subscribers,
    /// Memory of rings.
    RingMemory,
    /// Slots of events by number.
    RawEvents,
    /// Registers for the values of off-core responses.
    ExtraRegisters,
    /// Counters that no other program uses.
    FreeCounters,
    /// Counters that work: those of one processor ignore what is written.
    WorkingCounters,
}

/// Number of sessions that can sample at a time.
const SUBSCRIBERS: u64 = 8;

/// Number of raw events that can be in use at a time.
const RAW_EVENTS: usize = 256;

/// The bit of a source that is a raw event.
const RAW: u32 = 1 << 31;

/// The processor whose counters do not work, if the machine has it.
const IDLE: u32 = 1;

/// Processors on which the rings of one session can take more memory than all may have.
const MANY: u32 = 22;

/// Values of off-core responses: some for each generation.
const RESPONSES: [u64; 6] = [0x1_0001, 0x1_0002, 0x1_0004, 0x101, 0x102, 0x104];

/// The register that every processor with off-core responses has.
const OFFCORE_RSP_0: u32 = 0x1A6;

impl Scarcity {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Subscribers,
        Self::RingMemory,
        Self::RawEvents,
        Self::ExtraRegisters,
        Self::FreeCounters,
        Self::WorkingCounters,
    ];

    /// Returns whether it can be scarce on processors of an identity.
    pub fn can_be_on(self, identity: &'static CpuIdentity) -> bool {
        let many_events = ["Emon", "Amd64"].contains(&identity.expected.interface);
        match self {
            Self::Subscribers | Self::WorkingCounters => true,
            // A session has rings only on processors of its core type.
            Self::RingMemory => identity.odd_processors.is_none(),
            Self::RawEvents | Self::FreeCounters => many_events,
            Self::ExtraRegisters => {
                let machine = SimMachine::new(identity, 1);
                many_events && machine.processor(0).model().rdmsr(OFFCORE_RSP_0).is_ok()
            }
        }
    }

    /// Returns whether many sessions must run until it is scarce.
    pub fn takes_many_sessions(self) -> bool {
        matches!(self, Self::Subscribers | Self::RawEvents | Self::ExtraRegisters)
    }

    /// Returns how many processors the machine has, if the number matters.
    pub fn processors(self) -> Option<u32> {
        match self {
            Self::RingMemory => Some(MANY),
            Self::WorkingCounters => Some(IDLE + 1),
            _ => None,
        }
    }

    /// Prepares the processors, before there is an engine.
    pub fn set_up(self, machine: &SimMachine) {
        if self == Self::WorkingCounters {
            let quirks = of_counters().map(|register| Quirk::Ignores { register });
            machine.processor(IDLE).model().set_quirks(quirks);
        }
    }
}

/// Returns the size of the rings of a session.
fn ring_bytes(header: &StartHeader, active: u32) -> u64 {
    let processors = if header.processors.is_empty() { active as usize } else { header.processors.iter().count() };
    u64::from(header.ring) * size_of::<SampleRecord>() as u64 * processors as u64
}

impl Generator<'_> {
    /// Writes the input of a start that needs much of what is scarce.
    pub(crate) fn start_scarce(&mut self, scarcity: Scarcity, input: &mut Vec<u8>) {
        let mut header = StartHeader { processors: self.processors(), ..StartHeader::EMPTY };
        let mut events = Vec::new();
        match scarcity {
            Scarcity::Subscribers => {
                header.ring = *RING.start();
                // All samplers of an event share its counter.
                let (source, interval) = if self.one_in(2) { (0, 50_000) } else { (2, 5_000) };
                events.push(EventRequest { source, interval, ..EventRequest::EMPTY });
            }
            Scarcity::RingMemory => {
                header.ring = *RING.end();
                // Memory that would be granted is not asked for: it would be taken from the host.
                let of_each = u64::from(header.ring) * size_of::<SampleRecord>() as u64;
                let too_many = (MAX_RING_BYTES.saturating_sub(self.known.ring_bytes) / of_each + 1).min(MANY.into());
                header.processors = ProcessorSet::EMPTY;
                for processor in 0..u32::try_from(too_many).unwrap_or(MANY) {
                    header.processors.insert(processor);
                }
                events.push(EventRequest { source: 0, interval: 50_000, ..EventRequest::EMPTY });
            }
            Scarcity::RawEvents => {
                header.flags = flags::MULTIPLEX;
                // All events of a session take turns on one counter, so that the other sessions have the others.
                let counters = 1 << self.random.up_to(3);
                for _ in 0..MAX_EVENTS {
                    let umask = u16::try_from(self.random.up_to(255)).unwrap_or_default();
                    let event = self.random.pick(&[0xC0, 0xC4, 0xC5, 0x3C]).copied().unwrap_or_default();
                    let raw = RawEvent::NONE.with_event(event).with_umask(umask);
                    events.push(EventRequest { source: raw.source().0, counters, ..EventRequest::EMPTY });
                }
            }
            Scarcity::ExtraRegisters => {
                for _ in 0..=self.random.up_to(2) {
                    let event = if self.one_in(2) { 0xB7 } else { 0xBB };
                    let raw = RawEvent::NONE.with_event(event).with_umask(1);
                    let whole = raw.full().with_selector(Selector::OffcoreResponse as u8).into_bits();
                    let extra = self.random.pick(&RESPONSES).copied().unwrap_or_default();
                    events.push(EventRequest { source: raw.source().0, event: whole, extra, ..EventRequest::EMPTY });
                }
            }
            Scarcity::FreeCounters | Scarcity::WorkingCounters => {
                let source = self.random.pick(&[2, 6, 0x13]).copied().unwrap_or_default();
                events.push(EventRequest { source, ..EventRequest::EMPTY });
            }
        }
        put(input, &header);
        for event in events {
            put(input, &EventRequest { modes: modes::BOTH, ..event });
        }
    }
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
        let detached = StopRequest { session: protocol::DETACHED, source: ALL_SOURCES, core_type: 0 };
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
            let Some(msr) = self.random.pick(&selects).copied() else { return };
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
                let used = running().filter(|event| event.source & RAW != 0).count();
                assert!(self.has_orphans || used + wanted.len() > RAW_EVENTS, "{used}: {header:?}");
            }
            Some(ErrorCode::ExtraRegisterTaken) => {
                let in_use = ExtraInUse::from_detail(header.detail[0]);
                // Two events of the request can need different values.
                let own = rest.chunks_exact(size_of::<EventRequest>());
                let own: Vec<_> = own.filter_map(|event| EventRequest::read_from_bytes(event).ok()).collect();
                let is_held = running().chain(&own).any(|event| event.extra == header.detail[1]);
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
