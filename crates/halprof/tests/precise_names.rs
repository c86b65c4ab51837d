//! Every event of the makers' tables, asked for precisely by its name: what the processor records is that event, or
//! there is a refusal.

#![cfg(test)]

use std::collections::BTreeMap;

use halprof::Driver;
use halprof::event::{SourceName, resolve, vendor_event};
use halprof::events::Event;
use halprof::protocol::{EventRequest, ProcessorSet, StartHeader, modes};
use model::{CounterId, Selected};
use simulation::SimMachine;

use crate::driver::Machine;

/// Processors of all microarchitectures with precise records, one for each table.
const PROCESSORS: [&str; 22] = [
    "core2-e5200",
    "nehalem-920",
    "sandy-bridge-2600k",
    "ivy-bridge-3570k",
    "haswell-4710mq",
    "broadwell-6950x",
    "skylake-6600k",
    "ice-lake-1065g7",
    "sapphire-rapids-2475x",
    "granite-rapids-658x",
    "alder-lake-p-12900h",
    "alder-lake-p-12900h-efficient",
    "meteor-lake-155h",
    "lunar-lake-288v",
    "arrow-lake-245k",
    "arrow-lake-s-265k-efficient",
    "avoton-c2750",
    "goldmont-plus-n4100",
    "apollo-lake-n4200",
    "snow-ridge-derived",
    "sierra-forest-derived",
    "bartlett-lake-273pqe",
];

#[test]
fn an_event_that_is_recorded_by_its_name_is_that_event() {
    let (mut recorded, mut refused, mut others) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
    for processor in PROCESSORS {
        let machine = Machine::on(SimMachine::named(processor, 1));
        let driver = machine.open(1);
        let identity = vendor_event::identity_of(&driver.info().unwrap());
        // On a hybrid the tables of all core types, of which the machine has one.
        let events: Vec<_> = vendor_event::tables(identity, None).iter().flat_map(|one| one.table.events()).collect();
        for event in &events {
            let Some(request) = request(event, &driver) else {
                *refused.entry(processor).or_insert(0) += 1;
                continue;
            };
            let header = StartHeader { ring: 64, ..StartHeader::EMPTY };
            let Ok(started) = driver.start(&header, &[request]) else {
                *refused.entry(processor).or_insert(0) += 1;
                continue;
            };
            let counters = machine.model.processor(0).model().enabled_counters();
            let records = machine.model.processor(0).model().rdmsr(0x3F1).unwrap();
            let [(counter, selected)] = counters[..] else { panic!("{processor}: {}: {counters:?}", event.name) };
            if !events.iter().any(|one| one.name == event.name && is(one, counter, selected)) {
                others.push(format!("{processor}: {} is {selected:x?} on {counter:?}", event.name));
            }
            let bit = match counter {
                CounterId::General(number) => number,
                CounterId::Fixed(number) => 32 + number,
                CounterId::Metric(_) => panic!("{processor}: {}", event.name),
            };
            // Bits 35:32 are those of load latency, and 63 that of stores.
            let is_store = event.name == "MEM_TRANS_RETIRED.PRECISE_STORE";
            assert_eq!(records >> 63 == 1, is_store, "{processor}: {}", event.name);
            let own = records & !(0xF << 32 | 1 << 63) | records & 1 << bit;
            assert_eq!(own, 1 << bit, "{processor}: {}", event.name);
            driver.stop_all(started.session).unwrap();
            recorded.entry(processor).or_insert_with(Vec::new).push(event.name.clone());
        }
    }
    let number: BTreeMap<_, _> = recorded.iter().map(|(processor, names)| (processor, names.len())).collect();
    println!("recorded {number:?}\nrefused {refused:?}");
    assert_eq!(others, Vec::<String>::new());
    for (processor, name) in [
        ("skylake-6600k", "INST_RETIRED.PREC_DIST"),
        ("ice-lake-1065g7", "INST_RETIRED.PREC_DIST"),
        ("sapphire-rapids-2475x", "INST_RETIRED.PREC_DIST"),
        ("lunar-lake-288v", "INST_RETIRED.PREC_DIST"),
        ("lunar-lake-288v", "BR_MISP_RETIRED.ALL_BRANCHES_COST"), // UMASK2
        ("arrow-lake-s-265k-efficient", "INST_RETIRED.ANY"),
        ("granite-rapids-658x", "MEM_TRANS_RETIRED.LOAD_LATENCY_GT_128"),
    ] {
        assert!(recorded[processor].iter().any(|one| one == name), "{processor}: {name}");
    }
}

/// Returns the precise request for an event by its name, if the library makes one.
fn request(event: &Event, driver: &Driver) -> Option<EventRequest> {
    let name: SourceName = event.name.parse().ok()?;
    let found = resolve(&name, modes::USER | modes::PRECISE, &ProcessorSet::EMPTY, driver).ok()?;
    let event = found.first()?.event;
    Some(EventRequest { event, modes: modes::USER | modes::PRECISE, interval: 100_000, ..EventRequest::EMPTY })
}

/// Returns whether a counter counts this event.
fn is(event: &Event, counter: CounterId, selected: Selected) -> bool {
    if event.is_fixed() {
        return event.counters.fixed().next().is_some_and(|number| counter == CounterId::Fixed(number));
    }
    let encoding = event.encoding;
    let wanted = Selected {
        event: encoding.event,
        umask: encoding.umask,
        cmask: encoding.cmask,
        invert: encoding.inv,
        edge: encoding.edge,
    };
    matches!(counter, CounterId::General(_)) && wanted == selected
}
