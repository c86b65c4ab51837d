//! The modules of a process and of the kernel.

#![expect(unsafe_code, reason = "calls to Windows")]

use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::path::{Path, PathBuf};
use std::ptr::null_mut;

use windows_sys::Wdk::System::SystemInformation::{NtQuerySystemInformation, SYSTEM_INFORMATION_CLASS};
use windows_sys::Win32::Foundation::{HMODULE, RtlNtStatusToDosError, STATUS_INFO_LENGTH_MISMATCH};
use windows_sys::Win32::System::ProcessStatus::{
    K32EnumProcessModulesEx, K32GetModuleFileNameExW, K32GetModuleInformation, LIST_MODULES_ALL, MODULEINFO,
};
use windows_sys::Win32::System::Threading::{OpenProcess, PROCESS_QUERY_INFORMATION, PROCESS_VM_READ};

use super::convert::{narrow, succeeded};
use crate::nt_modules;
use crate::system::LoadedModule;

/// SystemModuleInformation (phnt, ntexapi.h), which windows-sys does not define.
const SYSTEM_MODULE_INFORMATION: SYSTEM_INFORMATION_CLASS = 11;

/// Capacity of the first list of a process, in modules.
const FIRST_ROOM: usize = 256;

/// Maximum length of a path in UTF-16 units.
const LONGEST_PATH: usize = 0x8000;

/// Size of the first list of the kernel in bytes, for about 880 modules.
const FIRST_BYTES: usize = 256 << 10;

/// Number of requests for a list that grows between two requests.
const ATTEMPTS: usize = 4;

/// Returns the 32-bit and 64-bit modules of a process. Modules that are unloaded meanwhile are omitted.
pub fn of_process(id: u32) -> io::Result<Vec<LoadedModule>> {
    // SAFETY: the function has no preconditions.
    let handle = unsafe { OpenProcess(PROCESS_QUERY_INFORMATION | PROCESS_VM_READ, 0, id) };
    if handle.is_null() {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, so this is a valid handle, and nothing else owns it.
    let process = unsafe { OwnedHandle::from_raw_handle(handle) };
    let mut path = vec![0; LONGEST_PATH];
    let modules = handles(&process)?;
    Ok(modules.into_iter().filter_map(|module| describe(&process, module, &mut path).ok()).collect())
}

fn handles(process: &OwnedHandle) -> io::Result<Vec<HMODULE>> {
    let mut room = FIRST_ROOM;
    for _ in 0..ATTEMPTS {
        let mut modules: Vec<HMODULE> = vec![null_mut(); room];
        let mut needed = 0;
        let bytes = length(room * size_of::<HMODULE>())?;
        // SAFETY: the process handle has the required access, the list has the given size, and it and `needed` outlive
        // the call.
        succeeded(unsafe {
            K32EnumProcessModulesEx(
                process.as_raw_handle(),
                modules.as_mut_ptr(),
                bytes,
                &raw mut needed,
                LIST_MODULES_ALL,
            )
        })?;
        let count = needed as usize / size_of::<HMODULE>();
        if count <= room {
            modules.truncate(count);
            return Ok(modules);
        }
        room = count + FIRST_ROOM;
    }
    Err(io::ErrorKind::ResourceBusy.into())
}

fn describe(process: &OwnedHandle, module: HMODULE, path: &mut [u16]) -> io::Result<LoadedModule> {
    let mut info = MODULEINFO::default();
    let size = length(size_of::<MODULEINFO>())?;
    // SAFETY: the process handle has the required access, and `info` has the given size and outlives the call. An
    // unloaded module is reported as an error.
    succeeded(unsafe { K32GetModuleInformation(process.as_raw_handle(), module, &raw mut info, size) })?;
    let room = length(path.len())?;
    // SAFETY: the process handle has the required access, and the path has the given number of elements and outlives
    // the call.
    let length = unsafe { K32GetModuleFileNameExW(process.as_raw_handle(), module, path.as_mut_ptr(), room) };
    if length == 0 {
        return Err(io::Error::last_os_error());
    }
    let path = PathBuf::from(narrow(path.get(..length as usize).unwrap_or_default()));
    Ok(LoadedModule { base: info.lpBaseOfDll.addr() as u64, size: info.SizeOfImage.into(), path })
}

/// Returns the modules of the kernel; `windows` is the directory of Windows.
pub fn of_kernel(windows: &Path) -> io::Result<Vec<LoadedModule>> {
    let mut room = FIRST_BYTES;
    for _ in 0..ATTEMPTS {
        let mut list = vec![0_u8; room];
        let mut needed = 0;
        let bytes = length(room)?;
        // SAFETY: the list has the given size, and it and `needed` outlive the call.
        let status = unsafe {
            NtQuerySystemInformation(SYSTEM_MODULE_INFORMATION, list.as_mut_ptr().cast(), bytes, &raw mut needed)
        };
        if status >= 0 {
            return Ok(nt_modules::parse(&list, &windows.to_string_lossy()));
        }
        if status != STATUS_INFO_LENGTH_MISMATCH {
            // SAFETY: the function has no preconditions.
            let error = unsafe { RtlNtStatusToDosError(status) };
            return Err(io::Error::from_raw_os_error(error.cast_signed()));
        }
        room = room.max(needed as usize) + FIRST_BYTES;
    }
    Err(io::ErrorKind::ResourceBusy.into())
}

fn length(length: usize) -> io::Result<u32> {
    u32::try_from(length).map_err(|_| io::ErrorKind::InvalidInput.into())
}
