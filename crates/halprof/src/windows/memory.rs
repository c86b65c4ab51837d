//! Whether memory of this process can be read.

#![expect(unsafe_code, reason = "calls to Windows")]

use windows_sys::Win32::System::Memory::{
    MEM_COMMIT, MEMORY_BASIC_INFORMATION, PAGE_EXECUTE_READ, PAGE_EXECUTE_READWRITE, PAGE_EXECUTE_WRITECOPY,
    PAGE_GUARD, PAGE_READONLY, PAGE_READWRITE, PAGE_WRITECOPY, VirtualQuery,
};

/// Protections that allow reading.
const READABLE: u32 = PAGE_READONLY
    | PAGE_READWRITE
    | PAGE_WRITECOPY
    | PAGE_EXECUTE_READ
    | PAGE_EXECUTE_READWRITE
    | PAGE_EXECUTE_WRITECOPY;

/// Returns whether each of these bytes is committed and can be read without a fault.
pub(super) fn is_readable(address: usize, length: usize) -> bool {
    let Some(end) = address.checked_add(length) else { return false };
    let mut at = address;
    while at < end {
        let mut region = MEMORY_BASIC_INFORMATION::default();
        let pointer = std::ptr::without_provenance(at);
        // SAFETY: the address may be any, and the function writes the structure, whose size it gets.
        let written = unsafe { VirtualQuery(pointer, &raw mut region, size_of::<MEMORY_BASIC_INFORMATION>()) };
        let is_readable = region.Protect & READABLE != 0 && region.Protect & PAGE_GUARD == 0;
        let next = region.BaseAddress.addr().saturating_add(region.RegionSize);
        if written == 0 || region.State != MEM_COMMIT || !is_readable || next <= at {
            return false;
        }
        at = next;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use windows_sys::Win32::System::Memory::{
        MEM_RELEASE, MEM_RESERVE, PAGE_NOACCESS, VirtualAlloc, VirtualFree, VirtualProtect,
    };

    const PAGE: usize = 4096;

    #[test]
    fn memory_is_readable_up_to_the_first_page_that_is_not() {
        // SAFETY: a new allocation.
        let pages = unsafe { VirtualAlloc(std::ptr::null(), 4 * PAGE, MEM_RESERVE, PAGE_NOACCESS) };
        assert!(!pages.is_null() && !is_readable(pages.addr(), 1), "reserved");
        for page in [0, 1, 2] {
            // SAFETY: it commits a page of the allocation.
            let committed = unsafe { VirtualAlloc(pages.byte_add(page * PAGE), PAGE, MEM_COMMIT, PAGE_READWRITE) };
            assert!(!committed.is_null());
        }
        let mut before = 0;
        // SAFETY: pages of the allocation that nothing uses.
        unsafe {
            assert_ne!(VirtualProtect(pages.byte_add(PAGE), PAGE, PAGE_READONLY, &raw mut before), 0);
            assert_ne!(VirtualProtect(pages.byte_add(2 * PAGE), PAGE, PAGE_NOACCESS, &raw mut before), 0);
        }
        assert!(is_readable(pages.addr(), 2 * PAGE), "two regions");
        assert!(is_readable(pages.addr() + 2 * PAGE - 8, 8));
        assert!(!is_readable(pages.addr() + 2 * PAGE - 8, 9), "no access");
        // SAFETY: the same page.
        unsafe {
            assert_ne!(VirtualProtect(pages.byte_add(2 * PAGE), PAGE, PAGE_READWRITE | PAGE_GUARD, &raw mut before), 0);
        }
        assert!(!is_readable(pages.addr() + 2 * PAGE, 1), "a guard page");
        // SAFETY: nothing uses the allocation.
        assert_ne!(unsafe { VirtualFree(pages, 0, MEM_RELEASE) }, 0);
        assert!(!is_readable(pages.addr(), 1), "free");
        assert!(!is_readable(5, 8) && !is_readable(usize::MAX - 8, 64) && !is_readable(usize::MAX - 8, 8));
    }
}
