//! What a client does. Together the scenes contain every kind of request.

use pmu::extra::Selector;
use pmu::source::RawEvent;
use protocol::{
    ALL_SOURCES, AreaRequest, BRANCHES, Code, DETACHED, EventRequest, GroupRequest, IntervalRequest, ProcessorSet,
    RegistersRequest, SamplesRequest, SessionRequest, SourceRequest, StartHeader, StopRequest, area, flags, modes,
};
use zerocopy::IntoBytes;

use super::injection::Injection;
use super::life::Life;

pub type Scene = fn(&mut Life<'_>);

/// The scenes with their names.
pub const SCENES: [(&str, Scene); 13] = [
    ("queries", queries),
    ("count and sample", count_and_sample),
    ("an added processor", add_processor),
    ("samples by time", sample_by_time),
    ("samples of a closed handle", close_while_sampling),
    ("turns", turns),
    ("groups", groups),
    ("threads", threads),
    ("precise records", precise),
    ("branches", branches),
    ("detached", detached),
    ("control areas", control_areas),
    ("events in no table", raw),
];

const TOTAL_ISSUES: u32 = 2;
const INTERVAL: u32 = 10_000;

fn event(source: u32) -> EventRequest {
    EventRequest { source, modes: modes::BOTH, ..EventRequest::EMPTY }
}

fn sampled(source: u32) -> EventRequest {
    EventRequest { interval: INTERVAL, ..event(source) }
}

impl Life<'_> {
    fn start(&mut self, flags: u32, events: &[EventRequest]) -> u64 {
        let ring = if events.iter().any(|event| event.interval > 0) { 64 } else { 0 };
        let header = StartHeader { flags, ring, budget: 0, batch: 0, processors: ProcessorSet::EMPTY };
        self.ask(Code::Start, &[header.as_bytes(), events.as_bytes()].concat()).0.detail[0]
    }

    fn stop(&mut self, session: u64) {
        self.ask(Code::Stop, StopRequest { session, source: ALL_SOURCES, core_type: 0 }.as_bytes());
    }

    fn read(&mut self, session: u64) {
        self.ask(Code::Read, SessionRequest { session }.as_bytes());
    }

    fn samples(&mut self, session: u64) {
        self.ask(Code::Samples, SamplesRequest { session, wait: 0, reserved: 0 }.as_bytes());
    }

    fn read_group(&mut self, session: u64, flags: u32) {
        self.ask(Code::ReadGroup, GroupRequest { session, flags, reserved: 0 }.as_bytes());
    }
}

fn queries(life: &mut Life<'_>) {
    for code in [Code::Info, Code::ListSources, Code::ListSessions, Code::ListCoreTypes, Code::ListHalSources] {
        life.ask(code, &[]);
    }
    life.ask(Code::QuerySource, SourceRequest { source: TOTAL_ISSUES, core_type: 0 }.as_bytes());
    life.ask(Code::SetInterval, IntervalRequest { source: TOTAL_ISSUES, interval: 50_000 }.as_bytes());
    for processor in 0..2 {
        life.ask(Code::ReadRegisters, RegistersRequest { processor, reserved: 0 }.as_bytes());
    }
}

/// Counts and samples, beside each other and across a sleep.
fn count_and_sample(life: &mut Life<'_>) {
    let counted = life.start(0, &[event(0), event(6)]);
    let of_samples = life.start(0, &[sampled(TOTAL_ISSUES)]);
    let shared = life.start(0, &[sampled(TOTAL_ISSUES)]);
    life.execute(INTERVAL.into());
    let machine = life.machine;
    life.tell(|engine| {
        machine.fall_asleep(engine);
        machine.wake(engine);
    });
    life.execute(INTERVAL.into());
    life.accumulate();
    life.ask(Code::ListSessions, &[]);
    life.samples(of_samples);
    life.read(counted);
    life.read(of_samples);
    life.stop(of_samples);
    life.samples(of_samples);
    life.stop(shared);
    life.stop(counted);
}

fn add_processor(life: &mut Life<'_>) {
    let counted = life.start(0, &[event(0), event(6)]);
    let of_samples = life.start(0, &[sampled(TOTAL_ISSUES)]);
    let machine = life.machine;
    // If the HAL does not free the counters before, it later subtracts on a processor on which it has not added: the
    // driver documents it, and the bench would stop there.
    Injection::sparing("free_counters", || life.tell(|engine| machine.add_processor(engine)));
    life.execute(INTERVAL.into());
    life.samples(of_samples);
    life.read(counted);
    life.stop(of_samples);
    life.stop(counted);
}

fn sample_by_time(life: &mut Life<'_>) {
    let session = life.start(0, &[sampled(0)]);
    life.expire();
    life.samples(session);
    life.stop(session);
}

fn close_while_sampling(life: &mut Life<'_>) {
    let session = life.start(0, &[sampled(TOTAL_ISSUES), sampled(6)]);
    life.execute(INTERVAL.into());
    life.samples(session);
    // The session ends with its handle.
}

fn turns(life: &mut Life<'_>) {
    let events: Vec<EventRequest> = [2, 6, 8, 9, 10, 11, 0x19, 0x1A].into_iter().map(event).collect();
    let session = life.start(flags::MULTIPLEX, &events);
    (0..3).for_each(|_| life.expire());
    life.read(session);
    life.stop(session);
}

fn groups(life: &mut Life<'_>) {
    let grouped = |source, group| EventRequest { group, ..event(source) };
    let session = life.start(flags::MULTIPLEX, &[grouped(2, 1), grouped(6, 1), grouped(11, 2), grouped(0x13, 2)]);
    life.expire();
    life.stop(session);
    let read = life.start(0, &[event(TOTAL_ISSUES)]);
    life.execute(100);
    life.read_group(read, 1);
    life.stop(read);
}

fn threads(life: &mut Life<'_>) {
    let session = life.start(flags::THREADS, &[event(TOTAL_ISSUES)]);
    life.read(session);
    life.stop(session);
}

fn precise(life: &mut Life<'_>) {
    let event = EventRequest { modes: modes::BOTH | modes::PRECISE, ..sampled(TOTAL_ISSUES) };
    let session = life.start(0, &[event]);
    life.execute(INTERVAL.into());
    life.samples(session);
    life.stop(session);
}

fn branches(life: &mut Life<'_>) {
    let session = life.start(0, &[EventRequest { interval: 64, ..event(BRANCHES) }]);
    life.samples(session);
    life.stop(session);
}

fn detached(life: &mut Life<'_>) {
    life.start(flags::DETACHED | flags::FORCE, &[event(TOTAL_ISSUES)]);
    life.close();
    life.open();
    life.read(DETACHED);
    life.stop(DETACHED);
}

fn control_areas(life: &mut Life<'_>) {
    for operation in [area::QUERY, area::ALLOCATE, area::QUERY, area::FREE] {
        let request = AreaRequest { operation, current: 0, reserved: 0, processors: ProcessorSet::EMPTY };
        life.ask(Code::ControlArea, request.as_bytes());
    }
}

fn raw(life: &mut Life<'_>) {
    let retired = RawEvent::NONE.with_event(0xC0).source().0;
    let response = RawEvent::NONE.with_event(0xB7).with_umask(1);
    let full = response.full().with_selector(Selector::OffcoreResponse as u8).into_bits();
    let extra = EventRequest { event: full, extra: 0x1_0001, ..event(response.source().0) };
    let session = life.start(0, &[event(retired)]);
    let with_extra = life.start(0, &[extra]);
    life.ask(Code::QuerySource, SourceRequest { source: retired, core_type: 0 }.as_bytes());
    life.read(session);
    life.stop(with_extra);
    life.stop(session);
}
