//! What a client does. Together the scenes contain every kind of request.

use protocol::{
    ALL_SOURCES, AreaRequest, BRANCHES, Code, DETACHED, Event, EventRequest, GroupRequest, IntervalRequest,
    ProcessorSet, RegistersRequest, ReplyHeader, SamplesRequest, SessionRequest, SourceRequest, StartHeader,
    StopRequest, area, flags, modes,
};
use zerocopy::IntoBytes;

/// A client with one handle, and its machine.
pub trait SceneClient {
    /// Sends a request, and returns the header of its reply.
    fn ask(&mut self, code: Code, input: &[u8]) -> ReplyHeader;

    /// Opens the device and agrees on the version.
    fn open(&mut self);

    /// Closes the handle.
    fn close(&mut self);

    /// Lets at least [`SCENE_INTERVAL`] events of TotalIssues occur on the boot processor.
    fn overflow(&mut self);

    /// Lets the machine sleep and wake.
    fn sleep(&mut self);

    /// Adds a processor.
    fn add_processor(&mut self);

    /// Lets the timers expire so often.
    fn expire(&mut self, times: u64);

    /// Lets branches occur, where that needs a command.
    fn branch(&mut self) {}

    /// Lets the driver accumulate the counts, where it does not do so by itself.
    fn accumulate(&mut self) {}
}

/// What a client does.
pub type Scene = fn(&mut dyn SceneClient);

/// The scene in which a processor is added.
pub const ADDED: &str = "an added processor";

/// The scenes with their names.
pub const SCENES: [(&str, Scene); 14] = [
    ("queries", queries),
    ("count and sample", count_and_sample),
    (ADDED, add_processor),
    ("samples by time", sample_by_time),
    ("wait for samples", wait),
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

const TOTAL_ISSUES: u64 = 2;

/// Events from one sample to the next.
pub const SCENE_INTERVAL: u32 = 10_000;

fn event(source: u64) -> EventRequest {
    EventRequest { event: Event::of(source), modes: modes::BOTH, ..EventRequest::EMPTY }
}

fn sampled(source: u64) -> EventRequest {
    EventRequest { interval: SCENE_INTERVAL, ..event(source) }
}

impl dyn SceneClient + '_ {
    /// Starts a session and returns its number.
    fn start(&mut self, flags: u32, events: &[EventRequest]) -> u64 {
        let ring = if events.iter().any(|event| event.interval > 0) { 64 } else { 0 };
        let header = StartHeader { flags, ring, ..StartHeader::EMPTY };
        let [session, ..] = self.ask(Code::Start, &[header.as_bytes(), events.as_bytes()].concat()).detail;
        session
    }

    fn stop(&mut self, session: u64) {
        self.ask(Code::Stop, StopRequest { session, source: ALL_SOURCES, core_type: 0, reserved: 0 }.as_bytes());
    }

    fn read(&mut self, session: u64) {
        self.ask(Code::Read, SessionRequest { session }.as_bytes());
    }

    fn read_group(&mut self, session: u64, flags: u32) {
        self.ask(Code::ReadGroup, GroupRequest { session, flags, reserved: 0 }.as_bytes());
    }

    fn samples(&mut self, session: u64, wait: u32) {
        self.ask(Code::Samples, SamplesRequest { session, wait, reserved: 0 }.as_bytes());
    }
}

/// Asks for everything that needs no session.
pub fn queries(client: &mut dyn SceneClient) {
    for code in [Code::Info, Code::ListSources, Code::ListSessions, Code::ListCoreTypes, Code::ListHalSources] {
        client.ask(code, &[]);
    }
    client.ask(Code::QuerySource, SourceRequest { source: TOTAL_ISSUES, core_type: 0, reserved: 0 }.as_bytes());
    client.ask(Code::SetInterval, IntervalRequest { source: TOTAL_ISSUES, interval: 50_000, reserved: 0 }.as_bytes());
    for processor in 0..2 {
        client.ask(Code::ReadRegisters, RegistersRequest { processor, reserved: 0 }.as_bytes());
    }
}

/// Counts and samples, beside each other and across a sleep.
pub fn count_and_sample(client: &mut dyn SceneClient) {
    let counted = client.start(0, &[event(0), event(6)]);
    let of_samples = client.start(0, &[sampled(TOTAL_ISSUES)]);
    let shared = client.start(0, &[sampled(TOTAL_ISSUES)]);
    client.overflow();
    client.sleep();
    client.overflow();
    client.accumulate();
    client.ask(Code::ListSessions, &[]);
    client.samples(of_samples, 0);
    client.read(counted);
    client.read(of_samples);
    client.read_group(counted, 0);
    client.stop(of_samples);
    client.samples(of_samples, 0);
    client.stop(shared);
    client.stop(counted);
}

fn add_processor(client: &mut dyn SceneClient) {
    let counted = client.start(0, &[event(0), event(6)]);
    let of_samples = client.start(0, &[sampled(TOTAL_ISSUES)]);
    client.add_processor();
    client.overflow();
    client.samples(of_samples, 0);
    client.read(counted);
    client.stop(of_samples);
    client.stop(counted);
}

fn sample_by_time(client: &mut dyn SceneClient) {
    let session = client.start(0, &[sampled(0)]);
    client.expire(1);
    client.samples(session, 0);
    client.stop(session);
}

fn wait(client: &mut dyn SceneClient) {
    let session = client.start(0, &[sampled(TOTAL_ISSUES)]);
    client.overflow();
    client.samples(session, 1);
    // The session ends with its handle.
}

fn close_while_sampling(client: &mut dyn SceneClient) {
    let session = client.start(0, &[sampled(TOTAL_ISSUES), sampled(6)]);
    client.overflow();
    client.samples(session, 0);
    // The session ends with its handle.
}

fn turns(client: &mut dyn SceneClient) {
    let events: Vec<EventRequest> = [2, 6, 8, 9, 10, 11, 0x19, 0x1A].into_iter().map(event).collect();
    let session = client.start(flags::MULTIPLEX, &events);
    client.expire(3);
    client.read(session);
    client.stop(session);
}

fn groups(client: &mut dyn SceneClient) {
    let grouped = |source, group| EventRequest { group, ..event(source) };
    let session = client.start(flags::MULTIPLEX, &[grouped(2, 1), grouped(6, 1), grouped(8, 2), grouped(9, 2)]);
    client.expire(2);
    client.read_group(session, 1);
    client.stop(session);
    let read = client.start(0, &[event(TOTAL_ISSUES)]);
    client.overflow();
    client.read_group(read, 1);
    client.stop(read);
}

fn threads(client: &mut dyn SceneClient) {
    let session = client.start(flags::THREADS, &[event(TOTAL_ISSUES)]);
    client.read(session);
    client.stop(session);
}

fn precise(client: &mut dyn SceneClient) {
    let event = EventRequest { modes: modes::BOTH | modes::PRECISE, ..sampled(TOTAL_ISSUES) };
    let session = client.start(0, &[event]);
    client.overflow();
    client.samples(session, 0);
    client.stop(session);
}

fn branches(client: &mut dyn SceneClient) {
    let session = client.start(0, &[EventRequest { interval: 64, ..event(BRANCHES) }]);
    client.branch();
    client.samples(session, 0);
    client.stop(session);
}

fn detached(client: &mut dyn SceneClient) {
    client.start(flags::DETACHED | flags::FORCE, &[event(TOTAL_ISSUES)]);
    client.close();
    client.open();
    client.read(DETACHED);
    client.stop(DETACHED);
}

fn control_areas(client: &mut dyn SceneClient) {
    for operation in [area::QUERY, area::ALLOCATE, area::QUERY, area::FREE] {
        let request = AreaRequest { operation, current: 0, reserved: 0, processors: ProcessorSet::EMPTY };
        client.ask(Code::ControlArea, request.as_bytes());
    }
}

fn raw(client: &mut dyn SceneClient) {
    // Event 0xC0 without a unit mask; the second one with an extra register, which few events have.
    let full = |select: u64, umask: u64, selector: u64| 1 << 63 | select | umask << 12 | selector << 40;
    let mut with_extra = event(full(0xB7, 1, 1));
    with_extra.event.extra = 0x1_0001;
    let session = client.start(0, &[event(full(0xC0, 0, 0))]);
    let with_extra = client.start(0, &[with_extra]);
    client.ask(Code::QuerySource, SourceRequest { source: full(0xC0, 0, 0), core_type: 0, reserved: 0 }.as_bytes());
    client.read(session);
    client.stop(with_extra);
    client.stop(session);
}
