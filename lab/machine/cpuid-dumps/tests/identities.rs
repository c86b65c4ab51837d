//! Checks that every identity is complete and that its expected outcome agrees with its leaves.

#![expect(clippy::panic, clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::collections::BTreeSet;

use cpuid_dumps::{CpuIdentity, Expected, all, executable, find, headings, parse_beginning, parse_name};

const AMD: [u32; 3] = [0x6874_7541, 0x444D_4163, 0x6974_6E65];
const INTEL: [u32; 3] = [0x756E_6547, 0x6C65_746E, 0x4965_6E69];

fn vendor(identity: &CpuIdentity) -> [u32; 3] {
    let [_, ebx, ecx, edx] = identity.cpuid().cpuid(0, 0);
    [ebx, ecx, edx]
}

#[test]
fn every_section_parses_and_has_leaves_0_and_1() {
    for identity in all() {
        let dump = identity.cpuid();
        for leaf in [0, 1] {
            assert_ne!(dump.cpuid(leaf, 0), [0; 4], "{} has no leaf {leaf}", identity.name);
        }
    }
}

#[test]
fn every_section_is_in_the_table_exactly_once_and_they_are_in_order() {
    let names: BTreeSet<_> = all().iter().map(|identity| identity.name).collect();
    assert_eq!(names.len(), all().len(), "a name occurs twice");
    let headings: Vec<_> = headings().collect();
    assert_eq!(headings, names.into_iter().collect::<Vec<_>>());
}

#[test]
fn every_section_states_its_origin_or_that_it_is_made_up() {
    for identity in all() {
        let first = identity.dump().lines().next().unwrap();
        assert!(first.starts_with("# "), "{}", identity.name);
        assert_eq!(first.contains("Made up"), !identity.real, "{}", identity.name);
        assert_eq!(identity.dump().contains("# Origin: "), identity.real, "{}", identity.name);
    }
}

#[test]
fn each_interface_is_selected_only_for_its_vendor() {
    for identity in all() {
        match identity.expected.windows10 {
            "Amd64" => assert_eq!(vendor(identity), AMD, "{}", identity.name),
            "Emon" => assert_eq!(vendor(identity), INTEL, "{}", identity.name),
            other => assert_eq!(other, "Default", "{}", identity.name),
        }
        if ![AMD, INTEL].contains(&vendor(identity)) {
            assert_eq!(identity.expected.windows10, "Default", "{}", identity.name);
        }
    }
}

#[test]
fn every_outcome_is_consistent() {
    for CpuIdentity { name, expected, .. } in all() {
        let Expected { windows10, interface, counters, fixed, width, supported, why } = *expected;
        assert!(!why.is_empty(), "{name}");
        assert!(windows10 == interface || windows10 == "Default" || interface == "Default", "{name}");
        // The HAL finds the counters of these interfaces, except behind a hypervisor.
        let behind = name.contains("-kvm-hyperv");
        assert!(!["Amd64", "Emon"].contains(&interface) || (windows10 == "Default") == behind, "{name}");
        match interface {
            "Amd64" => assert!([4, 6].contains(&counters) && width == 48, "{name}"),
            "Emon" => assert!(counters > 0 && width > 31, "{name}"),
            "NetBurst" => assert!(windows10 == "Default" && [9, 18].contains(&counters) && width == 40, "{name}"),
            "P6" | "Pentium" => assert_eq!((windows10, counters, width), ("Default", 2, 40), "{name}"),
            other => assert_eq!((other, counters, width, supported), ("Default", 0, 0, [].as_slice()), "{name}"),
        }
        assert!(fixed == 0 || interface == "Emon" && fixed < counters, "{name}");
        assert!(interface != "Emon" || supported.contains(&25), "{name}: Emon always has core cycles");
        assert!(supported.is_sorted() && !supported.contains(&0), "{name}");
    }
}

#[test]
fn the_outcome_of_amd64_agrees_with_the_extended_leaves() {
    for identity in all().iter().filter(|identity| identity.expected.interface == "Amd64") {
        let CpuIdentity { name, expected, .. } = identity;
        let dump = identity.cpuid();
        let [signature, _, features, _] = dump.cpuid(0x8000_0001, 0);
        let [base, extended] = [signature >> 8 & 0xF, signature >> 20 & 0xFF];
        let family = if base == 0xF { base + extended } else { base };
        let [more, numbers, ..] = dump.cpuid(0x8000_0022, 0);
        let counters = match (features >> 23 & 1, more & 1) {
            (0, _) => 4,
            (_, 0) => 6,
            _ => numbers & 0xF,
        };
        assert_eq!(u32::from(expected.counters), counters, "{name}");
        // Only Zen has halprof's own sources; only earlier families have those for segment registers.
        assert_eq!(expected.supported.contains(&0x1000), family >= 0x17, "{name}");
        assert_eq!(expected.supported.contains(&0x22), family < 0x17, "{name}");
        // Zen 3 and later distinguish data cache fills; Zen 4 and later, with PerfMonV2, also count microcode.
        assert_eq!(expected.supported.contains(&0x1017), family >= 0x17, "{name}");
        assert_eq!(expected.supported.contains(&0x1018), family >= 0x19, "{name}");
        assert_eq!(expected.supported.contains(&0x1006), family >= 0x19 && more & 1 == 1, "{name}");
        // Families 11h to 14h have northbridge events too, but no bypasses of that queue.
        let northbridge = family <= 0x10 && features >> 24 & 1 == 0;
        assert_eq!(expected.supported.contains(&0xA0), northbridge, "{name}");
    }
}

/// The sources of Emon and their EBX bits, according to HAL Emon interface.
const EMON: [(u64, u32); 12] =
    [(2, 1), (6, 5), (10, 4), (11, 6), (19, 0), (25, 0), (26, 1), (27, 2), (28, 3), (29, 4), (30, 5), (31, 6)];

#[test]
fn the_outcome_of_emon_agrees_with_leaf_a() {
    for identity in all().iter().filter(|identity| identity.expected.interface == "Emon") {
        let [eax, ebx, ..] = identity.cpuid().cpuid(0xA, 0);
        let [version, general, width, length] = eax.to_le_bytes();
        let available = |bit: u32| bit < length.into() && ebx >> bit & 1 == 0;
        let supported: Vec<u64> = EMON.iter().filter(|(_, bit)| available(*bit)).map(|(source, _)| *source).collect();
        assert!(version >= 1, "{}", identity.name);
        let [.., bitmap, edx] = identity.cpuid().cpuid(0xA, 0);
        let exists = |number: &u32| edx & 0x1F > *number || version >= 5 && bitmap >> number & 1 == 1;
        // Versions 2 to 4 have three, whatever they report, unless a hypervisor provides them.
        let [_, _, features, _] = identity.cpuid().cpuid(1, 0);
        let fixed = match version {
            1 => 0,
            2..=4 if features >> 31 == 0 => 3,
            _ => (0..3).filter(exists).count(),
        };
        // CPUID.7.1:EAX[8] announces leaf 0x23, whose EAX[1] announces the subleaf of the counters.
        let dump = identity.cpuid();
        let has_leaf_23 = dump.cpuid(7, 1)[0] >> 8 & 1 == 1 && dump.cpuid(0x23, 0)[0] >> 1 & 1 == 1;
        let [by_23, fixed_by_23, ..] = dump.cpuid(0x23, 1);
        let (general, fixed) = if has_leaf_23 {
            (u8::try_from(by_23.count_ones()).unwrap(), (fixed_by_23 & 7).count_ones() as usize)
        } else {
            (general, fixed)
        };
        assert_eq!(identity.expected.fixed, u8::try_from(fixed).unwrap(), "{}", identity.name);
        // Beside E cores, leaf 0xA reports what both kinds of cores have.
        let general = if identity.hides_counters() { general.max(8) } else { general };
        // The microcode uses a counter with TSX_FORCE_ABORT.
        let taken = u8::from(dump.cpuid(7, 0)[3] >> 13 & 1 == 1);
        let counters = general - taken + identity.expected.fixed;
        assert_eq!((counters, width), (identity.expected.counters, identity.expected.width), "{}", identity.name);
        assert_eq!(supported, identity.expected.supported, "{}", identity.name);
    }
}

#[test]
fn the_brand_string_of_a_real_processor_is_text() {
    let has_brand = |identity: &&CpuIdentity| identity.cpuid().cpuid(0x8000_0000, 0)[0] >= 0x8000_0004;
    for identity in all().iter().filter(|identity| identity.real).filter(has_brand) {
        let dump = identity.cpuid();
        let words = (0x8000_0002..=0x8000_0004).flat_map(|leaf| dump.cpuid(leaf, 0));
        let brand: Vec<u8> = words.flat_map(u32::to_le_bytes).collect();
        let brand: Vec<u8> = brand.into_iter().take_while(|&byte| byte != 0).collect();
        let text = brand.iter().all(|&byte| byte == b' ' || byte.is_ascii_graphic());
        assert!(text && brand.iter().any(u8::is_ascii_alphabetic), "{}: {brand:x?}", identity.name);
    }
}

#[test]
fn only_processors_before_2001_have_no_brand_string() {
    let unnamed = all().iter().filter(|identity| identity.real && identity.cpuid().cpuid(0x8000_0000, 0)[0] == 0);
    let unnamed: Vec<_> = unnamed.map(|identity| identity.name).collect();
    assert_eq!(unnamed, ["p6-coppermine", "pentium-p54c", "pentium-p55c"]);
}

#[test]
fn the_older_interfaces_are_selected_for_their_families_without_leaf_a() {
    for CpuIdentity { name, expected, .. } in all() {
        let family = match expected.interface {
            "NetBurst" => 0xF,
            "P6" => 6,
            "Pentium" => 5,
            _ => continue,
        };
        let identity = find(name).unwrap();
        assert_eq!(vendor(identity), INTEL, "{name}");
        assert!(identity.cpuid().cpuid(0, 0)[0] < 0xA, "{name}");
        assert_eq!(identity.cpuid().cpuid(1, 0)[0] >> 8 & 0xF, family, "{name}");
    }
}

#[test]
fn there_are_at_least_120_processors() {
    assert!(all().iter().filter(|identity| identity.real).count() >= 120);
}

/// Returns family, model and stepping (CPUID.1:EAX).
fn signature(identity: &CpuIdentity) -> (u32, u32, u32) {
    let [eax, ..] = identity.cpuid().cpuid(1, 0);
    let family = if eax >> 8 & 0xF == 0xF { 0xF + (eax >> 20 & 0xFF) } else { eax >> 8 & 0xF };
    (family, eax >> 12 & 0xF0 | eax >> 4 & 0xF, eax & 0xF)
}

/// Intel's map from processors to event lists.
const INTEL_MAP: &str = include_str!("intel-map.csv");

/// Event lists without a public dump of such a processor. Their identities are derived from another one.
const WITHOUT_DUMP: [&str; 6] =
    ["clearwaterforest", "grandridge", "novalake_arcticwolf", "novalake_coyotecove", "sierraforest", "snowridgex"];

/// The native model of Crestmont, which Arrow Lake has in its low-power cores.
const CRESTMONT: u32 = 2;

/// Returns whether a line of [`INTEL_MAP`] is that of a processor.
fn is_mapped(line: &str, identity: &CpuIdentity) -> bool {
    let [family, model, steppings, core, _] = line.split(',').collect::<Vec<_>>()[..] else { panic!("{line}") };
    let number = |text| u32::from_str_radix(text, 16).unwrap();
    let (its_family, its_model, stepping) = signature(identity);
    let [core_type, ..] = identity.cpuid().cpuid(0x1A, 0);
    let is_low_power = core_type & 0xFF_FFFF == CRESTMONT;
    let is_core = match core.strip_suffix('+') {
        _ if core.is_empty() => true,
        Some(core) => number(core) == core_type >> 24 && is_low_power,
        None => number(core) == core_type >> 24 && !(number(model) == 0xC5 && is_low_power),
    };
    (number(family), number(model)) == (its_family, its_model)
        && (steppings.is_empty() || steppings.contains(&format!("{stepping:X}")))
        && is_core
        && vendor(identity) == INTEL
}

#[test]
fn every_microarchitecture_of_intels_event_map_has_an_identity() {
    let lines = || INTEL_MAP.lines().filter(|line| !line.starts_with('#')).skip(1);
    let lists: BTreeSet<&str> = lines().filter_map(|line| line.rsplit(',').next()).collect();
    assert_eq!(lists.len(), 47);
    let has = |list: &str, real: bool| {
        let rows = lines().filter(|line| line.ends_with(&format!(",{list}")));
        rows.into_iter().any(|line| all().iter().any(|one| one.real == real && is_mapped(line, one)))
    };
    let without: Vec<&str> = lists.into_iter().filter(|list| !has(list, true)).collect();
    assert_eq!(without, WITHOUT_DUMP);
    assert!(without.iter().all(|list| has(list, false)));
}

#[test]
fn every_family_of_amd_with_long_mode_has_a_real_identity() {
    let families = all().iter().filter(|one| one.real && vendor(one) == AMD).map(|one| signature(one).0);
    let families: BTreeSet<u32> = families.filter(|family| *family >= 0xF).collect();
    assert_eq!(families.into_iter().collect::<Vec<_>>(), [0xF, 0x10, 0x11, 0x12, 0x14, 0x15, 0x16, 0x17, 0x19, 0x1A]);
}

/// Returns the core type (CPUID.1A:EAX[31:24]) of a hybrid processor (CPUID.7.0:EDX[15]).
fn hybrid_type(identity: &CpuIdentity) -> Option<u32> {
    let ([.., features], [native, ..]) = (identity.cpuid().cpuid(7, 0), identity.cpuid().cpuid(0x1A, 0));
    (features >> 15 & 1 == 1).then_some(native >> 24)
}

#[test]
fn processors_with_odd_numbers_report_the_other_core_type() {
    let machines: Vec<_> = all().iter().filter(|identity| identity.odd_processors.is_some()).collect();
    assert!(!machines.is_empty());
    for identity in machines {
        let kinds = [0, 1, 2, 3].map(|number| identity.of_processor(number));
        assert_eq!(kinds.map(hybrid_type), [0x40, 0x20, 0x40, 0x20].map(Some), "{}", identity.name);
        assert_eq!(kinds.map(|kind| kind.name), [kinds[0].name, kinds[1].name, kinds[0].name, kinds[1].name]);
    }
    for identity in all().iter().filter(|identity| identity.odd_processors.is_none()) {
        assert_eq!(identity.of_processor(1).name, identity.name);
    }
}

/// Identities with the Debug Store, and their IA32_PERF_CAPABILITIES.
const PEBS: &[(&str, u64)] = &[
    ("nehalem-920", 0x1101),
    ("westmere-980x", 0x1101),
    ("sandy-bridge-2600k", 0x1103),
    ("ivy-bridge-3570k", 0x3103),
    ("haswell-4710mq", 0x3204),
    ("broadwell-6950x", 0x3204),
    ("goldmont-plus-n4100", 0x3307),
    ("skylake-6600k", 0x3305),
    ("cascade-lake-8269c", 0x3305),
    ("ice-lake-1065g7", 0xF405),
    ("tiger-lake-1135g7", 0xF405),
    ("alder-lake-12900k", 0x743F),
    ("sapphire-rapids-2475x", 0xF43F),
    ("intel-hybrid", 0xF400),
    ("intel-hybrid-efficient", 0x7400),
    ("arrow-lake-245k", 0xF63F),
    // Made up, with the signature of a Nehalem.
    ("intel-v2", 0x1101),
    ("intel-half-events", 0x1101),
    ("intel-no-leaf-a", 0x1101),
    ("intel-no-cycles", 0x1101),
    ("intel-length-zero", 0x1101),
    ("intel-version-0", 0x1101),
    ("intel-zero-counters", 0x1101),
    ("intel-hyperv-masked", 0x1101),
    ("beckton-e7520", 0x1101),
    ("lynnfield-860", 0x1101),
    ("clarkdale-650", 0x1101),
    ("eagleton-4870", 0x1101),
    ("bay-trail-z3745", 0x3201),
    ("avoton-c2750", 0x3201),
    ("braswell-n3150", 0x3201),
    ("apollo-lake-n4200", 0x3306),
    ("elkhart-lake-j6412", 0x7407),
    ("jasper-lake-n6005", 0x7407),
    ("alder-lake-n-95", 0x743F),
    ("sandy-bridge-ep-3930k", 0x1103),
    ("ivy-bridge-ep-4930k", 0x3103),
    ("haswell-ep-2699", 0x3204),
    ("haswell-ult-4500u", 0x3204),
    ("broadwell-u-5y70", 0x3204),
    ("broadwell-de-1540", 0x3204),
    ("skylake-u-6500u", 0x3305),
    ("knights-landing-7210", 0x3201),
    ("skylake-sp-6154", 0x3305),
    ("kaby-lake-7200u", 0x3305),
    ("coffee-lake-8700k", 0x3305),
    ("comet-lake-10900k", 0x3305),
    ("cannon-lake-8121u", 0x3305),
    ("ice-lake-sp-6330", 0xF405),
    ("rocket-lake-11700kf", 0xF405),
    ("lakefield-l16g7", 0x7400),
    ("lakefield-l16g7-efficient", 0x7400),
    ("alder-lake-p-12900h", 0x743F),
    ("alder-lake-p-12900h-efficient", 0x743F),
    ("raptor-lake-p-13900h", 0x743F),
    ("raptor-lake-p-13900h-efficient", 0x743F),
    ("raptor-lake-e-6315p", 0xF43F),
    ("meteor-lake-155h", 0x743F),
    ("meteor-lake-155h-efficient", 0x743F),
    ("arrow-lake-u-265u", 0xF43F),
    ("arrow-lake-u-265u-efficient", 0x743F),
    ("lunar-lake-288v", 0xF63F),
    ("lunar-lake-288v-efficient", 0x763F),
    ("arrow-lake-h-285h", 0xF63F),
    ("arrow-lake-h-285h-efficient", 0x763F),
    ("arrow-lake-h-285h-low-power", 0x763F),
    ("arrow-lake-s-265k", 0xF63F),
    ("arrow-lake-s-265k-efficient", 0x763F),
    ("panther-lake-355", 0xBF3F),
    ("panther-lake-355-efficient", 0x3F3F),
    ("wildcat-lake-320", 0xBF3F),
    ("wildcat-lake-320-efficient", 0x3F3F),
    ("granite-rapids-658x", 0xF43F),
    ("emerald-rapids-5520", 0xF43F),
    ("bartlett-lake-273pqe", 0xF43F),
    ("broadwell-ht-off-derived", 0x3204),
    ("skylake-sp-tsx-derived", 0x3305),
    ("snow-ridge-derived", 0x7407),
    ("sierra-forest-derived", 0x743F),
    ("grand-ridge-derived", 0x743F),
    ("clearwater-forest-derived", 0x3F3F),
    ("nova-lake-derived", 0xBF3F),
    ("nova-lake-derived-efficient", 0x3F3F),
    ("diamond-rapids-derived", 0xBF3F),
    // Core 2: format 0 sets no bit.
    ("core2-6420", 0),
];

#[test]
fn every_generation_has_its_perf_capabilities() {
    for identity in all() {
        let name = identity.name;
        let expected = PEBS.iter().find(|(named, _)| *named == name).map_or(0, |(_, value)| *value);
        assert_eq!(identity.perf_capabilities(), expected, "{name}");
        assert!(expected == 0 || identity.has_debug_store(), "{name}");
    }
}

#[test]
fn intel_processors_since_netburst_have_the_debug_store_except_in_guests() {
    let without = all().iter().filter(|identity| vendor(identity) == INTEL && !identity.has_debug_store());
    let without: Vec<_> = without.map(|identity| identity.name).collect();
    let old = ["p6-coppermine", "pentium-p54c", "pentium-p55c"];
    let guests = [
        "hyperv-root-6300u",
        "vmware-6700k",
        "kvm-8650u",
        "firecracker-cascade-lake",
        "firecracker-granite-rapids",
        "intel-kvm-hyperv",
        "intel-kvm-hyperv-off",
        "aws-one-fixed",
    ];
    assert_eq!(without, [&old[..], &guests].concat());
    assert!(all().iter().all(|identity| vendor(identity) == INTEL || !identity.has_debug_store()));
}

#[test]
fn find_requires_the_exact_name() {
    assert_eq!(find("intel-v2").map(|identity| identity.name), Some("intel-v2"));
    assert!(find("intel-v").is_none());
}

#[test]
fn an_unknown_name_is_refused_with_the_most_similar_names() {
    assert_eq!(parse_name("zen4-7700x").unwrap().name, "zen4-7700x");
    for (wanted, nearest) in [
        ("zen4", "zen4-7700x"),
        ("ZEN5", "zen5-9800x3d"),
        ("7700x", "zen4-7700x"),
        ("haswel-4710", "haswell-4710mq"),
        ("sapphire_rapids", "sapphire-rapids-2475x"),
        ("6300u", "hyperv-root-6300u"),
    ] {
        let error = parse_name(wanted).unwrap_err();
        assert!(error.starts_with(&format!("no processor has this name; the nearest ones: {nearest}, ")), "{error}");
        assert_eq!(error.split(", ").count(), 3, "{error}");
    }
    for wanted in ["", "quux", "\u{1F9A5}"] {
        assert!(parse_name(wanted).unwrap_err().contains("the nearest ones: "), "{wanted:?}");
    }
}

#[test]
fn the_beginning_of_only_one_name_is_enough() {
    for (typed, wanted) in [("zen4", "zen4-7700x"), ("zen4-7700x", "zen4-7700x"), ("zen-", "zen-1800x")] {
        assert_eq!(parse_beginning(typed).unwrap().name, wanted);
    }
    // A name that others begin with is still a name.
    assert_eq!(parse_beginning("intel-hybrid").unwrap().name, "intel-hybrid");
    for typed in ["", "zen", "7700x", "none-such"] {
        assert!(parse_beginning(typed).unwrap_err().contains("the nearest ones: "), "{typed:?}");
    }
}

#[test]
fn a_program_finds_the_counters_of_the_identity_and_the_instructions_of_this_machine() {
    let alder_lake = find("alder-lake-p-12900h").unwrap().cpuid();
    let seen = |leaf, subleaf, here| executable(leaf, subleaf, alder_lake.cpuid(leaf, subleaf), here);
    // PDCM and the Debug Store, but neither AVX nor SSE2.
    assert_eq!(
        (seen(1, 0, [0; 4])[2] & (1 << 15 | 1 << 28), seen(1, 0, [0; 4])[3] & (1 << 21 | 1 << 26)),
        (1 << 15, 1 << 21)
    );
    assert_eq!(seen(1, 0, [u32::MAX; 4]), alder_lake.cpuid(1, 0));
    // Hybrid, but no AVX2.
    assert_eq!((seen(7, 0, [0; 4])[1], seen(7, 0, [0; 4])[3]), (0, 1 << 15));
    assert_eq!(seen(7, 0, [0; 4])[0], alder_lake.cpuid(7, 0)[0]);
    let whole = |leaf| (seen(leaf, 0, [0; 4]), alder_lake.cpuid(leaf, 0));
    for (seen, of_identity) in [0, 0xA, 0x1A].map(whole) {
        assert_eq!(seen, of_identity);
    }
    let zen4 = find("zen4-7700x").unwrap().cpuid();
    // PerfCtrExtCore, but no long mode where this machine has none.
    let [_, _, ecx, edx] = executable(0x8000_0001, 0, zen4.cpuid(0x8000_0001, 0), [0; 4]);
    assert_eq!((ecx >> 23 & 1, edx), (1, 0));
}
