//! Refusals that concern thread profiling, and reads of one CPU.

use protocol::status::STATUS_WMI_ALREADY_ENABLED;
use protocol::{ErrorCode, ReplyHeader};

use crate::ErrorKind;
use crate::sessions::RunningSession;
use crate::text::argument::argument;
use crate::text::ntstatus;

/// Returns the kind of the error.
pub(super) const fn kind(cause: ErrorCode) -> ErrorKind {
    match cause {
        ErrorCode::ThreadProfilingTaken => ErrorKind::ThreadProfilingTaken,
        ErrorCode::ThreadsConflict => ErrorKind::CountersTaken,
        ErrorCode::NotReadable => ErrorKind::NotRunning,
        _ => ErrorKind::UnsupportedSource,
    }
}

/// Returns what to try.
pub(super) fn remedy(cause: ErrorCode, source: &str) -> String {
    match cause {
        ErrorCode::ThreadProfilingTaken => {
            "end the programs that profile their threads, and other profilers".to_owned()
        }
        ErrorCode::ThreadsConflict => ".\\client status   (lists what runs); then stop one of the two".to_owned(),
        ErrorCode::NotReadable => {
            "a session that counts on this CPU, with at most 16 events that take no turns".to_owned()
        }
        _ => format!("another event   (.\\client query {} shows its counters)", argument(source)),
    }
}

/// Returns what happened. `sessions` are those of the reply.
pub(super) fn sentence(cause: ErrorCode, source: &str, header: &ReplyHeader, sessions: &[RunningSession]) -> String {
    let [first, _] = header.detail;
    match cause {
        ErrorCode::ThreadProfilingTaken => {
            let status = ntstatus::of_detail(first);
            let mut text = format!(
                "Windows does not change its thread profiling: KeSetHardwareCounterConfiguration returned\n  \
                 {}",
                ntstatus::name(status)
            );
            if status == STATUS_WMI_ALREADY_ENABLED {
                text += "\n  because: another driver has configured it, or a thread still profiles";
            }
            text
        }
        ErrorCode::ThreadsConflict => {
            let mut text = "a session for thread profiling needs the counters for itself: no other such session,\n  \
                            and none that samples by counters, can run beside it"
                .to_owned();
            for (index, session) in sessions.iter().enumerate() {
                text += if index == 0 { "\n  held by: " } else { "\n           " };
                text += &session.to_string();
            }
            text
        }
        ErrorCode::NotReadable => {
            let processor = header.processor;
            format!("the counters of session {first} on CPU {processor} cannot be read as a group")
        }
        _ => format!(
            "no counter counts {source} on every CPU\n  \
             because: thread profiling needs a general counter that has the same index everywhere"
        ),
    }
}
