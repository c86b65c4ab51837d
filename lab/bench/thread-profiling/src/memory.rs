//! The memory to which the handle of a profile points. The lab writes it: it is a file that this program maps.

#![expect(unsafe_code, reason = "calls to Windows")]

use crate::lab;
use bench_protocol::{HandleTarget, thread_memory};
use std::{
    cell::RefCell,
    fs::{self, File},
    io,
    os::windows::io::AsRawHandle,
    ptr,
};
use windows_sys::Win32::{
    Foundation::{CloseHandle, HANDLE},
    System::{
        Memory::{
            CreateFileMappingW, FILE_MAP_READ, FILE_MAP_WRITE, MEM_RELEASE, MEM_RESERVE, MEMORY_MAPPED_VIEW_ADDRESS,
            MapViewOfFile, PAGE_NOACCESS, PAGE_READWRITE, UnmapViewOfFile, VirtualAlloc, VirtualFree,
        },
        Threading::{GetCurrentProcessId, GetCurrentThreadId},
    },
};

/// Size of THREAD_PERFORMANCE_DATA (public symbols of ntdll).
const SIZE: usize = 0x1C0;

/// Address space that cannot be read.
const RESERVED: usize = 0x1_0000;

thread_local! {
    /// The profile of this thread: the lab's number of it, and its memory.
    static PROFILE: RefCell<Option<(u64, Memory)>> = const { RefCell::new(None) };
}

/// The memory of a profile.
pub enum Memory {
    /// None: the handle is the lab's number.
    Nothing,
    /// Address space without memory.
    Reserved(HANDLE),
    /// A mapped file.
    Mapped(HANDLE),
}

impl Memory {
    /// Returns the memory that the script wants.
    pub fn new() -> io::Result<Self> {
        match lab::script().scheduling.handle {
            HandleTarget::Nothing => Ok(Self::Nothing),
            HandleTarget::Unreadable => {
                // SAFETY: a new allocation at any address.
                let address = unsafe { VirtualAlloc(ptr::null(), RESERVED, MEM_RESERVE, PAGE_NOACCESS) };
                if address.is_null() { Err(io::Error::last_os_error()) } else { Ok(Self::Reserved(address)) }
            }
            _ => map().map(Self::Mapped),
        }
    }

    /// Keeps the memory until the profile ends, and returns the handle.
    pub fn keep(self, number: u64) -> HANDLE {
        let handle = self.handle(number);
        PROFILE.replace(Some((number, self)));
        handle
    }

    fn handle(&self, number: u64) -> HANDLE {
        match self {
            Self::Nothing => ptr::without_provenance_mut(usize::try_from(number).unwrap_or_default()),
            Self::Reserved(address) | Self::Mapped(address) => *address,
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        match self {
            Self::Nothing => {}
            Self::Reserved(address) => {
                // SAFETY: allocated by `new`, and freed once. Only programs that use a handle after its end have it.
                unsafe { VirtualFree(*address, 0, MEM_RELEASE) };
            }
            Self::Mapped(address) => {
                // SAFETY: mapped by `map`, and unmapped once, as above.
                unsafe { UnmapViewOfFile(MEMORY_MAPPED_VIEW_ADDRESS { Value: *address }) };
                // The lab, which may have it open, removes it otherwise.
                let _ = fs::remove_file(file());
            }
        }
    }
}

fn file() -> String {
    // SAFETY: the function has no preconditions.
    let process = unsafe { GetCurrentProcessId() };
    // SAFETY: the function has no preconditions.
    thread_memory(process, unsafe { GetCurrentThreadId() })
}

/// Maps the file of this thread.
fn map() -> io::Result<HANDLE> {
    let file = File::options().read(true).write(true).create(true).truncate(true).open(file())?;
    file.set_len(SIZE as u64)?;
    // SAFETY: the file is open, and the others are null or numbers.
    let mapping = unsafe { CreateFileMappingW(file.as_raw_handle(), ptr::null(), PAGE_READWRITE, 0, 0, ptr::null()) };
    if mapping.is_null() {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the mapping is open.
    let view = unsafe { MapViewOfFile(mapping, FILE_MAP_READ | FILE_MAP_WRITE, 0, 0, SIZE) };
    let error = io::Error::last_os_error();
    // SAFETY: opened above, and closed once; the view keeps the mapping.
    unsafe { CloseHandle(mapping) };
    if view.Value.is_null() { Err(error) } else { Ok(view.Value) }
}

/// Returns the lab's number of a handle. It rejects other numbers.
pub fn number(handle: HANDLE) -> u64 {
    PROFILE.with_borrow(|profile| match profile {
        Some((number, memory)) if memory.handle(*number) == handle => *number,
        _ => 0,
    })
}

/// Frees the memory of a profile that has ended.
pub fn free(handle: HANDLE) {
    let ended = PROFILE.with_borrow_mut(|profile| profile.take_if(|(number, memory)| memory.handle(*number) == handle));
    drop(ended);
}
