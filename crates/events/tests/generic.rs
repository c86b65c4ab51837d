//! What the generic names stand for on each generation, by constants of this test.
#![cfg(test)]

use crate::common::identity;
use events::{Generic, GenericError, Identity, Target, Vendor};

/// Selects of cycles, instructions, branches, branch misses, cache references and cache misses; of reference cycles the
/// select, or 0xF2 for fixed counter 2, or 0 if there are none.
type Selects = [u64; 7];

const ARCHITECTURAL: Selects = [0x3C, 0xC0, 0xC4, 0xC5, 0x4F2E, 0x412E, 0xF2];
const P6: Selects = [0x79, 0xC0, 0xC4, 0xC5, 0x0F2E, 0x012E, 0];
const K8: Selects = [0x76, 0xC0, 0xC2, 0xC3, 0x077D, 0x077E, 0];
const ZEN: Selects = [0x76, 0xC0, 0xC2, 0xC3, 0xFF60, 0x0964, 0];
const ZEN4: Selects = [0x76, 0xC0, 0xC2, 0xC3, 0xFF60, 0x0964, 0x1_0000_0120];

const GENERATIONS: [(&str, Selects); 35] = [
    ("p6-coppermine", P6),
    ("p6-dothan", P6),
    ("yonah-t2400", ARCHITECTURAL),
    ("core2-6420", ARCHITECTURAL),
    ("nehalem-920", ARCHITECTURAL),
    ("westmere-980x", ARCHITECTURAL),
    ("sandy-bridge-2600k", ARCHITECTURAL),
    ("ivy-bridge-3570k", ARCHITECTURAL),
    ("haswell-4710mq", ARCHITECTURAL),
    ("broadwell-6950x", ARCHITECTURAL),
    ("skylake-6600k", ARCHITECTURAL),
    ("ice-lake-1065g7", ARCHITECTURAL),
    ("sapphire-rapids-2475x", ARCHITECTURAL),
    ("alder-lake-p-12900h", ARCHITECTURAL),
    ("alder-lake-p-12900h-efficient", ARCHITECTURAL),
    ("lunar-lake-288v", ARCHITECTURAL),
    ("panther-lake-355", ARCHITECTURAL),
    ("nova-lake-derived", ARCHITECTURAL),
    ("diamond-rapids-derived", ARCHITECTURAL),
    ("atom-d425", ARCHITECTURAL),
    ("bay-trail-z3745", ARCHITECTURAL),
    ("knights-landing-7210", ARCHITECTURAL),
    ("goldmont-plus-n4100", ARCHITECTURAL),
    ("k8-brisbane", K8),
    ("k10-thuban", K8),
    ("bulldozer-fx8150", K8),
    ("jaguar-a4-5000", K8),
    ("zen-1800x", ZEN),
    ("hygon-dhyana-3185", ZEN),
    ("zen2-3600x", ZEN),
    ("zen3-5950x", ZEN),
    ("zen4-7700x", ZEN4),
    ("zen5-9800x3d", ZEN4),
    ("zen6-venice-derived", ZEN4),
    ("venice-3200", K8),
];

fn find(name: &str) -> Identity {
    identity(cpuid_dumps::find(name).unwrap_or_else(|| panic!("{name}"))).unwrap()
}

#[test]
fn a_generic_name_selects_the_event_of_each_generation() {
    for (name, selects) in GENERATIONS {
        let identity = find(name);
        let counted = ["cycles", "instructions", "branches", "branch-misses", "cache-references", "cache-misses"];
        for (generic, select) in counted.into_iter().chain(["ref-cycles"]).zip(selects) {
            let target = Generic::from_name(generic).unwrap().target(identity);
            match (select, target) {
                (0, Err(GenericError::NoEvent(..))) => {}
                (0xF2, Ok(Target::Event { counters, .. })) => {
                    assert_eq!((counters.general_mask, counters.fixed_mask), (0, 1 << 2), "{name}");
                }
                (_, Ok(Target::Event { encoding, .. })) => assert_eq!(encoding.select(), select, "{name}: {generic}"),
                (_, other) => panic!("{name}: {generic}: {other:?}"),
            }
        }
        assert_eq!(Generic::from_name("CPU-Clock").unwrap().target(identity), Ok(Target::Time));
    }
}

#[test]
fn cycles_and_instructions_have_fixed_counters_too() {
    for (name, fixed) in [("cycles", 1), ("instructions", 0)] {
        let Ok(Target::Event { counters, .. }) = Generic::from_name(name).unwrap().target(find("skylake-6600k")) else {
            panic!()
        };
        assert_eq!((counters.general_mask, counters.fixed().collect::<Vec<_>>()), (u16::MAX, vec![fixed]));
    }
}

#[test]
fn netburst_and_pentium_count_profile_sources() {
    for name in ["netburst-irwindale", "pentium-p54c"] {
        for (generic, source) in
            [("cycles", 0x13), ("cpu-cycles", 0x13), ("branch-instructions", 6), ("branch-misses", 0xB)]
        {
            assert_eq!(Generic::from_name(generic).unwrap().target(find(name)), Ok(Target::Source(source)), "{name}");
        }
    }
}

#[test]
fn an_unknown_maker_or_family_is_an_error() {
    let k7 = Identity { vendor: Vendor::Amd, family: 6, model: 10, stepping: 0 };
    assert_eq!(Generic::Cycles.target(k7), Err(GenericError::UnknownProcessor(k7)));
    assert_eq!(Generic::from_name("cycle"), None);
}
