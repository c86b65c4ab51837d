//! Texts for refusals about the core types of a hybrid.

use protocol::{ErrorCode, ReplyHeader};

use crate::ErrorKind;
use crate::core_types::{CoreTypeInfo, name, qualified};
use crate::text::processors::named;

/// Returns what happened and why; empty for other causes.
pub fn sentence(cause: ErrorCode, source: &str, header: &ReplyHeader, core_types: &[CoreTypeInfo]) -> String {
    let [wanted, found] = header.detail.map(number);
    match cause {
        ErrorCode::CoreTypeNeeded => {
            let types: Vec<String> = core_types.iter().map(|one| format!("  {}", described(one))).collect();
            format!(
                "{source} is not the same event on all of these CPUs\n  \
                 because: the core types of this machine number their events differently{}{}",
                if types.is_empty() { "" } else { ":\n" },
                types.join("\n")
            )
        }
        ErrorCode::NoSuchCoreType if found == 0 && core_types.is_empty() => {
            format!("{} needs a hybrid\n  because: all CPUs of this machine are of one kind", qualified(source, wanted))
        }
        ErrorCode::NoSuchCoreType if found == 0 => {
            format!("this machine has no processors of the type {}", name(wanted))
        }
        ErrorCode::NoSuchCoreType => format!(
            "{} has no CPU to run on\n  because: the requested CPUs are all of the type {}",
            qualified(source, wanted),
            name(found)
        ),
        _ => String::new(),
    }
}

/// Returns what to do.
pub fn remedy(cause: ErrorCode, source: &str, header: &ReplyHeader, core_types: &[CoreTypeInfo]) -> String {
    let [wanted, found] = header.detail.map(number);
    match cause {
        ErrorCode::NoSuchCoreType if found == 0 && core_types.is_empty() => source.to_owned(),
        ErrorCode::NoSuchCoreType if found == 0 => ".\\client info   (lists the core types)".to_owned(),
        ErrorCode::NoSuchCoreType => {
            let there = core_types.iter().find(|one| one.number == wanted);
            let there = there.map_or_else(
                || format!("CPUs of the type {}", name(wanted)),
                |one| named(one.processors.iter().copied()),
            );
            format!("{there}, or {}", qualified(source, found))
        }
        _ => format!("{};\n  or CPUs of one core type", on_each(source, header).join("\n  or ")),
    }
}

/// Returns the source on each of the core types that a refusal with [`ErrorCode::CoreTypeNeeded`] offers.
pub fn on_each(source: &str, header: &ReplyHeader) -> Vec<String> {
    let [offered, _] = header.detail.map(number);
    let bits = (0..u32::BITS).map(|bit| offered & 1 << bit).filter(|number| *number != 0).rev();
    bits.map(|number| qualified(source, number)).collect()
}

/// Returns the kind of the error.
pub fn kind(cause: ErrorCode, header: &ReplyHeader) -> ErrorKind {
    match (cause, header.detail) {
        (ErrorCode::CoreTypeNeeded, _) => ErrorKind::InvalidInput,
        (_, [_, 0]) => ErrorKind::UnsupportedSource,
        _ => ErrorKind::NoProcessor,
    }
}

fn described(core_type: &CoreTypeInfo) -> String {
    format!("{} is {}", core_type.name, named(core_type.processors.iter().copied()))
}

fn number(detail: u64) -> u32 {
    u32::try_from(detail).unwrap_or(u32::MAX)
}
