//! Detection of a hypervisor by CPUID (TLFS, "Hypervisor Discovery").

use crate::cpu::Cpu;

/// Kind of hypervisor. The protocol uses these numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Hypervisor {
    /// No hypervisor, or one that hides.
    None = 0,
    /// A hypervisor that is not compatible with Microsoft's.
    Other = 1,
    /// Microsoft's or a compatible hypervisor; this system is a guest.
    Guest = 2,
    /// Microsoft's hypervisor; this system is the root partition, with the Hyper-V role or virtualization-based
    /// security.
    Root = 3,
}

impl Hypervisor {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::None, Self::Other, Self::Guest, Self::Root];

    /// Detects the hypervisor of the current processor.
    ///
    /// # IRQL
    /// Any.
    #[must_use]
    pub fn of(cpu: &impl Cpu) -> Self {
        /// CPUID.1:ECX\[31\].
        const PRESENT: u32 = 1 << 31;
        /// Leaf 0x40000003, EBX: CpuManagement, a privilege of the root partition.
        const CPU_MANAGEMENT: u32 = 1 << 12;
        if cpu.cpuid(1, 0).ecx & PRESENT == 0 {
            Self::None
        } else if cpu.cpuid(0x4000_0001, 0).eax != u32::from_le_bytes(*b"Hv#1") {
            Self::Other
        } else if cpu.cpuid(0x4000_0003, 0).ebx & CPU_MANAGEMENT == 0 {
            Self::Guest
        } else {
            Self::Root
        }
    }

    /// Returns whether the hypervisor is Microsoft-compatible, as HviIsHypervisorMicrosoftCompatible does.
    #[must_use]
    pub const fn is_microsoft_compatible(self) -> bool {
        matches!(self, Self::Guest | Self::Root)
    }

    /// Returns the kind with this number.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u32 == number)
    }
}
