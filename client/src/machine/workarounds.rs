//! The errata of the processor that the driver works around.

use pmu::errata::workarounds::{Workaround, Workarounds};
use serde::Serialize;

/// A workaround, as `--json` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AppliedWorkaround {
    /// Its number in the driver's table.
    pub number: u8,
    /// Numbers of the errata in the vendor's specification updates.
    pub errata: &'static [&'static str],
    /// What the driver does.
    pub effect: &'static str,
    /// Where it is described.
    pub source: &'static str,
}

impl From<&'static Workaround> for AppliedWorkaround {
    fn from(workaround: &'static Workaround) -> Self {
        let Workaround { number, errata, effect, source, .. } = *workaround;
        Self { number, errata, effect, source }
    }
}

/// Returns the workarounds of a set.
pub fn all(workarounds: Workarounds) -> Vec<AppliedWorkaround> {
    workarounds.iter().map(AppliedWorkaround::from).collect()
}

/// Returns the rows of a table of properties: the effect, then the errata if they have numbers.
pub fn rows(workarounds: &[AppliedWorkaround]) -> impl Iterator<Item = (&'static str, String)> + '_ {
    workarounds.iter().flat_map(|workaround| {
        let errata = (!workaround.errata.is_empty()).then(|| ("", format!("({})", workaround.errata.join(", "))));
        [("Workaround", workaround.effect.to_owned())].into_iter().chain(errata)
    })
}
