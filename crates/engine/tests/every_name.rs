//! Every event of the makers' tables on a processor of its table: it is placed on a counter of the facts, and its count
//! is what the model says occurred.

#![cfg(test)]

use std::collections::{BTreeMap, BTreeSet};

use cpuid_dumps::CpuIdentity;
use engine::Engine;
use events::{Event, Identity, Table, Vendor, core_tables};
use model::{Mode, Selected};
use pmu::ProfileInterface;
use pmu::source::RawEvent;
use protocol::{EventRequest, ProcessorSet, StartHeader, modes};
use simulation::{Client, SimMachine};

/// Events that the driver refuses, with the cause and its first detail. Without CMASK, C0/01 counts on counter 1 only,
/// which is not among those of the first event (37: the mask of the request leaves it no counter). Leaf 0xA of these
/// processors says that the second one is not available (3, 3).
const REFUSED: [(&str, &str, u32, u64); 7] = [
    ("cascadelakex", "INST_RETIRED.TOTAL_CYCLES_PS", 37, 2),
    ("nehalemex", "CPU_CLK_UNHALTED.REF_P", 3, 3),
    ("skylake", "INST_RETIRED.TOTAL_CYCLES_PS", 37, 2),
    ("skylakex", "INST_RETIRED.TOTAL_CYCLES_PS", 37, 2),
    ("westmereep-dp", "CPU_CLK_UNHALTED.REF_P", 3, 3),
    ("westmereep-sp", "CPU_CLK_UNHALTED.REF_P", 3, 3),
    ("westmereex", "CPU_CLK_UNHALTED.REF_P", 3, 3),
];

/// Counts on every processor.
const HEADER: StartHeader = StartHeader { flags: 0, ring: 0, budget: 0, batch: 0, processors: ProcessorSet::EMPTY };

/// Returns the table of a processor of the bench.
fn table(identity: &CpuIdentity) -> Option<Table> {
    let dump = identity.cpuid();
    let [_, ebx, ecx, edx] = dump.cpuid(0, 0);
    let name: Vec<u8> = [ebx, edx, ecx].into_iter().flat_map(u32::to_le_bytes).collect();
    let vendor = Vendor::from_name(str::from_utf8(&name).ok()?)?;
    let [leaf_1a, ..] = dump.cpuid(0x1A, 0);
    let is_hybrid = dump.cpuid(7, 0)[3] >> 15 & 1 == 1;
    let tables = core_tables(Identity::of_signature(vendor, dump.cpuid(1, 0)[0]));
    let is_it = |native: u8| native == 0 || u32::from(native) == leaf_1a & 0xFF_FFFF;
    let of_type = tables.iter().filter(|one| {
        !is_hybrid
            || one.core_type.is_some_and(|core_type| core_type as u32 == leaf_1a >> 24) && is_it(one.native_model)
    });
    if is_hybrid {
        of_type.max_by_key(|one| one.native_model).map(|one| one.table)
    } else {
        tables.first().map(|one| one.table)
    }
}

/// Returns the raw event of a request for an event, if there is one. Off-core responses need a second register, also
/// the row without its value.
fn raw(event: &Event) -> Option<RawEvent> {
    let encoding = event.encoding;
    let raw = RawEvent::NONE
        .with_event(encoding.event)
        .with_umask(encoding.umask)
        .with_cmask(encoding.cmask)
        .with_inv(encoding.inv)
        .with_edge(encoding.edge);
    let needs_another = event.extra.is_some() || event.name == "OFFCORE_RESPONSE";
    (!needs_another && !encoding.any && !event.is_fixed() && raw.is_encodable()).then_some(raw)
}

/// Returns a different number of occurrences for each event. The model has unit masks of 8 bits.
fn work(selected: Selected) -> u64 {
    let Selected { event, umask, cmask, invert, edge } = selected;
    let flags = u64::from(invert) << 1 | u64::from(edge);
    1 + u64::from(umask) + (u64::from(event) << 8) + (u64::from(cmask) << 20) + (flags << 28)
}

fn selected(event: RawEvent) -> Selected {
    let [umask, _] = event.umask().to_le_bytes();
    Selected { event: event.event(), umask, cmask: event.cmask(), invert: event.inv(), edge: event.edge() }
}

#[test]
fn every_event_is_placed_on_a_counter_of_the_facts_and_counts_what_occurred() {
    let mut seen = BTreeSet::new();
    let (mut counted, mut refused) = (0, BTreeMap::new());
    for identity in cpuid_dumps::all().iter().filter(|identity| !identity.name.contains("kvm")) {
        let Some(table) = table(identity).filter(|table| !seen.contains(table.name())) else { continue };
        let machine = SimMachine::new(identity, 1);
        let mut engine = Engine::new(&machine, [0; 4]).unwrap();
        if engine.sampler().hal().interface().counters() == 0 {
            continue;
        }
        seen.insert(table.name());
        let client = Client::open(&mut engine, 1, 10);
        for (event, raw) in
            table.events().filter_map(|event| Some((raw(&event)?, event))).map(|(raw, event)| (event, raw))
        {
            let is_plain = raw.cmask() == 0 && !raw.inv() && !raw.edge();
            let counters = if is_plain { 0 } else { u32::from(event.counters.general_mask) };
            let request = EventRequest { source: raw.source().0, modes: modes::BOTH, counters, ..EventRequest::EMPTY };
            let answer = client.start_with(&mut engine, HEADER, &[request]).header();
            if answer.status != 0 {
                refused.insert((table.name(), event.name.clone()), (answer.cause, answer.detail[0]));
                continue;
            }
            assert_eq!((answer.status, answer.cause), (0, 0), "{}: {}", identity.name, event.name);
            machine.run(0, Mode::User, &work);
            let counts = client.read(&mut engine, answer.detail[0]);
            let [count] = counts[..] else { panic!("{}: {}", identity.name, event.name) };
            assert_eq!(count.count, work(selected(raw)), "{}: {}", identity.name, event.name);
            let is_allowed = u32::from(event.counters.general_mask) >> count.counter & 1 == 1;
            assert!(is_allowed, "{}: {} on {}", identity.name, event.name, count.counter);
            client.stop(&mut engine, answer.detail[0], None);
            counted += 1;
        }
        engine.shut_down();
    }
    println!("{counted} events of {} tables", seen.len());
    let refused: Vec<_> =
        refused.iter().map(|((table, event), (cause, detail))| (*table, event.as_str(), *cause, *detail)).collect();
    assert_eq!(refused, REFUSED);
    assert_eq!((seen.len(), counted), (53, 12_663));
}
