//! Intel's microarchitectures, and their tables of events.

use x86_defs::cpuid::{CORE_TYPE_ATOM, Leaf1AEax, Leaf7Edx, Signature, leaf};

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
    /// Also Redwood Cove.
    GoldenCove = 11,
    LionCove = 12,
    CougarCove = 13,
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
}

/// Native model of Crestmont in leaf 1AH (Linux, arch/x86/events/perf_event.h, `INTEL_ATOM_CMT_NATIVE_ID`).
const NATIVE_CRESTMONT: u32 = 2;

/// Family of Nova Lake.
const FAMILY_18: u16 = 18;

impl Microarchitecture {
    /// All values, in the order of their numbers.
    pub const ALL: [Self; 26] = [
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
    ];

    /// Returns the microarchitecture of the current processor, by its family, model and core type (Intel's event files,
    /// `mapfile.csv`; SDM Vol. 4, "CPUID Signature Values of DisplayFamily_DisplayModel"). A hybrid whose core types
    /// are hidden is taken for its P cores.
    ///
    /// # IRQL
    /// Any at which the thread stays on its processor.
    pub fn of(cpu: &impl Cpuid) -> Self {
        let signature = Signature::from_bits(cpu.cpuid(leaf::FEATURES, 0).eax);
        let either = |performance, efficient: fn(Leaf1AEax) -> Self| efficient_core(cpu).map_or(performance, efficient);
        match (signature.family(), signature.model()) {
            (6, 0x0E) => Self::Core,
            (6, 0x0F | 0x16 | 0x17 | 0x1D) => Self::Core2,
            (6, 0x1A | 0x1E | 0x1F | 0x2E) => Self::Nehalem,
            (6, 0x25 | 0x2C | 0x2F) => Self::Westmere,
            (6, 0x2A | 0x2D) => Self::SandyBridge,
            (6, 0x3A | 0x3E) => Self::IvyBridge,
            (6, 0x3C | 0x3F | 0x45 | 0x46) => Self::Haswell,
            (6, 0x3D | 0x47 | 0x4F | 0x56) => Self::Broadwell,
            (6, 0x4E | 0x5E | 0x8E | 0x9E | 0xA5 | 0xA6 | 0x55) => Self::Skylake,
            (6, 0x7D | 0x7E | 0x6A | 0x6C | 0xA7 | 0x8C | 0x8D) => Self::IceLake,
            // 0xD7 is Bartlett Lake without E cores: Raptor Cove (Linux, `INTEL_BARTLETTLAKE`).
            (6, 0x8F | 0xCF | 0xAD | 0xAE | 0xD7) => Self::GoldenCove,
            (6, 0x97 | 0x9A | 0xB7 | 0xBA | 0xBF) => either(Self::GoldenCove, |_| Self::Gracemont),
            (6, 0xAA | 0xAC | 0xB5) => either(Self::GoldenCove, |_| Self::Crestmont),
            (6, 0xBD | 0xC6) => either(Self::LionCove, |_| Self::Skymont),
            (6, 0xC5) => either(Self::LionCove, |core| match core.native_model() {
                NATIVE_CRESTMONT => Self::Crestmont,
                _ => Self::Skymont,
            }),
            (6, 0xCC | 0xD5 | 0xE5) => either(Self::CougarCove, |_| Self::Darkmont),
            (FAMILY_18, 0x01 | 0x03) => either(Self::CoyoteCove, |_| Self::ArcticWolf),
            (6, 0x1C | 0x26 | 0x27 | 0x35 | 0x36) => Self::Bonnell,
            (6, 0x37 | 0x4A | 0x4C | 0x4D | 0x5A | 0x5D) => Self::Silvermont,
            (6, 0x57 | 0x85) => Self::KnightsLanding,
            (6, 0x5C | 0x5F) => Self::Goldmont,
            (6, 0x7A) => Self::GoldmontPlus,
            (6, 0x86 | 0x96 | 0x9C) => Self::Tremont,
            (6, 0xBE) => Self::Gracemont,
            (6, 0xAF | 0xB6) => Self::Crestmont,
            (6, 0xDD) => Self::Darkmont,
            _ => Self::Unknown,
        }
    }

    /// Returns whether no table is for the current processor, which has the Emon interface. Then the driver does not
    /// know which counters count and record an event, beyond what CPUID tells.
    ///
    /// # IRQL
    /// Any at which the thread stays on its processor.
    pub fn is_unknown(cpu: &impl Cpuid) -> bool {
        Self::of(cpu) == Self::Unknown
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
            Self::GoldenCove => &tables::GOLDEN_COVE,
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
