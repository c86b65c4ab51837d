//! The table of identities. The outcomes were determined by hand from the leaves.

use crate::amd::{K8, WITHOUT_NORTHBRIDGE, ZEN, ZEN3, ZEN4};
use crate::{CpuIdentity, Expected};

/// Every source of Emon except `ProfileTime`.
const ALL: &[u32] = &[2, 6, 10, 11, 19, 25, 26, 27, 28, 29, 30, 31];

const CLEAR: &str = "EBX bits 0 to 6 are clear within the length";
const MASKED: &str = "a Microsoft hypervisor masks the counters: 40000003:EDX[2] is clear";

const fn amd(counters: u8, supported: &'static [u32], why: &'static str) -> Expected {
    Expected { windows10: "Amd64", interface: "Amd64", counters, fixed: 0, width: 48, supported, why }
}

const FOUR: &str = "AuthenticAMD with long mode, and 80000001:ECX[23] is clear: four counters";
const SIX: &str = "AuthenticAMD with long mode, and 80000001:ECX[23] is set: six counters";
const SIX_BY_V2: &str = "AuthenticAMD with long mode and PerfMonV2: 80000022:EBX[3:0] is 6: six counters";

const fn emon(counters: u8, width: u8, supported: &'static [u32], why: &'static str) -> Expected {
    Expected { windows10: "Emon", interface: "Emon", counters, fixed: 0, width, supported, why }
}

impl Expected {
    /// Adds fixed counters.
    const fn and_fixed(self, fixed: u8) -> Self {
        Self { counters: self.counters + fixed, fixed, ..self }
    }
}

const fn default(why: &'static str) -> Expected {
    Expected { windows10: "Default", interface: "Default", counters: 0, fixed: 0, width: 0, supported: &[], why }
}

/// Returns the outcome for a profile interface that the HAL of the original Windows 10 lacks.
const fn older(interface: &'static str, counters: u8, supported: &'static [u32], why: &'static str) -> Expected {
    Expected { windows10: "Default", interface, counters, fixed: 0, width: 40, supported, why }
}

/// Every source of NetBurst except `ProfileTime`.
const NETBURST: &[u32] = &[2, 6, 10, 11, 19, 25];

const P6: Expected = older(
    "P6",
    2,
    &[2, 6, 8, 10, 11, 19, 21, 25],
    "GenuineIntel of family 6, a model older than leaf 0xA, with a highest leaf below 0xA",
);

const PENTIUM: Expected = older(
    "Pentium",
    2,
    &[2, 6, 8, 9, 13, 20, 21],
    "GenuineIntel of family 5 with model-specific registers and a time-stamp counter",
);

macro_rules! identity {
    ($real:literal, $name:literal, $expected:expr) => {
        CpuIdentity {
            name: $name,
            real: $real,
            dump: include_str!(concat!("../identities/", $name, ".cpuid")),
            expected: $expected,
            odd_processors: None,
        }
    };
}

macro_rules! real {
    ($($entry:tt)*) => { identity!(true, $($entry)*) };
}

macro_rules! made_up {
    ($($entry:tt)*) => { identity!(false, $($entry)*) };
}

pub static IDENTITIES: &[CpuIdentity] = &[
    real!("k7-barton", default("AuthenticAMD without long mode")),
    real!("k8-clawhammer", amd(4, &K8, FOUR)),
    real!("k8-sledgehammer", amd(4, &K8, FOUR)),
    real!("k8-brisbane", amd(4, &K8, FOUR)),
    real!("k10-thuban", amd(4, &K8, FOUR)),
    real!("bobcat-c50", amd(4, &K8, FOUR)),
    real!("bulldozer-fx8150", amd(6, &WITHOUT_NORTHBRIDGE, SIX)),
    real!("jaguar-a4-5000", amd(4, &WITHOUT_NORTHBRIDGE, FOUR)),
    real!("zen-1800x", amd(6, ZEN, SIX)),
    real!("zen2-3600x", amd(6, ZEN, SIX)),
    real!("zen3-5950x", amd(6, ZEN3, SIX)),
    real!("zen4-7700x", amd(6, ZEN4, SIX_BY_V2)),
    real!("zen5-9800x3d", amd(6, ZEN4, SIX_BY_V2)),
    real!("hygon-c86-7185", default("the vendor is HygonGenuine")),
    real!("via-nano-cna", default("the vendor is CentaurHauls")),
    real!("zhaoxin-c4580", default("the vendor is CentaurHauls")),
    real!("zhaoxin-kx6640ma", default("the vendor is CentaurHauls")),
    real!("zhaoxin-kh40000", default("the vendor is CentaurHauls")),
    real!(
        "netburst-cedarmill",
        older("NetBurst", 18, NETBURST, "GenuineIntel of family 15 with a highest leaf below 0xA; one thread a core")
    ),
    real!(
        "netburst-irwindale",
        older("NetBurst", 9, NETBURST, "GenuineIntel of family 15 with a highest leaf below 0xA; two threads a core")
    ),
    real!("p6-coppermine", P6),
    real!("p6-dothan", P6),
    real!("pentium-p54c", PENTIUM),
    real!("pentium-p55c", PENTIUM),
    real!("yonah-t2400", emon(2, 40, ALL, CLEAR)),
    real!("core2-6420", emon(2, 40, ALL, CLEAR)),
    real!("core2-e5200", emon(2, 40, ALL, CLEAR).and_fixed(3)),
    real!("atom-d425", emon(2, 40, ALL, CLEAR).and_fixed(3)),
    real!("goldmont-plus-n4100", emon(4, 48, ALL, CLEAR).and_fixed(3)),
    real!(
        "nehalem-920",
        emon(4, 48, &[2, 6, 10, 19, 25, 26, 27, 28, 29, 30], "EBX bit 6 is set: no branch mispredicts").and_fixed(3)
    ),
    real!(
        "westmere-980x",
        emon(4, 48, &[2, 6, 10, 11, 19, 25, 26, 28, 29, 30, 31], "EBX bit 2 is set: no reference cycles").and_fixed(3)
    ),
    real!("sandy-bridge-2600k", emon(4, 48, ALL, CLEAR).and_fixed(3)),
    real!("ivy-bridge-3570k", emon(8, 48, ALL, CLEAR).and_fixed(3)),
    real!("haswell-4710mq", emon(4, 48, ALL, CLEAR).and_fixed(3)),
    real!("broadwell-6950x", emon(4, 48, ALL, CLEAR).and_fixed(3)),
    real!("skylake-6600k", emon(8, 48, ALL, CLEAR).and_fixed(3)),
    real!("cascade-lake-8269c", emon(4, 48, ALL, CLEAR).and_fixed(3)),
    real!("ice-lake-1065g7", emon(8, 48, ALL, CLEAR).and_fixed(3)),
    real!("tiger-lake-1135g7", emon(8, 48, ALL, CLEAR).and_fixed(3)),
    real!("alder-lake-12900k", emon(6, 48, ALL, CLEAR).and_fixed(3)),
    real!("sapphire-rapids-2475x", emon(8, 48, ALL, CLEAR).and_fixed(3)),
    real!(
        "arrow-lake-245k",
        emon(8, 48, ALL, "EBX bits 7 and 9 are set, but Emon has no sources for them").and_fixed(3)
    ),
    real!("hyperv-root-6300u", default(MASKED)),
    real!("vmware-6700k", default("leaf 0xA: EBX[0] is set; and 40000003:EDX[2] is clear")),
    real!("kvm-8650u", emon(4, 48, ALL, CLEAR).and_fixed(3)),
    real!("kvm-qemu-amd", amd(4, &K8, FOUR)),
    real!("firecracker-milan", amd(6, ZEN3, SIX)),
    real!("firecracker-cascade-lake", default("leaf 0xA: EAX[7:0] is 0")),
    real!("firecracker-granite-rapids", default("leaf 0xA: EAX[7:0] is 0")),
    made_up!("amd-legacy", amd(4, &K8, FOUR)),
    made_up!("amd-no-long-mode", default("AuthenticAMD without long mode")),
    made_up!("amd-hyperv-masked", default(MASKED)),
    made_up!("amd-hyperv-open", amd(6, ZEN, SIX)),
    made_up!("amd-kvm", amd(6, ZEN, SIX)),
    made_up!("amd-kvm-perfmon-v2", amd(6, ZEN4, SIX_BY_V2)),
    made_up!("intel-v1", emon(4, 40, ALL, CLEAR)),
    made_up!("intel-v2", emon(4, 48, ALL, CLEAR).and_fixed(3)),
    made_up!(
        "intel-half-events",
        emon(4, 48, &[10, 19, 25, 27, 29], "EBX bits 0, 2 and 4 are clear within a length of 5").and_fixed(3)
    ),
    made_up!("intel-no-leaf-a", default("GenuineIntel with a highest leaf below 0xA")),
    made_up!("intel-no-cycles", default("leaf 0xA: EBX[0] is set")),
    made_up!("intel-length-zero", default("leaf 0xA: EAX[31:24] is 0")),
    made_up!("intel-version-0", default("leaf 0xA: EAX[7:0] is 0")),
    made_up!(
        "intel-zero-counters",
        Expected { windows10: "Emon", ..default("Emon by leaf 0xA, but EAX[15:8] is 0: there are no counters") }
    ),
    CpuIdentity {
        odd_processors: Some("intel-hybrid-efficient"),
        ..made_up!("intel-hybrid", emon(8, 48, ALL, CLEAR).and_fixed(3))
    },
    made_up!(
        "intel-hybrid-efficient",
        emon(6, 40, &[2, 6, 11, 19, 25, 26, 27, 30, 31], "EBX bits 3 and 4 are set: no last-level cache events")
            .and_fixed(2)
    ),
    made_up!("intel-hyperv-masked", default(MASKED)),
];
