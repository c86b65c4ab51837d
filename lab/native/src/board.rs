//! Processors of one identity, as [`engine::Machine`].

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use engine::{Engine, Interrupted, Machine, Sampler};
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
    /// What the HAL answers to who wants its interrupt.
    refusal: AtomicU32,
    /// The engine has the interrupt.
    sampling: AtomicBool,
    /// By how much the clock turns whenever it is read.
    pace: AtomicU64,
}

/// Of the entry in the local vector table: masked.
const MASKED: u32 = 1 << 16;

/// An NTSTATUS of success.
const SUCCESS: u32 = 0;

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
            refusal: AtomicU32::new(SUCCESS),
            sampling: AtomicBool::new(false),
            pace: AtomicU64::new(0),
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

    /// The clock turns by so many units of 100 ns whenever it is read.
    pub fn set_pace(&self, units: u64) {
        self.pace.store(units, Ordering::Relaxed);
    }

    /// From now on the HAL refuses the interrupt with this NTSTATUS; 0 gives it again.
    pub fn refuse_handler(&self, status: u32) {
        self.refusal.store(status, Ordering::Relaxed);
    }

    /// Whether the engine has the interrupt.
    #[must_use]
    pub fn is_sampling(&self) -> bool {
        self.sampling.load(Ordering::Relaxed)
    }

    /// Delivers interrupts to a processor as long as one is pending; answers how many, and whether one filled half
    /// a ring. As the HAL since Windows 10 1803, it unmasks the entry of the local vector table, that Intel's masked.
    pub fn deliver(&self, engine: &Engine<&Self>, processor: u32, interrupted: &Interrupted) -> (u32, bool) {
        let (mut count, mut reached) = (0, false);
        while self.take_interrupt(processor) {
            let cpu = self.processor(processor);
            reached |= engine.sampler().interrupt(cpu, processor, || self.clock(), interrupted);
            count += 1;
        }
        (count, reached)
    }

    fn take_interrupt(&self, processor: u32) -> bool {
        let mut model = self.processor(processor).model();
        let taken = model.take_interrupt();
        let entry = model.lvt();
        model.set_lvt(entry & !MASKED);
        taken
    }

    /// A tick of the sampling of a processor.
    pub fn tick_sampling(&self, engine: &Engine<&Self>, processor: u32) {
        engine.sampler().tick(self.processor(processor), processor, self.clock());
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

    fn clock_frequency(&self) -> u64 {
        10_000_000
    }

    fn clock(&self) -> u64 {
        self.clock.fetch_add(self.pace.load(Ordering::Relaxed), Ordering::Relaxed)
    }

    fn begin_sampling(&self, _sampler: &Sampler) -> Result<NonZeroU64, u32> {
        match self.refusal.load(Ordering::Relaxed) {
            SUCCESS => {
                self.sampling.store(true, Ordering::Relaxed);
                Ok(NonZeroU64::MIN)
            }
            refusal => Err(refusal),
        }
    }

    fn end_sampling(&self) {
        self.sampling.store(false, Ordering::Relaxed);
    }
}
