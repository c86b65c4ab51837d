//! Why a machine has no counters, and what makes them available.

use pmu::{Hypervisor, Kind, Reason};
use protocol::InfoReply;
use serde::Serialize;
use thiserror::Error;
use x86_defs::cpuid::{VENDOR_HYGON, VENDOR_TCG};

use crate::text::format;

/// The remedy where another profiler may use the counters.
pub const OTHER_PROFILERS: &str = "end the other profilers on this machine (wpr -cancel, VTune, uProf)";

/// The remedy if Windows is the root partition of Hyper-V: an ordinary PC, not a virtual machine.
pub const HYPER_V_BELOW: &str = "turn off what uses Hyper-V: virtualization-based security (msinfo32\n  \
     lists it), or the Hyper-V role (bcdedit /set hypervisorlaunchtype off)";

/// The remedy for sampling if KVM runs the machine with Hyper-V enlightenments.
pub const WITHOUT_ENLIGHTENMENTS: &str = ".\\client stat, which needs no interrupt; or start the virtual machine\n  \
     without Hyper-V enlightenments (libvirt: <hyperv>; QEMU: hv-...) to sample";

/// Why there are no counters, and what to do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Error)]
#[error("{what}")]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct Unavailable {
    /// The reason.
    pub what: &'static str,
    /// What makes them available.
    pub remedy: &'static str,
}

/// An event that cannot be counted, on a machine without counters.
#[derive(Debug, Error)]
#[error("{name} cannot be counted: this machine has no counters")]
pub struct NoCounters {
    /// Name of the event.
    pub name: String,
    /// Why there are none.
    #[source]
    pub cause: Unavailable,
}

impl Unavailable {
    /// Returns why the machine of a driver has no counters, or none that count; `None` if it has counters.
    #[must_use]
    pub fn of_machine(info: &InfoReply) -> Option<Self> {
        Self::of_emulator(&info.hypervisor_vendor)
            .or_else(|| Self::of(info.interface, info.reason, info.hypervisor, &format::text(&info.vendor)))
    }

    /// Returns why a machine with a processor of this vendor has no counters; `None` if it has counters.
    #[must_use]
    pub fn of(interface: u32, reason: u32, hypervisor: u32, vendor: &str) -> Option<Self> {
        if interface != Kind::Default as u32 {
            return None;
        }
        if reason == Reason::OtherVendor as u32 && vendor.as_bytes() == VENDOR_HYGON {
            return Some(Self { what: HYGON.0, remedy: HYGON.1 });
        }
        let (reason, hypervisor) = (Reason::from_number(reason), Hypervisor::from_number(hypervisor));
        let (what, remedy) = match (reason, hypervisor) {
            (Some(Reason::OtherVendor | Reason::NoLongMode), _) => NO_COUNTERS,
            (_, Some(Hypervisor::Root)) => {
                ("Hyper-V runs underneath this Windows and hides the counters", HYPER_V_BELOW)
            }
            (_, Some(Hypervisor::Kvm)) => ("KVM gives this virtual machine no counters", VIRTUAL_PMU_OF_KVM),
            (Some(Reason::MaskedByHypervisor), _) => (
                "Hyper-V masks the counters of this virtual machine",
                "on the host, with the machine off:\n  Set-VMProcessor NAME -Perfmon @(\"pmu\")",
            ),
            (_, Some(Hypervisor::None) | None) => NO_COUNTERS,
            (_, Some(Hypervisor::Other | Hypervisor::Guest)) => (
                "the hypervisor gives this virtual machine no counters",
                "give it a virtual PMU, if the hypervisor has one",
            ),
        };
        Some(Self { what, remedy })
    }

    /// Returns why a machine counts nothing although it seems to have counters: an emulator, by the name that CPUID
    /// has for a hypervisor. TCG's processors of AMD have those of their families by CPUID; all their registers are 0.
    #[must_use]
    pub fn of_emulator(hypervisor_vendor: &[u8]) -> Option<Self> {
        (hypervisor_vendor == VENDOR_TCG).then_some(Self {
            what: "QEMU emulates this processor (TCG), and its counters stay at 0",
            remedy: "a hypervisor instead of the emulator: -accel kvm -cpu host,pmu=on",
        })
    }

    /// Formats the last lines of the properties of a machine.
    #[must_use]
    pub fn paragraph(&self) -> String {
        format!("No counters: {}\n  try: {}", self.what, self.remedy)
    }
}

const VIRTUAL_PMU_OF_KVM: &str = "on the host, with the machine off and its processor of type host:\n  \
     libvirt: <features> <pmu state='on'/> </features>\n  \
     Proxmox: qm set ID --args '-cpu host,pmu=on'";

const HYGON: (&str, &str) = (
    "Windows does not know the counters of a Hygon processor",
    "take it for one of AMD, as Linux does; then restart the driver:\n  \
     reg add HKLM\\SYSTEM\\CurrentControlSet\\Services\\halprof\\Parameters\n    \
     /v HygonAsAmd /t REG_DWORD /d 1",
);

const NO_COUNTERS: (&str, &str) = (
    "the processor has no counters that this driver knows",
    "another machine   (Reason in .\\client info says what is missing)",
);

/// Returns the text for the number of a hypervisor.
#[must_use]
pub fn hypervisor(number: u32) -> String {
    match Hypervisor::from_number(number) {
        Some(Hypervisor::None) => "none that shows itself".to_owned(),
        Some(Hypervisor::Other) => "one that is not compatible with Hyper-V".to_owned(),
        Some(Hypervisor::Guest) => "Hyper-V or one that is compatible; this is a virtual machine".to_owned(),
        Some(Hypervisor::Root) => "Hyper-V; this Windows is its root partition (Hyper-V role, VBS)".to_owned(),
        Some(Hypervisor::Kvm) => "KVM with Hyper-V enlightenments; this is a virtual machine".to_owned(),
        None => format!("kind {number}, which this client does not know"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_counters_has_a_reason_that_fits_a_console() {
        for reason in Reason::ALL {
            for kind in Hypervisor::ALL {
                assert_eq!(Unavailable::of(Kind::Amd64 as u32, reason as u32, kind as u32, "GenuineIntel"), None);
                let unavailable =
                    Unavailable::of(Kind::Default as u32, reason as u32, kind as u32, "GenuineIntel").unwrap();
                assert!(unavailable.paragraph().lines().all(|line| line.len() <= 80), "{unavailable:?}");
                let masked = reason == Reason::MaskedByHypervisor;
                assert_eq!(
                    unavailable.remedy.contains("Set-VMProcessor"),
                    masked && !matches!(kind, Hypervisor::Root | Hypervisor::Kvm),
                    "{reason:?} {kind:?}"
                );
                let of_the_processor = matches!(reason, Reason::OtherVendor | Reason::NoLongMode);
                assert_eq!(
                    unavailable.remedy.contains("<pmu state='on'/>") && unavailable.remedy.contains("qm set"),
                    kind == Hypervisor::Kvm && !of_the_processor,
                    "{reason:?} {kind:?}"
                );
            }
        }
    }

    #[test]
    fn the_text_for_a_root_partition_mentions_no_virtual_machine() {
        for reason in Reason::ALL {
            let Unavailable { what, remedy } =
                Unavailable::of(Kind::Default as u32, reason as u32, Hypervisor::Root as u32, "CentaurHauls").unwrap();
            assert!(
                !what.contains("virtual machine") && !remedy.contains("virtual PMU"),
                "{reason:?}: {what}\n{remedy}"
            );
            let of_the_processor = matches!(reason, Reason::OtherVendor | Reason::NoLongMode);
            assert_eq!(remedy.contains("msinfo32"), !of_the_processor, "{reason:?}: {remedy}");
        }
    }

    #[test]
    fn a_hygon_without_the_option_is_told_of_it_and_no_other_processor() {
        let of = |reason: Reason, vendor| Unavailable::of(Kind::Default as u32, reason as u32, 0, vendor).unwrap();
        let hygon = of(Reason::OtherVendor, "HygonGenuine");
        assert!(hygon.to_string().lines().all(|line| line.len() <= 80), "{hygon}");
        assert!(hygon.remedy.contains("Services\\halprof\\Parameters\n    /v HygonAsAmd /t REG_DWORD /d 1"), "{hygon}");
        assert!(!of(Reason::OtherVendor, "CentaurHauls").remedy.contains("Hygon"));
        assert!(!of(Reason::MaskedByHypervisor, "HygonGenuine").remedy.contains("Hygon"));
    }

    #[test]
    fn every_hypervisor_has_its_own_text() {
        for number in 0..6 {
            assert_eq!((0..6).filter(|other| hypervisor(*other) == hypervisor(number)).count(), 1, "{number}");
        }
    }
}
