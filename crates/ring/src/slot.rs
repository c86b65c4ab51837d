//! A value that one at a time uses.

#![expect(unsafe_code, reason = "a claim, not the compiler, keeps two from using the value")]

use core::fmt;
use core::mem::MaybeUninit;
use core::sync::atomic::Ordering;

use crate::sync::{AtomicU8, UnsafeCell};

/// Nothing is in it.
const EMPTY: u8 = 0;

/// A value is in it, and nobody uses it.
const FULL: u8 = 1;

/// Somebody uses it, or puts it in, or takes it out.
const CLAIMED: u8 = 2;

/// A place for a value that is used by one at a time. Who comes while another uses it is told so, and does not wait.
pub struct Slot<T> {
    state: AtomicU8,
    value: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: the value is touched by who has claimed the slot alone, and may be so from any thread
unsafe impl<T: Send> Sync for Slot<T> {}

// SAFETY: it owns its value
unsafe impl<T: Send> Send for Slot<T> {}

/// Has claimed a slot; leaves it in a state when it is dropped, by whatever way.
struct Claim<'a> {
    state: &'a AtomicU8,
    leaves: u8,
}

impl<'a> Claim<'a> {
    #[inline]
    fn new(state: &'a AtomicU8, from: u8, leaves: u8) -> Option<Self> {
        // Acquire: what was done to the value before is seen.
        state.compare_exchange(from, CLAIMED, Ordering::Acquire, Ordering::Relaxed).ok()?;
        Some(Self { state, leaves })
    }
}

impl Drop for Claim<'_> {
    #[inline]
    fn drop(&mut self) {
        // Release: what was done to the value is seen by the next.
        self.state.store(self.leaves, Ordering::Release);
    }
}

impl<T> Slot<T> {
    /// Nothing in it.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn empty() -> Self {
        Self { state: AtomicU8::new(EMPTY), value: UnsafeCell::new(MaybeUninit::uninit()) }
    }

    /// Nothing in it.
    #[cfg(loom)]
    #[must_use]
    pub fn empty() -> Self {
        Self { state: AtomicU8::new(EMPTY), value: UnsafeCell::new(MaybeUninit::uninit()) }
    }

    /// Puts a value in.
    ///
    /// # Errors
    /// The value, where the slot is not empty.
    pub fn put(&self, value: T) -> Result<(), T> {
        let Some(_claim) = Claim::new(&self.state, EMPTY, FULL) else { return Err(value) };
        self.value.with_mut(|place| {
            // SAFETY: claimed, so that nobody else touches the place
            let place = unsafe { &mut *place };
            place.write(value);
        });
        Ok(())
    }

    /// Takes the value out; `None` where there is none, or it is in use just now.
    pub fn take(&self) -> Option<T> {
        let _claim = Claim::new(&self.state, FULL, EMPTY)?;
        Some(self.value.with(|place| {
            // SAFETY: claimed, so that nobody else touches the place
            let place = unsafe { &*place };
            // SAFETY: it was full, and will be empty: the value moves out once
            unsafe { place.assume_init_read() }
        }))
    }

    /// Uses the value; `None` where there is none, or it is in use just now. Any IRQL. If `work` panics the value
    /// stays.
    #[inline]
    pub fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> Option<R> {
        let _claim = Claim::new(&self.state, FULL, FULL)?;
        self.value.with_mut(|place| {
            // SAFETY: claimed, so that nobody else touches the place
            let place = unsafe { &mut *place };
            // SAFETY: it was full
            Some(work(unsafe { place.assume_init_mut() }))
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
        drop(self.take());
    }
}
