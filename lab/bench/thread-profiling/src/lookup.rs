//! GetProcAddress, which finds the functions that Wine lacks.

#![expect(unsafe_code, reason = "reads what the program points to, and calls Wine")]

use crate::{lab, processor, profiling};
use std::{
    ffi::{CStr, c_char, c_void},
    ptr,
    sync::atomic::{AtomicUsize, Ordering},
};
use windows_sys::Win32::Foundation::{ERROR_PROC_NOT_FOUND, SetLastError};

/// ANSI_STRING.
#[repr(C)]
struct AnsiString {
    length: u16,
    maximum: u16,
    buffer: *const c_char,
}

#[link(name = "ntdll.dll", kind = "raw-dylib", modifiers = "+verbatim")]
unsafe extern "system" {
    fn LdrGetProcedureAddress(
        module: *const c_void,
        name: *const AnsiString,
        ordinal: u32,
        address: *mut *const c_void,
    ) -> i32;
    fn RtlNtStatusToDosError(status: i32) -> u32;
}

static KERNEL32: AtomicUsize = AtomicUsize::new(0);
static KERNELBASE: AtomicUsize = AtomicUsize::new(0);

/// Sets the base addresses of the libraries whose exports are extended.
pub fn set_libraries(kernel32: usize, kernelbase: usize) {
    KERNEL32.store(kernel32, Ordering::Relaxed);
    KERNELBASE.store(kernelbase, Ordering::Relaxed);
}

/// Returns the function that Windows exports with this name and Wine lacks.
fn served(module: usize, name: &str) -> Option<*const ()> {
    let (kernel32, kernelbase) = (KERNEL32.load(Ordering::Relaxed), KERNELBASE.load(Ordering::Relaxed));
    match name {
        "EnableThreadProfiling" if module == kernel32 => Some(profiling::enable as *const ()),
        "ReadThreadProfilingData" if module == kernel32 => Some(profiling::read as *const ()),
        "DisableThreadProfiling" if module == kernel32 => Some(profiling::disable as *const ()),
        "QueryThreadProfiling" if module == kernel32 => Some(profiling::query as *const ()),
        "QueryInterruptTime" if module == kernelbase => Some(processor::interrupt_time as *const ()),
        _ => None,
    }
}

/// Implements GetProcAddress.
///
/// # Safety
/// As the documentation demands.
pub unsafe extern "system" fn get_proc_address(module: *const c_void, name: *const c_char) -> *const c_void {
    if let Ok(ordinal) = u16::try_from(name.addr()) {
        return find(module, ptr::null(), ordinal.into());
    }
    // SAFETY: the program must pass a zero-terminated name.
    let text = unsafe { CStr::from_ptr(name) };
    if let Ok(text) = text.to_str()
        && let Some(function) = served(module.addr(), text)
    {
        if !lab::script().missing.iter().any(|missing| missing == text) {
            return function.cast();
        }
        // SAFETY: the function has no preconditions.
        unsafe { SetLastError(ERROR_PROC_NOT_FOUND) };
        return ptr::null();
    }
    let length = u16::try_from(text.count_bytes()).unwrap_or(u16::MAX);
    let name = AnsiString { length, maximum: length, buffer: name };
    find(module, &raw const name, 0)
}

/// Finds an export of Wine. Sets the last error if there is none.
fn find(module: *const c_void, name: *const AnsiString, ordinal: u32) -> *const c_void {
    let mut address = ptr::null();
    // SAFETY: the name is null or valid, and the variable is writable. The function rejects an invalid module.
    let status = unsafe { LdrGetProcedureAddress(module, name, ordinal, &raw mut address) };
    if status >= 0 {
        return address;
    }
    // SAFETY: the function has no preconditions.
    let error = unsafe { RtlNtStatusToDosError(status) };
    // SAFETY: the function has no preconditions.
    unsafe { SetLastError(error) };
    ptr::null()
}
