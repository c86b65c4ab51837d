//! Samples of windows in which two counts had a certain ratio.

use engine::Engine;
use model::{InterruptMode, Mode};
use pmu::source::RawEvent;
use protocol::{CountRecord, ErrorCode, Event, EventRequest, Record, StartHeader, event_flags, flags, modes};
use simulation::{Client, SimMachine};

use super::scene::{
    self, IDENTITIES, SHORT, addresses, boards, engine, event, fetched, header, interrupted, is_left_clean, is_sample,
    machine, machines, on, overflows, run, started, stopped,
};

/// The event of each window, and the one that is compared with it.
const WINDOW: u64 = 6;
const OTHER: u64 = 2;

/// A hundredth of a window.
const STEP: u64 = SHORT as u64 / 100;

/// An event of which there are samples if OTHER / WINDOW is below or above `limit`, half of the first per second.
const fn conditional(flag: u32, limit: [u32; 2]) -> EventRequest {
    EventRequest { flags: flag, ratio: [1, 0], limit, ..event(WINDOW, SHORT) }
}

/// Below a half.
const BELOW: EventRequest = conditional(event_flags::BELOW, [1, 2]);

/// Above two.
const ABOVE: EventRequest = conditional(event_flags::ABOVE, [2, 1]);

/// Lets `windows` hundredths of a window pass, in which OTHER occurs `percent` / 100 times as often as all else, and
/// delivers the interrupts at `ip`.
fn pass(machine: &SimMachine, engine: &Engine<&SimMachine>, steps: u64, percent: u64, ip: u64) {
    scene::pass(machine, engine, 0, (steps, STEP), (OTHER, percent), ip);
}

/// Lets a window pass.
fn window(machine: &SimMachine, engine: &Engine<&SimMachine>, percent: u64) {
    pass(machine, engine, 100, percent, percent);
}

fn windows(machine: &SimMachine, engine: &Engine<&SimMachine>, percents: &[u64]) {
    for percent in percents {
        window(machine, engine, *percent);
    }
}

/// Returns samples and unmet windows of the first event, and checks that they are all but the lost ones.
fn accounted(machine: &SimMachine, counts: &[CountRecord]) -> [u64; 2] {
    let CountRecord { samples, unmet, lost, throttled, count, .. } = counts[0];
    assert_eq!(samples + unmet + lost + throttled, overflows(machine, 0, WINDOW), "{:?}", counts[0]);
    assert_eq!(count, machine.counted(0, counts[0].counter), "{:?}", counts[0]);
    [samples, unmet]
}

#[test]
fn more_than_99_percent_of_the_samples_are_of_the_phases_that_meet_the_condition_and_these_have_all_but_their_ends() {
    const GOOD: u64 = 150;
    const BAD: u64 = 30;
    for (name, machine) in machines(1) {
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let session = started(client, &mut engine, 1 << 12, on(&[]), &[BELOW, event(OTHER, 0)]);
        let (mut bad_windows, mut seed) = (0, 17_u64);
        for phase in 0..24 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // From one tenth to 30 windows; at some place between two overflows.
            let (percent, steps) = (if phase % 2 == 0 { GOOD } else { BAD }, 10 + (seed >> 33) % 3_000);
            pass(&machine, &engine, steps, percent, percent);
            bad_windows += if percent == BAD { steps / 100 } else { 0 };
        }
        let found = addresses(client, &mut engine, session);
        let bad = found.iter().filter(|ip| **ip == BAD).count();
        assert!(bad * 100 > found.len() * 99, "{name}: {bad} of {}", found.len());
        assert!(bad as u64 * 10 > bad_windows * 9, "{name}: {bad} of {bad_windows}");
        let [samples, unmet] = accounted(&machine, &stopped(client, &mut engine, session, None));
        assert_eq!(samples, found.len() as u64, "{name}");
        assert!(unmet > samples / 2, "{name}: {unmet} of the good phases");
        assert!(is_left_clean(&machine), "{name}");
    }
}

#[test]
fn each_event_of_a_session_has_its_own_condition_or_none_and_the_ratio_can_be_of_other_events() {
    for machine in boards("haswell-4710mq", 1) {
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        // OTHER by a count of WINDOW that is not sampled, in windows of a third event.
        let third = EventRequest { ratio: [1, 4], ..conditional(event_flags::ABOVE, [1, 1]) };
        let third = EventRequest { event: Event::of(11), ..third };
        let events = [BELOW, event(OTHER, 0), event(OTHER, SHORT), third, event(WINDOW, 0)];
        let session = started(client, &mut engine, 64, on(&[]), &events);
        windows(&machine, &engine, &[40, 50, 60, 300]);
        let counts = stopped(client, &mut engine, session, None);
        let numbers: Vec<_> = counts.iter().map(|one| [one.samples, one.unmet]).collect();
        // The third counts 4.5 windows, of which 0.4 + 0.5 + 0.6 + 3 are not whole.
        assert_eq!(numbers, [[1, 3], [0, 0], [4, 0], [1, 3], [0, 0]]);
    }
}

#[test]
fn a_session_without_the_condition_shares_the_counter_and_gets_every_sample() {
    for (name, machine) in machines(1) {
        let mut engine = engine(&machine);
        let [plain, choosy] = [1, 2].map(|handle| Client::open(&mut engine, handle, 10));
        let all = started(plain, &mut engine, 64, on(&[]), &[event(WINDOW, SHORT)]);
        window(&machine, &engine, 10); // before the other session, which it must not be told
        let chosen = started(choosy, &mut engine, 64, on(&[]), &[BELOW, event(OTHER, 0)]);
        assert_eq!(machine.processor(0).model().enabled_counters().len(), 2, "{name}");
        windows(&machine, &engine, &[80, 40, 90, 45]);
        assert_eq!(addresses(plain, &mut engine, all), [10, 80, 40, 90, 45], "{name}");
        assert_eq!(addresses(choosy, &mut engine, chosen), [40, 45], "{name}");
        stopped(choosy, &mut engine, chosen, None);
        windows(&machine, &engine, &[80, 40]);
        assert_eq!(addresses(plain, &mut engine, all), [80, 40], "{name}");
        let counts = stopped(plain, &mut engine, all, None);
        assert_eq!((counts[0].samples, counts[0].unmet), (7, 0), "{name}");
    }
}

/// What the other counter counts meanwhile is of no window.
#[test]
fn after_a_pause_a_sleep_or_a_lost_interrupt_a_window_begins_anew() {
    for (name, machine) in machines(1) {
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let asked = StartHeader { budget: 250, ..header(64, on(&[])) };
        let events = [BELOW, event(OTHER, 0)];
        let session = client.start_with(&mut engine, asked, &events).header().detail[0];
        // Each interrupt takes a third of a tick.
        machine.set_pace(33_000);
        window(&machine, &engine, 40);
        machine.set_pace(0);
        assert_eq!(machine.processor(0).model().enabled_counters().len(), 1, "{name}: throttled");
        window(&machine, &engine, 900);
        machine.pass(50_000);
        machine.tick_sampling(&engine, 0);
        window(&machine, &engine, 41);

        machine.fall_asleep(&engine);
        machine.wake(&engine);
        window(&machine, &engine, 42);

        // Lost, with all that a burst had counted.
        machine.run(0, Mode::User, &|_| SHORT.into());
        machine.processor(0).model().take_interrupt();
        for _ in 0..2 {
            machine.tick_sampling(&engine, 0);
        }
        window(&machine, &engine, 43);
        assert_eq!(addresses(client, &mut engine, session), [40, 41, 42, 43], "{name}");
        let counts = stopped(client, &mut engine, session, None);
        assert_eq!((counts[0].samples, counts[0].unmet, counts[0].lost), (4, 0, 1), "{name}");
    }
}

#[test]
fn an_interval_that_is_adapted_changes_no_decision() {
    for (name, machine) in machines(1) {
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let adapted = EventRequest { frequency: 1_000, ..BELOW };
        let session = started(client, &mut engine, 1 << 12, on(&[]), &[adapted, event(OTHER, 0)]);
        for percent in [49, 51].repeat(20) {
            window(&machine, &engine, percent);
            machine.pass(20_000);
            machine.tick_sampling(&engine, 0);
        }
        let found = addresses(client, &mut engine, session);
        let [samples, unmet] = accounted(&machine, &stopped(client, &mut engine, session, None));
        assert!(samples > 3 && unmet > 3, "{name}: {samples}, {unmet}");
        assert_eq!(found.len() as u64, samples, "{name}");
    }
}

#[test]
fn an_interrupt_reads_two_counters_more_than_without_a_condition() {
    let all = IDENTITIES.into_iter().flat_map(|name| InterruptMode::ALL.map(|mode| (name, mode)));
    for (name, mode) in all {
        let cost = |window: EventRequest| {
            let machine = machine(name, 1, mode);
            let mut engine = engine(&machine);
            let client = Client::open(&mut engine, 1, 10);
            started(client, &mut engine, 64, on(&[]), &[window, event(OTHER, 0)]);
            machine.tick_sampling(&engine, 0);
            machine.run(0, Mode::User, &|_| SHORT.into());
            let before = machine.processor(0).model().accesses();
            assert_eq!(machine.deliver(&engine, 0, &interrupted(0)).0, 1);
            let after = machine.processor(0).model().accesses();
            [after.rdmsr - before.rdmsr, after.wrmsr - before.wrmsr, after.rdpmc - before.rdpmc]
        };
        let [rdmsr, wrmsr, rdpmc] = cost(event(WINDOW, SHORT));
        for with in [BELOW, ABOVE] {
            assert_eq!(cost(with), [rdmsr, wrmsr, rdpmc + 2], "{name}, {mode:?}");
        }
    }
}

/// The same on P cores alone.
fn of_core(event: EventRequest) -> EventRequest {
    EventRequest { event: Event { core_type: 0x40, ..event.event }, ..event }
}

/// Slots, which an interrupt cannot read.
fn slots() -> EventRequest {
    event(RawEvent::new().with_umask(0x04).source().0, 0)
}

#[test]
fn a_condition_that_cannot_be_decided_is_refused_and_writes_no_register() {
    let plain = header(64, on(&[]));
    let other = event(OTHER, 0);
    let of = |index| EventRequest { ratio: [1, index], ..BELOW };
    let (bad, flags) = (ErrorCode::BadCondition, ErrorCode::BadFlags);
    let cases: [(&str, StartHeader, Vec<EventRequest>, ErrorCode, u64); 13] = [
        ("below and above", plain, vec![EventRequest { flags: 12, ..BELOW }, other], flags, 12),
        ("a ratio without a condition", plain, vec![EventRequest { flags: 0, ..BELOW }, other], flags, 0),
        ("a limit alone", plain, vec![EventRequest { limit: [1, 1], ..event(WINDOW, SHORT) }, other], flags, 0),
        ("no second event", plain, vec![BELOW], bad, 0),
        (
            "of an event that is counted",
            StartHeader { budget: 0, ring: 0, ..plain },
            vec![EventRequest { interval: 0, ..BELOW }, other],
            bad,
            0,
        ),
        (
            "of samples by time",
            plain,
            vec![EventRequest { event: Event::of(0), modes: modes::BOTH, interval: 10_000, ..BELOW }, other],
            bad,
            0,
        ),
        (
            "of precise samples",
            plain,
            vec![EventRequest { modes: modes::PRECISE | modes::USER, ..BELOW }, other],
            bad,
            0,
        ),
        ("beside turns", StartHeader { flags: flags::MULTIPLEX, ..plain }, vec![BELOW, other], bad, 0),
        ("for a fifth event", plain, [vec![EventRequest { ratio: [5, 5], ..BELOW }; 5], vec![other]].concat(), bad, 2),
        ("with time", plain, vec![of(2), other, EventRequest { event: Event::of(0), ..other }], bad, 1),
        (
            "with precise samples",
            plain,
            vec![of(2), other, EventRequest { modes: modes::PRECISE | modes::USER, ..event(OTHER, SHORT) }],
            bad,
            1,
        ),
        ("with slots", plain, vec![of_core(of(2)), other, of_core(slots())], bad, 1),
        ("with an event of other processors", plain, vec![BELOW, of_core(other)], bad, 1),
    ];
    for (what, header, mut events, cause, detail) in cases {
        let machine = SimMachine::named("lunar-lake-288v", 2);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        if what == "with time" {
            events[2].modes = modes::BOTH;
        }
        let written = || machine.processor(0).model().accesses().wrmsr;
        let before = written();
        let answer = client.start_with(&mut engine, header, &events).header();
        assert_eq!((answer.cause, answer.detail[0]), (cause as u32, detail), "{what}");
        assert_eq!(written(), before, "{what}");
        assert!(is_left_clean(&machine), "{what}");
        started(client, &mut engine, 64, on(&[]), &[BELOW, other]);
    }
}

#[test]
fn an_event_of_a_ratio_is_not_stopped_without_the_one_whose_samples_it_decides_on() {
    for machine in boards("intel-v2", 1) {
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let session = started(client, &mut engine, 64, on(&[]), &[BELOW, event(OTHER, 0)]);
        let refused = client.stop(&mut engine, session, Some(OTHER)).header();
        assert_eq!((refused.cause, refused.source), (ErrorCode::BadCondition as u32, WINDOW));
        window(&machine, &engine, 40);
        assert_eq!(stopped(client, &mut engine, session, Some(WINDOW))[0].samples, 1);
        assert_eq!(stopped(client, &mut engine, session, Some(OTHER)).len(), 1);
        assert!(is_left_clean(&machine));
    }
}

/// Each window of a session on two processors is of its own.
#[test]
fn every_processor_has_windows_of_its_own() {
    for (name, machine) in machines(2) {
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let session = started(client, &mut engine, 64, on(&[]), &[ABOVE, event(OTHER, 0)]);
        window(&machine, &engine, 210);
        run(&machine, &engine, 1, SHORT.into());
        let (records, _) = fetched(client, &mut engine, session);
        let processors: Vec<u32> = records.iter().filter(|one| is_sample(one)).map(Record::processor).collect();
        assert_eq!(processors, [0], "{name}");
    }
}
