//! Overflows that the model raised = samples delivered + lost + throttled: for every processor and source, exactly.

use std::collections::BTreeMap;

use model::Mode;
use native_lab::{Board, Client};
use proptest::prelude::*;
use protocol::{CountRecord, MOST_BUDGET, Sample, SampleKind};

use super::scene::{
    IDENTITIES, SOURCES, engine, event, fetched, info, interrupted, is_left_clean, is_sample, on, overflows, run,
    started, stopped,
};

const PROCESSORS: u32 = 3;

/// What happens next; numbers are taken modulo what there is.
#[derive(Debug, Clone)]
enum Step {
    /// The processor executes, and the interrupt is served at once.
    Run {
        processor: u32,
        events: u64,
    },
    /// The interrupt comes late: nothing serves it until the next run there.
    RunUnserved {
        processor: u32,
        events: u64,
    },
    Fetch {
        session: usize,
        room: usize,
    },
    StopOne {
        session: usize,
        source: usize,
    },
    Stop {
        session: usize,
    },
    Start {
        source: usize,
        interval: u32,
        ring: u32,
        processors: u32,
    },
    /// The next readings of the clock are far apart, so that the budget is soon spent.
    Slow {
        units: u64,
    },
    Tick,
    Sleep,
    Wake,
    Kill {
        session: usize,
    },
}

fn step(kills: bool) -> impl Strategy<Value = Step> {
    prop_oneof![
        10 => (0..PROCESSORS, 0..20_000_u64).prop_map(|(processor, events)| Step::Run { processor, events }),
        1 => (0..PROCESSORS, 0..20_000_u64).prop_map(|(processor, events)| Step::RunUnserved { processor, events }),
        2 => (any::<usize>(), 1..50_usize).prop_map(|(session, room)| Step::Fetch { session, room }),
        1 => (any::<usize>(), any::<usize>()).prop_map(|(session, source)| Step::StopOne { session, source }),
        1 => any::<usize>().prop_map(|session| Step::Stop { session }),
        3 => (any::<usize>(), 4_096..9_000_u32, 6..8_u32, 1..1_u32 << PROCESSORS).prop_map(
            |(source, interval, ring, processors)| Step::Start { source, interval, ring: 1 << ring, processors }
        ),
        1 => (0..40_000_u64).prop_map(|units| Step::Slow { units }),
        2 => Just(Step::Tick),
        1 => Just(Step::Sleep),
        2 => Just(Step::Wake),
        1 => any::<usize>().prop_map(move |session| if kills { Step::Kill { session } } else { Step::Tick }),
    ]
}

/// For each processor and source.
type Sums = BTreeMap<(u32, u32), u64>;

/// A session, and what became known of it.
struct Session {
    client: Client,
    number: u64,
    running: bool,
}

#[derive(Default)]
struct Told {
    /// Samples, by the final counts.
    samples: Sums,
    lost: Sums,
    throttled: Sums,
    /// Samples that were fetched, and those that records told were lost.
    fetched: Sums,
    lost_records: Sums,
}

impl Told {
    fn finally(&mut self, counts: &[CountRecord]) {
        for count in counts {
            let key = (count.processor, count.source);
            *self.samples.entry(key).or_default() += count.samples;
            *self.lost.entry(key).or_default() += count.lost;
            *self.throttled.entry(key).or_default() += count.throttled;
        }
    }

    fn records(&mut self, records: &[Sample]) {
        for record in records {
            let key = (record.processor, record.source);
            if is_sample(record) {
                assert_eq!((record.ip, record.process), (0x1000 + u64::from(record.processor), 100 + record.processor));
                *self.fetched.entry(key).or_default() += 1;
            } else if record.kind == SampleKind::Lost as u16 {
                *self.lost_records.entry(key).or_default() += record.ip;
            }
        }
    }
}

fn check(name: &str, steps: Vec<Step>, kills: bool, wakes: bool) -> Result<(), TestCaseError> {
    let board = Board::named(name, PROCESSORS);
    let mut engine = engine(&board);
    let observer = Client::open(&mut engine, 1, 1);
    let mut sessions: Vec<Session> = Vec::new();
    let mut told = Told::default();
    let mut handles = 1;
    for step in steps {
        let number = sessions.len();
        let chosen = |session: usize| session.checked_rem(number);
        match step {
            Step::Run { processor, events } => run(&board, &engine, processor, events),
            Step::RunUnserved { processor, events } => board.run(processor, Mode::User, &|_| events),
            Step::Fetch { session, room } => {
                if let Some(session) = chosen(session).and_then(|index| sessions.get(index)) {
                    let answer = session.client.samples(&mut engine, session.number, None, room).unwrap();
                    told.records(&answer.records::<Sample>());
                }
            }
            Step::StopOne { session, source } => {
                if let Some(session) = chosen(session).and_then(|index| sessions.get(index)) {
                    let source = SOURCES[source % SOURCES.len()];
                    let answer = session.client.stop(&mut engine, session.number, Some(source));
                    told.finally(&answer.records::<CountRecord>());
                }
            }
            Step::Stop { session } => {
                if let Some(session) = chosen(session).and_then(|index| sessions.get_mut(index)) {
                    // Or, where its last samples were fetched before, there is no such session.
                    let answer = session.client.stop(&mut engine, session.number, None);
                    told.finally(&answer.records::<CountRecord>());
                    session.running = false;
                }
            }
            Step::Start { source, interval, ring, processors } => {
                handles += 1;
                let client = Client::open(&mut engine, handles, 1);
                let list: Vec<u32> = (0..PROCESSORS).filter(|number| processors >> number & 1 == 1).collect();
                // No two sessions have the same interval, so that they share no counter.
                let interval = 4_096 + interval % 30 * 1_000 + u32::try_from(handles).unwrap() % 1_000;
                let events = [event(SOURCES[source % SOURCES.len()], interval)];
                let header = super::scene::header(ring, on(&list));
                let answer = client.start_with(&mut engine, header, &events).header();
                if answer.status == 0 {
                    let [number, _] = answer.detail;
                    sessions.push(Session { client, number, running: true });
                }
            }
            Step::Slow { units } => board.set_pace(units),
            Step::Tick => (0..PROCESSORS).for_each(|processor| board.tick_sampling(&engine, processor)),
            Step::Sleep => board.fall_asleep(&engine),
            Step::Wake => board.wake(&engine),
            Step::Kill { session } => {
                if let Some(index) = chosen(session) {
                    let session = sessions.swap_remove(index);
                    engine.close(session.client.0);
                }
            }
        }
    }
    if wakes {
        board.wake(&engine);
    }
    for session in &sessions {
        if session.running {
            let answer = session.client.stop(&mut engine, session.number, None);
            told.finally(&answer.records::<CountRecord>());
        }
        let answer = session.client.samples(&mut engine, session.number, None, 100_000).unwrap();
        told.records(&answer.records::<Sample>());
    }
    for processor in 0..PROCESSORS {
        board.deliver(&engine, processor, &interrupted(processor)); // late ones
    }
    let raised = |key: (u32, u32)| overflows(&board, key.0, key.1);
    let keys = || (0..PROCESSORS).flat_map(|processor| SOURCES.map(|source| (processor, source)));
    let of = |sums: &Sums, key| sums.get(&key).copied().unwrap_or_default();
    if !kills {
        for key in keys() {
            let accounted = of(&told.samples, key) + of(&told.lost, key) + of(&told.throttled, key);
            prop_assert_eq!(accounted, raised(key), "{}: processor and source {:?}", name, key);
            prop_assert_eq!(of(&told.fetched, key), of(&told.samples, key), "every sample was fetched, {:?}", key);
            prop_assert_eq!(of(&told.lost_records, key), of(&told.lost, key), "every loss was told, {:?}", key);
        }
    }
    let all = info(observer, &mut engine);
    let accounted = all.delivered + all.lost + all.throttled + all.discarded;
    prop_assert_eq!(accounted, keys().map(raised).sum::<u64>(), "{}: {:?}", name, all);
    prop_assert_eq!(all.delivered, told.fetched.values().sum::<u64>());
    prop_assert!(kills || all.discarded == 0);
    prop_assert!(is_left_clean(&board));
    prop_assert!(board.all().all(|cpu| cpu.model().accesses().faulted == 0));
    Ok(())
}

proptest! {
    #[test]
    fn it_adds_up_for_each_processor_and_source(
        name in prop::sample::select(IDENTITIES.to_vec()),
        steps in prop::collection::vec(step(false), 1..150),
        wakes in any::<bool>(),
    ) {
        check(name, steps, false, wakes)?;
    }

    #[test]
    fn it_adds_up_when_clients_are_killed(
        name in prop::sample::select(IDENTITIES.to_vec()),
        steps in prop::collection::vec(step(true), 1..150),
        wakes in any::<bool>(),
    ) {
        check(name, steps, true, wakes)?;
    }
}

#[test]
fn a_full_ring_loses_what_it_has_no_room_for_and_tells_how_much() {
    for name in IDENTITIES {
        let board = Board::named(name, 1);
        let mut engine = engine(&board);
        let client = Client::open(&mut engine, 1, 1);
        let session = started(client, &mut engine, 64, on(&[0]), &[event(2, 5_000)]);
        for _ in 0..100 {
            run(&board, &engine, 0, 5_000);
        }
        let (records, last) = fetched(client, &mut engine, session);
        let (samples, others): (Vec<Sample>, Vec<Sample>) = records.iter().copied().partition(is_sample);
        assert_eq!((samples.len(), others.len(), last), (64, 1, false), "{name}");
        assert_eq!((others[0].kind, others[0].ip), (SampleKind::Lost as u16, 36), "{name}");
        run(&board, &engine, 0, 5_000);
        assert_eq!(fetched(client, &mut engine, session).0.len(), 1, "{name}: the loss is told once, and it goes on");
        let counts = stopped(client, &mut engine, session, None);
        assert_eq!((counts[0].samples, counts[0].lost, counts[0].count), (65, 36, 505_000), "{name}");
    }
}

#[test]
fn the_largest_budget_is_less_than_all_time() {
    const { assert!(MOST_BUDGET < 1_000) };
}
