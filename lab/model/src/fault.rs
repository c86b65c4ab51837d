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

/// Returns an error if `value` has a bit of `reserved`: writing a reserved bit faults (SDM Vol. 2, WRMSR; APM Vol. 3,
/// WRMSR).
pub(crate) fn refuse_reserved(value: u64, reserved: u64) -> Result<(), GeneralProtection> {
    if value & reserved == 0 { Ok(()) } else { Err(GeneralProtection) }
}
