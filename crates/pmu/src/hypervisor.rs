//! What stands between the system and the processor, by CPUID alone (TLFS, "Hypervisor Discovery").

use x86_defs::cpuid::{HV1, Leaf1Ecx, Leaf40000003Ebx, leaf};

use crate::cpu::Cpuid;

/// The kind. The numbers travel to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Hypervisor {
    /// Nothing that shows itself.
    None = 0,
    /// One that is not compatible with Microsoft's.
    Other = 1,
    /// Microsoft's, or a compatible one: the system is a guest.
    Guest = 2,
    /// Microsoft's, below the very system that it belongs to: the Hyper-V role, or virtualization-based security.
    Root = 3,
}

impl Hypervisor {
    /// Every kind, in the order of its number.
    pub const ALL: [Self; 4] = [Self::None, Self::Other, Self::Guest, Self::Root];

    /// Of the current processor. Any IRQL.
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

    /// As HviIsHypervisorMicrosoftCompatible has it.
    #[must_use]
    pub const fn is_microsoft_compatible(self) -> bool {
        matches!(self, Self::Guest | Self::Root)
    }

    /// The kind with this number.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u32 == number)
    }
}
