//! The choice of a profile interface, from the boot processor alone (seed 001).
//!
//! The rules are those of the 64-bit HAL in the original Windows 10; the two lists that the seed lost
//! stand here as [`Reason`]s.

use core::fmt;

use crate::cpu::Cpu;
use crate::hypervisor::Hypervisor;
use crate::interface::Kind;
use crate::interface::emon::{LeafAEax, LeafAEbx};

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
}

impl Reason {
    /// Every reason, in the order of its number.
    pub const ALL: [Self; 10] = [
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
    pub fn of_boot_processor(cpu: &impl Cpu) -> Self {
        let (kind, reason) = tentative(cpu);
        if kind != Kind::Default && masked_by_hypervisor(cpu) {
            return Self::both(Kind::Default, Reason::MaskedByHypervisor);
        }
        // Nothing could ever be started on it. The HAL has no such rule.
        if kind == Kind::Emon && LeafAEax::of(cpu).counters() == 0 {
            return Self { windows10: Kind::Emon, interface: Kind::Default, reason: Reason::ZeroCounters };
        }
        Self::both(kind, reason)
    }

    const fn both(kind: Kind, reason: Reason) -> Self {
        Self { windows10: kind, interface: kind, reason }
    }
}

/// What the vendor and the leaves indicate, save for what a hypervisor may have to say.
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

/// Vendor string of leaf 0: EBX, EDX, ECX.
#[must_use]
pub fn vendor(cpu: &impl Cpu) -> [u8; 12] {
    let leaf = cpu.cpuid(0, 0);
    let mut text = [0; 12];
    for (part, register) in text.chunks_exact_mut(4).zip([leaf.ebx, leaf.edx, leaf.ecx]) {
        part.copy_from_slice(&register.to_le_bytes());
    }
    text
}

/// CPUID.80000001H:EDX\[29\], where that leaf exists (APM Vol. 3 E.4.2, "LM").
fn has_long_mode(cpu: &impl Cpu) -> bool {
    const LONG_MODE: u32 = 1 << 29;
    cpu.cpuid(0x8000_0000, 0).eax >= 0x8000_0001 && cpu.cpuid(0x8000_0001, 0).edx & LONG_MODE != 0
}

/// Whether CPUID promises that the registers of an interface exist. Nothing does for AMD's four counters: every
/// processor with long mode has them, but a hypervisor need not, and then the first access stops the machine. One that
/// lends them out shows PerfCtrExtCore (CPUID.80000001H:ECX\[23\]) as well; Microsoft's says so itself.
#[must_use]
pub fn promised(cpu: &impl Cpu, kind: Kind) -> bool {
    const PERF_CTR_EXT_CORE: u32 = 1 << 23;
    kind != Kind::Amd64
        || Hypervisor::of(cpu) != Hypervisor::Other
        || cpu.cpuid(0x8000_0001, 0).ecx & PERF_CTR_EXT_CORE != 0
}

/// Whether a Microsoft-compatible hypervisor is present, as HviIsHypervisorMicrosoftCompatible has it, and
/// shows no performance monitors (TLFS, "Hypervisor CPUID Leaf Range").
fn masked_by_hypervisor(cpu: &impl Cpu) -> bool {
    const PERFORMANCE_MONITORS_AVAILABLE: u32 = 1 << 2;
    Hypervisor::of(cpu).is_microsoft_compatible() && cpu.cpuid(0x4000_0003, 0).edx & PERFORMANCE_MONITORS_AVAILABLE == 0
}
