//! The aligning allocator of the driver, over one that aligns to 16 bytes and no more, as the kernel's pool.

#![expect(unsafe_code, clippy::unwrap_used, reason = "a test of an allocator")]

#[path = "../../../driver/src/nt/aligned.rs"]
mod memory;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use memory::{Aligned, POOL_ALIGNMENT};
use proptest::prelude::*;

/// A pool whose blocks are never aligned to 32 bytes, whatever a layout says. Counts the blocks in use, and checks that
/// each is freed with the layout that it was allocated with.
struct Pool {
    in_use: AtomicUsize,
    /// The number of blocks that may still be allocated.
    left: AtomicUsize,
}

/// Bytes before each block: its size, and what moves it off the boundary of 32 bytes.
const BEFORE: usize = 16;

fn whole(size: usize) -> Layout {
    Layout::from_size_align(size + BEFORE, 4_096).unwrap()
}

// SAFETY: a block is inside one of the system's allocator, which is freed as it was allocated
unsafe impl GlobalAlloc for Pool {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_err() {
            return std::ptr::null_mut();
        }
        self.in_use.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the size is not 0
        let start = unsafe { System.alloc(whole(layout.size())) };
        // SAFETY: the block begins with room for this word
        unsafe { start.cast::<usize>().write_unaligned(layout.size()) };
        // SAFETY: the block has so many bytes before the part that is handed out
        unsafe { start.add(BEFORE) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        self.in_use.fetch_sub(1, Ordering::Relaxed);
        // SAFETY: `alloc` added so much
        let start = unsafe { block.sub(BEFORE) };
        // SAFETY: `alloc` wrote the size there
        let size = unsafe { start.cast::<usize>().read_unaligned() };
        assert_eq!(size, layout.size(), "freed as it was allocated");
        // SAFETY: `alloc` allocated it with this layout
        unsafe { System.dealloc(start, whole(size)) };
    }
}

fn pool(left: usize) -> Aligned<Pool> {
    Aligned(Pool { in_use: AtomicUsize::new(0), left: AtomicUsize::new(left) })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 4 } else { 200 }, ..ProptestConfig::default() })]

    #[test]
    fn every_block_has_its_alignment_and_its_size_and_is_freed(
        layouts in prop::collection::vec((1..5_000_usize, 0..13_u32), 1..30),
    ) {
        let allocator = pool(usize::MAX);
        let mut blocks = Vec::new();
        for (number, (size, power)) in (0_u8..).zip(layouts) {
            let layout = Layout::from_size_align(size, 1 << power).unwrap();
            // SAFETY: the size is not 0
            let block = unsafe { allocator.alloc(layout) };
            prop_assert_eq!(block.addr() % layout.align(), 0, "{:?}", layout);
            // SAFETY: the block has so many bytes
            unsafe { block.write_bytes(number, size) };
            blocks.push((block, layout, number));
        }
        for (block, layout, number) in blocks {
            // SAFETY: all of it was written above
            let bytes = unsafe { std::slice::from_raw_parts(block, layout.size()) };
            prop_assert!(bytes.iter().all(|byte| *byte == number), "another block overlaps {:?}", layout);
            // SAFETY: allocated with this layout, and freed once
            unsafe { allocator.dealloc(block, layout) };
        }
        prop_assert_eq!(allocator.0.in_use.into_inner(), 0);
    }
}

#[test]
fn a_block_that_the_pool_does_not_have_is_null() {
    let allocator = pool(0);
    for align in [1, POOL_ALIGNMENT, 64, 1 << 20] {
        // SAFETY: the size is not 0
        assert!(unsafe { allocator.alloc(Layout::from_size_align(8, align).unwrap()) }.is_null());
    }
    let largest = Layout::from_size_align(isize::MAX.cast_unsigned() - 63, 64).unwrap();
    // SAFETY: the size is not 0
    assert!(unsafe { pool(1).alloc(largest) }.is_null(), "with its alignment, it exceeds the address space");
}
