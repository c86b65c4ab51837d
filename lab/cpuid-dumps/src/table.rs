//! The table of identities. The outcomes were determined by hand from the leaves.

use crate::amd::{FAMILY_10, FAMILY_11, FAMILY_12, FAMILY_14, FAMILY_15, FAMILY_16, K8, ZEN, ZEN3, ZEN4};
use crate::{Expected, Identity};

/// Every source of Emon except `ProfileTime`.
const ALL: &[u32] = &[2, 6, 10, 11, 19, 25, 26, 27, 28, 29, 30, 31];

const CLEAR: &str = "EBX bits 0 to 6 are clear within the length";
const BY_LEAF_23: &str = "leaf 0x23.1 has the counters; EBX of leaf 0xA clears the events of the sources";
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

/// A processor of a machine that has a second kind of processors.
macro_rules! hybrid {
    ($name:literal, $description:literal, $expected:expr, $beside:literal) => {
        Identity { beside: Some($beside), ..real!($name, $description, $expected) }
    };
}

macro_rules! made_up {
    ($($entry:tt)*) => { identity!(false, $($entry)*) };
}

/// A made-up processor of a machine that has a second kind of processors.
macro_rules! made_up_hybrid {
    ($name:literal, $description:literal, $expected:expr, $beside:literal) => {
        Identity { beside: Some($beside), ..made_up!($name, $description, $expected) }
    };
}

pub static IDENTITIES: &[Identity] = &[
    real!("k7-barton", "AMD Athlon XP 3200+ (Barton), without long mode", default("AuthenticAMD without long mode")),
    real!("k8-clawhammer", "AMD Athlon 64 2800+ (Clawhammer)", amd(4, &K8, FOUR)),
    real!("k8-sledgehammer", "AMD Opteron 240 HE (Sledgehammer)", amd(4, &K8, FOUR)),
    real!("k8-brisbane", "AMD Athlon 64 X2 4000+ (Brisbane)", amd(4, &K8, FOUR)),
    real!("k10-thuban", "AMD Phenom II X6 1055T (Thuban)", amd(4, &FAMILY_10, FOUR)),
    real!("bobcat-c50", "AMD C-50 (Bobcat, Ontario)", amd(4, &FAMILY_14, FOUR)),
    real!("bulldozer-fx8150", "AMD FX-8150 (Bulldozer, Zambezi)", amd(6, &FAMILY_15, SIX)),
    real!("jaguar-a4-5000", "AMD A4-5000 (Jaguar, Kabini)", amd(4, &FAMILY_16, FOUR)),
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
        emon(10, 48, ALL, BY_LEAF_23).and_fixed(3)
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
    real!("winchester-2800", "AMD Sempron Processor 2800+ (Winchester, K8)", amd(4, &K8, FOUR)),
    real!("manchester-3800", "AMD Athlon 64 X2 Dual Core Processor 3800+ (Manchester, K8)", amd(4, &K8, FOUR)),
    real!("venice-3200", "AMD Athlon 64 Processor 3200+ (Venice, K8)", amd(4, &K8, FOUR)),
    real!("santa-rosa-2210", "Dual-Core AMD Opteron Processor 2210 HE (Santa Rosa, K8)", amd(4, &K8, FOUR)),
    real!("windsor-6400", "AMD Athlon 64 X2 Dual Core Processor 6400+ (Windsor, K8)", amd(4, &K8, FOUR)),
    real!("barcelona-2344", "Quad-Core AMD Opteron Processor 2344 HE (Barcelona, K10)", amd(4, &FAMILY_10, FOUR)),
    real!("deneb-940", "AMD Phenom II X4 940 Processor (Deneb, K10)", amd(4, &FAMILY_10, FOUR)),
    real!("regor-245", "AMD Athlon II X2 245 Processor (Regor, K10)", amd(4, &FAMILY_10, FOUR)),
    real!("istanbul-2431", "Six-Core AMD Opteron Processor 2431 (Istanbul, K10)", amd(4, &FAMILY_10, FOUR)),
    real!("griffin-es", "AMD engineering sample (Griffin, family 11h)", amd(4, &FAMILY_11, FOUR)),
    real!("llano-3850", "AMD A8-3850 APU with Radeon HD Graphics (Llano, family 12h)", amd(4, &FAMILY_12, FOUR)),
    real!("ontario-350", "AMD E-350 Processor (Ontario, Bobcat)", amd(4, &FAMILY_14, FOUR)),
    real!("interlagos-6238", "AMD Opteron Processor 6238 (Interlagos, Bulldozer)", amd(6, &FAMILY_15, SIX)),
    real!("vishera-8350", "AMD FX-8350 Eight-Core Processor (Vishera, Piledriver)", amd(6, &FAMILY_15, SIX)),
    real!("trinity-4600m", "AMD A10-4600M APU with Radeon HD Graphics (Trinity, Piledriver)", amd(6, &FAMILY_15, SIX)),
    real!(
        "richland-6800k",
        "AMD A10-6800K APU with Radeon HD Graphics (Richland, Piledriver)",
        amd(6, &FAMILY_15, SIX)
    ),
    real!(
        "kaveri-7850k",
        "AMD A10-7850K Radeon R7, 12 Compute Cores 4C+8G (Kaveri, Steamroller)",
        amd(6, &FAMILY_15, SIX)
    ),
    real!(
        "carrizo-8800p",
        "AMD FX-8800P Radeon R7, 12 Compute Cores 4C+8G (Carrizo, Excavator)",
        amd(6, &FAMILY_15, SIX)
    ),
    real!(
        "bristol-ridge-9800",
        "AMD A12-9800 RADEON R7, 12 COMPUTE CORES 4C+8G (Bristol Ridge, Excavator)",
        amd(6, &FAMILY_15, SIX)
    ),
    real!(
        "stoney-ridge-9410",
        "AMD A9-9410 RADEON R5, 5 COMPUTE CORES 2C+3G (Stoney Ridge, Excavator)",
        amd(6, &FAMILY_15, SIX)
    ),
    real!("cato-9820", "AMD A9-9820 Processor (Cato, Jaguar)", amd(4, &FAMILY_16, FOUR)),
    real!("beema-6410", "AMD A8-6410 APU with AMD Radeon R5 Graphics (Beema, Puma)", amd(4, &FAMILY_16, FOUR)),
    real!("whitehaven-1950x", "AMD Ryzen Threadripper 1950X 16-Core Processor (Whitehaven, Zen)", amd(6, ZEN, SIX)),
    real!("pinnacle-ridge-2600x", "AMD Ryzen 5 2600X Six-Core Processor (Pinnacle Ridge, Zen+)", amd(6, ZEN, SIX)),
    real!("raven-ridge-2500u", "AMD Ryzen 5 2500U with Radeon Vega Mobile Gfx (Raven Ridge, Zen)", amd(6, ZEN, SIX)),
    real!("picasso-3550h", "AMD Ryzen 5 3550H with Radeon Vega Mobile Gfx (Picasso, Zen+)", amd(6, ZEN, SIX)),
    real!("rome-7742", "AMD EPYC 7742 64-Core Processor (Rome, Zen 2)", amd(6, ZEN, SIX)),
    real!("renoir-4800h", "AMD Ryzen 7 4800H with Radeon Graphics (Renoir, Zen 2)", amd(6, ZEN, SIX)),
    real!("van-gogh-0405", "AMD Custom APU 0405 (Van Gogh, Zen 2)", amd(6, ZEN, SIX)),
    real!("mendocino-7320u", "AMD Ryzen 3 7320U with Radeon Graphics (Mendocino, Zen 2)", amd(6, ZEN, SIX)),
    real!("milan-7713", "AMD EPYC 7713 64-Core Processor (Milan, Zen 3)", amd(6, ZEN3, SIX)),
    real!("cezanne-5800h", "AMD Ryzen 7 5800H with Radeon Graphics (Cezanne, Zen 3)", amd(6, ZEN3, SIX)),
    real!("rembrandt-6800hs", "AMD Ryzen 7 6800HS with Radeon Graphics (Rembrandt, Zen 3+)", amd(6, ZEN3, SIX)),
    real!("genoa-9654", "AMD EPYC 9654 96-Core Processor (Genoa, Zen 4)", amd(6, ZEN4, SIX_BY_V2)),
    real!("phoenix-7940h", "AMD Ryzen 9 7940H w/ Radeon 780M Graphics (Phoenix, Zen 4)", amd(6, ZEN4, SIX_BY_V2)),
    real!("phoenix2-z1", "AMD Ryzen Z1 (Phoenix2, Zen 4 and Zen 4c)", amd(6, ZEN4, SIX_BY_V2)),
    real!("bergamo-9754", "AMD EPYC 9754 128-Core Emb Processor (Bergamo, Zen 4c)", amd(6, ZEN4, SIX_BY_V2)),
    real!("turin-9655", "AMD EPYC 9655 96-Core Processor (Turin, Zen 5)", amd(6, ZEN4, SIX_BY_V2)),
    real!("turin-dense-9965", "AMD EPYC 9965 192-Core Processor (Turin Dense, Zen 5c)", amd(6, ZEN4, SIX_BY_V2)),
    real!(
        "strix-point-370",
        "AMD Ryzen AI 9 HX 370 w/ Radeon 890M (Strix Point, Zen 5 and Zen 5c)",
        amd(6, ZEN4, SIX_BY_V2)
    ),
    real!(
        "krackan-point-350",
        "AMD Ryzen AI 7 PRO 350 w/ Radeon 860M (Krackan Point, Zen 5 and Zen 5c)",
        amd(6, ZEN4, SIX_BY_V2)
    ),
    real!("strix-halo-395", "AMD RYZEN AI MAX+ 395 w/ Radeon 8060S (Strix Halo, Zen 5)", amd(6, ZEN4, SIX_BY_V2)),
    real!(
        "beckton-e7520",
        "Intel Xeon E7520 (Beckton, Nehalem-EX)",
        emon(4, 48, &[2, 6, 10, 19, 25, 26, 28, 29, 30], "leaf 0xA: EBX bits 2 and 6 are set").and_fixed(3)
    ),
    real!(
        "lynnfield-860",
        "Intel Core i7 860 (Lynnfield, Nehalem)",
        emon(4, 48, &[2, 6, 10, 19, 25, 26, 28, 29, 30], "leaf 0xA: EBX bits 2 and 6 are set").and_fixed(3)
    ),
    real!(
        "clarkdale-650",
        "Intel Core i5 650 (Clarkdale, Westmere)",
        emon(4, 48, &[2, 6, 10, 11, 19, 25, 26, 28, 29, 30, 31], "leaf 0xA: EBX bit 2 is set").and_fixed(3)
    ),
    real!(
        "eagleton-4870",
        "Intel Xeon E7-4870 (Eagleton, Westmere-EX)",
        emon(4, 48, &[2, 6, 10, 11, 19, 25, 26, 28, 29, 30, 31], "leaf 0xA: EBX bit 2 is set").and_fixed(3)
    ),
    real!("diamondville-230", "Intel Atom 230 (Diamondville, Bonnell)", emon(2, 40, ALL, CLEAR).and_fixed(1)),
    real!("cedarview-d2700", "Intel Atom D2700 (Cedarview, Saltwell)", emon(2, 40, ALL, CLEAR).and_fixed(3)),
    real!("bay-trail-z3745", "Intel Atom Z3745 (Bay Trail, Silvermont)", emon(2, 40, ALL, CLEAR).and_fixed(3)),
    real!("avoton-c2750", "Intel Atom C2750 (Avoton, Silvermont)", emon(2, 40, ALL, CLEAR).and_fixed(3)),
    real!("braswell-n3150", "Intel Celeron N3150 (Braswell, Airmont)", emon(2, 40, ALL, CLEAR).and_fixed(3)),
    real!("apollo-lake-n4200", "Intel Pentium N4200 (Apollo Lake, Goldmont)", emon(4, 48, ALL, CLEAR).and_fixed(3)),
    real!("elkhart-lake-j6412", "Intel Celeron J6412 (Elkhart Lake, Tremont)", emon(4, 48, ALL, CLEAR).and_fixed(3)),
    real!(
        "jasper-lake-n6005",
        "Intel Pentium Silver N6005 (Jasper Lake, Tremont)",
        emon(4, 48, ALL, CLEAR).and_fixed(3)
    ),
    real!("alder-lake-n-95", "Intel N95 (Alder Lake-N, Gracemont)", emon(6, 48, ALL, CLEAR).and_fixed(3)),
    real!(
        "sandy-bridge-ep-3930k",
        "Intel Core i7-3930K (Sandy Bridge-EP, Sandy Bridge)",
        emon(4, 48, ALL, CLEAR).and_fixed(3)
    ),
    real!(
        "ivy-bridge-ep-4930k",
        "Intel Core i7-4930K (Ivy Bridge-EP, Ivy Bridge)",
        emon(4, 48, ALL, CLEAR).and_fixed(3)
    ),
    real!("haswell-ep-2699", "Intel Xeon E5-2699 v3 (Haswell-EP, Haswell)", emon(4, 48, ALL, CLEAR).and_fixed(3)),
    real!("haswell-ult-4500u", "Intel Core i7-4500U (Haswell-ULT, Haswell)", emon(4, 48, ALL, CLEAR).and_fixed(3)),
    real!("broadwell-u-5y70", "Intel Processor 5Y70 (Broadwell-U, Broadwell)", emon(4, 48, ALL, CLEAR).and_fixed(3)),
    real!("broadwell-de-1540", "Intel Xeon D-1540 (Broadwell-DE, Broadwell)", emon(4, 48, ALL, CLEAR).and_fixed(3)),
    real!("skylake-u-6500u", "Intel Core i7-6500U (Skylake-U, Skylake)", emon(4, 48, ALL, CLEAR).and_fixed(3)),
    real!("knights-landing-7210", "Intel Xeon Phi 7210 (Knights Landing)", emon(2, 40, ALL, CLEAR).and_fixed(3)),
    real!("skylake-sp-6154", "Intel Xeon Gold 6154 (Skylake-SP, Skylake)", emon(4, 48, ALL, CLEAR).and_fixed(3)),
    real!("kaby-lake-7200u", "Intel Core i5-7200U (Kaby Lake)", emon(4, 48, ALL, CLEAR).and_fixed(3)),
    real!("coffee-lake-8700k", "Intel Core i7-8700K (Coffee Lake)", emon(4, 48, ALL, CLEAR).and_fixed(3)),
    real!("comet-lake-10900k", "Intel Core i9-10900K (Comet Lake)", emon(4, 48, ALL, CLEAR).and_fixed(3)),
    real!("cannon-lake-8121u", "Intel Core i3-8121U (Cannon Lake)", emon(4, 48, ALL, CLEAR).and_fixed(3)),
    real!("ice-lake-sp-6330", "Intel Xeon Gold 6330 (Ice Lake-SP, Ice Lake)", emon(8, 48, ALL, CLEAR).and_fixed(3)),
    real!("rocket-lake-11700kf", "11th Gen Intel Core i7-11700KF (Rocket Lake)", emon(8, 48, ALL, CLEAR).and_fixed(3)),
    hybrid!(
        "lakefield-l16g7",
        "Intel Core i5-L16G7 (Lakefield, Sunny Cove), a performance core",
        emon(4, 48, &[2, 6, 10, 11, 19, 25, 26, 28, 29, 30, 31], "leaf 0xA: EBX bit 2 is set").and_fixed(3),
        "lakefield-l16g7-efficient"
    ),
    real!(
        "lakefield-l16g7-efficient",
        "Intel Core i5-L16G7 (Lakefield, Tremont), an efficient core",
        emon(4, 48, &[2, 6, 10, 11, 19, 25, 26, 28, 29, 30, 31], "leaf 0xA: EBX bit 2 is set").and_fixed(3)
    ),
    hybrid!(
        "alder-lake-p-12900h",
        "12th Gen Intel Core i9-12900H (Alder Lake, Golden Cove), a performance core",
        emon(6, 48, ALL, CLEAR).and_fixed(3),
        "alder-lake-p-12900h-efficient"
    ),
    real!(
        "alder-lake-p-12900h-efficient",
        "12th Gen Intel Core i9-12900H (Alder Lake, Gracemont), an efficient core",
        emon(6, 48, ALL, CLEAR).and_fixed(3)
    ),
    hybrid!(
        "raptor-lake-p-13900h",
        "13th Gen Intel Core i9-13900H (Raptor Lake, Raptor Cove), a performance core",
        emon(6, 48, ALL, CLEAR).and_fixed(3),
        "raptor-lake-p-13900h-efficient"
    ),
    real!(
        "raptor-lake-p-13900h-efficient",
        "13th Gen Intel Core i9-13900H (Raptor Lake, Gracemont), an efficient core",
        emon(6, 48, ALL, CLEAR).and_fixed(3)
    ),
    real!(
        "raptor-lake-e-6315p",
        "Intel Xeon 6315P (Raptor Lake, without efficient cores)",
        emon(8, 48, ALL, CLEAR).and_fixed(3)
    ),
    hybrid!(
        "meteor-lake-155h",
        "Intel Core Ultra 7 155H (Meteor Lake, Redwood Cove), a performance core",
        emon(8, 48, ALL, BY_LEAF_23).and_fixed(3),
        "meteor-lake-155h-efficient"
    ),
    real!(
        "meteor-lake-155h-efficient",
        "Intel Core Ultra 7 155H (Meteor Lake, Crestmont), an efficient core",
        emon(8, 48, ALL, BY_LEAF_23).and_fixed(3)
    ),
    hybrid!(
        "arrow-lake-u-265u",
        "Intel Core Ultra 7 265U (Arrow Lake-U, Redwood Cove), a performance core",
        emon(8, 48, ALL, BY_LEAF_23).and_fixed(3),
        "arrow-lake-u-265u-efficient"
    ),
    real!(
        "arrow-lake-u-265u-efficient",
        "Intel Core Ultra 7 265U (Arrow Lake-U, Crestmont), an efficient core",
        emon(8, 48, ALL, BY_LEAF_23).and_fixed(3)
    ),
    hybrid!(
        "lunar-lake-288v",
        "Intel Core Ultra 9 288V (Lunar Lake, Lion Cove), a performance core",
        emon(10, 48, ALL, BY_LEAF_23).and_fixed(3),
        "lunar-lake-288v-efficient"
    ),
    real!(
        "lunar-lake-288v-efficient",
        "Intel Core Ultra 9 288V (Lunar Lake, Skymont), an efficient core",
        emon(8, 48, ALL, BY_LEAF_23).and_fixed(3)
    ),
    hybrid!(
        "arrow-lake-h-285h",
        "Intel Core Ultra 9 285H (Arrow Lake-H, Lion Cove), a performance core",
        emon(10, 48, ALL, BY_LEAF_23).and_fixed(3),
        "arrow-lake-h-285h-efficient"
    ),
    real!(
        "arrow-lake-h-285h-efficient",
        "Intel Core Ultra 9 285H (Arrow Lake-H, Skymont), an efficient core",
        emon(8, 48, ALL, BY_LEAF_23).and_fixed(3)
    ),
    real!(
        "arrow-lake-h-285h-low-power",
        "Intel Core Ultra 9 285H (Arrow Lake-H, Crestmont), a low-power efficient core",
        emon(8, 48, ALL, BY_LEAF_23).and_fixed(3)
    ),
    hybrid!(
        "arrow-lake-s-265k",
        "Intel Core Ultra 7 265K (Arrow Lake-S, Lion Cove), a performance core",
        emon(10, 48, ALL, BY_LEAF_23).and_fixed(3),
        "arrow-lake-s-265k-efficient"
    ),
    real!(
        "arrow-lake-s-265k-efficient",
        "Intel Core Ultra 7 265K (Arrow Lake-S, Skymont), an efficient core",
        emon(8, 48, ALL, BY_LEAF_23).and_fixed(3)
    ),
    hybrid!(
        "panther-lake-355",
        "Intel Core Ultra 7 355 (Panther Lake, Cougar Cove), a performance core",
        emon(10, 48, ALL, BY_LEAF_23).and_fixed(3),
        "panther-lake-355-efficient"
    ),
    real!(
        "panther-lake-355-efficient",
        "Intel Core Ultra 7 355 (Panther Lake, Darkmont), an efficient core",
        emon(8, 48, ALL, BY_LEAF_23).and_fixed(3)
    ),
    hybrid!(
        "wildcat-lake-320",
        "Intel Core 5 320 (Wildcat Lake, Cougar Cove), a performance core",
        emon(10, 48, ALL, BY_LEAF_23).and_fixed(3),
        "wildcat-lake-320-efficient"
    ),
    real!(
        "wildcat-lake-320-efficient",
        "Intel Core 5 320 (Wildcat Lake, Darkmont), an efficient core",
        emon(8, 48, ALL, BY_LEAF_23).and_fixed(3)
    ),
    real!(
        "granite-rapids-658x",
        "Intel Xeon 658X (Granite Rapids, Redwood Cove)",
        emon(8, 48, ALL, BY_LEAF_23).and_fixed(3)
    ),
    real!(
        "emerald-rapids-5520",
        "Intel Xeon Gold 5520+ (Emerald Rapids, Raptor Cove)",
        emon(8, 48, ALL, CLEAR).and_fixed(3)
    ),
    real!("merom-t5600", "Intel Core2 T5600 (Merom, Core 2)", emon(2, 40, ALL, CLEAR)),
    real!("harpertown-e5462", "Intel Xeon E5462 (Harpertown, Core 2)", emon(2, 40, ALL, CLEAR).and_fixed(3)),
    real!("dunnington-e7450", "Intel Xeon E7450 (Dunnington, Core 2)", emon(2, 40, ALL, CLEAR).and_fixed(3)),
    real!("p6-banias", "Intel Celeron M processor 1300MHz (Banias, Pentium M)", P6),
    real!(
        "netburst-willamette-celeron-1700",
        "Intel Celeron 1.70GHz (Willamette, NetBurst)",
        older("NetBurst", 18, NETBURST, "GenuineIntel of family 15 with a highest leaf below 0xA; one thread a core")
    ),
    real!(
        "netburst-prescott-celeron-2530",
        "Intel Celeron 2.53GHz (Prescott, NetBurst)",
        older("NetBurst", 18, NETBURST, "GenuineIntel of family 15 with a highest leaf below 0xA; one thread a core")
    ),
    real!(
        "netburst-tulsa-xeon-3400",
        "Intel Xeon 3.40GHz (Tulsa, NetBurst)",
        older("NetBurst", 9, NETBURST, "GenuineIntel of family 15 with a highest leaf below 0xA; two threads a core")
    ),
    real!("hygon-dhyana-3185", "Hygon C86 3185 8-core Processor (Hygon Dhyana)", default("the vendor is HygonGenuine")),
    real!("kaixian-kx7000", "ZHAOXIN KaiXian KX-7000 (Zhaoxin)", default("the vendor is CentaurHauls")),
    real!("nano-l4700", "VIA QuadCore L4700 (VIA Nano)", default("the vendor is CentaurHauls")),
    made_up!("amd-legacy", "AMD family 10h: long mode, four counters", amd(4, &FAMILY_10, FOUR)),
    made_up!("amd-no-long-mode", "AMD family 6: no long mode", default("AuthenticAMD without long mode")),
    made_up!("amd-hyperv-masked", "AMD family 17h under Hyper-V, counters masked", default(MASKED)),
    made_up!("amd-hyperv-open", "AMD family 17h under Hyper-V, counters offered", amd(6, ZEN, SIX)),
    made_up!("amd-kvm", "AMD family 17h under KVM without Hyper-V enlightenments", amd(6, ZEN, SIX)),
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
    made_up!(
        "snow-ridge-derived",
        "Snow Ridge (Tremont), derived from elkhart-lake-j6412",
        emon(4, 48, ALL, CLEAR).and_fixed(3)
    ),
    made_up!(
        "sierra-forest-derived",
        "Sierra Forest (Crestmont), derived from meteor-lake-155h-efficient",
        emon(8, 48, ALL, BY_LEAF_23).and_fixed(3)
    ),
    made_up!(
        "grand-ridge-derived",
        "Grand Ridge (Crestmont), derived from meteor-lake-155h-efficient",
        emon(8, 48, ALL, BY_LEAF_23).and_fixed(3)
    ),
    made_up!(
        "clearwater-forest-derived",
        "Clearwater Forest (Darkmont), derived from panther-lake-355-efficient",
        emon(8, 48, ALL, BY_LEAF_23).and_fixed(3)
    ),
    made_up_hybrid!(
        "nova-lake-derived",
        "Nova Lake (Coyote Cove), derived from panther-lake-355",
        emon(8, 48, ALL, BY_LEAF_23).and_fixed(3),
        "nova-lake-derived-efficient"
    ),
    made_up!(
        "nova-lake-derived-efficient",
        "Nova Lake (Arctic Wolf), derived from panther-lake-355-efficient",
        emon(8, 48, ALL, BY_LEAF_23).and_fixed(3)
    ),
    made_up!("intel-hyperv-masked", "Intel, version 2 under Hyper-V, counters masked", default(MASKED)),
];
