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
    for row in Kind::ALL.iter().flat_map(|kind| kind.sources()).filter(|row| row.select != 0) {
        assert_eq!(row.select & !EVENT_AND_UNIT_MASK, USER_AND_KERNEL, "{}", row.name);
    }
}
