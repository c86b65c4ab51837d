//! Events that take turns on the counters, because there are more events than counters.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::collections::BTreeSet;

use engine::{Engine, Interrupted};
use model::{Mode, Selected};
use pmu::extra::Selector;
use pmu::source::RawEvent;
use proptest::prelude::*;
use protocol::status::STATUS_INSUFFICIENT_RESOURCES;
use protocol::{
    Code, CountRecord, ErrorCode, Event, EventRequest, InfoReply, ProcessorSet, ReplyHeader, StartHeader, event_flags,
    flags,
};
use simulation::{Client, SimMachine};
use zerocopy::FromBytes;

/// Time between two expiries of the timers, in units of 100 ns.
const ROUND: u64 = 40_000;

const NOWHERE: Interrupted = Interrupted { ip: 1, process: 2, thread: 3, mode: protocol::Mode::User };

/// Machines whose events can take turns: each interface but NetBurst.
const MACHINES: [&str; 8] = [
    "intel-v1",
    "p6-coppermine",
    "nehalem-920",
    "haswell-4710mq",
    "alder-lake-12900k",
    "amd-legacy",
    "bulldozer-fx8150",
    "zen4-7700x",
];

fn raw(event: u16) -> u64 {
    RawEvent::new().with_event(event).with_umask(0x81).source().0
}

/// An event that no table lists, so that any general counter may count it.
const fn event(source: u64, group: u32) -> EventRequest {
    EventRequest { event: Event::of(source), modes: simulation::quiet_modes(source), group, ..EventRequest::EMPTY }
}

/// How often an event occurs in a round: no two events alike, but the two that count off-core responses, of which the
/// driver chooses one.
fn occurrences(event: u16) -> u64 {
    1_000 + u64::from(if event == 0xBB { 0xB7 } else { event }) * 3
}

/// How much more often an event with a value in an extra register occurs.
const fn value_occurrences(value: u64) -> u64 {
    value % 1_009 * 7
}

struct Scene {
    machine: &'static SimMachine,
    engine: Engine<&'static SimMachine>,
    client: Client,
}

impl Scene {
    fn new(name: &str) -> Self {
        let machine: &SimMachine = Box::leak(Box::new(SimMachine::named(name, 1)));
        let mut engine = Engine::new(machine, [0; 4]).unwrap();
        let client = Client::open(&mut engine, 1, 10);
        Self { machine, engine, client }
    }

    fn start(&mut self, flags: u32, events: &[EventRequest]) -> ReplyHeader {
        let header = StartHeader { flags, ..StartHeader::EMPTY };
        self.client.start_with(&mut self.engine, header, events).header()
    }

    fn started(&mut self, events: &[EventRequest]) -> u64 {
        let header = self.start(flags::MULTIPLEX, events);
        assert_eq!((header.status, header.cause), (0, 0), "{header:x?}");
        header.detail[0]
    }

    /// Lets rounds pass, with the events of `occurrences` in each.
    fn rounds(&self, rounds: usize) {
        for _ in 0..rounds {
            self.machine.pass(ROUND);
            let happened = |selected: Selected, value| occurrences(selected.event) + value_occurrences(value);
            self.machine.processor(0).model().run_with_extra(Mode::User, &happened);
            if self.machine.timer().is_some() {
                self.machine.expire(&self.engine, 0, &NOWHERE);
            }
        }
    }

    fn read(&mut self, session: u64) -> Vec<CountRecord> {
        self.client.read(&mut self.engine, session)
    }

    fn stop(&mut self, session: u64) -> Vec<CountRecord> {
        self.client.stop(&mut self.engine, session, None).records()
    }

    fn counters(&mut self) -> (u32, u32) {
        let answer = self.client.ask(&mut self.engine, Code::Info, &[], size_of::<InfoReply>());
        let info = InfoReply::read_from_bytes(&answer.bytes).unwrap();
        (info.counters, info.counters_in_use)
    }

    fn assert_nothing_is_held(&mut self) {
        let (_, in_use) = self.counters();
        assert_eq!((in_use, self.machine.is_reserved(), self.machine.timer()), (0, false, None));
        assert!(self.machine.all().all(|cpu| cpu.model().enabled_counters().is_empty()));
    }
}

fn occurred(record: &CountRecord) -> u64 {
    let event = pmu::Source(record.event.source).raw().unwrap().event();
    occurrences(event) + value_occurrences(record.event.extra)
}

/// An off-core response with this value, which a Nehalem and a Haswell count.
const fn offcore(value: u64, group: u32) -> EventRequest {
    let raw = RawEvent::new().with_event(0xB7).with_umask(0x01).with_selector(Selector::OffcoreResponse as u8);
    let mut request = event(raw.source().0, group);
    request.event.extra = value;
    request
}

#[test]
fn every_event_runs_for_an_equal_share_and_the_scaled_counts_are_exact() {
    for name in MACHINES {
        let mut scene = Scene::new(name);
        let events: Vec<_> = (0..24).map(|number| event(raw(0x90 + number), 0)).collect();
        let session = scene.started(&events);
        scene.rounds(480);
        let records = scene.stop(session);
        assert_eq!(records.len(), 24, "{name}");
        for record in &records {
            let turns = record.running / ROUND;
            assert_eq!((record.running % ROUND, record.enabled), (0, 480 * ROUND), "{name}");
            assert_eq!(record.count, turns * occurred(record), "{name}: {record:?}");
            assert!(turns == record.turns && turns >= 480 / 24, "{name}: {turns}");
            let moments =
                [occurred(record).pow(2), occurred(record) * ROUND, ROUND * ROUND].map(|square| square * turns);
            assert_eq!([record.squares, record.products, record.durations].map(|[low, _]| low), moments, "{name}");
        }
        let turns: BTreeSet<_> = records.iter().map(|record| record.turns).collect();
        assert!(turns.last().unwrap() - turns.first().unwrap() <= 1, "{name}: {turns:?}");
        scene.assert_nothing_is_held();
    }
}

#[test]
fn sessions_without_turns_do_not_count_to_the_most_that_take_turns() {
    let mut scene = Scene::new("zen4-7700x");
    let measured: Vec<u64> = (0..8).map(|_| scene.started(&[event(0, 0)])).collect();
    let events: Vec<_> = (0..24).map(|number| event(raw(0x90 + number), 0)).collect();
    let session = scene.started(&events);
    scene.rounds(24);
    assert!(scene.stop(session).iter().all(|record| record.turns > 0));
    assert!(measured.iter().all(|session| scene.stop(*session).len() == 1));
    scene.assert_nothing_is_held();
}

/// The thread that starts or stops can be preempted before the processor runs what it was sent.
#[test]
fn time_before_a_processor_starts_or_stops_its_counters_is_told_as_it_is() {
    const LATENCY: u64 = 12_345;
    let mut scene = Scene::new("zen4-7700x");
    let events: Vec<_> = (0..24).map(|number| event(raw(0x90 + number), 0)).collect();
    scene.machine.set_latency(LATENCY);
    let session = scene.started(&events);
    scene.machine.set_latency(0);
    scene.rounds(480);
    // All events were enabled for the same time. Returns it, and the sum of their times with a counter.
    let times = |records: &[CountRecord]| {
        let enabled: BTreeSet<_> = records.iter().map(|record| record.enabled).collect();
        (enabled, records.iter().map(|record| record.running).sum::<u64>())
    };
    let expected = |late: u64| (BTreeSet::from([480 * ROUND + late]), 6 * (480 * ROUND + late));
    assert_eq!(times(&scene.read(session)), expected(0));
    // The counters go on until they are read. At any time, six events have one.
    scene.machine.set_latency(LATENCY);
    assert_eq!(times(&scene.read(session)), expected(LATENCY));
    assert_eq!(times(&scene.stop(session)), expected(2 * LATENCY));
    scene.assert_nothing_is_held();
}

#[test]
fn events_that_fit_do_not_take_turns() {
    let mut scene = Scene::new("haswell-4710mq");
    let session = scene.started(&[event(raw(0x20), 0), event(raw(0x21), 0)]);
    assert_eq!(scene.machine.timer(), None);
    scene.machine.pass(ROUND);
    scene.machine.run(0, Mode::User, &|selected| occurrences(selected.event));
    for record in scene.stop(session) {
        assert_eq!((record.running, record.turns, record.count), (ROUND, 0, occurred(&record)));
    }
}

#[test]
fn without_the_flag_too_many_events_are_refused() {
    let mut scene = Scene::new("haswell-4710mq");
    let events: Vec<_> = (0..24).map(|number| event(raw(0x90 + number), 0)).collect();
    let refused = scene.start(0, &events);
    assert_eq!(refused.cause, ErrorCode::NoFreeCounter as u32);
    scene.assert_nothing_is_held();
}

#[test]
fn a_group_that_fits_on_no_processor_is_refused_with_its_largest_part() {
    for (name, general) in [("haswell-4710mq", 4), ("amd-legacy", 4), ("zen4-7700x", 6), ("p6-coppermine", 2)] {
        let mut scene = Scene::new(name);
        let mut events: Vec<_> = (0..10).map(|number| event(raw(0x90 + number), 7)).collect();
        events.insert(0, event(raw(0x40), 0));
        for flags in [flags::MULTIPLEX, 0] {
            let refused = scene.start(flags, &events);
            let cause = ErrorCode::GroupTooLarge as u32;
            assert_eq!((refused.status, refused.cause), (STATUS_INSUFFICIENT_RESOURCES.number(), cause), "{name}");
            assert_eq!(refused.detail, [10, (1 << general) - 1], "{name}");
        }
        scene.assert_nothing_is_held();
    }
}

/// Counters of other processors make no difference: the group would not fit without them either.
#[test]
fn a_group_is_too_large_whatever_is_counted_on_other_processors() {
    let machine = SimMachine::named("amd-legacy", 2);
    let mut engine = Engine::new(&machine, [0; 4]).unwrap();
    let client = Client::open(&mut engine, 1, 10);
    let mut start = |processor, events: &[EventRequest]| {
        let mut processors = ProcessorSet::EMPTY;
        assert!(processors.insert(processor));
        let header = StartHeader { processors, ..StartHeader::EMPTY };
        client.start_with(&mut engine, header, events).header()
    };
    assert_eq!(start(1, &[event(raw(0x40), 0)]).status, 0);
    let group: Vec<_> = (0..5).map(|number| event(raw(0x90 + number), 7)).collect();
    assert_eq!(start(0, &group).cause, ErrorCode::GroupTooLarge as u32);
    assert_eq!(start(1, &group).cause, ErrorCode::NoFreeCounter as u32, "a counter is taken there");
}

#[test]
fn unknown_flags_of_an_event_are_refused() {
    let mut scene = Scene::new("haswell-4710mq");
    let refused = scene.start(0, &[EventRequest { flags: event_flags::ALL + 1, ..event(raw(0x40), 0) }]);
    assert_eq!((refused.cause, refused.source), (ErrorCode::BadFlags as u32, raw(0x40)), "{refused:x?}");
    scene.assert_nothing_is_held();
}

#[test]
fn pinned_events_run_all_the_time() {
    let mut scene = Scene::new("zen4-7700x");
    let mut events: Vec<_> = (0..24).map(|number| event(raw(0x90 + number), 0)).collect();
    for pinned in [3, 9] {
        events[pinned].flags = event_flags::PINNED;
    }
    let session = scene.started(&events);
    scene.rounds(100);
    for (index, record) in scene.stop(session).iter().enumerate() {
        let is_pinned = [3, 9].contains(&index);
        assert_eq!(record.running == record.enabled, is_pinned, "{index}");
        assert_eq!(record.count, record.running / ROUND * occurred(record), "{index}");
    }
}

#[test]
fn a_foreign_change_marks_the_event_whose_turn_it_is() {
    let mut scene = Scene::new("haswell-4710mq");
    let events: Vec<_> = (0..8).map(|number| event(raw(0x90 + number), 0)).collect();
    let session = scene.started(&events);
    scene.rounds(4);
    let select = scene.machine.processor(0).model().rdmsr(0x186).unwrap();
    assert!(scene.machine.processor(0).write_foreign(0x186, select | 1 << 18));
    scene.rounds(4);
    // Another change of it later: the first one is what falsified the count.
    assert!(scene.machine.processor(0).write_foreign(0x186, select | 1 << 23));
    scene.rounds(4);
    let disturbed: Vec<_> = scene.stop(session).into_iter().filter(|record| record.disturbed_register != 0).collect();
    let [record] = disturbed.as_slice() else { panic!("{disturbed:?}") };
    assert_eq!((record.disturbed_register, record.disturbed_found), (0x186, select | 1 << 18));
    let event = pmu::Source(record.event.source).raw().unwrap().event();
    assert_eq!(u64::from(event), select & 0xFF, "the event that ran");
}

#[test]
fn a_sleep_is_no_running_time_and_loses_no_event() {
    for name in ["haswell-4710mq", "zen4-7700x"] {
        let mut scene = Scene::new(name);
        let events: Vec<_> = (0..8).map(|number| event(raw(0x90 + number), 0)).collect();
        let session = scene.started(&events);
        scene.rounds(5);
        scene.machine.fall_asleep(&scene.engine);
        scene.machine.pass(100 * ROUND);
        scene.machine.wake(&scene.engine);
        scene.rounds(5);
        for record in scene.stop(session) {
            assert_eq!((record.enabled, record.asleep), (110 * ROUND, 100 * ROUND), "{name}");
            assert_eq!(
                (record.running % ROUND, record.count),
                (0, record.running / ROUND * occurred(&record)),
                "{name}"
            );
        }
    }
}

#[test]
fn events_that_take_turns_can_be_stopped_one_by_one() {
    let mut scene = Scene::new("haswell-4710mq");
    let events: Vec<_> = (0..8).map(|number| event(raw(0x90 + number), 0)).collect();
    let session = scene.started(&events);
    scene.rounds(3);
    for number in 0..8 {
        let stopped: Vec<CountRecord> =
            scene.client.stop(&mut scene.engine, session, Some(raw(0x90 + number))).records();
        let [record] = stopped.as_slice() else { panic!("{stopped:?}") };
        assert_eq!(record.count, record.running / ROUND * occurred(record));
        if number < 7 {
            scene.rounds(2);
            assert_eq!(scene.read(session).len(), 7 - usize::from(number));
        }
    }
    scene.assert_nothing_is_held();
}

#[test]
fn the_counters_of_all_rounds_are_held() {
    let mut scene = Scene::new("haswell-4710mq");
    let events: Vec<_> = (0..8).map(|number| event(raw(0x90 + number), 0)).collect();
    scene.started(&events);
    for _ in 0..3 {
        let refused = scene.start(flags::MULTIPLEX, &[event(raw(0x40), 0)]);
        assert_eq!(refused.cause, ErrorCode::NoFreeCounter as u32);
        scene.rounds(1);
    }
}

#[test]
fn the_next_round_costs_a_comparison_a_stop_and_a_start() {
    // Reads, writes and RDPMCs. Emon compares the selects, the global control and IA32_DEBUGCTL.
    for (name, n, cost) in [("haswell-4710mq", 4, (4 + 2, 2 + 2 * 4, 4)), ("amd-legacy", 4, (4, 3 * 4, 4))] {
        let mut scene = Scene::new(name);
        let events: Vec<_> = (0..2 * n).map(|number| event(raw(0x90 + number), 0)).collect();
        scene.started(&events);
        scene.rounds(1);
        let before = scene.machine.processor(0).model().accesses();
        scene.rounds(1);
        let after = scene.machine.processor(0).model().accesses();
        let spent = (after.rdmsr - before.rdmsr, after.wrmsr - before.wrmsr, after.rdpmc - before.rdpmc);
        assert_eq!(spent, cost, "{name}");
    }
}

#[test]
fn a_round_ends_after_its_time_even_if_the_timer_expires_more_often() {
    let mut scene = Scene::new("haswell-4710mq");
    let events: Vec<_> = (0..8).map(|number| event(raw(0x90 + number), 0)).collect();
    let session = scene.started(&events);
    let every_millisecond = EventRequest { interval: 10_000, ..event(pmu::Source::TIME.0, 0) };
    let header = StartHeader { ring: 64, ..StartHeader::EMPTY };
    let sampler = Client::open(&mut scene.engine, 2, 20);
    assert_eq!(sampler.start_with(&mut scene.engine, header, &[every_millisecond]).header().status, 0);
    assert_eq!(scene.machine.timer(), Some(10_000));
    for _ in 0..40 {
        scene.machine.pass(10_000);
        scene.machine.expire(&scene.engine, 0, &NOWHERE);
    }
    assert_eq!(scene.stop(session).iter().map(|record| record.turns).collect::<Vec<_>>(), [5; 8]);
}

#[test]
fn at_a_constant_rate_the_scaled_count_is_exact_to_one_event_a_turn() {
    for name in MACHINES {
        let mut scene = Scene::new(name);
        let events: Vec<_> = (0..24).map(|number| event(raw(0x90 + number), 0)).collect();
        let session = scene.started(&events);
        // In thousandths of an event in 100 ns.
        let rate = |number: u64| 1_000 + number * 7;
        let mut seed = 1_u64;
        for _ in 0..480 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let time = ROUND + (seed >> 33) % 10_000;
            scene.machine.pass(time);
            scene.machine.run(0, Mode::User, &|selected| rate(selected.event.into()) * time / 1_000);
            scene.machine.expire(&scene.engine, 0, &NOWHERE);
        }
        for record in scene.stop(session) {
            let number = pmu::Source(record.event.source).raw().unwrap().event();
            let happened = rate(number.into()) * record.enabled / 1_000;
            let scaled = u128::from(record.count) * u128::from(record.enabled) / u128::from(record.running);
            let turns = 480;
            assert!(u64::try_from(scaled).unwrap().abs_diff(happened) <= turns, "{name}: {scaled} of {happened}");
        }
    }
}

#[test]
fn the_time_to_write_the_registers_belongs_to_no_turn() {
    const PACE: u64 = 100;
    let mut scene = Scene::new("haswell-4710mq");
    let events: Vec<_> = (0..8).map(|number| event(raw(0x90 + number), 0)).collect();
    let session = scene.started(&events);
    scene.machine.set_pace(PACE);
    scene.rounds(20);
    scene.machine.set_pace(0);
    let records = scene.stop(session);
    let running = records[0].running + records[7].running;
    // Two readings of the clock end one round, and one begins the next.
    assert!(records[0].enabled >= 20 * (ROUND + 3 * PACE) && running + 20 * PACE <= records[0].enabled, "{records:?}");
}

#[test]
fn reading_during_a_sleep_adds_no_time() {
    let mut scene = Scene::new("haswell-4710mq");
    let events: Vec<_> = (0..8).map(|number| event(raw(0x90 + number), 0)).collect();
    let session = scene.started(&events);
    scene.rounds(5);
    scene.machine.fall_asleep(&scene.engine);
    scene.machine.pass(100 * ROUND);
    let asleep: Vec<_> = scene.read(session).iter().map(|record| (record.running, record.count)).collect();
    scene.machine.wake(&scene.engine);
    let awake: Vec<_> = scene.read(session).iter().map(|record| (record.running, record.count)).collect();
    assert_eq!((asleep.iter().map(|(running, _)| running).sum::<u64>(), &awake), (4 * 5 * ROUND, &asleep));
}

#[test]
fn a_round_whose_events_are_all_stopped_is_left_out() {
    let mut scene = Scene::new("haswell-4710mq");
    let events: Vec<_> = (0..8).map(|number| event(raw(0x90 + number), 0)).collect();
    let session = scene.started(&events);
    scene.rounds(4);
    for number in 0..4 {
        let source = Some(raw(0x90 + number));
        assert_eq!(scene.client.stop(&mut scene.engine, session, source).records::<CountRecord>().len(), 1);
    }
    scene.rounds(10);
    for record in scene.stop(session) {
        assert!(record.running >= 11 * ROUND, "{record:?}");
    }
}

#[test]
fn sessions_that_follow_each_other_all_take_turns() {
    let mut scene = Scene::new("haswell-4710mq");
    let events: Vec<_> = (0..8).map(|number| event(raw(0x90 + number), 0)).collect();
    for _ in 0..20 {
        let session = scene.started(&events);
        scene.rounds(2);
        for record in scene.stop(session) {
            assert_eq!((record.turns, record.count), (1, occurred(&record)));
        }
        scene.assert_nothing_is_held();
    }
}

/// Each session takes turns on a counter of its own. A fixed counter is one more than the sessions that can.
#[test]
fn no_more_sessions_take_turns_on_a_processor_than_its_timer_serves() {
    let mut scene = Scene::new("sapphire-rapids-2475x");
    let narrowed = |number: u16, counter: u32| EventRequest {
        event: Event { counters: 1 << counter, ..Event::of(raw(0x90 + number)) },
        ..event(raw(0x90 + number), 0)
    };
    let mut sessions: Vec<u64> = (0..8_u16)
        .map(|counter| {
            scene.started(&[narrowed(2 * counter, counter.into()), narrowed(2 * counter + 1, counter.into())])
        })
        .collect();
    // TotalIssues in either mode, on the fixed counter of retired instructions (SDM Vol. 3B, 21.2.2).
    let fixed = |modes| EventRequest { modes, ..event(2, 0) };
    let ninth = [protocol::modes::USER, protocol::modes::KERNEL].map(fixed);
    let alone = scene.start(0, &ninth[..1]);
    assert_eq!(alone.cause, 0, "its counter is free: {alone:?}");
    let records = scene.read(alone.detail[0]);
    let counter = records[0].counter;
    assert!(counter >= 8, "{records:?}");
    scene.stop(alone.detail[0]);
    let ninth = ninth.map(|event| EventRequest { event: Event { counters: 1 << counter, ..event.event }, ..event });
    let refused = scene.start(flags::MULTIPLEX, &ninth);
    assert_eq!(refused.cause, ErrorCode::NoFreeCounter as u32, "{refused:?}");
    // One event takes no turns, and is not concerned.
    let pinned = scene.started(&ninth[..1]);
    scene.stop(pinned);
    scene.rounds(4);
    scene.stop(sessions.remove(0));
    sessions.push(scene.started(&ninth));
    scene.rounds(4);
    for session in sessions {
        let counts = scene.stop(session);
        assert!(counts[0].count > 0 && counts.iter().all(|record| record.turns >= 2), "{counts:?}");
    }
    scene.assert_nothing_is_held();
}

#[test]
fn sessions_that_take_turns_on_one_processor_leave_the_others_to_more_sessions() {
    let machine = SimMachine::named("sapphire-rapids-2475x", 2);
    let mut engine = Engine::new(&machine, [0; 4]).unwrap();
    let client = Client::open(&mut engine, 1, 10);
    for (processor, counter) in [0, 1].into_iter().flat_map(|processor| (0..8).map(move |counter| (processor, counter)))
    {
        let mut header = StartHeader { flags: flags::MULTIPLEX, ..StartHeader::EMPTY };
        header.processors.insert(processor);
        let events = [0x90, 0x91].map(|number| EventRequest {
            event: Event { counters: 1 << counter, ..Event::of(raw(number)) },
            ..event(raw(number), 0)
        });
        let started = client.start_with(&mut engine, header, &events).header();
        assert_eq!(started.cause, 0, "counter {counter} of CPU {processor}: {started:?}");
    }
}

/// A timer may expire a little before its time, or another session's may expire at any time.
#[test]
fn a_round_ends_from_seven_eighths_of_its_time_on() {
    for (elapsed, is_over) in [
        (0, false),
        (ROUND / 2, false),
        (ROUND * 7 / 8 - 1, false),
        (ROUND * 7 / 8, true),
        (ROUND - 1, true),
        (ROUND, true),
    ] {
        let mut scene = Scene::new("haswell-4710mq");
        let events: Vec<_> = (0..8).map(|number| event(raw(0x90 + number), 0)).collect();
        let session = scene.started(&events);
        scene.machine.pass(elapsed);
        scene.machine.expire(&scene.engine, 0, &NOWHERE);
        let ended = scene.stop(session).iter().filter(|record| record.turns > 0).count();
        assert_eq!(ended, if is_over { 4 } else { 0 }, "{elapsed} of {ROUND}");
    }
}

#[test]
fn both_counters_of_a_pair_are_held_before_its_turn() {
    let mut scene = Scene::new("zen3-5950x");
    let narrowed = |number: u16, counters, group| EventRequest {
        event: Event { counters, ..Event::of(raw(0x90 + number)) },
        ..event(raw(0x90 + number), group)
    };
    // Two rounds on counters 0 and 1; the pair 2 and 3 is in a third one.
    let mut events: Vec<_> = (0..3).map(|number| narrowed(number, 0b11, 0)).collect();
    let operations = RawEvent::new().with_event(3).with_umask(0x0F).source().0;
    let pair = EventRequest { event: Event { counters: 0b100, ..Event::of(operations) }, ..event(operations, 1) };
    events.extend([pair, narrowed(3, 0b11, 1), narrowed(4, 0b11, 1)]);
    let session = scene.started(&events);
    let refused = scene.start(flags::MULTIPLEX, &[narrowed(5, 0b1000, 0)]);
    assert_eq!(refused.cause, ErrorCode::NoFreeCounter as u32);
    scene.stop(session);
}

/// What the property draws for each event.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Plain,
    /// Only some counters may count it.
    Narrowed(u32),
    /// With this value in an extra register, on the machines that have one.
    Offcore(u64),
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        6 => Just(Kind::Plain),
        2 => (1..4_u32).prop_map(Kind::Narrowed),
        1 => prop::sample::select(&[0x1001, 0x1002][..]).prop_map(Kind::Offcore),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    /// Groups stay whole; every group runs at least once in as many rounds as there are groups; pinned events, and
    /// those with an extra register, run all the time; no event is on a counter that it excludes; and each event counts
    /// exactly what occurs in its turns.
    #[test]
    fn rotation_is_fair_and_keeps_groups_whole(
        name in prop::sample::select(&MACHINES[..]),
        groups in prop::collection::vec((prop::collection::vec(kind(), 1..=3), 0_u8..8), 2..16),
    ) {
        let mut scene = Scene::new(name);
        let mut events = Vec::new();
        for (number, (members, pinned)) in (1..).zip(&groups) {
            for (kind, offset) in members.iter().zip(0..) {
                let flags = if *pinned == 0 && number == 1 { event_flags::PINNED } else { 0 };
                let plain = event(raw(0x90 + 3 * u16::try_from(number).unwrap() + offset), number);
                let event = match *kind {
                    Kind::Narrowed(counters) => EventRequest { event: Event { counters, ..plain.event }, ..plain },
                    Kind::Offcore(value) if name == "nehalem-920" => offcore(value, number),
                    Kind::Offcore(value) if name == "haswell-4710mq" => offcore(value ^ 0x1_1000, number),
                    Kind::Plain | Kind::Offcore(_) => plain,
                };
                events.push(EventRequest { flags, ..event });
            }
        }
        let header = scene.start(flags::MULTIPLEX, &events);
        if header.status != 0 {
            let causes = [
                ErrorCode::GroupTooLarge,
                ErrorCode::NoFreeCounter,
                ErrorCode::ExtraRegisterTaken,
                ErrorCode::BadCounters, // none of the allowed counters counts the event
            ];
            prop_assert!(causes.map(|cause| cause as u32).contains(&header.cause), "{:?}", header);
            scene.assert_nothing_is_held();
            return Ok(());
        }
        let all_fit = scene.machine.timer().is_none();
        scene.rounds(groups.len());
        let records = scene.stop(header.detail[0]);
        for (index, (record, request)) in records.iter().zip(&events).enumerate() {
            prop_assert!(record.running >= ROUND, "{index} starves");
            prop_assert_eq!(record.count, record.running / ROUND * occurred(record), "{:?}", record);
            prop_assert!(request.event.counters == 0 || request.event.counters >> record.counter & 1 == 1);
            let group = || records.iter().zip(&events).filter(|(_, other)| other.group == request.group);
            let shares: BTreeSet<_> = group().map(|(other, _)| other.running).collect();
            prop_assert_eq!(shares.len(), 1, "a group was split");
            let is_pinned = all_fit || group().any(|(_, other)| other.flags != 0 || other.event.extra != 0);
            prop_assert!(!is_pinned || record.running == record.enabled);
        }
        scene.assert_nothing_is_held();
    }
}
