//! The programs that this one starts, and its end.

#![expect(unsafe_code, reason = "calls to Windows")]

use std::io;
use std::ptr;

use windows_sys::Win32::System::JobObjects::{
    AssignProcessToJobObject, CreateJobObjectW, JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE,
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION, JobObjectExtendedLimitInformation, SetInformationJobObject,
};
use windows_sys::Win32::System::Threading::GetCurrentProcess;

use super::convert::succeeded;

/// Lets the programs that this one starts from now on end with it, in whatever way it ends: they inherit its job, whose
/// only handle Windows closes at the end of this process.
pub fn end_children_with_this() -> io::Result<()> {
    // SAFETY: both pointers may be null.
    let job = unsafe { CreateJobObjectW(ptr::null(), ptr::null()) };
    succeeded(i32::from(!job.is_null()))?;
    let mut limits = JOBOBJECT_EXTENDED_LIMIT_INFORMATION::default();
    limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
    let size = u32::try_from(size_of_val(&limits)).unwrap_or_default();
    // SAFETY: the handle is open, and the structure is that of the class, with its size.
    let set =
        unsafe { SetInformationJobObject(job, JobObjectExtendedLimitInformation, (&raw const limits).cast(), size) };
    succeeded(set)?;
    // SAFETY: the call only returns a constant.
    let this = unsafe { GetCurrentProcess() };
    // SAFETY: the job is open, and the other handle stands for this process.
    succeeded(unsafe { AssignProcessToJobObject(job, this) })
}
