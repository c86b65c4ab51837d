//! The functions of thread profiling.

#![expect(unsafe_code, reason = "writes what the program points to")]

use crate::{lab, memory};
use bench_protocol::{ThreadAnswer, ThreadCall, ThreadData};
use std::arch::asm;
use windows_sys::Win32::{
    Foundation::{
        ERROR_GEN_FAILURE, ERROR_INVALID_HANDLE, ERROR_INVALID_PARAMETER, ERROR_SUCCESS, HANDLE,
        STATUS_PRIVILEGED_INSTRUCTION,
    },
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
    // The lab finds the memory when it enables the profile.
    let memory = match memory::Memory::new() {
        Ok(memory) => memory,
        Err(why) => {
            eprintln!("thread-profiling.dll: no memory for a profile: {why}");
            return ERROR_GEN_FAILURE;
        }
    };
    let enabled = call("EnableThreadProfiling", || Ok(ThreadCall::Enable { target: thread_of(thread)?, flags, mask }));
    code(enabled.and_then(|answer| match answer {
        ThreadAnswer::Handle(number) => {
            // SAFETY: the pointer is not null, so it must point to a variable of the program.
            unsafe { handle.write(memory.keep(number)) };
            Ok(())
        }
        other => Err(unexpected(&other)),
    }))
}

/// Implements DisableThreadProfiling.
pub extern "system" fn disable(handle: HANDLE) -> u32 {
    let number = memory::number(handle);
    let disabled = call("DisableThreadProfiling", || Ok(ThreadCall::Disable { handle: number }));
    if disabled.is_ok() {
        memory::free(handle);
    }
    code(disabled.map(|_| ()))
}

/// Ends the program as RDPMC in user mode does where CR4.PCE is clear. HLT faults in the same way on every machine;
/// the Linux below may have CR4.PCE set for this process.
fn fault() -> u32 {
    eprintln!("thread-profiling.dll: RDPMC in user mode, and CR4.PCE is clear");
    // SAFETY: it faults.
    unsafe { asm!("hlt", options(nomem, nostack)) };
    ERROR_GEN_FAILURE
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
    let number = memory::number(handle);
    let read = call("ReadThreadProfilingData", || Ok(ThreadCall::Read { handle: number, flags }));
    if read == Err(STATUS_PRIVILEGED_INSTRUCTION.cast_unsigned()) {
        return fault();
    }
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
