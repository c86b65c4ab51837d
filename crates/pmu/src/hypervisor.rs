//! Detection of a hypervisor by CPUID (TLFS, "Hypervisor Discovery").

use x86_defs::cpuid::{HV1, Leaf1Ecx, Leaf40000003Ebx, VENDOR_KVM, leaf, vendor_text};

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
    /// KVM with Hyper-V enlightenments: Microsoft's interface, and KVM's own behind it. This system is a guest. KVM
    /// never reports in Microsoft's leaves whether there are counters, so that the HAL takes Default; the other leaves
    /// do.
    Kvm = 4,
}

impl Hypervisor {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; 5] = [Self::None, Self::Other, Self::Guest, Self::Root, Self::Kvm];

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
        } else if Leaf40000003Ebx::from_bits(cpu.cpuid(leaf::HYPERVISOR_FEATURES, 0).ebx).cpu_management() {
            Self::Root
        } else if has_kvm_leaves(cpu) {
            Self::Kvm
        } else {
            Self::Guest
        }
    }

    /// Returns whether the hypervisor is Microsoft-compatible, as HviIsHypervisorMicrosoftCompatible does.
    #[must_use]
    pub const fn is_microsoft_compatible(self) -> bool {
        matches!(self, Self::Guest | Self::Root | Self::Kvm)
    }

    /// Returns the kind with this number.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u32 == number)
    }
}

/// Returns whether KVM's leaves follow those of Microsoft's interface.
fn has_kvm_leaves(cpu: &impl Cpuid) -> bool {
    let second = leaf::HYPERVISOR_VENDOR + leaf::HYPERVISOR_STRIDE;
    let mut first_leaves = (second..=leaf::HYPERVISOR_LAST).step_by(leaf::HYPERVISOR_STRIDE as usize);
    first_leaves.any(|first| {
        let registers = cpu.cpuid(first, 0);
        vendor_text([registers.ebx, registers.ecx, registers.edx]) == VENDOR_KVM
    })
}
