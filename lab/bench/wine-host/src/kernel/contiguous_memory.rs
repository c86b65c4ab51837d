//! MmAllocateContiguousNodeMemory and its relatives: nonpaged memory with a physical address, which a processor can
//! write to. It is a block of the pool with a tag of its own.

use crate::{
    kernel::{irql, nodes, pool},
    nt::{DISPATCH_LEVEL, Pointer},
    violation::{self, catch_panic},
};
use host_memory::contiguous;
use std::ptr;
use windows_sys::Win32::System::Memory::PAGE_READWRITE;

/// The tag of the blocks.
const TAG: u32 = u32::from_le_bytes(*b"Cont");

/// MM_ANY_NODE_OK.
const ANY_NODE_OK: u32 = 0x8000_0000;

/// Implements MmAllocateContiguousNodeMemory for any addresses, without a boundary. The contents are undefined.
pub extern "system" fn allocate(
    bytes: usize,
    lowest: u64,
    highest: u64,
    boundary: u64,
    protect: u32,
    node: u32,
) -> Pointer {
    const NAME: &str = "MmAllocateContiguousNodeMemory";
    catch_panic(NAME, ptr::null_mut(), || {
        irql::check(NAME, DISPATCH_LEVEL);
        let is_known = protect == PAGE_READWRITE && node & !ANY_NODE_OK <= nodes::highest();
        if !is_known || bytes == 0 || (lowest, highest, boundary) != (0, i64::MAX.unsigned_abs(), 0) {
            violation::other(format!(
                "{NAME} of {bytes:#x} bytes from {lowest:#x} to {highest:#x}, boundary {boundary:#x}, protection \
                 {protect:#x}, node {node:#x}"
            ));
            return ptr::null_mut();
        }
        let whole = bytes.next_multiple_of(contiguous::PAGE);
        let memory = pool::allocate_pages(NAME, whole, TAG);
        if !memory.is_null() {
            _ = contiguous::add(memory.expose_provenance() as u64, whole as u64);
        }
        memory
    })
}

/// Implements MmGetPhysicalAddress for that memory.
pub extern "system" fn physical_address(address: Pointer) -> u64 {
    catch_panic("MmGetPhysicalAddress", 0, || {
        contiguous::physical(address.addr() as u64).unwrap_or_else(|| {
            violation::other(format!("MmGetPhysicalAddress of {address:p}, which is not contiguous memory"));
            0
        })
    })
}

/// Implements MmFreeContiguousMemory.
pub extern "system" fn free(memory: Pointer) {
    const NAME: &str = "MmFreeContiguousMemory";
    catch_panic(NAME, (), || {
        irql::check(NAME, DISPATCH_LEVEL);
        let linear = memory.addr() as u64;
        match contiguous::physical(linear) {
            Some(physical) => contiguous::remove(physical),
            None => return violation::other(format!("{NAME} of {memory:p}, which is not contiguous memory")),
        }
        pool::free_pages(NAME, memory, TAG);
    });
}
