//! The signal that wakes the thread that delivers the interrupts of a processor.

use crate::{lock::lock, nt};
use std::{
    sync::{
        Condvar, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

/// Wakes the thread that delivers the interrupts of a processor.
#[derive(Default)]
pub struct PmiSignal {
    state: Mutex<State>,
    progress: Condvar,
    /// Changes with each notification. The thread waits for this number, because condition variables have a resolution
    /// of milliseconds and overflows come faster.
    generation: AtomicU32,
}

#[derive(Clone, Copy, Default)]
struct State {
    /// The number of notifications.
    requested: u64,
    /// The number of the last notification that the thread has handled.
    handled: u64,
    stop: bool,
}

impl PmiSignal {
    /// Notifies the thread that an interrupt may be pending.
    pub fn notify(&self) {
        self.change(|state| state.requested += 1);
    }

    /// Notifies the thread and waits until it has delivered what is pending now. Returns false on timeout.
    pub fn notify_and_wait(&self) -> bool {
        self.notify_and_wait_up_to(nt::HANG_LIMIT)
    }

    /// As [`notify_and_wait`](Self::notify_and_wait), with another limit.
    pub fn notify_and_wait_up_to(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        let request = self.change(|state| {
            state.requested += 1;
            state.requested
        });
        let mut state = lock(&self.state);
        while state.handled < request {
            let Some(left) = deadline.checked_duration_since(Instant::now()) else { return false };
            state = self.progress.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    pub fn stop(&self) {
        self.change(|state| state.stop = true);
    }

    fn change<T>(&self, body: impl FnOnce(&mut State) -> T) -> T {
        let result = body(&mut lock(&self.state));
        self.generation.fetch_add(1, Ordering::SeqCst);
        nt::wake(&self.generation);
        result
    }

    /// Waits for a notification, for `limit` at the longest. Returns None if the thread must end.
    pub fn wait(&self, limit: Duration) -> Option<u64> {
        let generation = self.generation.load(Ordering::SeqCst);
        let State { requested, handled, stop } = *lock(&self.state);
        if requested == handled && !stop {
            nt::wait_for_change(&self.generation, generation, limit);
        }
        let State { requested, stop, .. } = *lock(&self.state);
        (!stop).then_some(requested)
    }

    pub fn handled(&self, request: u64) {
        lock(&self.state).handled = request;
        self.progress.notify_all();
    }
}
