//! The fault that a refused access raises.

use std::{error::Error, fmt};

///#GP(0), which real hardware raises for the same access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GeneralProtection;

impl fmt::Display for GeneralProtection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("#GP(0)")
    }
}

impl Error for GeneralProtection {}

/// An access that faults although CPUID enumerates its register or counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultingAccess {
    /// RDMSR of this register.
    Rdmsr(u32),
    /// WRMSR of this register.
    Wrmsr(u32),
    /// RDPMC with this index.
    Rdpmc(u32),
}

impl FaultingAccess {
    /// Returns the accesses that fault on a processor without this register.
    #[must_use]
    pub fn without(msr: u32) -> [Self; 2] {
        [Self::Rdmsr(msr), Self::Wrmsr(msr)]
    }
}

/// What a hypervisor makes of a register that CPUID enumerates.
///
/// Hypervisors check what a guest writes by their own tables of bits (Linux, arch/x86/kvm/pmu.c,
/// `global_status_rsvd`; intel/pcm, pull request 142), drop bits that they do not support (Linux,
/// arch/x86/kvm/vmx/vmx.c, `vmx_set_msr` for `IA32_DEBUGCTL`), or let a register read as zero and ignore writes
/// (VMware's virtual PMU).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quirk {
    /// WRMSR raises #GP if the value has one of these bits.
    Faults {
        /// Address of the register.
        register: u32,
        /// The bits.
        bits: u64,
    },
    /// WRMSR raises #GP if the value is zero.
    FaultsAtZero {
        /// Address of the register.
        register: u32,
    },
    /// WRMSR ignores these bits of the value, so that they are written as zero.
    Drops {
        /// Address of the register.
        register: u32,
        /// The bits.
        bits: u64,
    },
    /// WRMSR writes these bits as one: they stick.
    Sets {
        /// Address of the register.
        register: u32,
        /// The bits.
        bits: u64,
    },
    /// The register reads as zero and ignores writes.
    Ignores {
        /// Address of the register.
        register: u32,
    },
}

impl Quirk {
    /// Returns the value that reaches a register, or `None` if none does.
    ///
    /// # Errors
    /// The write faults.
    pub(crate) fn filter(self, msr: u32, value: u64) -> Result<Option<u64>, GeneralProtection> {
        match self {
            Self::Faults { register, bits } if register == msr && value & bits != 0 => Err(GeneralProtection),
            Self::FaultsAtZero { register } if register == msr && value == 0 => Err(GeneralProtection),
            Self::Drops { register, bits } if register == msr => Ok(Some(value & !bits)),
            Self::Sets { register, bits } if register == msr => Ok(Some(value | bits)),
            Self::Ignores { register } if register == msr => Ok(None),
            _ => Ok(Some(value)),
        }
    }

    /// Returns whether the register reads as zero.
    pub(crate) fn hides(self, msr: u32) -> bool {
        matches!(self, Self::Ignores { register } if register == msr)
    }
}

/// Returns an error if `value` has a bit of `reserved`: writing a reserved bit faults (SDM Vol. 2, WRMSR; APM Vol. 3,
/// WRMSR).
pub(crate) fn refuse_reserved(value: u64, reserved: u64) -> Result<(), GeneralProtection> {
    if value & reserved == 0 { Ok(()) } else { Err(GeneralProtection) }
}
