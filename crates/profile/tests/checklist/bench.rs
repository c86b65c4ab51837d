//! One processor under test, with everything that the code under test does to it written down.

use std::cell::RefCell;
use std::ops::RangeInclusive;
use std::sync::MutexGuard;

use model::{Mode, Processor, Selected};
use native_lab::Board;
use processors::Identity;
use profile::hal::information::HAL_PROFILE_SOURCE_INTERRUPT_HANDLER;
use profile::state::CounterSet;
use profile::{Cpu, Hal, Kind, Msr, ProfileInterface, Source, Support};
use raw_cpuid::CpuIdResult;

/// The registers over the counters.
#[derive(Debug, Clone, Copy)]
pub struct Global {
    pub status: u32,
    pub control: u32,
    /// A one clears the same bit of the status.
    pub clear: u32,
    /// A one sets it; on Intel from version 4 on.
    pub set: u32,
}

impl Global {
    /// IA32_PERF_GLOBAL_STATUS and those that follow.
    const INTEL: Self = Self { status: 0x38E, control: 0x38F, clear: 0x390, set: 0x391 };
    /// PerfCntrGlobalStatus and those that follow.
    const AMD: Self = Self { status: 0xC000_0300, control: 0xC000_0301, clear: 0xC000_0302, set: 0xC000_0303 };

    /// By CPUID: those of Intel's version 2, and of AMD's PerfMonV2 with PerfCtrExtCore.
    fn of(cpuid: impl Fn(u32) -> [u32; 4]) -> Option<Self> {
        let [_, vendor, ..] = cpuid(0);
        if vendor == u32::from_le_bytes(*b"Genu") {
            let [version, ..] = cpuid(0xA)[0].to_le_bytes();
            return (version >= 2).then_some(Self::INTEL);
        }
        let version_2 = cpuid(0x8000_0000)[0] >= 0x8000_0022 && cpuid(0x8000_0022)[0] & 1 == 1;
        (version_2 && has_core_counters(&cpuid)).then_some(Self::AMD)
    }

    fn all(self) -> [u32; 3] {
        [self.status, self.control, self.clear]
    }
}

/// PerfCtrExtCore.
fn has_core_counters(cpuid: &impl Fn(u32) -> [u32; 4]) -> bool {
    cpuid(0x8000_0001)[2] >> 23 & 1 == 1
}

/// The registers of the counters, by the manuals: select, counter, and from one of them to the next.
type Names = (u32, u32, u32);
const INTEL: Names = (0x186, 0xC1, 1);
const K7: Names = (0xC001_0000, 0xC001_0004, 1);
const CORE: Names = (0xC001_0200, 0xC001_0201, 2);

/// IA32_FIXED_CTR0 to 15 and IA32_FIXED_CTR_CTRL.
pub const FIXED: [RangeInclusive<u32>; 2] = [0x309..=0x318, 0x38D..=0x38D];

/// Whatever source a counter serves there, since there is none that every processor has.
pub const ANYWHERE: u32 = u32::MAX;

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
    /// The registers over its counters.
    pub global: Option<Global>,
    names: Names,
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

/// Identities with registers over their counters, and those.
pub fn with_global_registers() -> impl Iterator<Item = (&'static Identity, Global)> {
    with_counters().filter_map(|identity| {
        let dump = identity.cpuid();
        Some((identity, Global::of(|leaf| dump.cpuid(leaf, 0))?))
    })
}

/// Those without: overflow shows in the counter alone, and a reload meets a counter that runs.
pub const PLAIN: [&str; 6] = ["amd-legacy", "bulldozer-fx8150", "zen-1800x", "zen3-5950x", "intel-v1", "yonah-t2400"];

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

/// An AMD processor of family 19h with long mode, with PerfCtrExtCore or not, and with PerfMonV2 and so many counters or
/// without it.
pub fn amd(extended: bool, version_2: Option<u8>) -> Processor {
    amd_of_family(0x19, u32::from(extended) << 23, version_2)
}

/// Of any family, with this in ECX of leaf 80000001H.
pub fn amd_of_family(family: u32, features: u32, version_2: Option<u8>) -> Processor {
    let signature = family.min(0xF) << 8 | family.saturating_sub(0xF) << 20;
    Processor::new(Box::new(move |leaf, _| match leaf {
        0 => [1, 0x6874_7541, 0x444D_4163, 0x6974_6E65],
        0x8000_0000 => [0x8000_0022, 0, 0, 0],
        0x8000_0001 => [signature, 0, features, 1 << 29],
        0x8000_0022 => [u32::from(version_2.is_some()) * 0b101, version_2.unwrap_or_default().into(), 0, 0],
        _ => [0; 4],
    }))
}

impl Bench {
    /// With an interrupt handler, and nothing initialized.
    pub fn idle(processor: Processor) -> Self {
        let board = Board::of([processor]);
        let hal = Hal::new(board.processor(0), 1).unwrap();
        hal.set_system_information(HAL_PROFILE_SOURCE_INTERRUPT_HANDLER, &1_u64.to_le_bytes(), 1).unwrap();
        let cpuid = |leaf| board.processor(0).model().cpuid(leaf, 0);
        let names = match hal.selection().interface {
            Kind::Amd64 if has_core_counters(&cpuid) => CORE,
            Kind::Amd64 => K7,
            Kind::Emon | Kind::Default => INTEL,
        };
        let global = Global::of(cpuid).filter(|_| hal.selection().interface != Kind::Default);
        Self { board, hal, global, names, log: RefCell::default() }
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

    /// The register of select register `counter`, by the manuals.
    pub fn select(&self, counter: u8) -> u32 {
        self.names.0 + self.names.2 * u32::from(counter)
    }

    /// The register of `counter`, by the manuals.
    pub fn counter(&self, counter: u8) -> u32 {
        self.names.1 + self.names.2 * u32::from(counter)
    }

    /// Every register that the driver may touch, by the manuals.
    pub fn own_registers(&self) -> Vec<u32> {
        let of_counters = (0..self.counters()).flat_map(|counter| [self.select(counter), self.counter(counter)]);
        of_counters.chain(self.global.into_iter().flat_map(Global::all)).collect()
    }

    /// Sources that a counter serves here, in the table's order.
    pub fn sources(&self) -> Vec<u32> {
        let supported = self.hal.source_list().filter(|source| source.support == Support::Supported);
        supported.map(|source| source.source.source.0).filter(|source| *source != 0).collect()
    }

    /// The first of them.
    pub fn anywhere(&self) -> u32 {
        *self.sources().first().unwrap()
    }

    /// A free counter for a source in both modes, with an interval or without.
    pub fn reserve(&self, source: u32, interval: Option<u32>) -> u8 {
        let source = if source == ANYWHERE { self.anywhere() } else { source };
        if let Some(interval) = interval {
            self.hal.set_interval(Source(source), interval).unwrap();
        }
        let state = self.hal.state_for(Source(source), interval.is_some()).unwrap();
        self.hal.reserve(0, state.with_owner(1).with_user(true).with_kernel(true)).unwrap()
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
        for counter in 0..self.counters() {
            self.set_msr(self.select(counter), 0);
            self.set_msr(self.counter(counter), 0);
        }
        let all = (1 << self.counters()) - 1;
        if let Some(global) = self.global {
            self.set_msr(global.control, all);
            self.set_msr(global.clear, all);
        }
    }

    /// Everything that the driver ever does, with every counter in use, every other one with an interval; answers its
    /// accesses from the first to the last.
    pub fn whole_life(&self) -> Vec<Access> {
        self.initialize();
        let sources = self.sources();
        for (counter, source) in (0..self.counters()).zip(sources.iter().cycle()) {
            self.reserve(*source, (counter % 2 == 0).then_some(SHORT + u32::from(counter)));
        }
        let all = self.start(0..self.counters());
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
