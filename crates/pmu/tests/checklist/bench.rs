//! A processor under test that records all accesses by the code under test.

use std::cell::{Cell, RefCell};
use std::sync::MutexGuard;

use cpuid_dumps::CpuIdentity;
use model::{CounterId, Mode, Processor, Selected};
use pmu::hal::SourceInformation;
use pmu::hal::information::HAL_PROFILE_SOURCE_INTERRUPT_HANDLER;
use pmu::state::CounterSet;
use pmu::{Cpu, Cpuid, Hal, Kind, Msr, ProcessorIndex, ProfileInterface, Source, Support};
use raw_cpuid::CpuIdResult;
use simulation::{SimMachine, boot};

/// IA32_PERF_GLOBAL_CTRL.
pub const GLOBAL_CTRL: u32 = 0x38F;
/// IA32_FIXED_CTR0 (instructions). Core cycles, reference cycles and others follow.
pub const FIXED_CTR0: u32 = 0x309;
/// MSR_PERF_METRICS.
const PERF_METRICS: u32 = 0x329;
/// IA32_FIXED_CTR_CTRL.
pub const FIXED_CTR_CTRL: u32 = 0x38D;
/// IA32_PERF_CAPABILITIES.
pub const PERF_CAPABILITIES: u32 = 0x345;

/// `IA32_DEBUGCTL` (SDM Vol. 4, "Architectural MSRs").
pub const DEBUGCTL: u32 = 0x1D9;

/// The global registers.
#[derive(Debug, Clone, Copy)]
pub struct Global {
    pub status: u32,
    pub control: u32,
    /// Writing one clears the status bit.
    pub clear: u32,
    /// Writing one sets the status bit; on Intel from version 4.
    pub set: u32,
}

impl Global {
    /// IA32_PERF_GLOBAL_STATUS and the following registers.
    const INTEL: Self = Self { status: 0x38E, control: GLOBAL_CTRL, clear: 0x390, set: 0x391 };
    /// PerfCntrGlobalStatus and the following registers.
    const AMD: Self = Self { status: 0xC000_0300, control: 0xC000_0301, clear: 0xC000_0302, set: 0xC000_0303 };

    /// Returns the global registers by CPUID: those of Intel's version 2, or of AMD's PerfMonV2 with PerfCtrExtCore.
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

/// The registers of the general counters by the manuals: select, counter and stride.
type Names = (u32, u32, u32);
const INTEL: Names = (0x186, 0xC1, 1);
const K7: Names = (0xC001_0000, 0xC001_0004, 1);
const CORE: Names = (0xC001_0200, 0xC001_0201, 2);
/// CCCRs instead of select registers.
const NETBURST: Names = (0x360, 0x300, 1);

/// A short interval, which only one counter of a test has.
pub const SHORT: u32 = 5_000;
/// An interval that does not expire with the short one.
pub const LONG: u32 = 1_000_000;

/// An access by the code under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// RDMSR.
    Read(u32),
    /// WRMSR.
    Write(u32, u64),
    /// RDPMC.
    Counter(u32),
    /// A write of the LVT entry.
    Entry(u32),
}

/// The processor, which implements [`Cpu`], and its HAL.
pub struct Bench {
    pub machine: SimMachine,
    pub hal: Hal,
    /// The global registers of the processor.
    pub global: Option<Global>,
    names: Names,
    log: RefCell<Vec<Access>>,
    /// The thread number within the core.
    thread: usize,
    /// Whether counters are reserved in kernel mode too.
    kernel: Cell<bool>,
}

impl Cpuid for Bench {
    fn cpuid(&self, leaf: u32, subleaf: u32) -> CpuIdResult {
        self.machine.processor(0).cpuid(leaf, subleaf)
    }
}

impl Cpu for Bench {
    fn rdmsr(&self, msr: Msr) -> u64 {
        self.log.borrow_mut().push(Access::Read(msr.address()));
        self.machine.processor(0).rdmsr(msr)
    }

    fn wrmsr(&self, msr: Msr, value: u64) {
        self.log.borrow_mut().push(Access::Write(msr.address(), value));
        self.machine.processor(0).wrmsr(msr, value);
    }

    fn rdpmc(&self, index: u32) -> u64 {
        self.log.borrow_mut().push(Access::Counter(index));
        self.machine.processor(0).rdpmc(index)
    }

    fn lvt_pmi(&self) -> u32 {
        self.machine.processor(0).lvt_pmi()
    }

    fn extended_lvt(&self, index: u8) -> u32 {
        self.machine.processor(0).extended_lvt(index)
    }

    fn set_lvt_pmi(&self, entry: u32) {
        self.log.borrow_mut().push(Access::Entry(entry));
        self.machine.processor(0).set_lvt_pmi(entry);
    }

    fn run_loop(&self, iterations: u32) {
        self.machine.processor(0).run_loop(iterations);
    }

    fn time_stamp(&self) -> u64 {
        self.machine.processor(0).time_stamp()
    }

    fn user_rdpmc(&self) -> bool {
        self.machine.processor(0).user_rdpmc()
    }

    fn save_area(&self, word: u16) -> u64 {
        self.machine.processor(0).save_area(word)
    }

    fn set_save_area(&self, word: u16, value: u64) {
        self.machine.processor(0).set_save_area(word, value);
    }
}

/// Returns the processor of an identity after reset.
pub fn processor_of(identity: &CpuIdentity) -> Processor {
    let dump = identity.cpuid();
    Processor::new(Box::new(move |leaf, subleaf| dump.cpuid(leaf, subleaf)))
}

/// An identity on whose upper counters the laws of user mode alone do not hold: `workarounds/counters.rs` has its own.
const NEEDS_KERNEL_MODE: &str = "broadwell-ht-off-derived";

/// Returns the identities with counters that interrupt: all except Pentium, and except [`NEEDS_KERNEL_MODE`].
pub fn with_counters() -> impl Iterator<Item = &'static CpuIdentity> {
    let has = |identity: &&CpuIdentity| !["Default", "Pentium"].contains(&identity.expected.interface);
    cpuid_dumps::all().iter().filter(has).filter(|identity| identity.name != NEEDS_KERNEL_MODE)
}

/// Returns those where every counter counts every event: all except NetBurst.
pub fn with_equal_counters() -> impl Iterator<Item = &'static CpuIdentity> {
    with_counters().filter(|identity| identity.expected.interface != "NetBurst")
}

/// Returns those with this interface.
pub fn of_interface(name: &str) -> impl Iterator<Item = &'static CpuIdentity> {
    with_counters().filter(move |identity| identity.expected.interface == name)
}

/// Returns the version in leaf 0xA, or 0 with another interface.
pub fn version_of(identity: &CpuIdentity) -> u8 {
    let [eax, ..] = identity.cpuid().cpuid(0xA, 0);
    if identity.expected.interface == "Emon" { eax.to_le_bytes()[0] } else { 0 }
}

/// Returns the identities with global registers, and these registers.
pub fn with_global_registers() -> impl Iterator<Item = (&'static CpuIdentity, Global)> {
    with_counters().filter_map(|identity| {
        let dump = identity.cpuid();
        Some((identity, Global::of(|leaf| dump.cpuid(leaf, 0))?))
    })
}

/// Returns those with fixed counters.
pub fn with_fixed_counters() -> impl Iterator<Item = &'static CpuIdentity> {
    with_counters().filter(|identity| identity.expected.fixed > 0)
}

/// Returns the identities without global registers: only the counter shows an overflow, and a reload writes a running
/// counter.
pub const PLAIN: [&str; 8] = [
    "amd-legacy",
    "bulldozer-fx8150",
    "zen-1800x",
    "zen3-5950x",
    "intel-v1",
    "yonah-t2400",
    "p6-coppermine",
    "p6-dothan",
];

/// Returns an Intel processor with this leaf 0xA and IA32_PERF_CAPABILITIES.
pub fn intel(leaf: [u32; 4]) -> Processor {
    Processor::new(Box::new(move |number, _| match number {
        0 => [0xA, 0x756E_6547, 0x6C65_746E, 0x4965_6E69],
        1 => [0x0006_06A6, 0, 1 << 15, 0],
        0xA => leaf,
        _ => [0; 4],
    }))
}

/// Returns EAX of leaf 0xA.
pub fn leaf_a_eax(version: u8, counters: u8, width: u8, length: u8) -> u32 {
    u32::from_le_bytes([version, counters, width, length])
}

/// Returns an AMD processor of family 19h with long mode, optionally with PerfCtrExtCore, and with PerfMonV2 and its
/// number of counters.
pub fn amd(extended: bool, version_2: Option<u8>) -> Processor {
    amd_of_family(0x19, 0x11, u32::from(extended) << 23, version_2)
}

/// Returns an AMD processor of any family with this ECX of leaf 80000001H.
pub fn amd_of_family(family: u32, model: u32, features: u32, version_2: Option<u8>) -> Processor {
    let signature = family.min(0xF) << 8 | family.saturating_sub(0xF) << 20 | (model >> 4) << 16 | (model & 0xF) << 4;
    Processor::new(Box::new(move |leaf, _| match leaf {
        0 => [1, 0x6874_7541, 0x444D_4163, 0x6974_6E65],
        0x8000_0000 => [0x8000_0022, 0, 0, 0],
        0x8000_0001 => [signature, 0, features, 1 << 29],
        0x8000_0022 => [u32::from(version_2.is_some()) * 0b101, version_2.unwrap_or_default().into(), 0, 0],
        _ => [0; 4],
    }))
}

impl Bench {
    /// Creates a bench with an interrupt handler and nothing initialized.
    pub fn idle(processor: Processor) -> Self {
        let [_, ebx, ..] = processor.cpuid(1, 0);
        let thread = (ebx >> 24 & 1) as usize;
        let machine = SimMachine::of([processor]);
        let hal = Hal::new(machine.processor(0), 1).unwrap();
        hal.set_system_information(HAL_PROFILE_SOURCE_INTERRUPT_HANDLER, &1_u64.to_le_bytes(), 1).unwrap();
        let cpuid = |leaf| machine.processor(0).model().cpuid(leaf, 0);
        let names = match hal.boot.selection.interface {
            Kind::Amd64 if has_core_counters(&cpuid) => CORE,
            Kind::Amd64 => K7,
            Kind::NetBurst => NETBURST,
            _ => INTEL,
        };
        let global = Global::of(cpuid).filter(|_| matches!(hal.boot.selection.interface, Kind::Amd64 | Kind::Emon));
        Self { machine, hal, global, names, log: RefCell::default(), thread, kernel: Cell::new(false) }
    }

    /// Creates a bench with initialized counters.
    pub fn new(processor: Processor) -> Self {
        let bench = Self::idle(processor);
        bench.initialize();
        bench
    }

    /// Creates a bench of an identity with initialized counters.
    pub fn named(name: &str) -> Self {
        Self::new(processor_of(cpuid_dumps::find(name).unwrap()))
    }

    pub fn initialize(&self) {
        if !self.hal.is_initialized(ProcessorIndex::BOOT) {
            simulation::access_first(&self.hal, self.machine.processor(0), 0);
        }
        assert!(self.hal.initialize(boot(self)));
    }

    pub fn release(&self) {
        self.hal.release(boot(self));
    }

    pub fn model(&self) -> MutexGuard<'_, Processor> {
        self.machine.processor(0).model()
    }

    /// Reads a register without recording an access.
    pub fn msr(&self, msr: u32) -> u64 {
        self.model().rdmsr(msr).unwrap()
    }

    /// Writes a register on behalf of other software.
    pub fn set_msr(&self, msr: u32, value: u64) {
        self.model().wrmsr(msr, value).unwrap();
    }

    /// Returns the accesses of the driver since the last call.
    pub fn take_log(&self) -> Vec<Access> {
        self.log.take()
    }

    pub fn counters(&self) -> u8 {
        self.hal.interface().counters()
    }

    pub fn kind(&self) -> Kind {
        self.hal.boot.selection.interface
    }

    /// Returns the number of counters with a select register, which precede the fixed ones.
    pub fn general(&self) -> u8 {
        (0..self.counters())
            .take_while(|counter| matches!(self.id(*counter), CounterId::General(_)))
            .map(|n| n + 1)
            .last()
            .unwrap_or(0)
    }

    /// Returns the bit of general counter 3 in the global control register if the microcode uses that counter: the
    /// register resets with the bit set, and the driver leaves it.
    pub fn left(&self) -> u64 {
        let [_, _, _, features] = self.model().cpuid(7, 0);
        u64::from(features >> 13 & 1) << 3
    }

    /// Returns the hardware's number of a counter. Threads that share a core number their own counters.
    pub fn number(&self, counter: u8) -> u8 {
        const COLUMNS: [[u8; 9]; 2] = [[0, 1, 4, 5, 8, 9, 12, 13, 16], [2, 3, 6, 7, 10, 11, 14, 15, 17]];
        match (self.kind(), self.counters()) {
            (Kind::NetBurst, 9) => COLUMNS[self.thread][usize::from(counter)],
            _ => counter,
        }
    }

    /// Returns the model's identifier of a counter.
    pub fn id(&self, counter: u8) -> CounterId {
        self.machine.counter(0, self.number(counter))
    }

    /// Returns the register that enables a general counter, by the manuals: a select register or a CCCR.
    pub fn select(&self, counter: u8) -> u32 {
        self.names.0 + self.names.2 * u32::from(self.number(counter))
    }

    /// Returns the register of `counter`, by the manuals.
    pub fn counter(&self, counter: u8) -> u32 {
        match self.id(counter) {
            CounterId::Fixed(number) => FIXED_CTR0 + u32::from(number),
            CounterId::General(number) => self.names.1 + self.names.2 * u32::from(number),
            CounterId::Metric(_) => PERF_METRICS,
        }
    }

    /// Returns the counters that have a source: on NetBurst by the manuals, otherwise as enumerated.
    pub fn usable(&self) -> CounterSet {
        match (self.kind(), self.counters()) {
            (Kind::NetBurst, 9) => [0, 6, 7, 8].into_iter().collect(),
            (Kind::NetBurst, _) => [0, 2, 3, 12, 13, 14, 15, 16, 17].into_iter().collect(),
            _ => self.counted().fold(CounterSet::NONE, |all, source| all.or(source.counters)),
        }
    }

    /// Lets other software enable a counter with its interrupt, shortly before its overflow.
    pub fn occupy(&self, counter: u8) {
        let nearly = (1 << self.hal.interface().width_of(counter)) - 16;
        self.set_counter(counter, if self.kind() == Kind::Emon { nearly & 0xFFFF_FFFF } else { nearly });
        match (self.kind(), self.id(counter)) {
            (Kind::NetBurst, _) => {
                let number = self.number(counter);
                let second = u32::from([2, 3, 14, 15, 17].contains(&number));
                // Clocks of MSR_FSB_ESCR0 and 1, or instructions of MSR_CRU_ESCR0 and 1.
                let (escr, event, select) = if number < 4 { (0x3A2, 0x13, 6) } else { (0x3B8, 0x02, 4) };
                self.set_msr(escr + second, event << 25 | 1 << 9 | 0xC);
                self.set_msr(self.select(counter), 1 << 26 | 3 << 16 | select << 13 | 1 << 12);
            }
            // The flag in the first register enables both counters.
            (Kind::P6, CounterId::General(1)) => {
                self.set_msr(0x187, 0x0013_0079);
                self.set_msr(0x186, self.msr(0x186) | 1 << 22);
            }
            (_, CounterId::General(_)) => self.set_msr(self.select(counter), 0x0053_003C),
            (_, CounterId::Fixed(number)) => {
                self.set_msr(FIXED_CTR_CTRL, self.msr(FIXED_CTR_CTRL) | 0xB << (4 * number));
                self.set_msr(GLOBAL_CTRL, self.msr(GLOBAL_CTRL) | self.bit(counter));
            }
            (_, CounterId::Metric(_)) => unreachable!("no program can enable one metric"),
        }
    }

    /// Writes a counter on behalf of other software.
    pub fn set_counter(&self, counter: u8, value: u64) {
        let value = value & ((1 << self.hal.interface().width_of(counter)) - 1);
        // Twice on NetBurst (erratum N15).
        (0..2).for_each(|_| self.set_msr(self.counter(counter), value));
    }

    /// Returns every register that the driver may access with this number of fixed counters, by the manuals.
    pub fn own_registers(&self, fixed: u8) -> Vec<u32> {
        let of_counters = (0..self.general()).flat_map(|counter| [self.select(counter), self.counter(counter)]);
        let mut own: Vec<u32> = of_counters.chain(self.global.into_iter().flat_map(Global::all)).collect();
        if self.kind() == Kind::NetBurst {
            let escrs = [0x3A0, 0x3A2, 0x3B8, 0x3CC];
            let seconds = escrs.map(|escr| escr + 1).into_iter().filter(|_| self.counters() == 18); // both columns
            own.extend(escrs.into_iter().chain(seconds).chain([0x1A0]));
        }
        own.extend(FIXED_CTR0..FIXED_CTR0 + u32::from(fixed));
        own.extend((fixed > 0).then_some(FIXED_CTR_CTRL));
        let [_, _, features, _] = self.model().cpuid(1, 0);
        if self.kind() == Kind::Emon && features >> 15 & 1 == 1 {
            own.push(PERF_CAPABILITIES);
            own.extend(self.global.map(|_| DEBUGCTL));
        }
        own
    }

    /// Returns the bit of `counter` in the global registers, by the manuals.
    pub fn bit(&self, counter: u8) -> u64 {
        match self.id(counter) {
            CounterId::General(number) => 1 << number,
            CounterId::Fixed(number) => 1 << (32 + u32::from(number)),
            CounterId::Metric(_) => 1 << 48,
        }
    }

    /// Returns the bits of all counters that have a source.
    pub fn own_bits(&self) -> u64 {
        self.usable().iter().fold(0, |all, counter| all | self.bit(counter))
    }

    /// Returns the values of the control registers of general and fixed counters, all zero if no counter is enabled.
    pub fn controls(&self) -> Vec<u64> {
        let fixed = self.usable().iter().any(|counter| matches!(self.id(counter), CounterId::Fixed(_)));
        let selects = (0..self.general()).map(|counter| self.select(counter));
        selects.chain(fixed.then_some(FIXED_CTR_CTRL)).map(|register| self.msr(register)).collect()
    }

    /// Returns USR, OS, interrupt and enable bits of `counter`, by the manuals. Not for NetBurst.
    pub fn control(&self, counter: u8) -> (bool, bool, bool, bool) {
        let bit = |register: u64, number: u32| register >> number & 1 == 1;
        match self.id(counter) {
            CounterId::General(_) => {
                let select = self.msr(self.select(counter));
                (bit(select, 16), bit(select, 17), bit(select, 20), bit(select, 22))
            }
            CounterId::Fixed(number) => {
                let field = self.msr(FIXED_CTR_CTRL) >> (4 * number);
                (bit(field, 1), bit(field, 0), bit(field, 3), bit(field, 0) || bit(field, 1))
            }
            CounterId::Metric(_) => unreachable!("metrics have no control of their own"),
        }
    }

    /// Returns the sources that a counter can count, in table order.
    pub fn sources(&self) -> Vec<u64> {
        self.counted().map(|source| source.source.source.0).collect()
    }

    fn counted(&self) -> impl Iterator<Item = SourceInformation> {
        self.hal.source_list().filter(|source| source.support == Support::Supported && !source.counters.is_empty())
    }

    /// Returns the number of sources that always find counters together.
    pub fn sources_at_once(&self) -> usize {
        let alike = self.counted().all(|source| source.counters == self.usable());
        if alike { self.counters().into() } else { 1 }
    }

    /// Returns the counters that can count a source of the interface's table: all, but on family 15h of AMD, by Linux,
    /// `amd_get_event_constraints_f15h`.
    pub fn counters_of_family(&self, source: u64) -> CounterSet {
        let signature = self.model().cpuid(1, 0)[0];
        if self.hal.interface().kind() != Kind::Amd64 || signature >> 20 & 0xFF != 6 {
            return CounterSet::first(CounterSet::MOST);
        }
        let select = self.hal.source_information(Source(source)).unwrap().source.select;
        let (event, umask) = (select & 0xFF, select >> 8 & 0xFF);
        CounterSet::from_bits(match event {
            0x00 if umask & 0xF0 != 0 && umask & 0x0F != 0 => 1 << 3,
            0x00..=0x1F => 0b11_1000,
            0x23 | 0x43 | 0x45 | 0x46 | 0x54 | 0x55 | 0x60..=0x9F | 0xD0..=0xDA => 0b111,
            0x20..=0x5F | 0xC0..=0xCF | 0xDB..=0xDF => 0b11_1111,
            _ => 0,
        })
    }

    /// Returns the first source that a second counter can count as well.
    pub fn anywhere(&self) -> u64 {
        *self.sources().first().unwrap()
    }

    /// Makes the counters that are reserved from now on count in kernel mode too, and so what occurs between the
    /// accesses of the driver.
    pub fn in_both_modes(self) -> Self {
        self.in_kernel_mode_too();
        self
    }

    /// As [`in_both_modes`](Self::in_both_modes).
    pub fn in_kernel_mode_too(&self) {
        self.kernel.set(true);
    }

    /// Reserves a counter for a source in user mode, with or without an interval. Its count must miss nothing.
    pub fn reserve(&self, source: u64, interval: Option<u32>) -> u8 {
        self.try_reserve(source, interval).unwrap()
    }

    pub fn try_reserve(&self, source: u64, interval: Option<u32>) -> Option<u8> {
        if let Some(interval) = interval {
            self.hal.set_interval(Source(source), interval).unwrap();
        }
        let state = self.hal.state_for(Source(source), 0, interval.is_some()).unwrap();
        let state = state.with_owner(1).with_counted(true);
        self.hal.reserve(ProcessorIndex::BOOT, state.with_user(true).with_kernel(self.kernel.get()))
    }

    /// Reserves exactly this counter, for a source that differs from that of the next counter.
    pub fn reserve_on(&self, counter: u8, interval: Option<u32>) -> u8 {
        let fitting: Vec<_> = self.counted().filter(|source| source.counters.has(counter)).collect();
        let source = fitting.iter().cycle().nth(usize::from(counter)).unwrap().source.source;
        self.reserve_source_on(source.0, counter, interval)
    }

    /// Reserves exactly this counter.
    pub fn reserve_source_on(&self, source: u64, counter: u8, interval: Option<u32>) -> u8 {
        let mut others = CounterSet::NONE;
        loop {
            let taken = self.reserve(source, interval);
            if taken == counter {
                self.hal.free(ProcessorIndex::BOOT, others);
                return counter;
            }
            others = others.with(taken);
        }
    }

    pub fn start(&self, counters: impl IntoIterator<Item = u8>) -> CounterSet {
        let counters = counters.into_iter().collect();
        self.hal.start(boot(self), counters);
        counters
    }

    /// Reserves and starts a counter.
    pub fn started(&self, source: u64, interval: Option<u32>) -> u8 {
        let counter = self.reserve(source, interval);
        self.start([counter]);
        counter
    }

    pub fn stop(&self, counters: CounterSet) {
        self.hal.stop(boot(self), counters);
    }

    /// Stops and frees all counters and returns the totals.
    pub fn finish(&self) -> Vec<u64> {
        let counters = self.hal.cpu_counters(ProcessorIndex::BOOT).counters(|state| !state.is_free());
        self.stop(counters);
        let totals = counters.iter().map(|counter| self.hal.total(ProcessorIndex::BOOT, counter)).collect();
        self.hal.free(ProcessorIndex::BOOT, counters);
        totals
    }

    /// Executes `events` of every event in user mode.
    pub fn run(&self, events: u64) {
        self.run_events(&|_| events);
    }

    pub fn run_events(&self, events: &dyn Fn(Selected) -> u64) {
        self.machine.run(0, Mode::User, events);
    }

    /// Delivers a pending interrupt, after which the HAL unmasks the LVT entry.
    pub fn deliver(&self) -> bool {
        let delivered = self.model().take_interrupt();
        let entry = self.model().lvt();
        self.model().set_lvt(entry & !(1 << 16));
        delivered
    }

    /// Lets the driver serve an interrupt, pending or not, and returns the counters that it reports.
    pub fn serve(&self) -> Vec<u8> {
        self.hal.interrupt(boot(self)).0.iter().collect()
    }

    /// Returns the total of a counter in the model's ledger.
    pub fn given(&self, counter: u8) -> u64 {
        self.machine.counted(0, u32::from(self.number(counter)))
    }

    /// Returns how many of the [given](Self::given) events occurred between accesses of the driver.
    pub fn between(&self, counter: u8) -> u64 {
        self.machine.between(0, u32::from(self.number(counter)))
    }

    /// Lets the processor sleep, which resets its registers.
    pub fn lose_registers(&self) {
        (0..self.general()).for_each(|counter| self.set_msr(self.select(counter), 0));
        let general: CounterSet = (0..self.general()).collect();
        general.or(self.usable()).iter().for_each(|counter| self.set_counter(counter, 0));
        if self.kind() == Kind::NetBurst {
            // The registers of one thread's column, or of both.
            let own = |escr: &u32| self.counters() == 18 || escr % 2 == u32::from(self.thread == 1);
            let escrs = [0x3A0, 0x3A1, 0x3A2, 0x3A3, 0x3B8, 0x3B9, 0x3CC, 0x3CD];
            escrs.into_iter().filter(own).for_each(|escr| self.set_msr(escr, 0));
            return;
        }
        if self.hal.interface().pmu_version() >= 2 {
            self.set_msr(FIXED_CTR_CTRL, 0);
        }
        if let Some(global) = self.global {
            self.set_msr(global.control, (1 << self.general()) - 1);
            self.set_msr(global.clear, self.own_bits());
        }
    }

    /// Runs a complete life cycle of the driver with all counters in use, every other one with an interval. Returns all
    /// accesses.
    pub fn whole_life(&self) -> Vec<Access> {
        self.initialize();
        let armed = |counter: u8| counter.is_multiple_of(2).then_some(SHORT + u32::from(counter));
        let all: CounterSet = if self.kind() == Kind::NetBurst {
            let sources = self.sources();
            let counters = (0..self.counters()).zip(sources.iter().cycle());
            counters.filter_map(|(counter, source)| self.try_reserve(*source, armed(counter))).collect()
        } else {
            self.usable().iter().map(|counter| self.reserve_on(counter, armed(counter))).collect()
        };
        assert_eq!(all, self.usable(), "all that are usable");
        self.start(all.iter());
        for events in [u64::from(SHORT) + 20, 1, u64::from(SHORT) - 1, 77] {
            self.run(events);
            self.deliver();
            self.hal.check_overflow(boot(self));
            self.serve();
            all.iter().for_each(|counter| assert!(self.hal.count(boot(self), counter) > 0));
        }
        self.hal.save(boot(self));
        self.lose_registers();
        self.hal.restore(boot(self));
        self.run(u64::from(SHORT) - 100);
        for counter in all.iter() {
            self.stop(CounterSet::NONE.with(counter));
            self.serve();
        }
        self.hal.free(ProcessorIndex::BOOT, all);
        self.release();
        assert_eq!(self.model().enabled_counters(), []);
        assert_eq!(self.model().accesses().faulted, 0);
        self.take_log()
    }
}
