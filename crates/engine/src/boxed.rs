//! A box that returns `None` when memory is low, where `Box::new` would crash the system.

use alloc::boxed::Box;
use core::ops::{Deref, DerefMut};

use pmu::try_reserved;

/// A value in its own allocation, where it stays when the box moves.
#[derive(Debug)]
pub struct Boxed<T>(Box<[T; 1]>);

impl<T> Boxed<T> {
    /// Moves the value to the heap, or returns `None` if memory is low.
    pub fn new(value: T) -> Option<Self> {
        let mut memory = try_reserved(1)?;
        // As in `pmu::try_vec`: comparisons that leave no path to a panic.
        if memory.len() < memory.capacity() {
            memory.push(value);
        }
        if memory.len() < memory.capacity() {
            drop(memory.into_iter()); // by value: no one else gets its address
            return None;
        }
        <Box<[T; 1]>>::try_from(memory.into_boxed_slice()).ok().map(Self)
    }
}

impl<T> Deref for Boxed<T> {
    type Target = T;

    fn deref(&self) -> &T {
        let [value] = &*self.0;
        value
    }
}

impl<T> DerefMut for Boxed<T> {
    fn deref_mut(&mut self) -> &mut T {
        let [value] = &mut *self.0;
        value
    }
}
