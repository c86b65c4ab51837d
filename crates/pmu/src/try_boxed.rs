//! A slice on the heap, without a path to a panic.

use alloc::boxed::Box;
use alloc::vec::Vec;

/// Returns a slice of `length` items, each made from its index, or `None` if memory is low.
///
/// The driver is compiled for size, where the compiler removes the paths to a panic of `alloc` only if a comparison
/// beside them rules them out.
pub fn try_boxed<T>(length: usize, mut make: impl FnMut(usize) -> T) -> Option<Box<[T]>> {
    let mut items = try_reserved(length)?;
    while items.len() < length && items.len() < items.capacity() {
        items.push(make(items.len())); // does not grow
    }
    if items.len() < items.capacity() {
        drop(items.into_iter()); // by value: no one else gets its address
        return None;
    }
    Some(items.into_boxed_slice()) // does not shrink
}

/// Returns an empty vector with exactly this capacity, or `None` if memory is low.
///
/// Never inlined: so the compiler sees that nothing else knows the address of the vector, and compares its length.
#[inline(never)]
#[must_use]
pub fn try_reserved<T>(capacity: usize) -> Option<Vec<T>> {
    let mut items = Vec::new();
    items.try_reserve_exact(capacity).ok()?;
    Some(items)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slice_has_an_item_for_each_index() {
        assert_eq!(try_boxed(3, |index| index * 2).as_deref(), Some(&[0, 2, 4][..]));
        assert_eq!(try_boxed(0, |index| index).as_deref(), Some(&[][..]));
        assert_eq!(try_boxed(usize::MAX, |index| index), None);
    }
}
