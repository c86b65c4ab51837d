//! One processor under test, with everything that the code under test does to it written down.

use std::cell::RefCell;
use std::sync::MutexGuard;

use model::{CounterId, Mode, Processor, Selected};
use native_lab::Board;
use processors::Identity;
use profile::hal::SourceInformation;
use profile::hal::information::HAL_PROFILE_SOURCE_INTERRUPT_HANDLER;
use profile::state::CounterSet;
use profile::{Cpu, Hal, Kind, Msr, ProfileInterface, Source, Support};
use raw_cpuid::CpuIdResult;

/// IA32_PERF_GLOBAL_STATUS.
pub const GLOBAL_STATUS: u32 = 0x38E;
/// IA32_PERF_GLOBAL_CTRL.
pub const GLOBAL_CTRL: u32 = 0x38F;
/// IA32_PERF_GLOBAL_OVF_CTRL.
pub const GLOBAL_OVF_CTRL: u32 = 0x390;
/// IA32_FIXED_CTR0, that of instructions; those of core cycles and of reference cycles follow, and others.
pub const FIXED_CTR0: u32 = 0x309;
/// IA32_FIXED_CTR_CTRL.
pub const FIXED_CTR_CTRL: u32 = 0x38D;
/// IA32_PERF_CAPABILITIES.
pub const PERF_CAPABILITIES: u32 = 0x345;

/// A source that every identity with counters has.
pub const ANYWHERE: u32 = 0x19;

/// An interval that no other counter of a test has.
pub const SHORT: u32 = 5_000;
/// One that is not over when the short one is.
pub const LONG: u32 = 1_000_000;

/// What the code under test did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// RDMSR.
    Read(u32),
    /// WRMSR.
    Write(u32, u64),
    /// RDPMC.
    Counter(u32),
}

/// The processor, as [`Cpu`], and the HAL on it.
pub struct Bench {
    pub board: Board,
    pub hal: Hal,
    log: RefCell<Vec<Access>>,
}

impl Cpu for Bench {
    fn cpuid(&self, leaf: u32, subleaf: u32) -> CpuIdResult {
        self.board.processor(0).cpuid(leaf, subleaf)
    }

    fn rdmsr(&self, msr: Msr) -> u64 {
        self.log.borrow_mut().push(Access::Read(msr.address()));
        self.board.processor(0).rdmsr(msr)
    }

    fn wrmsr(&self, msr: Msr, value: u64) {
        self.log.borrow_mut().push(Access::Write(msr.address(), value));
        self.board.processor(0).wrmsr(msr, value);
    }

    fn rdpmc(&self, index: u32) -> u64 {
        self.log.borrow_mut().push(Access::Counter(index));
        self.board.processor(0).rdpmc(index)
    }

    fn local_vector(&self) -> u32 {
        self.board.processor(0).local_vector()
    }

    fn set_local_vector(&self, entry: u32) {
        self.board.processor(0).set_local_vector(entry);
    }
}

/// The processor of an identity, after reset.
pub fn processor_of(identity: &Identity) -> Processor {
    let dump = identity.cpuid();
    Processor::new(Box::new(move |leaf, subleaf| dump.cpuid(leaf, subleaf)))
}

/// Identities that have counters.
pub fn with_counters() -> impl Iterator<Item = &'static Identity> {
    processors::all().iter().filter(|identity| identity.expected.counters > 0)
}

/// Those of them whose interface has this name.
pub fn of_interface(name: &str) -> impl Iterator<Item = &'static Identity> {
    with_counters().filter(move |identity| identity.expected.interface == name)
}

/// Version in leaf 0xA; 0 where the interface is another.
pub fn version_of(identity: &Identity) -> u8 {
    let [eax, ..] = identity.cpuid().cpuid(0xA, 0);
    if identity.expected.interface == "Emon" { eax.to_le_bytes()[0] } else { 0 }
}

/// Identities with global registers over their counters.
pub fn with_global_registers() -> impl Iterator<Item = &'static Identity> {
    of_interface("Emon").filter(|identity| version_of(identity) >= 2)
}

/// Those of them with fixed counters.
pub fn with_fixed_counters() -> impl Iterator<Item = &'static Identity> {
    with_global_registers().filter(|identity| identity.expected.fixed > 0)
}

/// Those without: overflow shows in the counter alone, and a reload meets a counter that runs.
pub const PLAIN: [&str; 5] = ["amd-legacy", "zen3-5950x", "zen4-7700x", "intel-v1", "yonah-t2400"];

/// An Intel processor by its leaf 0xA, with IA32_PERF_CAPABILITIES.
pub fn intel(leaf: [u32; 4]) -> Processor {
    Processor::new(Box::new(move |number, _| match number {
        0 => [0xA, 0x756E_6547, 0x6C65_746E, 0x4965_6E69],
        1 => [0x0006_06A6, 0, 1 << 15, 0],
        0xA => leaf,
        _ => [0; 4],
    }))
}

/// EAX of leaf 0xA.
pub fn leaf_a_eax(version: u8, counters: u8, width: u8, length: u8) -> u32 {
    u32::from_le_bytes([version, counters, width, length])
}

/// An AMD processor with long mode, with PerfCtrExtCore or not, and with PerfMonV2 and so many counters or without it.
pub fn amd(extended: bool, version_2: Option<u8>) -> Processor {
    Processor::new(Box::new(move |leaf, _| match leaf {
        0 => [1, 0x6874_7541, 0x444D_4163, 0x6974_6E65],
        0x8000_0000 => [0x8000_0022, 0, 0, 0],
        0x8000_0001 => [0, 0, u32::from(extended) << 23, 1 << 29],
        0x8000_0022 => [u32::from(version_2.is_some()), version_2.unwrap_or_default().into(), 0, 0],
        _ => [0; 4],
    }))
}

impl Bench {
    /// With an interrupt handler, and nothing initialized.
    pub fn idle(processor: Processor) -> Self {
        let board = Board::of([processor]);
        let hal = Hal::new(board.processor(0), 1).unwrap();
        hal.set_system_information(HAL_PROFILE_SOURCE_INTERRUPT_HANDLER, &1_u64.to_le_bytes(), 1).unwrap();
        Self { board, hal, log: RefCell::default() }
    }

    /// With its counters initialized.
    pub fn new(processor: Processor) -> Self {
        let bench = Self::idle(processor);
        bench.initialize();
        bench
    }

    /// Of an identity, with its counters initialized.
    pub fn named(name: &str) -> Self {
        Self::new(processor_of(processors::find(name).unwrap()))
    }

    pub fn initialize(&self) {
        assert!(self.hal.initialize(self, 0));
    }

    pub fn release(&self) {
        self.hal.release(self, 0);
    }

    pub fn model(&self) -> MutexGuard<'_, Processor> {
        self.board.processor(0).model()
    }

    /// What the register holds; not the driver's access.
    pub fn msr(&self, msr: u32) -> u64 {
        self.model().rdmsr(msr).unwrap()
    }

    /// Somebody else writes a register.
    pub fn set_msr(&self, msr: u32, value: u64) {
        self.model().wrmsr(msr, value).unwrap();
    }

    /// The driver's accesses since this was last asked.
    pub fn take_log(&self) -> Vec<Access> {
        self.log.take()
    }

    pub fn counters(&self) -> u8 {
        self.hal.interface().counters()
    }

    /// How many of them have a select register: those before the fixed ones.
    pub fn general(&self) -> u8 {
        (0..self.counters())
            .take_while(|counter| matches!(self.id(*counter), CounterId::General(_)))
            .map(|n| n + 1)
            .last()
            .unwrap_or(0)
    }

    /// The model's name of a counter.
    pub fn id(&self, counter: u8) -> CounterId {
        self.board.counter(0, counter)
    }

    /// Counters for which there is a source.
    pub fn usable(&self) -> CounterSet {
        self.counted().fold(CounterSet::NONE, |all, source| all.or(source.counters))
    }

    /// The select register of a general counter, by the manuals.
    pub fn select(&self, counter: u8) -> u32 {
        let first = if self.hal.selection().interface == Kind::Amd64 { 0xC001_0000 } else { 0x186 };
        first + u32::from(counter)
    }

    /// The register of `counter`, by the manuals.
    pub fn counter(&self, counter: u8) -> u32 {
        match (self.id(counter), self.hal.selection().interface) {
            (CounterId::Fixed(number), _) => FIXED_CTR0 + u32::from(number),
            (CounterId::General(number), Kind::Amd64) => 0xC001_0004 + u32::from(number),
            (CounterId::General(number), _) => 0xC1 + u32::from(number),
        }
    }

    /// The bit of `counter` in the global registers, by the manuals.
    pub fn bit(&self, counter: u8) -> u64 {
        match self.id(counter) {
            CounterId::General(number) => 1 << number,
            CounterId::Fixed(number) => 1 << (32 + u32::from(number)),
        }
    }

    /// The bits there of all counters for which there is a source.
    pub fn own_bits(&self) -> u64 {
        self.usable().iter().fold(0, |all, counter| all | self.bit(counter))
    }

    /// All ones in a counter.
    pub fn fill(&self, counter: u8) {
        let all = match self.id(counter) {
            CounterId::General(_) => u64::MAX,
            CounterId::Fixed(_) => (1 << self.hal.interface().width_of(counter)) - 1,
        };
        self.set_msr(self.counter(counter), all);
    }

    /// USR, OS, interrupt and enable of `counter`, by the manuals.
    pub fn control(&self, counter: u8) -> (bool, bool, bool, bool) {
        let bit = |register: u64, number: u32| register >> number & 1 == 1;
        match self.id(counter) {
            CounterId::General(number) => {
                let select = self.msr(self.select(number));
                (bit(select, 16), bit(select, 17), bit(select, 20), bit(select, 22))
            }
            CounterId::Fixed(number) => {
                let field = self.msr(FIXED_CTR_CTRL) >> (4 * number);
                (bit(field, 1), bit(field, 0), bit(field, 3), bit(field, 0) || bit(field, 1))
            }
        }
    }

    /// Sources that a counter serves here, in the table's order.
    pub fn sources(&self) -> Vec<u32> {
        self.counted().map(|source| source.source.source.0).collect()
    }

    fn counted(&self) -> impl Iterator<Item = SourceInformation> {
        self.hal.source_list().filter(|source| source.support == Support::Supported && !source.counters.is_empty())
    }

    /// A free counter for a source in both modes, with an interval or without.
    pub fn reserve(&self, source: u32, interval: Option<u32>) -> u8 {
        if let Some(interval) = interval {
            self.hal.set_interval(Source(source), interval).unwrap();
        }
        let state = self.hal.state_for(Source(source), interval.is_some()).unwrap();
        self.hal.reserve(0, state.with_owner(1).with_user(true).with_kernel(true)).unwrap()
    }

    /// [`reserve`](Self::reserve), and just this counter: some source that it can count, another one for the next counter.
    pub fn reserve_on(&self, counter: u8, interval: Option<u32>) -> u8 {
        let fitting: Vec<_> = self.counted().filter(|source| source.counters.has(counter)).collect();
        let source = fitting.iter().cycle().nth(usize::from(counter)).unwrap().source.source;
        self.reserve_source_on(source.0, counter, interval)
    }

    /// [`reserve`](Self::reserve), and just this counter.
    pub fn reserve_source_on(&self, source: u32, counter: u8, interval: Option<u32>) -> u8 {
        let mut others = CounterSet::NONE;
        loop {
            let taken = self.reserve(source, interval);
            if taken == counter {
                self.hal.free(0, others);
                return counter;
            }
            others = others.with(taken);
        }
    }

    pub fn start(&self, counters: impl IntoIterator<Item = u8>) -> CounterSet {
        let counters = counters.into_iter().collect();
        self.hal.start(self, 0, counters);
        counters
    }

    /// [`reserve`](Self::reserve) and [`start`](Self::start).
    pub fn started(&self, source: u32, interval: Option<u32>) -> u8 {
        let counter = self.reserve(source, interval);
        self.start([counter]);
        counter
    }

    pub fn stop(&self, counters: CounterSet) {
        self.hal.stop(self, 0, counters);
    }

    /// Stops and frees everything, and answers the totals.
    pub fn finish(&self) -> Vec<u64> {
        let counters = self.hal.row(0).counters(|state| !state.is_free());
        self.stop(counters);
        let totals = counters.iter().map(|counter| self.hal.total(0, counter)).collect();
        self.hal.free(0, counters);
        totals
    }

    /// The processor executes `events` of everything, in user mode.
    pub fn run(&self, events: u64) {
        self.run_events(&|_| events);
    }

    pub fn run_events(&self, events: &dyn Fn(Selected) -> u64) {
        self.board.run(0, Mode::User, events);
    }

    /// A pending interrupt is delivered; then the HAL around the driver unmasks the LVT entry.
    pub fn deliver(&self) -> bool {
        let delivered = self.model().take_interrupt();
        let entry = self.model().lvt();
        self.model().set_lvt(entry & !(1 << 16));
        delivered
    }

    /// The driver serves an interrupt, whether or not there was one: which counters it tells of.
    pub fn serve(&self) -> Vec<u8> {
        let mut told = Vec::new();
        let status = self.hal.interrupt(self, 0, |overflow| told.push(overflow.counter));
        assert_eq!(status.0, told.iter().copied().collect(), "told once each");
        told
    }

    /// What the model gave to a counter in all.
    pub fn given(&self, counter: u8) -> u64 {
        self.board.counted(0, u32::from(counter))
    }

    /// The processor sleeps, and its registers are as after reset.
    pub fn lose_registers(&self) {
        (0..self.general()).for_each(|counter| self.set_msr(self.select(counter), 0));
        self.usable().iter().for_each(|counter| self.set_msr(self.counter(counter), 0));
        if self.hal.interface().pmu_version() >= 2 {
            self.set_msr(FIXED_CTR_CTRL, 0);
            self.set_msr(GLOBAL_CTRL, (1 << self.general()) - 1);
            self.set_msr(GLOBAL_OVF_CTRL, self.own_bits());
        }
    }

    /// Everything that the driver ever does, with every counter in use, every other one with an interval; answers its
    /// accesses from the first to the last.
    pub fn whole_life(&self) -> Vec<Access> {
        self.initialize();
        let all = self.usable();
        for counter in all.iter() {
            self.reserve_on(counter, (counter % 2 == 0).then_some(SHORT + u32::from(counter)));
        }
        self.start(all.iter());
        for events in [u64::from(SHORT) + 20, 1, u64::from(SHORT) - 1, 77] {
            self.run(events);
            self.deliver();
            self.hal.check_overflow(self, 0);
            self.serve();
            all.iter().for_each(|counter| assert!(self.hal.count(self, 0, counter) > 0));
        }
        self.hal.save(self, 0);
        self.lose_registers();
        self.hal.restore(self, 0);
        self.run(u64::from(SHORT) - 100);
        for counter in all.iter() {
            self.stop(CounterSet::NONE.with(counter));
            self.serve();
        }
        self.hal.free(0, all);
        self.release();
        assert_eq!(self.model().enabled_counters(), []);
        assert_eq!(self.model().accesses().faulted, 0);
        self.take_log()
    }
}
