//! The one table from family and model to the processor. Code that depends on a processor matches on these names, and
//! not on numbers.

use super::Signature;

/// Intel's processors, as far as code distinguishes them. Names are those of the first processor of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "Intel's names")]
pub enum IntelProcessor {
    Pentium,
    /// Pentium Pro to Pentium M: without architectural events.
    P6,
    NetBurst,
    Yonah,
    /// Core 2 of model 0FH.
    Merom,
    /// Later Core 2.
    Penryn,
    Nehalem,
    Westmere,
    SandyBridge,
    SandyBridgeServer,
    IvyBridge,
    IvyBridgeServer,
    Haswell,
    Broadwell,
    /// To Comet Lake, and their servers.
    Skylake,
    /// Also Rocket Lake and Tiger Lake.
    IceLake,
    /// A hybrid. Also Raptor Lake.
    AlderLake,
    /// Also Emerald Rapids, and Bartlett Lake, which has no E cores.
    SapphireRapids,
    GraniteRapids,
    /// A hybrid. Also Arrow Lake-U.
    MeteorLake,
    /// A hybrid. Also Arrow Lake-S.
    LunarLake,
    /// A hybrid with two kinds of E cores.
    ArrowLakeH,
    /// A hybrid. Also Wildcat Lake.
    PantherLake,
    /// A hybrid.
    NovaLake,
    /// A server with Panther Cove.
    DiamondRapids,
    Bonnell,
    /// Also Airmont.
    Silvermont,
    /// Also Knights Mill.
    KnightsLanding,
    Goldmont,
    GoldmontPlus,
    Tremont,
    /// Alder Lake-N, with E cores alone.
    AlderLakeN,
    SierraForest,
    GrandRidge,
    ClearwaterForest,
}

impl IntelProcessor {
    /// Returns the processor of Intel with this signature (CPUID.1:EAX), or `None` if the model is unknown.
    ///
    /// # References
    /// SDM Vol. 4, "CPUID Signature Values of DisplayFamily_DisplayModel"; Intel's event files, `mapfile.csv`. Model
    /// D7H, Bartlett Lake: Linux, arch/x86/include/asm/intel-family.h, `INTEL_BARTLETTLAKE`; family 13H: the same file,
    /// `INTEL_DIAMONDRAPIDS_X`.
    #[must_use]
    pub const fn of(signature: Signature) -> Option<Self> {
        Self::of_model(signature.family(), signature.model())
    }

    /// The same by family and model.
    #[must_use]
    pub const fn of_model(family: u16, model: u8) -> Option<Self> {
        Some(match (family, model) {
            // Quark is in family 5 too.
            (5, 0x01..=0x08) => Self::Pentium,
            (6, _) => return of_family_6(model),
            (18, 0x01 | 0x03) => Self::NovaLake,
            (19, 0x01) => Self::DiamondRapids,
            (0xF, _) => Self::NetBurst,
            _ => return None,
        })
    }
}

/// Returns the processor of family 6 with this model.
#[expect(clippy::indexing_slicing, reason = "the table has an entry for each model")]
const fn of_family_6(model: u8) -> Option<IntelProcessor> {
    // Comparisons with each model would be five times the code.
    static MODELS: [Option<IntelProcessor>; 256] = models_of_family_6();
    MODELS[model as usize]
}

/// Returns the processors of family 6 by their models.
#[expect(clippy::indexing_slicing, reason = "evaluated by the compiler alone, which refuses a wrong index")]
const fn models_of_family_6() -> [Option<IntelProcessor>; 256] {
    use IntelProcessor as P;
    let mut models = [None; 256];
    let mut model = 0;
    while model < models.len() {
        models[model] = Some(match model {
            0x01 | 0x03 | 0x05..=0x0B | 0x0D => P::P6,
            0x0E => P::Yonah,
            0x0F => P::Merom,
            0x16 | 0x17 | 0x1D => P::Penryn,
            0x1A | 0x1E | 0x1F | 0x2E => P::Nehalem,
            0x25 | 0x2C | 0x2F => P::Westmere,
            0x2A => P::SandyBridge,
            0x2D => P::SandyBridgeServer,
            0x3A => P::IvyBridge,
            0x3E => P::IvyBridgeServer,
            0x3C | 0x3F | 0x45 | 0x46 => P::Haswell,
            0x3D | 0x47 | 0x4F | 0x56 => P::Broadwell,
            0x4E | 0x55 | 0x5E | 0x8E | 0x9E | 0xA5 | 0xA6 => P::Skylake,
            0x6A | 0x6C | 0x7D | 0x7E | 0x8C | 0x8D | 0xA7 => P::IceLake,
            0x8F | 0xCF | 0xD7 => P::SapphireRapids,
            0xAD | 0xAE => P::GraniteRapids,
            0x97 | 0x9A | 0xB7 | 0xBA | 0xBF => P::AlderLake,
            0xAA | 0xAC | 0xB5 => P::MeteorLake,
            0xBD | 0xC6 => P::LunarLake,
            0xC5 => P::ArrowLakeH,
            0xCC | 0xD5 | 0xE5 => P::PantherLake,
            0x1C | 0x26 | 0x27 | 0x35 | 0x36 => P::Bonnell,
            0x37 | 0x4A | 0x4C | 0x4D | 0x5A | 0x5D => P::Silvermont,
            0x57 | 0x85 => P::KnightsLanding,
            0x5C | 0x5F => P::Goldmont,
            0x7A => P::GoldmontPlus,
            0x86 | 0x96 | 0x9C => P::Tremont,
            0xBE => P::AlderLakeN,
            0xAF => P::SierraForest,
            0xB6 => P::GrandRidge,
            0xDD => P::ClearwaterForest,
            _ => {
                model += 1;
                continue;
            }
        });
        model += 1;
    }
    models
}

/// AMD's processors with long mode, and Hygon's, as far as code distinguishes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AmdProcessor {
    /// Family 0Fh and older ones.
    K8,
    /// K10.
    Family10,
    /// Griffin.
    Family11,
    /// Llano.
    Family12,
    /// Bobcat.
    Family14,
    /// Bulldozer to Excavator.
    Family15,
    /// Jaguar and Puma.
    Family16,
    /// Zen, Zen+ and Zen 2 of family 17h, and Hygon's Zen of family 18h.
    Zen,
    /// Zen 3 of family 19h, models 00h to 0Fh.
    Milan,
    /// Other Zen 3 of family 19h.
    Zen3,
    /// Zen 4 of family 19h.
    Zen4,
    /// Zen 5 of family 1Ah.
    Zen5,
    /// Zen 6 of family 1Ah.
    Zen6,
}

impl AmdProcessor {
    /// Returns the processor of AMD or Hygon with this signature (CPUID.80000001H:EAX), or `None` if the model is
    /// unknown.
    ///
    /// # References
    /// Linux, arch/x86/kernel/cpu/amd.c, `bsp_init_amd`: the models of families 19h and 1Ah.
    #[must_use]
    pub const fn of(signature: Signature) -> Option<Self> {
        Self::of_model(signature.family(), signature.model())
    }

    /// The same by family and model.
    #[must_use]
    pub const fn of_model(family: u16, model: u8) -> Option<Self> {
        Some(match (family, model) {
            (..=0xF, _) => Self::K8,
            // No processor of family 13h exists.
            (0x10 | 0x13, _) => Self::Family10,
            (0x11, _) => Self::Family11,
            (0x12, _) => Self::Family12,
            (0x14, _) => Self::Family14,
            (0x15, _) => Self::Family15,
            (0x16, _) => Self::Family16,
            (0x17 | 0x18, _) => Self::Zen,
            (0x19, 0x00..=0x0F) => Self::Milan,
            (0x19, 0x20..=0x5F) => Self::Zen3,
            (0x19, 0x10..=0x1F | 0x60..=0xAF) => Self::Zen4,
            (0x1A, 0x00..=0x2F | 0x40..=0x4F | 0x60..=0x7F) => Self::Zen5,
            (0x1A, 0x50..=0x5F | 0x80..=0xAF | 0xC0..=0xEF) => Self::Zen6,
            _ => return None,
        })
    }
}
