//! Texts for refusals about what Instruction-Based Sampling samples.

use pmu::ibs::MissingFeature;
use protocol::{ErrorCode, ReplyHeader};

use crate::text::unavailable::OTHER_PROFILERS;

/// Returns why a processor does not sample an event precisely. All lines except the first are indented.
#[must_use]
pub const fn why(lacking: MissingFeature) -> &'static str {
    match lacking {
        MissingFeature::NoUnit => "it has no Instruction-Based Sampling (IBS), or the firmware hides it",
        MissingFeature::Hypervisor => {
            "a hypervisor runs the system, also where Windows has security based\n  \
             on virtualization, and none is known to let a guest use IBS"
        }
        MissingFeature::NoEntry => {
            "the firmware has chosen no entry of the local vector table for the\n  interrupt of IBS"
        }
        MissingFeature::Interrupts => {
            "another program gets the interrupts of IBS: its entry of the local vector\n  table is not masked"
        }
        MissingFeature::NotDelivered => "its IBS sampled nothing of the code that halprof executed",
        MissingFeature::NoOps => "its IBS counts cycles alone, and no ops",
        MissingFeature::OtherEvent => "AMD's IBS samples at cycles and at ops, and the event is neither",
        MissingFeature::NoFetches => "its IBS samples ops alone, and no fetches",
    }
}

/// Returns what happened and why; empty for other causes.
pub fn sentence(cause: ErrorCode, source: &str, header: &ReplyHeader) -> String {
    let ReplyHeader { processor, detail: [first, second], .. } = *header;
    match cause {
        ErrorCode::NoIbs => {
            let why = why(MissingFeature::from_number(first).unwrap_or(MissingFeature::NoUnit));
            format!("CPU {processor} does not sample {source} precisely\n  because: {why}")
        }
        ErrorCode::IbsInUse => format!(
            "the Instruction-Based Sampling of CPU {processor} is in use by another program\n  \
             because: register {first:#x} is {second:#x}"
        ),
        ErrorCode::IbsTaken if first == 0 => {
            "two events of the session are precise; AMD's processors sample one at a time".to_owned()
        }
        ErrorCode::IbsTaken => {
            format!("session {first} has a precise event; AMD's processors sample one at a time")
        }
        _ => String::new(),
    }
}

/// Returns what to do about it; `None` for other causes.
pub fn remedy(cause: ErrorCode, header: &ReplyHeader) -> Option<String> {
    let [first, _] = header.detail;
    let text = match cause {
        ErrorCode::NoIbs => match MissingFeature::from_number(first) {
            Some(MissingFeature::OtherEvent) => "cycles:p or instructions:p, or the event without :p",
            Some(MissingFeature::NoOps) => "cycles:p, or the event without :p",
            Some(MissingFeature::NoFetches) => "ibs_op// instead of ibs_fetch//",
            Some(MissingFeature::Interrupts) => OTHER_PROFILERS,
            Some(MissingFeature::NoUnit) => "the firmware's setting of IBS, or the event without :p",
            _ => "the event without :p",
        }
        .to_owned(),
        ErrorCode::IbsInUse => OTHER_PROFILERS.to_owned(),
        ErrorCode::IbsTaken if first == 0 => "one of them with :p, or one after the other".to_owned(),
        ErrorCode::IbsTaken => ".\\client status   (shows the sessions)".to_owned(),
        _ => return None,
    };
    Some(text)
}
