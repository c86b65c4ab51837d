//! Errata of the processor that make a source count wrongly.

use pmu::errata::named_sources::{self as errata, Cores};
use pmu::source::RawEvent;
use pmu::{CoreType, Kind, Source};
use protocol::InfoReply;
use serde::Serialize;
use x86_defs::cpuid::{Signature, VENDOR_AMD, VENDOR_INTEL};

use crate::event::core_tables;

/// An erratum of a source, as `--json` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct SourceErratum {
    /// Its number in Intel's specification update or AMD's revision guide.
    pub number: &'static str,
    /// Whether it concerns the efficient cores of a hybrid processor only.
    pub efficient_cores_only: bool,
}

/// An erratum and the sources that it concerns, as `info --json` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct ProcessorErratum {
    /// The erratum.
    #[serde(flatten)]
    pub erratum: SourceErratum,
    /// Names of the sources.
    pub sources: Vec<&'static str>,
}

/// Returns the errata of the processor with the sources that they concern; none with another interface than that of the
/// vendor.
fn of_processor(info: &InfoReply) -> impl Iterator<Item = &'static errata::Erratum> {
    let (interface, is_intels) = (info.interface, info.vendor.starts_with(&VENDOR_INTEL));
    let is_amds = info.vendor.starts_with(&VENDOR_AMD);
    errata::of_processor(Signature::from_bits(info.signature)).filter(move |erratum| {
        let kind = erratum.interface();
        interface == kind as u32 && if kind == Kind::Emon { is_intels } else { is_amds }
    })
}

impl From<&errata::Erratum> for SourceErratum {
    fn from(erratum: &errata::Erratum) -> Self {
        Self { number: erratum.number, efficient_cores_only: erratum.cores == Cores::Efficient }
    }
}

/// Returns the errata of an event on the cores of a type or, for 0, on all: those of its source, also of one that is an
/// event by number, and those that the maker's files list for its name or its number. A value behind the name
/// does not matter.
#[must_use]
pub fn of_event(info: &InfoReply, source: u64, name: &str, core_type: u32) -> Vec<SourceErratum> {
    let raw = Source(source).raw().map(RawEvent::select);
    let concerns = |erratum: &&errata::Erratum| match raw {
        Some(select) => erratum.concerns(select),
        None => erratum.sources().any(|of| of.source == Source(source)),
    };
    let mut all: Vec<_> = of_processor(info).filter(concerns).map(SourceErratum::from).collect();
    let name = name.split(':').next().unwrap_or(name);
    for cores in core_tables::tables(core_tables::identity_of(info), CoreType::from_number(core_type)) {
        let efficient_cores_only = cores.core_type == Some(events::CoreType::Atom);
        for number in events::errata(cores.table, name, raw) {
            if all.iter().all(|erratum| erratum.number != number) {
                all.push(SourceErratum { number, efficient_cores_only });
            }
        }
    }
    all
}

/// Returns the errata of all named sources.
#[must_use]
pub fn all(info: &InfoReply) -> Vec<ProcessorErratum> {
    of_processor(info)
        .map(|erratum| ProcessorErratum {
            erratum: erratum.into(),
            sources: erratum.sources().map(|of| of.name).collect(),
        })
        .collect()
}

/// Formats the numbers: `HSD11, HSD140`, or `MTL012, MTL013 (efficient cores)`. All errata of a processor concern the
/// same cores.
pub fn numbers<'a>(errata: impl Iterator<Item = &'a SourceErratum> + Clone) -> String {
    let numbers: Vec<&str> = errata.clone().map(|erratum| erratum.number).collect();
    let cores = if errata.into_iter().any(|erratum| erratum.efficient_cores_only) { " (efficient cores)" } else { "" };
    format!("{}{cores}", numbers.join(", "))
}
