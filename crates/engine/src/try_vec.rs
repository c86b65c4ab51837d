//! Vectors that return an error when memory is low, where those of `alloc` would crash the system.
//!
//! Every vector of the engine grows through these functions, so that the driver contains no path to a panic.

use alloc::vec::Vec;

use protocol::ErrorCode;
use protocol::status::STATUS_INSUFFICIENT_RESOURCES;

use crate::reply::Refusal;

/// The refusal if memory is low.
pub const NO_MEMORY: Refusal = Refusal::new(STATUS_INSUFFICIENT_RESOURCES, ErrorCode::NoMemory);

/// A collection that can refuse to grow.
pub trait TryPush<T> {
    fn try_push(&mut self, item: T) -> Result<(), Refusal> {
        self.try_place(item).map_err(|_| NO_MEMORY)
    }

    /// Appends the item, or returns it if memory is low.
    fn try_place(&mut self, item: T) -> Result<(), T>;
}

impl<T> TryPush<T> for Vec<T> {
    fn try_place(&mut self, item: T) -> Result<(), T> {
        // The second check lets the compiler see that `push` does not grow, so it removes the path to a panic.
        if self.try_reserve(1).is_ok() && self.len() < self.capacity() {
            self.push(item);
            Ok(())
        } else {
            Err(item)
        }
    }
}

/// Returns an empty vector with this capacity.
pub fn try_with_capacity<T>(length: usize) -> Result<Vec<T>, Refusal> {
    let mut items = Vec::new();
    items.try_reserve_exact(length).map_err(|_| NO_MEMORY)?;
    Ok(items)
}

/// Collects the items; `expected` is their number.
pub fn try_collect<T>(items: impl IntoIterator<Item = T>, expected: usize) -> Result<Vec<T>, Refusal> {
    let mut gathered = try_with_capacity(expected)?;
    items.into_iter().try_for_each(|item| gathered.try_push(item))?;
    Ok(gathered)
}
