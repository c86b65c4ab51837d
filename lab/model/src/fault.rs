//! The fault of a refused access.

use std::{error::Error, fmt};

/// #GP(0): the access that real hardware refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GeneralProtection;

impl fmt::Display for GeneralProtection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("#GP(0)")
    }
}

impl Error for GeneralProtection {}

/// Ok when `value` has no bit of `reserved`: writing a reserved bit faults (SDM Vol. 2, WRMSR; APM Vol. 3, WRMSR).
pub(crate) fn refuse_reserved(value: u64, reserved: u64) -> Result<(), GeneralProtection> {
    if value & reserved == 0 { Ok(()) } else { Err(GeneralProtection) }
}
