//! The source tables compared with the HAL's tables row by row, and those of Zen with AMD's event lists.

#![expect(clippy::panic, clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::collections::BTreeSet;

use pmu::interface::emon;
use pmu::{Interface, Kind, ProfileInterface, ProfileSource, Source, Support};
use simulation::SimMachine;

/// HAL Amd64 interface, section 2.2: Value, Symbol, Select.
const AMD64: &str = include_str!("hal_tables/amd64.txt");

/// HAL Emon interface, section 2.2: Value, Name, EBX Bit (`-` for none), Select.
const EMON: &str = include_str!("hal_tables/emon.txt");

/// Number, name, and for Zen and Zen 2, Zen 3, Zen 4 and Zen 5 event and unit mask, or `-`; after the event lists in
/// tools/perf/pmu-events/arch/x86/amdzen1 to amdzen5 of Linux.
const ZEN: &str = include_str!("zen.txt");

/// An identity for each column.
const ZENS: [&str; 5] = ["zen-1800x", "zen2-3600x", "zen3-5950x", "zen4-7700x", "zen5-9800x3d"];

fn number(text: &str) -> u64 {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap()
}

fn interface_of(name: &str) -> Interface {
    Interface::new(Kind::Amd64, SimMachine::named(name, 1).processor(0))
}

/// (value, name, EBX bit, select)
fn rows(table: &'static str) -> Vec<(u64, &'static str, Option<u8>, u64)> {
    let row = |line: &'static str| match line.split(' ').collect::<Vec<_>>()[..] {
        [value, name, select] => (number(value), name, None, number(select)),
        [value, name, bit, select] => (number(value), name, bit.parse().ok(), number(select)),
        _ => panic!("{line}"),
    };
    table.lines().map(row).collect()
}

fn as_in_the_seed(kind: Kind, source: &ProfileSource) -> (u64, String, Option<u8>, u64) {
    let bit = if kind == Kind::Emon { emon::ebx_bit(source) } else { None };
    (source.source.0, format!("Profile{}", source.name), bit, source.select)
}

#[test]
fn every_row_of_the_seeds_is_a_row_of_the_table_and_there_are_no_others() {
    for (kind, table, length) in [(Kind::Amd64, AMD64, 176), (Kind::Emon, EMON, 13)] {
        let wanted = rows(table);
        assert_eq!(wanted.len(), length);
        let table: Vec<_> = kind.sources().iter().map(|row| as_in_the_seed(kind, row)).collect();
        let wanted: Vec<_> = wanted.into_iter().map(|(v, name, bit, s)| (v, name.to_owned(), bit, s)).collect();
        assert_eq!(table, wanted, "{}", kind.name());
    }
    assert_eq!(Kind::Default.sources().len(), 1);
}

#[test]
fn every_row_of_the_seed_is_countable_on_a_k8_bit_for_bit() {
    for name in ["k8-clawhammer", "k8-sledgehammer", "k8-brisbane", "winchester-2800", "windsor-6400", "kvm-qemu-amd"] {
        let interface = interface_of(name);
        let countable = interface.sources().iter().filter(|row| interface.support(row) == Support::Supported);
        let countable: Vec<_> = countable.map(|row| as_in_the_seed(Kind::Amd64, &row)).collect();
        let wanted: Vec<_> = rows(AMD64).into_iter().map(|(v, name, bit, s)| (v, name.to_owned(), bit, s)).collect();
        assert_eq!(countable, wanted, "{name}");
    }
}

/// Returns number, name and select of each row in a column of [`ZEN`].
fn zen_rows(column: usize) -> Vec<(u64, &'static str, u64)> {
    let row = |line: &'static str| {
        let [source, name, encodings @ ..] = &line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let (event, umask) = encodings.get(column)?.split_once('/')?;
        let event = number(event);
        Some((number(source), *name, (event >> 8) << 32 | 0x0003_0000 | number(umask) << 8 | event & 0xFF))
    };
    ZEN.lines().filter_map(row).collect()
}

#[test]
fn a_zen_has_the_events_of_its_generation_and_reports_the_others_as_missing() {
    let columns = [0, 0, 1, 2, 3];
    for (name, column) in ZENS.into_iter().zip(columns) {
        let interface = interface_of(name);
        let (mut had, mut without) = (Vec::new(), Vec::new());
        for row in interface.sources().iter() {
            let entry = (row.source.0, row.name, row.select);
            match interface.support(&row) {
                Support::Supported => had.push(entry),
                Support::NotOnThisFamily => without.push(entry),
                other => panic!("{name} {}: {other:?}", row.name),
            }
        }
        assert_eq!(had, zen_rows(column), "{name}");
        assert!(without.iter().all(|(.., select)| *select == 0), "{name}");
        // Every name of the HAL's table is listed with its number.
        let told: BTreeSet<_> = had.iter().chain(&without).map(|(number, name, _)| (*number, *name)).collect();
        let table = rows(AMD64).into_iter().map(|(number, name, ..)| (number, name.trim_start_matches("Profile")));
        assert!(table.into_iter().all(|row| told.contains(&row)), "{name}");
    }
}

#[test]
fn events_that_differ_between_generations_of_zen_are_encoded_for_each() {
    for (source, selects) in [
        (0x08, [0x3_C860, 0x3_C860, 0x3_E860, 0x3_E860, 0x3_E060]), // DcacheMisses
        (0x09, [0x3_1060, 0x3_1060, 0x1_0003_188E, 0x1_0003_188E, 0x1_0003_188E]), // IcacheMisses
        (0x14, [0, 0, 0x1_0003_1F8E, 0x1_0003_1F8E, 0x1_0003_1F8E]), // IcacheIssues
        (0x22, [0; 5]),                                             // LSSegmentRegisterLoad
        (0x1006, [0, 0, 0, 0x1_0003_00C2, 0x1_0003_00C2]),          // RetiredMicrocodeOps
        (0x101F, [0, 0, 0x2_0003_038F, 0x2_0003_038F, 0x2_0003_038F]), // OpCacheHits
    ] {
        let of = |name| interface_of(name).find(Source(source)).unwrap().1.select;
        assert_eq!(ZENS.map(of), selects, "{source:#x}");
    }
}

/// All tables, by interface kind and by family.
fn tables() -> Vec<Vec<ProfileSource>> {
    let families = ZENS.iter().map(|name| match interface_of(name) {
        Interface::Amd64(amd64) => amd64.sources().iter().collect(),
        other => panic!("{other:?}"),
    });
    Kind::ALL.iter().map(|kind| kind.sources().to_vec()).chain(families).collect()
}

#[test]
fn every_table_has_profile_time_and_no_number_or_name_twice() {
    for sources in tables() {
        assert_eq!(sources.first().map(|row| row.source), Some(Source::TIME));
        assert!(sources.windows(2).all(|pair| pair[0].source < pair[1].source));
        let names: BTreeSet<_> = sources.iter().map(|row| row.name.to_lowercase()).collect();
        assert_eq!(names.len(), sources.len());
    }
}

#[test]
fn every_select_asks_for_both_modes_and_for_nothing_that_enables() {
    const USER_AND_KERNEL: u64 = 0x0003_0000;
    const EVENT_AND_UNIT_MASK: u64 = 0xF_0000_FFFF;
    let of_two_registers = [Kind::NetBurst.sources(), Kind::Pentium.sources()];
    let tables = tables().into_iter().filter(|table| !of_two_registers.contains(&table.as_slice()));
    for row in tables.flatten().filter(|row| row.select != 0) {
        assert_eq!(row.select & !EVENT_AND_UNIT_MASK, USER_AND_KERNEL, "{}", row.name);
    }
}

/// Source, event select and event mask on NetBurst (SDM Vol. 3B, tables of events).
const NETBURST: [(u64, u64, u64); 6] =
    [(2, 0x02, 0x0001), (6, 0x06, 0x000F), (10, 0x0C, 0x0700), (11, 0x03, 0x0001), (19, 0x13, 1), (25, 0x13, 1)];

/// Source and event select on P6.
const P6: [(u64, u64); 8] =
    [(2, 0xC0), (6, 0xC4), (8, 0x45), (10, 0x24), (11, 0xC5), (19, 0x79), (21, 0x43), (25, 0x79)];

/// Source and event select on Pentium.
const PENTIUM: [(u64, u64); 7] = [(2, 0x16), (6, 0x12), (8, 0x29), (9, 0x0E), (13, 0x22), (20, 0x0C), (21, 0x28)];

#[test]
fn the_tables_of_the_old_interfaces_are_those_of_the_manuals_in_both_modes() {
    let table = |kind: Kind| kind.sources().iter().skip(1).map(|row| (row.source.0, row.select)).collect::<Vec<_>>();
    // ESCR: event select 30:25, event mask 24:9, T0_OS, T0_USR. PerfEvtSel: OS, USR. CESR: CC0 3.
    assert_eq!(table(Kind::NetBurst), NETBURST.map(|(source, event, mask)| (source, event << 25 | mask << 9 | 0xC)));
    assert_eq!(table(Kind::P6), P6.map(|(source, event)| (source, 3 << 16 | event)));
    assert_eq!(table(Kind::Pentium), PENTIUM.map(|(source, event)| (source, 3 << 6 | event)));
}

#[test]
fn a_number_below_0x18_means_the_same_on_every_interface_that_has_it() {
    let rows = || Kind::ALL.into_iter().flat_map(Kind::sources).filter(|row| row.source.0 < 0x18);
    for row in rows() {
        assert!(rows().all(|other| (other.source == row.source) == (other.name == row.name)), "{}", row.name);
    }
}
