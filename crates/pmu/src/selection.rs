//! Selection of a profile interface, from the boot processor alone (HAL interface selection, section 3).
//!
//! The rules are those of the 64-bit HAL in the original Windows 10; [`Reason`] has the two lists that the document
//! lost. If leaf 0xA is unusable, the HAL selects Default. This driver then selects the interface of older Intel
//! processors, if the family has one and no hypervisor is present.

use core::fmt;

use bitfield_struct::bitfield;

use crate::cpu::Cpu;
use crate::hypervisor::Hypervisor;
use crate::interface::Kind;
use crate::interface::emon::{LeafAEax, LeafAEbx};

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
}

impl Reason {
    /// All reasons, in the order of their numbers.
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
    /// Selects an interface for the current processor, which must be the boot processor.
    ///
    /// # IRQL
    /// Any.
    #[must_use]
    pub fn of_boot_processor(cpu: &impl Cpu) -> Self {
        let (kind, reason) = tentative(cpu);
        if kind != Kind::Default && masked_by_hypervisor(cpu) {
            return Self::both(Kind::Default, Reason::MaskedByHypervisor);
        }
        // No event could ever be started on it. The HAL has no such rule.
        if kind == Kind::Emon && LeafAEax::of(cpu).counters() == 0 {
            return Self { windows10: Kind::Emon, interface: Kind::Default, reason: Reason::ZeroCounters };
        }
        let old = matches!(reason, Reason::NoLeafA | Reason::VersionZero).then(|| before_leaf_a(cpu)).flatten();
        old.map_or(Self::both(kind, reason), |(interface, reason)| Self { windows10: kind, interface, reason })
    }

    const fn both(kind: Kind, reason: Reason) -> Self {
        Self { windows10: kind, interface: kind, reason }
    }
}

/// Returns the selection by vendor and CPUID leaves, before a hypervisor is taken into account.
fn tentative(cpu: &impl Cpu) -> (Kind, Reason) {
    let leaf0 = cpu.cpuid(0, 0);
    match &vendor(cpu) {
        b"AuthenticAMD" if has_long_mode(cpu) => (Kind::Amd64, Reason::Amd),
        b"AuthenticAMD" => (Kind::Default, Reason::NoLongMode),
        b"GenuineIntel" if leaf0.eax < 0xA => (Kind::Default, Reason::NoLeafA),
        b"GenuineIntel" => {
            let eax = LeafAEax::of(cpu);
            if eax.version() == 0 {
                (Kind::Default, Reason::VersionZero)
            } else if eax.ebx_length() == 0 {
                (Kind::Default, Reason::NoEvents)
            } else if LeafAEbx::of(cpu).no_core_cycles() {
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
fn before_leaf_a(cpu: &impl Cpu) -> Option<(Kind, Reason)> {
    let leaf = cpu.cpuid(1, 0);
    let signature = Signature::from_bits(leaf.eax);
    if Hypervisor::of(cpu) != Hypervisor::None {
        return None;
    }
    match (signature.family(), signature.model()) {
        _ if signature.extended_family() != 0 => None,
        (0xF, _) => Some((Kind::NetBurst, Reason::NetBurst)),
        _ if signature.extended_model() != 0 => None,
        // Pentium Pro, II, III, Pentium M. Newer models have the leaf, unless a hypervisor hides it.
        (6, 1 | 3 | 5..=0xB | 0xD) => Some((Kind::P6, Reason::P6)),
        // Quark is in family 5 too, but has no such counters.
        (5, 1..=8) if leaf.edx & MSR_AND_TSC == MSR_AND_TSC => Some((Kind::Pentium, Reason::Pentium)),
        _ => None,
    }
}

/// CPUID.1:EDX\[5\], RDMSR and WRMSR, and EDX\[4\], the time-stamp counter, which was introduced with the Pentium's
/// counters.
const MSR_AND_TSC: u32 = 1 << 5 | 1 << 4;

/// CPUID.1:EAX (SDM Vol. 2A, CPUID, "Version Information Returned by CPUID in EAX").
#[bitfield(u32)]
struct Signature {
    /// Stepping.
    #[bits(4)]
    stepping: u8,
    /// Model.
    #[bits(4)]
    model: u8,
    /// Family.
    #[bits(4)]
    family: u8,
    /// Type, and reserved.
    #[bits(4)]
    __: u8,
    /// Extended model: of families 6 and 15.
    #[bits(4)]
    extended_model: u8,
    /// Extended family: of family 15.
    extended_family: u8,
    /// Reserved.
    #[bits(4)]
    __: u8,
}

/// Returns the vendor string of leaf 0: EBX, EDX, ECX.
#[must_use]
pub fn vendor(cpu: &impl Cpu) -> [u8; 12] {
    let leaf = cpu.cpuid(0, 0);
    let mut text = [0; 12];
    for (part, register) in text.chunks_exact_mut(4).zip([leaf.ebx, leaf.edx, leaf.ecx]) {
        part.copy_from_slice(&register.to_le_bytes());
    }
    text
}

/// Returns CPUID.80000001H:EDX\[29\], if that leaf exists (APM Vol. 3 E.4.2, "LM").
fn has_long_mode(cpu: &impl Cpu) -> bool {
    const LONG_MODE: u32 = 1 << 29;
    cpu.cpuid(0x8000_0000, 0).eax >= 0x8000_0001 && cpu.cpuid(0x8000_0001, 0).edx & LONG_MODE != 0
}

/// Returns whether CPUID enumerates the registers of an interface. Nothing enumerates AMD's four legacy counters: every
/// processor with long mode has them, but a hypervisor may lack them, and then the first access crashes the machine. A
/// hypervisor that provides them also sets PerfCtrExtCore (CPUID.80000001H:ECX\[23\]); Microsoft's reports them in
/// its own leaf.
#[must_use]
pub fn enumerated(cpu: &impl Cpu, kind: Kind) -> bool {
    const PERF_CTR_EXT_CORE: u32 = 1 << 23;
    kind != Kind::Amd64
        || Hypervisor::of(cpu) != Hypervisor::Other
        || cpu.cpuid(0x8000_0001, 0).ecx & PERF_CTR_EXT_CORE != 0
}

/// Returns whether a Microsoft-compatible hypervisor, as HviIsHypervisorMicrosoftCompatible detects it, provides no
/// performance monitors (TLFS, "Hypervisor CPUID Leaf Range").
fn masked_by_hypervisor(cpu: &impl Cpu) -> bool {
    const PERFORMANCE_MONITORS_AVAILABLE: u32 = 1 << 2;
    Hypervisor::of(cpu).is_microsoft_compatible() && cpu.cpuid(0x4000_0003, 0).edx & PERFORMANCE_MONITORS_AVAILABLE == 0
}
