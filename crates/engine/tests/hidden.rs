//! Sessions on P cores of which CPUID hides counters.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use engine::Engine;
use model::{CounterId, FaultingAccess, Mode, Movement, Processor, Quirk, Selected};
use pmu::Support;
use pmu::source::RawEvent;
use protocol::{CountRecord, ErrorCode, Event, EventRequest, ReplyHeader, StartHeader, flags, modes};
use simulation::{Client, SimMachine};

const ALDER_LAKE: &str = "alder-lake-p-12900h";
const P_CORE: u32 = 0x40;

fn event(number: u16, umask: u16) -> EventRequest {
    let source = RawEvent::new().with_event(number).with_umask(umask).source().0;
    let event = Event { core_type: P_CORE, ..Event::of(source) };
    EventRequest { event, modes: modes::USER, ..EventRequest::EMPTY }
}

/// Events that every general counter counts.
fn general(number: u8) -> Vec<EventRequest> {
    (0..number).map(|umask| event(0xC4, 0x10 + u16::from(umask))).collect()
}

fn slots() -> Vec<EventRequest> {
    core::iter::once(event(0, 0x04)).chain((0x80..0x84).map(|metric| event(0, metric))).collect()
}

/// How often an event occurs: another number for each.
fn occurrences(selected: Selected) -> u64 {
    match (selected.event, selected.umask) {
        (0xA4, 0x01) => 2_550,
        (0x00, 0x80) => 1_020,
        (0x00, 0x81..=0x83) => 510,
        (event, umask) => 1_000 * u64::from(event) + u64::from(umask),
    }
}

/// Makes a processor unkind.
type Change = fn(&mut Processor);

struct Scene {
    machine: &'static SimMachine,
    engine: Engine<&'static SimMachine>,
    client: Client,
}

impl Scene {
    /// Creates a machine with two P cores and two E cores, of which the P cores are changed.
    fn new(name: &str, change: impl Fn(&mut Processor)) -> Self {
        let machine: &SimMachine = Box::leak(Box::new(SimMachine::named(name, 4).without_time_between_accesses()));
        for number in [0, 2] {
            change(&mut machine.processor(number).model());
        }
        let mut engine = Engine::new(machine, [0; 4]).unwrap();
        let client = Client::open(&mut engine, 1, 10);
        Self { machine, engine, client }
    }

    fn start(&mut self, flags: u32, events: &[EventRequest]) -> ReplyHeader {
        self.client.start_with(&mut self.engine, StartHeader { flags, ..StartHeader::EMPTY }, events).header()
    }

    fn started(&mut self, flags: u32, events: &[EventRequest]) -> u64 {
        let header = self.start(flags, events);
        assert_eq!((header.status, header.cause), (0, 0), "{:x?}", header.detail);
        header.detail[0]
    }

    /// Runs all processors, stops the session, and checks that each event was counted all the time, by the ledger.
    fn check_counts(&mut self, session: u64, events: &[EventRequest]) {
        (0..4).for_each(|number| self.machine.run(number, Mode::User, &occurrences));
        let records: Vec<CountRecord> = self.client.stop(&mut self.engine, session, None).records();
        assert_eq!(records.len(), 2 * events.len());
        for record in records {
            let raw = pmu::Source(record.event.source).raw().unwrap();
            let selected = if (raw.event(), raw.umask()) == (0, 4) { (0xA4, 1) } else { (raw.event(), raw.umask()) };
            let ledger: u64 = {
                let model = self.machine.processor(record.processor).model();
                let of_event = |one: &model::LedgerEntry| (one.selected.event, one.selected.umask) == selected;
                model.ledger().entries().filter(of_event).map(|entry| entry.counted).sum()
            };
            assert_eq!(record.count, ledger, "{selected:x?} on CPU {}", record.processor);
            assert_eq!(record.enabled, record.running, "{selected:x?} took turns");
        }
    }
}

#[test]
fn eight_general_events_and_the_metrics_are_counted_at_once_on_p_cores() {
    for name in [ALDER_LAKE, "raptor-lake-p-13900h", "meteor-lake-155h"] {
        let mut scene = Scene::new(name, |_| {});
        for events in [general(8), slots(), [general(8), slots()].concat()] {
            (0..4).for_each(|number| scene.machine.processor(number).model().clear_ledger());
            let session = scene.started(0, &events);
            scene.check_counts(session, &events);
        }
        // Nine do not fit, and take turns if they may.
        let refused = scene.start(0, &general(9));
        assert_eq!(refused.cause, ErrorCode::NoFreeCounter as u32, "{name}");
        scene.started(flags::MULTIPLEX, &general(9));
    }
}

/// What the trials have shown is known to the second plan of the first start.
#[test]
fn a_machine_without_the_general_counters_has_six_from_the_first_start_on() {
    let changes: [(&str, Change); 3] = [
        ("they fault", |model| {
            model.set_faulting([0x18C, 0x18D, 0xC7, 0xC8, 0x4C7, 0x4C8].into_iter().flat_map(FaultingAccess::without));
        }),
        ("the global control refuses them", |model| {
            model.wrmsr(0x38F, 0).unwrap();
            model.set_quirks([Quirk::Faults { register: 0x38F, bits: 0xC0 }]);
        }),
        ("they stand still", |model| {
            model.set_movement(CounterId::General(6), Movement::None);
            model.set_movement(CounterId::General(7), Movement::None);
        }),
    ];
    for (what, change) in changes {
        let mut scene = Scene::new(ALDER_LAKE, change);
        let refused = scene.start(0, &general(8));
        assert_eq!(refused.cause, ErrorCode::NoFreeCounter as u32, "{what}");
        assert!(!scene.machine.is_reserved(), "{what}");
        let mut scene = Scene::new(ALDER_LAKE, change);
        let session = scene.started(flags::MULTIPLEX, &general(8));
        scene.client.stop(&mut scene.engine, session, None);
        let events = [general(6), slots()].concat();
        (0..4).for_each(|number| scene.machine.processor(number).model().clear_ledger());
        let session = scene.started(0, &events);
        scene.check_counts(session, &events);
    }
}

/// One processor of the machine may lack what another has.
#[test]
fn each_processor_is_tried() {
    let mut scene = Scene::new(ALDER_LAKE, |_| {});
    scene.machine.processor(2).model().set_movement(CounterId::General(7), Movement::None);
    let refused = scene.start(0, &general(8));
    assert_eq!((refused.cause, refused.processor), (ErrorCode::NoFreeCounter as u32, 2));
    let events = general(7);
    let session = scene.started(0, &events);
    scene.check_counts(session, &events);
}

#[test]
fn a_machine_without_slots_refuses_them_from_the_first_start_on() {
    let changes: [(&str, Change); 3] = [
        ("the counter faults", |model| model.set_faulting(FaultingAccess::without(0x30C))),
        ("the metrics fault", |model| model.set_faulting(FaultingAccess::without(0x329))),
        ("the counter stands still", |model| model.set_movement(CounterId::Fixed(3), Movement::None)),
    ];
    for (what, change) in changes {
        let mut scene = Scene::new(ALDER_LAKE, change);
        for _ in 0..2 {
            let refused = scene.start(0, &slots());
            let found = (refused.cause, refused.detail[0], refused.source);
            let no_metrics = Support::NoMetrics as u64;
            assert_eq!(found, (ErrorCode::UnsupportedSource as u32, no_metrics, slots()[0].event.source), "{what}");
        }
        let session = scene.started(0, &general(8));
        scene.check_counts(session, &general(8));
    }
}

/// As the driver loads, and as a session without counters runs, nothing is tried.
#[test]
fn nothing_is_tried_before_a_session_counts() {
    let mut scene = Scene::new(ALDER_LAKE, |_| {});
    let time = EventRequest { event: Event::of(0), interval: 10_000, modes: modes::BOTH, ..EventRequest::EMPTY };
    scene.client.start_with(&mut scene.engine, StartHeader { ring: 64, ..StartHeader::EMPTY }, &[time]);
    assert!(scene.machine.all().all(|cpu| cpu.model().accesses().wrmsr == 0));
}
