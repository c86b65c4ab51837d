//! Every event of the makers' tables on a processor of its table: it is placed on a counter of the facts, and its count
//! is what the model says occurred.

use std::collections::{BTreeMap, BTreeSet};

use cpuid_dumps::CpuIdentity;
use engine::Engine;
use events::{Event, Identity, Table, Vendor, core_tables};
use model::{Mode, Selected};
use pmu::ProfileInterface;
use pmu::extra::Selector;
use pmu::source::RawEvent;
use protocol::{EventRequest, StartHeader, modes};
use simulation::{Client, SimMachine};

/// Events that the driver refuses: table, cause with its first detail, and how many names.
///
/// Cause 3, details 3: leaf 0xA says that CPU_CLK_UNHALTED.REF_P is not available; 17: a threshold of load latency
/// below 3; 18: load latency needs an auxiliary event.
const REFUSED: &[(&str, u32, u64, usize)] = &[
    ("alderlake_goldencove", 3, 18, 9),
    ("emeraldrapids", 3, 18, 9),
    ("nehalemep", 3, 17, 1),
    ("nehalemex", 3, 3, 1),
    ("nehalemex", 3, 17, 1),
    ("pantherlake_darkmont", 3, 17, 1),
    ("sapphirerapids", 3, 18, 9),
    ("westmereep-dp", 3, 3, 1),
    ("westmereep-dp", 3, 17, 1),
    ("westmereep-sp", 3, 3, 1),
    ("westmereep-sp", 3, 17, 1),
    ("westmereex", 3, 3, 1),
    ("westmereex", 3, 17, 1),
];

/// Events between two samples: more than occur here.
const INTERVAL: u32 = i32::MAX as u32;

/// Counts on every processor.
const HEADER: StartHeader = StartHeader::EMPTY;

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

/// Returns the raw event of a request for an event, and the selector and the value of its extra register, if there is
/// such a request. The row of off-core responses without a value counts nothing.
fn raw(event: &Event) -> Option<(RawEvent, u8, u64)> {
    let encoding = event.encoding;
    let raw = RawEvent::new()
        .with_event(encoding.event)
        .with_umask(encoding.umask)
        .with_cmask(encoding.cmask)
        .with_inv(encoding.inv)
        .with_edge(encoding.edge)
        .with_any(encoding.any);
    let (selector, value) = match &event.extra {
        None if event.name == "OFFCORE_RESPONSE" || event.is_fixed() => return None,
        None => (0, 0),
        Some(extra) => {
            let selector = match extra.registers.first()?.msr {
                0x1A6 | 0x1A7 | 0x3E0..=0x3E3 => Selector::OffcoreResponse,
                0x3F6 => Selector::LoadLatency,
                0x3F7 => Selector::FrontEnd,
                _ => return None,
            };
            (selector as u8, extra.value)
        }
    };
    Some((raw, selector, value))
}

/// Returns a different number of occurrences for each event and most values of its extra register.
fn work(selected: Selected, extra: u64) -> u64 {
    let Selected { event, umask, cmask, invert, edge } = selected;
    let flags = u64::from(invert) << 1 | u64::from(edge);
    let of_value = (extra ^ extra >> 32) & 0xFFFF_FFFF;
    1 + u64::from(umask) + (u64::from(event) << 16) + (u64::from(cmask) << 28) + (flags << 36) + of_value
}

fn selected(event: RawEvent) -> Selected {
    Selected {
        event: event.event(),
        umask: event.umask(),
        cmask: event.cmask(),
        invert: event.inv(),
        edge: event.edge(),
    }
}

#[test]
fn every_event_is_placed_on_a_counter_of_the_facts_and_counts_what_occurred() {
    let mut seen = BTreeSet::new();
    let (mut number, mut refused) = (0, BTreeMap::new());
    for identity in cpuid_dumps::all().iter().filter(|identity| !identity.name.contains("kvm")) {
        let Some(table) = table(identity).filter(|table| !seen.contains(table.name())) else { continue };
        let machine = SimMachine::new(identity, 1);
        let mut engine = Engine::new(&machine, [0; 4]).unwrap();
        if engine.sampler().hal().interface().counters() == 0 {
            continue;
        }
        seen.insert(table.name());
        let client = Client::open(&mut engine, 1, 10);
        for event in table.events() {
            let Some((raw, selector, value)) = raw(&event) else { continue };
            // The driver's constraints are about unit masks of 8 bits.
            let counters = if raw.umask() > 0xFF { u32::from(event.counters.general_mask) } else { 0 };
            let source = raw.with_selector(selector).source().0;
            let requested = protocol::Event { source, extra: value, counters, core_type: 0 };
            let counted = EventRequest { event: requested, modes: modes::USER, ..EventRequest::EMPTY };
            // Load latency is measured by precise samples only.
            let is_latency = selector == Selector::LoadLatency as u8;
            let (header, request) = if is_latency {
                let precise = EventRequest { modes: modes::USER | modes::PRECISE, interval: INTERVAL, ..counted };
                (StartHeader { ring: 64, ..HEADER }, precise)
            } else {
                (HEADER, counted)
            };
            let answer = client.start_with(&mut engine, header, &[request]).header();
            if answer.status != 0 {
                *refused.entry((table.name(), answer.cause, answer.detail[0])).or_insert(0) += 1;
                continue;
            }
            assert_eq!((answer.status, answer.cause), (0, 0), "{}: {}", identity.name, event.name);
            machine.processor(0).model().run_with_extra(Mode::User, &work);
            let counts = client.read(&mut engine, answer.detail[0]);
            let [count] = counts[..] else { panic!("{}: {}", identity.name, event.name) };
            assert_eq!(count.count, work(selected(raw), value), "{}: {}", identity.name, event.name);
            let is_allowed = u32::from(event.counters.general_mask) >> count.counter & 1 == 1;
            assert!(is_allowed, "{}: {} on {}", identity.name, event.name, count.counter);
            client.stop(&mut engine, answer.detail[0], None);
            number += 1;
        }
        engine.shut_down();
    }
    println!("{number} events of {} tables", seen.len());
    let refused: Vec<_> =
        refused.into_iter().map(|((table, cause, detail), names)| (table, cause, detail, names)).collect();
    assert_eq!(refused, REFUSED);
    assert_eq!((seen.len(), number), (54, 19_928));
}
