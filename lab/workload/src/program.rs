//! The program around the functions. It has no C runtime and imports only kernel32.dll.

#![expect(unsafe_code, reason = "foreign functions, and an entry point without a C runtime")]

use crate::functions::{alpha, beta, gamma};
use core::{
    ffi::c_void,
    fmt::{self, Write},
    panic::PanicInfo,
    ptr,
};

/// STD_INPUT_HANDLE and STD_OUTPUT_HANDLE.
const INPUT: u32 = 10_u32.wrapping_neg();
const OUTPUT: u32 = 11_u32.wrapping_neg();

#[link(name = "kernel32.dll", kind = "raw-dylib", modifiers = "+verbatim")]
unsafe extern "system" {
    fn ExitProcess(code: u32) -> !;
    fn GetCurrentProcessId() -> u32;
    fn GetCurrentThreadId() -> u32;
    fn GetStdHandle(which: u32) -> *mut c_void;
    fn ReadFile(file: *mut c_void, bytes: *mut u8, length: u32, read: *mut u32, overlapped: *mut c_void) -> i32;
    fn WriteFile(file: *mut c_void, bytes: *const u8, length: u32, written: *mut u32, overlapped: *mut c_void) -> i32;
    fn RtlLookupFunctionEntry(address: usize, base: *mut usize, history: *mut c_void) -> *const FunctionEntry;
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    // SAFETY: the function has no preconditions.
    unsafe { ExitProcess(101) }
}

/// RUNTIME_FUNCTION: offsets in the image.
#[repr(C)]
struct FunctionEntry {
    begin: u32,
    end: u32,
    unwind: u32,
}

/// Standard output. Writing fails if there is none.
struct Console;

impl Write for Console {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut written = 0;
        let length = u32::try_from(text.len()).map_err(|_| fmt::Error)?;
        // SAFETY: the function has no preconditions.
        let output = unsafe { GetStdHandle(OUTPUT) };
        // SAFETY: `text` has `length` bytes and `written` is writable. The function rejects an invalid handle.
        let done = unsafe { WriteFile(output, text.as_ptr(), length, &raw mut written, ptr::null_mut()) };
        if done == 0 || written != length { Err(fmt::Error) } else { Ok(()) }
    }
}

type Function = fn(u64) -> u64;

const FUNCTIONS: [(&str, Function); 3] = [("alpha", alpha), ("beta", beta), ("gamma", gamma)];

/// Returns the size of a function in bytes, from Windows' function table.
fn size(function: Function) -> u32 {
    let mut base = 0;
    // SAFETY: `base` is writable, and the history is optional.
    let entry = unsafe { RtlLookupFunctionEntry((function as *const ()).addr(), &raw mut base, ptr::null_mut()) };
    // SAFETY: the pointer is null or points to an entry of this image.
    unsafe { entry.as_ref() }.map_or(0, |entry| entry.end - entry.begin)
}

fn print_description() -> fmt::Result {
    // SAFETY: the function has no preconditions.
    let (process, thread) = (unsafe { GetCurrentProcessId() }, unsafe { GetCurrentThreadId() });
    write!(Console, "{{\"process\":{process},\"thread\":{thread},\"functions\":[")?;
    for (place, (name, function)) in FUNCTIONS.into_iter().enumerate() {
        let (comma, address) = (if place == 0 { "" } else { "," }, (function as *const ()).addr());
        write!(Console, "{comma}{{\"name\":\"{name}\",\"address\":{address},\"size\":{}}}", size(function))?;
    }
    writeln!(Console, "]}}")
}

/// Returns at the end of standard input.
fn wait_for_end_of_input() {
    let (mut byte, mut read) = (0, 1);
    while read > 0 {
        read = 0;
        // SAFETY: the function has no preconditions.
        let input = unsafe { GetStdHandle(INPUT) };
        // SAFETY: `byte` is one writable byte, and `read` is writable. The function rejects an invalid handle.
        unsafe { ReadFile(input, &raw mut byte, 1, &raw mut read, ptr::null_mut()) };
    }
}

/// The entry point of the program.
#[unsafe(no_mangle)]
extern "system" fn start() -> ! {
    let seed = FUNCTIONS.iter().fold(1, |seed, (_, function)| function(seed));
    let printed = print_description();
    wait_for_end_of_input();
    // Uses the result of the functions, so that the compiler keeps them.
    let code = u32::from(printed.is_err() || seed == 0);
    // SAFETY: the function has no preconditions.
    unsafe { ExitProcess(code) }
}
