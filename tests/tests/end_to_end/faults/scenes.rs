//! What a client does between a load and an unload. Together the scenes contain every kind of request.

use protocol::{
    ALL_SOURCES, AreaRequest, BRANCHES, Code, DETACHED, EventRequest, GroupRequest, IntervalRequest, ProcessorSet,
    RegistersRequest, SamplesRequest, SessionRequest, SourceRequest, StartHeader, StopRequest, area, flags, modes,
};
use zerocopy::IntoBytes;

use super::Life;

/// The scene in which a processor is added.
pub const ADDED: &str = "an added processor";

pub type Scene = fn(&mut Life<'_>);

/// The scenes with their names.
pub const SCENES: [(&str, Scene); 13] = [
    ("queries", queries),
    ("count and sample", count_and_sample),
    (ADDED, add_processor),
    ("samples by time", sample_by_time),
    ("wait for samples", wait),
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
    /// Starts a session and returns its number.
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

    fn samples(&mut self, session: u64, wait: u32) {
        self.ask(Code::Samples, SamplesRequest { session, wait, reserved: 0 }.as_bytes());
    }

    /// Lets an event of TotalIssues on Intel's and AMD's processors occur often enough for an interrupt.
    fn overflow(&mut self) {
        self.lab.wire.run(0, &[(0xC0, 0, INTERVAL.into())], &[]).unwrap();
    }
}

pub fn queries(life: &mut Life<'_>) {
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
pub fn count_and_sample(life: &mut Life<'_>) {
    let counted = life.start(0, &[event(0), event(6)]);
    let of_samples = life.start(0, &[sampled(TOTAL_ISSUES)]);
    life.overflow();
    life.lab.wire.sleep().unwrap();
    life.lab.wire.wake(1).unwrap();
    life.overflow();
    life.ask(Code::ListSessions, &[]);
    life.samples(of_samples, 0);
    life.read(counted);
    life.read(of_samples);
    life.ask(Code::ReadGroup, GroupRequest { session: counted, flags: 0, reserved: 0 }.as_bytes());
    life.stop(of_samples);
    life.samples(of_samples, 0);
    life.stop(counted);
}

fn add_processor(life: &mut Life<'_>) {
    let counted = life.start(0, &[event(0), event(6)]);
    let of_samples = life.start(0, &[sampled(TOTAL_ISSUES)]);
    life.lab.wire.add_processor().unwrap();
    life.overflow();
    life.samples(of_samples, 0);
    life.read(counted);
    life.stop(of_samples);
    life.stop(counted);
}

fn sample_by_time(life: &mut Life<'_>) {
    let session = life.start(0, &[sampled(0)]);
    life.lab.wire.tick(0, 1).unwrap();
    life.samples(session, 0);
    life.stop(session);
}

fn wait(life: &mut Life<'_>) {
    let session = life.start(0, &[sampled(TOTAL_ISSUES)]);
    life.overflow();
    life.samples(session, 1);
    // The session ends with its handle.
}

fn turns(life: &mut Life<'_>) {
    let events: Vec<EventRequest> = [2, 6, 8, 9, 10, 11, 0x19, 0x1A].into_iter().map(event).collect();
    let session = life.start(flags::MULTIPLEX, &events);
    life.lab.wire.tick(0, 3).unwrap();
    life.read(session);
    life.stop(session);
}

fn groups(life: &mut Life<'_>) {
    let grouped = |source, group| EventRequest { group, ..event(source) };
    let session = life.start(flags::MULTIPLEX, &[grouped(2, 1), grouped(6, 1), grouped(8, 2), grouped(9, 2)]);
    life.lab.wire.tick(1, 2).unwrap();
    life.ask(Code::ReadGroup, GroupRequest { session, flags: 1, reserved: 0 }.as_bytes());
    life.stop(session);
}

fn threads(life: &mut Life<'_>) {
    let session = life.start(flags::THREADS, &[event(TOTAL_ISSUES)]);
    life.read(session);
    life.stop(session);
}

fn precise(life: &mut Life<'_>) {
    let event = EventRequest { modes: modes::BOTH | modes::PRECISE, ..sampled(TOTAL_ISSUES) };
    let session = life.start(0, &[event]);
    life.overflow();
    life.samples(session, 0);
    life.stop(session);
}

fn branches(life: &mut Life<'_>) {
    let session = life.start(0, &[EventRequest { interval: 64, ..event(BRANCHES) }]);
    life.lab.wire.branch(0, false, 0x1000, 16, 100).unwrap();
    life.samples(session, 0);
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
    // Event 0xC0 without a unit mask; the second one with an extra register, which few events have.
    const RAW: u32 = 1 << 31 | 0xC0;
    let full = |select: u64, umask: u64, selector: u64| 1 << 63 | select | umask << 12 | selector << 40;
    let extra = EventRequest { event: full(0xB7, 1, 1), extra: 0x1_0001, ..event(1 << 31 | 0xB7 | 1 << 12) };
    let session = life.start(0, &[event(RAW)]);
    let with_extra = life.start(0, &[extra]);
    life.ask(Code::QuerySource, SourceRequest { source: RAW, core_type: 0 }.as_bytes());
    life.read(session);
    life.stop(with_extra);
    life.stop(session);
}
