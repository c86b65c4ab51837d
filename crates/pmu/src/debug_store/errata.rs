//! Processors on which precise records (PEBS) must not be used: by errata, and by old microcode.

use x86_defs::cpuid::{Signature, leaf};
use x86_defs::intel::microcode::{BiosSignId, IA32_BIOS_SIGN_ID};

use super::MissingFeature;
use crate::cpu::{Cpuid, Msr};

const BIOS_SIGN_ID: Msr = Msr::new(IA32_BIOS_SIGN_ID);

/// Microcode since which Sandy Bridge records correctly, by model and stepping (Linux, arch/x86/events/intel/core.c,
/// `intel_sandybridge_quirk`). Other steppings of these models do not.
const SANDY_BRIDGE: [(u8, u8, u32); 3] = [(0x2A, 7, 0x28), (0x2D, 6, 0x618), (0x2D, 7, 0x70C)];

/// Checks that the current processor, which has PEBS, can be trusted with it. At most one read, by this function.
///
/// # Errors
/// An error of `read`. Inside:
/// [`MissingFeature::Errata`] on Core 2 model 0Fh: AJ67 leaks records; AJ68, AJ69 and AJ106 lose or corrupt them (Linux,
/// `intel_clovertown_quirk`). [`MissingFeature::OldMicrocode`] on Sandy Bridge.
///
/// # IRQL
/// Any at which the thread stays on its processor.
pub fn check<E>(cpu: &impl Cpuid, read: impl Fn(Msr) -> Result<u64, E>) -> Result<Result<(), MissingFeature>, E> {
    let signature = Signature::from_bits(cpu.cpuid(leaf::FEATURES, 0).eax);
    Ok(match (signature.family(), signature.model()) {
        (6, 0x0F) => Err(MissingFeature::Errata),
        (6, model @ (0x2A | 0x2D)) => {
            let stepping = signature.stepping();
            let update = SANDY_BRIDGE.iter().find(|(of, number, _)| (*of, *number) == (model, stepping));
            // CPUID leaf 1, above, has loaded the register.
            let revision = BiosSignId::from_bits(read(BIOS_SIGN_ID)?).revision();
            let is_new = update.is_some_and(|(_, _, least)| revision >= *least);
            if is_new { Ok(()) } else { Err(MissingFeature::OldMicrocode) }
        }
        _ => Ok(()),
    })
}
