//! The call stacks of drivers, with which failures are injected.

#![expect(unsafe_code, reason = "calls a function of Wine")]

use crate::{kernel::loaded_images, state::machine::MACHINE};
use std::{ffi::c_void, ptr};

/// Most frames of a stack. The functions of the lab between the driver and this module are among them.
const MAX_FRAMES: u32 = 62;

#[link(name = "ntdll.dll", kind = "raw-dylib", modifiers = "+verbatim")]
unsafe extern "system" {
    fn RtlCaptureStackBackTrace(skip: u32, count: u32, frames: *mut *mut c_void, hash: *mut u32) -> u16;
}

/// Counts a call of `function` by a driver, and returns whether the call must fail.
pub fn fails(function: &str) -> bool {
    MACHINE.faults.fails(function, of_driver)
}

/// Returns the return addresses in drivers, the innermost first, relative to the image.
fn of_driver() -> Vec<u64> {
    let mut frames = [ptr::null_mut(); MAX_FRAMES as usize];
    // SAFETY: the array has this length, and there may be no hash.
    let count = unsafe { RtlCaptureStackBackTrace(0, MAX_FRAMES, frames.as_mut_ptr(), ptr::null_mut()) };
    let frames = frames.iter().take(count.into());
    frames.filter_map(|frame| loaded_images::offset(frame.addr())).map(|offset| offset as u64).collect()
}
