//! Processors of one identity, as [`engine::Machine`].

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use engine::Machine;
use model::{CounterId, LedgerEntry, Mode, Processor, Selected};
use processors::Identity;

use crate::cpu::ModelCpu;

/// A machine: its processors, and a clock that tests turn.
pub struct Board {
    processors: Vec<ModelCpu>,
    active: AtomicU32,
    clock: AtomicU64,
    /// Interval of the timers, or 0 while they stand.
    timers: AtomicU32,
    ticks: Vec<AtomicU64>,
}

impl Board {
    /// `count` processors, all active, after reset.
    #[must_use]
    pub fn new(identity: &'static Identity, count: u32) -> Self {
        let processor = |_| {
            let dump = identity.cpuid();
            Processor::new(Box::new(move |leaf, subleaf| dump.cpuid(leaf, subleaf)))
        };
        Self::of((0..count).map(processor))
    }

    /// These processors, all active.
    pub fn of(processors: impl IntoIterator<Item = Processor>) -> Self {
        let processors: Vec<_> = processors.into_iter().map(ModelCpu::new).collect();
        let count = u32::try_from(processors.len()).unwrap_or(u32::MAX);
        Self {
            processors,
            active: AtomicU32::new(count),
            clock: AtomicU64::new(0),
            timers: AtomicU32::new(0),
            ticks: (0..count).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// [`new`](Self::new) by the identity's name.
    ///
    /// # Panics
    /// Where there is no such identity.
    #[must_use]
    pub fn named(name: &str, count: u32) -> Self {
        #[expect(clippy::panic, reason = "a misspelt name in a test")]
        let Some(identity) = processors::find(name) else { panic!("no identity {name}") };
        Self::new(identity, count)
    }

    /// A processor.
    ///
    /// # Panics
    /// Where there is no such processor.
    #[must_use]
    pub fn processor(&self, number: u32) -> &ModelCpu {
        #[expect(clippy::indexing_slicing, reason = "a wrong number in a test")]
        &self.processors[number as usize]
    }

    /// All processors, in their order.
    pub fn all(&self) -> impl Iterator<Item = &ModelCpu> {
        self.processors.iter()
    }

    /// Turns the clock by units of 100 ns.
    pub fn pass(&self, units: u64) {
        self.clock.fetch_add(units, Ordering::Relaxed);
    }

    /// The timer of a processor expires, if it runs.
    pub fn tick(&self, processor: u32, times: u64) {
        if let (Some(ticks), true) = (self.ticks.get(processor as usize), self.timer().is_some()) {
            ticks.fetch_add(times, Ordering::Relaxed);
        }
    }

    /// The interval of the timers, if they run.
    #[must_use]
    pub fn timer(&self) -> Option<u32> {
        Some(self.timers.load(Ordering::Relaxed)).filter(|interval| *interval != 0)
    }

    /// A processor executes something: `events` of whatever its counters are set to count.
    pub fn run(&self, processor: u32, mode: Mode, events: &dyn Fn(Selected) -> u64) {
        self.processor(processor).model().run(mode, events);
    }

    /// What a counter of a processor was given in all, by the model's own account.
    #[must_use]
    pub fn counted(&self, processor: u32, counter: u32) -> u64 {
        let model = self.processor(processor).model();
        let of = |entry: &LedgerEntry| matches!(entry.counter, CounterId::General(n) if u32::from(n) == counter);
        model.ledger().entries().filter(of).map(|entry| entry.counted).sum()
    }
}

impl Machine for &Board {
    type Cpu = ModelCpu;

    fn processors(&self) -> u32 {
        self.active.load(Ordering::Relaxed)
    }

    fn maximum_processors(&self) -> u32 {
        u32::try_from(self.processors.len()).unwrap_or(u32::MAX)
    }

    fn on_boot_processor<T>(&self, work: impl FnOnce(&ModelCpu) -> T) -> T {
        work(self.processor(0))
    }

    fn on_each_processor(&self, work: &(impl Fn(u32, &ModelCpu) + Sync)) {
        for (number, cpu) in (0..self.processors()).zip(&self.processors) {
            work(number, cpu);
        }
    }

    fn now(&self) -> u64 {
        self.clock.load(Ordering::Relaxed)
    }

    /// As a timer that counts milliseconds.
    fn timer_interval(&self, wanted: u32) -> u32 {
        wanted.next_multiple_of(10_000)
    }

    fn start_timers(&self, interval: u32) -> bool {
        self.timers.store(interval, Ordering::Relaxed);
        true
    }

    fn stop_timers(&self) {
        self.timers.store(0, Ordering::Relaxed);
    }

    fn ticks(&self, processor: u32) -> u64 {
        self.ticks.get(processor as usize).map_or(0, |ticks| ticks.load(Ordering::Relaxed))
    }
}
