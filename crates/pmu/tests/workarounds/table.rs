//! The table: which processors need which workaround.

use std::collections::BTreeSet;

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
    let steppings = [Action::PreciseRecordsSince(0x618), Action::PreciseRecordsSince(u32::MAX)];
    assert_eq!(missing.collect::<Vec<_>>(), steppings);
}

#[test]
fn processors_have_the_workarounds_that_linux_has_for_them() {
    use Action::{
        AlignPeriods, KeepOtherThreadFree, LeaveCounter3, NoPreciseRecords, PreciseRecordsSince, ResetCounters,
        ThreeFixedCounters,
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
        ("zen-1800x", vec![]),
        ("p6-dothan", vec![]),
    ] {
        let found: Vec<Action> = of(name).iter().map(|row| row.action).filter(|it| *it != Action::StopInSmm).collect();
        assert_eq!(found, wanted, "{name}");
    }
}
