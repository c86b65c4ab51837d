//! Sessions that end while threads of a core fall asleep and wake: the extra registers are put back all the same, by
//! the thread that is awake, and nothing of the sessions is kept for those that follow.

use engine::{Engine, Ticks};
use protocol::EventRequest;
use simulation::{Client, SimMachine};

use super::scene::{ONLY_COUNTED, READS, engine, front_end, offcore, on, registers, started};

/// Identities whose threads share off-core registers, or have each their own, with the events of a session.
const IDENTITIES: [(&str, &[EventRequest]); 5] = [
    ("westmere-980x", &[offcore(0x101), offcore(0x102)]),
    ("clarkdale-650", &[offcore(0x101), offcore(0x102)]),
    ("lynnfield-860", &[offcore(0x101)]),
    ("skylake-6600k", &[offcore(READS), front_end(0x15)]),
    ("avoton-c2750", &[offcore(READS)]),
];

/// Values that other programs have in the registers before the first session and before the last.
const FOUND: [u64; 2] = [0x8080, 0x4040];

/// A step of a machine with two processors to sleep and back.
#[derive(Debug, Clone, Copy)]
enum Step {
    Announce,
    FallAsleep(u32),
    AnnounceWake,
    Wake(u32),
}

/// Returns the steps, of which the processors make theirs in these orders.
fn steps(asleep: [u32; 2], awake: [u32; 2]) -> [Step; 6] {
    let [first, second] = asleep.map(Step::FallAsleep);
    let [third, fourth] = awake.map(Step::Wake);
    [Step::Announce, first, second, Step::AnnounceWake, third, fourth]
}

fn go(machine: &SimMachine, engine: &Engine<&SimMachine>, step: Step) {
    match step {
        Step::Announce => machine.announce_sleep(engine),
        Step::FallAsleep(processor) => machine.fall_asleep_on(engine, processor),
        Step::AnnounceWake => assert_eq!(machine.announce_wake(engine), Ticks(0)),
        Step::Wake(processor) => _ = machine.wake_on(engine, processor, Ticks(0)),
    }
}

fn write(machine: &SimMachine, value: u64) {
    for (processor, register) in [0, 1].into_iter().flat_map(|processor| [(processor, 0x1A6), (processor, 0x1A7)]) {
        // Nehalem has one register.
        let _ = machine.processor(processor).model().wrmsr(register, value);
    }
}

/// Returns the off-core registers that the processors have.
fn found(machine: &SimMachine) -> Vec<u64> {
    [0, 1].into_iter().flat_map(|processor| registers(machine, processor)).flatten().collect()
}

/// Sessions on both processors, on each its own, or on one.
const SESSIONS: [&[&[u32]]; 4] = [&[&[0, 1]], &[&[0], &[1]], &[&[0]], &[&[1]]];

#[test]
fn registers_are_put_back_whenever_sessions_end_on_the_way_to_sleep_and_back() {
    for ((name, events), sessions) in IDENTITIES.into_iter().flat_map(|one| SESSIONS.map(|sessions| (one, sessions))) {
        for (asleep, awake) in [[0, 1], [1, 0]].into_iter().flat_map(|one| [[0, 1], [1, 0]].map(|other| (one, other))) {
            // Sessions end before a step, or after the last.
            let steps = steps(asleep, awake);
            for ends in (0..=steps.len()).flat_map(|first| (0..=steps.len()).map(move |second| [first, second])) {
                let case = (name, sessions, asleep, awake, ends);
                let machine = SimMachine::named(name, 2);
                write(&machine, FOUND[0]);
                let before = found(&machine);
                let mut engine = engine(&machine);
                let client = Client::open(&mut engine, 1, 10);
                let start = |engine: &mut _, on_these| started(client, engine, on(ONLY_COUNTED, on_these), events);
                let mut running: Vec<_> =
                    sessions.iter().zip(ends).map(|(on_these, end)| (start(&mut engine, on_these), end)).collect();
                assert_ne!(found(&machine), before, "{case:?}: nothing is counted");
                for (number, step) in steps.into_iter().map(Some).chain([None]).enumerate() {
                    running.retain(|(session, end)| {
                        if *end == number {
                            client.stop(&mut engine, *session, None);
                        }
                        *end != number
                    });
                    // A processor that sleeps may keep its registers, or find them reset.
                    let there = found(&machine);
                    let is_as_before = there.iter().zip(&before).all(|(now, before)| [0, *before].contains(now));
                    assert!(is_as_before || !running.is_empty(), "{case:?}, step {number}: {there:x?}");
                    if let Some(step) = step {
                        go(&machine, &engine, step);
                    }
                }
                write(&machine, FOUND[1]);
                let before = found(&machine);
                let session = start(&mut engine, &[0, 1]);
                assert_ne!(found(&machine), before, "{case:?}: nothing is counted after the sleep");
                client.stop(&mut engine, session, None);
                assert_eq!(found(&machine), before, "{case:?}: a value of earlier sessions is written back");
            }
        }
    }
}
