//! Vectors that return an error when memory is low, where those of `alloc` would crash the system.
//!
//! Every vector of the engine grows through these functions, so that the driver contains no path to a panic.

use alloc::vec::Vec;

use pmu::try_reserved;
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
        if self.len() == self.capacity() {
            grow(self);
        }
        // This check lets the compiler see that `push` does not grow, so it removes the path to a panic.
        if self.len() < self.capacity() {
            self.push(item);
            Ok(())
        } else {
            Err(item)
        }
    }
}

/// Makes room for one more item, if there is memory. Never inlined: most of an inlined `try_push` would be this.
#[cold]
#[inline(never)]
fn grow<T>(items: &mut Vec<T>) {
    let _ = items.try_reserve(1);
}

/// Returns an empty vector with this capacity.
pub fn try_with_capacity<T>(length: usize) -> Result<Vec<T>, Refusal> {
    try_reserved(length).ok_or(NO_MEMORY)
}

/// Collects the items; `expected` is their number.
pub fn try_collect<T>(items: impl IntoIterator<Item = T>, expected: usize) -> Result<Vec<T>, Refusal> {
    let mut gathered = try_with_capacity(expected)?;
    items.into_iter().try_for_each(|item| gathered.try_push(item))?;
    Ok(gathered)
}
