//! Texts for [`ErrorCode::RegisterFault`](protocol::ErrorCode::RegisterFault): which register, and what to do.

use pmu::Hypervisor;
use pmu::first_access::Access;
use protocol::{RegisterFault, ReplyHeader};
use x86_defs::intel::perfmon;

use crate::text::{register, unavailable};

/// Source of a refusal that concerns no event: measured time touches no register.
const NO_EVENT: u64 = 0;

/// Returns the error and its reason. `source` is the event that needs the access, if not every event does.
pub fn sentence(header: &ReplyHeader, source: &str) -> String {
    let ReplyHeader { processor, detail: [fault, value], .. } = *header;
    let fault = RegisterFault::from_detail(fault);
    if header.source != NO_EVENT {
        return format!("CPU {processor} cannot count {source}\n  because: {}", not_taken(fault, value));
    }
    if is_kept_by_none(fault) {
        return format!("CPU {processor} cannot record\n  because: {}", not_taken(fault, value));
    }
    let why = match known(fault.hypervisor.into()) {
        Some(Hypervisor::Other | Hypervisor::Guest | Hypervisor::Root | Hypervisor::Kvm) => {
            "CPUID enumerates the counters, but the hypervisor lacks some of them"
        }
        Some(Hypervisor::None) | None => {
            "CPUID enumerates it, but the processor, or a hypervisor that hides\n  itself, does not have it"
        }
    };
    format!("CPU {processor} faulted (#GP) when it {}\n  because: {why}", accessed(fault))
}

/// Returns why the counters of a processor do not work, if a register has shown it.
pub fn why_not_working(header: &ReplyHeader) -> Option<String> {
    let [fault, value] = header.detail;
    (fault != 0).then(|| not_taken(RegisterFault::from_detail(fault), value))
}

fn is_kept_by_none(RegisterFault { access, .. }: RegisterFault) -> bool {
    Access::from_number(access) == Some(Access::ReadBack)
}

/// Returns the register and the value that it does not take.
fn not_taken(fault: RegisterFault, value: u64) -> String {
    let register = register::named(fault.interface.into(), fault.number);
    if is_kept_by_none(fault) {
        format!("{register} does not keep the value {value:#x}")
    } else {
        format!("{register} faulted (#GP) for the value {value:#x}")
    }
}

/// Returns what to do.
pub fn remedy(header: &ReplyHeader) -> String {
    if header.source != NO_EVENT {
        return "the same without this event, or on the machine itself instead of a virtual one".to_owned();
    }
    match known(RegisterFault::from_detail(header.detail[0]).hypervisor.into()) {
        Some(Hypervisor::Root) => unavailable::HYPER_V_BELOW.to_owned(),
        Some(Hypervisor::Guest) => "give this virtual machine counters that work, or hide them from it; on a\n  \
             Hyper-V host, with the machine off:\n  Set-VMProcessor NAME -Perfmon @(\"pmu\",\"lbr\",\"pebs\"), or @()"
            .to_owned(),
        Some(Hypervisor::Other | Hypervisor::Kvm) => {
            "give this virtual machine a whole virtual PMU, or hide the PMU from it\n  \
             (KVM: -cpu host,pmu=on or pmu=off)"
                .to_owned()
        }
        Some(Hypervisor::None) | None => "update the firmware, and turn off what virtualizes this machine".to_owned(),
    }
}

/// Returns the hypervisor with this number in a detail of a refusal.
pub(super) fn known(hypervisor: u64) -> Option<Hypervisor> {
    u32::try_from(hypervisor).ok().and_then(Hypervisor::from_number)
}

/// Returns what the processor did, with the name and the number of the register.
fn accessed(RegisterFault { number, access, interface, .. }: RegisterFault) -> String {
    let register = || register::named(interface.into(), number);
    match Access::from_number(access) {
        Some(Access::Read) => format!("read {}", register()),
        Some(Access::Write) => format!("wrote {}", register()),
        Some(Access::Counter) if number == perfmon::RDPMC_METRICS => "read MSR_PERF_METRICS by RDPMC".to_owned(),
        Some(Access::Counter) => match number.checked_sub(perfmon::RDPMC_FIXED) {
            Some(fixed) => format!("read fixed counter {fixed} by RDPMC"),
            None => format!("read counter {number} by RDPMC"),
        },
        Some(Access::ReadBack) | None => format!("accessed {}", register()),
    }
}
