//! Sessions that yield: they stop when another session needs what they use, and keep their final counts.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use engine::{Engine, Interrupted};
use model::{Mode, Selected};
use pmu::extra::Selector;
use pmu::source::RawEvent;
use proptest::prelude::*;
use protocol::{
    Code, CountRecord, ErrorCode, Event, EventRequest, InfoReply, ReplyHeader, SessionEvent, SessionRequest,
    StartHeader, flags,
};
use simulation::{Client, SimMachine};
use zerocopy::{FromBytes, IntoBytes};

/// Duration of the shortest round, in units of 100 ns.
const ROUND: u64 = 40_000;

/// How often every event occurs in a round.
const OCCURRENCES: u64 = 1_000;

const NOWHERE: Interrupted = Interrupted { ip: 1, process: 2, thread: 3, mode: protocol::Mode::User };

const YIELDS: StartHeader = StartHeader { flags: flags::YIELDS | flags::MULTIPLEX, ..StartHeader::EMPTY };
const MULTIPLEX: StartHeader = StartHeader { flags: flags::MULTIPLEX, ..StartHeader::EMPTY };

/// An event that no table lists, so that any general counter may count it.
fn event(number: u16) -> EventRequest {
    let source = RawEvent::new().with_event(0x90 + number).with_umask(0x81).source().0;
    EventRequest { event: Event::of(source), modes: simulation::quiet_modes(source), ..EventRequest::EMPTY }
}

fn events(numbers: std::ops::Range<u16>) -> Vec<EventRequest> {
    numbers.map(event).collect()
}

fn sampled(number: u16) -> EventRequest {
    EventRequest { interval: 10_000, ..event(number) }
}

fn offcore(value: u64) -> EventRequest {
    let raw = RawEvent::new().with_event(0xB7).with_umask(0x01).with_selector(Selector::OffcoreResponse as u8);
    EventRequest { event: Event { extra: value, ..Event::of(raw.source().0) }, ..event(0) }
}

/// A Haswell with two processors, an agent that yields and another client.
struct Scene {
    machine: &'static SimMachine,
    engine: Engine<&'static SimMachine>,
    agent: Client,
    other: Client,
}

impl Scene {
    fn new() -> Self {
        let machine: &SimMachine = Box::leak(Box::new(SimMachine::named("haswell-4710mq", 2)));
        let mut engine = Engine::new(machine, [0; 4]).unwrap();
        let [agent, other] = [(1, 10), (2, 20)].map(|(handle, process)| Client::open(&mut engine, handle, process));
        Self { machine, engine, agent, other }
    }

    fn start(&mut self, client: Client, header: &StartHeader, events: &[EventRequest]) -> ReplyHeader {
        client.start_with(&mut self.engine, *header, events).header()
    }

    fn started(&mut self, client: Client, header: &StartHeader, events: &[EventRequest]) -> u64 {
        let reply = self.start(client, header, events);
        assert_eq!((reply.status, reply.cause), (0, 0), "{reply:x?}");
        reply.detail[0]
    }

    fn pass(&self, rounds: u64) {
        for _ in 0..rounds {
            self.machine.pass(ROUND);
            for processor in 0..2 {
                self.machine.processor(processor).model().run(Mode::User, &|_: Selected| OCCURRENCES);
                if self.machine.timer().is_some() {
                    self.machine.expire(&self.engine, processor, &NOWHERE);
                }
            }
        }
    }

    /// Returns whether the session has yielded, by a read, and its counts.
    fn read(&mut self, session: u64) -> (bool, Vec<CountRecord>) {
        let answer = self.agent.ask(&mut self.engine, Code::Read, SessionRequest { session }.as_bytes(), 1 << 16);
        assert_eq!(answer.header().status, 0);
        (answer.header().detail == [1, 0], answer.records())
    }

    fn stop(&mut self, client: Client, session: u64) -> Vec<CountRecord> {
        let answer = client.stop(&mut self.engine, session, None);
        assert_eq!(answer.header().status, 0);
        answer.records()
    }

    fn counters_in_use(&mut self) -> u32 {
        let answer = self.agent.ask(&mut self.engine, Code::Info, &[], size_of::<InfoReply>());
        InfoReply::read_from_bytes(&answer.bytes).unwrap().counters_in_use
    }
}

/// A session of the agent, one of another client, and whether the first yields to the second.
struct Case {
    name: &'static str,
    agent: (StartHeader, Vec<EventRequest>),
    other: (StartHeader, Vec<EventRequest>),
    yields: bool,
}

fn cases() -> Vec<Case> {
    let case = |name, agent, other, yields| Case { name, agent, other, yields };
    let plain = StartHeader::EMPTY;
    let ring = StartHeader { ring: 64, ..plain };
    let yielding = StartHeader { flags: flags::YIELDS, ..plain };
    let with_ring = StartHeader { ring: 64, ..yielding };
    vec![
        case("counters are left", (yielding, events(0..2)), (plain, events(2..4)), false),
        case("no counter is left", (yielding, events(0..4)), (plain, events(4..5)), true),
        case("the agent takes turns", (YIELDS, events(0..9)), (plain, events(9..10)), true),
        case("the other would take turns", (yielding, events(0..3)), (MULTIPLEX, events(3..6)), true),
        case("both fit without turns", (yielding, events(0..2)), (MULTIPLEX, events(2..4)), false),
        case("an equal sampled event is shared", (with_ring, vec![sampled(0)]), (ring, vec![sampled(0)]), false),
        case("a sampled event", (yielding, events(0..4)), (ring, vec![sampled(5)]), true),
        case("an extra register", (yielding, vec![offcore(1), offcore(2)]), (plain, vec![offcore(4)]), true),
    ]
}

#[test]
fn a_session_yields_if_another_would_be_refused_or_take_turns() {
    for Case { name, agent, other, yields } in cases() {
        let mut scene = Scene::new();
        let session = scene.started(scene.agent, &agent.0, &agent.1);
        scene.pass(3);
        let begun = scene.started(scene.other, &other.0, &other.1);
        scene.pass(2);
        assert_eq!(scene.read(session).0, yields, "{name}");
        let final_counts = scene.stop(scene.agent, session);
        assert_eq!(final_counts.len(), 2 * agent.1.len(), "{name}");
        let time = if yields { 3 } else { 5 } * ROUND;
        assert!(final_counts.iter().all(|record| record.enabled == time), "{name}: {final_counts:?}");
        assert_eq!(scene.stop(scene.other, begun).len(), 2 * other.1.len(), "{name}");
    }
}

#[test]
fn the_counts_of_a_session_that_has_yielded_stay_until_it_is_stopped() {
    let mut scene = Scene::new();
    let session = scene.started(scene.agent, &YIELDS, &events(0..4));
    scene.pass(5);
    let other = scene.started(scene.other, &StartHeader::EMPTY, &events(10..14));
    let listed: Vec<SessionEvent> = scene.other.tell(&mut scene.engine, Code::ListSessions);
    assert!(listed.iter().all(|event| event.session == other), "only running sessions are listed");
    for _ in 0..3 {
        scene.pass(1);
        let (yielded, counts) = scene.read(session);
        assert!(yielded);
        assert!(counts.iter().all(|record| (record.count, record.enabled) == (5 * OCCURRENCES, 5 * ROUND)));
    }
    let counts = scene.stop(scene.agent, session);
    assert_eq!(counts.len(), 8);
    assert!(counts.iter().all(|record| (record.count, record.running) == (5 * OCCURRENCES, 5 * ROUND)));
    let again = scene.agent.stop(&mut scene.engine, session, None).header();
    assert_eq!(again.cause, ErrorCode::NoSuchSession as u32);
    assert!(scene.stop(scene.other, other).iter().all(|record| record.count == 3 * OCCURRENCES));
}

#[test]
fn a_stop_of_one_event_of_a_session_that_has_yielded_leaves_the_counts_of_the_others() {
    let mut scene = Scene::new();
    let all = events(0..4);
    let session = scene.started(scene.agent, &YIELDS, &all);
    scene.pass(5);
    let other = scene.started(scene.other, &StartHeader::EMPTY, &events(10..14));
    for (stopped, event) in all.iter().enumerate() {
        let (yielded, left) = scene.read(session);
        let sources: Vec<u64> = left.iter().map(|record| record.event.source).collect();
        let wanted: Vec<u64> = (0..2).flat_map(|_| all.iter().skip(stopped).map(|event| event.event.source)).collect();
        assert_eq!((yielded, sources), (true, wanted), "{stopped} stopped");
        let counts: Vec<CountRecord> = scene.agent.stop(&mut scene.engine, session, Some(event.event.source)).records();
        assert_eq!(counts.len(), 2, "a count on each processor");
        assert!(
            counts.iter().all(|record| (record.event.source, record.count) == (event.event.source, 5 * OCCURRENCES))
        );
    }
    let gone = scene.agent.stop(&mut scene.engine, session, None).header();
    assert_eq!(gone.cause, ErrorCode::NoSuchSession as u32, "every count was taken");
    scene.stop(scene.other, other);
}

#[test]
fn a_request_that_is_wrong_by_itself_stops_nothing() {
    let wrong = [
        (StartHeader { flags: 1 << 31, ..StartHeader::EMPTY }, events(0..1)),
        (StartHeader { ring: 63, ..StartHeader::EMPTY }, vec![sampled(0)]),
        (StartHeader { round: 40_000, ..StartHeader::EMPTY }, events(0..1)),
        (StartHeader { last_branches: 1 << 31, ..StartHeader::EMPTY }, events(0..1)),
        (StartHeader::EMPTY, vec![EventRequest { event: Event::of(0x7FFF_0000), ..event(0) }]),
        (StartHeader { flags: flags::YIELDS | flags::DETACHED, ..StartHeader::EMPTY }, events(0..1)),
        (StartHeader { flags: flags::YIELDS | flags::THREADS, ..StartHeader::EMPTY }, events(0..1)),
    ];
    let mut scene = Scene::new();
    let session = scene.started(scene.agent, &YIELDS, &events(0..9));
    for (header, events) in wrong {
        assert_ne!(scene.start(scene.other, &header, &events).status, 0, "{header:?}");
        assert!(!scene.read(session).0, "{header:?}");
    }
}

#[test]
fn sessions_that_yield_do_not_yield_to_each_other() {
    let mut scene = Scene::new();
    let session = scene.started(scene.agent, &YIELDS, &events(0..4));
    let refused = scene.start(scene.other, &YIELDS, &events(4..8));
    assert_eq!(refused.cause, ErrorCode::NoFreeCounter as u32);
    assert!(!scene.read(session).0);
}

#[test]
fn samples_before_the_yield_are_delivered() {
    let mut scene = Scene::new();
    let header = StartHeader { ring: 64, flags: flags::YIELDS, ..StartHeader::EMPTY };
    let session = scene.started(scene.agent, &header, &[sampled(0)]);
    for _ in 0..3 {
        scene.machine.run(0, Mode::User, &|_| 10_000);
        scene.machine.interrupt(&scene.engine, 0, &NOWHERE);
    }
    let other = scene.started(scene.other, &StartHeader::EMPTY, &events(10..14));
    let fetched = |scene: &mut Scene| {
        let answer = scene.agent.samples(&mut scene.engine, session, None, 64).unwrap();
        (answer.header().detail[0], answer.records::<protocol::SampleRecord>().len())
    };
    assert_eq!(fetched(&mut scene), (1, 3));
    let counts = scene.stop(scene.agent, session);
    assert_eq!(counts.iter().map(|record| record.samples).sum::<u64>(), 3);
    assert_eq!(fetched(&mut scene), (1, 0), "the session ends when its samples are fetched after it was stopped");
    let gone = scene.agent.samples(&mut scene.engine, session, None, 64).unwrap().header();
    assert_eq!(gone.cause, ErrorCode::NoSuchSession as u32);
    scene.stop(scene.other, other);
}

#[test]
fn a_handle_that_is_closed_after_its_session_has_yielded_leaves_nothing() {
    let mut scene = Scene::new();
    scene.started(scene.agent, &YIELDS, &events(0..9));
    let other = scene.started(scene.other, &StartHeader::EMPTY, &events(10..14));
    scene.engine.close(scene.agent.0);
    scene.stop(scene.other, other);
    scene.agent = Client::open(&mut scene.engine, 3, 30);
    assert_eq!((scene.counters_in_use(), scene.machine.is_reserved(), scene.machine.timer()), (0, false, None));
}

#[test]
fn rounds_have_the_requested_duration() {
    for (round, turns) in [(0, 50), (40_000, 50), (200_000, 10), (10_000_000, 0)] {
        let mut scene = Scene::new();
        let session = scene.started(scene.agent, &StartHeader { round, ..YIELDS }, &events(0..8));
        scene.pass(100);
        let counts = scene.stop(scene.agent, session);
        assert!(counts.iter().all(|record| record.turns.abs_diff(turns) <= 1), "{round}: {counts:?}");
    }
    let mut scene = Scene::new();
    for round in [1, 39_999, 10_000_001] {
        let refused = scene.start(scene.agent, &StartHeader { round, ..YIELDS }, &events(0..8));
        assert_eq!((refused.cause, refused.detail), (ErrorCode::BadInterval as u32, [40_000, 10_000_000]));
    }
}

proptest! {
    /// The agent takes its counters whenever it can; another client starts and stops at random moments.
    #[test]
    fn another_client_is_never_refused_for_the_agent_and_no_count_is_lost(
        steps in prop::collection::vec((0..4_u8, 1..5_u16, 1..4_u64), 1..60),
    ) {
        let mut scene = Scene::new();
        let (mut session, mut other) = (None, None);
        // What the agent's first event has counted on processor 0, and what occurred while its sessions ran.
        let (mut counted, mut occurred) = (0, 0);
        for (action, count, rounds) in steps {
            match action {
                0 => {
                    if session.is_none() {
                        let header = StartHeader { flags: flags::YIELDS, ..StartHeader::EMPTY };
                        let reply = scene.start(scene.agent, &header, &events(0..3));
                        session = (reply.status == 0).then_some((reply.detail[0], false));
                    }
                }
                1 if other.is_none() => {
                    other = Some(scene.started(scene.other, &StartHeader::EMPTY, &events(10..10 + count)));
                    if let Some((number, has_yielded)) = &mut session {
                        let (yielded, _) = scene.read(*number);
                        prop_assert_eq!(yielded, count > 1 || *has_yielded);
                        *has_yielded = yielded;
                    }
                }
                2 => {
                    if let Some(number) = other.take() {
                        scene.stop(scene.other, number);
                    }
                }
                _ => {
                    if let Some((number, _)) = session.take() {
                        counted += scene.stop(scene.agent, number)[0].count;
                    }
                }
            }
            scene.pass(rounds);
            occurred += if session.is_some_and(|(_, has_yielded)| !has_yielded) { rounds * OCCURRENCES } else { 0 };
        }
        if let Some((number, _)) = session {
            counted += scene.stop(scene.agent, number)[0].count;
        }
        prop_assert_eq!(counted, occurred);
    }
}
