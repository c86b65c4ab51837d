//! Functions of Wine that the lab itself calls, with a safe interface where possible.

#![expect(unsafe_code, reason = "foreign functions")]

use std::{
    ffi::{CString, c_void},
    ptr,
    sync::{OnceLock, atomic::AtomicU32},
    thread,
    time::{Duration, Instant},
};
use windows_sys::Win32::Foundation::{CloseHandle, WAIT_OBJECT_0};
use windows_sys::Win32::System::{
    LibraryLoader::{GetModuleHandleA, GetProcAddress},
    Memory::{MEM_RESERVE, PAGE_EXECUTE_READWRITE, PAGE_NOACCESS, VirtualAlloc, VirtualProtect},
    Performance::{QueryPerformanceCounter, QueryPerformanceFrequency},
    Threading::{
        GetCurrentProcessorNumber, GetCurrentThread, GetCurrentThreadId, OpenProcess, PROCESS_SYNCHRONIZE,
        SetThreadAffinityMask, WaitForSingleObject,
    },
};

pub type Pointer = *mut c_void;
pub type NtStatus = i32;

/// Returns an NTSTATUS, given as in ntstatus.h.
pub const fn status(number: u32) -> NtStatus {
    number.cast_signed()
}

pub const SUCCESS: NtStatus = 0;
pub const UNSUCCESSFUL: NtStatus = status(0xC000_0001);
pub const INVALID_INFO_CLASS: NtStatus = status(0xC000_0003);
pub const INFO_LENGTH_MISMATCH: NtStatus = status(0xC000_0004);
pub const INVALID_PARAMETER: NtStatus = status(0xC000_000D);
pub const ADDRESS_ALREADY_EXISTS: NtStatus = status(0xC000_0018);
pub const BUFFER_TOO_SMALL: NtStatus = status(0xC000_0023);
pub const OBJECT_NAME_NOT_FOUND: NtStatus = status(0xC000_0034);
pub const DEVICE_BUSY: NtStatus = status(0x8000_0011);
pub const INSUFFICIENT_RESOURCES: NtStatus = status(0xC000_009A);
pub const MEMORY_NOT_ALLOCATED: NtStatus = status(0xC000_00A0);
pub const NOT_SUPPORTED: NtStatus = status(0xC000_00BB);
pub const INVALID_LEVEL: NtStatus = status(0xC000_0148);
pub const NOT_FOUND: NtStatus = status(0xC000_0225);
pub const WMI_ALREADY_ENABLED: NtStatus = status(0xC000_0302);

pub const PASSIVE_LEVEL: u8 = 0;
pub const APC_LEVEL: u8 = 1;
pub const DISPATCH_LEVEL: u8 = 2;
pub const IPI_LEVEL: u8 = 14;
pub const HIGH_LEVEL: u8 = 15;

/// What does not happen within this time hangs, however busy the machine is.
pub const HANG_LIMIT: Duration = Duration::from_mins(1);

/// ALL_PROCESSOR_GROUPS.
const ALL_GROUPS: u16 = 0xFFFF;

/// The longest line for DbgPrint: a line of more than about 1,000 bytes ends the process. This leaves room for the
/// format.
const MAX_LINE: usize = 700;

/// UNICODE_STRING. Lengths are in bytes.
#[repr(C)]
pub struct UnicodeString {
    pub length: u16,
    pub maximum: u16,
    pub buffer: *const u16,
}

#[link(name = "ntoskrnl.exe", kind = "raw-dylib", modifiers = "+verbatim")]
unsafe extern "system" {
    pub fn DbgPrint(format: *const u8, ...) -> u32;
    fn KeQueryActiveProcessorCountEx(group: u16) -> u32;
    fn PsGetCurrentProcessId() -> Pointer;
    fn PsGetCurrentThreadId() -> Pointer;
}

#[link(name = "ntdll.dll", kind = "raw-dylib", modifiers = "+verbatim")]
unsafe extern "system" {
    fn RtlWaitOnAddress(address: *const c_void, compare: *const c_void, size: usize, timeout: *const i64) -> NtStatus;
    fn RtlWakeAddressAll(address: *const c_void);
}

/// Prints a line to the debugger.
pub fn print(line: &str) {
    let text: Vec<u8> = line.bytes().filter(|byte| *byte != 0).take(MAX_LINE).collect();
    let text = CString::new(text).unwrap_or_default();
    // SAFETY: the format has one string, and both strings end with NUL.
    unsafe { DbgPrint(c"lab: %s\n".as_ptr().cast(), text.as_ptr()) };
}

/// Returns the text of a UNICODE_STRING.
///
/// # Safety
/// The pointer is null or points to a valid string.
pub unsafe fn text(string: *const UnicodeString) -> String {
    // SAFETY: the caller guarantees null or a valid string.
    let Some(string) = (unsafe { string.as_ref() }) else { return String::new() };
    if string.buffer.is_null() {
        return String::new();
    }
    // SAFETY: a valid string has that many bytes.
    let units = unsafe { std::slice::from_raw_parts(string.buffer, usize::from(string.length / 2)) };
    String::from_utf16_lossy(units)
}

pub fn processor_count() -> u32 {
    // SAFETY: the function has no preconditions.
    unsafe { KeQueryActiveProcessorCountEx(ALL_GROUPS) }
}

/// Returns the processor of Wine on which this thread runs now.
pub fn current_processor() -> u32 {
    // SAFETY: the function has no preconditions.
    unsafe { GetCurrentProcessorNumber() }
}

pub fn current_thread() -> u32 {
    // SAFETY: the function has no preconditions.
    unsafe { GetCurrentThreadId() }
}

/// Returns the process that this thread works for: during a request, the client's.
pub fn current_process() -> u32 {
    // SAFETY: the function has no preconditions.
    let id = unsafe { PsGetCurrentProcessId() };
    u32::try_from(id.addr()).unwrap_or_default()
}

/// Returns the thread that this thread works for: during a request, the client's.
pub fn client_thread() -> u32 {
    // SAFETY: the function has no preconditions.
    let id = unsafe { PsGetCurrentThreadId() };
    u32::try_from(id.addr()).unwrap_or_default()
}

/// Opens a process, to learn when it ends. Returns None if there is no such process.
pub fn open_process(process: u32) -> Option<usize> {
    // SAFETY: the function has no preconditions.
    let handle = unsafe { OpenProcess(PROCESS_SYNCHRONIZE, 0, process) };
    (!handle.is_null()).then(|| handle.expose_provenance())
}

/// Returns whether a process of [`open_process`] has ended.
pub fn has_ended(process: usize) -> bool {
    // SAFETY: the function has no preconditions; it rejects an invalid handle.
    unsafe { WaitForSingleObject(ptr::with_exposed_provenance_mut(process), 0) == WAIT_OBJECT_0 }
}

/// Closes the handle of a process.
pub fn close_process(process: usize) {
    // SAFETY: the handle is of `open_process`, and is closed once.
    unsafe { CloseHandle(ptr::with_exposed_provenance_mut(process)) };
}

/// Restricts this thread to the processors of the mask. Returns the previous mask, or 0 on failure.
pub fn set_affinity(mask: usize) -> usize {
    // SAFETY: the function has no preconditions; the handle is a constant.
    let thread = unsafe { GetCurrentThread() };
    // SAFETY: the handle is this thread's, and an invalid mask is refused.
    unsafe { SetThreadAffinityMask(thread, mask) }
}

/// Returns the value and the frequency of the performance counter.
pub fn performance_counter() -> (i64, i64) {
    let (mut value, mut frequency) = (0, 0);
    // SAFETY: the variable is writable.
    unsafe { QueryPerformanceCounter(&raw mut value) };
    // SAFETY: the variable is writable.
    unsafe { QueryPerformanceFrequency(&raw mut frequency) };
    (value, frequency)
}

/// Returns the time-stamp counter.
pub fn time_stamp() -> u64 {
    // SAFETY: every x86-64 processor has the instruction.
    unsafe { std::arch::x86_64::_rdtsc() }
}

const NANOSECONDS: u128 = 1_000_000_000;

/// Returns the frequency of the time-stamp counter in ticks per second, at least 1.
fn ticks_per_second() -> u128 {
    const MEASURED: Duration = Duration::from_millis(50);
    static MEASUREMENT: OnceLock<u128> = OnceLock::new();
    *MEASUREMENT.get_or_init(|| {
        let (begin, first) = (Instant::now(), time_stamp());
        thread::sleep(MEASURED);
        let ticks = u128::from(time_stamp().saturating_sub(first));
        (ticks * NANOSECONDS / begin.elapsed().as_nanos().max(1)).max(1)
    })
}

/// Returns the number of ticks of the time-stamp counter in `time`.
pub fn ticks(time: Duration) -> u64 {
    u64::try_from(ticks_per_second() * time.as_nanos() / NANOSECONDS).unwrap_or(u64::MAX)
}

/// Returns the duration of `ticks` of the time-stamp counter.
pub fn duration(ticks: u64) -> Duration {
    let nanoseconds = u128::from(ticks) * NANOSECONDS / ticks_per_second();
    Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
}

/// Waits until the number differs from `known`, for `limit` at the longest. The wait can end early.
pub fn wait_for_change(number: &AtomicU32, known: u32, limit: Duration) {
    // In units of 100 ns; negative values are relative.
    let timeout = i64::try_from(limit.as_nanos() / 100).map_or(i64::MIN, |units| -units);
    let (address, compare) = (ptr::from_ref(number).cast(), (&raw const known).cast());
    // SAFETY: both values are readable, with the given size, during the wait.
    unsafe { RtlWaitOnAddress(address, compare, size_of::<u32>(), &raw const timeout) };
}

/// Wakes the threads that wait for the number to change.
pub fn wake(number: &AtomicU32) {
    // SAFETY: the address is not accessed.
    unsafe { RtlWakeAddressAll(ptr::from_ref(number).cast()) };
}

/// Returns the address of an export of a loaded module.
pub fn export(module: &str, name: &str) -> Option<usize> {
    let (module, name) = (CString::new(module).ok()?, CString::new(name).ok()?);
    // SAFETY: the name ends with NUL.
    let module = unsafe { GetModuleHandleA(module.as_ptr().cast()) };
    if module.is_null() {
        return None;
    }
    // SAFETY: the module is loaded, and Wine's kernel modules stay loaded; the name ends with NUL.
    let address = unsafe { GetProcAddress(module, name.as_ptr().cast()) };
    address.map(|function| function as *const () as usize)
}

/// Reserves addresses that nothing else uses and that fault on access. Returns null if there are none.
pub fn reserve(size: usize) -> Pointer {
    // SAFETY: this reserves new memory only.
    unsafe { VirtualAlloc(ptr::null(), size, MEM_RESERVE, PAGE_NOACCESS) }
}

/// Makes memory of an image readable, writable and executable.
pub fn make_writable(addresses: &std::ops::Range<usize>) {
    let (start, mut before) = (ptr::with_exposed_provenance::<c_void>(addresses.start), 0);
    // SAFETY: this changes only the protection of mapped memory, and takes no access away.
    unsafe { VirtualProtect(start, addresses.len(), PAGE_EXECUTE_READWRITE, &raw mut before) };
}

/// Writes to memory that may be read-only or code.
///
/// # Safety
/// The bytes at `at` are mapped, no other thread accesses them now, and the new bytes are valid for the program.
pub unsafe fn write_code(at: *mut u8, bytes: &[u8]) {
    let mut before = 0;
    // SAFETY: this changes only the protection of mapped memory.
    unsafe { VirtualProtect(at.cast(), bytes.len(), PAGE_EXECUTE_READWRITE, &raw mut before) };
    // SAFETY: the caller guarantees the memory at `at`; `bytes` belong to the lab.
    unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), at, bytes.len()) };
    // SAFETY: this restores the previous protection.
    unsafe { VirtualProtect(at.cast(), bytes.len(), before, &raw mut before) };
}
