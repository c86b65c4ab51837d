//! A fast mutex with the value that it guards.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::ops::{Deref, DerefMut};

use wdk_sys::ntddk::{ExAcquireFastMutex, ExReleaseFastMutex, KeInitializeEvent};
use wdk_sys::{_EVENT_TYPE, FAST_MUTEX};

/// FM_LOCK_BIT (wdm.h): the count of a free mutex.
const FREE: i32 = 1;

/// A value in the non-paged data of the image, guarded by a fast mutex.
pub struct FastMutex<T> {
    mutex: UnsafeCell<MaybeUninit<FAST_MUTEX>>,
    value: UnsafeCell<T>,
}

// SAFETY: only a guard gives access to the value, and one guard exists at a time
unsafe impl<T: Send> Sync for FastMutex<T> {}

impl<T> FastMutex<T> {
    /// Creates the mutex. It must not be locked before [`initialize`](Self::initialize).
    pub const fn new(value: T) -> Self {
        Self { mutex: UnsafeCell::new(MaybeUninit::zeroed()), value: UnsafeCell::new(value) }
    }

    /// Initializes the mutex as ExInitializeFastMutex does, which is inline in the WDK. Called once, by DriverEntry,
    /// before any lock.
    pub fn initialize(&self) {
        let mutex = self.mutex.get().cast::<FAST_MUTEX>();
        // SAFETY: all zero is a valid FAST_MUTEX, and no other code uses it yet
        let mutex = unsafe { &mut *mutex };
        mutex.Count = FREE;
        // SAFETY: a static is in non-paged memory and does not move
        unsafe { KeInitializeEvent(&raw mut mutex.Event, _EVENT_TYPE::SynchronizationEvent, 0) };
    }

    /// Waits for the mutex. The IRQL is APC_LEVEL while the guard lives.
    ///
    /// # IRQL
    /// At most APC_LEVEL.
    pub fn lock(&self) -> Guard<'_, T> {
        // SAFETY: the mutex is initialized, and all callers run below DISPATCH_LEVEL
        unsafe { ExAcquireFastMutex(self.mutex.get().cast()) };
        Guard(self)
    }
}

/// Guard: holds the mutex while it lives.
pub struct Guard<'a, T>(&'a FastMutex<T>);

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the guard holds the mutex
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard holds the mutex, and is borrowed exclusively
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        // SAFETY: this guard acquired it, on this thread
        unsafe { ExReleaseFastMutex(self.0.mutex.get().cast()) };
    }
}
