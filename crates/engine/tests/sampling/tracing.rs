//! Events for Event Tracing for Windows, and the cookies by which samples and events belong together.

use model::InterruptMode;
use pmu::source::RawEvent;
use proptest::prelude::*;
use protocol::trace::{Loss, Sample, SessionStart, cookie};
use protocol::{CounterSample, Event, EventRequest, Record, modes};
use simulation::{Client, SimMachine, WrittenEvent};

use super::scene::{
    IDENTITIES, SHORT, SOURCES, engine, event, fetched, interrupted, machine, on, run, started, stopped,
};

const NAME: &str = "skylake-6600k";

fn samples(events: Vec<WrittenEvent>) -> Vec<Sample> {
    let sample = |event| match event {
        WrittenEvent::Sample(sample) => Some(sample),
        _ => None,
    };
    events.into_iter().filter_map(sample).collect()
}

fn counter_samples(records: &[Record]) -> Vec<CounterSample> {
    let sample = |record: &Record| match record {
        Record::Sample(sample) => Some(*sample),
        _ => None,
    };
    records.iter().filter_map(sample).collect()
}

#[test]
fn without_a_trace_session_samples_have_no_cookie_and_no_event() {
    let machine = machine(NAME, 1, InterruptMode::Edge);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let session = started(client, &mut engine, 64, on(&[]), &[event(2, SHORT)]);
    let _ = machine.take_events();
    (0..10).for_each(|_| run(&machine, &engine, 0, SHORT.into()));
    let (records, _) = fetched(client, &mut engine, session);
    let samples = counter_samples(&records);
    assert_eq!((samples.len(), samples.iter().any(|sample| sample.cookie != 0)), (10, false));
    assert_eq!(machine.take_events(), []);
}

#[test]
fn each_counter_of_an_interrupt_has_an_event_with_the_cookie_of_its_samples() {
    for name in IDENTITIES {
        let machine = machine(name, 2, InterruptMode::Edge);
        let mut engine = engine(&machine);
        engine.sampler().set_wants_events(true);
        let client = Client::open(&mut engine, 1, 10);
        let events = &SOURCES[..if name == "p6-coppermine" { 2 } else { 3 }];
        let requests: Vec<_> = events.iter().map(|source| event(*source, SHORT)).collect();
        let session = started(client, &mut engine, 64, on(&[1]), &requests);
        let _ = machine.take_events();
        for number in 1..=5 {
            run(&machine, &engine, 1, SHORT.into());
            let written = samples(machine.take_events());
            let (records, _) = fetched(client, &mut engine, session);
            let taken = counter_samples(&records);
            assert_eq!((taken.len(), written.len()), (events.len(), events.len()), "{name}");
            for sample in taken {
                assert!(sample.cookie >= number, "{name}: {sample:?}");
                let expected = Sample {
                    time: sample.time,
                    ip: interrupted(1).ip,
                    weight: SHORT.into(),
                    cookie: cookie(1, sample.cookie),
                    first: cookie(1, sample.cookie),
                    count: 1,
                    source: events[sample.event as usize],
                    extra: 0,
                    cpu: 1,
                    mode: 0,
                };
                assert_eq!(written.iter().filter(|one| **one == expected).count(), 1, "{name}: {written:?}");
            }
        }
    }
}

#[test]
fn interrupts_before_the_dpc_runs_are_merged_into_the_event_of_the_last() {
    let machine = machine(NAME, 1, InterruptMode::Edge);
    let mut engine = engine(&machine);
    engine.sampler().set_wants_events(true);
    let client = Client::open(&mut engine, 1, 10);
    let session = started(client, &mut engine, 64, on(&[]), &[event(2, SHORT)]);
    let _ = machine.take_events();
    machine.hold_dpcs(true);
    (0..4).for_each(|_| run(&machine, &engine, 0, SHORT.into()));
    assert_eq!(machine.take_events(), []);
    machine.write_events(&engine, 0);
    let written = samples(machine.take_events());
    let (records, _) = fetched(client, &mut engine, session);
    let cookies: Vec<u32> = counter_samples(&records).iter().map(|sample| sample.cookie).collect();
    assert_eq!(cookies, [1, 2, 3, 4]);
    let [sample] = written[..] else { panic!("{written:?}") };
    assert_eq!((sample.first, sample.cookie, sample.count), (cookie(0, 1), cookie(0, 4), 4));
    assert_eq!(sample.weight, 4 * u64::from(SHORT));
}

#[test]
fn sessions_that_share_a_counter_share_its_events() {
    let machine = machine(NAME, 1, InterruptMode::Edge);
    let mut engine = engine(&machine);
    engine.sampler().set_wants_events(true);
    let clients = [1, 2].map(|number| Client::open(&mut engine, number, 10));
    let sessions = clients.map(|client| started(client, &mut engine, 64, on(&[]), &[event(2, SHORT)]));
    let _ = machine.take_events();
    run(&machine, &engine, 0, SHORT.into());
    assert_eq!(samples(machine.take_events()).len(), 1);
    for (client, session) in clients.into_iter().zip(sessions) {
        let (records, _) = fetched(client, &mut engine, session);
        assert_eq!(counter_samples(&records).iter().map(|sample| sample.cookie).collect::<Vec<_>>(), [1]);
    }
}

#[test]
fn samples_by_time_have_events() {
    let machine = machine(NAME, 1, InterruptMode::Edge);
    let mut engine = engine(&machine);
    engine.sampler().set_wants_events(true);
    let client = Client::open(&mut engine, 1, 10);
    let session = started(client, &mut engine, 64, on(&[]), &[event(0, 10_000)]);
    let _ = machine.take_events();
    for _ in 0..3 {
        machine.pass(10_000);
        machine.expire(&engine, 0, &interrupted(0));
    }
    let written = samples(machine.take_events());
    let (records, _) = fetched(client, &mut engine, session);
    let of_samples: Vec<_> = counter_samples(&records).iter().map(|one| (cookie(0, one.cookie), one.time)).collect();
    assert_eq!(of_samples.len(), 3);
    assert_eq!(written.iter().map(|one| (one.cookie, one.time)).collect::<Vec<_>>(), of_samples);
}

#[test]
fn a_session_that_runs_already_gets_events_from_the_next_tick_on() {
    let machine = machine(NAME, 1, InterruptMode::Edge);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    started(client, &mut engine, 64, on(&[]), &[event(2, SHORT)]);
    let _ = machine.take_events();
    let written = |traced| {
        engine.sampler().set_wants_events(traced);
        machine.tick_sampling(&engine, 0);
        run(&machine, &engine, 0, SHORT.into());
        samples(machine.take_events()).iter().map(|sample| sample.cookie).collect::<Vec<_>>()
    };
    assert_eq!(written(true), [1]);
    assert!(written(false).is_empty());
    assert_eq!(written(true), [2], "a cookie is not used again");
}

#[test]
fn sessions_tell_their_start_and_their_end_with_the_names_of_their_events() {
    let machine = machine(NAME, 1, InterruptMode::Edge);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let raw =
        EventRequest { modes: modes::USER, ..event(RawEvent::new().with_event(0xA5).with_umask(4).source().0, SHORT) };
    let session = started(client, &mut engine, 64, on(&[]), &[event(2, SHORT), raw]);
    run(&machine, &engine, 0, SHORT.into());
    stopped(client, &mut engine, session, None);
    let told = machine.take_events();
    let WrittenEvent::SessionStart(start, name) = &told[0] else { panic!("{told:?}") };
    let expected = SessionStart { session, event: Event::of(2), interval: SHORT, modes: modes::USER };
    assert_eq!((start, name.as_str()), (&expected, "TotalIssues"));
    let WrittenEvent::SessionStart(start, name) = &told[1] else { panic!("{told:?}") };
    assert_eq!((start.modes, name.as_str()), (modes::USER, "cpu/event=0xa5,umask=0x4/"));
    let WrittenEvent::SessionStop(stop) = &told[2] else { panic!("{told:?}") };
    assert_eq!((stop.session, stop.event.source, stop.samples, stop.lost, stop.throttled), (session, 2, 1, 0, 0));
    assert!(matches!(told[3], WrittenEvent::SessionStop(_)));
    assert_eq!(told.len(), 4);
}

/// A step of a machine whose events are traced or not.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// All events occur this often on a processor.
    Run(u32, u32),
    Tick(u32),
    HoldDpcs(bool),
    Trace(bool),
    /// Interrupts have used up their time.
    Busy,
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..2_u32, 1..3 * SHORT).prop_map(|(processor, count)| Step::Run(processor, count)),
        2 => (0..2_u32).prop_map(Step::Tick),
        2 => any::<bool>().prop_map(Step::HoldDpcs),
        1 => any::<bool>().prop_map(Step::Trace),
        1 => Just(Step::Busy),
    ]
}

fn take(step: Step, machine: &SimMachine, engine: &engine::Engine<&SimMachine>) {
    machine.pass(100_000);
    match step {
        Step::Run(processor, count) => run(machine, engine, processor, count.into()),
        Step::Tick(processor) => machine.tick_sampling(engine, processor),
        Step::HoldDpcs(hold) => {
            machine.hold_dpcs(hold);
            (0..2).filter(|_| !hold).for_each(|processor| machine.write_events(engine, processor));
        }
        Step::Trace(traced) => engine.sampler().set_wants_events(traced),
        Step::Busy => {
            machine.set_pace(1_000_000);
            run(machine, engine, 0, SHORT.into());
            machine.set_pace(0);
        }
    }
}

proptest! {
    #[test]
    fn each_sample_with_a_cookie_is_in_exactly_one_event_unless_its_event_was_dropped(
        name in prop::sample::select(&IDENTITIES[..]),
        steps in prop::collection::vec(any_step(), 1..60),
    ) {
        let machine = machine(name, 2, InterruptMode::Edge);
        let mut engine = engine(&machine);
        engine.sampler().set_wants_events(true);
        let client = Client::open(&mut engine, 1, 10);
        let session = started(client, &mut engine, 1024, on(&[]), &[event(2, SHORT), event(6, SHORT + 1_000)]);
        for step in &steps {
            take(*step, &machine, &engine);
        }
        take(Step::HoldDpcs(false), &machine, &engine);
        let is_always_traced = !steps.iter().any(|step| matches!(step, Step::Trace(false)));
        let written = machine.take_events();
        let throttled = |source| {
            let of = |event: &WrittenEvent| match event {
                WrittenEvent::Throttled(Loss { count, source: of, .. }) if *of == source => Some(u64::from(*count)),
                _ => None,
            };
            written.iter().filter_map(of).sum::<u64>()
        };
        let (records, _) = fetched(client, &mut engine, session);
        let taken = counter_samples(&records);
        let events = samples(written.clone());
        for sample in &taken {
            let number = cookie(sample.processor, sample.cookie);
            let is_covering = |event: &&Sample| event.source == [2, 6][sample.event as usize] && (event.first..=event.cookie).contains(&number);
            let covering = events.iter().filter(is_covering).count();
            if sample.cookie == 0 {
                prop_assert_eq!(covering, 0);
            } else if is_always_traced {
                prop_assert_eq!(covering, 1, "{:?} {:?}", sample, &events);
            } else {
                prop_assert!(covering <= 1);
            }
        }
        let merged: u64 = events.iter().map(|event| event.count).sum();
        let with_cookie = taken.iter().filter(|sample| sample.cookie != 0).count() as u64;
        prop_assert!(merged <= with_cookie);
        prop_assert!(!is_always_traced || merged == with_cookie);
        let counts = stopped(client, &mut engine, session, None);
        for source in [2, 6].into_iter().filter(|_| is_always_traced) {
            let counted: u64 = counts.iter().filter(|count| count.event.source == source).map(|count| count.throttled).sum();
            prop_assert!(throttled(source) <= counted, "{} of {}", throttled(source), counted);
        }
    }
}
