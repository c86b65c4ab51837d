//! A vector that never grows, without a path to a panic.

use alloc::vec::Vec;

/// Returns a vector of `length` items, each made from its index, or `None` if memory is low.
///
/// The driver is compiled for size, where the compiler removes the path to a panic of `push` only if a comparison
/// beside it rules it out. That of `into_boxed_slice` would stay.
pub fn try_vec<T>(length: usize, mut make: impl FnMut(usize) -> T) -> Option<Vec<T>> {
    let mut items = try_reserved(length)?;
    while items.len() < length && items.len() < items.capacity() {
        items.push(make(items.len())); // does not grow
    }
    Some(items)
}

/// Returns an empty vector with exactly this capacity, or `None` if memory is low.
///
/// Inlined, because it only compares what `reserved` returns.
#[inline]
#[must_use]
pub fn try_reserved<T>(capacity: usize) -> Option<Vec<T>> {
    let items = reserved(capacity);
    if items.capacity() >= capacity {
        return Some(items);
    }
    // It has no memory, which only the compiler does not know: freeing it would be more code for each type.
    core::mem::forget(items);
    None
}

/// Returns an empty vector with exactly this capacity, or with none if memory is low.
///
/// Never inlined: so the compiler sees that nothing else knows the address of the vector, and compares its length.
#[inline(never)]
fn reserved<T>(capacity: usize) -> Vec<T> {
    let mut items = Vec::new();
    let _ = items.try_reserve_exact(capacity);
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vector_has_an_item_for_each_index() {
        assert_eq!(try_vec(3, |index| index * 2), Some(vec![0, 2, 4]));
        assert_eq!(try_vec(0, |index| index), Some(vec![]));
        assert_eq!(try_vec(usize::MAX, |index| index), None);
    }
}
