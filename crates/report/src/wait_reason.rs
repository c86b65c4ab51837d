//! What a thread waits for.

use protocol::{OffCpuRecord, OffCpuState};

/// Names of KWAIT_REASON, by number: 0 to 36 as documented for Win32_Thread and wdm.h, the others from phnt
/// (ntkeapi.h).
const NAMES: [&str; 43] = [
    "Executive",
    "FreePage",
    "PageIn",
    "PoolAllocation",
    "DelayExecution",
    "Suspended",
    "UserRequest",
    "WrExecutive",
    "WrFreePage",
    "WrPageIn",
    "WrPoolAllocation",
    "WrDelayExecution",
    "WrSuspended",
    "WrUserRequest",
    "WrEventPair",
    "WrQueue",
    "WrLpcReceive",
    "WrLpcReply",
    "WrVirtualMemory",
    "WrPageOut",
    "WrRendezvous",
    "WrKeyedEvent",
    "WrTerminated",
    "WrProcessInSwap",
    "WrCpuRateControl",
    "WrCalloutStack",
    "WrKernel",
    "WrResource",
    "WrPushLock",
    "WrMutex",
    "WrQuantumEnd",
    "WrDispatchInt",
    "WrPreempted",
    "WrYieldExecution",
    "WrFastMutex",
    "WrGuardedMutex",
    "WrRundown",
    "WrAlertByThreadId",
    "WrDeferredPreempt",
    "WrPhysicalFault",
    "WrIoRing",
    "WrMdlCache",
    "WrRcu",
];

/// Returns the name of a wait reason; that of a number without a name is the number.
#[must_use]
pub fn wait_reason(number: u8) -> String {
    NAMES.get(usize::from(number)).map_or_else(|| number.to_string(), |name| (*name).to_owned())
}

/// Returns why a thread did not run: what it waited for, or that it was ready.
#[must_use]
pub fn why_off_cpu(record: &OffCpuRecord) -> String {
    match record.state {
        OffCpuState::Ready => "ready".to_owned(),
        OffCpuState::Waiting | OffCpuState::WaitingOrReady => wait_reason(record.reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_has_its_name_or_is_a_number() {
        let known =
            [(0, "Executive"), (6, "UserRequest"), (32, "WrPreempted"), (37, "WrAlertByThreadId"), (42, "WrRcu")];
        for (number, name) in known {
            assert_eq!(wait_reason(number), name);
        }
        assert_eq!(wait_reason(43), "43");
    }
}
