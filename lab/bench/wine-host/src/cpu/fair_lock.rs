//! The lock of a processor at one IRQL.

use crate::lock::lock;
use std::{
    collections::VecDeque,
    sync::{Condvar, Mutex, PoisonError},
};

/// A recursive, fair lock.
///
/// The HIGH_LEVEL lock of a processor is held by a thread at that level, by the handler of the profile interrupt, and
/// during each access to a register. The handler runs on its own thread; the lock makes it atomic for the interrupted
/// code, as on a real processor.
///
/// Threads acquire the lock in the order in which they started to wait. A real processor executes at least one
/// instruction between two interrupts, so even endless interrupts must not starve other threads.
#[derive(Debug, Default)]
pub struct FairLock {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The holder, and how often it acquired the lock.
    inside: Option<(u32, u32)>,
    /// The waiting threads, in order.
    waiting: VecDeque<u32>,
}

impl FairLock {
    /// Acquires the lock. The holder may acquire it again.
    pub fn acquire(&self, thread: u32) {
        let mut state = lock(&self.state);
        if let Some((_, depth)) = state.inside.as_mut().filter(|(holder, _)| *holder == thread) {
            *depth += 1;
            return;
        }
        state.waiting.push_back(thread);
        while state.inside.is_some() || state.waiting.front() != Some(&thread) {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.waiting.pop_front();
        state.inside = Some((thread, 1));
    }

    /// Undoes one [`acquire`](Self::acquire) of this thread. Does nothing if another thread holds the lock.
    pub fn release(&self, thread: u32) {
        let mut state = lock(&self.state);
        match &mut state.inside {
            Some((holder, depth)) if *holder == thread && *depth > 1 => *depth -= 1,
            Some((holder, _)) if *holder == thread => {
                state.inside = None;
                self.changed.notify_all();
            }
            _ => {}
        }
    }

    /// Waits until no other thread holds the lock.
    pub fn wait_until_free(&self, thread: u32) {
        self.acquire(thread);
        self.release(thread);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        sync::atomic::{AtomicBool, AtomicU32, Ordering},
        thread,
        time::Duration,
    };

    #[test]
    fn one_thread_at_a_time_holds_the_lock() {
        let (fair_lock, inside) = (FairLock::default(), AtomicU32::new(0));
        thread::scope(|scope| {
            for thread in 1..5 {
                let (fair_lock, inside) = (&fair_lock, &inside);
                scope.spawn(move || {
                    for _ in 0..500 {
                        fair_lock.acquire(thread);
                        fair_lock.acquire(thread);
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                        fair_lock.release(thread);
                        assert_eq!(inside.fetch_sub(1, Ordering::SeqCst), 1);
                        fair_lock.release(thread);
                    }
                });
            }
        });
    }

    #[test]
    fn wait_until_free_waits_for_the_holder() {
        let (fair_lock, left) = (FairLock::default(), AtomicBool::new(false));
        fair_lock.acquire(1);
        thread::scope(|scope| {
            let passer = scope.spawn(|| {
                fair_lock.wait_until_free(2);
                assert!(left.load(Ordering::SeqCst));
            });
            thread::sleep(Duration::from_millis(30));
            left.store(true, Ordering::SeqCst);
            fair_lock.release(1);
            passer.join().unwrap();
        });
    }

    #[test]
    fn only_the_holder_can_release_the_lock() {
        let fair_lock = FairLock::default();
        fair_lock.acquire(1);
        fair_lock.release(2);
        assert_eq!(lock(&fair_lock.state).inside, Some((1, 1)));
    }

    #[test]
    fn waiting_threads_precede_the_last_holder() {
        let (fair_lock, order) = (FairLock::default(), Mutex::new(Vec::new()));
        fair_lock.acquire(1);
        thread::scope(|scope| {
            for waiting in 2..5 {
                let (fair_lock, order) = (&fair_lock, &order);
                scope.spawn(move || {
                    fair_lock.acquire(waiting);
                    lock(order).push(waiting);
                    fair_lock.release(waiting);
                });
                while lock(&fair_lock.state).waiting.len() < usize::try_from(waiting).unwrap() - 1 {
                    thread::yield_now();
                }
            }
            fair_lock.release(1);
            fair_lock.acquire(1);
            assert_eq!(*lock(&order), [2, 3, 4]);
        });
    }
}
