//! What the tables know a processor by.

use std::fmt;

use x86_defs::cpuid::Signature;

/// The maker of a processor, by the text of CPUID leaf 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Vendor {
    /// GenuineIntel.
    Intel = 0,
    /// AuthenticAMD.
    Amd = 1,
    /// HygonGenuine: cores of AMD's Zen.
    Hygon = 2,
}

impl Vendor {
    /// All makers, in the order of their numbers.
    pub const ALL: [Self; 3] = [Self::Intel, Self::Amd, Self::Hygon];

    /// Returns the text of CPUID leaf 0: EBX, EDX, ECX.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Intel => "GenuineIntel",
            Self::Amd => "AuthenticAMD",
            Self::Hygon => "HygonGenuine",
        }
    }

    /// Returns the maker with this text in leaf 0.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|vendor| vendor.name() == name)
    }
}

/// A processor, by CPUID leaves 0 and 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The maker.
    pub vendor: Vendor,
    /// DisplayFamily: base and extended family (SDM Vol. 2A, CPUID, Figure 3-6).
    pub family: u16,
    /// DisplayModel: base and extended model.
    pub model: u8,
    /// Stepping.
    pub stepping: u8,
}

impl Identity {
    /// Returns the identity of a processor with this EAX in leaf 1.
    #[must_use]
    pub const fn of_signature(vendor: Vendor, eax: u32) -> Self {
        let signature = Signature::from_bits(eax);
        Self { vendor, family: signature.family(), model: signature.model(), stepping: signature.stepping() }
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { vendor, family, model, stepping } = self;
        write!(f, "{} family {family:X}h model {model:02X}h stepping {stepping}", vendor.name())
    }
}

/// The type of a core of a hybrid. Its number is that in CPUID leaf 0x1A, EAX\[31:24\].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum CoreType {
    /// Intel Atom: an E core.
    Atom = 0x20,
    /// Intel Core: a P core.
    Core = 0x40,
}

impl CoreType {
    /// Returns the type with this number.
    #[must_use]
    pub const fn from_number(number: u32) -> Option<Self> {
        match number {
            0x20 => Some(Self::Atom),
            0x40 => Some(Self::Core),
            _ => None,
        }
    }

    /// Returns the name of its PMU in perf.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Atom => "cpu_atom",
            Self::Core => "cpu_core",
        }
    }
}

impl fmt::Display for CoreType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
