//! The programs that this one starts, and its end.

#![expect(unsafe_code, reason = "calls to Windows")]

use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, IntoRawHandle, OwnedHandle};
use std::process;
use std::ptr;

use windows_sys::Win32::Foundation::{HANDLE, INVALID_HANDLE_VALUE, WAIT_TIMEOUT};
use windows_sys::Win32::System::IO::{CreateIoCompletionPort, GetQueuedCompletionStatus};
use windows_sys::Win32::System::JobObjects::{
    AssignProcessToJobObject, CreateJobObjectW, JOB_OBJECT_LIMIT, JOB_OBJECT_LIMIT_BREAKAWAY_OK,
    JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE, JOBOBJECT_ASSOCIATE_COMPLETION_PORT, JOBOBJECT_BASIC_ACCOUNTING_INFORMATION,
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION, JOBOBJECTINFOCLASS, JobObjectAssociateCompletionPortInformation,
    JobObjectBasicAccountingInformation, JobObjectExtendedLimitInformation, QueryInformationJobObject,
    SetInformationJobObject,
};
use windows_sys::Win32::System::Threading::GetCurrentProcess;

use super::convert::succeeded;
use super::tasks;
use crate::{OpenTask, ProcessChange, StartedProcesses, Task};

/// `JOB_OBJECT_MSG_NEW_PROCESS` of winnt.h.
const NEW_PROCESS: u32 = 6;

/// `JOB_OBJECT_MSG_EXIT_PROCESS` and `JOB_OBJECT_MSG_ABNORMAL_EXIT_PROCESS`.
const EXIT_PROCESS: [u32; 2] = [7, 8];

/// Lets the programs that this one starts from now on end with it, in whatever way it ends: they inherit its job, whose
/// only handle Windows closes at the end of this process.
pub fn end_children_with_this() -> io::Result<()> {
    let job = create(JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE)?;
    enter(&job)?;
    let _ = job.into_raw_handle(); // open until the end
    Ok(())
}

/// The job of this process, which the processes that it starts inherit.
struct Job {
    job: OwnedHandle,
    /// Receives the messages of the job.
    port: OwnedHandle,
}

/// Puts this process into a job, and returns the processes of the job except this one.
///
/// Processes may leave the job when they are created, as without it: they would fail otherwise.
pub fn started_processes() -> io::Result<impl StartedProcesses> {
    let job = create(JOB_OBJECT_LIMIT_BREAKAWAY_OK)?;
    // SAFETY: no file is associated, so the other handle may be null.
    let port = unsafe { CreateIoCompletionPort(INVALID_HANDLE_VALUE, ptr::null_mut(), 0, 1) };
    let port = owned(port)?;
    let association =
        JOBOBJECT_ASSOCIATE_COMPLETION_PORT { CompletionKey: ptr::null_mut(), CompletionPort: port.as_raw_handle() };
    set(&job, JobObjectAssociateCompletionPortInformation, &association)?;
    enter(&job)?;
    Ok(Job { job, port })
}

impl StartedProcesses for Job {
    fn next_change(&mut self) -> io::Result<Option<ProcessChange>> {
        loop {
            let (mut message, mut key, mut overlapped) = (0, 0, ptr::null_mut());
            // SAFETY: the port is open, and each pointer is to a variable of its type.
            let received = unsafe {
                GetQueuedCompletionStatus(
                    self.port.as_raw_handle(),
                    &raw mut message,
                    &raw mut key,
                    &raw mut overlapped,
                    0,
                )
            };
            if let Err(error) = succeeded(received) {
                let is_empty = error.raw_os_error() == Some(WAIT_TIMEOUT.cast_signed());
                return if is_empty { Ok(None) } else { Err(error) };
            }
            // The message has the ID of the process instead of a pointer.
            let id = u32::try_from(overlapped.addr()).unwrap_or_default();
            if id == process::id() {
                continue;
            }
            if message == NEW_PROCESS {
                let open = tasks::open(Task::Process(id)).ok();
                return Ok(Some(ProcessChange::Started(id, open.map(|open| Box::new(open) as Box<dyn OpenTask>))));
            }
            if EXIT_PROCESS.contains(&message) {
                return Ok(Some(ProcessChange::Ended(id)));
            }
        }
    }

    fn total(&self) -> io::Result<u64> {
        let mut accounting = JOBOBJECT_BASIC_ACCOUNTING_INFORMATION::default();
        let size = u32::try_from(size_of_val(&accounting)).unwrap_or_default();
        // SAFETY: the handle is open, and the structure is that of the class, with its size.
        let queried = unsafe {
            QueryInformationJobObject(
                self.job.as_raw_handle(),
                JobObjectBasicAccountingInformation,
                (&raw mut accounting).cast(),
                size,
                ptr::null_mut(),
            )
        };
        succeeded(queried)?;
        Ok(u64::from(accounting.TotalProcesses).saturating_sub(1)) // without this one
    }
}

/// Creates a job with limits.
fn create(flags: JOB_OBJECT_LIMIT) -> io::Result<OwnedHandle> {
    // SAFETY: both pointers may be null.
    let job = owned(unsafe { CreateJobObjectW(ptr::null(), ptr::null()) })?;
    let mut limits = JOBOBJECT_EXTENDED_LIMIT_INFORMATION::default();
    limits.BasicLimitInformation.LimitFlags = flags;
    set(&job, JobObjectExtendedLimitInformation, &limits)?;
    Ok(job)
}

/// Sets information of a job. `T` is the structure of the class.
fn set<T>(job: &OwnedHandle, class: JOBOBJECTINFOCLASS, information: &T) -> io::Result<()> {
    let size = u32::try_from(size_of::<T>()).unwrap_or_default();
    // SAFETY: the handle is open, and the pointer is to a structure with this size.
    succeeded(unsafe { SetInformationJobObject(job.as_raw_handle(), class, ptr::from_ref(information).cast(), size) })
}

/// Puts this process into a job.
fn enter(job: &OwnedHandle) -> io::Result<()> {
    // SAFETY: the call only returns a constant.
    let this = unsafe { GetCurrentProcess() };
    // SAFETY: the job is open, and the other handle stands for this process.
    succeeded(unsafe { AssignProcessToJobObject(job.as_raw_handle(), this) })
}

/// Takes the handle that a function returned.
fn owned(handle: HANDLE) -> io::Result<OwnedHandle> {
    if handle.is_null() {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, so this is a valid handle, and nothing else owns it.
    Ok(unsafe { OwnedHandle::from_raw_handle(handle) })
}
