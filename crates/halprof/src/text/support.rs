//! Texts for [`Support`].

use pmu::Support;

/// Returns the text for a column of a table: `yes`, or why the source is not supported.
#[must_use]
pub fn word(number: u32) -> &'static str {
    match Support::from_number(number) {
        Some(Support::Supported) => "yes",
        Some(Support::NotInInterface) => "no: interface",
        Some(Support::EventNotEnumerated) => "no: not enumerated",
        Some(Support::EventNotAvailable) => "no: not available",
        Some(Support::NoMemory) => "no: memory",
        Some(Support::NotOnThisFamily) => "no: family",
        Some(Support::NoRawEvents) => "no: raw",
        Some(Support::NoSuchEvent) => "no: event number",
        Some(Support::ModelNotKnown) => "no: unknown model",
        Some(Support::NoSecondUnitMask) => "no: unit mask",
        Some(Support::NoEquality) => "no: eq",
        Some(Support::NoCounter) => "no: no counter",
        Some(Support::NeedsTwoCounters) => "no: two counters",
        Some(Support::OtherCore) => "no: other core",
        Some(Support::MergesCounters) => "no: merges",
        Some(Support::NeedsExtraRegister) => "no: needs a value",
        Some(Support::NoExtraRegister) => "no: register",
        Some(Support::ReservedExtraBits) => "no: value",
        Some(Support::NeedsAuxiliaryEvent) => "no: auxiliary",
        Some(Support::NoAnyThread) => "no: any",
        Some(Support::NoMetrics) => "no: no metrics",
        Some(Support::CountedOnly) => "no: not sampled",
        None => "no: unknown",
    }
}

/// Returns the same as a sentence.
#[must_use]
pub fn sentence(number: u32) -> String {
    match Support::from_number(number) {
        Some(Support::Supported) => "the source is supported",
        Some(Support::NotInInterface) => "the profile interface of this machine has no such source",
        Some(Support::EventNotEnumerated) => "CPUID leaf 0xA enumerates too few events (EAX[31:24])",
        Some(Support::EventNotAvailable) => "CPUID leaf 0xA says that the event is not available (EBX)",
        Some(Support::NoMemory) => "the driver had no memory for the counters' state when it started",
        Some(Support::NotOnThisFamily) => "processors of this family have no such event, or not in their cores",
        Some(Support::NoRawEvents) => "the profile interface of this machine does not support raw events",
        Some(Support::NoSuchEvent) => {
            "events of this processor have numbers below 0x100; perf's r1c2 is cpu/event=0xc2,umask=0x01/"
        }
        Some(Support::ModelNotKnown) => "this model is not known, and the event may have another number there",
        Some(Support::NoSecondUnitMask) => "unit masks of this processor have 8 bits (CPUID leaf 0x23, EBX[0])",
        Some(Support::NoEquality) => "this processor does not compare for equality (CPUID leaf 0x23, EBX[1])",
        Some(Support::NoCounter) => "no general counter of this processor counts the event with this unit mask",
        Some(Support::NeedsTwoCounters) => {
            "the event can occur more than 15 times in a cycle, and no counters here can be merged for it"
        }
        Some(Support::OtherCore) => "only the first core of each node counts events of the northbridge",
        Some(Support::MergesCounters) => {
            "the event merges two counters; the driver selects it where an event needs two"
        }
        Some(Support::NeedsExtraRegister) => {
            "the event counts nothing without offcore_rsp=, ldlat= or frontend=, by which it selects"
        }
        Some(Support::NoExtraRegister) => "on this processor the event has no register for this value",
        Some(Support::ReservedExtraBits) => {
            "the value selects nothing, or has bits that this processor reserves (ldlat is at least 3)"
        }
        Some(Support::NeedsAuxiliaryEvent) => {
            "this processor measures load latency only while event 0x03/0x82 is counted too, all the time and on \
             the same CPUs, as record and top do"
        }
        Some(Support::NoAnyThread) => "this processor cannot count the events of both threads of a core",
        Some(Support::NoMetrics) => {
            "the processor, or a hypervisor, does not offer fixed counter 3 with this top-down metric"
        }
        Some(Support::CountedOnly) => "slots and top-down metrics can be counted, but not sampled",
        None => return format!("for the reason {number}, which this client does not know"),
    }
    .to_owned()
}

/// Returns whether the source is supported.
#[must_use]
pub fn is_supported(number: u32) -> bool {
    Support::from_number(number) == Some(Support::Supported)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_support_value_has_its_own_word_and_sentence() {
        let numbers = (0..).take(Support::ALL.len() + 1);
        for number in numbers.clone() {
            let twins = |other: &u32| word(*other) == word(number) || sentence(*other) == sentence(number);
            assert_eq!(numbers.clone().filter(twins).count(), 1, "{number}");
            assert_eq!(word(number) == "yes", is_supported(number));
            assert_eq!(is_supported(number), number == 0);
        }
    }
}
