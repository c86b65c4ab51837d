//! Intel's microarchitectures, and their tables of events.

use x86_defs::cpuid::{CORE_TYPE_ATOM, IntelProcessor, Leaf1AEax, Leaf7Edx, Signature, leaf};

use crate::constraints::{Table, tables};
use crate::cpu::Cpuid;

/// A generation of cores with a table of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
#[expect(missing_docs, reason = "Intel's names")]
pub enum Microarchitecture {
    /// A model without a table.
    Unknown = 0,
    Core = 1,
    Core2 = 2,
    Nehalem = 3,
    Westmere = 4,
    SandyBridge = 5,
    IvyBridge = 6,
    Haswell = 7,
    Broadwell = 8,
    Skylake = 9,
    /// Also Rocket Lake and Tiger Lake.
    IceLake = 10,
    GoldenCove = 11,
    LionCove = 12,
    CougarCove = 13,
    /// Also Panther Cove (Linux commit c847a208f43b: both have the same events and constraints).
    CoyoteCove = 14,
    Bonnell = 15,
    /// Also Airmont.
    Silvermont = 16,
    /// Also Knights Mill.
    KnightsLanding = 17,
    Goldmont = 18,
    GoldmontPlus = 19,
    Tremont = 20,
    Gracemont = 21,
    Crestmont = 22,
    Skymont = 23,
    Darkmont = 24,
    ArcticWolf = 25,
    /// Golden Cove's events; load latency has other needs.
    RedwoodCove = 26,
}

/// Native model of Crestmont in leaf 1AH (Linux, arch/x86/events/perf_event.h, `INTEL_ATOM_CMT_NATIVE_ID`).
const NATIVE_CRESTMONT: u32 = 2;

impl Microarchitecture {
    /// All values, in the order of their numbers.
    pub const ALL: [Self; 27] = [
        Self::Unknown,
        Self::Core,
        Self::Core2,
        Self::Nehalem,
        Self::Westmere,
        Self::SandyBridge,
        Self::IvyBridge,
        Self::Haswell,
        Self::Broadwell,
        Self::Skylake,
        Self::IceLake,
        Self::GoldenCove,
        Self::LionCove,
        Self::CougarCove,
        Self::CoyoteCove,
        Self::Bonnell,
        Self::Silvermont,
        Self::KnightsLanding,
        Self::Goldmont,
        Self::GoldmontPlus,
        Self::Tremont,
        Self::Gracemont,
        Self::Crestmont,
        Self::Skymont,
        Self::Darkmont,
        Self::ArcticWolf,
        Self::RedwoodCove,
    ];

    /// Returns the microarchitecture of the current processor, by its family, model and core type. A hybrid whose core
    /// types are hidden is taken for its P cores.
    ///
    /// # IRQL
    /// Any at which the thread stays on its processor.
    pub fn of(cpu: &impl Cpuid) -> Self {
        Self::by_signature(Signature::from_bits(cpu.cpuid(leaf::FEATURES, 0).eax), || efficient_core(cpu))
    }

    /// Returns whether no table is for a processor of the Emon interface with this signature (CPUID.1:EAX). Then the
    /// driver does not know which counters count and record an event, beyond what CPUID tells.
    ///
    /// # IRQL
    /// Any.
    #[must_use]
    pub fn is_unknown_model(signature: Signature) -> bool {
        Self::by_signature(signature, || None) == Self::Unknown
    }

    /// Returns whether P cores of a processor with this signature (CPUID.1:EAX) measure load latency only while another
    /// counter has [`AUXILIARY`](crate::extra::AUXILIARY).
    ///
    /// # IRQL
    /// Any.
    #[must_use]
    pub fn has_auxiliary_event(signature: u32) -> bool {
        Self::by_signature(Signature::from_bits(signature), || None).needs_auxiliary()
    }

    /// Returns whether it does: Golden Cove and Raptor Cove (Linux, PMU_FL_MEM_LOADS_AUX).
    pub(super) const fn needs_auxiliary(self) -> bool {
        matches!(self, Self::GoldenCove)
    }

    pub(super) fn by_signature(signature: Signature, efficient_core: impl Fn() -> Option<Leaf1AEax>) -> Self {
        use IntelProcessor as P;
        let either = |performance, efficient| if efficient_core().is_some() { efficient } else { performance };
        match IntelProcessor::of(signature) {
            None | Some(P::Pentium | P::P6 | P::NetBurst) => Self::Unknown,
            Some(P::Yonah) => Self::Core,
            Some(P::Merom | P::Penryn) => Self::Core2,
            Some(P::Nehalem) => Self::Nehalem,
            Some(P::Westmere) => Self::Westmere,
            Some(P::SandyBridge | P::SandyBridgeServer) => Self::SandyBridge,
            Some(P::IvyBridge | P::IvyBridgeServer) => Self::IvyBridge,
            Some(P::Haswell) => Self::Haswell,
            Some(P::Broadwell) => Self::Broadwell,
            Some(P::Skylake) => Self::Skylake,
            Some(P::IceLake) => Self::IceLake,
            Some(P::SapphireRapids) => Self::GoldenCove,
            Some(P::GraniteRapids) => Self::RedwoodCove,
            Some(P::AlderLake) => either(Self::GoldenCove, Self::Gracemont),
            Some(P::MeteorLake) => either(Self::RedwoodCove, Self::Crestmont),
            Some(P::LunarLake) => either(Self::LionCove, Self::Skymont),
            Some(P::ArrowLakeH) => match efficient_core().map(|core| core.native_model()) {
                None => Self::LionCove,
                Some(NATIVE_CRESTMONT) => Self::Crestmont,
                Some(_) => Self::Skymont,
            },
            Some(P::PantherLake) => either(Self::CougarCove, Self::Darkmont),
            Some(P::NovaLake) => either(Self::CoyoteCove, Self::ArcticWolf),
            Some(P::DiamondRapids) => Self::CoyoteCove,
            Some(P::Bonnell) => Self::Bonnell,
            Some(P::Silvermont) => Self::Silvermont,
            Some(P::KnightsLanding) => Self::KnightsLanding,
            Some(P::Goldmont) => Self::Goldmont,
            Some(P::GoldmontPlus) => Self::GoldmontPlus,
            Some(P::Tremont) => Self::Tremont,
            Some(P::AlderLakeN) => Self::Gracemont,
            Some(P::SierraForest | P::GrandRidge) => Self::Crestmont,
            Some(P::ClearwaterForest) => Self::Darkmont,
        }
    }

    /// Returns the value with this number.
    #[must_use]
    pub const fn from_number(number: u8) -> Self {
        // A loop, because `get` is not const.
        let mut rest = Self::ALL.as_slice();
        while let [first, tail @ ..] = rest {
            if *first as u8 == number {
                return *first;
            }
            rest = tail;
        }
        Self::Unknown
    }

    /// Returns the events of the microarchitecture.
    #[must_use]
    pub const fn table(self) -> &'static Table {
        match self {
            Self::Unknown => &Table::EMPTY,
            Self::Core => &tables::CORE,
            Self::Core2 => &tables::CORE2,
            Self::Nehalem => &tables::NEHALEM,
            Self::Westmere => &tables::WESTMERE,
            Self::SandyBridge => &tables::SANDY_BRIDGE,
            Self::IvyBridge => &tables::IVY_BRIDGE,
            Self::Haswell => &tables::HASWELL,
            Self::Broadwell => &tables::BROADWELL,
            Self::Skylake => &tables::SKYLAKE,
            Self::IceLake => &tables::ICE_LAKE,
            Self::GoldenCove | Self::RedwoodCove => &tables::GOLDEN_COVE,
            Self::LionCove => &tables::LION_COVE,
            Self::CougarCove => &tables::COUGAR_COVE,
            Self::CoyoteCove => &tables::COYOTE_COVE,
            Self::Bonnell => &tables::BONNELL,
            Self::Silvermont => &tables::SILVERMONT,
            Self::KnightsLanding => &tables::KNIGHTS_LANDING,
            Self::Goldmont => &tables::GOLDMONT,
            Self::GoldmontPlus => &tables::GOLDMONT_PLUS,
            Self::Tremont => &tables::TREMONT,
            Self::Gracemont => &tables::GRACEMONT,
            Self::Crestmont => &tables::CRESTMONT,
            Self::Skymont => &tables::SKYMONT,
            Self::Darkmont => &tables::DARKMONT,
            Self::ArcticWolf => &tables::ARCTIC_WOLF,
        }
    }
}

/// Returns leaf 1AH of the current processor if it is an E core of a hybrid. Any IRQL at which it stays the same.
fn efficient_core(cpu: &impl Cpuid) -> Option<Leaf1AEax> {
    let is_hybrid = cpu.cpuid(leaf::VENDOR, 0).eax >= leaf::NATIVE_MODEL
        && Leaf7Edx::from_bits(cpu.cpuid(leaf::STRUCTURED_FEATURES, 0).edx).hybrid();
    let core = || Leaf1AEax::from_bits(cpu.cpuid(leaf::NATIVE_MODEL, 0).eax);
    is_hybrid.then(core).filter(|core| core.core_type() == CORE_TYPE_ATOM)
}
