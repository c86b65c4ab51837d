//! The table of identities. The outcomes were determined by hand from the leaves.

use crate::amd::{K8, WITHOUT_NORTHBRIDGE, ZEN, ZEN3, ZEN4};
use crate::{Expected, Identity};

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
    ($real:literal, $name:literal, $description:literal, $expected:expr) => {
        Identity {
            name: $name,
            description: $description,
            real: $real,
            dump: include_str!(concat!("../identities/", $name, ".cpuid")),
            expected: $expected,
            beside: None,
        }
    };
}

macro_rules! real {
    ($($entry:tt)*) => { identity!(true, $($entry)*) };
}

macro_rules! made_up {
    ($($entry:tt)*) => { identity!(false, $($entry)*) };
}

pub static IDENTITIES: &[Identity] = &[
    real!("k7-barton", "AMD Athlon XP 3200+ (Barton), without long mode", default("AuthenticAMD without long mode")),
    real!("k8-clawhammer", "AMD Athlon 64 2800+ (Clawhammer)", amd(4, &K8, FOUR)),
    real!("k8-sledgehammer", "AMD Opteron 240 HE (Sledgehammer)", amd(4, &K8, FOUR)),
    real!("k8-brisbane", "AMD Athlon 64 X2 4000+ (Brisbane)", amd(4, &K8, FOUR)),
    real!("k10-thuban", "AMD Phenom II X6 1055T (Thuban)", amd(4, &K8, FOUR)),
    real!("bobcat-c50", "AMD C-50 (Bobcat, Ontario)", amd(4, &K8, FOUR)),
    real!("bulldozer-fx8150", "AMD FX-8150 (Bulldozer, Zambezi)", amd(6, &WITHOUT_NORTHBRIDGE, SIX)),
    real!("jaguar-a4-5000", "AMD A4-5000 (Jaguar, Kabini)", amd(4, &WITHOUT_NORTHBRIDGE, FOUR)),
    real!("zen-1800x", "AMD Ryzen 7 1800X (Zen, Summit Ridge)", amd(6, ZEN, SIX)),
    real!("zen2-3600x", "AMD Ryzen 5 3600X (Zen 2, Matisse)", amd(6, ZEN, SIX)),
    real!("zen3-5950x", "AMD Ryzen 9 5950X (Zen 3, Vermeer)", amd(6, ZEN3, SIX)),
    real!("zen4-7700x", "AMD Ryzen 7 7700X (Zen 4, Raphael), with PerfMonV2", amd(6, ZEN4, SIX_BY_V2)),
    real!("zen5-9800x3d", "AMD Ryzen 7 9800X3D (Zen 5, Granite Ridge), with PerfMonV2", amd(6, ZEN4, SIX_BY_V2)),
    real!("hygon-c86-7185", "Hygon C86 7185 (Dhyana)", default("the vendor is HygonGenuine")),
    real!("via-nano-cna", "VIA Nano, early sample (Isaiah CNA)", default("the vendor is CentaurHauls")),
    real!("zhaoxin-c4580", "Zhaoxin KaiXian ZX-C+ C4580 (ZhangJiang)", default("the vendor is CentaurHauls")),
    real!("zhaoxin-kx6640ma", "Zhaoxin KaiXian KX-6640MA (LuJiaZui)", default("the vendor is CentaurHauls")),
    real!("zhaoxin-kh40000", "Zhaoxin KaiSheng KH-40000/16 (YongFeng)", default("the vendor is CentaurHauls")),
    real!(
        "netburst-cedarmill",
        "Intel Celeron D 3.06 GHz (NetBurst, Cedar Mill)",
        older("NetBurst", 18, NETBURST, "GenuineIntel of family 15 with a highest leaf below 0xA; one thread a core")
    ),
    real!(
        "netburst-irwindale",
        "Intel Xeon 3.40 GHz (NetBurst, Irwindale), with Hyper-Threading",
        older("NetBurst", 9, NETBURST, "GenuineIntel of family 15 with a highest leaf below 0xA; two threads a core")
    ),
    real!("p6-coppermine", "Intel Pentium III (P6, Coppermine), without long mode", P6),
    real!("p6-dothan", "Intel Pentium M 1.60 GHz (P6, Dothan), without long mode", P6),
    real!("pentium-p54c", "Intel Pentium (P54C), without MMX and local APIC", PENTIUM),
    real!("pentium-p55c", "Intel Pentium MMX (P55C)", PENTIUM),
    real!("yonah-t2400", "Intel Core Duo T2400 (Yonah), version 1, without long mode", emon(2, 40, ALL, CLEAR)),
    real!("core2-6420", "Intel Core 2 6420 (Conroe), version 2, without fixed counters", emon(2, 40, ALL, CLEAR)),
    real!("core2-e5200", "Intel Pentium Dual-Core E5200 (Wolfdale)", emon(2, 40, ALL, CLEAR).and_fixed(3)),
    real!("atom-d425", "Intel Atom D425 (Bonnell, Pineview), version 3", emon(2, 40, ALL, CLEAR).and_fixed(3)),
    real!(
        "goldmont-plus-n4100",
        "Intel Celeron N4100 (Goldmont Plus, Gemini Lake), version 4",
        emon(4, 48, ALL, CLEAR).and_fixed(3)
    ),
    real!(
        "nehalem-920",
        "Intel Core i7 920 (Nehalem, Bloomfield), branch mispredicts not available",
        emon(4, 48, &[2, 6, 10, 19, 25, 26, 27, 28, 29, 30], "EBX bit 6 is set: no branch mispredicts").and_fixed(3)
    ),
    real!(
        "westmere-980x",
        "Intel Core i7 X 980 (Westmere, Gulftown), reference cycles not available",
        emon(4, 48, &[2, 6, 10, 11, 19, 25, 26, 28, 29, 30, 31], "EBX bit 2 is set: no reference cycles").and_fixed(3)
    ),
    real!("sandy-bridge-2600k", "Intel Core i7-2600K (Sandy Bridge)", emon(4, 48, ALL, CLEAR).and_fixed(3)),
    real!("ivy-bridge-3570k", "Intel Core i5-3570K (Ivy Bridge), eight counters", emon(8, 48, ALL, CLEAR).and_fixed(3)),
    real!("haswell-4710mq", "Intel Core i7-4710MQ (Haswell)", emon(4, 48, ALL, CLEAR).and_fixed(3)),
    real!("broadwell-6950x", "Intel Core i7-6950X (Broadwell-E)", emon(4, 48, ALL, CLEAR).and_fixed(3)),
    real!("skylake-6600k", "Intel Core i5-6600K (Skylake), version 4", emon(8, 48, ALL, CLEAR).and_fixed(3)),
    real!("cascade-lake-8269c", "Intel Xeon Platinum 8269C (Cascade Lake)", emon(4, 48, ALL, CLEAR).and_fixed(3)),
    real!(
        "ice-lake-1065g7",
        "Intel Core i7-1065G7 (Ice Lake), version 5, eight events",
        emon(8, 48, ALL, CLEAR).and_fixed(3)
    ),
    real!("tiger-lake-1135g7", "Intel Core i5-1135G7 (Tiger Lake)", emon(8, 48, ALL, CLEAR).and_fixed(3)),
    real!("alder-lake-12900k", "Intel Core i9-12900K (Alder Lake), a P core", emon(6, 48, ALL, CLEAR).and_fixed(3)),
    real!("sapphire-rapids-2475x", "Intel Xeon w7-2475X (Sapphire Rapids)", emon(8, 48, ALL, CLEAR).and_fixed(3)),
    real!(
        "arrow-lake-245k",
        "Intel Core Ultra 5 245K (Arrow Lake), a P core (Lion Cove), version 6, thirteen events",
        emon(8, 48, ALL, "EBX bits 7 and 9 are set, but Emon has no sources for them").and_fixed(3)
    ),
    real!(
        "hyperv-root-6300u",
        "Intel Core i5-6300U (Skylake), the root partition of Hyper-V, Windows 10 build 10586",
        default(MASKED)
    ),
    real!(
        "vmware-6700k",
        "Intel Core i7-6700K (Skylake), a guest of VMware that speaks the Hv#1 interface",
        default("leaf 0xA: EBX[0] is set; and 40000003:EDX[2] is clear")
    ),
    real!(
        "kvm-8650u",
        "Intel Core i7-8650U (Kaby Lake R), a guest of QEMU and KVM with counters",
        emon(4, 48, ALL, CLEAR).and_fixed(3)
    ),
    real!(
        "kvm-qemu-amd",
        "\"QEMU TCG CPU\", an AMD processor of family 6 by name, a guest of QEMU and KVM on an Intel host",
        amd(4, &K8, FOUR)
    ),
    real!(
        "firecracker-milan",
        "AMD EPYC (Zen 3, Milan), a guest of Firecracker on an m6a.metal host, template T2A",
        amd(6, ZEN3, SIX)
    ),
    real!(
        "firecracker-cascade-lake",
        "Intel Xeon (Cascade Lake), a guest of Firecracker on an m5.metal host, template T2CL",
        default("leaf 0xA: EAX[7:0] is 0")
    ),
    real!(
        "firecracker-granite-rapids",
        "Intel Xeon (Granite Rapids), as a guest of Firecracker sees it",
        default("leaf 0xA: EAX[7:0] is 0")
    ),
    made_up!("amd-legacy", "AMD family 10h: long mode, four counters", amd(4, &K8, FOUR)),
    made_up!("amd-no-long-mode", "AMD family 6: no long mode", default("AuthenticAMD without long mode")),
    made_up!("amd-hyperv-masked", "AMD family 17h under Hyper-V, counters masked", default(MASKED)),
    made_up!("amd-hyperv-open", "AMD family 17h under Hyper-V, counters offered", amd(6, ZEN, SIX)),
    made_up!("amd-kvm", "AMD family 17h under KVM without Hyper-V enlightenments", amd(6, ZEN, SIX)),
    made_up!("amd-kvm-perfmon-v2", "AMD Zen 4 under KVM, with PerfMonV2", amd(6, ZEN4, SIX_BY_V2)),
    made_up!("intel-v1", "Intel, version 1", emon(4, 40, ALL, CLEAR)),
    made_up!("intel-v2", "Intel, version 2", emon(4, 48, ALL, CLEAR).and_fixed(3)),
    made_up!(
        "intel-half-events",
        "Intel, version 2, five events of which two are not available",
        emon(4, 48, &[10, 19, 25, 27, 29], "EBX bits 0, 2 and 4 are clear within a length of 5").and_fixed(3)
    ),
    made_up!(
        "intel-no-leaf-a",
        "Intel family 6 of 2008, highest leaf 5",
        default("GenuineIntel with a highest leaf below 0xA")
    ),
    made_up!("intel-no-cycles", "Intel, core cycles not available", default("leaf 0xA: EBX[0] is set")),
    made_up!("intel-length-zero", "Intel, no event enumerated", default("leaf 0xA: EAX[31:24] is 0")),
    made_up!("intel-version-0", "Intel, version 0", default("leaf 0xA: EAX[7:0] is 0")),
    made_up!(
        "intel-zero-counters",
        "Intel, version 2, no general counter",
        Expected { windows10: "Emon", ..default("Emon by leaf 0xA, but EAX[15:8] is 0: there are no counters") }
    ),
    Identity {
        beside: Some("intel-hybrid-efficient"),
        ..made_up!(
            "intel-hybrid",
            "Intel, version 5, eight counters and three fixed ones, beside processors of another kind",
            emon(8, 48, ALL, CLEAR).and_fixed(3)
        )
    },
    made_up!(
        "intel-hybrid-efficient",
        "Intel, version 4, six counters of 40 bits and two fixed ones, two events not available",
        emon(6, 40, &[2, 6, 11, 19, 25, 26, 27, 30, 31], "EBX bits 3 and 4 are set: no last-level cache events")
            .and_fixed(2)
    ),
    made_up!("intel-hyperv-masked", "Intel, version 2 under Hyper-V, counters masked", default(MASKED)),
];
