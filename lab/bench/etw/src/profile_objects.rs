//! The functions for profile objects, which Wine does not export.

#![expect(unsafe_code, reason = "answers functions of Windows")]

use crate::machine::{lock, machine, script};
use etw_model::ProfileRange;
use std::{
    collections::BTreeMap,
    ffi::{CStr, c_void},
    ptr::null,
    sync::{
        Mutex, OnceLock,
        atomic::{AtomicU32, Ordering},
    },
};
use windows_sys::Win32::{
    Foundation::{HANDLE, HMODULE},
    System::Threading::{CreateEventW, GetProcessId},
};

const STATUS_SUCCESS: i32 = 0;
const STATUS_INVALID_HANDLE: i32 = 0xC000_0008_u32.cast_signed();

/// GetProcAddress.
pub type Find = unsafe extern "system" fn(HMODULE, *const u8) -> *const ();

static ORIGINAL: OnceLock<Find> = OnceLock::new();

/// The objects by their handles.
static OBJECTS: Mutex<BTreeMap<usize, Object>> = Mutex::new(BTreeMap::new());

struct Object {
    /// Address of the buckets, and their number.
    buckets: (usize, usize),
    source: u32,
    is_kernel: bool,
    is_started: bool,
}

/// Remembers Wine's function, for [`find`].
pub fn set_original(original: Find) {
    ORIGINAL.get_or_init(|| original);
}

/// Implements GetProcAddress.
///
/// # Safety
/// As the documentation demands.
pub unsafe extern "system" fn find(library: HMODULE, name: *const u8) -> *const () {
    const FUNCTIONS: [(&CStr, *const ()); 3] = [
        (c"NtCreateProfileEx", create as *const ()),
        (c"NtStartProfile", start as *const ()),
        (c"NtStopProfile", stop as *const ()),
    ];
    // A small number is an ordinal.
    if name.addr() > 0xFFFF {
        // SAFETY: the program must pass a zero-terminated name.
        let name = unsafe { CStr::from_ptr(name.cast()) };
        if let Some((_, function)) = FUNCTIONS.into_iter().find(|(own, _)| *own == name) {
            return function;
        }
    }
    // SAFETY: guaranteed by the caller.
    ORIGINAL.get().map_or(null(), |original| unsafe { original(library, name) })
}

fn refusal(function: &str) -> Option<i32> {
    machine().refusal(function).map(u32::cast_signed)
}

unsafe extern "system" fn create(
    object: *mut HANDLE,
    process: HANDLE,
    base: usize,
    size: usize,
    shift: u32,
    buckets: *const AtomicU32,
    length: u32,
    source: u32,
    groups: u16,
    _: *const c_void,
) -> i32 {
    if let Some(status) = refusal("NtCreateProfileEx") {
        return status;
    }
    let range = ProfileRange { base: base as u64, size: size as u64, shift, length, groups };
    let count = match range.buckets() {
        Ok(count) => count,
        Err(status) => return status.cast_signed(),
    };
    // SAFETY: the function fails with a handle that is none of a process.
    if unsafe { GetProcessId(process) } == 0 {
        return STATUS_INVALID_HANDLE;
    }
    // SAFETY: the attributes and the name may be null. An event can be closed as an object can.
    let handle = unsafe { CreateEventW(null(), 1, 0, null()) };
    let made = Object { buckets: (buckets.addr(), count), source, is_kernel: range.is_kernel(), is_started: false };
    lock(&OBJECTS).insert(handle.addr(), made);
    // SAFETY: the program must pass a writable handle.
    unsafe { object.write(handle) };
    STATUS_SUCCESS
}

unsafe extern "system" fn start(object: HANDLE) -> i32 {
    if let Some(status) = refusal("NtStartProfile") {
        return status;
    }
    match lock(&OBJECTS).get_mut(&object.addr()) {
        Some(object) => {
            object.is_started = true;
            STATUS_SUCCESS
        }
        None => STATUS_INVALID_HANDLE,
    }
}

/// Writes the hits of the script, a half of them into the first bucket and the others into the last one.
unsafe extern "system" fn stop(object: HANDLE) -> i32 {
    let Some(Object { buckets: (address, count), source, is_kernel, is_started: true }) =
        lock(&OBJECTS).remove(&object.addr())
    else {
        return STATUS_INVALID_HANDLE;
    };
    let [user, kernel] = script().hal.hits;
    let hits = source * if is_kernel { kernel } else { user };
    for (place, hits) in [(0, hits / 2), (count - 1, hits - hits / 2)] {
        // SAFETY: the buckets live as long as the object.
        let bucket = unsafe { AtomicU32::from_ptr((address as *mut u32).wrapping_add(place)) };
        bucket.fetch_add(hits, Ordering::Relaxed);
    }
    STATUS_SUCCESS
}
