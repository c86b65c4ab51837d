//! Errata that make a source count wrongly. They are only reported: no other event counts the same.

use x86_defs::cpuid::{AmdProcessor, IntelProcessor, Signature};

use crate::interface::amd64::Generation;
use crate::interface::{Kind, emon};
use crate::source::{ProfileSource, Sources};

/// Cores that an erratum concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cores {
    /// Every core of the processor.
    All,
    /// The efficient cores of a hybrid processor.
    Efficient,
}

/// The events that an erratum concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Events {
    /// Bits in leaf 0xA EBX of Intel's architectural events.
    Architectural(&'static [u8]),
    /// Event numbers of AMD's Zen 3.
    Zen3(&'static [u8]),
}

/// An erratum of an event on some processors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Erratum {
    /// Its number in the specification update or in the revision guide.
    pub number: &'static str,
    /// The cores that it concerns.
    pub cores: Cores,
    events: Events,
    processor: Processor,
}

/// The processor that an erratum concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Processor {
    Intel(IntelProcessor),
    Amd(AmdProcessor),
}

const INSTRUCTIONS: u8 = 1;
const LLC_REFERENCES: u8 = 3;
const LLC_MISSES: u8 = 4;
const BRANCHES: u8 = 5;

const fn erratum(number: &'static str, processor: IntelProcessor, events: &'static [u8]) -> Erratum {
    Erratum { number, cores: Cores::All, events: Events::Architectural(events), processor: Processor::Intel(processor) }
}

const fn of_efficient_cores(number: &'static str, processor: IntelProcessor, events: &'static [u8]) -> Erratum {
    Erratum { cores: Cores::Efficient, ..erratum(number, processor, events) }
}

/// Retired instructions, macro-ops, branches and taken branches, and mispredicted ones.
const RETIRED: &[u8] = &[0xC0, 0xC1, 0xC2, 0xC3, 0xC4, 0xC5];

/// The errata, as Intel's event files name them for these events (perfmon, field "Errata"), and AMD's revision guide
/// for family 19h models 00h to 0Fh: retire events overcount. The guide's workaround, bit 43 of PERF_CTL2, is not
/// applied: it is no event select, and Linux does not set it either.
const ERRATA: [Erratum; 13] = [
    erratum("HSD11", IntelProcessor::Haswell, &[INSTRUCTIONS]),
    erratum("HSD140", IntelProcessor::Haswell, &[INSTRUCTIONS]),
    erratum("BDM61", IntelProcessor::Broadwell, &[INSTRUCTIONS]),
    erratum("SKL044", IntelProcessor::Skylake, &[INSTRUCTIONS]),
    erratum("SKL057", IntelProcessor::Skylake, &[LLC_REFERENCES, LLC_MISSES]),
    erratum("SKL091", IntelProcessor::Skylake, &[INSTRUCTIONS, BRANCHES]),
    of_efficient_cores("MTL012", IntelProcessor::MeteorLake, &[BRANCHES]),
    of_efficient_cores("MTL013", IntelProcessor::MeteorLake, &[BRANCHES]),
    erratum("SRF6", IntelProcessor::SierraForest, &[BRANCHES]),
    erratum("SRF7", IntelProcessor::SierraForest, &[BRANCHES]),
    of_efficient_cores("ARL010", IntelProcessor::ArrowLakeH, &[BRANCHES]),
    of_efficient_cores("ARL011", IntelProcessor::ArrowLakeH, &[BRANCHES]),
    Erratum {
        number: "1292",
        cores: Cores::All,
        events: Events::Zen3(RETIRED),
        processor: Processor::Amd(AmdProcessor::Milan),
    },
];

impl Erratum {
    /// Returns the interface of the sources that it concerns.
    #[must_use]
    pub const fn interface(&self) -> Kind {
        match self.events {
            Events::Architectural(_) => Kind::Emon,
            Events::Zen3(_) => Kind::Amd64,
        }
    }

    /// Returns whether it concerns the event of a select register.
    #[must_use]
    pub fn concerns(&self, select: u64) -> bool {
        match self.events {
            Events::Architectural(_) => self.sources().any(|row| row.select & 0xFFFF == select & 0xFFFF),
            // Bits 35:32 belong to the event number.
            Events::Zen3(numbers) => select & (0xF << 32) == 0 && numbers.contains(&((select & 0xFF) as u8)),
        }
    }

    /// Returns the sources that it concerns.
    pub fn sources(&self) -> impl Iterator<Item = ProfileSource> {
        let events = self.events;
        let sources = match events {
            Events::Architectural(_) => Sources::new(&emon::SOURCES),
            Events::Zen3(_) => Generation::ZEN_3.sources(),
        };
        sources.iter().filter(move |row| match events {
            Events::Architectural(bits) => emon::ebx_bit(row).is_some_and(|bit| bits.contains(&bit)),
            Events::Zen3(_) => self.concerns(row.select),
        })
    }
}

/// Returns the errata of a processor of Intel or AMD with this signature (CPUID.1:EAX). The families differ.
///
/// # IRQL
/// Any.
pub fn of_processor(signature: Signature) -> impl Iterator<Item = &'static Erratum> {
    let (intels, amds) = (IntelProcessor::of(signature), AmdProcessor::of(signature));
    ERRATA.iter().filter(move |erratum| match erratum.processor {
        Processor::Intel(processor) => intels == Some(processor),
        Processor::Amd(processor) => amds == Some(processor),
    })
}
