//! Privileges of a caller.

use wdk_sys::ntddk::SeSinglePrivilegeCheck;
use wdk_sys::{KPROCESSOR_MODE, LUID};

/// SE_SYSTEM_PROFILE_PRIVILEGE (wdm.h).
const SYSTEM_PROFILE: LUID = LUID { LowPart: 11, HighPart: 0 };

/// Whether the current thread, calling from `mode`, holds SeSystemProfilePrivilege and has it enabled.
/// PASSIVE_LEVEL. Callers in kernel mode hold every privilege.
pub fn may_profile(mode: KPROCESSOR_MODE) -> bool {
    // SAFETY: takes its arguments by value, and the dispatch routines of the I/O manager run at PASSIVE_LEVEL
    unsafe { SeSinglePrivilegeCheck(SYSTEM_PROFILE, mode) != 0 }
}
