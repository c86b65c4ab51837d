//! The processor of a thread, and the interrupt time.

#![expect(unsafe_code, reason = "reads and writes what the program points to")]

use crate::{lab, profiling::thread_of};
use bench_protocol::{ThreadAnswer, ThreadCall};
use std::cell::Cell;
use windows_sys::Win32::{
    Foundation::{ERROR_GEN_FAILURE, ERROR_INVALID_PARAMETER, FALSE, HANDLE, SetLastError, TRUE},
    System::{
        Kernel::PROCESSOR_NUMBER, SystemInformation::GROUP_AFFINITY, WindowsProgramming::QueryUnbiasedInterruptTime,
    },
};
use windows_sys::core::BOOL;

/// ALL_PROCESSOR_GROUPS.
const ALL_GROUPS: u16 = 0xFFFF;

/// Units of the interrupt time in a millisecond.
const UNITS: u64 = 10_000;

thread_local! {
    /// Where this thread was seen last.
    static LAST: Cell<u32> = const { Cell::new(0) };
}

fn succeeds<T>(result: Result<T, u32>) -> Option<T> {
    result
        .inspect_err(|error| {
            // SAFETY: the function has no preconditions.
            unsafe { SetLastError(*error) };
        })
        .ok()
}

fn restrict(thread: HANDLE, mask: u64) -> Result<u64, u32> {
    match lab::call(ThreadCall::SetAffinity { target: thread_of(thread)?, mask })? {
        ThreadAnswer::Affinity(before) => Ok(before),
        _ => Err(ERROR_GEN_FAILURE),
    }
}

fn affinity(thread: HANDLE) -> Result<u64, u32> {
    match lab::call(ThreadCall::Affinity { target: thread_of(thread)? })? {
        ThreadAnswer::Affinity(mask) => Ok(mask),
        _ => Err(ERROR_GEN_FAILURE),
    }
}

/// Implements SetThreadAffinityMask.
pub extern "system" fn set_affinity_mask(thread: HANDLE, mask: usize) -> usize {
    let before = succeeds(restrict(thread, mask as u64)).unwrap_or_default();
    usize::try_from(before).unwrap_or_default()
}

fn group_of_0(mask: u64) -> GROUP_AFFINITY {
    GROUP_AFFINITY { Mask: usize::try_from(mask).unwrap_or_default(), Group: 0, Reserved: [0; 3] }
}

/// Implements SetThreadGroupAffinity. The machine has one group.
///
/// # Safety
/// As the documentation demands.
pub unsafe extern "system" fn set_group_affinity(
    thread: HANDLE,
    wanted: *const GROUP_AFFINITY,
    before: *mut GROUP_AFFINITY,
) -> BOOL {
    // SAFETY: the program must pass an affinity or null.
    let wanted = unsafe { wanted.as_ref() }.filter(|wanted| wanted.Group == 0);
    let mask = wanted.map(|wanted| wanted.Mask as u64).ok_or(ERROR_INVALID_PARAMETER);
    let Some(mask) = succeeds(mask.and_then(|mask| restrict(thread, mask))) else { return FALSE };
    if !before.is_null() {
        // SAFETY: the pointer is not null, so it must point to a variable of the program.
        unsafe { before.write(group_of_0(mask)) };
    }
    TRUE
}

/// Implements GetThreadGroupAffinity.
///
/// # Safety
/// As the documentation demands.
pub unsafe extern "system" fn group_affinity(thread: HANDLE, found: *mut GROUP_AFFINITY) -> BOOL {
    let is_null = found.is_null().then_some(ERROR_INVALID_PARAMETER).map_or(Ok(()), Err);
    let Some(mask) = succeeds(is_null.and_then(|()| affinity(thread))) else { return FALSE };
    // SAFETY: the pointer is not null, so it must point to a variable of the program.
    unsafe { found.write(group_of_0(mask)) };
    TRUE
}

/// Implements GetCurrentProcessorNumber.
pub extern "system" fn current() -> u32 {
    // Code of Wine that the connection to the lab uses can call this. It gets the last answer.
    if !lab::is_asking()
        && let Ok(ThreadAnswer::Processor(processor)) = lab::call(ThreadCall::CurrentProcessor)
    {
        LAST.set(processor);
    }
    LAST.get()
}

/// Implements GetCurrentProcessorNumberEx.
///
/// # Safety
/// As the documentation demands.
pub unsafe extern "system" fn current_ex(number: *mut PROCESSOR_NUMBER) {
    let processor = u8::try_from(current()).unwrap_or(u8::MAX);
    // SAFETY: the program must pass a variable.
    unsafe { number.write(PROCESSOR_NUMBER { Group: 0, Number: processor, Reserved: 0 }) };
}

/// Implements GetActiveProcessorCount. The machine has one group.
pub extern "system" fn active_count(group: u16) -> u32 {
    match (group, lab::call(ThreadCall::ProcessorCount)) {
        (0 | ALL_GROUPS, Ok(ThreadAnswer::ProcessorCount(count))) => count,
        _ => 0,
    }
}

/// Implements QueryInterruptTime, which goes on during a sleep of the lab's machine.
///
/// # Safety
/// As the documentation demands.
pub unsafe extern "system" fn interrupt_time(time: *mut u64) {
    let slept = match lab::call(ThreadCall::SleepTime) {
        Ok(ThreadAnswer::SleepTime(milliseconds)) => milliseconds,
        _ => 0,
    };
    let mut unbiased = 0;
    // SAFETY: the variable is writable.
    unsafe { QueryUnbiasedInterruptTime(&raw mut unbiased) };
    // SAFETY: the program must pass a variable.
    unsafe { time.write(unbiased.saturating_add(slept.saturating_mul(UNITS))) };
}
