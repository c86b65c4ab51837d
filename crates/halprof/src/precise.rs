//! Which sources can be precise (`:p`), as the driver knows it of its machine.

use pmu::ibs::{MissingFeature, Summary};
use protocol::InfoReply;
use serde::Serialize;
use x86_defs::cpuid::{VENDOR_AMD, VENDOR_HYGON};

use crate::refusal::ibs;
use crate::source::SourceInfo;
use crate::text::format;

/// What makes precise samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub enum PreciseBy {
    /// Records of Intel's processors.
    #[serde(rename = "PEBS")]
    Pebs,
    /// Instruction-Based Sampling of AMD's.
    #[serde(rename = "IBS")]
    Ibs,
}

/// Returns whether IBS is what samples precisely on the machine of the driver.
fn has_ibs_events(info: &InfoReply) -> bool {
    let vendor = format::text(&info.vendor);
    [VENDOR_AMD, VENDOR_HYGON].iter().any(|own| vendor.as_bytes() == own)
}

/// Returns whether IBS samples at the event of a source, by the CPUID of the machine.
#[must_use]
pub fn sampled_by_ibs(info: &InfoReply, source: &SourceInfo) -> bool {
    has_ibs_events(info) && Summary::from_number(info.ibs).samples(source.select_number).is_ok()
}

/// The sources that can be precise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct PreciseSources {
    /// What makes precise samples.
    pub by: PreciseBy,
    /// Names of the sources.
    pub sources: Vec<String>,
    /// Why none can be.
    pub reason: Option<String>,
}

impl PreciseSources {
    /// Returns which of `sources` the machine of the driver can sample precisely; `None` if none can, and the driver
    /// does not say why. PEBS is in the tables of the driver: whether firmware and hypervisors leave it to the
    /// processor is in registers, which a list does not access.
    #[must_use]
    pub fn of(info: &InfoReply, sources: &[SourceInfo]) -> Option<Self> {
        let supported = sources.iter().filter(|source| source.supported);
        let names = |is_precise: &dyn Fn(&&SourceInfo) -> bool| {
            supported.clone().filter(is_precise).map(|source| source.name.clone()).collect::<Vec<_>>()
        };
        if has_ibs_events(info) {
            let sources = names(&|source| sampled_by_ibs(info, source));
            let unit = Summary::from_number(info.ibs);
            let lacking = supported.filter_map(|source| unit.samples(source.select_number).err());
            let reason = lacking.min_by_key(|lacking| *lacking == MissingFeature::OtherEvent);
            let reason = reason.filter(|_| sources.is_empty()).map(|lacking| ibs::why(lacking).to_owned());
            return Self::known(PreciseBy::Ibs, sources, reason);
        }
        let sources = names(&|source| {
            let on_types = source.core_types.iter().any(|one| one.supported && !one.precise_counters.is_empty());
            !source.precise_counters.is_empty() || on_types
        });
        Self::known(PreciseBy::Pebs, sources, None)
    }

    fn known(by: PreciseBy, sources: Vec<String>, reason: Option<String>) -> Option<Self> {
        (!sources.is_empty() || reason.is_some()).then_some(Self { by, sources, reason })
    }
}
