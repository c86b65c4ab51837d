//! BJ122, BV98, HSD29: on Sandy Bridge to Haswell, an event of memory access disturbs the counter with the same number
//! of the other thread.

use engine::Engine;
use model::{Mode, Selected};
use pmu::source::RawEvent;
use protocol::{ErrorCode, Event, EventRequest, ProcessorSet, StartHeader, flags, modes};
use simulation::{Client, SimMachine};

/// With hyper-threading: cores with the processors 0 and 1, and 2 and 3.
const PROCESSORS: [&str; 6] = [
    "sandy-bridge-2600k",
    "sandy-bridge-ep-3930k",
    "ivy-bridge-ep-4930k",
    "haswell-4710mq",
    "haswell-ult-4500u",
    "haswell-ep-2699",
];

fn raw(event: u16, umask: u8) -> u64 {
    RawEvent::new().with_event(event).with_umask(umask.into()).source().0
}

/// MEM_LOAD_UOPS_RETIRED.L1_HIT, and events without the erratum.
fn loads() -> u64 {
    raw(0xD1, 0x01)
}

fn plain(number: u8) -> u64 {
    raw(0x0E, number)
}

/// Starts events on processors; returns the session, or the cause, the source, the processor and the first detail.
fn start(
    client: Client,
    engine: &mut Engine<&SimMachine>,
    processors: ProcessorSet,
    sources: &[u64],
) -> Result<u64, (u32, u64, u32, u64)> {
    let events: Vec<_> = sources.iter().map(|source| (*source, modes::USER)).collect();
    let header = client.start(engine, 0, processors, &events).header();
    let [detail, _] = header.detail;
    if header.cause == 0 { Ok(detail) } else { Err((header.cause, header.source, header.processor, detail)) }
}

fn only(processors: &[u32]) -> ProcessorSet {
    let mut set = ProcessorSet::EMPTY;
    assert!(processors.iter().all(|processor| set.insert(*processor)));
    set
}

/// As many events of each kind as the processor's number and the event say.
fn events(processor: u32) -> impl Fn(Selected) -> u64 {
    move |selected| 1_000 * u64::from(processor + 1) + u64::from(selected.event)
}

#[test]
fn loads_of_both_threads_and_events_beside_them_count_exactly() {
    for name in PROCESSORS {
        let machine = SimMachine::named(name, 4);
        let mut engine = Engine::new(&machine, [0; 4]).unwrap();
        let client = Client::open(&mut engine, 1, 10);
        let session = client.started(&mut engine, 0, &[loads(), plain(1), plain(2)]);
        for processor in [0, 3, 1, 2, 0] {
            machine.run(processor, Mode::User, &events(processor));
        }
        let counts: Vec<_> = client.read(&mut engine, session).iter().map(|it| (it.processor, it.count)).collect();
        let wanted = (0..4).flat_map(|processor| {
            let times = if processor == 0 { 2 } else { 1 };
            [0xD1, 0x0E, 0x0E].map(|event| (processor, times * (1_000 * u64::from(processor + 1) + event)))
        });
        assert_eq!(counts, wanted.collect::<Vec<_>>(), "{name}");
    }
}

#[test]
fn sessions_are_refused_if_they_need_the_counters_that_must_stay_free() {
    for name in PROCESSORS {
        let machine = SimMachine::named(name, 4);
        let mut engine = Engine::new(&machine, [0; 4]).unwrap();
        let client = Client::open(&mut engine, 1, 10);
        let four = [loads(), plain(1), plain(2), plain(3)];
        let refused = (ErrorCode::OtherThread as u32, loads(), 1, 0);
        assert_eq!(start(client, &mut engine, ProcessorSet::EMPTY, &four), Err(refused), "{name}");
        // One thread of each core has all counters for itself.
        let session = start(client, &mut engine, only(&[1, 2]), &four).unwrap();
        machine.run(1, Mode::User, &events(1));
        assert_eq!(client.read(&mut engine, session)[0].count, 2_000 + 0xD1, "{name}");
        client.stop(&mut engine, session, None);

        // Beside a session on one thread, the other thread has the other counters.
        let session = start(client, &mut engine, only(&[0]), &[loads()]).unwrap();
        let beside = [plain(1), plain(2), plain(3), plain(4)];
        let refused = (ErrorCode::OtherThread as u32, plain(4), 1, 0);
        assert_eq!(start(client, &mut engine, only(&[1]), &beside), Err(refused), "{name}");
        assert!(start(client, &mut engine, only(&[1]), &beside[..3]).is_ok(), "{name}");
        machine.run(0, Mode::User, &events(0));
        assert_eq!(client.read(&mut engine, session)[0].count, 1_000 + 0xD1, "{name}");
        client.stop(&mut engine, session, None);
        assert!(start(client, &mut engine, only(&[1]), &beside[3..]).is_ok(), "{name}: no longer needed");
    }
}

/// A session for threads has the same counter everywhere. It is one that no other thread of a core disturbs, on
/// whichever of its processors.
#[test]
fn threads_get_a_counter_that_the_other_thread_of_no_core_disturbs() {
    for name in PROCESSORS {
        for disturbed in 0..4 {
            let machine = SimMachine::named(name, 4);
            let mut engine = Engine::new(&machine, [0; 4]).unwrap();
            let client = Client::open(&mut engine, 1, 10);
            let one = EventRequest {
                event: Event { counters: 1 << disturbed, ..Event::of(loads()) },
                modes: modes::BOTH,
                ..EventRequest::EMPTY
            };
            let beside = StartHeader { processors: only(&[2]), ..StartHeader::EMPTY };
            assert_eq!(client.start_with(&mut engine, beside, &[one]).header().cause, 0, "{name}");
            // On processor 0 each counter would do.
            let threads = StartHeader { flags: flags::THREADS, ..StartHeader::EMPTY };
            let three: Vec<_> = (1..4)
                .map(|number| EventRequest {
                    event: Event::of(plain(number)),
                    modes: modes::BOTH,
                    ..EventRequest::EMPTY
                })
                .collect();
            let reply = client.start_with(&mut engine, threads, &three).header();
            assert_eq!((reply.cause, reply.status), (0, 0), "{name}, counter {disturbed}: {reply:?}");
            let counters: Vec<u32> = client.read(&mut engine, reply.detail[0]).iter().map(|it| it.counter).collect();
            assert!(counters.len() == 12 && !counters.contains(&disturbed), "{name}: {counters:?}");
        }
    }
}

#[test]
fn without_hyper_threading_and_on_other_processors_nothing_stays_free() {
    for name in ["ivy-bridge-3570k", "broadwell-u-5y70", "skylake-6600k", "nehalem-920"] {
        let machine = SimMachine::named(name, 2);
        let mut engine = Engine::new(&machine, [0; 4]).unwrap();
        let client = Client::open(&mut engine, 1, 10);
        let four = [loads(), plain(1), plain(2), plain(3)];
        assert!(start(client, &mut engine, ProcessorSet::EMPTY, &four).is_ok(), "{name}");
    }
}
