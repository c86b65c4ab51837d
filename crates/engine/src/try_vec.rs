//! Vectors that refuse where those of `alloc` would end the system: when memory is short.
//!
//! All that grows in the engine grows here, so that no way to a panic is left in the driver.

use alloc::vec::Vec;

use protocol::ErrorCode;
use protocol::status::STATUS_INSUFFICIENT_RESOURCES;

use crate::reply::Refusal;

/// Memory is short.
pub const NO_MEMORY: Refusal = Refusal::new(STATUS_INSUFFICIENT_RESOURCES, ErrorCode::NoMemory);

/// What finds room for one item more, or refuses.
pub trait TryPush<T> {
    fn try_push(&mut self, item: T) -> Result<(), Refusal> {
        self.try_place(item).map_err(|_| NO_MEMORY)
    }

    /// Gives the item back where it refuses.
    fn try_place(&mut self, item: T) -> Result<(), T>;
}

impl<T> TryPush<T> for Vec<T> {
    fn try_place(&mut self, item: T) -> Result<(), T> {
        // That there is room is asked again, so that the compiler knows, and leaves the way to a panic out.
        if self.try_reserve(1).is_ok() && self.len() < self.capacity() {
            self.push(item);
            Ok(())
        } else {
            Err(item)
        }
    }
}

/// Empty, with room for so many.
pub fn try_with_capacity<T>(length: usize) -> Result<Vec<T>, Refusal> {
    let mut items = Vec::new();
    items.try_reserve_exact(length).map_err(|_| NO_MEMORY)?;
    Ok(items)
}

/// The items, which are `expected`.
pub fn try_collect<T>(items: impl IntoIterator<Item = T>, expected: usize) -> Result<Vec<T>, Refusal> {
    let mut gathered = try_with_capacity(expected)?;
    items.into_iter().try_for_each(|item| gathered.try_push(item))?;
    Ok(gathered)
}
