//! What a run learns about the guest, and what steps need of it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::guest::Ran;

/// What is known about guest and package. `None` stands for not known yet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// Version of Windows, as `ver` prints it.
    pub windows: Option<String>,
    /// Brand string of the processor.
    pub processor: Option<String>,
    /// Profile interface: `Emon`, `Amd64`, or `Default` without counters.
    pub interface: Option<String>,
    /// Why there are no counters.
    pub blocker: Option<String>,
    /// Kind of hypervisor, in the client's words.
    pub hypervisor: Option<String>,
    /// Whether a processor can record branches or precise events.
    pub debug_store: Option<bool>,
    /// Whether test signing is on.
    pub test_signing: Option<bool>,
    /// Whether memory integrity runs.
    pub memory_integrity: Option<bool>,
    /// Whether the package was made on Linux.
    pub linux_package: bool,
    /// Why the payload has no end-to-end tests, if it has none.
    pub tests: Option<String>,
}

/// What a step needs of guest and package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Test signing.
    TestSigning,
    /// Counters in the guest.
    Counters,
    /// A guest without counters.
    NoCounters,
    /// A Debug Store in the guest.
    DebugStore,
    /// Memory integrity.
    MemoryIntegrity,
    /// KVM with Hyper-V enlightenments and counters.
    EnlightenedKvm,
    /// A package that was made on Linux.
    LinuxPackage,
    /// A package that was made on Windows.
    WindowsPackage,
    /// The end-to-end tests, built for Windows.
    Tests,
}

/// The interface on a machine without counters.
const NO_COUNTERS: &str = "Default";

impl Need {
    /// Returns why the need is not met, if it is not.
    pub fn unmet(self, facts: &Facts) -> Option<String> {
        let without = |met: bool, reason: &str| (!met).then(|| reason.to_owned());
        let unknown = || Some("client info did not report whether there are counters".to_owned());
        match (self, facts.interface.as_deref()) {
            (Self::Counters | Self::NoCounters | Self::EnlightenedKvm, None) => unknown(),
            (Self::TestSigning, _) => without(facts.test_signing == Some(true), "test signing is not on in the guest"),
            (Self::Counters, Some(interface)) => (interface == NO_COUNTERS).then(|| {
                let cause = facts.blocker.as_deref().map(|blocker| format!(": {blocker}")).unwrap_or_default();
                format!("no PMU{cause}")
            }),
            (Self::NoCounters, Some(interface)) => without(interface == NO_COUNTERS, "the guest has counters"),
            (Self::EnlightenedKvm, Some(_)) => {
                let kvm = facts.hypervisor.as_deref().is_some_and(|text| text.starts_with("KVM with Hyper-V"));
                without(kvm, "the hypervisor is not KVM with Hyper-V enlightenments")
            }
            (Self::DebugStore, _) => match facts.debug_store {
                Some(true) => None,
                Some(false) => Some("the guest has no Debug Store".to_owned()),
                None => Some("client control-area did not report whether there is a Debug Store".to_owned()),
            },
            (Self::MemoryIntegrity, _) => {
                without(facts.memory_integrity == Some(true), "memory integrity does not run in the guest")
            }
            (Self::LinuxPackage, _) => without(facts.linux_package, "the package was made on Windows"),
            (Self::WindowsPackage, _) => without(!facts.linux_package, "the package was made on Linux"),
            (Self::Tests, _) => facts.tests.clone(),
        }
    }

    /// Returns the name of the need in the plan.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TestSigning => "test signing",
            Self::Counters => "counters",
            Self::NoCounters => "no counters",
            Self::DebugStore => "a Debug Store",
            Self::MemoryIntegrity => "memory integrity",
            Self::EnlightenedKvm => "KVM with enlightenments",
            Self::LinuxPackage => "a package from Linux",
            Self::WindowsPackage => "a package from Windows",
            Self::Tests => "the test program",
        }
    }
}

/// Learns nothing.
pub fn nothing(_: &Ran, _: &mut Facts) {}

/// Learns the version of Windows from the output of `ver`.
pub fn windows(ran: &Ran, facts: &mut Facts) {
    facts.windows = Some(ran.out.trim().to_owned()).filter(|text| !text.is_empty());
}

/// Learns from the output of `client info --json`.
pub fn info(ran: &Ran, facts: &mut Facts) {
    let Ok(info) = serde_json::from_str::<Value>(&ran.out) else { return };
    let text = |name: &str| info.get(name).and_then(Value::as_str).map(str::to_owned);
    facts.interface = text("interface");
    facts.processor = text("brand");
    facts.hypervisor = text("hypervisor");
    facts.blocker = info.pointer("/blocker/what").or(info.get("reason")).and_then(Value::as_str).map(str::to_owned);
}

/// Learns from the output of `client control-area --json`.
pub fn control_areas(ran: &Ran, facts: &mut Facts) {
    let Ok(document) = serde_json::from_str::<Value>(&ran.out) else { return };
    let Some(areas) = document.get("areas").and_then(Value::as_array) else { return };
    let records = |area: &Value| {
        area.get("branches") == Some(&Value::Bool(true)) && area.get("precise_format").is_some_and(Value::is_u64)
    };
    facts.debug_store = Some(areas.iter().any(records));
}

/// Learns whether test signing is on.
pub fn test_signing(ran: &Ran, facts: &mut Facts) {
    facts.test_signing = Some(ran.out.contains("TESTSIGNING"));
}

/// Learns whether memory integrity runs.
pub fn memory_integrity(ran: &Ran, facts: &mut Facts) {
    facts.memory_integrity = Some(ran.out.trim() == "True");
}
