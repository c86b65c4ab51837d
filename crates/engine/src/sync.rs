//! Atomics that several processors use at the same time: core's, or loom's, which explore every interleaving.
//!
//! What only one processor accesses, at PROFILE_LEVEL, has core's atomics in either case.

#[cfg(loom)]
pub use loom::sync::atomic::AtomicU64;

#[cfg(not(loom))]
pub use core::sync::atomic::AtomicU64;

/// Makes an array of a value: of a constant, except under loom, whose atomics are made at run time.
macro_rules! array {
    ($value:expr; $count:expr) => {{
        #[cfg(not(loom))]
        let array = [const { $value }; $count];
        #[cfg(loom)]
        let array: [_; $count] = core::array::from_fn(|_| $value);
        array
    }};
}

/// Makes a constant function, except under loom.
macro_rules! const_fn {
    (const fn $name:ident() -> Self $body:block) => {
        #[cfg(not(loom))]
        const fn $name() -> Self $body

        #[cfg(loom)]
        fn $name() -> Self $body
    };
}

pub(crate) use {array, const_fn};
