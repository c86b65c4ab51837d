//! Processors on which precise records (PEBS) must not be used: by errata, and by old microcode.

use x86_defs::cpuid::leaf;
use x86_defs::intel::microcode::{BiosSignId, IA32_BIOS_SIGN_ID};

use super::MissingFeature;
use crate::cpu::{Cpuid, Msr};
use crate::errata::workarounds::{Action, Workarounds};

const BIOS_SIGN_ID: Msr = Msr::new(IA32_BIOS_SIGN_ID);

/// Checks that the current processor, which has PEBS, can be trusted with it. At most one read, by this function.
///
/// # Errors
/// An error of `read`. Inside: [`MissingFeature::Errata`], [`MissingFeature::OldMicrocode`].
///
/// # IRQL
/// Any at which the thread stays on its processor.
pub fn check<E>(cpu: &impl Cpuid, read: impl Fn(Msr) -> Result<u64, E>) -> Result<Result<(), MissingFeature>, E> {
    let workarounds = Workarounds::of_processor(cpu);
    if workarounds.has(Action::NoPreciseRecords) {
        return Ok(Err(MissingFeature::Errata));
    }
    let least = workarounds.iter().find_map(|workaround| match workaround.action {
        Action::PreciseRecordsSince(revision) => Some(revision),
        _ => None,
    });
    let Some(least) = least else { return Ok(Ok(())) };
    // CPUID leaf 1 loads the register.
    cpu.cpuid(leaf::FEATURES, 0);
    let revision = BiosSignId::from_bits(read(BIOS_SIGN_ID)?).revision();
    Ok(if revision >= least { Ok(()) } else { Err(MissingFeature::OldMicrocode) })
}
