//! A fast mutex, and what it guards.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::ops::{Deref, DerefMut};

use wdk_sys::ntddk::{ExAcquireFastMutex, ExReleaseFastMutex, KeInitializeEvent};
use wdk_sys::{_EVENT_TYPE, FAST_MUTEX};

/// FM_LOCK_BIT (wdm.h): the count of a mutex that nobody has.
const FREE: i32 = 1;

/// Guards a value of the image's own data, which is not paged.
pub struct FastMutex<T> {
    mutex: UnsafeCell<MaybeUninit<FAST_MUTEX>>,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached only through a guard, and there is one at a time
unsafe impl<T: Send> Sync for FastMutex<T> {}

impl<T> FastMutex<T> {
    /// Not to be locked before [`initialize`](Self::initialize).
    pub const fn new(value: T) -> Self {
        Self { mutex: UnsafeCell::new(MaybeUninit::zeroed()), value: UnsafeCell::new(value) }
    }

    /// ExInitializeFastMutex, which is inline in the WDK. Called once, by DriverEntry, before anyone locks.
    pub fn initialize(&self) {
        let mutex = self.mutex.get().cast::<FAST_MUTEX>();
        // SAFETY: all zero is a FAST_MUTEX, and nobody else knows of it yet
        let mutex = unsafe { &mut *mutex };
        mutex.Count = FREE;
        // SAFETY: a static lives in memory that is not paged, and it does not move
        unsafe { KeInitializeEvent(&raw mut mutex.Event, _EVENT_TYPE::SynchronizationEvent, 0) };
    }

    /// Waits for the mutex; the holder runs at APC_LEVEL. APC_LEVEL at most.
    pub fn lock(&self) -> Guard<'_, T> {
        // SAFETY: it was initialized, and every caller comes from a PASSIVE_LEVEL routine of the I/O manager
        unsafe { ExAcquireFastMutex(self.mutex.get().cast()) };
        Guard(self)
    }
}

/// Holds the mutex while it lives.
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
