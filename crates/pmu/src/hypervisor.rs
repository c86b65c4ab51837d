//! Detection of a hypervisor by CPUID (TLFS, "Hypervisor Discovery").

use x86_defs::cpuid::{HV1, Leaf1Ecx, Leaf40000003Ebx, leaf};

use crate::cpu::Cpuid;

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
    pub fn of(cpu: &impl Cpuid) -> Self {
        if !Leaf1Ecx::from_bits(cpu.cpuid(leaf::FEATURES, 0).ecx).hypervisor() {
            Self::None
        } else if cpu.cpuid(leaf::HYPERVISOR_INTERFACE, 0).eax != HV1 {
            Self::Other
        } else if !Leaf40000003Ebx::from_bits(cpu.cpuid(leaf::HYPERVISOR_FEATURES, 0).ebx).cpu_management() {
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
