//! bcryptprimitives.dll, with the one function that Rust's std uses: `ProcessPrng`, which returns random numbers. Wine
//! 8 lacks this DLL, and no program that uses a `HashMap` starts without it.

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
    /// RtlGenRandom. Returns a BOOLEAN.
    fn SystemFunction036(buffer: *mut u8, length: u32) -> u8;
}

/// Fills a buffer with random bytes. Returns TRUE, or FALSE if that fails.
///
/// # Safety
/// `buffer` must be valid for writes of `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn ProcessPrng(buffer: *mut u8, length: usize) -> i32 {
    let Ok(length) = u32::try_from(length) else { return 0 };
    // SAFETY: the caller guarantees `length` writable bytes.
    i32::from(unsafe { SystemFunction036(buffer, length) })
}
