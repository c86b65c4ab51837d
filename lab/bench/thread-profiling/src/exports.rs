//! What a program executes, as it says itself.

#![expect(unsafe_code, reason = "exports by name, with pointers of the program")]

use crate::lab;
use bench_protocol::{EventCount, ThreadAnswer, ThreadCall, ThreadLedger, Work};
use std::slice;

/// Events of one kind.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Event {
    /// Event select.
    pub event: u16,
    /// Unit mask.
    pub umask: u8,
    /// Not used.
    pub reserved: [u8; 5],
    /// Number of events.
    pub count: u64,
}

const _: () = assert!(size_of::<Event>() == 16);

/// Returns the events of an array.
///
/// # Safety
/// The pointer is null or points to `count` events.
unsafe fn events(events: *const Event, count: usize) -> Vec<EventCount> {
    if events.is_null() {
        return Vec::new();
    }
    // SAFETY: guaranteed by the caller.
    let events = unsafe { slice::from_raw_parts(events, count) };
    events.iter().map(|Event { event, umask, count, .. }| (*event, (*umask).into(), *count)).collect()
}

fn execute(work: Work) -> u32 {
    lab::call(ThreadCall::Execute(work)).err().unwrap_or_default()
}

/// Executes events as the current thread. Returns 0 or a Win32 error.
///
/// # Safety
/// Each pointer is null or points to as many events.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn bench_execute(
    user: *const Event,
    user_count: usize,
    kernel: *const Event,
    kernel_count: usize,
) -> u32 {
    // SAFETY: guaranteed by the caller.
    let user = unsafe { events(user, user_count) };
    // SAFETY: guaranteed by the caller.
    let kernel = unsafe { events(kernel, kernel_count) };
    execute(Work { user, kernel })
}

/// Executes events of one kind as the current thread. Returns 0 or a Win32 error.
#[unsafe(no_mangle)]
pub extern "system" fn bench_execute_event(event: u32, umask: u32, user: u64, kernel: u64) -> u32 {
    let event = u16::try_from(event).unwrap_or(u16::MAX);
    let umask = u16::try_from(umask).unwrap_or(u16::MAX);
    execute(Work { user: vec![(event, umask, user)], kernel: vec![(event, umask, kernel)] })
}

fn ledger() -> Option<ThreadLedger> {
    match lab::call(ThreadCall::Ledger) {
        Ok(ThreadAnswer::Ledger(ledger)) => Some(ledger),
        _ => None,
    }
}

/// Returns how many events of a kind the current thread has executed: in user mode (0), in kernel mode (1), or in
/// interrupts (2). Nothing happens to the thread meanwhile.
#[unsafe(no_mangle)]
pub extern "system" fn bench_ledger(event: u32, umask: u32, mode: u32) -> u64 {
    let (Ok(event), Ok(umask)) = (u16::try_from(event), u16::try_from(umask)) else { return 0 };
    ledger().map_or(0, |ledger| match mode {
        0 => ledger.user(event, umask),
        1 => ledger.kernel(event, umask),
        _ => ledger.interrupts(event, umask),
    })
}

/// Returns how often the current thread was switched out.
#[unsafe(no_mangle)]
pub extern "system" fn bench_switches() -> u64 {
    ledger().map_or(0, |ledger| ledger.switches)
}
