//! The memory of a ring's items.

#![expect(unsafe_code, reason = "owns memory that came with a function to free it")]

use alloc::alloc::{Layout, alloc, dealloc};
use core::ptr::NonNull;

/// A block of memory, which may be uninitialized, and the function that frees it.
#[derive(Debug)]
pub struct Memory {
    start: NonNull<u8>,
    bytes: usize,
    free: Free,
}

/// Frees the block of so many bytes at an address.
pub type Free = unsafe fn(start: NonNull<u8>, bytes: usize);

// SAFETY: the block belongs to the value, and any thread may free it (`new`)
unsafe impl Send for Memory {}

// SAFETY: a shared reference gives only the address and the size
unsafe impl Sync for Memory {}

impl Memory {
    /// Alignment of every block in bytes.
    pub const ALIGNMENT: usize = 16;

    /// Takes a block over.
    ///
    /// # Safety
    /// `start` is aligned to [`ALIGNMENT`](Self::ALIGNMENT); nothing else uses the `bytes` bytes there; `free` can free
    /// them once, on any thread.
    #[must_use]
    pub const unsafe fn new(start: NonNull<u8>, bytes: usize, free: Free) -> Self {
        Self { start, bytes, free }
    }

    /// Allocates from the global allocator. Returns `None` if memory is short, and for 0 bytes.
    #[must_use]
    pub fn allocate(bytes: usize) -> Option<Self> {
        /// Frees what `allocate` allocated.
        unsafe fn free(start: NonNull<u8>, bytes: usize) {
            if let Some(layout) = layout(bytes) {
                // SAFETY: guaranteed by the caller; it was allocated with this layout
                unsafe { dealloc(start.as_ptr(), layout) };
            }
        }
        // SAFETY: the size is not 0
        let start = NonNull::new(unsafe { alloc(layout(bytes)?) })?;
        // SAFETY: just allocated with this alignment; the global allocator frees on any thread
        Some(unsafe { Self::new(start, bytes, free) })
    }

    /// Returns the address of the first byte.
    pub(crate) const fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Returns the size in bytes.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Memory {
    // Never inlined: the audit of the driver knows the call through the pointer by this name.
    #[inline(never)]
    fn drop(&mut self) {
        // SAFETY: guaranteed by the caller of `new`; nothing uses the block any more
        unsafe { (self.free)(self.start, self.bytes) };
    }
}

fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes, Memory::ALIGNMENT).ok().filter(|_| bytes > 0)
}
