//! How a fake Windows schedules threads, and what it refuses them.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};

use bench_protocol::Scheduling;
use scheduler::Scheduler;

use super::shared::Shared;

/// The threads of a machine.
pub struct FakeThreads {
    scheduler: Mutex<Scheduler>,
    /// How threads are scheduled.
    scheduling: Shared<Scheduling>,
    /// Whether a high priority is of no use.
    pub is_overloaded: Shared<bool>,
    /// Whether the thread is never switched out.
    pub never_switches: Shared<bool>,
    /// Function for thread profiling that Windows lacks.
    pub missing: Shared<Option<&'static str>>,
    /// Thousandths of a counter's value that Windows reports too much.
    pub excess: Shared<u64>,
    /// Build of Windows.
    pub build: Shared<Option<String>>,
    /// File with the verification record.
    pub record: Shared<PathBuf>,
    /// Number of records that were written.
    pub written: Shared<u32>,
}

impl FakeThreads {
    /// Creates the threads of a machine with so many processors.
    pub fn new(processors: u32) -> Self {
        let threads = Self {
            scheduler: Mutex::new(Scheduler::new(Scheduling::default(), processors)),
            scheduling: Shared::default(),
            is_overloaded: Shared::default(),
            never_switches: Shared::default(),
            missing: Shared::default(),
            excess: Shared::default(),
            build: Shared::default(),
            record: Shared::default(),
            written: Shared::default(),
        };
        threads.build.replace(Some("26100.4061".to_owned()));
        threads
    }

    pub(super) fn scheduler(&self) -> MutexGuard<'_, Scheduler> {
        self.scheduler.lock().unwrap()
    }

    /// Sets how threads are scheduled.
    pub fn schedule(&self, scheduling: Scheduling) {
        self.scheduling.set(scheduling);
        self.change(|_| {});
    }

    /// Schedules threads in another way, until the next call.
    pub(super) fn change(&self, change: impl FnOnce(&mut Scheduling)) {
        let mut scheduling = self.scheduling.borrow().clone();
        change(&mut scheduling);
        self.scheduler().set_behavior(scheduling);
    }
}
