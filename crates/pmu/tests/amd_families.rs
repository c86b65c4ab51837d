//! The sources of AMD's families against the events that each family has, and the choice of the generation by family
//! and model.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::collections::BTreeMap;

use pmu::{Cpuid, Interface, Kind, ProfileInterface, Source, Support};
use raw_cpuid::CpuIdResult;
use simulation::SimMachine;

/// Event numbers and the bits of their unit masks, by generation.
const FACTS: &str = include_str!("facts/amd-events.csv");

/// Sources whose unit exists under another meaning, by generation: ranges of their numbers.
const CHANGED: [(&str, &[[u64; 2]]); 7] = [
    // "10h" has none.
    ("10h", &[]),
    // Bypasses are those of another queue.
    ("11h", &[[0xA0, 0xA0]]),
    // SSE instead of packed SSE; turnarounds from read to write; bypasses.
    ("12h", &[[0x76, 0x76], [0x9A, 0x9A], [0xA0, 0xA1]]),
    // Pipes; another queue; uncacheable data; SSE instead of MMX; bypasses.
    ("14h", &[[0x2C, 0x2C], [0x34, 0x34], [0x3A, 0x3A], [0x40, 0x40], [0x75, 0x75], [0xA0, 0xA1], [0x1A, 0x1B]]),
    // Pipes; results of refills; SSE; the load queue; kinds of exceptions.
    ("15h", &[[0x1A, 0x1F], [0x34, 0x37], [0x76, 0x76], [0x87, 0x87], [0x8B, 0x8E]]),
    // Pipes; uncacheable data; SSE; changes to dirty of any state.
    ("16h", &[[0x1A, 0x1B], [0x34, 0x34], [0x3A, 0x3A], [0x40, 0x40], [0x75, 0x75], [0xBE, 0xBE]]),
    ("zen6", &[]),
];

/// CPUID of a processor with another signature.
struct Signed<'a, C> {
    cpu: &'a C,
    signature: u32,
}

impl<C: Cpuid> Cpuid for Signed<'_, C> {
    fn cpuid(&self, leaf: u32, subleaf: u32) -> CpuIdResult {
        let mut registers = self.cpu.cpuid(leaf, subleaf);
        if matches!(leaf, 1 | 0x8000_0001) {
            registers.eax = self.signature;
        }
        registers
    }
}

/// Returns the interface of an AMD processor of this family and model.
fn interface(family: u32, model: u32) -> Interface {
    let machine = SimMachine::named(if family < 0x17 { "k10-thuban" } else { "zen5-9800x3d" }, 1);
    let signature = (family - 0xF) << 20 | (model >> 4) << 16 | 0xF00 | (model & 0xF) << 4;
    Interface::new(Kind::Amd64, &Signed { cpu: machine.processor(0), signature })
}

/// Returns the family and a model of a generation.
fn member(generation: &str) -> (u32, u32) {
    match generation {
        "zen6" => (0x1A, 0x50),
        family => (u32::from_str_radix(family.trim_end_matches('h'), 16).unwrap(), 1),
    }
}

/// Returns the unit masks of a generation's events.
fn events(generation: &str) -> BTreeMap<u64, u64> {
    let rows = FACTS.lines().filter_map(|line| line.strip_prefix(generation)?.strip_prefix(',')?.split_once(','));
    let number = |text| u64::from_str_radix(text, 16).unwrap();
    rows.map(|(event, units)| (number(event), number(units))).collect()
}

/// Returns event number and unit mask of a select.
fn event_of(select: u64) -> (u64, u64) {
    (select & 0xFF | select >> 24 & 0xF00, select >> 8 & 0xFF)
}

#[test]
fn every_source_of_a_family_selects_units_that_its_event_has() {
    for (generation, _) in CHANGED {
        let (family, model) = member(generation);
        let (interface, events) = (interface(family, model), events(generation));
        assert!(events.len() > 60, "{generation}");
        for row in interface.sources().iter().filter(|row| interface.support(row) == Support::Supported) {
            let (event, unit_mask) = event_of(row.select);
            let wrong = format!("{generation} {}: {event:#05x}/{unit_mask:#04x}", row.name);
            let units = events.get(&event).unwrap_or_else(|| panic!("{wrong}: no such event"));
            assert_eq!(unit_mask & !units, 0, "{wrong}: no such unit");
            assert_eq!(unit_mask == 0, *units == 0, "{wrong}: selects no unit of {units:#x}");
        }
    }
}

#[test]
fn a_source_is_missing_only_where_the_family_lacks_the_event_or_counts_something_else() {
    for (generation, changed) in CHANGED.into_iter().filter(|(generation, _)| generation.ends_with('h')) {
        let (family, model) = member(generation);
        let (interface, events) = (interface(family, model), events(generation));
        let missing = interface.sources().iter().filter(|row| interface.support(row) == Support::NotOnThisFamily);
        for row in missing {
            assert_eq!(row.select, 0, "{generation} {}", row.name);
            let hal = Kind::Amd64.sources().iter().find(|hal| hal.source == row.source).unwrap();
            let (event, unit_mask) = event_of(hal.select);
            let has_all =
                events.get(&event).is_some_and(|units| unit_mask & !units == 0 && (unit_mask == 0) == (*units == 0));
            let listed = changed.iter().any(|[first, last]| (*first..=*last).contains(&row.source.0));
            assert!(!has_all || listed, "{generation} {}: {event:#x}/{unit_mask:#x} exists", row.name);
        }
    }
}

#[test]
fn data_cache_misses_of_family_15_select_their_unit() {
    for number in [0x08, 0x32] {
        assert_eq!(interface(0x15, 2).find(Source(number)).unwrap().1.select, 0x3_0141);
    }
}

/// Unit mask and event of sources whose units the guides number in another way than those of the K8, by family.
const RENUMBERED: [(u32, &[(u64, u64)]); 6] = [
    // Both memory controllers: hits, misses and conflicts; turnarounds of modules, to writes, to reads.
    (0x10, &[(0x94, 0x09E0), (0x95, 0x12E0), (0x96, 0x24E0), (0x9A, 0x09E3), (0x9B, 0x12E3), (0x9C, 0x24E3)]),
    // Turnarounds to writes, to reads, of modules; HyperTransport with addresses before data.
    (0x11, &[(0x9A, 0x24E3), (0x9B, 0x09E3), (0x9C, 0x12E3), (0xB1, 0x04F6), (0xB2, 0x08F6), (0xB3, 0x10F6)]),
    (0x12, &[(0x99, 0x1BE3), (0x9B, 0x09E3), (0x9C, 0x12E3), (0x51, 0x3F7D), (0x57, 0x0F7E)]),
    // Misses of the L2 TLB by stores and loads, without those of the L1 TLB.
    (0x14, &[(0x46, 0x0C46), (0x45, 0x0045), (0x51, 0x0B7D), (0x57, 0x037E)]),
    (0x15, &[(0x33, 0x0F42), (0x39, 0x0043), (0x51, 0x5F7D), (0x57, 0x177E), (0x63, 0x0785), (0x8A, 0x1FDB)]),
    (0x16, &[(0x46, 0x0C46), (0x45, 0x0045), (0x2B, 0x0322), (0x47, 0x0347), (0x0D, 0x03CB)]),
];

#[test]
fn units_that_a_family_numbers_in_another_way_are_selected_by_its_numbers() {
    for (family, rows) in RENUMBERED {
        let interface = interface(family, 1);
        for (source, select) in rows {
            let row = interface.find(Source(*source)).unwrap().1;
            assert_eq!(row.select, 0x3_0000 | select, "{family:#x} {}", row.name);
        }
    }
}

#[test]
fn the_generation_depends_on_family_and_model() {
    /// RetireTokenStall, in [family, model, unit mask].
    const STALLS: Source = Source(0x1027);
    let unit_mask = |family, model| event_of(interface(family, model).find(STALLS).unwrap().1.select).1;
    for model in [0x02, 0x11, 0x24, 0x44, 0x60, 0x70] {
        assert_eq!(unit_mask(0x1A, model), 0x20, "{model:#x}: Zen 5");
    }
    for model in [0x50, 0x5F, 0x80, 0x90, 0xA8, 0xC0, 0xE0] {
        assert_eq!(unit_mask(0x1A, model), 0x80, "{model:#x}: Zen 6");
    }
    let microcode = |model| interface(0x19, model).find(Source(0x1006)).unwrap().1.select != 0;
    assert_eq!(
        [0x01, 0x21, 0x44, 0x50, 0x11, 0x18, 0x61, 0x74, 0xA0].map(microcode),
        [false, false, false, false, true, true, true, true, true]
    );
}

#[test]
fn an_unknown_model_has_the_events_that_every_zen_has_and_refuses_the_others_with_the_reason() {
    for (family, model) in [(0x1A, 0x30), (0x1A, 0xB0), (0x1A, 0xF0), (0x19, 0xB0), (0x1B, 0x00), (0x20, 0x10)] {
        let interface = interface(family, model);
        let (mut had, mut refused) = (Vec::new(), 0);
        for row in interface.sources().iter() {
            match interface.support(&row) {
                Support::Supported => had.push((row.source.0, row.select)),
                Support::ModelNotKnown => refused += 1,
                other => panic!("{family:#x} {model:#x} {}: {other:?}", row.name),
            }
        }
        let wanted = [
            (0x00, 0x3_0076),
            (0x02, 0x3_00C0),
            (0x06, 0x3_00C2),
            (0x0B, 0x3_00C3),
            (0x13, 0x3_0076),
            (0x68, 0x3_00C0),
            (0x6A, 0x3_00C2),
            (0x6B, 0x3_00C3),
        ];
        assert_eq!(had, wanted, "{family:#x} {model:#x}");
        assert!(refused > 200, "{refused}");
    }
}
