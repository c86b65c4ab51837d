//! The choice of a profile interface, from the boot processor alone (seed 001).
//!
//! The rules are those of the 64-bit HAL in the original Windows 10; the two lists that the seed lost
//! stand here as [`Reason`]s. Where it takes Default for want of leaf 0xA, we take what Intel's processors had before
//! that leaf, if the family says that they have it and nothing stands between.

use core::fmt;

use x86_defs::cpuid::{
    Leaf1Edx, Leaf40000003Edx, Leaf80000001Ecx, Leaf80000001Edx, LeafAEax, LeafAEbx, Signature, VENDOR_AMD,
    VENDOR_INTEL, leaf,
};

use crate::cpu::Cpuid;
use crate::hypervisor::Hypervisor;
use crate::interface::Kind;

/// Why a profile interface was chosen. The numbers travel to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Reason {
    /// Amd64: vendor AuthenticAMD, with long mode.
    Amd = 0,
    /// Emon: vendor GenuineIntel, and leaf 0xA is as the HAL wants it.
    Intel = 1,
    /// Default: the vendor is neither.
    OtherVendor = 2,
    /// Default: AuthenticAMD, but CPUID.80000001H:EDX\[29\] (long mode) is clear.
    NoLongMode = 3,
    /// Default: Hv#1 hypervisor whose leaf 0x40000003 has EDX\[2\] (PerformanceMonitorsAvailable) clear.
    MaskedByHypervisor = 4,
    /// Default: GenuineIntel whose highest basic leaf is below 0xA.
    NoLeafA = 5,
    /// Default: leaf 0xA EAX\[7:0\] (version) is zero.
    VersionZero = 6,
    /// Default: leaf 0xA EAX\[31:24\] (length of the EBX vector) is zero.
    NoEvents = 7,
    /// Default: leaf 0xA EBX\[0\] says that core cycles are not available.
    NoCycles = 8,
    /// Default, where the HAL takes Emon: leaf 0xA EAX\[15:8\] says zero counters.
    ZeroCounters = 9,
    /// NetBurst, where the HAL takes Default: GenuineIntel of family 15 without a usable leaf 0xA.
    NetBurst = 10,
    /// P6, where the HAL takes Default: GenuineIntel of family 6 without one, and of a model before that leaf.
    P6 = 11,
    /// Pentium, where the HAL takes Default: GenuineIntel of family 5 with model-specific registers.
    Pentium = 12,
}

impl Reason {
    /// Every reason, in the order of its number.
    pub const ALL: [Self; 13] = [
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
    ];

    /// The reason with this number.
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
        })
    }
}

/// The outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Selection {
    /// What the HAL of the original Windows 10 takes. Its Amd64 has four counters and the events of the K8 on every
    /// processor of AMD's; ours has those of the processor.
    pub windows10: Kind,
    /// What this driver takes.
    pub interface: Kind,
    /// Why.
    pub reason: Reason,
}

impl Selection {
    /// Chooses for the processor on which it runs, which has to be the boot processor. Any IRQL.
    #[must_use]
    pub fn of_boot_processor(cpu: &impl Cpuid) -> Self {
        let (kind, reason) = tentative(cpu);
        if kind != Kind::Default && masked_by_hypervisor(cpu) {
            return Self::both(Kind::Default, Reason::MaskedByHypervisor);
        }
        // Nothing could ever be started on it. The HAL has no such rule.
        if kind == Kind::Emon && LeafAEax::from_bits(cpu.cpuid(leaf::ARCHITECTURAL_PERFMON, 0).eax).counters() == 0 {
            return Self { windows10: Kind::Emon, interface: Kind::Default, reason: Reason::ZeroCounters };
        }
        let old = matches!(reason, Reason::NoLeafA | Reason::VersionZero).then(|| before_leaf_a(cpu)).flatten();
        old.map_or(Self::both(kind, reason), |(interface, reason)| Self { windows10: kind, interface, reason })
    }

    const fn both(kind: Kind, reason: Reason) -> Self {
        Self { windows10: kind, interface: kind, reason }
    }
}

/// What the vendor and the leaves indicate, save for what a hypervisor may have to say.
fn tentative(cpu: &impl Cpuid) -> (Kind, Reason) {
    let highest_leaf = cpu.cpuid(leaf::VENDOR, 0).eax;
    match vendor(cpu) {
        VENDOR_AMD if has_long_mode(cpu) => (Kind::Amd64, Reason::Amd),
        VENDOR_AMD => (Kind::Default, Reason::NoLongMode),
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

/// What a GenuineIntel processor without a usable leaf 0xA has, by its family and model (SDM Vol. 4, "CPUID Signature
/// Values of DisplayFamily_DisplayModel"). None under a hypervisor, which need not have the registers.
fn before_leaf_a(cpu: &impl Cpuid) -> Option<(Kind, Reason)> {
    let features = cpu.cpuid(leaf::FEATURES, 0);
    let signature = Signature::from_bits(features.eax);
    let edx = Leaf1Edx::from_bits(features.edx);
    // The time-stamp counter came with the Pentium's counters.
    let has_msr_and_tsc = edx.msr() && edx.tsc();
    if Hypervisor::of(cpu) != Hypervisor::None {
        return None;
    }
    match (signature.base_family(), signature.base_model()) {
        _ if signature.extended_family() != 0 => None,
        (0xF, _) => Some((Kind::NetBurst, Reason::NetBurst)),
        _ if signature.extended_model() != 0 => None,
        // Pentium Pro; II; III; Pentium M. Newer ones have the leaf, or somebody hides it.
        (6, 1 | 3 | 5..=0xB | 0xD) => Some((Kind::P6, Reason::P6)),
        // Quark is of family 5 as well, and has no such counters.
        (5, 1..=8) if has_msr_and_tsc => Some((Kind::Pentium, Reason::Pentium)),
        _ => None,
    }
}

/// Vendor string of leaf 0: EBX, EDX, ECX.
#[must_use]
pub fn vendor(cpu: &impl Cpuid) -> [u8; 12] {
    let registers = cpu.cpuid(leaf::VENDOR, 0);
    let mut text = [0; 12];
    for (part, register) in text.chunks_exact_mut(4).zip([registers.ebx, registers.edx, registers.ecx]) {
        part.copy_from_slice(&register.to_le_bytes());
    }
    text
}

/// CPUID.80000001H:EDX\[29\], where that leaf exists (APM Vol. 3 E.4.2, "LM").
fn has_long_mode(cpu: &impl Cpuid) -> bool {
    cpu.cpuid(leaf::EXTENDED_MAXIMUM, 0).eax >= leaf::EXTENDED_FEATURES
        && Leaf80000001Edx::from_bits(cpu.cpuid(leaf::EXTENDED_FEATURES, 0).edx).long_mode()
}

/// Whether CPUID promises that the registers of an interface exist. Nothing does for AMD's four counters: every
/// processor with long mode has them, but a hypervisor need not, and then the first access stops the machine. One that
/// lends them out shows PerfCtrExtCore (CPUID.80000001H:ECX\[23\]) as well; Microsoft's says so itself.
#[must_use]
pub fn enumerated(cpu: &impl Cpuid, kind: Kind) -> bool {
    kind != Kind::Amd64
        || Hypervisor::of(cpu) != Hypervisor::Other
        || Leaf80000001Ecx::from_bits(cpu.cpuid(leaf::EXTENDED_FEATURES, 0).ecx).perf_ctr_ext_core()
}

/// Whether a Microsoft-compatible hypervisor is present, as HviIsHypervisorMicrosoftCompatible has it, and
/// shows no performance monitors (TLFS, "Hypervisor CPUID Leaf Range").
fn masked_by_hypervisor(cpu: &impl Cpuid) -> bool {
    Hypervisor::of(cpu).is_microsoft_compatible()
        && !Leaf40000003Edx::from_bits(cpu.cpuid(leaf::HYPERVISOR_FEATURES, 0).edx).performance_monitors_available()
}
