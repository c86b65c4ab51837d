//! A cell for several threads.

use std::sync::{Mutex, MutexGuard};

/// A value that the threads of a recording share, with the methods of a cell.
#[derive(Debug, Default)]
pub struct Shared<T>(Mutex<T>);

impl<T> Shared<T> {
    /// Locks the value.
    pub fn borrow(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap()
    }

    /// Locks the value.
    pub fn borrow_mut(&self) -> MutexGuard<'_, T> {
        self.borrow()
    }

    /// Replaces the value and returns it.
    pub fn replace(&self, value: T) -> T {
        std::mem::replace(&mut *self.borrow(), value)
    }

    /// Replaces the value.
    pub fn set(&self, value: T) {
        self.replace(value);
    }
}

impl<T: Default> Shared<T> {
    /// Replaces the value with the default one and returns it.
    pub fn take(&self) -> T {
        self.replace(T::default())
    }
}

impl<T: Copy> Shared<T> {
    /// Returns the value.
    pub fn get(&self) -> T {
        *self.borrow()
    }
}

impl<T> From<T> for Shared<T> {
    fn from(value: T) -> Self {
        Self(Mutex::new(value))
    }
}
