//! Checks that every identity is complete and that its expected outcome agrees with its leaves.

use std::collections::BTreeSet;

use cpuid_dumps::{CpuIdentity, Expected, all, find, parse_name};

const AMD: [u32; 3] = [0x6874_7541, 0x444D_4163, 0x6974_6E65];
const INTEL: [u32; 3] = [0x756E_6547, 0x6C65_746E, 0x4965_6E69];

fn vendor(identity: &CpuIdentity) -> [u32; 3] {
    let [_, ebx, ecx, edx] = identity.cpuid().cpuid(0, 0);
    [ebx, ecx, edx]
}

#[test]
fn every_file_parses_and_has_leaves_0_and_1() {
    for identity in all() {
        let dump = identity.cpuid();
        for leaf in [0, 1] {
            assert_ne!(dump.cpuid(leaf, 0), [0; 4], "{} has no leaf {leaf}", identity.name);
        }
    }
}

#[test]
fn every_file_is_in_the_table_exactly_once() {
    let names: BTreeSet<_> = all().iter().map(|identity| format!("{}.cpuid", identity.name)).collect();
    assert_eq!(names.len(), all().len(), "a name occurs twice");
    let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/identities")).unwrap();
    let files: BTreeSet<_> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(files, names);
}

#[test]
fn every_file_states_its_origin_or_that_it_is_made_up() {
    for identity in all() {
        let first = identity.dump.lines().next().unwrap();
        assert!(first.starts_with("# "), "{}", identity.name);
        assert_eq!(first.contains("Made up"), !identity.real, "{}", identity.name);
        assert_eq!(identity.dump.contains("# Origin: "), identity.real, "{}", identity.name);
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
        match interface {
            "Amd64" => assert!(windows10 == "Amd64" && [4, 6].contains(&counters) && width == 48, "{name}"),
            "Emon" => assert!(windows10 == "Emon" && counters > 0 && width > 31, "{name}"),
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
        let northbridge = family < 0x17 && features >> 24 & 1 == 0;
        assert_eq!(expected.supported.contains(&0xA0), northbridge, "{name}");
    }
}

/// The sources of Emon and their EBX bits, according to HAL Emon interface.
const EMON: [(u32, u32); 12] =
    [(2, 1), (6, 5), (10, 4), (11, 6), (19, 0), (25, 0), (26, 1), (27, 2), (28, 3), (29, 4), (30, 5), (31, 6)];

#[test]
fn the_outcome_of_emon_agrees_with_leaf_a() {
    for identity in all().iter().filter(|identity| identity.expected.interface == "Emon") {
        let [eax, ebx, ..] = identity.cpuid().cpuid(0xA, 0);
        let [version, general, width, length] = eax.to_le_bytes();
        let available = |bit: u32| bit < length.into() && ebx >> bit & 1 == 0;
        let supported: Vec<u32> = EMON.iter().filter(|(_, bit)| available(*bit)).map(|(source, _)| *source).collect();
        assert!(version >= 1, "{}", identity.name);
        let [.., bitmap, edx] = identity.cpuid().cpuid(0xA, 0);
        let exists = |number: &u32| edx & 0x1F > *number || version >= 5 && bitmap >> number & 1 == 1;
        let fixed = if version < 2 { 0 } else { (0..3).filter(exists).count() };
        assert_eq!(identity.expected.fixed, u8::try_from(fixed).unwrap(), "{}", identity.name);
        let counters = general + identity.expected.fixed;
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
        let text = brand.iter().all(|&byte| byte == 0 || byte == b' ' || byte.is_ascii_graphic());
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
fn there_are_at_least_24_real_processors() {
    assert!(all().iter().filter(|identity| identity.real).count() >= 24);
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

/// Identities with the Debug Store, and the PEBS fields of their IA32_PERF_CAPABILITIES.
const PEBS: [(&str, u64); 25] = [
    ("nehalem-920", 0x100),
    ("westmere-980x", 0x100),
    ("sandy-bridge-2600k", 0x100),
    ("ivy-bridge-3570k", 0x100),
    ("haswell-4710mq", 0x200),
    ("broadwell-6950x", 0x200),
    ("goldmont-plus-n4100", 0x300),
    ("skylake-6600k", 0x300),
    ("cascade-lake-8269c", 0x300),
    ("ice-lake-1065g7", 0x4400),
    ("tiger-lake-1135g7", 0x4400),
    ("alder-lake-12900k", 0x4400),
    ("sapphire-rapids-2475x", 0x4400),
    ("intel-hybrid", 0x4400),
    ("intel-hybrid-efficient", 0x4400),
    ("arrow-lake-245k", 0x4600),
    // Made up, with the signature of a Nehalem.
    ("intel-v2", 0x100),
    ("intel-half-events", 0x100),
    ("intel-no-leaf-a", 0x100),
    ("intel-no-cycles", 0x100),
    ("intel-length-zero", 0x100),
    ("intel-version-0", 0x100),
    ("intel-zero-counters", 0x100),
    ("intel-hyperv-masked", 0x100),
    // Core 2: format 0 sets no bit.
    ("core2-6420", 0),
];

#[test]
fn every_generation_has_its_pebs_format() {
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
    let guests =
        ["hyperv-root-6300u", "vmware-6700k", "kvm-8650u", "firecracker-cascade-lake", "firecracker-granite-rapids"];
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
