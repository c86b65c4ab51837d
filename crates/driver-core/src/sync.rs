//! Atomics: core's, or loom's, which explore every interleaving of the threads.

#[cfg(loom)]
pub use loom::sync::atomic::AtomicPtr;

#[cfg(not(loom))]
pub use core::sync::atomic::AtomicPtr;
