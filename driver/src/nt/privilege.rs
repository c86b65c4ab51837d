//! Privileges of a caller.

use wdk_sys::ntddk::SeSinglePrivilegeCheck;
use wdk_sys::{KPROCESSOR_MODE, LUID};

/// SE_SYSTEM_PROFILE_PRIVILEGE (wdm.h).
const SYSTEM_PROFILE: LUID = LUID { LowPart: 11, HighPart: 0 };

/// UserMode (wdm.h). Passed for every caller, so that the token is always checked: with KernelMode the check always
/// succeeds.
const USER_MODE: KPROCESSOR_MODE = 1;

/// Returns whether the current thread has SeSystemProfilePrivilege enabled.
///
/// # IRQL
/// PASSIVE_LEVEL.
pub fn may_profile() -> bool {
    // SAFETY: the arguments are values, and the I/O manager calls dispatch routines at PASSIVE_LEVEL
    unsafe { SeSinglePrivilegeCheck(SYSTEM_PROFILE, USER_MODE) != 0 }
}
