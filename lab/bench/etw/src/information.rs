//! The functions that set and query information of sessions, and of the HAL's profile sources.

#![expect(unsafe_code, reason = "reads and writes what the program points to")]

use crate::machine::machine;
use std::{ffi::c_void, slice};
use windows_sys::Win32::{
    Foundation::{ERROR_BAD_LENGTH, ERROR_INVALID_PARAMETER, ERROR_SUCCESS},
    System::Diagnostics::Etw::{CONTROLTRACE_HANDLE, TRACE_QUERY_INFO_CLASS},
};

/// Implements TraceSetInformation, for counters and for the events that carry them.
///
/// # Safety
/// As the documentation demands.
pub unsafe extern "system" fn set(
    handle: CONTROLTRACE_HANDLE,
    class: TRACE_QUERY_INFO_CLASS,
    information: *const c_void,
    length: u32,
) -> u32 {
    if information.is_null() {
        return ERROR_INVALID_PARAMETER;
    }
    // SAFETY: the program must pass so many bytes.
    let given = unsafe { slice::from_raw_parts(information.cast::<u8>(), length as usize) };
    let mut machine = machine();
    if let Some(error) = machine.refusal(&format!("TraceSetInformation({class})")) {
        return error;
    }
    let session = machine.sessions.find(handle.Value, None).ok();
    machine.sources().set(session, class, given).err().unwrap_or(ERROR_SUCCESS)
}

/// Implements TraceQueryInformation, for what belongs to no session.
///
/// # Safety
/// As the documentation demands.
pub unsafe extern "system" fn query(
    _: CONTROLTRACE_HANDLE,
    class: TRACE_QUERY_INFO_CLASS,
    information: *mut c_void,
    length: u32,
    returned: *mut u32,
) -> u32 {
    let bytes: &mut [u8] = if information.is_null() {
        &mut []
    } else {
        // SAFETY: the program must pass so many bytes.
        unsafe { slice::from_raw_parts_mut(information.cast(), length as usize) }
    };
    let mut machine = machine();
    if let Some(error) = machine.refusal(&format!("TraceQueryInformation({class})")) {
        return error;
    }
    let answer = match machine.sources().query(class, bytes) {
        Ok(answer) => answer,
        Err(error) => return error,
    };
    if !returned.is_null() {
        // SAFETY: the program must pass a writable number or null.
        unsafe { returned.write(u32::try_from(answer.len()).unwrap_or(u32::MAX)) };
    }
    match bytes.get_mut(..answer.len()) {
        Some(room) => {
            room.copy_from_slice(&answer);
            ERROR_SUCCESS
        }
        None => ERROR_BAD_LENGTH,
    }
}

/// Implements NtSetSystemInformation, for sources that are added and removed.
///
/// # Safety
/// As descriptions of the function demand.
pub unsafe extern "system" fn change_sources(class: i32, information: *const c_void, length: u32) -> i32 {
    /// SystemPerformanceTraceInformation, STATUS_NOT_IMPLEMENTED and STATUS_SUCCESS.
    const PERFORMANCE_TRACE: i32 = 31;
    const NOT_IMPLEMENTED: u32 = 0xC000_0002;
    if class != PERFORMANCE_TRACE || information.is_null() {
        return NOT_IMPLEMENTED.cast_signed();
    }
    // SAFETY: the program must pass so many bytes.
    let given = unsafe { slice::from_raw_parts(information.cast::<u8>(), length as usize) };
    let mut machine = machine();
    if let Some(error) = machine.refusal("NtSetSystemInformation") {
        return error.cast_signed();
    }
    machine.sources().change(given).err().unwrap_or_default().cast_signed()
}
