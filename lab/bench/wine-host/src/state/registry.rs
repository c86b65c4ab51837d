//! Routines that drivers register. An unregistration waits until no thread is in the routine.

use crate::lock::lock;
use std::{
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// The first handle. Each handle is a new number that is not a mapped address.
const FIRST_HANDLE: usize = 0x7FFF_C0DE_0000_0010;
const HANDLE_STEP: usize = 0x10;

/// The reason why a removal did not wait.
#[derive(Debug, PartialEq, Eq)]
pub enum RemoveError {
    /// The handle is not registered.
    Unknown,
    /// A routine removes itself and would wait for its own end. It is removed.
    Reentrant,
}

/// The registered values, in order of registration.
#[derive(Debug)]
pub struct Registry<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

#[derive(Debug)]
struct State<T> {
    entries: Vec<Entry<T>>,
    next: usize,
}

#[derive(Debug)]
struct Entry<T> {
    handle: usize,
    value: T,
    /// Removed, but a thread may still be inside.
    removed: bool,
    /// The threads that are in the routine.
    inside: Vec<u32>,
}

impl<T: Copy> Registry<T> {
    /// Returns an empty registry.
    #[must_use]
    pub const fn new() -> Self {
        let state = State { entries: Vec::new(), next: FIRST_HANDLE };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Registers a value and returns its handle.
    pub fn add(&self, value: T) -> usize {
        let mut state = lock(&self.state);
        let handle = state.next;
        state.next += HANDLE_STEP;
        state.entries.push(Entry { handle, value, removed: false, inside: Vec::new() });
        handle
    }

    /// Removes the value of a handle. Afterwards no thread calls it or is in it.
    ///
    /// # Errors
    /// The handle is not registered, or the wait would never end.
    pub fn remove(&self, handle: usize, thread: u32) -> Result<T, RemoveError> {
        let mut state = lock(&self.state);
        let entry = state.entries.iter_mut().find(|entry| entry.handle == handle && !entry.removed);
        let entry = entry.ok_or(RemoveError::Unknown)?;
        entry.removed = true;
        let value = entry.value;
        if entry.inside.contains(&thread) {
            return Err(RemoveError::Reentrant);
        }
        state.purge();
        while state.entries.iter().any(|entry| entry.handle == handle) {
            state = self.wait(state, None);
        }
        Ok(value)
    }

    /// Calls every value in order, except those that are removed meanwhile.
    pub fn call(&self, thread: u32, mut call: impl FnMut(T)) {
        let handles: Vec<usize> = lock(&self.state).entries.iter().map(|entry| entry.handle).collect();
        for handle in handles {
            let Some(value) = self.enter(handle, thread) else { continue };
            call(value);
            self.leave(handle, thread);
        }
    }

    fn enter(&self, handle: usize, thread: u32) -> Option<T> {
        let mut state = lock(&self.state);
        let entry = state.entries.iter_mut().find(|entry| entry.handle == handle && !entry.removed)?;
        entry.inside.push(thread);
        Some(entry.value)
    }

    fn leave(&self, handle: usize, thread: u32) {
        let mut state = lock(&self.state);
        if let Some(entry) = state.entries.iter_mut().find(|entry| entry.handle == handle)
            && let Some(place) = entry.inside.iter().position(|inside| *inside == thread)
        {
            entry.inside.swap_remove(place);
        }
        state.purge();
        self.changed.notify_all();
    }

    /// Removes the values for which `kind` returns true. Returns their number.
    pub fn remove_where(&self, kind: impl Fn(&T) -> bool) -> usize {
        let mut state = lock(&self.state);
        let of_kind = state.entries.iter_mut().filter(|entry| !entry.removed && kind(&entry.value));
        let forgotten = of_kind.map(|entry| entry.removed = true).count();
        state.purge();
        forgotten
    }

    /// Waits until no thread is in a value for which `kind` returns true, for `limit` at the longest. Returns whether
    /// there was one.
    pub fn wait_until_idle(&self, limit: Duration, kind: impl Fn(&T) -> bool) -> bool {
        let deadline = Instant::now() + limit;
        let mut waited = false;
        let mut state = lock(&self.state);
        while state.entries.iter().any(|entry| !entry.inside.is_empty() && kind(&entry.value)) {
            waited = true;
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = self.wait(state, Some(left));
        }
        waited
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State<T>>, limit: Option<Duration>) -> MutexGuard<'a, State<T>> {
        match limit {
            None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            Some(limit) => self.changed.wait_timeout(state, limit).unwrap_or_else(PoisonError::into_inner).0,
        }
    }
}

impl<T: Copy> Default for Registry<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> State<T> {
    fn purge(&mut self) {
        self.entries.retain(|entry| !entry.removed || !entry.inside.is_empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        sync::atomic::{AtomicBool, Ordering},
        thread,
    };

    const SOON: Duration = Duration::from_millis(30);

    fn called(registry: &Registry<u32>) -> Vec<u32> {
        let mut called = Vec::new();
        registry.call(1, |value| called.push(value));
        called
    }

    #[test]
    fn values_are_called_in_order_until_they_are_removed() {
        let registry = Registry::new();
        let handles = [5, 6, 5].map(|value| registry.add(value));
        assert_eq!(called(&registry), [5, 6, 5]);
        assert_eq!(registry.remove(handles[0], 1), Ok(5));
        assert_eq!(registry.remove(handles[0], 1), Err(RemoveError::Unknown), "once");
        assert_eq!(called(&registry), [6, 5]);
        assert_eq!(registry.remove_where(|value| *value == 5), 1);
        assert_eq!((registry.remove_where(|value| *value == 5), called(&registry)), (0, vec![6]));
        assert_ne!(registry.add(7), handles[2], "handles are unique");
    }

    #[test]
    fn a_value_that_an_earlier_call_removes_is_not_called() {
        let registry = Registry::new();
        let handles = [1, 2].map(|value| registry.add(value));
        let mut called = Vec::new();
        registry.call(1, |value| {
            called.push(value);
            assert_eq!(registry.remove(handles[1], 1), Ok(2));
        });
        assert_eq!(called, [1]);
    }

    #[test]
    fn a_value_that_removes_itself_does_not_wait_for_itself() {
        let registry = Registry::new();
        let handle = registry.add(1);
        registry.call(9, |_| assert_eq!(registry.remove(handle, 9), Err(RemoveError::Reentrant)));
        assert!(called(&registry).is_empty());
        assert!(!registry.wait_until_idle(SOON, |_| true));
    }

    #[test]
    fn removal_waits_for_a_thread_inside() {
        let (registry, ended, inside) = (Registry::new(), AtomicBool::new(false), AtomicBool::new(false));
        let handle = registry.add(1);
        thread::scope(|scope| {
            scope.spawn(|| {
                registry.call(2, |_| {
                    inside.store(true, Ordering::SeqCst);
                    thread::sleep(SOON);
                    ended.store(true, Ordering::SeqCst);
                });
            });
            while !inside.load(Ordering::SeqCst) {
                thread::yield_now();
            }
            assert_eq!(registry.remove(handle, 1), Ok(1));
            assert!(ended.load(Ordering::SeqCst));
        });
    }

    #[test]
    fn the_wait_for_removed_values_has_a_limit() {
        let (registry, end) = (Registry::new(), AtomicBool::new(false));
        registry.add(1);
        thread::scope(|scope| {
            let (entered, enters) = std::sync::mpsc::channel();
            let (registry, end) = (&registry, &end);
            scope.spawn(move || {
                registry.call(2, |_| {
                    entered.send(()).unwrap();
                    while !end.load(Ordering::SeqCst) {
                        thread::yield_now();
                    }
                });
            });
            enters.recv().unwrap();
            assert_eq!(registry.remove_where(|_| true), 1);
            assert!(!registry.wait_until_idle(SOON, |value| *value == 2), "no thread is in such a value");
            assert!(registry.wait_until_idle(SOON, |value| *value == 1));
            end.store(true, Ordering::SeqCst);
            registry.wait_until_idle(Duration::from_secs(20), |_| true);
        });
        assert!(!registry.wait_until_idle(SOON, |_| true));
    }
}
