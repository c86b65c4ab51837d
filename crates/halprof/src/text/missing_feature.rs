//! Texts for [`MissingFeature`]: features of the Debug Store that a processor does not have.

use pmu::debug_store::MissingFeature;

/// Returns why branches or precise records are not supported. `detail` is that of the refusal. All lines except the
/// first are indented.
#[must_use]
pub fn sentence(number: u32, detail: u64) -> String {
    match MissingFeature::from_numbers(number, u8::try_from(detail).unwrap_or(u8::MAX)) {
        Some(MissingFeature::NotIntel) => "only Intel processors have the Debug Store",
        Some(MissingFeature::NoDebugStore) => "the processor has no Debug Store (CPUID.1:EDX[21])",
        Some(MissingFeature::NotWide) => "its Debug Store has no 64-bit form (CPUID.1:ECX[2], DTES64)",
        Some(MissingFeature::NoMonitoring) => {
            "the processor's performance monitoring is unavailable\n  \
             (IA32_MISC_ENABLE bit 7): firmware or a hypervisor has disabled it"
        }
        Some(MissingFeature::BranchesUnavailable) => {
            "the processor's Branch Trace Store is unavailable\n  \
             (IA32_MISC_ENABLE bit 11): firmware or a hypervisor has disabled it"
        }
        Some(MissingFeature::PebsUnavailable) => {
            "the processor's PEBS is unavailable (IA32_MISC_ENABLE bit 12):\n  \
             firmware or a hypervisor has disabled it"
        }
        Some(MissingFeature::NoModes) => {
            "the processor cannot omit the branches of one mode\n  \
             (CPUID.1:ECX[4], DS-CPL)"
        }
        Some(MissingFeature::UnknownFormat(format)) => {
            return format!("its precise records have format {format}, which this driver does not know");
        }
        Some(MissingFeature::NotPrecise) => "the processor makes no precise records of this event",
        Some(MissingFeature::NotInInterface) => "the profile interface of this machine has no precise events",
        Some(MissingFeature::Errata) => {
            "precise records of this processor are lost or leak\n  \
             (errata AJ67, AJ68, AJ69, AJ106)"
        }
        Some(MissingFeature::OldMicrocode) => {
            "precise records of Sandy Bridge need newer microcode:\n  \
             revision 28h (model 2Ah), 618h or 70Ch (model 2Dh, stepping 6 or 7)"
        }
        None => return format!("for the reason {number}, which this client does not know"),
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_missing_feature_has_its_own_sentence_that_fits_a_console() {
        let numbers = (0..).take(MissingFeature::ALL.len() + 1);
        for number in numbers.clone() {
            let twins = |other: &u32| sentence(*other, 9) == sentence(number, 9);
            assert_eq!(numbers.clone().filter(twins).count(), 1, "{number}");
            let shown = format!("  because: {}", sentence(number, 15));
            assert!(shown.lines().all(|line| line.len() <= 80), "{shown}");
        }
    }
}
