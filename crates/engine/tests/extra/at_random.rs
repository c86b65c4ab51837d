//! Random events with extra registers, in several sessions on two threads of a core.

use std::collections::BTreeMap;

use model::CounterId;
use pmu::Source;
use pmu::extra::Selector;
use proptest::prelude::*;
use protocol::{CountRecord, Event, EventRequest, modes};
use simulation::{Client, SimMachine};

use super::scene::{ONLY_COUNTED, counts, engine, extra, on, rate, registers, run, start};

/// Event and unit mask.
type Encoding = (u16, u16);

/// Identities, with the two events of off-core responses and a front-end event, if they have one.
const IDENTITIES: [(&str, [Encoding; 2], Option<Encoding>); 8] = [
    ("westmere-980x", [(0xB7, 0x01), (0xBB, 0x01)], None),
    ("sandy-bridge-2600k", [(0xB7, 0x01), (0xBB, 0x01)], None),
    ("skylake-6600k", [(0xB7, 0x01), (0xBB, 0x01)], Some((0xC6, 0x01))),
    ("sapphire-rapids-2475x", [(0x2A, 0x01), (0x2B, 0x01)], Some((0xAD, 0x40))),
    ("goldmont-plus-n4100", [(0xB7, 0x01), (0xB7, 0x02)], None),
    ("lunar-lake-288v", [(0x2A, 0x01), (0x2B, 0x01)], Some((0xC6, 0x03))),
    ("nova-lake-derived", [(0x2A, 0x02), (0xD6, 0x01)], Some((0xC6, 0x03))),
    ("nova-lake-derived-efficient", [(0xB7, 0x01), (0xD4, 0x08)], None),
];

const SESSIONS: usize = 4;
const THREADS: u32 = 2;

#[derive(Debug, Clone)]
enum Step {
    /// Starts the session if it does not run: events, each with the number of a value and the counters allowed; and the
    /// processors.
    Start(usize, Vec<(usize, usize, u32)>, u32),
    Stop(usize),
    Run(u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let event = (0..4_usize, 0..3_usize, prop_oneof![Just(0_u32), 1..16_u32]);
    let start = (0..SESSIONS, prop::collection::vec(event, 1..4), 0..3_u32);
    let step = prop_oneof![
        3 => start.prop_map(|(session, events, processors)| Step::Start(session, events, processors)),
        1 => (0..SESSIONS).prop_map(Step::Stop),
        2 => (0..THREADS).prop_map(Step::Run),
    ];
    prop::collection::vec(step, 1..24)
}

fn request(identity: usize, (event, value, counters): (usize, usize, u32)) -> EventRequest {
    let (name, offcore, front_end) = IDENTITIES[identity];
    // The values have a response, too.
    let response = match name {
        "westmere-980x" => 0,
        "nova-lake-derived" | "nova-lake-derived-efficient" => 1 << 62,
        _ => 0x1_0000,
    };
    let with = |(event, umask), selector, value| {
        let request = extra(event, umask, selector, value);
        EventRequest { event: Event { counters, ..request.event }, ..request }
    };
    match (event, front_end) {
        (0 | 1, _) => with(offcore[event], Selector::OffcoreResponse, [0x1001, 0x1002, 0x2004][value] | response),
        (2, Some(event)) => with(event, Selector::FrontEnd, [0x1, 0x2, 0x6][value]),
        _ => EventRequest {
            event: Event { counters, ..Event::of(pmu::source::RawEvent::new().with_event(0xC4).source().0) },
            modes: modes::USER,
            ..EventRequest::EMPTY
        },
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Every count is what the model's ledger has for its event with its value, on whatever counters; no event is on a
    /// counter outside its mask; every register has one of the values that its sessions need; a refusal changes
    /// nothing; and in the end the registers are as they were found.
    #[test]
    fn no_register_ever_has_two_values(identity in 0..IDENTITIES.len(), steps in steps()) {
        let machine = SimMachine::named(IDENTITIES[identity].0, THREADS);
        let found = [0, 1].map(|processor| registers(&machine, processor));
        let mut engine = engine(&machine);
        let clients: Vec<_> = (0..SESSIONS).map(|handle| Client::open(&mut engine, handle + 1, 10)).collect();
        let mut running: BTreeMap<usize, (u64, Vec<EventRequest>)> = BTreeMap::new();
        let mut happened: BTreeMap<(usize, u32, u64, u64), u64> = BTreeMap::new();
        for step in steps {
            match step {
                Step::Start(session, ..) if running.contains_key(&session) => {}
                Step::Start(session, events, processors) => {
                    let mut events: Vec<_> = events.into_iter().map(|event| request(identity, event)).collect();
                    events.dedup_by_key(|event| (event.event.source, event.event.extra));
                    let mut seen = Vec::new();
                    events.retain(|event| {
                        let key = (event.event.source, event.event.extra);
                        let is_new = !seen.contains(&key);
                        seen.push(key);
                        is_new
                    });
                    let header = match processors {
                        0 => ONLY_COUNTED,
                        number => on(ONLY_COUNTED, &[number - 1]),
                    };
                    let before = [0, 1].map(|processor| registers(&machine, processor));
                    let reply = start(clients[session], &mut engine, header, &events);
                    if reply.status == 0 {
                        running.insert(session, (reply.detail[0], events));
                    } else {
                        prop_assert_eq!([0, 1].map(|processor| registers(&machine, processor)), before);
                    }
                }
                Step::Stop(session) => {
                    if let Some((number, _)) = running.remove(&session) {
                        clients[session].stop(&mut engine, number, None);
                        happened.retain(|(of, ..), _| *of != session);
                    }
                }
                Step::Run(processor) => {
                    run(&machine, processor);
                    for (session, (number, _)) in &running {
                        for count in counts(clients[*session], &mut engine, *number) {
                            let raw = Source(count.event.source).raw().unwrap();
                            let selected = model::Selected {
                                event: raw.event(),
                                umask: raw.umask(),
                                cmask: 0,
                                invert: false,
                                edge: false,
                            };
                            if count.processor == processor {
                                let key = (*session, processor, count.event.source, count.event.extra);
                                *happened.entry(key).or_default() += rate(selected, count.event.extra);
                            }
                        }
                    }
                }
            }
            for (session, (number, events)) in &running {
                for count in counts(clients[*session], &mut engine, *number) {
                    check(&machine, &count, events)?;
                    let key = (*session, count.processor, count.event.source, count.event.extra);
                    let expected = happened.get(&key).copied().unwrap_or_default();
                    prop_assert_eq!(count.count, expected, "{:x?}", count);
                    prop_assert_eq!(count.disturbed_register, 0);
                }
            }
        }
        for (session, (number, _)) in running {
            clients[session].stop(&mut engine, number, None);
        }
        prop_assert_eq!([0, 1].map(|processor| registers(&machine, processor)), found);
        let faulted = machine.all().map(|cpu| cpu.model().accesses().faulted).sum::<u64>();
        prop_assert_eq!(faulted, 0);
    }
}

/// Checks that the counter is one of those allowed, and that a register has the value of the event.
fn check(machine: &SimMachine, count: &CountRecord, events: &[EventRequest]) -> Result<(), TestCaseError> {
    let event = events
        .iter()
        .find(|event| (event.event.source, event.event.extra) == (count.event.source, count.event.extra))
        .unwrap();
    prop_assert!(event.event.counters == 0 || event.event.counters >> count.counter & 1 == 1, "{:x?}", count);
    let registers = registers(machine, count.processor);
    prop_assert!(
        count.event.extra == 0 || registers.contains(&Some(count.event.extra)),
        "{:x?} {:x?}",
        count,
        registers
    );
    let id = CounterId::General(u8::try_from(count.counter).unwrap());
    let is_on = machine.processor(count.processor).model().enabled_counters().iter().any(|(counter, _)| *counter == id);
    prop_assert!(is_on, "{:x?}", count);
    Ok(())
}
