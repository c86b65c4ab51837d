//! Registers that another program changed while the driver's counters counted.
//!
//! The driver keeps the values that it wrote and compares them with the registers: in each tick of a processor that
//! samples, every ten seconds, and before counts are read or counters started or stopped. A processor that loses its
//! registers in deep idle looks the same. The count of each counter that is concerned is marked as disturbed.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::counter_set::CounterSet;
use crate::cpu::Msr;

/// A register that does not have the value that the driver wrote.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Disturbance {
    /// Address of the register.
    pub register: u32,
    /// Value that was found.
    pub found: u64,
    /// Value that was expected; of a counter, the smallest possible one.
    pub expected: u64,
}

/// As a register: that of the counter itself, which only the interface knows.
pub(crate) const COUNTER: u32 = u32::MAX;

impl Disturbance {
    /// Creates the disturbance if the two values differ.
    pub(crate) fn of(register: Msr, found: u64, expected: u64) -> Option<Self> {
        (found != expected).then_some(Self { register: register.address(), found, expected })
    }
}

/// The first disturbance of a counter, if there is one. One processor or thread at a time accesses it.
#[derive(Debug, Default)]
pub struct DisturbanceCell {
    /// Address of the register, or 0: no counter has a register at address 0.
    register: AtomicU32,
    found: AtomicU64,
    expected: AtomicU64,
    /// Time at which it was found, or 0 if the finder had no clock.
    time: AtomicU64,
}

impl DisturbanceCell {
    pub(crate) const fn new() -> Self {
        Self {
            register: AtomicU32::new(0),
            found: AtomicU64::new(0),
            expected: AtomicU64::new(0),
            time: AtomicU64::new(0),
        }
    }

    /// Stores a disturbance that was found at `time`, unless there is an earlier one.
    #[inline]
    pub fn note(&self, disturbance: Disturbance, time: u64) {
        if self.register.load(Ordering::Relaxed) == 0 {
            self.set(disturbance, time);
        }
    }

    #[inline]
    fn set(&self, disturbance: Disturbance, time: u64) {
        self.found.store(disturbance.found, Ordering::Relaxed);
        self.expected.store(disturbance.expected, Ordering::Relaxed);
        self.time.store(time, Ordering::Relaxed);
        self.register.store(disturbance.register, Ordering::Relaxed);
    }

    /// Sets the time of a disturbance that was stored without one.
    pub(crate) fn stamp(&self, time: u64) {
        if self.time.load(Ordering::Relaxed) == 0 {
            self.time.store(time, Ordering::Relaxed);
        }
    }

    /// Returns the disturbance and the time at which it was found.
    #[must_use]
    pub fn get(&self) -> Option<(Disturbance, u64)> {
        let register = self.register.load(Ordering::Relaxed);
        let (found, expected) = (self.found.load(Ordering::Relaxed), self.expected.load(Ordering::Relaxed));
        (register != 0).then(|| (Disturbance { register, found, expected }, self.time.load(Ordering::Relaxed)))
    }

    /// Removes the disturbance.
    pub fn clear(&self) {
        self.register.store(0, Ordering::Relaxed);
    }
}

/// The disturbed counters of one processor, each with its first disturbance since they were last taken.
#[derive(Debug)]
pub struct Disturbances {
    /// Disturbed counters, as a set: those whose cells have a disturbance.
    counters: AtomicU32,
    /// How often counts were disturbed, or interrupted by a sleep.
    interruptions: AtomicU64,
    cells: [DisturbanceCell; CounterSet::MOST as usize],
}

impl Disturbances {
    pub(crate) const fn new() -> Self {
        Self {
            counters: AtomicU32::new(0),
            interruptions: AtomicU64::new(0),
            cells: [const { DisturbanceCell::new() }; CounterSet::MOST as usize],
        }
    }

    /// Returns how often counts were disturbed, or interrupted by a sleep. Counts that were read while the number was
    /// the same have no gap between them.
    pub(crate) fn interruptions(&self) -> u64 {
        self.interruptions.load(Ordering::Relaxed)
    }

    /// Notes that counts were interrupted.
    pub(crate) fn interrupt(&self) {
        self.interruptions.store(self.interruptions().wrapping_add(1), Ordering::Relaxed);
    }

    fn noted(&self) -> CounterSet {
        CounterSet::from_bits(self.counters.load(Ordering::Relaxed).into())
    }

    fn of(&self, counters: CounterSet) -> impl Iterator<Item = (u8, &DisturbanceCell)> {
        counters.iter().filter_map(|counter| Some((counter, self.cells.get(usize::from(counter))?)))
    }

    /// Notes that `counters` were found disturbed at `time`; 0 if the caller has no clock.
    #[inline]
    pub(crate) fn note(&self, counters: CounterSet, disturbance: Disturbance, time: u64) {
        self.interrupt();
        let noted = self.noted();
        self.counters.store(noted.or(counters).bits(), Ordering::Relaxed);
        self.of(counters.without(noted)).for_each(|(_, cell)| cell.set(disturbance, time));
    }

    /// Notes what an interrupt found. The next comparison adds the time.
    pub(crate) fn note_found(&self, found: Option<(CounterSet, Disturbance)>) {
        if let Some((counters, disturbance)) = found {
            self.note(counters, disturbance, 0);
        }
    }

    /// Notes a counter that went backwards, without the register. Not a call of [`note`](Self::note): a stop in an
    /// interrupt is the deepest path of the handler, and that would cost more stack.
    #[inline]
    pub(crate) fn note_backwards(&self, counter: u8, value: u64, last: u64) {
        self.interrupt();
        self.counters.store(self.noted().with(counter).bits(), Ordering::Relaxed);
        if let Some(cell) = self.cells.get(usize::from(counter)) {
            cell.note(Disturbance { register: COUNTER, found: value, expected: last }, 0);
        }
    }

    /// Sets the time of the disturbances that were noted without one.
    pub(crate) fn stamp(&self, time: u64) {
        self.of(self.noted()).for_each(|(_, cell)| cell.stamp(time));
    }

    /// Removes the disturbance of one of `counters`, and returns it with the counter and the time. `None` if none of
    /// them has one.
    pub(crate) fn take(&self, counters: CounterSet) -> Option<(u8, Disturbance, u64)> {
        for (counter, cell) in self.of(self.noted().and(counters)) {
            let others = self.noted().without(CounterSet::NONE.with(counter));
            self.counters.store(others.bits(), Ordering::Relaxed);
            let found = cell.get();
            cell.clear();
            if let Some((disturbance, time)) = found {
                return Some((counter, disturbance, time));
            }
        }
        None
    }
}
