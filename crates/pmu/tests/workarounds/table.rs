//! The table: which processors need which workaround.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use pmu::errata::workarounds::{Action, WORKAROUNDS, Workarounds};
use simulation::SimMachine;

fn of(name: &str) -> Workarounds {
    Workarounds::of_processor(SimMachine::named(name, 1).processor(0))
}

#[test]
fn numbers_are_unique_and_ascending_and_fit_a_reply() {
    let numbers: Vec<u8> = WORKAROUNDS.iter().map(|workaround| workaround.number).collect();
    assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
    assert!(numbers.iter().all(|number| *number < 64));
    let all = Workarounds::from_bits(u64::MAX);
    assert_eq!(all.iter().count(), WORKAROUNDS.len());
}

#[test]
fn every_row_applies_to_an_identity() {
    let mut applied = BTreeSet::new();
    for identity in cpuid_dumps::all() {
        applied.extend(of(identity.name).iter().map(|workaround| workaround.number));
    }
    let missing = WORKAROUNDS.iter().filter(|row| !applied.contains(&row.number)).map(|row| row.action);
    // The table of identities has no such steppings of Sandy Bridge; `tests/debug_store.rs` has their signatures.
    let others = [Action::PreciseRecordsSince(0x618), Action::PreciseRecordsSince(u32::MAX)];
    assert_eq!(missing.collect::<Vec<_>>(), others);
}

#[test]
fn processors_have_the_workarounds_that_linux_has_for_them() {
    use Action::{
        AlignPeriods, KeepOtherThreadFree, LeaveCounter3, MergeCounters, NoPreciseRecords, OneCorePerNode,
        PreciseRecordsSince, ResetCounters, ThreeFixedCounters,
    };
    for (name, wanted) in [
        ("nehalem-920", vec![ResetCounters]),
        ("westmere-980x", vec![ResetCounters]),
        ("core2-6420", vec![ThreeFixedCounters, NoPreciseRecords]),
        ("core2-e5200", vec![]),
        ("diamondville-230", vec![ThreeFixedCounters]),
        ("sandy-bridge-2600k", vec![KeepOtherThreadFree, PreciseRecordsSince(0x28)]),
        ("ivy-bridge-ep-4930k", vec![KeepOtherThreadFree]),
        ("ivy-bridge-3570k", vec![]),
        ("haswell-4710mq", vec![KeepOtherThreadFree]),
        ("broadwell-u-5y70", vec![AlignPeriods]),
        ("skylake-sp-tsx-derived", vec![LeaveCounter3]),
        ("skylake-sp-6154", vec![]),
        ("ice-lake-1065g7", vec![]),
        ("k8-clawhammer", vec![OneCorePerNode]),
        ("magny-cours-es", vec![OneCorePerNode]),
        ("griffin-es", vec![OneCorePerNode]),
        ("llano-3850", vec![OneCorePerNode]),
        ("bobcat-c50", vec![OneCorePerNode]),
        ("bulldozer-fx8150", vec![]),
        ("jaguar-a4-5000", vec![]),
        ("zen-1800x", vec![MergeCounters]),
        ("hygon-dhyana-3185", vec![MergeCounters]),
        ("zen3-5950x", vec![MergeCounters]),
        ("zen5-9800x3d", vec![MergeCounters]),
        ("kaixian-kx7000", vec![]),
        ("p6-dothan", vec![]),
    ] {
        let found: Vec<Action> = of(name).iter().map(|row| row.action).filter(|it| *it != Action::StopInSmm).collect();
        assert_eq!(found, wanted, "{name}");
    }
}

/// Reads the table in the comment on [`WORKAROUNDS`], and returns the files that it names for each number.
fn files_of_tests() -> BTreeMap<u8, String> {
    let source = include_str!("../../src/errata/workarounds.rs");
    let rows = source.lines().filter_map(|line| line.strip_prefix("/// | ")).filter(|row| row.contains(".rs`"));
    let mut files = BTreeMap::new();
    for row in rows {
        let (numbers, rest) = row.split_once(" | ").unwrap();
        let file = rest.split('`').nth(1).unwrap();
        for number in numbers.split(", ") {
            let (first, last) = number.split_once(" to ").unwrap_or((number, number));
            for number in first.parse().unwrap()..=last.parse::<u8>().unwrap() {
                assert!(files.insert(number, file.to_owned()).is_none(), "{number} twice");
            }
        }
    }
    files
}

#[test]
fn the_comment_names_the_test_of_every_workaround() {
    let files = files_of_tests();
    assert!(files.keys().eq(WORKAROUNDS.iter().map(|workaround| &workaround.number)), "{files:?}");
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().parent().unwrap();
    for file in files.values() {
        assert!(crates.join(file).is_file(), "{file}");
    }
}
