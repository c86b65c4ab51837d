//! The processes, their modules, and those of the kernel.

#![expect(unsafe_code, reason = "calls to Windows")]

use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::path::Path;
use std::ptr::{null_mut, without_provenance};
use std::time::{Duration, SystemTime};

use windows_sys::Wdk::System::SystemInformation::{
    NtQuerySystemInformation, SYSTEM_INFORMATION_CLASS, SystemProcessInformation,
};
use windows_sys::Wdk::System::Threading::{
    NtQueryInformationProcess, PROCESSINFOCLASS, ProcessBasicInformation, ProcessWow64Information,
};
use windows_sys::Win32::Foundation::{NTSTATUS, RtlNtStatusToDosError, STATUS_INFO_LENGTH_MISMATCH};
use windows_sys::Win32::System::Diagnostics::Debug::ReadProcessMemory;
use windows_sys::Win32::System::Performance::{QueryPerformanceCounter, QueryPerformanceFrequency};
use windows_sys::Win32::System::Threading::{OpenProcess, PROCESS_QUERY_INFORMATION, PROCESS_VM_READ};

use super::convert::succeeded;
use crate::processes::loader_list;
use crate::processes::nt_modules;
use crate::processes::nt_processes;
use crate::processes::nt_processes::ClockReading;
use crate::{LoadedModule, RunningProcess};

/// Number of words in a PROCESS_BASIC_INFORMATION; the second is the address of the PEB.
const BASIC_INFORMATION: usize = 6;

/// SystemModuleInformation (phnt, ntexapi.h), which windows-sys does not define.
const SYSTEM_MODULE_INFORMATION: SYSTEM_INFORMATION_CLASS = 11;

/// Size of the first list in bytes, for about 880 modules of the kernel.
const FIRST_BYTES: usize = 256 << 10;

/// Time from 1601 to 1970, from which Windows and Rust count: 369 years, of which 89 had a leap day.
const EPOCHS: Duration = Duration::from_hours(24 * (369 * 365 + 89));

/// Number of requests for a list that grows between two requests.
const ATTEMPTS: usize = 4;

/// Returns the 32-bit and 64-bit modules of a process.
pub fn of_process(id: u32) -> io::Result<Vec<LoadedModule>> {
    // SAFETY: the function has no preconditions.
    let handle = unsafe { OpenProcess(PROCESS_QUERY_INFORMATION | PROCESS_VM_READ, 0, id) };
    if handle.is_null() {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, so this is a valid handle, and nothing else owns it.
    let process = unsafe { OwnedHandle::from_raw_handle(handle) };
    let mut modules = Vec::new();
    let mut basic = [0_u64; BASIC_INFORMATION];
    query(&process, ProcessBasicInformation, &mut basic)?;
    let [_, wide, ..] = basic;
    let mut narrow = [0_u64];
    query(&process, ProcessWow64Information, &mut narrow)?;
    for (peb, layout) in [(wide, loader_list::WIDE), (narrow[0], loader_list::NARROW)] {
        // The System process has no PEB, and 64-bit processes no narrow one.
        if peb != 0 {
            loader_list::append(&mut modules, layout, peb, |address, buffer| read(&process, address, buffer))?;
        }
    }
    Ok(modules)
}

fn query(process: &OwnedHandle, class: PROCESSINFOCLASS, answer: &mut [u64]) -> io::Result<()> {
    let size = length(size_of_val(answer))?;
    // SAFETY: the process handle has the required access, and the buffer has the given size and outlives the call.
    let status = unsafe {
        NtQueryInformationProcess(process.as_raw_handle(), class, answer.as_mut_ptr().cast(), size, null_mut())
    };
    checked(status)
}

/// Fills the buffer from the memory of a process.
fn read(process: &OwnedHandle, address: u64, buffer: &mut [u8]) -> io::Result<()> {
    let address = without_provenance(usize::try_from(address).unwrap_or_default());
    // SAFETY: the process handle has the required access, and the buffer has the given size and outlives the call. An
    // address that the process does not have is reported as an error, and so is a partial copy.
    succeeded(unsafe {
        ReadProcessMemory(process.as_raw_handle(), address, buffer.as_mut_ptr().cast(), buffer.len(), null_mut())
    })
}

/// Returns the modules of the kernel, or an error if Windows hides their addresses; `windows` is the directory of
/// Windows.
pub fn of_kernel(windows: &Path) -> io::Result<Vec<LoadedModule>> {
    nt_modules::parse(&system_list(SYSTEM_MODULE_INFORMATION)?, &windows.to_string_lossy())
}

/// Returns every process, including those that cannot be opened.
pub fn processes() -> io::Result<Vec<RunningProcess>> {
    let list = system_list(SystemProcessInformation)?;
    Ok(nt_processes::parse(&list, list.as_ptr().addr() as u64, clocks()))
}

/// Returns the process and the ID of each thread.
pub fn threads() -> io::Result<Vec<(u32, u32)>> {
    Ok(nt_processes::threads(&system_list(SystemProcessInformation)?).collect())
}

/// Reads the clock of samples, then system time.
fn clocks() -> Option<ClockReading> {
    let [mut counter, mut frequency] = [0, 0];
    // SAFETY: the pointer is to a variable that outlives the call.
    let has_counter = unsafe { QueryPerformanceCounter(&raw mut counter) } != 0;
    // SAFETY: as above.
    let has_frequency = unsafe { QueryPerformanceFrequency(&raw mut frequency) } != 0;
    if !(has_counter && has_frequency) {
        return None;
    }
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?;
    let system_time = since_1970.saturating_add(EPOCHS).as_nanos() / 100;
    Some(ClockReading {
        counter: counter.try_into().ok()?,
        frequency: frequency.try_into().ok()?,
        system_time: system_time.try_into().ok()?,
    })
}

fn system_list(class: SYSTEM_INFORMATION_CLASS) -> io::Result<Vec<u8>> {
    let mut room = FIRST_BYTES;
    for _ in 0..ATTEMPTS {
        let mut list = vec![0_u8; room];
        let mut needed = 0;
        let bytes = length(room)?;
        // SAFETY: the list has the given size, and it and `needed` outlive the call.
        let status = unsafe { NtQuerySystemInformation(class, list.as_mut_ptr().cast(), bytes, &raw mut needed) };
        if status != STATUS_INFO_LENGTH_MISMATCH {
            checked(status)?;
            return Ok(list);
        }
        room = room.max(needed as usize) + FIRST_BYTES;
    }
    Err(io::ErrorKind::ResourceBusy.into())
}

/// Converts an NTSTATUS to a result with a Win32 error.
pub fn checked(status: NTSTATUS) -> io::Result<()> {
    if status >= 0 {
        return Ok(());
    }
    // SAFETY: the function has no preconditions.
    let error = unsafe { RtlNtStatusToDosError(status) };
    Err(io::Error::from_raw_os_error(error.cast_signed()))
}

fn length(length: usize) -> io::Result<u32> {
    u32::try_from(length).map_err(|_| io::ErrorKind::InvalidInput.into())
}
