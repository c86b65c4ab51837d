//! Texts for refusals about last branches.

use pmu::last_branches::MissingFeature;
use protocol::{ErrorCode, ReplyHeader};

use crate::text::unavailable::OTHER_PROFILERS;

/// Returns what happened and why; empty for other causes.
pub fn sentence(cause: ErrorCode, header: &ReplyHeader) -> String {
    let ReplyHeader { processor, detail: [first, second], .. } = *header;
    match cause {
        ErrorCode::NoLastBranches => {
            let why = match MissingFeature::from_number(first) {
                Some(MissingFeature::NoRecords) | None => {
                    "it has no last branch records that halprof knows, or a hypervisor\n  hides them"
                }
                Some(MissingFeature::BranchSampling) => {
                    "Branch Sampling of Zen 3 holds interrupts back while the processor\n  \
                     waits; Windows gives a driver no place to switch it off before"
                }
                Some(MissingFeature::NotDelivered) => {
                    "they recorded nothing of the driver's own code: a hypervisor keeps their\n  values only"
                }
                Some(MissingFeature::NoFreeze) => {
                    "an interrupt does not stop the records, so that branches of kernel mode\n  \
                     would be those of the interrupt handler"
                }
                Some(MissingFeature::NoKinds) => "it cannot choose branches by their kind",
            };
            format!("CPU {processor} does not record these last branches\n  because: {why}")
        }
        ErrorCode::LastBranchesInUse => format!(
            "the last branch records of CPU {processor} are in use by another program\n  \
             because: register {first:#x} is {second:#x}"
        ),
        ErrorCode::LastBranchesTaken => {
            format!("session {first} has the last branch records; only one session at a time can have them")
        }
        _ => String::new(),
    }
}

/// Returns what to do about it; `None` for other causes.
pub fn remedy(cause: ErrorCode, header: &ReplyHeader) -> Option<String> {
    let [first, _] = header.detail;
    let text = match cause {
        ErrorCode::NoLastBranches => match MissingFeature::from_number(first) {
            Some(MissingFeature::NoFreeze) => "branches of user mode alone",
            Some(MissingFeature::NoKinds) => "branches of every kind",
            Some(MissingFeature::NotDelivered) => {
                "on the host: Set-VMProcessor NAME -Perfmon @(\"pmu\", \"lbr\")   (Hyper-V)"
            }
            _ => "samples without branches, or with call stacks",
        }
        .to_owned(),
        ErrorCode::LastBranchesInUse => OTHER_PROFILERS.to_owned(),
        ErrorCode::LastBranchesTaken => ".\\client status   (shows the sessions)".to_owned(),
        _ => return None,
    };
    Some(text)
}
