//! The threads of programs that a test schedules on the processors, and the hardware counters that a driver configured
//! for their profiles.

use bench_protocol::Scheduling;
use scheduler::{ConfigureError, Scheduler, ThreadId};
use std::{
    collections::BTreeMap,
    fs::File,
    sync::{Condvar, Mutex, atomic::AtomicU64},
};

/// Who configured the counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// A driver of this lab.
    Driver,
    /// A driver that only the test knows.
    Another,
}

/// The threads of programs.
#[derive(Default)]
pub struct Threads {
    /// The state, for one call at a time.
    pub state: Mutex<ThreadState>,
    /// Processors with CR4.PCE set, as a mask.
    pub user_rdpmc: AtomicU64,
    /// Notified when a driver has served the request of a thread.
    pub served: Condvar,
}

/// The state of the threads.
pub struct ThreadState {
    /// The threads on the processors.
    pub scheduler: Scheduler,
    owner: Option<Owner>,
    /// Whether the test pretends that a thread profiles.
    pub pretends_profiling: bool,
    /// The programs by process ID, with an open handle of the process.
    pub programs: BTreeMap<u32, usize>,
    /// The memory in which the programs find the profiles of their threads.
    pub memories: BTreeMap<ThreadId, File>,
    /// The thread whose request a driver serves. No other thread is scheduled meanwhile: it could displace this one,
    /// which a processor at HIGH_LEVEL rules out.
    pub in_request: Option<ThreadId>,
}

impl Default for ThreadState {
    fn default() -> Self {
        Self {
            scheduler: Scheduler::new(Scheduling::default(), 1),
            owner: None,
            pretends_profiling: false,
            programs: BTreeMap::new(),
            memories: BTreeMap::new(),
            in_request: None,
        }
    }
}

impl ThreadState {
    /// Sets the indexes of the counters, or clears them if there are none. Returns the previous owner.
    ///
    /// # Errors
    /// There are too many counters, a thread profiles, or other counters are configured.
    pub fn configure(&mut self, owner: Owner, counters: &[u64]) -> Result<Option<Owner>, ConfigureError> {
        if self.pretends_profiling {
            return Err(ConfigureError::AlreadyEnabled);
        }
        self.scheduler.configure(counters)?;
        Ok(std::mem::replace(&mut self.owner, (!counters.is_empty()).then_some(owner)))
    }

    /// Returns who configured the counters.
    #[must_use]
    pub const fn owner(&self) -> Option<Owner> {
        self.owner
    }

    /// Records that the driver is gone whose configuration stands. Returns whether there is one.
    pub fn forget_driver(&mut self) -> bool {
        let left = self.owner.take_if(|owner| *owner == Owner::Driver).is_some();
        if left {
            // While a thread profiles, the configuration stays, as in Windows.
            let _ = self.scheduler.configure(&[]);
        }
        left
    }
}

/// Returns the thread with this number.
#[must_use]
pub fn thread_id(process: u32, thread: u32) -> ThreadId {
    ThreadId(u64::from(process) << u32::BITS | u64::from(thread))
}

/// Returns the process and the number of a thread.
#[must_use]
pub fn numbers(thread: ThreadId) -> (u32, u32) {
    let half = |number: u64| u32::try_from(number & u64::from(u32::MAX)).unwrap_or_default();
    (half(thread.0 >> u32::BITS), half(thread.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_has_an_owner_whom_windows_does_not_know() {
        let mut state = ThreadState::default();
        assert_eq!(state.configure(Owner::Driver, &[0, 5]), Ok(None));
        assert_eq!(state.configure(Owner::Another, &[1]), Err(ConfigureError::AlreadyEnabled));
        assert_eq!((state.owner(), state.scheduler.configured()), (Some(Owner::Driver), &[0, 5][..]));
        assert_eq!(state.configure(Owner::Driver, &[]), Ok(Some(Owner::Driver)));
        assert_eq!(state.configure(Owner::Another, &[1]), Ok(None));
        assert!(!state.forget_driver());
        assert_eq!(state.configure(Owner::Driver, &[]), Ok(Some(Owner::Another)));
        assert_eq!(state.configure(Owner::Driver, &[2]), Ok(None));
        assert!(state.forget_driver() && !state.forget_driver() && state.scheduler.configured().is_empty());
    }

    #[test]
    fn a_pretended_profile_keeps_the_configuration() {
        let mut state = ThreadState::default();
        assert_eq!(state.configure(Owner::Driver, &[3]), Ok(None));
        state.pretends_profiling = true;
        for change in [&[][..], &[4]] {
            assert_eq!(state.configure(Owner::Driver, change), Err(ConfigureError::AlreadyEnabled));
        }
        assert_eq!((state.owner(), state.scheduler.configured()), (Some(Owner::Driver), &[3][..]));
    }

    #[test]
    fn threads_of_different_processes_differ() {
        assert_ne!(thread_id(1, 2), thread_id(2, 1));
        assert_eq!(numbers(thread_id(u32::MAX, 7)), (u32::MAX, 7));
    }
}
