//! Privileges of a caller.

use wdk_sys::ntddk::SeSinglePrivilegeCheck;
use wdk_sys::{KPROCESSOR_MODE, LUID};

/// SE_SYSTEM_PROFILE_PRIVILEGE (wdm.h).
const SYSTEM_PROFILE: LUID = LUID { LowPart: 11, HighPart: 0 };

/// UserMode (wdm.h). Whatever mode the caller comes from, its token is asked: in kernel mode every answer were yes.
const USER_MODE: KPROCESSOR_MODE = 1;

/// Whether the current thread holds SeSystemProfilePrivilege and has it enabled. PASSIVE_LEVEL.
pub fn may_profile() -> bool {
    // SAFETY: takes its arguments by value, and the dispatch routines of the I/O manager run at PASSIVE_LEVEL
    unsafe { SeSinglePrivilegeCheck(SYSTEM_PROFILE, USER_MODE) != 0 }
}
