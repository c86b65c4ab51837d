//! Sampling by time: from the expiry of a timer to the record, with timers as unkind as those of Windows.

use engine::{Interrupted, Platform};
use model::TimerMode;
use protocol::{CountRecord, EventRequest, Mode, Record, RecordKind, StartHeader};
use simulation::{Client, SimMachine};

use super::scene::{
    SHORT, engine, event, fetched, header, info, interrupted, is_left_clean, is_sample, machines, on, run, started,
    stopped,
};

/// Units of 100 ns in a millisecond.
const MILLISECOND: u64 = 10_000;

const SECOND: u64 = 1_000 * MILLISECOND;

/// ProfileTime.
const TIME: u64 = 0;

/// Machines whose counters are masked or missing, and one with counters.
const MACHINES: [&str; 4] = ["amd-hyperv-masked", "intel-no-leaf-a", "kvm-qemu-amd", "skylake-6600k"];

const fn every_millisecond() -> EventRequest {
    event(TIME, 10_000)
}

/// Returns count, samples, lost, throttled.
fn account(record: &CountRecord) -> [u64; 4] {
    [record.count, record.samples, record.lost, record.throttled]
}

/// Lets time pass until `time` after `begin`.
fn pass_to(machine: &SimMachine, begin: u64, time: u64) {
    machine.pass((begin + time).saturating_sub((&machine).now().0));
}

fn touches_no_register(machine: &SimMachine) -> bool {
    let accesses = machine.all().map(|cpu| cpu.model().accesses());
    accesses.map(|accesses| accesses.rdmsr + accesses.wrmsr + accesses.rdpmc).sum::<u64>() == 0
}

#[test]
fn an_expiry_is_a_sample_of_what_ran_on_its_processor_and_needs_no_counter() {
    for name in MACHINES {
        let machine = SimMachine::named(name, 2);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let session = started(client, &mut engine, 64, on(&[]), &[every_millisecond()]);
        assert_eq!((machine.timer(), machine.is_sampling(), machine.is_reserved()), (Some(10_000), false, false));
        machine.pass(MILLISECOND);
        machine.expire(&engine, 1, &interrupted(1));
        let kernel = Interrupted { ip: 0xFFFF_F800_0000_0000, process: 0, thread: 0, mode: Mode::Kernel };
        machine.pass(MILLISECOND);
        machine.expire(&engine, 1, &kernel);
        let (records, _) = fetched(client, &mut engine, session);
        let samples: Vec<_> = records
            .iter()
            .map(|record| {
                let Record::Sample(sample) = record else { panic!("{name}: {record:?}") };
                assert_eq!((sample.event, sample.interval, sample.processor), (0, 10_000, 1), "{name}");
                (sample.ip, sample.process, sample.thread, sample.mode)
            })
            .collect();
        let Interrupted { ip, process, thread, mode } = interrupted(1);
        assert_eq!(samples, [(ip, process, thread, mode), (kernel.ip, 0, 0, Mode::Kernel)], "{name}");
        let counts = stopped(client, &mut engine, session, None);
        assert_eq!([0, 1].map(|processor| account(&counts[processor])), [[2, 0, 0, 0], [2, 2, 0, 0]], "{name}");
        assert_eq!(machine.timer(), None, "{name}");
        assert!(is_left_clean(&machine) && touches_no_register(&machine), "{name}");
    }
}

#[test]
fn intervals_are_samples_lost_throttled_or_missed_however_the_timer_expires() {
    const SECONDS: u64 = 20;
    for mode in TimerMode::ALL {
        let machine = SimMachine::named("amd-hyperv-masked", 1);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let session = started(client, &mut engine, 1 << 15, on(&[]), &[every_millisecond()]);
        let begin = (&machine).now().0;
        let expirations = mode.expirations(MILLISECOND, mode.resolution(Some(MILLISECOND)));
        let mut expiries = 0;
        for time in expirations.take_while(|time| *time <= SECONDS * SECOND) {
            pass_to(&machine, begin, time);
            machine.expire(&engine, 0, &interrupted(0));
            expiries += 1;
        }
        pass_to(&machine, begin, SECONDS * SECOND);
        let [count, samples, lost, throttled] = account(&stopped(client, &mut engine, session, None)[0]);
        assert_eq!((count, lost, throttled), (SECONDS * 1_000, 0, 0), "{mode:?}");
        assert_eq!(samples, expiries, "{mode:?}: no expiry is dropped");
        let missed = count - samples;
        match mode {
            TimerMode::Exact | TimerMode::Clock => assert_eq!(missed, 0, "{mode:?}"),
            TimerMode::Coarse => assert_eq!(missed, SECONDS * (1_000 - 64), "{mode:?}"),
            TimerMode::Late | TimerMode::Merged => assert!(missed > SECONDS * 100, "{mode:?}: {missed}"),
        }
    }
}

#[test]
fn sessions_with_different_intervals_share_the_timer_and_the_longest_lived_keeps_its_own() {
    let machine = SimMachine::named("intel-no-leaf-a", 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let slow = started(client, &mut engine, 1 << 12, on(&[]), &[event(TIME, 30_000)]);
    assert_eq!(machine.timer(), Some(30_000));
    let fast = started(client, &mut engine, 1 << 12, on(&[]), &[event(TIME, 15_000)]);
    assert_eq!(machine.timer(), Some(20_000), "in whole milliseconds");
    for _ in 0..300 {
        machine.pass(2 * MILLISECOND);
        machine.expire(&engine, 0, &interrupted(0));
    }
    assert_eq!(account(&stopped(client, &mut engine, fast, None)[0]), [300, 300, 0, 0]);
    assert_eq!(machine.timer(), Some(30_000), "for the session that is left");
    let [count, samples, lost, throttled] = account(&stopped(client, &mut engine, slow, None)[0]);
    assert_eq!((samples, lost, throttled), (count, 0, 0));
    assert!((200..=201).contains(&count), "{count}: one can be ahead of time");
    assert_eq!(machine.timer(), None);
}

#[test]
fn a_full_ring_loses_samples_and_reports_them() {
    let machine = SimMachine::named("amd-hyperv-masked", 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let session = started(client, &mut engine, 64, on(&[]), &[every_millisecond()]);
    for _ in 0..100 {
        machine.pass(MILLISECOND);
        machine.expire(&engine, 0, &interrupted(0));
    }
    assert_eq!(account(&client.read(&mut engine, session)[0]), [100, 64, 36, 0]);
    let (records, _) = fetched(client, &mut engine, session);
    let lost = records.iter().filter_map(|record| match record {
        Record::Lost(lost) => Some((lost.event, lost.count)),
        _ => None,
    });
    assert_eq!(lost.collect::<Vec<_>>(), [(0, 36)]);
}

#[test]
fn over_its_budget_a_processor_takes_no_samples_by_time_and_resumes_without_a_counter() {
    let machine = SimMachine::named("amd-hyperv-masked", 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let asked = StartHeader { budget: 250, ..header(64, on(&[])) };
    let session = client.start_with(&mut engine, asked, &[every_millisecond()]).header().detail[0];
    // The fourth sample exceeds a quarter of 10 ms.
    let expire = |cost| {
        machine.set_pace(cost);
        machine.expire(&engine, 0, &interrupted(0));
        machine.set_pace(0);
    };
    machine.pass(MILLISECOND);
    for _ in 0..4 {
        expire(700 * MILLISECOND / 1_000); // begins and ends with a reading of the clock
    }
    for _ in 0..3 {
        machine.pass(MILLISECOND);
        expire(0);
    }
    machine.pass(5 * MILLISECOND);
    expire(0);
    let (records, _) = fetched(client, &mut engine, session);
    let kinds: Vec<RecordKind> = records.iter().map(Record::kind).collect();
    let sample = RecordKind::Sample;
    assert_eq!(kinds, [sample, sample, sample, sample, RecordKind::Throttled, RecordKind::Resumed, sample]);
    let [count, samples, lost, throttled] = account(&stopped(client, &mut engine, session, None)[0]);
    assert_eq!((samples, lost, throttled), (5, 0, 3));
    assert!(count >= samples + throttled);
    assert!(touches_no_register(&machine));
}

#[test]
fn the_time_asleep_does_not_count() {
    let machine = SimMachine::named("amd-hyperv-masked", 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let session = started(client, &mut engine, 64, on(&[]), &[every_millisecond()]);
    machine.fall_asleep(&engine);
    machine.pass(60 * SECOND);
    machine.wake(&engine);
    for _ in 0..5 {
        machine.pass(MILLISECOND);
        machine.expire(&engine, 0, &interrupted(0));
    }
    assert_eq!(account(&stopped(client, &mut engine, session, None)[0]), [5, 5, 0, 0]);
}

#[test]
fn counters_and_time_are_sampled_together_and_stopped_one_by_one() {
    for (name, machine) in machines(1) {
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let session = started(client, &mut engine, 64, on(&[]), &[every_millisecond(), event(2, SHORT)]);
        let both = || {
            machine.pass(MILLISECOND);
            machine.expire(&engine, 0, &interrupted(0));
            run(&machine, &engine, 0, SHORT.into());
        };
        both();
        both();
        let of_time = stopped(client, &mut engine, session, Some(TIME));
        assert_eq!(account(&of_time[0]), [2, 2, 0, 0], "{name}");
        assert_eq!((machine.timer(), machine.is_sampling()), (None, true), "{name}");
        run(&machine, &engine, 0, SHORT.into());
        let rest = stopped(client, &mut engine, session, None);
        assert_eq!((rest.len(), rest[0].samples), (1, 3), "{name}");
        assert!(is_left_clean(&machine), "{name}");

        let session = started(client, &mut engine, 64, on(&[]), &[every_millisecond(), event(2, SHORT)]);
        stopped(client, &mut engine, session, Some(2));
        assert_eq!((machine.timer(), machine.is_sampling()), (Some(10_000), false), "{name}");
        machine.pass(MILLISECOND);
        machine.expire(&engine, 0, &interrupted(0));
        assert!(fetched(client, &mut engine, session).0.iter().any(is_sample), "{name}");
        engine.close(client.0);
        assert!(machine.timer().is_none() && is_left_clean(&machine), "{name}");
    }
}

#[test]
fn a_throttled_counter_stops_samples_by_time_as_well() {
    for (name, machine) in machines(1) {
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let session = started(client, &mut engine, 64, on(&[]), &[every_millisecond(), event(2, SHORT)]);
        machine.set_pace(100 * MILLISECOND);
        run(&machine, &engine, 0, SHORT.into());
        machine.set_pace(0);
        assert_eq!(info(client, &mut engine).throttles, 1, "{name}");
        machine.tick_sampling(&engine, 0);
        machine.pass(MILLISECOND);
        machine.expire(&engine, 0, &interrupted(0));
        let counts = stopped(client, &mut engine, session, None);
        let time = counts.iter().find(|count| count.event.source == TIME).unwrap();
        assert_eq!((time.samples, time.throttled), (1, 0), "{name}: it goes on after the tick");
    }
}
