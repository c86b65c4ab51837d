//! The table of identities. The outcomes were determined by hand from the leaves.

use crate::amd::{FAMILY_10, FAMILY_11, FAMILY_12, FAMILY_14, FAMILY_15, FAMILY_16, K8, ZEN, ZEN3, ZEN4, ZEN6};
use crate::{CpuIdentity, Expected};

/// Every source of Emon except `ProfileTime`.
const ALL: &[u64] = &[2, 6, 10, 11, 19, 25, 26, 27, 28, 29, 30, 31];

const CLEAR: &str = "EBX bits 0 to 6 are clear within the length";
const BY_LEAF_23: &str = "leaf 0x23.1 has the counters; EBX of leaf 0xA clears the events of the sources";
const HIDDEN: &str = "a P core beside E cores: leaf 0xA reports six counters that both have, and hides two";
const MASKED: &str = "a Microsoft hypervisor masks the counters: 40000003:EDX[2] is clear";

const BLINDED: &str = "KVM with Hyper-V enlightenments: 40000003:EDX[2] is clear, and 40000100 has KVM's name";

const fn amd(counters: u8, supported: &'static [u64], why: &'static str) -> Expected {
    Expected { windows10: "Amd64", interface: "Amd64", counters, fixed: 0, width: 48, supported, why }
}

const FOUR: &str = "AuthenticAMD with long mode, and 80000001:ECX[23] is clear: four counters";
const SIX: &str = "AuthenticAMD with long mode, and 80000001:ECX[23] is set: six counters";
const SIX_BY_V2: &str = "AuthenticAMD with long mode and PerfMonV2: 80000022:EBX[3:0] is 6: six counters";

const fn emon(counters: u8, width: u8, supported: &'static [u64], why: &'static str) -> Expected {
    Expected { windows10: "Emon", interface: "Emon", counters, fixed: 0, width, supported, why }
}

impl Expected {
    /// Adds fixed counters.
    const fn and_fixed(self, fixed: u8) -> Self {
        Self { counters: self.counters + fixed, fixed, ..self }
    }

    /// Makes it the outcome where the HAL finds no counters.
    const fn behind_the_hal(self) -> Self {
        Self { windows10: "Default", ..self }
    }
}

const fn default(why: &'static str) -> Expected {
    Expected { windows10: "Default", interface: "Default", counters: 0, fixed: 0, width: 0, supported: &[], why }
}

/// Returns the outcome for a profile interface that the HAL of the original Windows 10 lacks.
const fn older(interface: &'static str, counters: u8, supported: &'static [u64], why: &'static str) -> Expected {
    Expected { windows10: "Default", interface, counters, fixed: 0, width: 40, supported, why }
}

/// Every source of NetBurst except `ProfileTime`.
const NETBURST: &[u64] = &[2, 6, 10, 11, 19, 25];

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
        CpuIdentity { name: $name, real: $real, expected: $expected, odd_processors: None }
    };
}

macro_rules! real {
    ($($entry:tt)*) => { identity!(true, $($entry)*) };
}

/// A processor of a machine that has a second kind of processors.
macro_rules! hybrid {
    ($name:literal, $expected:expr, $odd_processors:literal) => {
        CpuIdentity { odd_processors: Some($odd_processors), ..real!($name, $expected) }
    };
}

macro_rules! made_up {
    ($($entry:tt)*) => { identity!(false, $($entry)*) };
}

/// A made-up processor of a machine that has a second kind of processors.
macro_rules! made_up_hybrid {
    ($name:literal, $expected:expr, $odd_processors:literal) => {
        CpuIdentity { odd_processors: Some($odd_processors), ..made_up!($name, $expected) }
    };
}

pub static IDENTITIES: &[CpuIdentity] = &[
    real!("k7-barton", default("AuthenticAMD without long mode")),
    real!("k8-clawhammer", amd(4, &K8, FOUR)),
    real!("k8-sledgehammer", amd(4, &K8, FOUR)),
    real!("k8-brisbane", amd(4, &K8, FOUR)),
    real!("k10-thuban", amd(4, &FAMILY_10, FOUR)),
    real!("bobcat-c50", amd(4, &FAMILY_14, FOUR)),
    real!("bulldozer-fx8150", amd(6, &FAMILY_15, SIX)),
    real!("jaguar-a4-5000", amd(4, &FAMILY_16, FOUR)),
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
    real!("core2-6420", emon(2, 40, ALL, CLEAR).and_fixed(3)),
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
    real!("alder-lake-12900k", emon(8, 48, ALL, HIDDEN).and_fixed(3)),
    real!("sapphire-rapids-2475x", emon(8, 48, ALL, CLEAR).and_fixed(3)),
    real!("arrow-lake-245k", emon(10, 48, ALL, BY_LEAF_23).and_fixed(3)),
    real!("hyperv-root-6300u", default(MASKED)),
    real!("vmware-6700k", default("leaf 0xA: EBX[0] is set; and 40000003:EDX[2] is clear")),
    real!("kvm-8650u", emon(4, 48, ALL, CLEAR).and_fixed(3)),
    real!("kvm-qemu-amd", amd(4, &K8, FOUR)),
    real!("qemu-tcg", amd(4, &K8, FOUR)),
    real!("firecracker-milan", amd(6, ZEN3, SIX)),
    real!("firecracker-cascade-lake", default("leaf 0xA: EAX[7:0] is 0")),
    real!("firecracker-granite-rapids", default("leaf 0xA: EAX[7:0] is 0")),
    real!("winchester-2800", amd(4, &K8, FOUR)),
    real!("manchester-3800", amd(4, &K8, FOUR)),
    real!("venice-3200", amd(4, &K8, FOUR)),
    real!("santa-rosa-2210", amd(4, &K8, FOUR)),
    real!("windsor-6400", amd(4, &K8, FOUR)),
    real!("barcelona-2344", amd(4, &FAMILY_10, FOUR)),
    real!("deneb-940", amd(4, &FAMILY_10, FOUR)),
    real!("regor-245", amd(4, &FAMILY_10, FOUR)),
    real!("istanbul-2431", amd(4, &FAMILY_10, FOUR)),
    real!("magny-cours-es", amd(4, &FAMILY_10, FOUR)),
    real!("griffin-es", amd(4, &FAMILY_11, FOUR)),
    real!("llano-3850", amd(4, &FAMILY_12, FOUR)),
    real!("ontario-350", amd(4, &FAMILY_14, FOUR)),
    real!("interlagos-6238", amd(6, &FAMILY_15, SIX)),
    real!("vishera-8350", amd(6, &FAMILY_15, SIX)),
    real!("trinity-4600m", amd(6, &FAMILY_15, SIX)),
    real!("richland-6800k", amd(6, &FAMILY_15, SIX)),
    real!("kaveri-7850k", amd(6, &FAMILY_15, SIX)),
    real!("carrizo-8800p", amd(6, &FAMILY_15, SIX)),
    real!("bristol-ridge-9800", amd(6, &FAMILY_15, SIX)),
    real!("stoney-ridge-9410", amd(6, &FAMILY_15, SIX)),
    real!("cato-9820", amd(4, &FAMILY_16, FOUR)),
    real!("beema-6410", amd(4, &FAMILY_16, FOUR)),
    real!("whitehaven-1950x", amd(6, ZEN, SIX)),
    real!("pinnacle-ridge-2600x", amd(6, ZEN, SIX)),
    real!("raven-ridge-2500u", amd(6, ZEN, SIX)),
    real!("picasso-3550h", amd(6, ZEN, SIX)),
    real!("rome-7742", amd(6, ZEN, SIX)),
    real!("renoir-4800h", amd(6, ZEN, SIX)),
    real!("van-gogh-0405", amd(6, ZEN, SIX)),
    real!("mendocino-7320u", amd(6, ZEN, SIX)),
    real!("milan-7713", amd(6, ZEN3, SIX)),
    real!("cezanne-5800h", amd(6, ZEN3, SIX)),
    real!("rembrandt-6800hs", amd(6, ZEN3, SIX)),
    real!("genoa-9654", amd(6, ZEN4, SIX_BY_V2)),
    real!("phoenix-7940h", amd(6, ZEN4, SIX_BY_V2)),
    real!("phoenix2-z1", amd(6, ZEN4, SIX_BY_V2)),
    real!("bergamo-9754", amd(6, ZEN4, SIX_BY_V2)),
    real!("turin-9655", amd(6, ZEN4, SIX_BY_V2)),
    real!("turin-dense-9965", amd(6, ZEN4, SIX_BY_V2)),
    real!("strix-point-370", amd(6, ZEN4, SIX_BY_V2)),
    real!("krackan-point-350", amd(6, ZEN4, SIX_BY_V2)),
    real!("strix-halo-395", amd(6, ZEN4, SIX_BY_V2)),
    real!(
        "beckton-e7520",
        emon(4, 48, &[2, 6, 10, 19, 25, 26, 28, 29, 30], "leaf 0xA: EBX bits 2 and 6 are set").and_fixed(3)
    ),
    real!(
        "lynnfield-860",
        emon(4, 48, &[2, 6, 10, 19, 25, 26, 28, 29, 30], "leaf 0xA: EBX bits 2 and 6 are set").and_fixed(3)
    ),
    real!(
        "clarkdale-650",
        emon(4, 48, &[2, 6, 10, 11, 19, 25, 26, 28, 29, 30, 31], "leaf 0xA: EBX bit 2 is set").and_fixed(3)
    ),
    real!(
        "eagleton-4870",
        emon(4, 48, &[2, 6, 10, 11, 19, 25, 26, 28, 29, 30, 31], "leaf 0xA: EBX bit 2 is set").and_fixed(3)
    ),
    real!("diamondville-230", emon(2, 40, ALL, CLEAR).and_fixed(3)),
    real!("cedarview-d2700", emon(2, 40, ALL, CLEAR).and_fixed(3)),
    real!("bay-trail-z3745", emon(2, 40, ALL, CLEAR).and_fixed(3)),
    real!("avoton-c2750", emon(2, 40, ALL, CLEAR).and_fixed(3)),
    real!("braswell-n3150", emon(2, 40, ALL, CLEAR).and_fixed(3)),
    real!("apollo-lake-n4200", emon(4, 48, ALL, CLEAR).and_fixed(3)),
    real!("elkhart-lake-j6412", emon(4, 48, ALL, CLEAR).and_fixed(3)),
    real!("jasper-lake-n6005", emon(4, 48, ALL, CLEAR).and_fixed(3)),
    real!("alder-lake-n-95", emon(6, 48, ALL, CLEAR).and_fixed(3)),
    real!("sandy-bridge-ep-3930k", emon(4, 48, ALL, CLEAR).and_fixed(3)),
    real!("ivy-bridge-ep-4930k", emon(4, 48, ALL, CLEAR).and_fixed(3)),
    real!("haswell-ep-2699", emon(4, 48, ALL, CLEAR).and_fixed(3)),
    real!("haswell-ult-4500u", emon(4, 48, ALL, CLEAR).and_fixed(3)),
    real!("broadwell-u-5y70", emon(4, 48, ALL, CLEAR).and_fixed(3)),
    real!("broadwell-de-1540", emon(4, 48, ALL, CLEAR).and_fixed(3)),
    real!("skylake-u-6500u", emon(4, 48, ALL, CLEAR).and_fixed(3)),
    real!("knights-landing-7210", emon(2, 40, ALL, CLEAR).and_fixed(3)),
    real!("skylake-sp-6154", emon(4, 48, ALL, CLEAR).and_fixed(3)),
    real!("kaby-lake-7200u", emon(4, 48, ALL, CLEAR).and_fixed(3)),
    real!("coffee-lake-8700k", emon(4, 48, ALL, CLEAR).and_fixed(3)),
    real!("comet-lake-10900k", emon(4, 48, ALL, CLEAR).and_fixed(3)),
    real!("cannon-lake-8121u", emon(4, 48, ALL, CLEAR).and_fixed(3)),
    real!("ice-lake-sp-6330", emon(8, 48, ALL, CLEAR).and_fixed(3)),
    real!("rocket-lake-11700kf", emon(8, 48, ALL, CLEAR).and_fixed(3)),
    hybrid!(
        "lakefield-l16g7",
        emon(4, 48, &[2, 6, 10, 11, 19, 25, 26, 28, 29, 30, 31], "leaf 0xA: EBX bit 2 is set").and_fixed(3),
        "lakefield-l16g7-efficient"
    ),
    real!(
        "lakefield-l16g7-efficient",
        emon(4, 48, &[2, 6, 10, 11, 19, 25, 26, 28, 29, 30, 31], "leaf 0xA: EBX bit 2 is set").and_fixed(3)
    ),
    hybrid!("alder-lake-p-12900h", emon(8, 48, ALL, HIDDEN).and_fixed(3), "alder-lake-p-12900h-efficient"),
    real!("alder-lake-p-12900h-efficient", emon(6, 48, ALL, CLEAR).and_fixed(3)),
    hybrid!("raptor-lake-p-13900h", emon(8, 48, ALL, HIDDEN).and_fixed(3), "raptor-lake-p-13900h-efficient"),
    real!("raptor-lake-p-13900h-efficient", emon(6, 48, ALL, CLEAR).and_fixed(3)),
    real!("raptor-lake-e-6315p", emon(8, 48, ALL, CLEAR).and_fixed(3)),
    real!("bartlett-lake-273pqe", emon(8, 48, ALL, CLEAR).and_fixed(3)),
    hybrid!("meteor-lake-155h", emon(8, 48, ALL, BY_LEAF_23).and_fixed(3), "meteor-lake-155h-efficient"),
    real!("meteor-lake-155h-efficient", emon(8, 48, ALL, BY_LEAF_23).and_fixed(3)),
    hybrid!("arrow-lake-u-265u", emon(8, 48, ALL, BY_LEAF_23).and_fixed(3), "arrow-lake-u-265u-efficient"),
    real!("arrow-lake-u-265u-efficient", emon(8, 48, ALL, BY_LEAF_23).and_fixed(3)),
    hybrid!("lunar-lake-288v", emon(10, 48, ALL, BY_LEAF_23).and_fixed(3), "lunar-lake-288v-efficient"),
    real!("lunar-lake-288v-efficient", emon(8, 48, ALL, BY_LEAF_23).and_fixed(3)),
    hybrid!("arrow-lake-h-285h", emon(10, 48, ALL, BY_LEAF_23).and_fixed(3), "arrow-lake-h-285h-efficient"),
    real!("arrow-lake-h-285h-efficient", emon(8, 48, ALL, BY_LEAF_23).and_fixed(3)),
    real!("arrow-lake-h-285h-low-power", emon(8, 48, ALL, BY_LEAF_23).and_fixed(3)),
    hybrid!("arrow-lake-s-265k", emon(10, 48, ALL, BY_LEAF_23).and_fixed(3), "arrow-lake-s-265k-efficient"),
    real!("arrow-lake-s-265k-efficient", emon(8, 48, ALL, BY_LEAF_23).and_fixed(3)),
    hybrid!("panther-lake-355", emon(10, 48, ALL, BY_LEAF_23).and_fixed(3), "panther-lake-355-efficient"),
    real!("panther-lake-355-efficient", emon(8, 48, ALL, BY_LEAF_23).and_fixed(3)),
    hybrid!("wildcat-lake-320", emon(10, 48, ALL, BY_LEAF_23).and_fixed(3), "wildcat-lake-320-efficient"),
    real!("wildcat-lake-320-efficient", emon(8, 48, ALL, BY_LEAF_23).and_fixed(3)),
    real!("granite-rapids-658x", emon(8, 48, ALL, BY_LEAF_23).and_fixed(3)),
    real!("emerald-rapids-5520", emon(8, 48, ALL, CLEAR).and_fixed(3)),
    real!("merom-t5600", emon(2, 40, ALL, CLEAR).and_fixed(3)),
    real!("harpertown-e5462", emon(2, 40, ALL, CLEAR).and_fixed(3)),
    real!("dunnington-e7450", emon(2, 40, ALL, CLEAR).and_fixed(3)),
    real!("p6-banias", P6),
    real!(
        "netburst-willamette-celeron-1700",
        older("NetBurst", 18, NETBURST, "GenuineIntel of family 15 with a highest leaf below 0xA; one thread a core")
    ),
    real!(
        "netburst-prescott-celeron-2530",
        older("NetBurst", 18, NETBURST, "GenuineIntel of family 15 with a highest leaf below 0xA; one thread a core")
    ),
    real!(
        "netburst-tulsa-xeon-3400",
        older("NetBurst", 9, NETBURST, "GenuineIntel of family 15 with a highest leaf below 0xA; two threads a core")
    ),
    real!("hygon-dhyana-3185", default("the vendor is HygonGenuine")),
    real!("kaixian-kx7000", default("the vendor is CentaurHauls")),
    real!("nano-l4700", default("the vendor is CentaurHauls")),
    made_up!("amd-legacy", amd(4, &FAMILY_10, FOUR)),
    made_up!("amd-no-long-mode", default("AuthenticAMD without long mode")),
    made_up!("amd-hyperv-masked", default(MASKED)),
    made_up!("amd-hyperv-open", amd(6, ZEN, SIX)),
    made_up!("amd-kvm", amd(6, ZEN, SIX)),
    made_up!("amd-kvm-perfmon-v2", amd(6, ZEN4, SIX_BY_V2)),
    made_up!("amd-kvm-hyperv", amd(6, ZEN4, BLINDED).behind_the_hal()),
    made_up!("amd-kvm-hyperv-off", default(MASKED)),
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
    made_up!("broadwell-ht-off-derived", emon(8, 48, ALL, CLEAR).and_fixed(3)),
    made_up!("skylake-sp-tsx-derived", emon(3, 48, ALL, CLEAR).and_fixed(3)),
    made_up!("snow-ridge-derived", emon(4, 48, ALL, CLEAR).and_fixed(3)),
    made_up!("sierra-forest-derived", emon(8, 48, ALL, BY_LEAF_23).and_fixed(3)),
    made_up!("grand-ridge-derived", emon(8, 48, ALL, BY_LEAF_23).and_fixed(3)),
    made_up!("clearwater-forest-derived", emon(8, 48, ALL, BY_LEAF_23).and_fixed(3)),
    made_up_hybrid!("nova-lake-derived", emon(8, 48, ALL, BY_LEAF_23).and_fixed(3), "nova-lake-derived-efficient"),
    made_up!("nova-lake-derived-efficient", emon(8, 48, ALL, BY_LEAF_23).and_fixed(3)),
    made_up!("diamond-rapids-derived", emon(8, 48, ALL, BY_LEAF_23).and_fixed(3)),
    made_up!("zen6-venice-derived", amd(6, ZEN6, SIX_BY_V2)),
    made_up!("intel-hyperv-masked", default(MASKED)),
    made_up!("intel-kvm-hyperv", emon(4, 48, ALL, BLINDED).and_fixed(3).behind_the_hal()),
    made_up!("intel-kvm-hyperv-off", default("leaf 0xA: EAX[7:0] is 0")),
    made_up!("aws-one-fixed", emon(4, 48, ALL, CLEAR).and_fixed(1)),
];
