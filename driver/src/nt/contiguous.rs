//! Memory that is contiguous in physical memory.

use core::ffi::c_void;
use core::sync::atomic::AtomicU64;

use pmu::debug_store::architectural::BUFFER_PAGE;
use wdk_sys::ntddk::{MmFreeContiguousMemory, MmGetPhysicalAddress};
use wdk_sys::{PAGE_READWRITE, PHYSICAL_ADDRESS, ULONG};

/// MM_ANY_NODE_OK (wdm.h).
const ANY_NODE_OK: ULONG = 0x8000_0000;

/// Words of a page.
const PAGE_WORDS: usize = BUFFER_PAGE as usize / 8;

// wdm.h of the WDK declares it, the headers of mingw-w64 do not. Its relatives allocate executable memory, which a
// kernel with memory integrity does not have.
#[link(name = "ntoskrnl.exe", kind = "raw-dylib", modifiers = "+verbatim")]
unsafe extern "C" {
    fn MmAllocateContiguousNodeMemory(
        bytes: u64,
        lowest: PHYSICAL_ADDRESS,
        highest: PHYSICAL_ADDRESS,
        boundary: PHYSICAL_ADDRESS,
        protect: ULONG,
        node: ULONG,
    ) -> *mut c_void;
}

/// Allocates zeroed pages; returns them with their physical address. `None` if no such pages are free.
///
/// # IRQL
/// At most DISPATCH_LEVEL.
pub fn allocate(pages: u16) -> Option<(*mut AtomicU64, u64)> {
    let address = |quad| PHYSICAL_ADDRESS { QuadPart: quad };
    let bytes = u64::from(pages) * u64::from(BUFFER_PAGE);
    // SAFETY: the call has no requirement but its IRQL
    let memory = unsafe {
        MmAllocateContiguousNodeMemory(bytes, address(0), address(i64::MAX), address(0), PAGE_READWRITE, ANY_NODE_OK)
    };
    if memory.is_null() {
        return None;
    }
    let words: *mut AtomicU64 = memory.cast();
    // SAFETY: the memory has this length, begins at a page and belongs to the driver alone
    unsafe { words.write_bytes(0, usize::from(pages) * PAGE_WORDS) };
    // SAFETY: the memory is resident
    let physical = unsafe { MmGetPhysicalAddress(memory) };
    // SAFETY: every bit pattern is a number
    Some((words, unsafe { physical.QuadPart }.cast_unsigned()))
}

/// Frees pages.
///
/// # Safety
/// [`allocate`] returned them, they are freed once, and neither code nor a processor uses them any more.
///
/// # IRQL
/// At most DISPATCH_LEVEL.
pub unsafe fn free(words: *mut AtomicU64) {
    // SAFETY: by this function's contract
    unsafe { MmFreeContiguousMemory(words.cast()) };
}
