//! Every bit of every register, on a processor of each generation: whether a write of it raises #GP. Registers that the
//! processor does not have fault at any access.
//!
//! The masks were determined by hand from the leaves of the processors and the sections that `writable.rs` cites.

#![expect(clippy::unwrap_used, reason = "a failed law is a failed test")]

use std::collections::BTreeMap;

use model::Processor;

/// Registers at regular distances with the same writable bits; `None`: they can only be read.
struct Registers {
    first: u32,
    count: u32,
    distance: u32,
    writable: Option<u64>,
}

const fn each(first: u32, count: u32, writable: u64) -> Registers {
    Registers { first, count, distance: 1, writable: Some(writable) }
}

const fn every_second(first: u32, count: u32, writable: u64) -> Registers {
    Registers { distance: 2, ..each(first, count, writable) }
}

const fn every_fourth(first: u32, count: u32, writable: u64) -> Registers {
    Registers { distance: 4, ..each(first, count, writable) }
}

const fn one(address: u32, writable: u64) -> Registers {
    each(address, 1, writable)
}

const fn read_only(address: u32) -> Registers {
    Registers { writable: None, ..one(address, 0) }
}

/// The addresses of all registers of performance monitoring of any processor in the table, and their neighbors.
const ADDRESSES: &[(u32, u32)] = &[
    (0x08B, 0x08B),             // IA32_BIOS_SIGN_ID
    (0x0C1, 0x0CC),             // counters
    (0x011, 0x014),             // Pentium
    (0x186, 0x191),             // event selects
    (0x1A0, 0x1A0),             // IA32_MISC_ENABLE
    (0x1A5, 0x1A8),             // off-core response
    (0x1D9, 0x1D9),             // IA32_DEBUGCTL
    (0x300, 0x32A),             // counters of NetBurst, fixed counters, MSR_PERF_METRICS
    (0x345, 0x345),             // IA32_PERF_CAPABILITIES
    (0x360, 0x3FF),             // CCCRs and ESCRs of NetBurst, global registers, PEBS, load latency, front end
    (0x4C1, 0x4CC),             // full-width counters
    (0x600, 0x600),             // IA32_DS_AREA
    (0x1900, 0x19FF),           // architectural PEBS and aliases of the counters
    (0xC000_0300, 0xC000_0310), // global registers of AMD
    (0xC001_0000, 0xC001_0015), // legacy counters of AMD, HWCR
    (0xC001_0200, 0xC001_020F), // core counters of AMD
];

/// A narrow write drops or extends the bits above 31, and AMD's counters drop those above 47.
const ANY: u64 = u64::MAX;
const WIDTH_40: u64 = 0xFF_FFFF_FFFF;
const WIDTH_48: u64 = 0xFFFF_FFFF_FFFF;
/// WR, FULL, EN and THRESH of IA32_PEBS_INDEX; RELOAD, the groups of leaf 0x23.4 and EN of CFG_C.
const PEBS_INDEX: Registers = one(0x3F5, 0x7FF_FFF1_87FF_FFF0);
const PEBS_CONFIG: u64 = 0xE006_0378_FFFF_FFFF;
/// Single bits of a canonical address; the others need all of bits 63:47.
const CANONICAL: u64 = 0x7FFF_FFFF_FFFF;

/// Pin control, but no AnyThread; AnyThread, but no pin control; both; none.
const PIN: u64 = 0xFFDF_FFFF;
const ANY_THREAD: u64 = 0xFFF7_FFFF;
const PIN_AND_ANY_THREAD: u64 = 0xFFFF_FFFF;
const NEITHER: u64 = 0xFFD7_FFFF;

/// Registers of an Intel processor with Debug Store and IA32_PERF_CAPABILITIES.
const MICROCODE: Registers = read_only(0x08B);
const MISC_ENABLE: Registers = read_only(0x1A0);
const CAPABILITIES: Registers = read_only(0x345);
/// MSR_PERF_METRICS with both levels.
const METRICS: Registers = one(0x329, u64::MAX);
const STATUS: Registers = read_only(0x38E);
const IN_USE: Registers = read_only(0x392);
const DS_AREA: Registers = one(0x600, CANONICAL);

const fn debugctl(writable: u64) -> Registers {
    one(0x1D9, writable)
}

/// AMD's select before family 10h, and from then on, with and without SVM.
const K8: u64 = 0xFFDF_FFFF;
const AMD: u64 = 0x030F_FFD7_FFFF;
const AMD_GUEST: u64 = 0x000F_FFD7_FFFF;

const fn netburst(cccr: u64, escr: u64) -> [Registers; 11] {
    [
        MICROCODE,
        MISC_ENABLE,
        debugctl(0x7F),
        DS_AREA,
        each(0x300, 18, WIDTH_40),
        each(0x360, 18, cccr),
        each(0x3A0, 26, escr),
        each(0x3BC, 3, escr),
        each(0x3C0, 6, escr),
        each(0x3C8, 6, escr),
        each(0x3E0, 2, escr),
    ]
}

const THREADED: &[Registers] = &netburst(0xCFFF_F000, 0x7FFF_FFFF);
const SINGLE: &[Registers] = &netburst(0xC7FF_F000, 0x7FFF_FFFC);

const TABLE: &[(&str, &[Registers])] = &[
    ("pentium-p54c", &[one(0x11, 0x03FF_03FF), each(0x12, 2, WIDTH_40)]),
    ("p6-coppermine", &[one(0x186, PIN), one(0x187, 0xFF9F_FFFF), each(0xC1, 2, ANY)]),
    (
        "p6-dothan", // a Debug Store in 32-bit format, without DS-CPL
        &[
            one(0x186, PIN),
            one(0x187, 0xFF9F_FFFF),
            each(0xC1, 2, ANY),
            MICROCODE,
            MISC_ENABLE,
            debugctl(0x1C3),
            one(0x600, 0xFFFF_FFFF),
        ],
    ),
    ("netburst-irwindale", THREADED),
    ("netburst-cedarmill", SINGLE),
    (
        "intel-v1",
        &[each(0x186, 4, PIN), each(0xC1, 4, ANY), MICROCODE, MISC_ENABLE, CAPABILITIES, debugctl(0x7C3), DS_AREA],
    ),
    (
        "core2-6420", // three fixed counters, which its leaf 0AH does not report; PEBS on counter 0
        &[
            each(0x186, 2, PIN),
            each(0xC1, 2, ANY),
            each(0x309, 3, WIDTH_40),
            one(0x38D, 0xBBB),
            STATUS,
            one(0x38F, 0x7_0000_0003),
            one(0x390, 0xC000_0007_0000_0003),
            MICROCODE,
            MISC_ENABLE,
            CAPABILITIES,
            debugctl(0x1FC3),
            DS_AREA,
            one(0x3F1, 1),
        ],
    ),
    (
        "nehalem-920", // load latency in IA32_PEBS_ENABLE, uncore interrupts in IA32_DEBUGCTL
        &[
            each(0x186, 4, PIN_AND_ANY_THREAD),
            each(0xC1, 4, ANY),
            each(0x309, 3, WIDTH_48),
            one(0x38D, 0xFFF),
            STATUS,
            one(0x38F, 0x7_0000_000F),
            one(0x390, 0xE000_0007_0000_000F),
            MICROCODE,
            MISC_ENABLE,
            CAPABILITIES,
            debugctl(0x7FC3),
            DS_AREA,
            one(0x3F1, 0xF_0000_000F),
            one(0x1A6, 0xFFFF),
            one(0x3F6, 0xFFFF),
        ],
    ),
    (
        "sandy-bridge-2600k", // precise stores; no pin control from here on
        &[
            each(0x186, 4, ANY_THREAD),
            each(0xC1, 4, ANY),
            each(0x309, 3, WIDTH_48),
            one(0x38D, 0xFFF),
            STATUS,
            one(0x38F, 0x7_0000_000F),
            one(0x390, 0xE000_0007_0000_000F),
            MICROCODE,
            MISC_ENABLE,
            CAPABILITIES,
            debugctl(0x5FC3),
            DS_AREA,
            one(0x3F1, 0x8000_000F_0000_000F),
            each(0x1A6, 2, 0x3F_807F_8FFF),
            one(0x3F6, 0xFFFF),
        ],
    ),
    (
        "haswell-4710mq", // without TSX; full-width writes from Ivy Bridge on
        &[
            each(0x186, 4, ANY_THREAD),
            each(0xC1, 4, ANY),
            each(0x4C1, 4, WIDTH_48),
            each(0x309, 3, WIDTH_48),
            one(0x38D, 0xFFF),
            STATUS,
            one(0x38F, 0x7_0000_000F),
            one(0x390, 0xE000_0007_0000_000F),
            MICROCODE,
            MISC_ENABLE,
            CAPABILITIES,
            debugctl(0x5FC3),
            DS_AREA,
            one(0x3F1, 0xF_0000_000F),
            each(0x1A6, 2, 0x3F_FFFF_8FFF),
            one(0x3F6, 0xFFFF),
        ],
    ),
    (
        "skylake-6600k", // version 4; TSX, and the checkpoint on counter 2; Processor Trace
        &[
            each(0x186, 2, 0x1_0000_0000 | ANY_THREAD),
            one(0x188, 0x3_0000_0000 | ANY_THREAD),
            each(0x189, 5, 0x1_0000_0000 | ANY_THREAD),
            each(0xC1, 8, ANY),
            each(0x4C1, 8, WIDTH_48),
            each(0x309, 3, WIDTH_48),
            one(0x38D, 0xFFF),
            STATUS,
            one(0x38F, 0x7_0000_00FF),
            one(0x390, 0xEC80_0007_0000_00FF),
            one(0x391, 0x6C80_0007_0000_00FF),
            IN_USE,
            MICROCODE,
            MISC_ENABLE,
            CAPABILITIES,
            debugctl(0xDFC3),
            DS_AREA,
            one(0x3F1, 0xF_0000_000F),
            each(0x1A6, 2, 0x3F_FFFF_8FFF),
            one(0x3F6, 0xFFFF),
            one(0x3F7, 0x7F_FF17),
        ],
    ),
    (
        "sapphire-rapids-2475x", // version 5; TSX, adaptive records, metrics, bus lock detection
        &[
            each(0x186, 2, 0x5_0000_0000 | NEITHER),
            one(0x188, 0x7_0000_0000 | NEITHER),
            each(0x189, 5, 0x5_0000_0000 | NEITHER),
            each(0xC1, 8, ANY),
            each(0x4C1, 8, WIDTH_48),
            each(0x309, 4, WIDTH_48),
            METRICS,
            one(0x38D, 0x1111_0000_BBBB),
            STATUS,
            one(0x38F, 0x0001_000F_0000_00FF),
            one(0x390, 0xEC81_000F_0000_00FF),
            one(0x391, 0x6C81_000F_0000_00FF),
            IN_USE,
            MICROCODE,
            MISC_ENABLE,
            CAPABILITIES,
            debugctl(0xDFC7),
            DS_AREA,
            one(0x3F1, 0xF_0000_00FF),
            one(0x3F2, 0xFF00_000F),
            each(0x1A6, 2, 0x3F_FFFF_FFFF),
            one(0x3F6, 0xFFFF),
            one(0x3F7, 0x7F_FF1F),
        ],
    ),
    (
        "intel-hybrid-efficient", // made up: 6 counters of 40 bits, 2 fixed ones, no metrics
        &[
            each(0x186, 6, 0x4_0000_0000 | NEITHER),
            each(0xC1, 6, ANY),
            each(0x4C1, 6, WIDTH_40),
            each(0x309, 2, WIDTH_48),
            one(0x38D, 0x11_0000_00BB),
            STATUS,
            one(0x38F, 0x3_0000_003F),
            one(0x390, 0xEC00_0003_0000_003F),
            one(0x391, 0x6C00_0003_0000_003F),
            IN_USE,
            MICROCODE,
            MISC_ENABLE,
            CAPABILITIES,
            debugctl(0x5FC3),
            DS_AREA,
            one(0x3F1, 0x3_0000_003F),
            one(0x3F2, 0xFF00_000F),
            each(0x1A6, 2, 0xC03F_FFFF_FFFF),
            one(0x3F6, 0xFFFF),
        ],
    ),
    (
        "avoton-c2750", // Silvermont: counters of 40 bits, PEBS on counter 0 alone
        &[
            each(0x186, 2, ANY_THREAD),
            each(0xC1, 2, ANY),
            each(0x4C1, 2, WIDTH_40),
            each(0x309, 3, WIDTH_40),
            one(0x38D, 0xFFF),
            STATUS,
            one(0x38F, 0x7_0000_0003),
            one(0x390, 0xE000_0007_0000_0003),
            MICROCODE,
            MISC_ENABLE,
            CAPABILITIES,
            debugctl(0x5FC3),
            DS_AREA,
            one(0x3F1, 1),
            one(0x1A6, 0x76_8005_FFFF),
            one(0x1A7, 0x36_8005_FFFF),
        ],
    ),
    (
        "goldmont-plus-n4100", // AnyThread is deprecated; SGX; no load latency
        &[
            each(0x186, 4, NEITHER),
            each(0xC1, 4, ANY),
            each(0x4C1, 4, WIDTH_48),
            each(0x309, 3, WIDTH_48),
            one(0x38D, 0xBBB),
            STATUS,
            one(0x38F, 0x7_0000_000F),
            one(0x390, 0xFC80_0007_0000_000F),
            one(0x391, 0x7C80_0007_0000_000F),
            IN_USE,
            MICROCODE,
            MISC_ENABLE,
            CAPABILITIES,
            debugctl(0x5FC3),
            DS_AREA,
            one(0x3F1, 0xF),
            one(0x1A6, 0x76_0005_FFBF),
            one(0x1A7, 0x36_0005_FFBF),
        ],
    ),
    (
        "lunar-lake-288v", // version 6: UMASK2 and EQ, 10 counters by leaf 23H; record format 6
        &[
            each(0x186, 4, 0xFF1C_0000_0000 | NEITHER), // with EN_LBR_LOG
            each(0x18A, 6, 0xFF14_0000_0000 | NEITHER),
            each(0xC1, 10, ANY),
            each(0x4C1, 10, WIDTH_48),
            each(0x309, 4, WIDTH_48),
            METRICS,
            one(0x38D, 0x1111_0000_BBBB),
            STATUS,
            one(0x38F, 0x0001_000F_0000_03FF),
            one(0x390, 0xEC81_000F_0000_03FF),
            one(0x391, 0x6C81_000F_0000_03FF),
            IN_USE,
            MICROCODE,
            MISC_ENABLE,
            CAPABILITIES,
            debugctl(0x5FC7),
            DS_AREA,
            one(0x3F1, 0xF_0000_03FF),
            one(0x3F2, 0x00FF_FFFF_FF00_003F),
            each(0x1A6, 2, 0xFFF_FFFF_FFFF),
            one(0x3F6, 0xFFFF),
            one(0x3F7, 0x7F_FF1F),
        ],
    ),
    (
        "panther-lake-355", // architectural PEBS: no adaptive records, no IA32_PEBS_ENABLE, status bit 54
        &[
            each(0x186, 4, 0xFF18_0000_0000 | NEITHER), // with EN_LBR_LOG
            each(0x18A, 6, 0xFF10_0000_0000 | NEITHER),
            each(0xC1, 10, ANY),
            each(0x4C1, 10, WIDTH_48),
            each(0x309, 4, WIDTH_48),
            METRICS,
            one(0x38D, 0xBBBB),
            STATUS,
            one(0x38F, 0x0001_000F_0000_03FF),
            one(0x390, 0xECC1_000F_0000_03FF),
            one(0x391, 0x6CC1_000F_0000_03FF),
            IN_USE,
            MICROCODE,
            MISC_ENABLE,
            CAPABILITIES,
            debugctl(0x5FC7),
            DS_AREA,
            one(0x3F4, 0x3FFF_FFFF_F00F),
            PEBS_INDEX,
            every_fourth(0x1903, 10, PEBS_CONFIG),
            every_fourth(0x1983, 4, PEBS_CONFIG),
            each(0x1A6, 2, 0xFFF_FFFF_FFFF),
            one(0x3F6, 0xFFFF),
            one(0x3F7, 0x7F_FF1F),
        ],
    ),
    (
        "nova-lake-derived", // family 18
        &[
            each(0x186, 4, 0xFF18_0000_0000 | NEITHER), // with EN_LBR_LOG
            each(0x18A, 4, 0xFF10_0000_0000 | NEITHER),
            each(0xC1, 8, ANY),
            each(0x4C1, 8, WIDTH_48),
            each(0x309, 4, WIDTH_48),
            METRICS,
            one(0x38D, 0xBBBB),
            STATUS,
            one(0x38F, 0x0001_000F_0000_00FF),
            one(0x390, 0xECC1_000F_0000_00FF),
            one(0x391, 0x6CC1_000F_0000_00FF),
            IN_USE,
            MICROCODE,
            MISC_ENABLE,
            CAPABILITIES,
            debugctl(0x5FC7),
            DS_AREA,
            one(0x3F4, 0x3FFF_FFFF_F00F),
            PEBS_INDEX,
            every_fourth(0x1903, 10, PEBS_CONFIG),
            every_fourth(0x1983, 4, PEBS_CONFIG),
            each(0x3E0, 4, 0x40FF_FFFF_0000_FFFF),
            one(0x3F6, 0xFFFF),
            one(0x3F7, 0x7F_FF1F),
        ],
    ),
    (
        "kvm-8650u", // version 2 in a guest, with TSX and PDCM, without Debug Store
        &[
            each(0x186, 2, 0x1_0000_0000 | NEITHER),
            one(0x188, 0x3_0000_0000 | NEITHER),
            one(0x189, 0x1_0000_0000 | NEITHER),
            each(0xC1, 4, ANY),
            each(0x309, 3, WIDTH_48),
            one(0x38D, 0xBBB),
            STATUS,
            one(0x38F, 0x7_0000_000F),
            one(0x390, 0x8000_0007_0000_000F),
            MICROCODE,
            MISC_ENABLE,
            CAPABILITIES,
            debugctl(0x9803),
        ],
    ),
    ("intel-hyperv-masked", &[MICROCODE, MISC_ENABLE]),
    ("k8-clawhammer", &[each(0xC001_0000, 4, K8), each(0xC001_0004, 4, ANY)]),
    ("k10-thuban", &[each(0xC001_0000, 4, AMD), each(0xC001_0004, 4, ANY)]),
    (
        "bulldozer-fx8150",
        &[
            each(0xC001_0000, 4, AMD),
            each(0xC001_0004, 4, ANY),
            every_second(0xC001_0200, 6, AMD),
            every_second(0xC001_0201, 6, ANY),
        ],
    ),
    (
        "zen-1800x",
        &[
            each(0xC001_0000, 4, AMD),
            each(0xC001_0004, 4, ANY),
            every_second(0xC001_0200, 6, AMD),
            every_second(0xC001_0201, 6, ANY),
        ],
    ),
    (
        "zen4-7700x", // PerfMonV2 without LbrAndPmcFreeze
        &[
            each(0xC001_0000, 4, AMD),
            each(0xC001_0004, 4, ANY),
            every_second(0xC001_0200, 6, AMD),
            every_second(0xC001_0201, 6, ANY),
            read_only(0xC000_0300),
            each(0xC000_0301, 3, 0x3F),
        ],
    ),
    (
        "zen5-9800x3d", // LbrAndPmcFreeze
        &[
            each(0xC001_0000, 4, AMD),
            each(0xC001_0004, 4, ANY),
            every_second(0xC001_0200, 6, AMD),
            every_second(0xC001_0201, 6, ANY),
            read_only(0xC000_0300),
            one(0xC000_0301, 0x3F),
            each(0xC000_0302, 2, 0x0C00_0000_0000_003F),
            debugctl(0x183F),
        ],
    ),
    (
        "amd-kvm-perfmon-v2", // a guest without SVM
        &[
            each(0xC001_0000, 4, AMD_GUEST),
            each(0xC001_0004, 4, ANY),
            every_second(0xC001_0200, 6, AMD_GUEST),
            every_second(0xC001_0201, 6, ANY),
            read_only(0xC000_0300),
            each(0xC000_0301, 3, 0x3F),
        ],
    ),
    ("amd-hyperv-masked", &[]),
];

fn processor(name: &str) -> Processor {
    let identity = cpuid_dumps::find(name).unwrap();
    let dump = identity.cpuid();
    Processor::new(Box::new(move |leaf, subleaf| dump.cpuid(leaf, subleaf)))
        .with_perf_capabilities(identity.perf_capabilities())
}

/// Returns the writable bits by the address of the register.
fn by_address(registers: &[Registers]) -> BTreeMap<u32, Option<u64>> {
    let of = |group: &Registers| {
        let Registers { first, distance, writable, .. } = *group;
        (0..group.count).map(move |number| (first + distance * number, writable)).collect::<Vec<_>>()
    };
    registers.iter().flat_map(of).collect()
}

#[test]
fn each_bit_of_each_register_is_written_or_refused_as_the_manuals_say() {
    for (name, registers) in TABLE {
        let registers = by_address(registers);
        let all: Vec<u32> = ADDRESSES.iter().flat_map(|(first, last)| *first..=*last).collect();
        assert!(registers.keys().all(|address| all.contains(address)), "{name}");
        let mut processor = processor(name);
        for address in all {
            let expected = registers.get(&address).copied();
            assert_eq!(processor.rdmsr(address).is_ok(), expected.is_some(), "{name}: {address:#x}");
            let writes_zero = processor.wrmsr(address, 0).is_ok();
            assert_eq!(writes_zero, expected.flatten().is_some(), "{name}: {address:#x}");
            let bits = (0..64).map(|bit| 1_u64 << bit);
            let accepted: u64 = bits.filter(|bit| processor.wrmsr(address, *bit).is_ok()).sum();
            let wanted = expected.flatten().unwrap_or(0);
            assert_eq!(accepted, wanted, "{name}: {address:#x} accepts {accepted:#x} instead of {wanted:#x}");
        }
    }
}

#[test]
fn one_reserved_bit_refuses_the_whole_write_and_changes_nothing() {
    for (name, registers) in TABLE {
        for (address, writable) in by_address(registers) {
            let Some(writable) = writable.filter(|writable| ![0, ANY, CANONICAL].contains(writable)) else { continue };
            let mut processor = processor(name);
            let before = processor.rdmsr(address);
            let reserved = (0..64).map(|bit| 1_u64 << bit).filter(|bit| bit & writable == 0);
            for bit in reserved {
                assert!(processor.wrmsr(address, writable | bit).is_err(), "{name}: {address:#x}, {bit:#x}");
                assert_eq!(processor.rdmsr(address), before, "{name}: {address:#x}, {bit:#x}");
            }
            assert!(processor.wrmsr(address, writable).is_ok(), "{name}: {address:#x}");
        }
    }
}

#[test]
fn the_table_has_every_generation() {
    let named = |name: &str| TABLE.iter().any(|(of_table, _)| *of_table == name);
    // Zen 3 has the registers of Zen; the made-up hybrid is in the table by its E cores.
    let missing: Vec<_> = cpuid_dumps::GENERATIONS.into_iter().filter(|name| !named(name)).collect();
    assert_eq!(missing, ["intel-hybrid", "zen3-5950x"]);
    assert_eq!(TABLE[0].0, "pentium-p54c", "the oldest first");
}
