//! A global allocator that keeps the alignment of a layout, over one that ignores it.
//!
//! The pool aligns to 16 bytes, and `wdk_alloc` asks it for the size alone, whatever the layout says. A layout with a
//! larger alignment gets a larger block: the address is rounded up inside it, and the word below it has the address of
//! the block.
//!
//! This file is also a module of a native test, so it uses only `core`.

use core::alloc::{GlobalAlloc, Layout};

/// MEMORY_ALLOCATION_ALIGNMENT (ntdef.h) on x64: the alignment of every block of the pool.
pub const POOL_ALIGNMENT: usize = 16;

/// An allocator whose blocks have the alignment of their layouts.
#[derive(Debug)]
pub struct Aligned<A>(pub A);

/// Returns the layout of a block in which a value of `layout`, which needs more than [`POOL_ALIGNMENT`], has room at
/// every address of the block. `None` if it is larger than the address space.
fn block(layout: Layout) -> Option<Layout> {
    // The block is aligned to 16 bytes, so that rounding up from behind it leaves room for the word.
    let size = layout.size().checked_add(layout.align())?;
    Layout::from_size_align(size, POOL_ALIGNMENT).ok()
}

/// Returns where the address of the block is kept.
const fn word_below(value: *mut u8) -> *mut *mut u8 {
    value.wrapping_sub(size_of::<*mut u8>()).cast()
}

// SAFETY: every block comes from `A` and goes back to it as it came; a value with a larger alignment is inside its
// block, behind the word with the address of the block
unsafe impl<A: GlobalAlloc> GlobalAlloc for Aligned<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= POOL_ALIGNMENT {
            // SAFETY: guaranteed by the caller
            return unsafe { self.0.alloc(layout) };
        }
        let Some(larger) = block(layout) else { return core::ptr::null_mut() };
        // SAFETY: the size is not 0, because the alignment is part of it
        let start = unsafe { self.0.alloc(larger) };
        if start.is_null() {
            return start;
        }
        let offset = layout.align() - start.addr() % layout.align();
        // SAFETY: the offset is at most the alignment, by which the block is larger
        let value = unsafe { start.add(offset) };
        // SAFETY: the offset is a multiple of 16 and not 0, because both addresses are: the word is in the block
        unsafe { word_below(value).write_unaligned(start) };
        value
    }

    unsafe fn dealloc(&self, value: *mut u8, layout: Layout) {
        if layout.align() <= POOL_ALIGNMENT {
            // SAFETY: guaranteed by the caller
            return unsafe { self.0.dealloc(value, layout) };
        }
        let Some(larger) = block(layout) else { return };
        // SAFETY: `alloc` wrote it there
        let start = unsafe { word_below(value).read_unaligned() };
        // SAFETY: `alloc` allocated the block with this layout
        unsafe { self.0.dealloc(start, larger) };
    }
}
