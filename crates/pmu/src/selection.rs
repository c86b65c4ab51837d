//! Selection of a profile interface, from the boot processor alone (HAL interface selection, section 3).
//!
//! The rules are those of the 64-bit HAL in the original Windows 10; [`Reason`] has the two lists that the document
//! lost. If leaf 0xA is unusable, the HAL selects Default. This driver then selects the interface of older Intel
//! processors, if the family has one and no hypervisor is present.

use core::fmt;

use x86_defs::cpuid::{
    IntelProcessor, Leaf1Edx, Leaf40000003Edx, Leaf80000001Ecx, Leaf80000001Edx, LeafAEax, LeafAEbx, Signature,
    VENDOR_AMD, VENDOR_HYGON, VENDOR_INTEL, leaf,
};

use crate::cpu::{Cpuid, vendor};
use crate::hypervisor::Hypervisor;
use crate::interface::Kind;

/// Reason for which a profile interface was selected. The protocol uses these numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Reason {
    /// Amd64: vendor AuthenticAMD, with long mode.
    Amd = 0,
    /// Emon: vendor GenuineIntel, and leaf 0xA meets the HAL's conditions.
    Intel = 1,
    /// Default: another vendor.
    OtherVendor = 2,
    /// Default: AuthenticAMD, but CPUID.80000001H:EDX\[29\] (long mode) is clear.
    NoLongMode = 3,
    /// Default: Hv#1 hypervisor with EDX\[2\] (PerformanceMonitorsAvailable) of leaf 0x40000003 clear.
    MaskedByHypervisor = 4,
    /// Default: GenuineIntel with a highest basic leaf below 0xA.
    NoLeafA = 5,
    /// Default: leaf 0xA EAX\[7:0\] (version) is zero.
    VersionZero = 6,
    /// Default: leaf 0xA EAX\[31:24\] (length of the EBX vector) is zero.
    NoEvents = 7,
    /// Default: leaf 0xA EBX\[0\] reports that core cycles are not available.
    NoCycles = 8,
    /// Default, where the HAL selects Emon: leaf 0xA EAX\[15:8\] reports zero counters.
    ZeroCounters = 9,
    /// NetBurst, where the HAL selects Default: GenuineIntel, family 15, without a usable leaf 0xA.
    NetBurst = 10,
    /// P6, where the HAL selects Default: GenuineIntel, family 6, a model older than leaf 0xA.
    P6 = 11,
    /// Pentium, where the HAL selects Default: GenuineIntel, family 5, with model-specific registers.
    Pentium = 12,
    /// Amd64, where the HAL selects Default: HygonGenuine with long mode, and the driver's option for it.
    Hygon = 13,
    /// Emon or Amd64, where the HAL selects Default as for [`MaskedByHypervisor`](Self::MaskedByHypervisor): the
    /// hypervisor is KVM, and CPUID enumerates the counters.
    Kvm = 14,
}

/// Options of the driver that change the selection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// Treat HygonGenuine as AuthenticAMD, as Linux does (arch/x86/events/core.c, `init_hw_perf_events`).
    pub hygon_as_amd: bool,
}

impl Reason {
    /// All reasons, in the order of their numbers.
    pub const ALL: [Self; 15] = [
        Self::Amd,
        Self::Intel,
        Self::OtherVendor,
        Self::NoLongMode,
        Self::MaskedByHypervisor,
        Self::NoLeafA,
        Self::VersionZero,
        Self::NoEvents,
        Self::NoCycles,
        Self::ZeroCounters,
        Self::NetBurst,
        Self::P6,
        Self::Pentium,
        Self::Hygon,
        Self::Kvm,
    ];

    /// Returns the reason with this number.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| *reason as u32 == number)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Amd => "AuthenticAMD with long mode",
            Self::Intel => "GenuineIntel with architectural performance monitoring",
            Self::OtherVendor => "the vendor is neither AuthenticAMD nor GenuineIntel",
            Self::NoLongMode => "an AMD processor without long mode",
            Self::MaskedByHypervisor => "a Microsoft-compatible hypervisor masks the counters",
            Self::NoLeafA => "CPUID has no leaf 0xA",
            Self::VersionZero => "CPUID leaf 0xA says version 0",
            Self::NoEvents => "CPUID leaf 0xA enumerates no events",
            Self::NoCycles => "CPUID leaf 0xA says that core cycles are not available",
            Self::ZeroCounters => "CPUID leaf 0xA says zero counters",
            Self::NetBurst => "GenuineIntel of family 15, from before CPUID leaf 0xA",
            Self::P6 => "GenuineIntel of family 6, from before CPUID leaf 0xA",
            Self::Pentium => "GenuineIntel of family 5, from before CPUID leaf 0xA",
            Self::Hygon => "HygonGenuine with long mode, taken for AMD by the option HygonAsAmd",
            Self::Kvm => "KVM, whose Hyper-V enlightenments hide the counters from Windows",
        })
    }
}

/// Result of the selection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Selection {
    /// The interface that the HAL of the original Windows 10 selects. Its Amd64 has four counters and the events of the
    /// K8 on every AMD processor; this driver's has those of the processor.
    pub windows10: Kind,
    /// The interface that this driver selects.
    pub interface: Kind,
    /// The reason.
    pub reason: Reason,
}

impl Selection {
    /// Selects an interface for the current processor, which must be the boot processor, without options.
    ///
    /// # IRQL
    /// Any.
    #[must_use]
    pub fn of_boot_processor(cpu: &impl Cpuid) -> Self {
        Self::with_options(cpu, Options::default())
    }

    /// Selects an interface for the current processor, which must be the boot processor.
    ///
    /// # IRQL
    /// Any.
    #[must_use]
    pub fn with_options(cpu: &impl Cpuid, options: Options) -> Self {
        let (kind, reason) = tentative(cpu, options);
        let masked = kind != Kind::Default && masked_by_hypervisor(cpu);
        if masked && !(Hypervisor::of(cpu) == Hypervisor::Kvm && enumerated(cpu, kind)) {
            return Self::both(Kind::Default, Reason::MaskedByHypervisor);
        }
        let windows10 = if masked { Kind::Default } else { kind };
        if reason == Reason::Hygon {
            return Self { windows10: Kind::Default, interface: kind, reason };
        }
        // No event could ever be started on it. The HAL has no such rule.
        if kind == Kind::Emon && LeafAEax::from_bits(cpu.cpuid(leaf::ARCHITECTURAL_PERFMON, 0).eax).counters() == 0 {
            return Self { windows10, interface: Kind::Default, reason: Reason::ZeroCounters };
        }
        if masked {
            return Self { windows10, interface: kind, reason: Reason::Kvm };
        }
        let old = matches!(reason, Reason::NoLeafA | Reason::VersionZero).then(|| before_leaf_a(cpu)).flatten();
        old.map_or(Self::both(kind, reason), |(interface, reason)| Self { windows10: kind, interface, reason })
    }

    const fn both(kind: Kind, reason: Reason) -> Self {
        Self { windows10: kind, interface: kind, reason }
    }
}

/// Returns the selection by vendor and CPUID leaves, before a hypervisor is taken into account.
fn tentative(cpu: &impl Cpuid, options: Options) -> (Kind, Reason) {
    let highest_leaf = cpu.cpuid(leaf::VENDOR, 0).eax;
    match vendor(cpu) {
        VENDOR_AMD if has_long_mode(cpu) => (Kind::Amd64, Reason::Amd),
        VENDOR_AMD => (Kind::Default, Reason::NoLongMode),
        VENDOR_HYGON if options.hygon_as_amd && has_long_mode(cpu) => (Kind::Amd64, Reason::Hygon),
        VENDOR_INTEL if highest_leaf < leaf::ARCHITECTURAL_PERFMON => (Kind::Default, Reason::NoLeafA),
        VENDOR_INTEL => {
            let perfmon = cpu.cpuid(leaf::ARCHITECTURAL_PERFMON, 0);
            let eax = LeafAEax::from_bits(perfmon.eax);
            if eax.version() == 0 {
                (Kind::Default, Reason::VersionZero)
            } else if eax.ebx_length() == 0 {
                (Kind::Default, Reason::NoEvents)
            } else if LeafAEbx::from_bits(perfmon.ebx).no_core_cycles() {
                (Kind::Default, Reason::NoCycles)
            } else {
                (Kind::Emon, Reason::Intel)
            }
        }
        _ => (Kind::Default, Reason::OtherVendor),
    }
}

/// Returns the interface of a GenuineIntel processor without a usable leaf 0xA, by its family and model (SDM Vol. 4,
/// "CPUID Signature Values of DisplayFamily_DisplayModel"). Under a hypervisor there is none, because the registers may
/// be missing.
fn before_leaf_a(cpu: &impl Cpuid) -> Option<(Kind, Reason)> {
    let features = cpu.cpuid(leaf::FEATURES, 0);
    let signature = Signature::from_bits(features.eax);
    let edx = Leaf1Edx::from_bits(features.edx);
    // The time-stamp counter came with the Pentium's counters.
    let has_msr_and_tsc = edx.msr() && edx.tsc();
    if Hypervisor::of(cpu) != Hypervisor::None {
        return None;
    }
    match IntelProcessor::of(signature)? {
        _ if signature.extended_family() != 0 => None,
        IntelProcessor::NetBurst => Some((Kind::NetBurst, Reason::NetBurst)),
        // Newer models have the leaf, unless a hypervisor hides it.
        IntelProcessor::P6 => Some((Kind::P6, Reason::P6)),
        IntelProcessor::Pentium if has_msr_and_tsc && signature.extended_model() == 0 => {
            Some((Kind::Pentium, Reason::Pentium))
        }
        _ => None,
    }
}

/// Returns CPUID.80000001H:EDX\[29\], if that leaf exists (APM Vol. 3 E.4.2, "LM").
fn has_long_mode(cpu: &impl Cpuid) -> bool {
    cpu.cpuid(leaf::EXTENDED_MAXIMUM, 0).eax >= leaf::EXTENDED_FEATURES
        && Leaf80000001Edx::from_bits(cpu.cpuid(leaf::EXTENDED_FEATURES, 0).edx).long_mode()
}

/// Returns whether CPUID enumerates the registers of an interface. Nothing enumerates AMD's four legacy counters: every
/// processor with long mode has them, but a hypervisor may lack them, and then the first access crashes the machine. A
/// hypervisor that provides them also sets PerfCtrExtCore (CPUID.80000001H:ECX\[23\]); Microsoft's reports them in
/// its own leaf.
#[must_use]
pub fn enumerated(cpu: &impl Cpuid, kind: Kind) -> bool {
    kind != Kind::Amd64
        || !matches!(Hypervisor::of(cpu), Hypervisor::Other | Hypervisor::Kvm)
        || Leaf80000001Ecx::from_bits(cpu.cpuid(leaf::EXTENDED_FEATURES, 0).ecx).perf_ctr_ext_core()
}

/// Returns whether a Microsoft-compatible hypervisor, as HviIsHypervisorMicrosoftCompatible detects it, provides no
/// performance monitors (TLFS, "Hypervisor CPUID Leaf Range").
fn masked_by_hypervisor(cpu: &impl Cpuid) -> bool {
    Hypervisor::of(cpu).is_microsoft_compatible()
        && !Leaf40000003Edx::from_bits(cpu.cpuid(leaf::HYPERVISOR_FEATURES, 0).edx).performance_monitors_available()
}
