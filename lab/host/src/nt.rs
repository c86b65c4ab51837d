//! What the lab itself calls of Wine, as safe functions where that can be.

#![expect(unsafe_code, reason = "foreign functions")]

use std::{
    ffi::{CString, c_void},
    ptr,
};
use windows_sys::Win32::System::{
    LibraryLoader::{GetModuleHandleA, GetProcAddress},
    Memory::{PAGE_EXECUTE_READWRITE, VirtualProtect},
    Performance::{QueryPerformanceCounter, QueryPerformanceFrequency},
    Threading::{GetCurrentProcessorNumber, GetCurrentThread, GetCurrentThreadId, SetThreadAffinityMask},
};

pub type Pointer = *mut c_void;
pub type NtStatus = i32;

/// An NTSTATUS as ntstatus.h writes it.
pub const fn status(number: u32) -> NtStatus {
    number.cast_signed()
}

pub const SUCCESS: NtStatus = 0;
pub const UNSUCCESSFUL: NtStatus = status(0xC000_0001);
pub const INFO_LENGTH_MISMATCH: NtStatus = status(0xC000_0004);
pub const INVALID_PARAMETER: NtStatus = status(0xC000_000D);
pub const INSUFFICIENT_RESOURCES: NtStatus = status(0xC000_009A);
pub const INVALID_LEVEL: NtStatus = status(0xC000_0148);
pub const NOT_FOUND: NtStatus = status(0xC000_0225);

pub const PASSIVE_LEVEL: u8 = 0;
pub const APC_LEVEL: u8 = 1;
pub const DISPATCH_LEVEL: u8 = 2;
pub const IPI_LEVEL: u8 = 14;
pub const HIGH_LEVEL: u8 = 15;

/// ALL_PROCESSOR_GROUPS.
const ALL_GROUPS: u16 = 0xFFFF;

/// DbgPrint lines longer than about 1,000 bytes end the process; this leaves room for the format.
const LONGEST_LINE: usize = 700;

/// UNICODE_STRING: lengths in bytes.
#[repr(C)]
pub struct UnicodeString {
    pub length: u16,
    pub maximum: u16,
    pub buffer: *const u16,
}

#[link(name = "ntoskrnl.exe", kind = "raw-dylib", modifiers = "+verbatim")]
unsafe extern "system" {
    fn DbgPrint(format: *const u8, ...) -> u32;
    fn KeQueryActiveProcessorCountEx(group: u16) -> u32;
    fn PsGetCurrentProcessId() -> Pointer;
}

/// A line of the debugger's output.
pub fn say(line: &str) {
    let text: Vec<u8> = line.bytes().filter(|byte| *byte != 0).take(LONGEST_LINE).collect();
    let text = CString::new(text).unwrap_or_default();
    // SAFETY: a format with one string, and that string, both ended by NUL.
    unsafe { DbgPrint(c"lab: %s\n".as_ptr().cast(), text.as_ptr()) };
}

/// The text of a UNICODE_STRING.
///
/// # Safety
/// Null, or a valid one.
pub unsafe fn text(string: *const UnicodeString) -> String {
    // SAFETY: the caller promises null or a valid string.
    let Some(string) = (unsafe { string.as_ref() }) else { return String::new() };
    if string.buffer.is_null() {
        return String::new();
    }
    // SAFETY: a valid string has that many bytes.
    let units = unsafe { std::slice::from_raw_parts(string.buffer, usize::from(string.length / 2)) };
    String::from_utf16_lossy(units)
}

pub fn processor_count() -> u32 {
    // SAFETY: takes nothing that could be wrong.
    unsafe { KeQueryActiveProcessorCountEx(ALL_GROUPS) }
}

/// The processor on which this thread is, now.
pub fn current_processor() -> u32 {
    // SAFETY: takes nothing.
    unsafe { GetCurrentProcessorNumber() }
}

pub fn current_thread() -> u32 {
    // SAFETY: takes nothing.
    unsafe { GetCurrentThreadId() }
}

/// The process for which this thread works: of a request, the client's.
pub fn current_process() -> u32 {
    // SAFETY: takes nothing.
    let id = unsafe { PsGetCurrentProcessId() };
    u32::try_from(id.addr()).unwrap_or_default()
}

/// Restricts this thread to the processors of the mask and gives back the mask before, 0 if that failed.
pub fn set_affinity(mask: usize) -> usize {
    // SAFETY: takes nothing; the handle is a constant.
    let thread = unsafe { GetCurrentThread() };
    // SAFETY: the handle is this thread's; a mask that is wrong is refused.
    unsafe { SetThreadAffinityMask(thread, mask) }
}

/// Value and frequency of the performance counter.
pub fn performance_counter() -> (i64, i64) {
    let (mut value, mut frequency) = (0, 0);
    // SAFETY: the variable may be written.
    unsafe { QueryPerformanceCounter(&raw mut value) };
    // SAFETY: the variable may be written.
    unsafe { QueryPerformanceFrequency(&raw mut frequency) };
    (value, frequency)
}

/// The time-stamp counter.
pub fn time_stamp() -> u64 {
    // SAFETY: every x86-64 processor has the instruction.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// The address of an export of a module that is loaded.
pub fn export(module: &str, name: &str) -> Option<usize> {
    let (module, name) = (CString::new(module).ok()?, CString::new(name).ok()?);
    // SAFETY: a name ended by NUL.
    let module = unsafe { GetModuleHandleA(module.as_ptr().cast()) };
    if module.is_null() {
        return None;
    }
    // SAFETY: the module is loaded, and Wine's kernel modules stay so; a name ended by NUL.
    let address = unsafe { GetProcAddress(module, name.as_ptr().cast()) };
    address.map(|function| function as *const () as usize)
}

/// Writes to memory that may be read-only or code.
///
/// # Safety
/// The bytes at `at` are mapped, nobody else accesses them now, and the program is to go on with the new ones.
pub unsafe fn poke(at: *mut u8, bytes: &[u8]) {
    let mut before = 0;
    // SAFETY: only the protection of mapped memory changes.
    unsafe { VirtualProtect(at.cast(), bytes.len(), PAGE_EXECUTE_READWRITE, &raw mut before) };
    // SAFETY: the caller promises the memory at `at`; `bytes` are the lab's own.
    unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), at, bytes.len()) };
    // SAFETY: the protection that was there.
    unsafe { VirtualProtect(at.cast(), bytes.len(), before, &raw mut before) };
}
