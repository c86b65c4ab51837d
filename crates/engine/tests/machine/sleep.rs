//! Sessions continue after a sleep and report its duration.

use engine::Engine;
use pmu::extra::Selector;
use pmu::source::RawEvent;
use proptest::prelude::*;
use protocol::{
    AreaRequest, BRANCHES, Code, ErrorCode, Event, EventRequest, InfoReply, ProcessorSet, RecordKind, StartHeader,
    area, modes,
};
use simulation::{Client, SimMachine};
use zerocopy::{FromBytes, IntoBytes};

use super::scene::{IDENTITIES, NOWHERE, SHORT, engine, event, header, on, records, run, started};

#[test]
fn counts_continue_after_a_sleep_and_report_its_length() {
    for name in IDENTITIES {
        let machine = SimMachine::named(name, 2);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let before = client.started(&mut engine, 0, &[2]);
        machine.pass(1_000);
        run(&machine, &engine, 1, 700);
        machine.fall_asleep(&engine);
        run(&machine, &engine, 1, 5);
        machine.pass(60_000);
        assert_eq!(client.read(&mut engine, before)[1].asleep, 60_000, "{name}: in the middle");
        machine.wake(&engine);
        let after = client.started(&mut engine, 0, &[6]);
        run(&machine, &engine, 1, 40);
        machine.pass(200);
        let count = client.read(&mut engine, before)[1];
        assert_eq!((count.count, count.enabled, count.asleep), (740, 61_200, 60_000), "{name}");
        let count = client.read(&mut engine, after)[1];
        assert_eq!((count.count, count.enabled, count.asleep), (40, 200, 0), "{name}: it began later");
        let answer = client.ask(&mut engine, Code::Info, &[], size_of::<InfoReply>());
        let info = InfoReply::read_from_bytes(&answer.bytes).unwrap();
        assert_eq!((info.sleeps, info.asleep), (1, 60_000), "{name}");
    }
}

/// A record that is no sample completes the pending request of its session as well.
#[test]
fn the_record_of_a_sleep_that_fills_half_a_ring_is_reported() {
    const HALF: usize = 32;
    for name in IDENTITIES {
        for samples in [HALF - 2, HALF - 1] {
            let machine = SimMachine::named(name, 1);
            let mut engine = engine(&machine);
            let client = Client::open(&mut engine, 1, 10);
            started(client, &mut engine, on(&[]), &[event(2, SHORT)]);
            for _ in 0..samples {
                run(&machine, &engine, 0, u64::from(SHORT));
            }
            machine.fall_asleep(&engine);
            assert_eq!(machine.wake_and_report(&engine), samples + 1 == HALF, "{name}: {samples} samples before");
        }
    }
}

#[test]
fn a_sampling_session_gets_a_record_of_each_sleep_on_each_processor_and_continues() {
    for name in IDENTITIES {
        let machine = SimMachine::named(name, 2);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let session = started(client, &mut engine, on(&[]), &[event(2, SHORT)]);
        for length in [10, 0, 7_000] {
            run(&machine, &engine, 0, u64::from(SHORT) + 10);
            machine.fall_asleep(&engine);
            machine.pass(length);
            machine.wake(&engine);
            run(&machine, &engine, 0, u64::from(SHORT));
            let told = records(client, &mut engine, session, RecordKind::Slept);
            assert_eq!(told, [(0, length), (1, length)], "{name}");
        }
        let counts = client.stop(&mut engine, session, None).records::<protocol::CountRecord>();
        assert_eq!((counts[0].samples, counts[0].lost), (6, 0), "{name}");
    }
}

#[test]
fn a_start_while_the_machine_falls_asleep_is_refused_and_a_stop_takes_effect_when_it_wakes() {
    for name in IDENTITIES {
        let machine = SimMachine::named(name, 1);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let stopped = client.started(&mut engine, 0, &[2]);
        run(&machine, &engine, 0, 33);
        machine.fall_asleep(&engine);
        let accesses = machine.processor(0).model().accesses();
        // What the event needs in the registers cannot be tried.
        let refused = client.start(&mut engine, 0, ProcessorSet::EMPTY, &[(6, modes::BOTH)]).header();
        assert_eq!(refused.cause, ErrorCode::Asleep as u32, "{name}");
        let counts = client.stop(&mut engine, stopped, None).records::<protocol::CountRecord>();
        assert_eq!(counts[0].count, 33, "{name}");
        assert_eq!(machine.processor(0).model().accesses(), accesses, "{name}: its registers are as good as lost");
        machine.wake(&engine);
        let late = client.started(&mut engine, 0, &[6]);
        run(&machine, &engine, 0, 8);
        assert_eq!(client.read(&mut engine, late)[0].count, 8, "{name}");
        machine.fall_asleep(&engine);
        engine.close(client.0);
        machine.wake(&engine);
        assert_eq!(machine.processor(0).model().enabled_counters(), [], "{name}");
        assert!(!machine.is_in_use(), "{name}");
    }
}

/// Sends a request for control areas on all processors and returns the cause of the answer.
fn ask_areas(client: Client, engine: &mut Engine<&SimMachine>, operation: u32) -> u32 {
    let request = AreaRequest { operation, current: 0, reserved: 0, processors: ProcessorSet::EMPTY };
    client.ask(engine, Code::ControlArea, request.as_bytes(), 4096).header().cause
}

const PRECISE: EventRequest = EventRequest {
    event: Event::of(0x1A),
    modes: modes::USER | modes::PRECISE,
    interval: SHORT,
    ..EventRequest::EMPTY
};

const TRACE: EventRequest =
    EventRequest { event: Event::of(BRANCHES), modes: modes::USER, interval: 64, ..EventRequest::EMPTY };

/// Brings a machine into a state in which its registers must not be accessed.
type Stage = fn(&SimMachine, &Engine<&SimMachine>);

/// Starting to sample or record requires register accesses.
#[test]
fn requests_that_need_a_register_are_refused_during_a_sleep_and_change_nothing() {
    let machine = SimMachine::named("haswell-4710mq", 2);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let starts = [&[event(2, SHORT)][..], &[PRECISE], &[TRACE], &[event(2, 0), TRACE]];
    let stages: [(&str, Stage); 3] = [
        ("about to sleep", |_, engine| engine.sampler().sleeps().begin(engine::Ticks(0))),
        ("asleep", |machine, engine| machine.fall_asleep(engine)),
        // The sleep time has ended, but no processor is awake yet.
        ("waking", |machine, engine| {
            machine.fall_asleep(engine);
            engine.sampler().sleeps().end(engine::Ticks(0));
        }),
    ];
    for (beside, (stage, go_there)) in [false, true].into_iter().flat_map(|beside| stages.map(|stage| (beside, stage)))
    {
        if beside && stage == "about to sleep" {
            started(client, &mut engine, on(&[]), &[event(6, 2 * SHORT)]);
        }
        go_there(&machine, &engine);
        for events in starts {
            let refused = client.start_with(&mut engine, header(0, true, on(&[])), events).header();
            assert_eq!(refused.cause, ErrorCode::Asleep as u32, "{events:?}, {stage}, beside {beside}");
        }
        for operation in [area::QUERY, area::ALLOCATE, area::FREE] {
            assert_eq!(ask_areas(client, &mut engine, operation), ErrorCode::Asleep as u32, "{operation}, {stage}");
        }
        assert_eq!(machine.is_in_use(), beside, "{stage}");
        machine.wake(&engine);
        for events in starts {
            let session = started(client, &mut engine, on(&[]), events);
            client.stop(&mut engine, session, None);
        }
    }
    engine.close(client.0);
    assert!(!machine.is_in_use());
}

/// The first count on a processor accesses its registers for the first time, on a thread that is pinned to it.
#[test]
fn the_first_count_is_refused_until_its_processor_is_awake() {
    for name in IDENTITIES {
        let machine = SimMachine::named(name, 2);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        machine.fall_asleep(&engine);
        let slept = machine.announce_wake(&engine);
        let cause = |engine: &mut _, processor| {
            client.start_with(engine, header(0, false, on(&[processor])), &[event(2, 0)]).header().cause
        };
        assert_eq!(cause(&mut engine, 0), ErrorCode::Asleep as u32, "{name}");
        machine.wake_on(&engine, 0, slept);
        assert_eq!(cause(&mut engine, 0), 0, "{name}");
        assert_eq!(cause(&mut engine, 1), ErrorCode::Asleep as u32, "{name}: the other one still sleeps");
        machine.wake_on(&engine, 1, slept);
        assert_eq!(cause(&mut engine, 1), 0, "{name}");
    }
}

fn offcore(extra: u64) -> EventRequest {
    let raw = RawEvent::new().with_event(0xB7).with_umask(1).with_selector(Selector::OffcoreResponse as u8);
    EventRequest { event: Event { extra, ..Event::of(raw.source().0) }, ..event(2, 0) }
}

/// The value of an extra register that was accessed before is read when a session begins to use it.
#[test]
fn an_event_with_an_extra_register_is_refused_while_its_processor_sleeps() {
    let machine = SimMachine::named("skylake-6600k", 2);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let offcore = offcore(0x1_0001);
    let cause = |engine: &mut _| client.start_with(engine, header(0, false, on(&[])), &[offcore]).header().cause;
    started(client, &mut engine, on(&[]), &[event(2, 0)]);
    assert_eq!(cause(&mut engine), 0, "its registers are accessed for the first time");
    client.stop(&mut engine, 2, None);
    machine.fall_asleep(&engine);
    assert_eq!(cause(&mut engine), ErrorCode::Asleep as u32, "asleep");
    let slept = machine.announce_wake(&engine);
    machine.wake_on(&engine, 0, slept);
    assert_eq!(cause(&mut engine), ErrorCode::Asleep as u32, "one processor is awake");
    machine.wake_on(&engine, 1, slept);
    assert_eq!(cause(&mut engine), 0, "awake");
}

/// The threads of a core share the registers of off-core responses. The one that falls asleep first must leave them to
/// the other, which would find them changed.
#[test]
fn no_count_is_marked_when_one_thread_of_a_core_falls_asleep_before_the_other() {
    let machine = SimMachine::named("westmere-980x", 2);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let offcore = offcore(0x1001);
    let session = started(client, &mut engine, on(&[]), &[offcore]);
    machine.announce_sleep(&engine);
    machine.fall_asleep_on(&engine, 0);
    run(&machine, &engine, 1, 1_000);
    machine.fall_asleep_on(&engine, 1);
    machine.wake(&engine);
    run(&machine, &engine, 1, 100);
    let counts = client.read(&mut engine, session);
    let told: Vec<_> = counts.iter().map(|count| (count.count, count.disturbed_register)).collect();
    assert_eq!(told, [(0, 0), (1_100, 0)]);
}

#[test]
fn one_of_two_sessions_that_share_a_counter_stops_while_the_machine_sleeps() {
    for name in IDENTITIES {
        let machine = SimMachine::named(name, 1);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let [first, second] = [(); 2].map(|()| started(client, &mut engine, on(&[]), &[event(2, SHORT)]));
        run(&machine, &engine, 0, SHORT.into());
        machine.fall_asleep(&engine);
        client.stop(&mut engine, first, None);
        machine.wake(&engine);
        run(&machine, &engine, 0, SHORT.into());
        assert_eq!(records(client, &mut engine, second, RecordKind::Sample).len(), 2, "{name}");
    }
}

/// A step of the sequence. Numbers are taken modulo the number of choices.
#[derive(Debug, Clone)]
enum Step {
    Sleep,
    Wake,
    /// Starts a counted, sampled, precise or branch event.
    Start {
        what: u8,
        processors: u32,
    },
    StopOne {
        session: usize,
        source: u64,
    },
    Stop {
        session: usize,
    },
    Read {
        session: usize,
    },
    Fetch {
        session: usize,
    },
    Kill,
    Areas {
        operation: u32,
    },
    Follow,
    Tick {
        processor: u32,
    },
    /// Delivers interrupts that were raised before the sleep, or without a cause.
    Interrupt {
        processor: u32,
        times: u32,
    },
    Run {
        processor: u32,
        events: u64,
    },
    Add,
    /// Makes the next clock readings far apart, so that the budget is soon exhausted.
    Slow {
        units: u64,
    },
}

const PROCESSORS: u32 = 3;

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => Just(Step::Sleep),
        2 => Just(Step::Wake),
        6 => (any::<u8>(), 0..1_u32 << PROCESSORS).prop_map(|(what, processors)| Step::Start { what, processors }),
        2 => (any::<usize>(), prop::sample::select(vec![2, 6, 0x1A, BRANCHES]))
            .prop_map(|(session, source)| Step::StopOne { session, source }),
        2 => any::<usize>().prop_map(|session| Step::Stop { session }),
        2 => any::<usize>().prop_map(|session| Step::Read { session }),
        1 => any::<usize>().prop_map(|session| Step::Fetch { session }),
        1 => Just(Step::Kill),
        2 => (0..3_u32).prop_map(|operation| Step::Areas { operation }),
        1 => Just(Step::Follow),
        2 => (0..PROCESSORS).prop_map(|processor| Step::Tick { processor }),
        2 => (0..PROCESSORS, prop::sample::select(vec![1, 1, 100]))
            .prop_map(|(processor, times)| Step::Interrupt { processor, times }),
        4 => (0..PROCESSORS, 0..20_000_u64).prop_map(|(processor, events)| Step::Run { processor, events }),
        1 => Just(Step::Add),
        1 => (0..40_000_u64).prop_map(|units| Step::Slow { units }),
    ]
}

/// Starts an event of one of several kinds. Some share counters, and some do not fit.
fn start(client: Client, engine: &mut Engine<&SimMachine>, what: u8, processors: u32) -> Option<u64> {
    let list: Vec<u32> = (0..PROCESSORS).filter(|number| processors >> number & 1 == 1).collect();
    let (events, batch): (&[EventRequest], u32) = match what % 8 {
        0 => (&[event(2, 0), event(0, 0)], 0),
        1 => (&[event(6, 0)], 0),
        2 => (&[event(2, SHORT)], 0),
        3 => (&[event(6, 5_000), event(2, SHORT)], 0),
        4 => (&[PRECISE], 3),
        5 => (&[TRACE], 0),
        6 => (&[TRACE, PRECISE, event(6, 0)], 1),
        _ => (&[EventRequest { frequency: 1_000, ..event(2, SHORT) }], 0),
    };
    let samples = events.iter().any(|event| event.interval > 0);
    let header = StartHeader { batch, ..header(0, samples, on(&list)) };
    let answer = client.start_with(engine, header, events).header();
    (answer.status == 0).then_some(answer.detail[0])
}

/// Returns the accesses to the registers and the LVT entry of every processor.
fn accesses(machine: &SimMachine) -> Vec<(model::Accesses, (u64, u64))> {
    machine.all().map(|cpu| (cpu.model().accesses(), cpu.local_accesses())).collect()
}

proptest! {
    #[test]
    fn no_register_is_touched_between_falling_asleep_and_waking(
        name in prop::sample::select([&IDENTITIES[..], &["zen4-7700x", "netburst-cedarmill", "skylake-6600k"]].concat()),
        steps in prop::collection::vec(step(), 1..100),
    ) {
        let machine = SimMachine::named(name, PROCESSORS).with_active(2);
        let mut engine = engine(&machine);
        let mut client = Client::open(&mut engine, 1, 1);
        let mut handles = 1;
        let mut sessions: Vec<u64> = Vec::new();
        for step in steps {
            let before = accesses(&machine);
            let was_asleep = machine.is_asleep();
            let active = engine::Platform::processors(&&machine);
            let chosen = |index: usize| index.checked_rem(sessions.len()).and_then(|index| sessions.get(index).copied());
            match step.clone() {
                Step::Sleep => machine.fall_asleep(&engine),
                Step::Wake => machine.wake(&engine),
                Step::Start { what, processors } => sessions.extend(start(client, &mut engine, what, processors)),
                Step::StopOne { session, source } => {
                    if let Some(session) = chosen(session) {
                        client.stop(&mut engine, session, Some(source));
                    }
                }
                Step::Stop { session } => {
                    if let Some(session) = chosen(session) {
                        client.stop(&mut engine, session, None);
                    }
                }
                Step::Read { session } => {
                    if let Some(session) = chosen(session) {
                        client.read(&mut engine, session);
                    }
                }
                Step::Fetch { session } => {
                    if let Some(session) = chosen(session) {
                        client.samples(&mut engine, session, None, 100);
                    }
                }
                Step::Kill => {
                    engine.close(client.0);
                    handles += 1;
                    client = Client::open(&mut engine, handles, 1);
                    sessions.clear();
                }
                Step::Areas { operation } => drop(ask_areas(client, &mut engine, operation)),
                Step::Follow => engine.accumulate_counts(),
                Step::Tick { processor } if machine.ticking().contains(&processor) => machine.tick_sampling(&engine, processor),
                Step::Interrupt { processor, times } if processor < active => {
                    (0..times).for_each(|_| machine.interrupt(&engine, processor, &NOWHERE));
                }
                Step::Run { processor, events } => run(&machine, &engine, processor, events),
                Step::Add if active < PROCESSORS => machine.add_processor(&mut engine),
                Step::Slow { units } => machine.set_pace(units),
                Step::Tick { .. } | Step::Interrupt { .. } | Step::Add => {}
            }
            if was_asleep && machine.is_asleep() {
                prop_assert_eq!(accesses(&machine), before, "{}: {:?}", name, step);
            }
        }
        machine.wake(&engine);
        engine.shut_down();
        prop_assert!(!machine.is_in_use(), "{}", name);
        prop_assert!(machine.all().all(|cpu| cpu.model().enabled_counters().is_empty()), "{}", name);
        prop_assert!(machine.all().all(|cpu| cpu.model().accesses().faulted == 0), "{}", name);
    }
}
