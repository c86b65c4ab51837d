//! What keeps a machine from having counters, and what opens them.

use profile::{Hypervisor, Kind, Reason};

/// Why there are no counters, and what to do; none where there are.
pub fn of(interface: u32, reason: u32, hypervisor: u32) -> Option<(&'static str, &'static str)> {
    if interface != Kind::Default as u32 {
        return None;
    }
    let (reason, hypervisor) = (Reason::from_number(reason), Hypervisor::from_number(hypervisor));
    Some(match (reason, hypervisor) {
        (Some(Reason::MaskedByHypervisor), Some(Hypervisor::Root)) => (
            "Hyper-V, on which Windows itself runs here, masks the counters",
            "turn off what needs it: virtualization-based security (msinfo32 says\n  \
             what of it runs), or the Hyper-V role (bcdedit /set hypervisorlaunchtype off)",
        ),
        (Some(Reason::MaskedByHypervisor), _) => (
            "Hyper-V masks the counters of this virtual machine",
            "on the host, with the machine off:\n  Set-VMProcessor NAME -Perfmon @(\"pmu\")",
        ),
        (_, Some(Hypervisor::None) | None) => (
            "the processor has no counters that this driver knows",
            "another machine; client diagnose says what is missing",
        ),
        (_, Some(_)) => (
            "the hypervisor gives this virtual machine no counters",
            "give it a virtual PMU, if the hypervisor has one",
        ),
    })
}

/// The words for the number of a hypervisor.
pub fn hypervisor(number: u32) -> String {
    match Hypervisor::from_number(number) {
        Some(Hypervisor::None) => "none that shows itself".to_owned(),
        Some(Hypervisor::Other) => "one that is not compatible with Hyper-V".to_owned(),
        Some(Hypervisor::Guest) => "Hyper-V or one that is compatible; this is a virtual machine".to_owned(),
        Some(Hypervisor::Root) => "Hyper-V, of this Windows itself (its role, or for security)".to_owned(),
        None => format!("kind {number}, which this client does not know"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_blocker_exactly_where_there_are_no_counters_and_it_fits_a_console() {
        for reason in Reason::ALL {
            for kind in Hypervisor::ALL {
                assert_eq!(of(Kind::Amd64 as u32, reason as u32, kind as u32), None);
                let (what, remedy) = of(Kind::Default as u32, reason as u32, kind as u32).unwrap();
                assert!(what.len() <= 62 && remedy.lines().all(|line| line.len() <= 80), "{what}\n{remedy}");
                let masked = reason == Reason::MaskedByHypervisor;
                assert_eq!(
                    remedy.contains("Set-VMProcessor"),
                    masked && kind != Hypervisor::Root,
                    "{reason:?} {kind:?}"
                );
            }
        }
    }

    #[test]
    fn every_hypervisor_has_words_of_its_own() {
        for number in 0..5 {
            assert_eq!((0..5).filter(|other| hypervisor(*other) == hypervisor(number)).count(), 1, "{number}");
        }
    }
}
