//! Errata of Intel's processors that make a source of the Emon interface count wrongly. They are only reported: no
//! other event counts the same.

use x86_defs::cpuid::Signature;

use crate::interface::emon;
use crate::source::Source;

/// Cores that an erratum concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cores {
    /// Every core of the processor.
    All,
    /// The efficient cores of a hybrid processor.
    Efficient,
}

/// An erratum of an event on some processors of family 6.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Erratum {
    /// Its number in the specification update.
    pub number: &'static str,
    /// The cores that it concerns.
    pub cores: Cores,
    /// Bits in leaf 0xA EBX of the events.
    events: &'static [u8],
    models: &'static [u8],
}

const INSTRUCTIONS: u8 = 1;
const LLC_REFERENCES: u8 = 3;
const LLC_MISSES: u8 = 4;
const BRANCHES: u8 = 5;

const HASWELL: &[u8] = &[0x3C, 0x3F, 0x45, 0x46];
const BROADWELL: &[u8] = &[0x3D, 0x47, 0x4F, 0x56];
/// Skylake to Comet Lake, and their servers.
const SKYLAKE: &[u8] = &[0x4E, 0x55, 0x5E, 0x8E, 0x9E, 0xA5, 0xA6];
const METEOR_LAKE: &[u8] = &[0xAA, 0xAC, 0xB5];
const SIERRA_FOREST: &[u8] = &[0xAF];
const ARROW_LAKE_H: &[u8] = &[0xC5];

const fn erratum(number: &'static str, models: &'static [u8], events: &'static [u8]) -> Erratum {
    Erratum { number, cores: Cores::All, events, models }
}

const fn of_efficient_cores(number: &'static str, models: &'static [u8], events: &'static [u8]) -> Erratum {
    Erratum { number, cores: Cores::Efficient, events, models }
}

/// The errata, as Intel's event files name them for these events (perfmon, field "Errata").
const ERRATA: [Erratum; 12] = [
    erratum("HSD11", HASWELL, &[INSTRUCTIONS]),
    erratum("HSD140", HASWELL, &[INSTRUCTIONS]),
    erratum("BDM61", BROADWELL, &[INSTRUCTIONS]),
    erratum("SKL044", SKYLAKE, &[INSTRUCTIONS]),
    erratum("SKL057", SKYLAKE, &[LLC_REFERENCES, LLC_MISSES]),
    erratum("SKL091", SKYLAKE, &[INSTRUCTIONS, BRANCHES]),
    of_efficient_cores("MTL012", METEOR_LAKE, &[BRANCHES]),
    of_efficient_cores("MTL013", METEOR_LAKE, &[BRANCHES]),
    erratum("SRF6", SIERRA_FOREST, &[BRANCHES]),
    erratum("SRF7", SIERRA_FOREST, &[BRANCHES]),
    of_efficient_cores("ARL010", ARROW_LAKE_H, &[BRANCHES]),
    of_efficient_cores("ARL011", ARROW_LAKE_H, &[BRANCHES]),
];

impl Erratum {
    /// Returns the sources of Emon that it concerns.
    pub fn sources(&self) -> impl Iterator<Item = Source> {
        let events = self.events;
        let concerns = move |bit: Option<u8>| bit.is_some_and(|bit| events.contains(&bit));
        emon::SOURCES.iter().filter(move |row| concerns(row.ebx_bit)).map(|row| row.source)
    }
}

/// Returns the errata of an Intel processor with this signature (CPUID.1:EAX).
///
/// # IRQL
/// Any.
pub fn of_processor(signature: Signature) -> impl Iterator<Item = &'static Erratum> {
    const FAMILY: u16 = 6;
    let is_concerned = move |erratum: &&Erratum| erratum.models.contains(&signature.model());
    ERRATA.iter().filter(move |_| signature.family() == FAMILY).filter(is_concerned)
}
