//! The errata of named sources, by the signatures of real processors.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use pmu::Source;
use pmu::errata::named_sources::{self as errata, Cores};
use x86_defs::cpuid::Signature;

/// Returns the numbers of the errata of a source on a processor, and whether they concern efficient cores only.
fn of(name: &str, source: u64) -> (Vec<&'static str>, bool) {
    let [signature, ..] = cpuid_dumps::find(name).unwrap().cpuid().cpuid(1, 0);
    let errata: Vec<_> = errata::of_processor(Signature::from_bits(signature))
        .filter(|erratum| erratum.sources().any(|of| of.source == Source(source)))
        .collect();
    let efficient = errata.iter().any(|erratum| erratum.cores == Cores::Efficient);
    (errata.into_iter().map(|erratum| erratum.number).collect(), efficient)
}

/// TotalIssues and InstructionsRetired, BranchInstructions and BranchInstructionsRetired, CacheMisses, LLCReference and
/// LLCMisses by their numbers.
const INSTRUCTIONS: [u64; 2] = [2, 26];
const BRANCHES: [u64; 2] = [6, 30];
const LAST_LEVEL: [u64; 3] = [10, 28, 29];

#[test]
fn the_errata_of_an_event_are_those_of_intels_event_files() {
    for name in ["haswell-4710mq", "haswell-ult-4500u", "haswell-ep-2699"] {
        for source in INSTRUCTIONS {
            assert_eq!(of(name, source), (vec!["HSD11", "HSD140"], false), "{name}");
        }
        assert!(of(name, BRANCHES[0]).0.is_empty());
    }
    for name in ["broadwell-u-5y70", "broadwell-6950x", "broadwell-de-1540"] {
        assert_eq!(INSTRUCTIONS.map(|source| of(name, source)), [(); 2].map(|()| (vec!["BDM61"], false)), "{name}");
    }
    for name in ["skylake-6600k", "skylake-sp-6154", "cascade-lake-8269c", "kaby-lake-7200u", "comet-lake-10900k"] {
        for source in INSTRUCTIONS {
            assert_eq!(of(name, source).0, ["SKL044", "SKL091"], "{name}");
        }
        for source in BRANCHES {
            assert_eq!(of(name, source).0, ["SKL091"], "{name}");
        }
        for source in LAST_LEVEL {
            assert_eq!(of(name, source).0, ["SKL057"], "{name}");
        }
    }
    for source in BRANCHES {
        assert_eq!(of("meteor-lake-155h", source), (vec!["MTL012", "MTL013"], true));
        assert_eq!(of("arrow-lake-u-265u", source), (vec!["MTL012", "MTL013"], true));
        assert_eq!(of("arrow-lake-h-285h", source), (vec!["ARL010", "ARL011"], true));
        assert_eq!(of("sierra-forest-derived", source), (vec!["SRF6", "SRF7"], false));
    }
}

/// AMD's revision guide for family 19h models 00h to 0Fh, 1292; Vermeer, model 21h, has another guide.
#[test]
fn retire_events_of_milan_overcount() {
    for source in [0x02, 0x06, 0x0B, 0x68, 0x6A, 0x6D] {
        assert_eq!(of("milan-7713", source), (vec!["1292"], false), "{source:#x}");
        assert_eq!([of("zen3-5950x", source), of("zen2-3600x", source)], [(); 2].map(|()| (vec![], false)));
    }
    // Cycles, and retired micro-coded instructions, event 1C1H.
    assert_eq!([0x13, 0x1005].map(|source| of("milan-7713", source).0.len()), [0; 2]);
}

#[test]
fn other_processors_and_events_have_none() {
    // Family 0Fh has models with the same numbers.
    assert_eq!(errata::of_processor(Signature::from_bits(0x0003_0FC0)).count(), 0);
    for identity in cpuid_dumps::all() {
        // Core cycles, and a number that no interface has.
        for source in [0x19, 0xFFFF] {
            assert!(of(identity.name, source).0.is_empty(), "{}", identity.name);
        }
    }
    for name in ["ice-lake-1065g7", "alder-lake-12900k", "lunar-lake-288v", "arrow-lake-245k", "nehalem-920"] {
        let sources = INSTRUCTIONS.into_iter().chain(BRANCHES).chain(LAST_LEVEL);
        assert!(sources.into_iter().all(|source| of(name, source).0.is_empty()), "{name}");
    }
}
