//! Functions that drivers register to be called. Who takes one away waits until nobody is in it.

use crate::lock::lock;
use std::{
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// Handles are numbers that are no addresses of anything: from here on, each another.
const FIRST_HANDLE: usize = 0x7FFF_C0DE_0000_0010;
const STEP: usize = 0x10;

/// Why nothing was waited for.
#[derive(Debug, PartialEq, Eq)]
pub enum Wrong {
    /// Nothing is registered by this handle.
    Unknown,
    /// The function takes itself away: it would wait for its own end. It is away.
    Itself,
}

/// What is registered, in its order.
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
    what: T,
    /// It is away, but for those who are in it.
    away: bool,
    /// The threads in it.
    inside: Vec<u32>,
}

impl<T: Copy> Registry<T> {
    /// Nothing yet.
    #[must_use]
    pub const fn new() -> Self {
        let state = State { entries: Vec::new(), next: FIRST_HANDLE };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Registers, and gives back a handle.
    pub fn add(&self, what: T) -> usize {
        let mut state = lock(&self.state);
        let handle = state.next;
        state.next += STEP;
        state.entries.push(Entry { handle, what, away: false, inside: Vec::new() });
        handle
    }

    /// Takes away what is registered by this handle: nobody will be called any more, and nobody is.
    ///
    /// # Errors
    /// There is nothing to wait for, or the wait would have no end.
    pub fn remove(&self, handle: usize, thread: u32) -> Result<T, Wrong> {
        let mut state = lock(&self.state);
        let entry = state.entries.iter_mut().find(|entry| entry.handle == handle && !entry.away);
        let entry = entry.ok_or(Wrong::Unknown)?;
        entry.away = true;
        let what = entry.what;
        if entry.inside.contains(&thread) {
            return Err(Wrong::Itself);
        }
        state.tidy();
        while state.entries.iter().any(|entry| entry.handle == handle) {
            state = self.wait(state, None);
        }
        Ok(what)
    }

    /// Calls everything that is registered, one after the other, and not what is taken away meanwhile.
    pub fn call(&self, thread: u32, mut call: impl FnMut(T)) {
        let handles: Vec<usize> = lock(&self.state).entries.iter().map(|entry| entry.handle).collect();
        for handle in handles {
            let Some(what) = self.enter(handle, thread) else { continue };
            call(what);
            self.leave(handle, thread);
        }
    }

    fn enter(&self, handle: usize, thread: u32) -> Option<T> {
        let mut state = lock(&self.state);
        let entry = state.entries.iter_mut().find(|entry| entry.handle == handle && !entry.away)?;
        entry.inside.push(thread);
        Some(entry.what)
    }

    fn leave(&self, handle: usize, thread: u32) {
        let mut state = lock(&self.state);
        if let Some(entry) = state.entries.iter_mut().find(|entry| entry.handle == handle)
            && let Some(place) = entry.inside.iter().position(|inside| *inside == thread)
        {
            entry.inside.swap_remove(place);
        }
        state.tidy();
        self.changed.notify_all();
    }

    /// Takes away all of a kind, and gives back how many they were.
    pub fn forget(&self, kind: impl Fn(&T) -> bool) -> usize {
        let mut state = lock(&self.state);
        let of_kind = state.entries.iter_mut().filter(|entry| !entry.away && kind(&entry.what));
        let forgotten = of_kind.map(|entry| entry.away = true).count();
        state.tidy();
        forgotten
    }

    /// Waits until nobody is in one of a kind, at most so long; gives back whether somebody was.
    pub fn pass(&self, most: Duration, kind: impl Fn(&T) -> bool) -> bool {
        let deadline = Instant::now() + most;
        let mut waited = false;
        let mut state = lock(&self.state);
        while state.entries.iter().any(|entry| !entry.inside.is_empty() && kind(&entry.what)) {
            waited = true;
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = self.wait(state, Some(left));
        }
        waited
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State<T>>, most: Option<Duration>) -> MutexGuard<'a, State<T>> {
        match most {
            None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            Some(most) => self.changed.wait_timeout(state, most).unwrap_or_else(PoisonError::into_inner).0,
        }
    }
}

impl<T: Copy> Default for Registry<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> State<T> {
    fn tidy(&mut self) {
        self.entries.retain(|entry| !entry.away || !entry.inside.is_empty());
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
        registry.call(1, |what| called.push(what));
        called
    }

    #[test]
    fn what_is_registered_is_called_in_its_order_until_it_is_taken_away() {
        let registry = Registry::new();
        let handles = [5, 6, 5].map(|what| registry.add(what));
        assert_eq!(called(&registry), [5, 6, 5]);
        assert_eq!(registry.remove(handles[0], 1), Ok(5));
        assert_eq!(registry.remove(handles[0], 1), Err(Wrong::Unknown), "once");
        assert_eq!(called(&registry), [6, 5]);
        assert_eq!(registry.forget(|what| *what == 5), 1);
        assert_eq!((registry.forget(|what| *what == 5), called(&registry)), (0, vec![6]));
        assert_ne!(registry.add(7), handles[2], "no handle comes again");
    }

    #[test]
    fn what_is_taken_away_by_one_that_is_called_before_it_is_not_called() {
        let registry = Registry::new();
        let handles = [1, 2].map(|what| registry.add(what));
        let mut called = Vec::new();
        registry.call(1, |what| {
            called.push(what);
            assert_eq!(registry.remove(handles[1], 1), Ok(2));
        });
        assert_eq!(called, [1]);
    }

    #[test]
    fn who_takes_itself_away_does_not_wait_for_itself() {
        let registry = Registry::new();
        let handle = registry.add(1);
        registry.call(9, |_| assert_eq!(registry.remove(handle, 9), Err(Wrong::Itself)));
        assert!(called(&registry).is_empty());
        assert!(!registry.pass(SOON, |_| true));
    }

    #[test]
    fn taking_away_waits_for_who_is_inside() {
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
    fn what_is_forgotten_is_waited_for_no_longer_than_asked() {
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
            assert_eq!(registry.forget(|_| true), 1);
            assert!(!registry.pass(SOON, |what| *what == 2), "nobody is in such a one");
            assert!(registry.pass(SOON, |what| *what == 1));
            end.store(true, Ordering::SeqCst);
            registry.pass(Duration::from_secs(20), |_| true);
        });
        assert!(!registry.pass(SOON, |_| true));
    }
}
