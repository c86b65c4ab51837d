//! Inputs of requests: valid ones, random values in a valid layout, and corrupted bytes.

use crate::choices::Choices;
use pmu::extra::Selector;
use pmu::source::RawEvent;
use protocol::{
    ALL_SOURCES, AreaRequest, BRANCHES, Code, Event, EventRequest, GroupRequest, Hello, IntervalRequest,
    PROTOCOL_VERSION, ProcessorSet, RegistersRequest, SamplesRequest, SessionRequest, SourceRequest, StartHeader,
    StopRequest, area, event_flags, flags, group_flags, last_branches, modes,
};
use zerocopy::{Immutable, IntoBytes};

use crate::scarcity::Scarcity;

/// Named sources that most identities have.
const COMMON: [u64; 6] = [2, 6, 11, 0x13, 0x19, 0x1A];

/// Sources that processors with a Debug Store record precisely.
const PRECISE: [u64; 3] = [2, 0x1A, 6];

/// Few intervals, so that sessions often share counters.
const INTERVALS: [u32; 4] = [4_096, 5_000, 7_000, 65_536];

/// Intervals of timers, in units of 100 ns.
const TIMER_INTERVALS: [u32; 4] = [10_000, 12_000, 50_000, 156_250];

/// Event numbers of raw events, some with an extra register.
const RAW: [(u16, u16); 8] =
    [(0xC0, 0), (0xC4, 0), (0x3C, 0), (0xB7, 1), (0xBB, 1), (0x76, 0), (0xD1, 0x20), (0xA5, 4)];

/// What requests refer to.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// Supported sources of the identity.
    pub supported: &'a [u64],
    /// Numbers of sessions of the handle, and of others.
    pub sessions: &'a [u64],
    /// Number of active processors.
    pub active: u32,
    /// Whether the machine has two core types.
    pub hybrid: bool,
    /// Whether the processor has a Debug Store.
    pub debug_store: bool,
    /// Whether sessions for thread profiling start. Other programs must not stop their counters.
    pub threads: bool,
    /// What is scarce.
    pub scarcity: Option<Scarcity>,
    /// Size of the rings of all sessions.
    pub ring_bytes: u64,
}

/// Writes the input of requests.
pub struct Generator<'a, 'b> {
    /// Decisions.
    pub choices: &'a mut Choices<'b>,
    /// What requests refer to.
    pub known: Known<'a>,
}

impl Generator<'_, '_> {
    pub(crate) fn number(&mut self, most: u64) -> u32 {
        u32::try_from(self.choices.up_to(most)).unwrap_or(u32::MAX)
    }

    pub(crate) fn one_in(&mut self, count: u64) -> bool {
        self.choices.one_in(count)
    }

    /// Writes a valid input, or one with random values.
    pub fn write(&mut self, code: Code, input: &mut Vec<u8>) {
        input.clear();
        match code {
            Code::Hello => {
                let version = if self.one_in(4) { self.number(20) } else { PROTOCOL_VERSION };
                put(input, &Hello { version, reserved: 0 });
            }
            Code::Info | Code::ListSources | Code::ListSessions | Code::ListCoreTypes | Code::ListHalSources => {}
            Code::QuerySource => {
                let request = SourceRequest { source: self.source(), core_type: self.core_type(), reserved: 0 };
                put(input, &request);
            }
            Code::SetInterval => {
                let interval = if self.one_in(4) { self.number(u64::from(u32::MAX)) } else { self.interval() };
                put(input, &IntervalRequest { source: self.source(), interval, reserved: 0 });
            }
            Code::Start => {
                let scarcity = self.known.scarcity;
                match scarcity.filter(|_| self.one_in(2)) {
                    Some(scarcity) => self.start_scarce(scarcity, input),
                    None => self.start(input),
                }
            }
            Code::Stop => {
                let source = if self.one_in(3) { self.source() } else { ALL_SOURCES };
                let core_type = if source == ALL_SOURCES { 0 } else { self.core_type() };
                put(input, &StopRequest { session: self.session(), source, core_type, reserved: 0 });
            }
            Code::Read => put(input, &SessionRequest { session: self.session() }),
            Code::Samples => {
                let wait = if self.one_in(2) { 0 } else { self.number(1_000) };
                put(input, &SamplesRequest { session: self.session(), wait, reserved: u32::from(self.one_in(100)) });
            }
            Code::ControlArea => {
                let operation = if self.one_in(30) { self.number(10) } else { self.number(u64::from(area::FREE)) };
                let current = u32::from(self.one_in(5));
                let processors = if current == 1 { ProcessorSet::EMPTY } else { self.processors() };
                put(input, &AreaRequest { operation, current, reserved: u64::from(self.one_in(50)), processors });
            }
            Code::ReadRegisters => {
                let processor = self.number(u64::from(self.known.active));
                put(input, &RegistersRequest { processor, reserved: u32::from(self.one_in(50)) });
            }
            Code::ReadGroup => {
                let flags = if self.one_in(50) { self.number(9) } else { self.number(u64::from(group_flags::ALL)) };
                put(input, &GroupRequest { session: self.session(), flags, reserved: u32::from(self.one_in(50)) });
            }
        }
    }

    /// Changes bytes, or the length.
    pub fn corrupt(&mut self, input: &mut Vec<u8>) {
        if self.one_in(3) {
            let length = self.choices.up_to(input.len() as u64 + 64);
            input.resize(usize::try_from(length).unwrap_or_default(), 0xA5);
        }
        for _ in 0..=self.choices.up_to(2) {
            let Some(last) = input.len().checked_sub(1) else { return };
            let place = usize::try_from(self.choices.up_to(last as u64)).unwrap_or_default();
            let (bit, byte) = (self.choices.up_to(7), self.choices.up_to(255).to_le_bytes());
            let is_bit = self.one_in(2);
            if let Some(to) = input.get_mut(place) {
                *to = if is_bit { *to ^ 1 << bit } else { byte[0] };
            }
        }
    }

    fn session(&mut self) -> u64 {
        match self.choices.up_to(19) {
            0 => self.choices.up_to(u64::MAX),
            1 => protocol::DETACHED,
            _ => self.choices.pick(self.known.sessions).copied().unwrap_or(1),
        }
    }

    pub(crate) fn interval(&mut self) -> u32 {
        self.choices.pick(&INTERVALS).copied().unwrap_or_default()
    }

    fn source(&mut self) -> u64 {
        match self.choices.up_to(119) {
            0 => self.choices.up_to(u64::MAX),
            1 => self.choices.up_to(0x1100),
            2 => BRANCHES,
            3..=8 => 0,
            9..=16 => self.raw().0,
            17..=74 => self.choices.pick(&COMMON).copied().unwrap_or_default(),
            _ => self.choices.pick(self.known.supported).copied().unwrap_or(2),
        }
    }

    /// Returns a raw event as a source, and the value of its extra register.
    pub(crate) fn raw(&mut self) -> (u64, u64) {
        let (event, umask) = self.choices.pick(&RAW).copied().unwrap_or_default();
        let umask =
            if self.one_in(4) { umask ^ u16::try_from(self.choices.up_to(255)).unwrap_or_default() } else { umask };
        let mut raw = RawEvent::new().with_event(event).with_umask(umask);
        if self.one_in(8) {
            raw = raw.with_cmask(u8::try_from(self.choices.up_to(15)).unwrap_or_default()).with_inv(self.one_in(2));
        }
        if self.one_in(10) {
            raw = raw.with_edge(true);
        }
        let (selector, extra) = match self.choices.up_to(11) {
            0 | 1 => (Selector::OffcoreResponse as u8, self.choices.pick(&[0x1_0001, 0x1_0002, 0x3]).copied()),
            2 => (Selector::FrontEnd as u8, self.choices.pick(&[0x1, 0x11, 0x12]).copied()),
            3 => (Selector::LoadLatency as u8, Some(64)),
            _ => (0, None),
        };
        (raw.with_selector(selector).source().0, extra.unwrap_or_default())
    }

    /// Returns 0 nearly always on machines with one core type.
    fn core_type(&mut self) -> u32 {
        let rare = if self.known.hybrid { 3 } else { 40 };
        if self.one_in(rare) { self.choices.pick(&[0x20, 0x40, 0x40, 0x30]).copied().unwrap_or_default() } else { 0 }
    }

    /// Returns all processors, some, or some that do not exist.
    pub(crate) fn processors(&mut self) -> ProcessorSet {
        let mut set = ProcessorSet::EMPTY;
        if self.one_in(2) {
            return set;
        }
        for number in 0..self.known.active {
            if self.one_in(2) {
                set.insert(number);
            }
        }
        if self.one_in(40) {
            set.insert(self.number(2_047));
        }
        set
    }

    fn modes(&mut self) -> u32 {
        match self.choices.up_to(29) {
            0 => self.number(9),
            1..=4 => modes::USER,
            5..=8 => modes::KERNEL,
            _ => modes::BOTH,
        }
    }

    fn start(&mut self, input: &mut Vec<u8>) {
        let kind = self.choices.up_to(19);
        let (sampled, precise) = (matches!(kind, 8..=15), self.known.debug_store && matches!(kind, 13..=15));
        let threads = kind == 16 && self.known.threads;
        let count = match self.choices.up_to(19) {
            0 => self.choices.up_to(20),
            1..=3 => 3 + self.choices.up_to(5),
            _ => self.choices.up_to(2),
        } + 1;
        let multiplex = matches!(kind, 5..=7);
        let mut header = StartHeader {
            ring: if sampled { 64 << self.choices.up_to(4) } else { 0 },
            budget: if sampled && self.one_in(2) { self.number(899) + 1 } else { 0 },
            batch: if precise && self.one_in(2) { self.number(16) } else { 0 },
            processors: if threads { ProcessorSet::EMPTY } else { self.processors() },
            ..StartHeader::EMPTY
        };
        if threads {
            header.flags |= flags::THREADS;
        } else if !sampled && self.one_in(6) {
            header.flags |= flags::DETACHED;
        }
        if multiplex {
            header.flags |= flags::MULTIPLEX;
            header.round = if self.one_in(3) { 40_000 + self.number(400_000) } else { 0 };
        }
        if header.flags & (flags::THREADS | flags::DETACHED) == 0 && self.one_in(8) {
            header.flags |= flags::YIELDS;
        }
        if self.one_in(20) {
            header.flags |= flags::FORCE;
        }
        match self.choices.up_to(99) {
            0 => header.flags = self.number(31) & if self.known.threads { u32::MAX } else { !flags::THREADS },
            1 => header.ring = self.number(1 << 21),
            2 => header.budget = self.number(2_000),
            3 => header.batch = self.number(2_000),
            5 => header.round = self.number(u64::from(u32::MAX)),
            6..=9 => header.last_branches = self.number(0x400),
            10..=15 if sampled => header.last_branches = last_branches::ANY | (self.number(2) + 1),
            // Rings of all sessions together are bounded.
            4 if sampled => header.ring = 1 << (12 + self.choices.up_to(3)),
            _ => {}
        }
        put(input, &header);
        for place in 0..count {
            let sampled = sampled && (place == 0 || self.one_in(3));
            let event = self.event(sampled, precise, multiplex);
            let event = match event.interval {
                0 if self.one_in(3) => EventRequest { flags: event.flags | event_flags::BESIDE, ..event },
                1.. if self.one_in(5) => self.with_condition(event, count),
                _ => event,
            };
            put(input, &event);
        }
    }

    fn event(&mut self, sampled: bool, precise: bool, multiplex: bool) -> EventRequest {
        let mut event = EventRequest { event: Event::of(self.source()), modes: self.modes(), ..EventRequest::EMPTY };
        if self.one_in(6) {
            (event.event.source, event.event.extra) = self.raw();
        }
        if sampled {
            event.interval = if event.event.source == 0 {
                self.choices.pick(&TIMER_INTERVALS).copied().unwrap_or_default()
            } else {
                self.interval()
            };
            if precise {
                self.record(&mut event);
            } else if event.event.source != 0 && self.one_in(6) {
                event.frequency = self.number(10_000);
            }
        }
        event.event.core_type = self.core_type();
        if self.one_in(12) {
            event.event.counters = self.number(0xFF);
        }
        if multiplex && self.one_in(3) {
            event.group = self.number(3);
        }
        if self.one_in(10) {
            event.flags = event_flags::PINNED;
        }
        if self.one_in(3) {
            event.flags |= event_flags::COUNTED;
        }
        match self.choices.up_to(149) {
            0 => event.interval = self.number(u64::from(u32::MAX)),
            1 => event.frequency = self.number(200_000),
            2 => event.event.source = self.choices.up_to(u64::MAX),
            3 => event.event.extra = self.choices.up_to(u64::MAX),
            4 => event.flags = self.number(255),
            _ => {}
        }
        event
    }

    /// Gives an event a condition, mostly with events of a session that has so many.
    fn with_condition(&mut self, event: EventRequest, events: u64) -> EventRequest {
        let flag = if self.one_in(2) { event_flags::BELOW } else { event_flags::ABOVE };
        let index =
            |choices: &mut Choices<'_>| u16::try_from(choices.up_to(events.saturating_sub(1))).unwrap_or_default();
        let ratio = [index(self.choices), index(self.choices)];
        let limit = [self.number(4), self.number(4)];
        EventRequest { flags: event.flags | flag, ratio, limit, ..event }
    }

    /// Makes an event one that the Debug Store records.
    fn record(&mut self, event: &mut EventRequest) {
        event.event.extra = 0;
        if self.one_in(3) {
            (event.event.source, event.interval) = (BRANCHES, 64 << self.choices.up_to(3));
            event.modes &= modes::BOTH;
        } else {
            event.event.source = self.choices.pick(&PRECISE).copied().unwrap_or_default();
            event.modes |= modes::PRECISE;
            if self.one_in(4) {
                event.flags |= self.number(7) * event_flags::LOADS;
            }
        }
    }
}

pub(crate) fn put<T: IntoBytes + Immutable>(input: &mut Vec<u8>, value: &T) {
    input.extend_from_slice(value.as_bytes());
}
