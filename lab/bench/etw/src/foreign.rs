//! Strings, GUIDs and clocks of Windows.

#![expect(unsafe_code, reason = "reads what the program points to")]

use bench_protocol::ProviderId;
use etw_model::LiveThread;
use std::{collections::BTreeMap, slice};
use windows_sys::Win32::Foundation::{CloseHandle, FILETIME, INVALID_HANDLE_VALUE};
use windows_sys::Win32::System::{
    Diagnostics::ToolHelp::{
        CreateToolhelp32Snapshot, PROCESSENTRY32W, Process32FirstW, Process32NextW, TH32CS_SNAPPROCESS,
        TH32CS_SNAPTHREAD, THREADENTRY32, Thread32First, Thread32Next,
    },
    Performance::{QueryPerformanceCounter, QueryPerformanceFrequency},
    SystemInformation::GetSystemTimePreciseAsFileTime,
    Threading::{ALL_PROCESSOR_GROUPS, GetActiveProcessorCount, GetCurrentProcess, TerminateProcess},
};
use windows_sys::core::GUID;

/// Exit code of a killed program.
const KILLED: u32 = 99;

/// Returns a string in UTF-16 with a zero.
pub fn wide(text: &str) -> Vec<u16> {
    text.encode_utf16().chain([0]).collect()
}

/// Returns a zero-terminated string; `None` for a null pointer.
///
/// # Safety
/// A pointer that is not null must be to a zero-terminated string.
pub unsafe fn text(pointer: *const u16) -> Option<String> {
    if pointer.is_null() {
        return None;
    }
    let mut length = 0;
    // SAFETY: the caller guarantees that a zero follows.
    while unsafe { *pointer.wrapping_add(length) } != 0 {
        length += 1;
    }
    // SAFETY: these units were read above.
    let units = unsafe { slice::from_raw_parts(pointer, length) };
    Some(String::from_utf16_lossy(units))
}

/// Returns the bytes of a GUID in memory.
pub fn bytes(guid: &GUID) -> ProviderId {
    let mut id = ProviderId::default();
    let fields = [&guid.data1.to_le_bytes()[..], &guid.data2.to_le_bytes(), &guid.data3.to_le_bytes(), &guid.data4];
    for (to, from) in id.iter_mut().zip(fields.concat()) {
        *to = from;
    }
    id
}

/// Returns the GUID with these bytes in memory.
pub const fn guid(id: ProviderId) -> GUID {
    let [a0, a1, a2, a3, b0, b1, c0, c1, data4 @ ..] = id;
    let data1 = u32::from_le_bytes([a0, a1, a2, a3]);
    GUID { data1, data2: u16::from_le_bytes([b0, b1]), data3: u16::from_le_bytes([c0, c1]), data4 }
}

/// Returns the performance counter.
pub fn counter() -> u64 {
    let mut counter = 0;
    // SAFETY: the variable is writable.
    unsafe { QueryPerformanceCounter(&raw mut counter) };
    counter.cast_unsigned()
}

/// Returns the time of the performance counter in units of FILETIME.
pub fn file_time(time: u64) -> u64 {
    const UNITS: i128 = 10_000_000;
    let mut frequency = 0;
    // SAFETY: the variable is writable.
    unsafe { QueryPerformanceFrequency(&raw mut frequency) };
    let mut now = FILETIME::default();
    // SAFETY: the variable is writable.
    unsafe { GetSystemTimePreciseAsFileTime(&raw mut now) };
    let now = i128::from(u64::from(now.dwHighDateTime) << u32::BITS | u64::from(now.dwLowDateTime));
    let age = (i128::from(counter()) - i128::from(time)) * UNITS / i128::from(frequency.max(1));
    u64::try_from(now - age).unwrap_or_default()
}

/// Returns the number of active processors.
pub fn processors() -> u32 {
    // SAFETY: the function has no preconditions.
    unsafe { GetActiveProcessorCount(ALL_PROCESSOR_GROUPS) }
}

/// Ends the program as a kill does: nothing of it runs any more.
pub fn kill() {
    // SAFETY: the function has no preconditions.
    let this = unsafe { GetCurrentProcess() };
    // SAFETY: the handle is that of this program, which may end at any time.
    unsafe { TerminateProcess(this, KILLED) };
}

/// Returns the threads of every process that runs now; none if Windows does not tell.
pub fn threads() -> Vec<LiveThread> {
    // SAFETY: the function has no preconditions.
    let snapshot = unsafe { CreateToolhelp32Snapshot(TH32CS_SNAPPROCESS | TH32CS_SNAPTHREAD, 0) };
    if snapshot == INVALID_HANDLE_VALUE {
        return Vec::new();
    }
    let mut processes = BTreeMap::new();
    let mut process = PROCESSENTRY32W::default();
    process.dwSize = u32::try_from(size_of_val(&process)).unwrap_or_default();
    // SAFETY: the snapshot is open, and the entry has its size.
    let mut has_one = unsafe { Process32FirstW(snapshot, &raw mut process) } != 0;
    while has_one {
        let name = process.szExeFile.iter().copied().take_while(|unit| *unit != 0).collect::<Vec<u16>>();
        let of = (process.th32ParentProcessID, String::from_utf16_lossy(&name));
        processes.insert(process.th32ProcessID, of);
        // SAFETY: as above.
        has_one = unsafe { Process32NextW(snapshot, &raw mut process) } != 0;
    }
    let mut threads = Vec::new();
    let mut thread = THREADENTRY32::default();
    thread.dwSize = u32::try_from(size_of_val(&thread)).unwrap_or_default();
    // SAFETY: the snapshot is open, and the entry has its size.
    let mut has_one = unsafe { Thread32First(snapshot, &raw mut thread) } != 0;
    while has_one {
        if let Some((parent, name)) = processes.get(&thread.th32OwnerProcessID) {
            let (process, name) = (thread.th32OwnerProcessID, name.clone());
            threads.push(LiveThread { process, thread: thread.th32ThreadID, parent: *parent, name });
        }
        // SAFETY: as above.
        has_one = unsafe { Thread32Next(snapshot, &raw mut thread) } != 0;
    }
    // SAFETY: the snapshot is open and is closed once.
    unsafe { CloseHandle(snapshot) };
    threads
}
