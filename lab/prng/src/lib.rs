//! Rust's std takes its random numbers from `ProcessPrng` of bcryptprimitives.dll. Wine 8 has no such file, and without
//! it no program that uses a `HashMap` starts. This is that one function.

#![cfg(windows)]
#![no_std]
#![expect(unsafe_code, reason = "one exported function and one imported")]

use core::panic::PanicInfo;

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}

#[link(name = "advapi32.dll", kind = "raw-dylib", modifiers = "+verbatim")]
unsafe extern "system" {
    /// RtlGenRandom: BOOLEAN.
    fn SystemFunction036(buffer: *mut u8, length: u32) -> u8;
}

/// Fills a buffer with random bytes and returns TRUE.
///
/// # Safety
/// `length` bytes at `buffer` are writable.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn ProcessPrng(buffer: *mut u8, length: usize) -> i32 {
    let Ok(length) = u32::try_from(length) else { return 0 };
    // SAFETY: the caller promises that many writable bytes.
    i32::from(unsafe { SystemFunction036(buffer, length) })
}
