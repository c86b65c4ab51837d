//! Simulated processors that implement [`engine::Platform`].

mod call;
mod ledger;
mod platform;
mod sleep;
mod threads;
mod tracing;

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use cpuid_dumps::CpuIdentity;
use engine::{Engine, Interrupted, Platform, Ticks};
use model::{CounterId, InterruptMode, Mode, Processor, Selected};
use pmu::{CurrentCpu, ProcessorIndex};
use protocol::ProcessorSet;

use crate::cpu::{ModelCpu, served};
use crate::current;
pub use call::Call;
use call::SUCCESS;
use tracing::Tracing;
pub use tracing::WrittenEvent;

/// A machine with processors and a clock that tests advance.
pub struct SimMachine {
    processors: Vec<ModelCpu>,
    /// Of each processor, [`general_before_fixed`].
    before_fixed: Vec<Option<u8>>,
    /// How often each processor was interrupted for a call of the engine.
    interruptions: Vec<AtomicU64>,
    /// How often all processors were interrupted at once.
    broadcasts: AtomicU64,
    active: AtomicU32,
    clock: AtomicU64,
    /// Interval of the timers, or 0 if they are stopped.
    timers: AtomicU32,
    /// The processors where they run.
    timed: Mutex<ProcessorSet>,
    /// The processors that tick.
    ticking: Mutex<ProcessorSet>,
    /// The NTSTATUS with which each [`Call`] fails, or [`SUCCESS`].
    refusals: [AtomicU32; Call::COUNT],
    /// Whether the engine has reserved the counters.
    reserved: AtomicBool,
    /// The number of active processors when the counters were reserved.
    reserved_on: AtomicU32,
    /// The time until which the counters are another owner's, and how often the engine was told so.
    busy_until: AtomicU64,
    busy_answer: AtomicU64,
    busy_answers: AtomicU64,
    /// Whether the engine has opened the local APIC.
    apic: AtomicBool,
    /// Whether the engine has registered its interrupt handler.
    sampling: AtomicBool,
    /// Time by which each read advances the clock.
    pace: AtomicU64,
    /// Time by which each [`Call`] advances the clock.
    cost: AtomicU64,
    /// Time that passes before a processor runs what the engine runs there.
    latency: AtomicU64,
    /// Windows' thread profiling: the number of counters with which the engine has configured it, or 0.
    thread_counters: AtomicU32,
    /// The number of active processors when it was configured.
    thread_counters_on: AtomicU32,
    /// The number of threads that profile.
    profiling_threads: AtomicU32,
    /// Kernel VA shadowing: 0 is off, 1 is on, any other value the NTSTATUS with which the query fails.
    shadow: AtomicU32,
    /// The NTSTATUS with which the kernel refuses control areas, the first processor that this applies to, and the
    /// address that the kernel reports.
    area_refusal: (AtomicU32, AtomicU32, AtomicU64),
    /// Words of the areas that the kernel allocates.
    kernel_area_words: AtomicU8,
    /// The first processor for which there is no contiguous memory.
    no_contiguous_from: AtomicU32,
    /// The processor on which requests arrive.
    current: AtomicU32,
    /// Events for Event Tracing for Windows.
    tracing: Tracing,
}

/// Returns the number of general counters of an Intel processor by leaves 0AH and 23H, which its fixed counters follow,
/// with those that CPUID hides. Returns `None` if the processor has no such leaf.
fn general_before_fixed(model: &Processor) -> Option<u8> {
    let [last, vendor, ..] = model.cpuid(0, 0);
    let [_, of_leaf_a, ..] = model.cpuid(0xA, 0)[0].to_le_bytes();
    // ArchPerfmonExt, CPUID.7.1:EAX[8], announces leaf 23H.
    let has_leaf_23 = last >= 0x23 && model.cpuid(7, 1)[0] >> 8 & 1 == 1;
    let of_leaf_23 = u8::try_from(model.cpuid(0x23, 1)[0].count_ones()).unwrap_or(u8::MAX);
    // The microcode has counter 3 with TSX_FORCE_ABORT, CPUID.(7,0):EDX[13]; with four counters it is the last one.
    let is_last_taken = model.cpuid(7, 0)[3] >> 13 & 1 == 1 && of_leaf_a == 4;
    let general = if has_leaf_23 { of_leaf_23 } else { of_leaf_a - u8::from(is_last_taken) };
    let general = if model.hides_counters() { general.max(HIDDEN_GENERAL) } else { general };
    (vendor.to_le_bytes() == *b"Genu" && last >= 0xA).then_some(general.min(MAX_GENERAL))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// General counters of a P core beside E cores.
const HIDDEN_GENERAL: u8 = 8;

/// Only IA32_PMC0 to IA32_PMC9 have MSR addresses.
const MAX_GENERAL: u8 = 10;

/// Number of indexes of fixed counters before those of the metrics.
const FIXED_BEFORE_METRICS: u8 = 4;

/// Maximum number of interrupts in one delivery. More indicate an interrupt storm that would hang a real processor.
const MAX_INTERRUPTS: u32 = 10_000;

impl SimMachine {
    /// Creates a machine with `count` active processors of an identity, after reset. Odd processors get the identity's
    /// counterpart for them, if it has one.
    #[must_use]
    pub fn new(identity: &'static CpuIdentity, count: u32) -> Self {
        let mut processors: Vec<Processor> = Vec::new();
        for number in 0..count {
            let cpuid = || Box::new(identity.cpuid_of_processor(number));
            let first = processors.last().filter(|_| number % 2 == 1 && identity.has_related_threads());
            let alone =
                || Processor::new(cpuid()).with_perf_capabilities(identity.of_processor(number).perf_capabilities());
            let mut processor = first.and_then(|first| first.other_thread(cpuid())).unwrap_or_else(alone);
            processor.set_memory(Box::new(host_memory::ProcessMemory));
            processors.push(processor);
        }
        let mut machine = Self::of(processors);
        if identity.has_related_threads() {
            for core in machine.processors.chunks_exact_mut(2) {
                if let [first, second] = core {
                    second.share_proven(first);
                }
            }
        }
        machine
    }

    /// Creates a machine with these processors, all active.
    pub fn of(processors: impl IntoIterator<Item = Processor>) -> Self {
        let processors: Vec<Processor> = processors.into_iter().collect();
        let before_fixed = processors.iter().map(general_before_fixed).collect();
        let processors: Vec<_> = processors.into_iter().map(ModelCpu::new).collect();
        let count = u32::try_from(processors.len()).unwrap_or(u32::MAX);
        Self {
            interruptions: processors.iter().map(|_| AtomicU64::new(0)).collect(),
            broadcasts: AtomicU64::new(0),
            processors,
            before_fixed,
            active: AtomicU32::new(count),
            clock: AtomicU64::new(0),
            timers: AtomicU32::new(0),
            timed: Mutex::new(ProcessorSet::EMPTY),
            ticking: Mutex::new(ProcessorSet::EMPTY),
            refusals: Default::default(),
            reserved: AtomicBool::new(false),
            reserved_on: AtomicU32::new(0),
            busy_until: AtomicU64::new(0),
            busy_answer: AtomicU64::new(0),
            busy_answers: AtomicU64::new(0),
            apic: AtomicBool::new(false),
            sampling: AtomicBool::new(false),
            pace: AtomicU64::new(0),
            cost: AtomicU64::new(0),
            latency: AtomicU64::new(0),
            thread_counters: AtomicU32::new(0),
            thread_counters_on: AtomicU32::new(0),
            profiling_threads: AtomicU32::new(0),
            shadow: AtomicU32::new(0),
            area_refusal: (AtomicU32::new(SUCCESS), AtomicU32::new(0), AtomicU64::new(0)),
            kernel_area_words: AtomicU8::new(20), // since Windows 10 1903
            no_contiguous_from: AtomicU32::new(u32::MAX),
            current: AtomicU32::new(0),
            tracing: Tracing::default(),
        }
    }

    /// Creates a machine as [`new`](Self::new) does, by the name of the identity.
    ///
    /// # Panics
    /// Panics if the identity does not exist.
    #[must_use]
    pub fn named(name: &str, count: u32) -> Self {
        #[expect(clippy::panic, reason = "a misspelt name in a test")]
        let Some(identity) = cpuid_dumps::find(name) else { panic!("no identity {name}") };
        Self::new(identity, count)
    }

    /// Sets the interrupt mode of every processor.
    #[must_use]
    pub fn with_interrupt_mode(self, mode: InterruptMode) -> Self {
        self.all().for_each(|cpu| cpu.model().set_interrupt_mode(mode));
        self
    }

    /// Switches every local APIC to x2APIC mode.
    #[must_use]
    pub fn with_x2apic(self) -> Self {
        self.all().for_each(|cpu| cpu.model().enter_x2apic());
        self
    }

    /// Lets no time pass between two accesses of the driver, for callers that know in advance what each counter counts
    /// in kernel mode. A test of counts must not use it.
    #[must_use]
    pub fn without_time_between_accesses(self) -> Self {
        self.all().for_each(ModelCpu::hold_time);
        self
    }

    /// Returns a processor.
    ///
    /// # Panics
    /// Panics if the processor does not exist.
    #[must_use]
    pub fn processor(&self, number: u32) -> &ModelCpu {
        #[expect(clippy::indexing_slicing, reason = "a wrong number in a test")]
        &self.processors[number as usize]
    }

    /// Returns the token of code that runs on a processor at PROFILE_LEVEL.
    ///
    /// # Panics
    /// If the processor does not exist.
    #[must_use]
    pub fn current(&self, number: u32) -> CurrentCpu<'_, ModelCpu> {
        current(self.processor(number), number)
    }

    /// Returns the number of active processors.
    #[must_use]
    pub fn active(&self) -> u32 {
        self.active.load(Ordering::Relaxed)
    }

    /// Returns all processors by number.
    pub fn all(&self) -> impl Iterator<Item = &ModelCpu> {
        self.processors.iter()
    }

    /// Reads the clock.
    pub fn now_ticks(&self) -> Ticks {
        let accesses: u64 = self.all().map(ModelCpu::time_of_accesses).sum();
        Ticks(self.clock.fetch_add(self.pace.load(Ordering::Relaxed), Ordering::Relaxed) + accesses)
    }

    /// Advances the clock by units of 100 ns.
    pub fn pass(&self, units: u64) {
        self.clock.fetch_add(units, Ordering::Relaxed);
    }

    /// Makes the timer of a processor expire, and its DPC run with this code interrupted.
    ///
    /// # Panics
    /// Panics if no timer runs there.
    pub fn expire(&self, engine: &Engine<&Self>, processor: u32, interrupted: &Interrupted) {
        assert!(lock(&self.timed).contains(processor), "no timer runs on processor {processor}");
        let (sampler, current, begin) = (engine.sampler(), self.current(processor), self.clock());
        sampler.rotate(current, || self.clock());
        let (due, _) = sampler.expire(current, begin);
        if !due.is_empty() {
            let _ = sampler.sample_time(current, due, begin, || self.clock(), interrupted);
            self.write_events(engine, processor);
        }
    }

    /// Returns the interval of the timers if they run.
    #[must_use]
    pub fn timer(&self) -> Option<u32> {
        Some(self.timers.load(Ordering::Relaxed)).filter(|interval| *interval != 0)
    }

    /// Sets the time, in units of 100 ns, by which each read advances the clock.
    pub fn set_pace(&self, units: u64) {
        self.pace.store(units, Ordering::Relaxed);
    }

    /// Sets the time, in units of 100 ns, that passes before each processor runs what the engine runs there: the
    /// calling thread was preempted, or the processor masked interrupts.
    pub fn set_latency(&self, units: u64) {
        self.latency.store(units, Ordering::Relaxed);
    }

    /// Sets the time, in units of 100 ns, by which each [`Call`] except [`PinThread`](Call::PinThread) advances the
    /// clock.
    pub fn set_cost(&self, units: u64) {
        self.cost.store(units, Ordering::Relaxed);
    }

    /// Sets kernel VA shadowing: 0 is off, 1 is on, any other value the NTSTATUS with which the query fails.
    pub fn set_shadow(&self, shadow: u32) {
        self.shadow.store(shadow, Ordering::Relaxed);
    }

    /// Makes the kernel refuse control areas on processors from `first` on, with an NTSTATUS and an address. Status 0
    /// lets it allocate them again.
    pub fn refuse_areas(&self, first: u32, status: u32, address: u64) {
        let (refusal, from, told) = &self.area_refusal;
        refusal.store(status, Ordering::Relaxed);
        from.store(first, Ordering::Relaxed);
        told.store(address, Ordering::Relaxed);
    }

    /// Sets how many words the areas have that the kernel allocates: 12 before Windows 10 1903, else 20.
    pub fn set_kernel_area_words(&self, words: u8) {
        self.kernel_area_words.store(words, Ordering::Relaxed);
    }

    /// Makes contiguous memory too short for processors from `first` on.
    pub fn refuse_contiguous(&self, first: u32) {
        self.no_contiguous_from.store(first, Ordering::Relaxed);
    }

    /// Sets up every processor as on an ordinary Intel PC: Windows keeps its own save area with the address in
    /// IA32_DS_AREA, and the kernel's call fails because the area exists. Returns a function from the processor number
    /// to that address.
    ///
    /// # Panics
    /// Panics if a processor does not have IA32_DS_AREA.
    pub fn keep_areas(&self) -> impl Fn(u32) -> u64 + use<> {
        const DS_AREA: u32 = 0x600;
        const ADDRESS_ALREADY_EXISTS: u32 = 0xC000_0018;
        let address = |processor| 0xFFFF_F780_0000_1000 + 0x1000 * u64::from(processor);
        for (number, cpu) in (0..).zip(self.all()) {
            served(cpu.model().uncounted(|model| model.wrmsr(DS_AREA, address(number))), &"wrmsr 0x600");
        }
        self.refuse_areas(0, ADDRESS_ALREADY_EXISTS, address(0));
        address
    }

    /// Returns how often each processor was interrupted for a call of the engine. A call on the current processor alone
    /// interrupts none.
    #[must_use]
    pub fn interruptions(&self) -> Vec<u64> {
        self.interruptions.iter().map(|count| count.load(Ordering::Relaxed)).collect()
    }

    /// Returns how often all active processors were interrupted at once.
    #[must_use]
    pub fn broadcasts(&self) -> u64 {
        self.broadcasts.load(Ordering::Relaxed)
    }

    /// Sets the processor on which requests arrive.
    pub fn set_current(&self, processor: u32) {
        self.current.store(processor, Ordering::Relaxed);
    }

    /// Returns whether the engine has reserved the counters.
    #[must_use]
    pub fn is_reserved(&self) -> bool {
        self.reserved.load(Ordering::Relaxed)
    }

    /// Returns whether the engine holds any resource of the machine.
    #[must_use]
    pub fn is_in_use(&self) -> bool {
        let held = [&self.reserved, &self.apic, &self.sampling];
        held.iter().any(|held| held.load(Ordering::Relaxed))
            || self.timer().is_some()
            || self.thread_counters() != 0
            || self.all().any(ModelCpu::has_area)
    }

    /// Returns the number of counters with which the engine has configured thread profiling, or 0.
    #[must_use]
    pub fn thread_counters(&self) -> u32 {
        self.thread_counters.load(Ordering::Relaxed)
    }

    /// Sets the number of threads that profile. While there is one, Windows changes no configuration.
    pub fn set_profiling_threads(&self, threads: u32) {
        self.profiling_threads.store(threads, Ordering::Relaxed);
    }

    /// Returns how many general counters run on that of the first `processors` on which fewest run.
    fn least_running(&self, processors: u32) -> usize {
        let general = |id: &CounterId| matches!(id, CounterId::General(_));
        let running = |cpu: &ModelCpu| cpu.model().enabled_counters().iter().filter(|(id, _)| general(id)).count();
        self.all().take(processors as usize).map(running).min().unwrap_or_default()
    }

    /// Sets the number of initially active processors. The others can be [added](Self::add_processor).
    #[must_use]
    pub fn with_active(self, count: u32) -> Self {
        self.active.store(count, Ordering::Relaxed);
        self
    }

    /// Makes [`Platform::reserve_counters`] answer STATUS_DEVICE_BUSY for some time from now: another owner is asked to
    /// release the counters. Until such an answer has arrived, the time `answer` passes.
    pub fn be_busy_for(&self, duration: u64, answer: u64) {
        self.busy_answer.store(answer, Ordering::Relaxed);
        self.busy_until.store(self.clock.load(Ordering::Relaxed) + duration, Ordering::Relaxed);
    }

    /// Returns how often [`Platform::reserve_counters`] answered STATUS_DEVICE_BUSY for that reason.
    #[must_use]
    pub fn busy_answers(&self) -> u64 {
        self.busy_answers.load(Ordering::Relaxed)
    }

    /// Notifies the engine of a processor, and does not add it.
    pub fn fail_to_add_processor(&self, engine: &mut Engine<&Self>) {
        engine.before_processor();
        engine.add_no_processor();
    }

    /// Adds a processor and notifies the engine before and afterwards.
    pub fn add_processor(&self, engine: &mut Engine<&Self>) {
        engine.before_processor();
        let added = self.active.fetch_add(1, Ordering::Relaxed);
        engine.add_processor(ProcessorIndex::new(added));
    }

    /// Returns whether the engine has registered its interrupt handler.
    #[must_use]
    pub fn is_sampling(&self) -> bool {
        self.sampling.load(Ordering::Relaxed)
    }

    /// Delivers interrupts to a processor as long as one is pending. Returns their number, and whether one filled half
    /// a ring. As with the HAL before Windows 10 1803, only the engine unmasks the LVT entry, which Intel processors
    /// mask on delivery.
    ///
    /// # Panics
    /// Panics after 10,000 interrupts, as an interrupt storm.
    pub fn deliver(&self, engine: &Engine<&Self>, processor: u32, interrupted: &Interrupted) -> (u32, bool) {
        let (mut count, mut watermark_hit) = (0, false);
        while self.take_interrupt(processor) {
            let deferred = engine.sampler().interrupt(self.current(processor), || self.clock(), interrupted);
            watermark_hit |= deferred.reader;
            self.run_dpc(engine, processor, deferred.events);
            count += 1;
            assert!(count < MAX_INTERRUPTS, "an interrupt storm on processor {processor}");
        }
        (count, watermark_hit)
    }

    /// Delivers an interrupt to a processor even if its counters raised none, or raised it before the machine slept.
    pub fn interrupt(&self, engine: &Engine<&Self>, processor: u32, interrupted: &Interrupted) {
        let deferred = engine.sampler().interrupt(self.current(processor), || self.clock(), interrupted);
        self.run_dpc(engine, processor, deferred.events);
    }

    fn take_interrupt(&self, processor: u32) -> bool {
        self.processor(processor).model().take_interrupt()
    }

    /// Returns the processors where timers run.
    #[must_use]
    pub fn timed(&self) -> Vec<u32> {
        lock(&self.timed).iter().collect()
    }

    /// Returns the processors that tick.
    #[must_use]
    pub fn ticking(&self) -> Vec<u32> {
        lock(&self.ticking).iter().collect()
    }

    /// Runs the sampler's tick on a processor, even if it does not [tick](Self::ticking) any more: the last one may
    /// come late.
    pub fn tick_sampling(&self, engine: &Engine<&Self>, processor: u32) {
        let deferred = engine.sampler().tick(self.current(processor), self.clock());
        self.run_dpc(engine, processor, deferred.events);
    }

    /// Executes code on a processor. `events` returns the number of occurrences of each selected event.
    pub fn run(&self, processor: u32, mode: Mode, events: &dyn Fn(Selected) -> u64) {
        self.processor(processor).model().run(mode, events);
    }

    /// Converts a counter number to the model's identifier. Fixed counters follow the general ones, which Intel's
    /// leaves 0AH and 23H enumerate, and the metrics of fixed counter 3 follow that counter.
    #[must_use]
    pub fn counter(&self, processor: u32, counter: u8) -> CounterId {
        #[expect(clippy::indexing_slicing, reason = "a wrong number in a test")]
        let before_fixed = self.before_fixed[processor as usize];
        let fixed = before_fixed.and_then(|general| counter.checked_sub(general));
        match (fixed, fixed.and_then(|number| number.checked_sub(FIXED_BEFORE_METRICS))) {
            (_, Some(metric)) => CounterId::Metric(metric),
            (Some(number), None) => CounterId::Fixed(number),
            (None, None) => CounterId::General(counter),
        }
    }
}
