//! The functions of thread profiling.

#![expect(unsafe_code, reason = "writes what the program points to")]

use crate::lab;
use bench_protocol::{ThreadAnswer, ThreadCall, ThreadData};
use std::ptr;
use windows_sys::Win32::{
    Foundation::{ERROR_GEN_FAILURE, ERROR_INVALID_HANDLE, ERROR_INVALID_PARAMETER, ERROR_SUCCESS, HANDLE},
    System::Threading::GetThreadId,
};

/// MAX_HW_COUNTERS and PERFORMANCE_DATA_VERSION (winnt.h).
const MAX_COUNTERS: usize = 16;
const VERSION: u8 = 1;

/// HARDWARE_COUNTER_DATA.
#[repr(C)]
struct CounterData {
    kind: u32,
    reserved: u32,
    value: u64,
}

/// PERFORMANCE_DATA.
#[repr(C)]
pub struct PerformanceData {
    size: u16,
    version: u8,
    counter_count: u8,
    context_switches: u32,
    wait_reasons: u64,
    cycles: u64,
    retries: u32,
    reserved: u32,
    counters: [CounterData; MAX_COUNTERS],
}

const _: () = assert!(size_of::<PerformanceData>() == 0x120);

/// READ_THREAD_PROFILING_FLAG_DISPATCHING and READ_THREAD_PROFILING_FLAG_HARDWARE_COUNTERS.
const READ_DISPATCH: u32 = 1;
const READ_COUNTERS: u32 = 2;

/// Returns the error of a call that succeeded with an answer of another kind.
fn unexpected(answer: &ThreadAnswer) -> u32 {
    eprintln!("thread-profiling.dll: unexpected answer {answer:?}");
    ERROR_GEN_FAILURE
}

/// Returns the thread of a handle.
pub fn thread_of(handle: HANDLE) -> Result<u32, u32> {
    // SAFETY: the function rejects an invalid handle.
    match unsafe { GetThreadId(handle) } {
        0 => Err(ERROR_INVALID_HANDLE),
        thread => Ok(thread),
    }
}

fn code(result: Result<(), u32>) -> u32 {
    result.err().unwrap_or(ERROR_SUCCESS)
}

/// Sends a call if the script does not make the function fail.
fn call(function: &str, body: impl FnOnce() -> Result<ThreadCall, u32>) -> Result<ThreadAnswer, u32> {
    match lab::refusal(function) {
        Some(error) => Err(error),
        None => lab::call(body()?),
    }
}

/// Implements EnableThreadProfiling.
///
/// # Safety
/// As the documentation demands.
pub unsafe extern "system" fn enable(thread: HANDLE, flags: u32, mask: u64, handle: *mut HANDLE) -> u32 {
    if handle.is_null() {
        return ERROR_INVALID_PARAMETER;
    }
    let enabled = call("EnableThreadProfiling", || Ok(ThreadCall::Enable { target: thread_of(thread)?, flags, mask }));
    code(enabled.and_then(|answer| match answer {
        ThreadAnswer::Handle(number) => {
            let number = ptr::without_provenance_mut(usize::try_from(number).unwrap_or_default());
            // SAFETY: the pointer is not null, so it must point to a variable of the program.
            unsafe { handle.write(number) };
            Ok(())
        }
        other => Err(unexpected(&other)),
    }))
}

fn number(handle: HANDLE) -> u64 {
    handle.addr() as u64
}

/// Implements DisableThreadProfiling.
pub extern "system" fn disable(handle: HANDLE) -> u32 {
    let disabled = call("DisableThreadProfiling", || Ok(ThreadCall::Disable { handle: number(handle) }));
    code(disabled.map(|_| ()))
}

/// Implements QueryThreadProfiling.
///
/// # Safety
/// As the documentation demands.
pub unsafe extern "system" fn query(thread: HANDLE, enabled: *mut u8) -> u32 {
    if enabled.is_null() {
        return ERROR_INVALID_PARAMETER;
    }
    let found = call("QueryThreadProfiling", || Ok(ThreadCall::Query { target: thread_of(thread)? }));
    code(found.and_then(|answer| match answer {
        ThreadAnswer::Profiles(profiles) => {
            // SAFETY: the pointer is not null, so it must point to a variable of the program.
            unsafe { enabled.write(profiles.into()) };
            Ok(())
        }
        other => Err(unexpected(&other)),
    }))
}

/// Implements ReadThreadProfilingData. Fields that the flags do not ask for keep their values.
///
/// # Safety
/// As the documentation demands.
pub unsafe extern "system" fn read(handle: HANDLE, flags: u32, data: *mut PerformanceData) -> u32 {
    // SAFETY: the program must pass a structure or null.
    let Some(data) = (unsafe { data.as_mut() }) else { return ERROR_INVALID_PARAMETER };
    if usize::from(data.size) != size_of::<PerformanceData>() || data.version != VERSION {
        return ERROR_INVALID_PARAMETER;
    }
    let read = call("ReadThreadProfilingData", || Ok(ThreadCall::Read { handle: number(handle), flags }));
    code(read.and_then(|answer| match answer {
        ThreadAnswer::Data(found) => {
            data.write(flags, &found);
            Ok(())
        }
        other => Err(unexpected(&other)),
    }))
}

impl PerformanceData {
    fn write(&mut self, flags: u32, found: &ThreadData) {
        if flags & READ_DISPATCH != 0 {
            self.context_switches = found.context_switches;
            self.wait_reasons = found.wait_reasons;
            self.cycles = found.cycles;
        }
        if flags & READ_COUNTERS != 0 {
            self.counter_count = found.counter_count;
            for (to, value) in self.counters.iter_mut().zip(&found.counters) {
                *to = CounterData { kind: 0, reserved: 0, value: *value };
            }
        }
        self.retries = found.retries;
    }
}
