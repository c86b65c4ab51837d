//! Texts for [`ErrorCode::RegisterFault`](protocol::ErrorCode::RegisterFault): which register, and what to do.

use pmu::Hypervisor;
use pmu::first_access::Access;
use protocol::{RegisterFault, ReplyHeader};
use x86_defs::intel::perfmon;

use crate::text::{register, unavailable};

/// Returns the error and its reason.
pub fn sentence(header: &ReplyHeader) -> String {
    let ReplyHeader { processor, detail: [fault, hypervisor], .. } = *header;
    let fault = RegisterFault::from_detail(fault);
    let why = match known(hypervisor) {
        Some(Hypervisor::Other | Hypervisor::Guest | Hypervisor::Root | Hypervisor::Kvm) => {
            "CPUID enumerates the counters, but the hypervisor lacks some of them"
        }
        Some(Hypervisor::None) | None => {
            "CPUID enumerates it, but the processor, or a hypervisor that hides\n  itself, does not have it"
        }
    };
    format!("CPU {processor} faulted (#GP) when it {}\n  because: {why}", accessed(fault))
}

/// Returns what to do.
pub fn remedy(header: &ReplyHeader) -> String {
    match known(header.detail[1]) {
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
fn accessed(RegisterFault { number, access, interface }: RegisterFault) -> String {
    let register = || register::named(interface.into(), number);
    match Access::from_number(access) {
        Some(Access::Read) => format!("read {}", register()),
        Some(Access::Write) => format!("wrote {}", register()),
        Some(Access::Counter) if number == perfmon::RDPMC_METRICS => "read MSR_PERF_METRICS by RDPMC".to_owned(),
        Some(Access::Counter) => match number.checked_sub(perfmon::RDPMC_FIXED) {
            Some(fixed) => format!("read fixed counter {fixed} by RDPMC"),
            None => format!("read counter {number} by RDPMC"),
        },
        None => format!("accessed {}", register()),
    }
}
