//! The functions that control sessions.

#![expect(unsafe_code, reason = "reads and writes what the program points to")]

use crate::{
    foreign::{bytes, counter, text, wide},
    machine::{Running, lock, machine, script},
};
use etw_model::{SessionError, SessionRequest};
use std::path::PathBuf;
use windows_sys::Win32::{
    Foundation::{ERROR_INVALID_PARAMETER, ERROR_NOT_SUPPORTED, ERROR_SUCCESS},
    System::Diagnostics::Etw::{
        CONTROLTRACE_HANDLE, ENABLE_TRACE_PARAMETERS, ENABLE_TRACE_PARAMETERS_VERSION,
        ENABLE_TRACE_PARAMETERS_VERSION_2, EVENT_CONTROL_CODE_DISABLE_PROVIDER, EVENT_CONTROL_CODE_ENABLE_PROVIDER,
        EVENT_TRACE_CONTROL, EVENT_TRACE_CONTROL_FLUSH, EVENT_TRACE_CONTROL_QUERY, EVENT_TRACE_CONTROL_STOP,
        EVENT_TRACE_PROPERTIES,
    },
};
use windows_sys::core::GUID;

/// Implements StartTraceW.
///
/// # Safety
/// As the documentation demands.
pub unsafe extern "system" fn start(
    handle: *mut CONTROLTRACE_HANDLE,
    name: *const u16,
    properties: *mut EVENT_TRACE_PROPERTIES,
) -> u32 {
    // SAFETY: the program must pass a zero-terminated name or null.
    let name = unsafe { text(name) };
    // SAFETY: the program must pass properties that can be written or null.
    let fixed = unsafe { properties.as_mut() };
    let (Some(name), Some(fixed), false) = (name, fixed, handle.is_null()) else { return ERROR_INVALID_PARAMETER };
    let mut request = request(&name, fixed);
    if let Err(error) = request.check_layout() {
        return error as u32;
    }
    if request.file_offset != 0 {
        let file = properties.wrapping_byte_add(request.file_offset).cast();
        // SAFETY: the offset is inside of the structure, and the program must put a zero-terminated string there.
        request.file = unsafe { text(file) }.map(PathBuf::from);
    }
    let mut machine = machine();
    if let Some(error) = machine.refusal("StartTraceW") {
        return error;
    }
    let name_offset = request.name_offset;
    let started = match machine.start(request, counter()) {
        Ok(started) => started,
        Err(error) => return error as u32,
    };
    let units = wide(&name);
    let to = properties.wrapping_byte_add(name_offset).cast::<u16>();
    // SAFETY: `check_layout` found room for the name at the offset.
    unsafe { std::ptr::copy_nonoverlapping(units.as_ptr(), to, units.len()) };
    // SAFETY: the program must pass a writable handle.
    unsafe { handle.write(CONTROLTRACE_HANDLE { Value: started }) };
    ERROR_SUCCESS
}

fn request(name: &str, fixed: &EVENT_TRACE_PROPERTIES) -> SessionRequest {
    let [size, name_offset, file_offset] = [fixed.Wnode.BufferSize, fixed.LoggerNameOffset, fixed.LogFileNameOffset]
        .map(|number| usize::try_from(number).unwrap_or(usize::MAX));
    SessionRequest {
        name: name.to_owned(),
        size,
        fixed_size: size_of::<EVENT_TRACE_PROPERTIES>(),
        flags: fixed.Wnode.Flags,
        mode: fixed.LogFileMode,
        enable_flags: fixed.EnableFlags,
        name_offset,
        file_offset,
        file: None,
    }
}

/// Implements EnableTraceEx2, for the control codes that enable and disable.
///
/// # Safety
/// As the documentation demands.
pub unsafe extern "system" fn enable(
    handle: CONTROLTRACE_HANDLE,
    provider: *const GUID,
    code: u32,
    level: u8,
    any_keyword: u64,
    _all_keywords: u64,
    _timeout: u32,
    parameters: *const ENABLE_TRACE_PARAMETERS,
) -> u32 {
    // SAFETY: the program must pass a GUID or null.
    let provider = unsafe { provider.as_ref() };
    // SAFETY: the program must pass parameters or null.
    let parameters = unsafe { parameters.as_ref() };
    let versions = [ENABLE_TRACE_PARAMETERS_VERSION, ENABLE_TRACE_PARAMETERS_VERSION_2];
    let Some(provider) = provider else { return ERROR_INVALID_PARAMETER };
    if parameters.is_some_and(|parameters| !versions.contains(&parameters.Version)) {
        return ERROR_INVALID_PARAMETER;
    }
    let (provider, property) = (bytes(provider), parameters.map_or(0, |parameters| parameters.EnableProperty));
    let mut machine = machine();
    if let Some(error) = machine.refusal("EnableTraceEx2") {
        return error;
    }
    let changed = match code {
        EVENT_CONTROL_CODE_ENABLE_PROVIDER => {
            machine.sessions.enable(handle.Value, provider, level, any_keyword, property)
        }
        EVENT_CONTROL_CODE_DISABLE_PROVIDER => machine.sessions.disable(handle.Value, &provider),
        _ => return ERROR_NOT_SUPPORTED,
    };
    let told = changed.map_err(|error| error as u32).and_then(|()| machine.update_provider(provider));
    told.err().unwrap_or(ERROR_SUCCESS)
}

/// Implements ControlTraceW, for queries, flushes and stops.
///
/// # Safety
/// As the documentation demands.
pub unsafe extern "system" fn control(
    handle: CONTROLTRACE_HANDLE,
    name: *const u16,
    properties: *mut EVENT_TRACE_PROPERTIES,
    code: EVENT_TRACE_CONTROL,
) -> u32 {
    // SAFETY: the program must pass a zero-terminated name or null.
    let name = unsafe { text(name) };
    // SAFETY: the program must pass properties that can be written or null.
    let Some(fixed) = (unsafe { properties.as_mut() }) else { return ERROR_INVALID_PARAMETER };
    let size = usize::try_from(fixed.Wnode.BufferSize).unwrap_or(usize::MAX);
    if size < size_of::<EVENT_TRACE_PROPERTIES>() {
        return SessionError::BadLength as u32;
    }
    let mut machine = machine();
    if let Some(error) = machine.refusal("ControlTraceW") {
        return error;
    }
    let handle = match machine.sessions.find(handle.Value, name.as_deref()) {
        Ok(handle) => handle,
        Err(error) => return error as u32,
    };
    let running = match code {
        EVENT_TRACE_CONTROL_QUERY | EVENT_TRACE_CONTROL_FLUSH => Ok(machine.running(handle)),
        EVENT_TRACE_CONTROL_STOP => machine.stop(handle),
        _ => return ERROR_NOT_SUPPORTED,
    };
    match running {
        Ok(running) => {
            if let Some(running) = running {
                write_statistics(fixed, &running);
            }
            ERROR_SUCCESS
        }
        Err(error) => error,
    }
}

/// Writes what a session delivered and lost.
fn write_statistics(fixed: &mut EVENT_TRACE_PROPERTIES, running: &Running) {
    let number = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
    let delivery = lock(&running.delivery);
    let report = delivery.report();
    fixed.EventsLost = number(report.lost_events);
    fixed.RealTimeBuffersLost = number(report.lost_buffers);
    fixed.LogBuffersLost = 0;
    fixed.BuffersWritten = number(report.delivered / u64::from(script().disorder.buffer.max(1)));
    fixed.NumberOfBuffers = fixed.MinimumBuffers;
}
