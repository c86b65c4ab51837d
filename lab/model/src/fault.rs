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

/// Returns an error if `value` has a bit of `reserved`: writing a reserved bit faults (SDM Vol. 2, WRMSR; APM Vol. 3,
/// WRMSR).
pub(crate) fn refuse_reserved(value: u64, reserved: u64) -> Result<(), GeneralProtection> {
    if value & reserved == 0 { Ok(()) } else { Err(GeneralProtection) }
}
