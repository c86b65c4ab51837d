//! What an iteration executes.
#![expect(unsafe_code, reason = "calls a function of the bench by its name")]

use std::ffi::c_void;
use std::sync::OnceLock;

use windows_sys::Win32::System::LibraryLoader::{GetModuleHandleA, GetProcAddress};
use windows_sys::core::s;

/// `bench_execute_event` of thread-profiling.dll: event select, unit mask, events in user mode and in kernel mode.
type Execute = unsafe extern "system" fn(u32, u32, u64, u64) -> u32;

/// An AMD processor's event of retired instructions.
const INSTRUCTIONS: u32 = 0xC0;

static EXECUTE: OnceLock<Option<Execute>> = OnceLock::new();

fn find() -> Option<Execute> {
    // SAFETY: The name is a string that ends with a zero byte.
    let module: *mut c_void = unsafe { GetModuleHandleA(s!("thread-profiling.dll")) };
    // SAFETY: As before. A null handle is refused.
    let function = unsafe { GetProcAddress(module, s!("bench_execute_event")) }?;
    // SAFETY: The function of this name has this type.
    Some(unsafe { std::mem::transmute::<unsafe extern "system" fn() -> isize, Execute>(function) })
}

/// Executes instructions in user mode. Does nothing without the bench.
pub fn execute(number: u64) {
    if let Some(execute) = EXECUTE.get_or_init(find) {
        // SAFETY: The function takes any numbers.
        unsafe { execute(INSTRUCTIONS, 0, number, 0) };
    }
}
