//! Refusals that are about the Debug Store: branches, precise events and control areas.

use protocol::{Cause, Lack, ReplyHeader};

use super::OTHER_PROFILERS;
use crate::{lack, ntstatus};

/// What needs no Debug Store.
const WITHOUT_P: &str = "client record with events that do not end in :p";

/// What happened and why; nothing for the causes of others.
pub fn sentence(cause: Cause, source: &str, header: &ReplyHeader) -> String {
    let ReplyHeader { processor, detail: [first, second], .. } = *header;
    match cause {
        Cause::NoDebugStore => {
            format!("processor {processor} can not record this by itself\n  because: {}", why(first, second))
        }
        Cause::DebugStoreInUse => format!(
            "the Debug Store of processor {processor} is in use by another already\n  \
             IA32_DS_AREA holds {first:#x}, IA32_DEBUGCTL {second:#x}"
        ),
        Cause::DebugStoreTaken => format!("session {first} has the Debug Store, and one session at a time can"),
        Cause::Shadowed if first == 0 => "Windows keeps two page tables per process (kernel VA shadowing, against\n  \
             Meltdown); the processor would write its records where user code has nothing\n  \
             mapped, and the machine would stop"
            .to_owned(),
        Cause::Shadowed => format!(
            "Windows does not tell whether it keeps two page tables per process (kernel\n  \
             VA shadowing, against Meltdown): NTSTATUS 0x{first:08X}; with two, the\n  \
             processor would write its records where user code has nothing mapped, and the\n  \
             machine would stop"
        ),
        Cause::NotPrecise => format!("{source} can not be sampled precisely\n  because: {}", why(first, second)),
        Cause::ControlArea => {
            let status = u32::try_from(first).unwrap_or(u32::MAX);
            let name = ntstatus::name(status);
            let why = of_the_kernel(status, second).map_or_else(String::new, |why| format!("\n  because: {why}"));
            format!("Windows refused the control area of processor {processor}: {name}{why}")
        }
        Cause::BadBuffer if header.detail == [0, 0] => {
            "records before an interrupt were asked for, and no event is precise".to_owned()
        }
        Cause::BadBuffer => format!("the number of records before an interrupt has to be from {first} to {second}"),
        _ => String::new(),
    }
}

/// What to do about it; nothing for the causes of others.
pub fn remedy(cause: Cause, source: &str, header: &ReplyHeader) -> Option<String> {
    let [first, _] = header.detail;
    let text = match cause {
        Cause::NoDebugStore => match lack(first) {
            Some(Lack::NoModes) => "the same without --user and --kernel",
            Some(Lack::NotInInterface) => WITHOUT_P,
            _ => "-C with processors that have it   (client control-area says which)",
        }
        .to_owned(),
        Cause::DebugStoreInUse => OTHER_PROFILERS.to_owned(),
        Cause::DebugStoreTaken => "client status   (says whose it is)".to_owned(),
        Cause::Shadowed => format!(
            "{WITHOUT_P}; or a machine whose\n  \
             processor needs no shadowing   (PowerShell: Get-SpeculationControlSettings)"
        ),
        Cause::NotPrecise => format!("{source} without :p"),
        Cause::ControlArea => "client control-area   (shows what there is)".to_owned(),
        Cause::BadBuffer if header.detail == [0, 0] => "--batch with an event that ends in :p".to_owned(),
        Cause::BadBuffer => "--buffer or --batch in that range".to_owned(),
        _ => return None,
    };
    Some(text)
}

fn lack(number: u64) -> Option<Lack> {
    u32::try_from(number).ok().and_then(Lack::from_number)
}

fn why(number: u64, detail: u64) -> String {
    lack::sentence(u32::try_from(number).unwrap_or(u32::MAX), detail)
}

/// What the kernel means by its answer for a control area.
fn of_the_kernel(status: u32, address: u64) -> Option<String> {
    let text = match status {
        ntstatus::STATUS_NOT_SUPPORTED => "its kernel makes them for Intel's processors that have PEBS",
        ntstatus::STATUS_ADDRESS_ALREADY_EXISTS => {
            return Some(format!("there is one at {address:#x} already, which another asked for"));
        }
        ntstatus::STATUS_MEMORY_NOT_ALLOCATED => "there is none that could be freed",
        ntstatus::STATUS_INVALID_INFO_CLASS => "this Windows has no SystemProcessorProfileControlArea",
        _ => return None,
    };
    Some(text.to_owned())
}
