//! Vectors that report that memory is short, where those of `alloc` would abort.
//!
//! Everything in the engine that grows uses these functions, so that the driver has no panic for lack of memory.

use alloc::vec::Vec;

use protocol::ErrorCode;
use protocol::status::STATUS_INSUFFICIENT_RESOURCES;

use crate::reply::Refusal;

/// Memory is short.
pub const NO_MEMORY: Refusal = Refusal::new(STATUS_INSUFFICIENT_RESOURCES, ErrorCode::NoMemory);

/// Growth by one item that can fail.
pub trait TryPush<T> {
    fn try_push(&mut self, item: T) -> Result<(), Refusal> {
        self.try_place(item).map_err(|_| NO_MEMORY)
    }

    /// Appends the item, or returns it if memory is short.
    fn try_place(&mut self, item: T) -> Result<(), T>;
}

impl<T> TryPush<T> for Vec<T> {
    fn try_place(&mut self, item: T) -> Result<(), T> {
        // The second check lets the compiler remove the panic of `push`.
        if self.try_reserve(1).is_ok() && self.len() < self.capacity() {
            self.push(item);
            Ok(())
        } else {
            Err(item)
        }
    }
}

/// Returns an empty vector with room for `length` items.
pub fn try_with_capacity<T>(length: usize) -> Result<Vec<T>, Refusal> {
    let mut items = Vec::new();
    items.try_reserve_exact(length).map_err(|_| NO_MEMORY)?;
    Ok(items)
}

/// Collects the items. Their number is `expected`.
pub fn try_collect<T>(items: impl IntoIterator<Item = T>, expected: usize) -> Result<Vec<T>, Refusal> {
    let mut gathered = try_with_capacity(expected)?;
    items.into_iter().try_for_each(|item| gathered.try_push(item))?;
    Ok(gathered)
}
