//! The threads that drivers created.

use crate::lock::lock;
use std::{
    collections::BTreeMap,
    sync::{Condvar, Mutex, PoisonError},
};

/// The running threads, and when the next one starts.
#[derive(Default)]
pub struct SystemThreads {
    /// The routines of the running threads, by the address of their start parameters.
    pub running: Mutex<BTreeMap<usize, usize>>,
    pub ended: Condvar,
    start_state: Mutex<StartState>,
    start_changed: Condvar,
}

/// When a new thread starts to run. Windows may choose any moment; the lab chooses the latest that does not depend on
/// other threads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StartState {
    /// Immediately.
    #[default]
    Now,
    /// When its driver has referenced or closed a handle.
    Referenced,
    /// When its driver waits for a handle or is unloaded, because the reference to the thread has failed.
    WaitedFor,
}

impl SystemThreads {
    /// Moves to another state, if the current state is in `from`.
    pub fn advance(&self, from: &[StartState], to: StartState) {
        let mut state = lock(&self.start_state);
        if from.contains(&*state) {
            *state = to;
            self.start_changed.notify_all();
        }
    }

    /// Waits until new threads may run.
    pub fn wait_for_start(&self) {
        let held = |state: &mut StartState| *state != StartState::Now;
        drop(self.start_changed.wait_while(lock(&self.start_state), held).unwrap_or_else(PoisonError::into_inner));
    }
}
