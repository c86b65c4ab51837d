//! Profile objects of a process.

#![expect(unsafe_code, reason = "calls to Windows")]

use std::ffi::{CStr, c_void};
use std::io;
use std::mem::transmute;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::ptr::null;
use std::sync::atomic::{AtomicU32, Ordering};

use windows_sys::Win32::Foundation::{HANDLE, NTSTATUS};
use windows_sys::Win32::System::LibraryLoader::{GetModuleHandleW, GetProcAddress};
use windows_sys::Win32::System::Threading::{OpenProcess, PROCESS_QUERY_INFORMATION};

use super::convert::wide;
use super::modules::checked;
use crate::hal::ProfileObject;

/// phnt, ntexapi.h: object, process, base, size, log2 of the bytes of a bucket, buckets, their size, source, number of
/// groups, groups. No group stands for all processors.
type Create = unsafe extern "system" fn(
    *mut HANDLE,
    HANDLE,
    *const c_void,
    usize,
    u32,
    *const AtomicU32,
    u32,
    u32,
    u16,
    *const c_void,
) -> NTSTATUS;
/// NtStartProfile and NtStopProfile.
type Change = unsafe extern "system" fn(HANDLE) -> NTSTATUS;

/// The largest bucket.
const BUCKET_SHIFT: u32 = 31;

/// Bytes of each half of the address space with four levels of page tables.
const HALF: usize = 1 << 47;

/// The first address of the kernel's half.
const KERNEL: usize = 0xFFFF_8000_0000_0000;

/// Buckets of a half, and one more: versions of Windows have taken the end of a range as a part of it.
const BUCKETS: usize = (HALF >> BUCKET_SHIFT) + 1;

/// A profile object, which counts until it is stopped or dropped.
pub struct Object {
    // The object ends before its buckets.
    handle: OwnedHandle,
    buckets: Box<[AtomicU32]>,
    stop: Change,
}

impl Object {
    /// Starts to count the hits of a source in one half of the addresses of a process.
    pub fn start(process: u32, source: u32, is_kernel: bool) -> io::Result<Self> {
        // SAFETY: ntdll.dll exports it with this type.
        let create = unsafe { transmute::<Function, Create>(function(c"NtCreateProfileEx")?) };
        // SAFETY: as above.
        let start = unsafe { transmute::<Function, Change>(function(c"NtStartProfile")?) };
        // SAFETY: as above.
        let stop = unsafe { transmute::<Function, Change>(function(c"NtStopProfile")?) };
        // SAFETY: the function has no preconditions.
        let process = unsafe { OpenProcess(PROCESS_QUERY_INFORMATION, 0, process) };
        if process.is_null() {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call succeeded, so this is a valid handle, and nothing else owns it.
        let process = unsafe { OwnedHandle::from_raw_handle(process) };
        // The range must not reach the last address.
        let (base, size) = if is_kernel { (KERNEL, HALF - (1 << BUCKET_SHIFT)) } else { (0, HALF) };
        let buckets: Box<[AtomicU32]> = (0..BUCKETS).map(|_| AtomicU32::new(0)).collect();
        let length = u32::try_from(size_of_val(&*buckets)).map_err(io::Error::other)?;
        let (mut handle, process, base) = (HANDLE::default(), process.as_raw_handle(), base as *const c_void);
        let pointer = buckets.as_ptr();
        // SAFETY: the process is open, and the buckets have the given size, are writable, and outlive the object.
        checked(unsafe {
            create(&raw mut handle, process, base, size, BUCKET_SHIFT, pointer, length, source, 0, null())
        })?;
        // SAFETY: the call succeeded, so this is a valid handle, and nothing else owns it.
        let object = Self { handle: unsafe { OwnedHandle::from_raw_handle(handle) }, buckets, stop };
        // SAFETY: the object is open.
        checked(unsafe { start(object.handle.as_raw_handle()) })?;
        Ok(object)
    }
}

impl ProfileObject for Object {
    fn stop(&mut self) -> io::Result<u64> {
        // SAFETY: the object is open.
        checked(unsafe { (self.stop)(self.handle.as_raw_handle()) })?;
        Ok(self.buckets.iter().map(|bucket| u64::from(bucket.load(Ordering::Relaxed))).sum())
    }
}

/// A function of any type.
type Function = unsafe extern "system" fn() -> isize;

/// Returns a function of ntdll.dll. It is searched when it is wanted, so that the program runs without it.
fn function(name: &CStr) -> io::Result<Function> {
    let library = wide("ntdll.dll");
    // SAFETY: the name is zero-terminated.
    let library = unsafe { GetModuleHandleW(library.as_ptr()) };
    // SAFETY: the library is never unloaded, and the name is zero-terminated.
    let found = unsafe { GetProcAddress(library, name.as_ptr().cast()) };
    found.ok_or_else(io::Error::last_os_error)
}
