//! Atomics and cells: core's, or loom's, which explore every interleaving of the threads.

#[cfg(loom)]
pub use loom::{
    cell::UnsafeCell,
    sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, fence},
};

#[cfg(not(loom))]
pub use core::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, fence};

/// core's `UnsafeCell` with the interface of loom's.
#[cfg(not(loom))]
#[derive(Debug)]
#[repr(transparent)]
pub struct UnsafeCell<T>(core::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> UnsafeCell<T> {
    pub const fn new(value: T) -> Self {
        Self(core::cell::UnsafeCell::new(value))
    }

    #[inline]
    pub fn with<R>(&self, work: impl FnOnce(*const T) -> R) -> R {
        work(self.0.get())
    }

    #[inline]
    pub fn with_mut<R>(&self, work: impl FnOnce(*mut T) -> R) -> R {
        work(self.0.get())
    }
}
