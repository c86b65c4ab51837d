//! The tables of sources against the seeds, row by row.

#![expect(clippy::panic, clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::collections::BTreeSet;

use profile::{Kind, ProfileSource, Source};

/// Seed 000: Value, Symbol, Select.
const AMD64: &str = include_str!("seeds/amd64.txt");

/// Seed 002: Value, Name, EBX Bit (`-` for none), Select.
const EMON: &str = include_str!("seeds/emon.txt");

fn number(text: &str) -> u32 {
    u32::from_str_radix(text.trim_start_matches("0x"), 16).unwrap()
}

/// (value, name, EBX bit, select)
fn rows(seed: &'static str) -> Vec<(u32, &'static str, Option<u8>, u32)> {
    let row = |line: &'static str| match line.split(' ').collect::<Vec<_>>()[..] {
        [value, name, select] => (number(value), name, None, number(select)),
        [value, name, bit, select] => (number(value), name, bit.parse().ok(), number(select)),
        _ => panic!("{line}"),
    };
    seed.lines().map(row).collect()
}

fn as_in_the_seed(source: &ProfileSource) -> (u32, String, Option<u8>, u32) {
    (source.source.0, format!("Profile{}", source.name), source.ebx_bit, source.select)
}

#[test]
fn every_row_of_the_seeds_is_a_row_of_the_table_and_there_are_no_others() {
    for (kind, seed, length) in [(Kind::Amd64, AMD64, 176), (Kind::Emon, EMON, 13)] {
        let wanted = rows(seed);
        assert_eq!(wanted.len(), length);
        let table: Vec<_> = kind.sources().iter().map(as_in_the_seed).collect();
        let wanted: Vec<_> = wanted.into_iter().map(|(v, name, bit, s)| (v, name.to_owned(), bit, s)).collect();
        assert_eq!(table, wanted, "{}", kind.name());
    }
    assert_eq!(Kind::Default.sources().len(), 1);
}

#[test]
fn every_interface_has_profile_time_and_no_number_or_name_twice() {
    for kind in Kind::ALL {
        let sources = kind.sources();
        assert_eq!(sources.first().map(|row| row.source), Some(Source::TIME), "{}", kind.name());
        assert!(sources.is_sorted_by_key(|row| row.source));
        let names: BTreeSet<_> = sources.iter().map(|row| row.name.to_lowercase()).collect();
        assert_eq!(names.len(), sources.len(), "{}", kind.name());
    }
}

#[test]
fn every_select_asks_for_both_modes_and_for_nothing_that_enables() {
    const USER_AND_KERNEL: u32 = 0x0003_0000;
    const EVENT_AND_UNIT_MASK: u32 = 0x0000_FFFF;
    let of_two_registers = [Kind::NetBurst, Kind::Pentium];
    let kinds = Kind::ALL.iter().filter(|kind| !of_two_registers.contains(kind));
    for row in kinds.flat_map(|kind| kind.sources()).filter(|row| row.select != 0) {
        assert_eq!(row.select & !EVENT_AND_UNIT_MASK, USER_AND_KERNEL, "{}", row.name);
    }
}

/// SDM Vol. 3B, the tables of events of NetBurst: source, event select, event mask.
const NETBURST: [(u32, u32, u32); 6] =
    [(2, 0x02, 0x0001), (6, 0x06, 0x000F), (10, 0x0C, 0x0700), (11, 0x03, 0x0001), (19, 0x13, 1), (25, 0x13, 1)];

/// The same of P6: source, event select.
const P6: [(u32, u32); 8] =
    [(2, 0xC0), (6, 0xC4), (8, 0x45), (10, 0x24), (11, 0xC5), (19, 0x79), (21, 0x43), (25, 0x79)];

/// The same of Pentium.
const PENTIUM: [(u32, u32); 7] = [(2, 0x16), (6, 0x12), (8, 0x29), (9, 0x0E), (13, 0x22), (20, 0x0C), (21, 0x28)];

#[test]
fn the_tables_of_old_are_those_of_the_manuals_in_both_modes() {
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
