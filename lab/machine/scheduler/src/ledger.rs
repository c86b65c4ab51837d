//! The events that a thread executed.

use bench_protocol::{EventCount, ThreadLedger};
use std::collections::BTreeMap;

/// Event select, unit mask.
type Event = (u16, u16);

/// The events that a thread executed, and what happened to it. It does not depend on the counters of the processors.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ledger {
    user: BTreeMap<Event, u64>,
    kernel: BTreeMap<Event, u64>,
    interrupts: BTreeMap<Event, u64>,
    /// Number of switches from this thread to another.
    pub switches: u64,
    /// Number of switches after which it ran on another processor.
    pub migrations: u64,
    /// Cycles that it executed, without interrupts.
    pub cycles: u64,
}

fn count(events: &BTreeMap<Event, u64>, event: u16, umask: u16) -> u64 {
    events.get(&(event, umask)).copied().unwrap_or_default()
}

pub fn add(to: &mut BTreeMap<Event, u64>, events: &[EventCount]) {
    for (event, umask, count) in events {
        let total = to.entry((*event, *umask)).or_default();
        *total = total.wrapping_add(*count);
    }
}

impl Ledger {
    pub(crate) fn add_user(&mut self, events: &[EventCount]) {
        add(&mut self.user, events);
    }

    pub(crate) fn add_kernel(&mut self, events: &[EventCount]) {
        add(&mut self.kernel, events);
    }

    pub(crate) fn add_interrupt(&mut self, events: &[EventCount]) {
        add(&mut self.interrupts, events);
    }

    /// Returns the number of events in user mode.
    #[must_use]
    pub fn user(&self, event: u16, umask: u16) -> u64 {
        count(&self.user, event, umask)
    }

    /// Returns the number of events in kernel mode, without those of interrupts.
    #[must_use]
    pub fn kernel(&self, event: u16, umask: u16) -> u64 {
        count(&self.kernel, event, umask)
    }

    /// Returns the number of events of interrupts that arrived while the thread ran. The hardware counts them for the
    /// thread if it counts kernel mode.
    #[must_use]
    pub fn interrupts(&self, event: u16, umask: u16) -> u64 {
        count(&self.interrupts, event, umask)
    }

    /// Returns the ledger for a test.
    #[must_use]
    pub fn report(&self, process: u32, thread: u32) -> ThreadLedger {
        let list = |events: &BTreeMap<Event, u64>| {
            events.iter().map(|((event, umask), count)| (*event, *umask, *count)).collect()
        };
        ThreadLedger {
            process,
            thread,
            user: list(&self.user),
            kernel: list(&self.kernel),
            interrupts: list(&self.interrupts),
            switches: self.switches,
            migrations: self.migrations,
            cycles: self.cycles,
        }
    }
}
