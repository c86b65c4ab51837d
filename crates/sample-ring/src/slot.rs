//! Exclusive, non-blocking access to a value.

#![expect(unsafe_code, reason = "exclusive access to the value is checked at run time")]

use core::fmt;
use core::mem::MaybeUninit;
use core::sync::atomic::Ordering;

use crate::sync::{AtomicU8, UnsafeCell};

/// The slot holds no value.
const EMPTY: u8 = 0;

/// The slot holds a value that is not in use.
const FULL: u8 = 1;

/// The value is in use, being stored or being removed.
const CLAIMED: u8 = 2;

/// Holds a value that one caller at a time can use. A concurrent second caller fails instead of waiting.
pub struct Slot<T> {
    state: AtomicU8,
    value: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: only the holder of the claim accesses the value, and `T: Send` permits this on any thread
unsafe impl<T: Send> Sync for Slot<T> {}

// SAFETY: the slot owns its value, which is `Send`
unsafe impl<T: Send> Send for Slot<T> {}

/// Guard of a claimed slot: stores the final state on every exit path.
struct Claim<'a> {
    state: &'a AtomicU8,
    on_drop: u8,
}

impl<'a> Claim<'a> {
    #[inline]
    fn new(state: &'a AtomicU8, from: u8, on_drop: u8) -> Option<Self> {
        // Acquire: makes the previous holder's accesses to the value visible.
        state.compare_exchange(from, CLAIMED, Ordering::Acquire, Ordering::Relaxed).ok()?;
        Some(Self { state, on_drop })
    }
}

impl Drop for Claim<'_> {
    #[inline]
    fn drop(&mut self) {
        // Release: makes this holder's accesses to the value visible to the next one.
        self.state.store(self.on_drop, Ordering::Release);
    }
}

impl<T> Slot<T> {
    /// Creates an empty slot.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn empty() -> Self {
        Self { state: AtomicU8::new(EMPTY), value: UnsafeCell::new(MaybeUninit::uninit()) }
    }

    /// Creates an empty slot.
    #[cfg(loom)]
    #[must_use]
    pub fn empty() -> Self {
        Self { state: AtomicU8::new(EMPTY), value: UnsafeCell::new(MaybeUninit::uninit()) }
    }

    /// Stores a value.
    ///
    /// # Errors
    /// Returns the value if the slot is not empty.
    pub fn try_put(&self, value: T) -> Result<(), T> {
        let Some(_claim) = Claim::new(&self.state, EMPTY, FULL) else { return Err(value) };
        self.value.with_mut(|cell| {
            // SAFETY: the claim gives exclusive access
            let cell = unsafe { &mut *cell };
            cell.write(value);
        });
        Ok(())
    }

    /// Removes and returns the value; `None` if the slot is empty or in use.
    pub fn try_take(&self) -> Option<T> {
        let _claim = Claim::new(&self.state, FULL, EMPTY)?;
        Some(self.value.with(|cell| {
            // SAFETY: the claim gives exclusive access
            let cell = unsafe { &*cell };
            // SAFETY: the slot was full and becomes empty, so the value moves out exactly once
            unsafe { cell.assume_init_read() }
        }))
    }

    /// Calls `work` with the value; returns `None` if the slot is empty or in use. If `work` panics, the value stays.
    ///
    /// # IRQL
    /// Any.
    #[inline]
    pub fn try_with<R>(&self, work: impl FnOnce(&mut T) -> R) -> Option<R> {
        let _claim = Claim::new(&self.state, FULL, FULL)?;
        self.value.with_mut(|cell| {
            // SAFETY: the claim gives exclusive access
            let cell = unsafe { &mut *cell };
            // SAFETY: the slot was full, so the value is initialized
            Some(work(unsafe { cell.assume_init_mut() }))
        })
    }
}

impl<T> Default for Slot<T> {
    fn default() -> Self {
        Self::empty()
    }
}

impl<T> fmt::Debug for Slot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot").finish_non_exhaustive()
    }
}

impl<T> Drop for Slot<T> {
    fn drop(&mut self) {
        drop(self.try_take());
    }
}
