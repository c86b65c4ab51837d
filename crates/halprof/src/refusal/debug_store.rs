//! Texts for refusals about the Debug Store: branches, precise events and control areas.

use pmu::debug_store::MissingFeature;
use protocol::status::{
    STATUS_ADDRESS_ALREADY_EXISTS, STATUS_DEVICE_BUSY, STATUS_INVALID_INFO_CLASS, STATUS_MEMORY_NOT_ALLOCATED,
    STATUS_NOT_SUPPORTED, STATUS_RETRY,
};
use protocol::{ErrorCode, NtStatus, ReplyHeader};

use crate::event::raw_event;
use crate::text::unavailable::OTHER_PROFILERS;
use crate::text::{missing_feature, ntstatus};

/// The remedy that needs no Debug Store.
const WITHOUT_P: &str = "events that are not precise";

/// The remedy if another session uses the Debug Store.
const SESSIONS: &str = ".\\client status   (shows the sessions)";

/// Returns what happened and why; empty for other causes.
pub fn sentence(cause: ErrorCode, source: &str, header: &ReplyHeader) -> String {
    let ReplyHeader { processor, detail: [first, second], .. } = *header;
    match cause {
        ErrorCode::NoDebugStore => {
            format!("CPU {processor} cannot record this itself\n  because: {}", why(first, second))
        }
        ErrorCode::DebugStoreInUse => format!(
            "the Debug Store of CPU {processor} is in use by another program\n  \
             because: branches are traced or events recorded (IA32_DEBUGCTL is {first:#x},\n  \
             IA32_PEBS_ENABLE {second:#x})"
        ),
        ErrorCode::DebugStoreTaken => {
            format!("session {first} has the Debug Store; only one session at a time can have it")
        }
        ErrorCode::Shadowed if first == 0 => {
            "Windows keeps two page tables per process (kernel VA shadowing, against\n  \
             Meltdown); the processor would write its records where user code has nothing\n  \
             mapped, and the machine would stop"
                .to_owned()
        }
        ErrorCode::Shadowed => format!(
            "Windows does not say whether it keeps two page tables per process (kernel\n  \
             VA shadowing, against Meltdown): NTSTATUS {}; with two, the\n  \
             processor would write its records where user code has nothing mapped, and the\n  \
             machine would stop",
            ntstatus::of_detail(first)
        ),
        ErrorCode::NotPrecise => format!("{source} cannot be sampled precisely\n  because: {}", why(first, second)),
        ErrorCode::ControlArea => control_area_text(processor, ntstatus::of_detail(first), second),
        ErrorCode::BadBuffer if header.detail == [0, 0] => {
            "records per interrupt were requested, but no event is precise".to_owned()
        }
        ErrorCode::BadBuffer => format!("the number of records per interrupt must be from {first} to {second}"),
        _ => String::new(),
    }
}

/// Returns what to do about it; `None` for other causes.
pub fn remedy(cause: ErrorCode, source: &str, header: &ReplyHeader) -> Option<String> {
    let [first, _] = header.detail;
    let text = match cause {
        ErrorCode::NoDebugStore => match missing_feature(header) {
            Some(MissingFeature::NoModes) => "the branches of both modes",
            Some(MissingFeature::NotInInterface | MissingFeature::Errata) => WITHOUT_P,
            Some(MissingFeature::OldMicrocode) => "an update of the firmware or of Windows, which brings the microcode",
            _ => "processors that have it   (.\\client control-area shows which)",
        }
        .to_owned(),
        ErrorCode::DebugStoreInUse => OTHER_PROFILERS.to_owned(),
        ErrorCode::DebugStoreTaken => SESSIONS.to_owned(),
        ErrorCode::Shadowed => format!(
            "{WITHOUT_P}; or a processor\n  \
             that needs no shadowing   (PowerShell: Get-SpeculationControlSettings)"
        ),
        // The named source has a precise form even if its precise encoding is not that of the raw event.
        ErrorCode::NotPrecise if source.starts_with(raw_event::PREFIX) => format!(
            "TotalIssues:p, BranchInstructions:p or BranchMispredictions:p;\n  \
             or {source} without :p"
        ),
        ErrorCode::NotPrecise => format!("{source} without :p"),
        ErrorCode::ControlArea if ntstatus::of_detail(first) == STATUS_DEVICE_BUSY => SESSIONS.to_owned(),
        ErrorCode::ControlArea => ".\\client control-area   (shows all areas)".to_owned(),
        ErrorCode::BadBuffer if header.detail == [0, 0] => "an event that ends in :p".to_owned(),
        ErrorCode::BadBuffer => "a number in that range".to_owned(),
        _ => return None,
    };
    Some(text)
}

/// Returns which feature the processor lacks.
pub fn missing_feature(header: &ReplyHeader) -> Option<MissingFeature> {
    let [number, detail] = header.detail;
    MissingFeature::from_numbers(narrow(number), u8::try_from(detail).unwrap_or(u8::MAX))
}

fn why(number: u64, detail: u64) -> String {
    missing_feature::sentence(narrow(number), detail)
}

/// Converts a detail of 32 bits.
fn narrow(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Returns the text for a status of a control area, from the kernel or the driver. `address` is that of the area, or
/// zero if it was not reported.
fn control_area_text(processor: u32, status: NtStatus, address: u64) -> String {
    let name = ntstatus::name(status);
    let refused = format!("the kernel refused the control area of CPU {processor} with\n  {name}");
    match status {
        STATUS_DEVICE_BUSY => format!("a session uses the control area of CPU {processor} ({name})"),
        STATUS_MEMORY_NOT_ALLOCATED => format!("CPU {processor} has no control area ({name})"),
        STATUS_ADDRESS_ALREADY_EXISTS => {
            let address_text = if address == 0 { String::new() } else { format!(", at {address:#x}") };
            format!(
                "CPU {processor} already has a control area{address_text}\n  ({name})\n  \
                 because: Windows keeps one of its own, or an earlier .\\client control-area\n  \
                 allocate or another program made it"
            )
        }
        STATUS_RETRY => format!(
            "the control area of CPU {processor} stays for now ({name})\n  \
             because: IA32_DS_AREA holds its address, {address:#x}; it is freed\n  \
             when the register no longer does"
        ),
        STATUS_NOT_SUPPORTED => format!("{refused}\n  because: it supports them only on Intel processors with PEBS"),
        STATUS_INVALID_INFO_CLASS => format!("{refused}\n  because: it has no SystemProcessorProfileControlArea"),
        _ => refused,
    }
}
