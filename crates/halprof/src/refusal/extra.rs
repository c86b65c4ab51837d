//! Refusals of events with extra registers.

use protocol::{ErrorCode, ExtraInUse, ReplyHeader};

use crate::text::register;

/// The Emon profile interface, which alone has extra registers.
const EMON: u32 = pmu::Kind::Emon as u32;

/// Returns what was refused, and why.
pub fn sentence(cause: ErrorCode, source: &str, header: &ReplyHeader) -> String {
    let ReplyHeader { processor, detail: [first, second], .. } = *header;
    match cause {
        ErrorCode::ExtraRegisterTaken => {
            let ExtraInUse { register, holder } = ExtraInUse::from_detail(first);
            let register = register::named(EMON, register);
            let of = if holder == processor { "events there" } else { "events of the other thread of its core" };
            format!(
                "no register on CPU {processor} can have the value that {source} needs\n  \
                 because: {of} need {register} to be {second:#x}"
            )
        }
        ErrorCode::PreciseOnly => {
            format!("{source} cannot be counted\n  because: load latency is measured by precise samples only")
        }
        _ => format!("the driver does not accept the event {source}: its fields are {first:#x}"),
    }
}

/// Returns what to do about it.
pub fn remedy(cause: ErrorCode) -> String {
    match cause {
        ErrorCode::ExtraRegisterTaken => "fewer values at once; .\\client status shows what runs".to_owned(),
        ErrorCode::PreciseOnly => "samples of the event with :p behind it".to_owned(),
        _ => super::SAME_VERSION.to_owned(),
    }
}
