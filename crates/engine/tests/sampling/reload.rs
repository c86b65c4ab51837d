//! Conditions on which counters decide that reload each other.

use engine::Engine;
use model::{CounterId, InterruptMode, Mode};
use pmu::Recorder;
use proptest::prelude::*;
use protocol::{CountRecord, Event, EventRequest, StartHeader, event_flags};
use simulation::{Client, SimMachine};

use super::scene::{
    self, SHORT, addresses, boards, encoding, engine, event, header, interrupted, is_left_clean, machine, on,
    overflows, run, started, stopped,
};

/// Processors whose counters 2 to 7 and fixed counters 0 and 1 reload each other, by real dumps: with format 6 of the
/// Debug Store, and with architectural PEBS, which shares a register of each counter.
const NAMES: [&str; 4] = [
    "arrow-lake-s-265k-efficient",
    "lunar-lake-288v-efficient",
    "panther-lake-355-efficient",
    "clearwater-forest-derived",
];

/// The event of each window, and the one that is compared with it.
const WINDOW: u64 = 6;
const OTHER: u64 = 2;

/// Events in a window.
const INTERVAL: u32 = 20_000;

/// Steps in a window.
const STEPS: u64 = 100;
const STEP: u64 = INTERVAL as u64 / STEPS;

const GOOD: u64 = 150;
const BAD: u64 = 30;

const fn conditional(flag: u32, ratio: [u16; 2], limit: [u32; 2]) -> EventRequest {
    EventRequest { flags: flag, ratio, limit, ..event(WINDOW, INTERVAL) }
}

/// OTHER / WINDOW is below a half.
const BELOW: EventRequest = conditional(event_flags::BELOW, [1, 0], [1, 2]);

const fn beside(source: u64) -> EventRequest {
    EventRequest { flags: event_flags::BESIDE, ..event(source, 0) }
}

/// The registers of every counter that say what loads it, and with what.
fn registers(machine: &SimMachine, processor: u32) -> Vec<(u32, u64)> {
    let of = |first: u32, counters: std::ops::Range<u32>| {
        counters.flat_map(move |counter| [first + 4 * counter, first + 4 * counter + 1])
    };
    let read = |msr| Some((msr, machine.processor(processor).model().uncounted(|model| model.rdmsr(msr).ok())?));
    of(0x1902, 0..10).chain(of(0x1982, 0..3)).filter_map(read).collect()
}

fn is_clear(machine: &SimMachine) -> bool {
    (0..machine.all().count())
        .all(|processor| registers(machine, u32::try_from(processor).unwrap()).iter().all(|(_, value)| *value == 0))
}

/// Lets a hundredth of a window pass `steps` times, in which OTHER occurs `percent` / 100 times as often as all else.
/// Returns the number of interrupts, which have `percent` as their address.
fn pass(machine: &SimMachine, engine: &Engine<&SimMachine>, steps: u64, percent: u64) -> u64 {
    scene::pass(machine, engine, 0, (steps, STEP), (OTHER, percent), percent)
}

fn recorder(count: &CountRecord) -> Option<Recorder> {
    Recorder::from_number(count.recorder)
}

fn decided_by_counters(counts: &[CountRecord]) -> bool {
    recorder(&counts[0]) == Some(Recorder::Reloaded)
}

#[test]
fn a_phase_that_does_not_meet_the_condition_makes_no_interrupt() {
    for machine in NAMES.into_iter().flat_map(|name| boards(name, 1)) {
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let session = started(client, &mut engine, 1 << 14, on(&[]), &[BELOW, beside(OTHER)]);
        let (mut bad_windows, mut seed, mut of_phase) = (0, 17_u64, [0, 0]);
        for phase in 0..24 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (percent, steps) = (if phase % 2 == 0 { GOOD } else { BAD }, 10 + (seed >> 33) % 12_000);
            of_phase[phase % 2] += pass(&machine, &engine, steps, percent);
            bad_windows += if percent == BAD { steps / STEPS } else { 0 };
        }
        let [of_good, of_bad] = of_phase;
        assert!(of_bad > 100 && of_good * 100 < of_bad, "{of_phase:?}");
        let found = addresses(client, &mut engine, session);
        let bad = found.iter().filter(|ip| **ip == BAD).count() as u64;
        assert_eq!((bad, found.len() as u64), (of_bad, of_good + of_bad));
        assert!(bad * 10 > bad_windows * 9, "{bad} of {bad_windows}");
        let counts = stopped(client, &mut engine, session, None);
        assert!(decided_by_counters(&counts), "{:?}", counts[0]);
        let CountRecord { samples, unmet, lost, throttled, disturbed_register, count, .. } = counts[0];
        assert_eq!((samples, unmet, lost, throttled, disturbed_register), (of_good + of_bad, 0, 0, 0, 0));
        assert_eq!(samples, overflows(&machine, 0, WINDOW));
        // The windows with samples, and a part of one.
        assert!((samples..=samples + 1).contains(&(count / u64::from(INTERVAL))), "{count}");
        assert_eq!(counts[1].disturbed_register, 0);
        assert!(is_left_clean(&machine) && is_clear(&machine));
    }
}

#[test]
fn the_limit_is_strict_in_both_forms_of_a_condition() {
    let above = conditional(event_flags::ABOVE, [0, 1], [2, 1]);
    for (asked, percent, samples) in [(BELOW, 49, 10), (BELOW, 50, 0), (above, 49, 10), (above, 50, 0), (above, 51, 0)]
    {
        let machine = SimMachine::named(NAMES[0], 1);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let session = started(client, &mut engine, 64, on(&[]), &[asked, beside(OTHER)]);
        pass(&machine, &engine, 10 * STEPS, percent);
        let counts = stopped(client, &mut engine, session, None);
        assert!(decided_by_counters(&counts));
        // At 50 % both reach their ends in one step of the model, and the first counter of them wins.
        let is_tie = percent == 50;
        assert!(counts[0].samples == samples || is_tie, "{percent}: {:?}", counts[0]);
    }
}

/// What is not one sampled event with a constant interval, compared with one that is counted for that alone.
#[test]
fn the_handler_decides_where_counters_cannot() {
    let third = EventRequest { flags: event_flags::BESIDE, ..event(11, 0) };
    let cases: [(&str, Vec<EventRequest>); 8] = [
        ("the count is wanted", vec![BELOW, event(OTHER, 0)]),
        ("an interval that is adapted", vec![EventRequest { frequency: 1_000, ..BELOW }, beside(OTHER)]),
        ("another sampled event", vec![BELOW, beside(OTHER), event(11, INTERVAL)]),
        ("above", vec![conditional(event_flags::ABOVE, [1, 0], [1, 2]), beside(OTHER)]),
        (
            "the sampled event is not compared",
            vec![conditional(event_flags::BELOW, [1, 2], [1, 2]), beside(OTHER), third],
        ),
        ("a short window", vec![EventRequest { interval: SHORT, ..BELOW }, beside(OTHER)]),
        ("too long a window", vec![conditional(event_flags::BELOW, [1, 0], [u32::MAX, 1]), beside(OTHER)]),
        ("with itself", vec![conditional(event_flags::BELOW, [0, 0], [2, 1]), beside(OTHER)]),
    ];
    for (what, events) in cases {
        let machine = SimMachine::named(NAMES[0], 1);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let session = started(client, &mut engine, 64, on(&[]), &events);
        assert!(is_clear(&machine), "{what}");
        let counts = stopped(client, &mut engine, session, None);
        assert!(!decided_by_counters(&counts), "{what}");
    }
}

#[test]
fn the_handler_decides_if_the_counters_are_taken_or_in_use_or_answer_no_access() {
    let decides = |machine: &SimMachine, held: &[EventRequest]| {
        let mut engine = engine(machine);
        let [holder, client] = [1, 2].map(|handle| Client::open(&mut engine, handle, 10));
        if !held.is_empty() {
            let counting = StartHeader { budget: 0, ring: 0, ..header(0, on(&[])) };
            assert_eq!(holder.start_with(&mut engine, counting, held).header().status, 0);
        }
        let session = started(client, &mut engine, 64, on(&[]), &[BELOW, beside(OTHER)]);
        pass(machine, &engine, 2 * STEPS, BAD);
        let counts = stopped(client, &mut engine, session, None);
        assert_eq!(counts[0].samples, 2, "{:?}", counts[0]);
        decided_by_counters(&counts)
    };
    // One of those that reload each other is left; counters 0 and 1 are free.
    let on_counter = |counter: u32, source| EventRequest {
        event: Event { counters: 1 << counter, ..Event::of(source) },
        ..event(source, 0)
    };
    let taken: Vec<EventRequest> = (2..8).map(|counter| on_counter(counter, 11)).chain([on_counter(9, 19)]).collect();
    assert!(decides(&SimMachine::named(NAMES[0], 1), &[]));
    assert!(!decides(&SimMachine::named(NAMES[0], 1), &taken));
    for register in [0x1902 + 4 * 5, 0x1982, 0x1983 + 4] {
        let machine = SimMachine::named(NAMES[0], 1);
        machine.processor(0).model().uncounted(|model| model.wrmsr(register, 4)).unwrap();
        assert!(!decides(&machine, &[]), "{register:#x}");
        let left: Vec<_> = registers(&machine, 0).into_iter().filter(|(_, value)| *value != 0).collect();
        assert_eq!(left, [(register, 4)]);
        for access in [model::FaultingAccess::Rdmsr(register), model::FaultingAccess::Wrmsr(register)] {
            let machine = SimMachine::named(NAMES[0], 1);
            machine.processor(0).model().set_faulting([access]);
            assert!(!decides(&machine, &[]), "{access:?}");
        }
    }
}

#[test]
fn another_session_samples_the_event_with_a_counter_of_its_own() {
    for machine in boards(NAMES[1], 1) {
        let mut engine = engine(&machine);
        let [choosy, plain] = [1, 2].map(|handle| Client::open(&mut engine, handle, 10));
        let chosen = started(choosy, &mut engine, 64, on(&[]), &[BELOW, beside(OTHER)]);
        let all = started(plain, &mut engine, 64, on(&[]), &[event(WINDOW, INTERVAL)]);
        pass(&machine, &engine, 3 * STEPS, GOOD);
        pass(&machine, &engine, 3 * STEPS, BAD);
        assert_eq!(stopped(plain, &mut engine, all, None)[0].samples, 6);
        let counts = stopped(choosy, &mut engine, chosen, None);
        assert!(decided_by_counters(&counts) && (2..=3).contains(&counts[0].samples), "{:?}", counts[0]);
        // The other way round, the counter is shared, and the handler decides.
        let all = started(plain, &mut engine, 64, on(&[]), &[event(WINDOW, INTERVAL)]);
        let chosen = started(choosy, &mut engine, 64, on(&[]), &[BELOW, beside(OTHER)]);
        assert!(is_clear(&machine));
        assert!(!decided_by_counters(&stopped(choosy, &mut engine, chosen, None)));
        stopped(plain, &mut engine, all, None);
        assert!(is_left_clean(&machine));
    }
}

/// A counter that was loaded again by another is free for a session that knows nothing of it.
#[test]
fn after_the_session_its_counters_count_everything() {
    for name in NAMES {
        let machine = SimMachine::named(name, 1);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let session = started(client, &mut engine, 64, on(&[]), &[BELOW, beside(OTHER)]);
        pass(&machine, &engine, 50, GOOD);
        engine.close(engine::ClientId(1));
        assert!(is_left_clean(&machine) && is_clear(&machine), "{session}");
        let client = Client::open(&mut engine, 2, 10);
        let session = started(client, &mut engine, 64, on(&[]), &[event(WINDOW, INTERVAL), event(OTHER, INTERVAL)]);
        run(&machine, &engine, 0, 3 * u64::from(INTERVAL) / 2);
        run(&machine, &engine, 0, u64::from(INTERVAL));
        for count in stopped(client, &mut engine, session, None) {
            assert_eq!(count.count, 5 * u64::from(INTERVAL) / 2, "{name}");
        }
        started(client, &mut engine, 64, on(&[]), &[BELOW, beside(OTHER)]);
        engine.shut_down();
        assert!(is_left_clean(&machine) && is_clear(&machine));
    }
}

#[test]
fn a_decision_of_counters_costs_the_handler_nothing() {
    for (name, mode) in NAMES.into_iter().flat_map(|name| InterruptMode::ALL.map(|mode| (name, mode))) {
        let cost = |events: &[EventRequest]| {
            let machine = machine(name, 1, mode);
            let mut engine = engine(&machine);
            let client = Client::open(&mut engine, 1, 10);
            started(client, &mut engine, 64, on(&[]), events);
            machine.tick_sampling(&engine, 0);
            pass(&machine, &engine, STEPS - 1, BAD);
            machine.run(0, Mode::User, &|_| STEP);
            let before = machine.processor(0).model().accesses();
            assert_eq!(machine.deliver(&engine, 0, &interrupted(0)).0, 1);
            let after = machine.processor(0).model().accesses();
            [after.rdmsr - before.rdmsr, after.wrmsr - before.wrmsr, after.rdpmc - before.rdpmc]
        };
        assert_eq!(cost(&[BELOW, beside(OTHER)]), cost(&[event(WINDOW, INTERVAL)]), "{name}, {mode:?}");
    }
}

/// What happens to a session.
#[derive(Debug, Clone)]
enum Happening {
    Steps(u64, u64),
    Tick(u64),
    Pause,
    Sleep,
    LostInterrupt,
    Read,
}

fn happenings() -> impl Strategy<Value = Vec<Happening>> {
    let one = prop_oneof![
        6 => (1_u64..300, 0_u64..200).prop_map(|(steps, percent)| Happening::Steps(steps, percent)),
        2 => (1_u64..40_000).prop_map(Happening::Tick),
        1 => Just(Happening::Pause),
        1 => Just(Happening::Sleep),
        1 => Just(Happening::LostInterrupt),
        1 => Just(Happening::Read),
    ];
    prop::collection::vec(one, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    #[test]
    fn samples_lost_and_dropped_ones_are_the_overflows_and_what_happens_between_leaves_nothing(
        happenings in happenings(),
        name in prop::sample::select(&NAMES[..]),
        mode in prop::sample::select(&InterruptMode::ALL[..]),
        is_stopped: bool,
    ) {
        let machine = machine(name, 1, mode);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let asked = StartHeader { budget: 250, ..header(1 << 12, on(&[])) };
        let session = client.start_with(&mut engine, asked, &[BELOW, beside(OTHER)]).header().detail[0];
        for one in &happenings {
            match *one {
                Happening::Steps(steps, percent) => _ = pass(&machine, &engine, steps, percent),
                Happening::Tick(ticks) => {
                    machine.pass(ticks);
                    machine.tick_sampling(&engine, 0);
                }
                Happening::Pause => {
                    machine.set_pace(33_000);
                    pass(&machine, &engine, 2 * STEPS, BAD);
                    machine.set_pace(0);
                }
                Happening::Sleep => {
                    machine.fall_asleep(&engine);
                    machine.wake(&engine);
                }
                Happening::LostInterrupt => {
                    machine.run(0, Mode::User, &|one| if one.event == 0xC0 { 0 } else { u64::from(INTERVAL) });
                    machine.processor(0).model().take_interrupt();
                    for _ in 0..2 {
                        machine.tick_sampling(&engine, 0);
                    }
                }
                Happening::Read => _ = client.read(&mut engine, session),
            }
        }
        if is_stopped {
            let counts = stopped(client, &mut engine, session, None);
            prop_assert!(decided_by_counters(&counts));
            let CountRecord { samples, lost, throttled, disturbed_register, .. } = counts[0];
            prop_assert_eq!(samples + lost + throttled, overflows(&machine, 0, WINDOW), "{:?}", counts[0]);
            prop_assert_eq!((disturbed_register, counts[1].disturbed_register), (0, 0));
        } else {
            engine.shut_down();
        }
        prop_assert!(is_left_clean(&machine) && is_clear(&machine));
    }
}

#[test]
fn each_of_the_two_counters_is_loaded_by_the_other_and_the_silent_one_by_itself() {
    let machine = SimMachine::named(NAMES[2], 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let session = started(client, &mut engine, 64, on(&[]), &[BELOW, beside(OTHER)]);
    let enabled: Vec<CounterId> =
        machine.processor(0).model().enabled_counters().into_iter().map(|(counter, _)| counter).collect();
    assert_eq!(enabled, [CounterId::General(2), CounterId::Fixed(0)]);
    // The sampled one is loaded by the other, and that by both.
    let written: Vec<_> = registers(&machine, 0).into_iter().filter(|(_, value)| *value != 0).collect();
    let [half, whole] = [INTERVAL / 2, INTERVAL].map(|interval| u64::from(interval.wrapping_neg()));
    assert_eq!(written, [(0x190A, 1 << 32), (0x190B, whole), (0x1982, 1 << 32 | 1 << 2), (0x1983, half)]);
    stopped(client, &mut engine, session, None);
}

#[test]
fn an_overflow_whose_interrupt_comes_too_late_is_lost_though_the_counter_was_loaded_again() {
    for machine in boards(NAMES[2], 1) {
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let session = started(client, &mut engine, 64, on(&[]), &[BELOW, beside(OTHER)]);
        let other = encoding(&machine, 0, OTHER);
        for is_other in [false, true] {
            machine.run(0, Mode::User, &|one| {
                u64::from(((one.event, one.umask) == other) == is_other) * u64::from(INTERVAL)
            });
        }
        let counts = stopped(client, &mut engine, session, None);
        assert_eq!((counts[0].samples, counts[0].lost), (0, 1), "{:?}", counts[0]);
        assert_eq!(overflows(&machine, 0, WINDOW), 1);
    }
}

#[test]
fn a_session_that_ends_in_a_pause_leaves_no_counter_that_the_end_of_the_pause_starts() {
    for machine in boards(NAMES[0], 1) {
        let mut engine = engine(&machine);
        let [choosy, plain] = [1, 2].map(|handle| Client::open(&mut engine, handle, 10));
        let asked = StartHeader { budget: 250, ..header(64, on(&[])) };
        let all = plain.start_with(&mut engine, asked, &[event(11, INTERVAL)]).header().detail[0];
        let chosen = choosy.start_with(&mut engine, asked, &[BELOW, beside(OTHER)]).header().detail[0];
        machine.set_pace(33_000);
        pass(&machine, &engine, 2 * STEPS, BAD);
        machine.set_pace(0);
        // Only what is sampled waits.
        assert_eq!(machine.processor(0).model().enabled_counters().len(), 1);
        stopped(choosy, &mut engine, chosen, None);
        assert!(is_clear(&machine) && machine.processor(0).model().enabled_counters().is_empty());
        machine.pass(50_000);
        machine.tick_sampling(&engine, 0);
        assert_eq!(machine.processor(0).model().enabled_counters().len(), 1);
        assert!(stopped(plain, &mut engine, all, None)[0].samples > 0);
        assert!(is_left_clean(&machine));
    }
}

#[test]
fn on_a_hybrid_the_counters_of_one_core_type_decide_and_the_handler_on_the_other() {
    let machine = SimMachine::named("lunar-lake-288v", 2);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let session = started(client, &mut engine, 64, on(&[]), &[BELOW, beside(OTHER)]);
    for processor in [0, 1] {
        let pass = |windows, percent| {
            scene::pass(&machine, &engine, processor, (windows * STEPS, STEP), (OTHER, percent), percent)
        };
        let interrupts = pass(1, GOOD) + pass(3, BAD);
        assert_eq!(interrupts, [4, 2][processor as usize]);
    }
    let counts = stopped(client, &mut engine, session, None);
    let sampled: Vec<_> = counts
        .iter()
        .filter(|count| count.index == 0)
        .map(|count| (recorder(count), count.samples, count.unmet))
        .collect();
    assert_eq!(sampled, [(Some(Recorder::None), 3, 1), (Some(Recorder::Reloaded), 2, 0)]);
    assert!(is_left_clean(&machine) && is_clear(&machine));
}
