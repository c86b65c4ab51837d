//! Laws for any sequence of starts, stops, interval changes, events and interrupts, on 1 to 64 processors.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use model::{InterruptMode, Mode};
use pmu::hal::information::HAL_PROFILE_SOURCE_INTERRUPT_HANDLER;
use pmu::state::CounterSet;
use pmu::{Cpu, Cpuid, Hal, Msr, ProcessorIndex, ProfileInterface, Source};
use proptest::prelude::*;
use raw_cpuid::CpuIdResult;
use simulation::{ModelCpu, SimMachine, boot, current};

/// A processor that records which registers are accessed.
struct Recorder<'a> {
    cpu: &'a ModelCpu,
    number: u32,
    accessed: &'a RefCell<BTreeSet<(u32, u32)>>,
    /// Whether its registers are lost or about to be.
    asleep: bool,
}

impl Recorder<'_> {
    fn note(&self, msr: Msr) {
        assert!(!self.asleep, "{msr:?} of a processor that sleeps");
        self.accessed.borrow_mut().insert((self.number, msr.address()));
    }
}

impl Cpuid for Recorder<'_> {
    fn cpuid(&self, leaf: u32, subleaf: u32) -> CpuIdResult {
        self.cpu.cpuid(leaf, subleaf)
    }
}

impl Cpu for Recorder<'_> {
    fn rdmsr(&self, msr: Msr) -> u64 {
        self.note(msr);
        self.cpu.rdmsr(msr)
    }

    fn wrmsr(&self, msr: Msr, value: u64) {
        self.note(msr);
        self.cpu.wrmsr(msr, value);
    }

    fn rdpmc(&self, index: u32) -> u64 {
        assert!(!self.asleep, "RDPMC on a processor that sleeps");
        self.cpu.rdpmc(index)
    }

    fn lvt_pmi(&self) -> u32 {
        self.cpu.lvt_pmi()
    }

    fn extended_lvt(&self, index: u8) -> u32 {
        self.cpu.extended_lvt(index)
    }

    fn set_lvt_pmi(&self, entry: u32) {
        self.cpu.set_lvt_pmi(entry);
    }

    fn run_loop(&self, iterations: u32) {
        self.cpu.run_loop(iterations);
    }

    fn time_stamp(&self) -> u64 {
        self.cpu.time_stamp()
    }

    fn user_rdpmc(&self) -> bool {
        self.cpu.user_rdpmc()
    }

    fn save_area(&self, word: u16) -> u64 {
        self.cpu.save_area(word)
    }

    fn set_save_area(&self, word: u16, value: u64) {
        self.cpu.set_save_area(word, value);
    }
}

/// IA32_PERF_GLOBAL_STATUS and PerfCntrGlobalStatus, which the driver only reads.
const STATUS: [u32; 2] = [0x38E, 0xC000_0300];

/// IA32_MISC_ENABLE, which the NetBurst interface reads and never writes.
const MISC_ENABLE: u32 = 0x1A0;

/// IA32_PERF_CAPABILITIES, which the driver only reads.
const CAPABILITIES: u32 = 0x345;

/// IA32_DEBUGCTL, of which the driver changes the bits that stop counters.
const DEBUGCTL: u32 = 0x1D9;

/// Returns the registers of a processor's interface, from the manuals.
fn own_registers(name: &str, processor: u32) -> Vec<u32> {
    let identity = cpuid_dumps::find(name).unwrap().of_processor(processor);
    let expected = identity.expected;
    let general = u32::from(expected.counters - expected.fixed);
    let has_full_width = identity.perf_capabilities() >> 13 & 1 == 1;
    let counter0 = if has_full_width { 0x4C1 } else { 0xC1 };
    let version_1 = (0x186..0x186 + general).chain(counter0..counter0 + general).chain([CAPABILITIES]);
    match name {
        "amd-legacy" => (0xC001_0000..=0xC001_0007).collect(),
        "netburst-cedarmill" => {
            let escrs = [0x3A0, 0x3A2, 0x3B8, 0x3CC].into_iter().flat_map(|escr| [escr, escr + 1]);
            (0x300..=0x311).chain(0x360..=0x371).chain(escrs).chain([MISC_ENABLE]).collect()
        }
        "p6-coppermine" => (0x186..=0x187).chain(0xC1..=0xC2).collect(),
        "pentium-p54c" => (0x11..=0x13).collect(),
        "bulldozer-fx8150" | "zen3-5950x" => (0xC001_0200..=0xC001_020B).collect(),
        "zen4-7700x" | "zen5-9800x3d" => (0xC001_0200..=0xC001_020B).chain(0xC000_0300..=0xC000_0302).collect(),
        "intel-v1" => version_1.collect(),
        _ => {
            let fixed = (0x309..0x309 + u32::from(expected.fixed)).chain([0x38D]);
            version_1.chain(fixed).chain([0x38E, 0x38F, 0x390, DEBUGCTL]).collect()
        }
    }
}

/// Identities without a register that stops all counters.
const STOPS_NOT_ALL: [&str; 6] =
    ["amd-legacy", "bulldozer-fx8150", "zen3-5950x", "intel-v1", "netburst-cedarmill", "p6-coppermine"];

/// A step of the sequence. Numbers are taken modulo the number of choices.
#[derive(Debug, Clone, Copy)]
enum Step {
    Start {
        processor: u32,
        source: usize,
        modes: u8,
        interrupt: bool,
        counted: bool,
    },
    Stop {
        processor: u32,
        counter: u8,
    },
    Interval {
        source: usize,
        interval: u32,
    },
    Run {
        processor: u32,
        mode: bool,
        events: u64,
    },
    /// The interrupt is late: it is not served until the next run, and may not be served before a stop.
    RunUnserved {
        processor: u32,
        events: u64,
    },
    Sleep {
        processor: u32,
    },
    /// A cancelled sleep loses nothing.
    Wake {
        processor: u32,
        lost: bool,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let processor = 0..64_u32;
    prop_oneof![
        4 => (processor.clone(), 0..4_usize, 1..4_u8, any::<bool>(), any::<bool>()).prop_map(
            |(processor, source, modes, interrupt, counted)| {
                Step::Start { processor, source, modes, interrupt, counted }
            }
        ),
        2 => (processor.clone(), 0..11_u8).prop_map(|(processor, counter)| Step::Stop { processor, counter }),
        1 => (0..4_usize, prop_oneof![0..20_000_u32, any::<u32>()])
            .prop_map(|(source, interval)| Step::Interval { source, interval }),
        6 => (processor.clone(), any::<bool>(), 0..200_000_u64)
            .prop_map(|(processor, mode, events)| Step::Run { processor, mode, events }),
        1 => (processor.clone(), 0..200_000_u64).prop_map(|(processor, events)| Step::RunUnserved { processor, events }),
        1 => processor.clone().prop_map(|processor| Step::Sleep { processor }),
        2 => (processor, any::<bool>()).prop_map(|(processor, lost)| Step::Wake { processor, lost }),
    ]
}

struct World<'a> {
    name: &'static str,
    machine: &'a SimMachine,
    hal: Hal,
    /// Accesses as processor and register.
    accessed: RefCell<BTreeSet<(u32, u32)>>,
    /// For each counter in use, its totals in the model's ledger before its start, of all events and of those between
    /// accesses, and whether its count must miss nothing.
    before: BTreeMap<(u32, u8), (u64, u64, bool)>,
    asleep: BTreeSet<u32>,
    hal_unmasks: bool,
}

impl World<'_> {
    fn cpu(&self, processor: u32) -> Recorder<'_> {
        let asleep = self.asleep.contains(&processor);
        Recorder { cpu: self.machine.processor(processor), number: processor, accessed: &self.accessed, asleep }
    }

    /// Delivers interrupts as long as one is pending. The LVT entry, which Intel processors mask, is unmasked by the
    /// HAL or left to the code under test.
    fn serve(&self, processor: u32) {
        let masked = 1 << 16;
        while self.machine.processor(processor).model().take_interrupt() {
            if self.hal_unmasks {
                let mut model = self.machine.processor(processor).model();
                let entry = model.lvt();
                model.set_lvt(entry & !masked);
            }
            self.hal.interrupt(current(&self.cpu(processor), processor));
        }
    }

    /// Returns the totals in the model's ledger of all events, and of those between accesses.
    fn ledger(&self, processor: u32, counter: u8) -> (u64, u64) {
        let counter = u32::from(counter);
        (self.machine.counted(processor, counter), self.machine.between(processor, counter))
    }

    /// Returns which counts are right now: that of the model's ledger since the start of the counter. A count that may
    /// miss events misses none but those between accesses.
    fn right(&self, processor: u32, counter: u8, before: (u64, u64, bool)) -> RangeInclusive<u64> {
        let (all, between) = self.ledger(processor, counter);
        let most = all - before.0;
        let missing = if before.2 { 0 } else { between - before.1 };
        most - missing..=most
    }

    /// Checks every count.
    fn check(&self) -> Result<(), TestCaseError> {
        for ((processor, counter), before) in &self.before {
            let count = self.hal.count(current(&self.cpu(*processor), *processor), *counter);
            let right = self.right(*processor, *counter, *before);
            prop_assert!(right.contains(&count), "counter {counter} of processor {processor}: {count}, not {right:?}");
        }
        Ok(())
    }

    fn wake(&mut self, processor: u32, lost: bool) {
        if self.asleep.remove(&processor) && lost {
            let read_only = [STATUS.as_slice(), &[MISC_ENABLE, CAPABILITIES]].concat();
            let lost = own_registers(self.name, processor).into_iter();
            for register in lost.filter(|register| !read_only.contains(register)) {
                self.machine.processor(processor).model().wrmsr(register, 0).unwrap();
            }
        }
        self.hal.restore(current(&self.cpu(processor), processor));
    }

    fn take(&mut self, step: Step, sources: &[Source], processors: u32) {
        match step {
            Step::Start { processor, source, modes, interrupt, counted } => {
                let processor = processor % processors;
                let interrupt = interrupt && self.hal.interface().interrupts();
                let state = self.hal.state_for(sources[source], 0, interrupt).unwrap().with_owner(1);
                let state = state.with_user(modes & 1 != 0).with_kernel(modes & 2 != 0).with_counted(counted);
                let Some(counter) = self.hal.reserve(ProcessorIndex::new(processor), state) else { return };
                let (all, between) = self.ledger(processor, counter);
                let exact = counted || !interrupt || !STOPS_NOT_ALL.contains(&self.name);
                self.before.insert((processor, counter), (all, between, exact));
                self.hal.start(current(&self.cpu(processor), processor), CounterSet::NONE.with(counter));
            }
            Step::Stop { processor, counter } => {
                let processor = processor % processors;
                if let Some(before) = self.before.remove(&(processor, counter)) {
                    self.hal.stop(current(&self.cpu(processor), processor), CounterSet::NONE.with(counter));
                    let (right, total) = (
                        self.right(processor, counter, before),
                        self.hal.total(ProcessorIndex::new(processor), counter),
                    );
                    assert!(right.contains(&total), "the final count: {total}, not {right:?}");
                    self.hal.free(ProcessorIndex::new(processor), CounterSet::NONE.with(counter));
                }
            }
            Step::Interval { source, interval } => {
                let (_, used) = self.hal.set_interval(sources[source], interval).unwrap();
                assert_eq!(used, interval.clamp(4_096, 0x7FFF_FFFF));
            }
            Step::Run { processor, mode, events } => {
                let processor = processor % processors;
                self.machine.run(processor, if mode { Mode::User } else { Mode::Kernel }, &|_| events);
                self.serve(processor);
            }
            Step::RunUnserved { processor, events } => {
                self.machine.run(processor % processors, Mode::User, &|_| events);
            }
            Step::Sleep { processor } => {
                let processor = processor % processors;
                let _ = self.hal.save(current(&self.cpu(processor), processor));
                self.asleep.insert(processor);
            }
            Step::Wake { processor, lost } => self.wake(processor % processors, lost),
        }
    }
}

proptest! {
    #[test]
    fn the_ledger_is_exact_and_no_register_but_our_own_is_touched(
        name in prop::sample::select(vec![
            "amd-legacy",
            "bulldozer-fx8150",
            "zen3-5950x",
            "zen4-7700x",
            "zen5-9800x3d",
            "intel-v1",
            "intel-v2",
            "haswell-4710mq",
            "intel-hybrid",
            "netburst-cedarmill",
            "p6-coppermine",
            "pentium-p54c",
        ]),
        mode in prop::sample::select(InterruptMode::ALL.to_vec()),
        hal_unmasks in any::<bool>(),
        processors in 1..=64_u32,
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let machine = SimMachine::named(name, processors).with_interrupt_mode(mode);
        let hal = Hal::new(machine.processor(0), processors).unwrap();
        hal.set_system_information(HAL_PROFILE_SOURCE_INTERRUPT_HANDLER, &1_u64.to_le_bytes(), 1).unwrap();
        let mut world = World { name, machine: &machine, hal, accessed: RefCell::default(), before: BTreeMap::new(), asleep: BTreeSet::new(), hal_unmasks };
        for processor in 0..processors {
            world.hal.probe(current(&world.cpu(processor), processor));
            simulation::access_first(&world.hal, machine.processor(processor), processor);
            prop_assert!(world.hal.initialize(current(&world.cpu(processor), processor)));
        }
        let sources = match name {
            "pentium-p54c" => [2, 6, 8, 9],
            _ if name.starts_with("intel") || name.starts_with("haswell") => [2, 6, 27, 19],
            "netburst-cedarmill" | "p6-coppermine" => [2, 6, 10, 19],
            _ => [2, 6, 8, 11],
        }
        .map(Source);
        for step in steps {
            world.take(step, &sources, processors);
            world.check()?;
        }

        for (processor, counter) in std::mem::take(&mut world.before).into_keys() {
            world.hal.stop(current(&world.cpu(processor), processor), CounterSet::NONE.with(counter));
        }
        for (processor, cpu) in (0..).zip(machine.all()) {
            prop_assert_eq!(cpu.model().enabled_counters(), [], "stopped, processor {}", processor);
            if processor % 2 == 0 {
                world.wake(processor, true); // the others are released while asleep, which restores their state
            }
            world.serve(processor); // a late interrupt
            world.hal.release(current(&world.cpu(processor), processor));
            world.wake(processor, false);
            prop_assert_eq!(cpu.model().enabled_counters(), [], "released, processor {}", processor);
            prop_assert_eq!(cpu.model().accesses().faulted, 0);
        }
        let accessed = world.accessed.into_inner();
        for processor in 0..processors {
            let own = own_registers(name, processor);
            let accessed = accessed.iter().filter(|(number, _)| *number == processor);
            let others: Vec<_> = accessed.map(|(_, register)| register).filter(|register| !own.contains(register)).collect();
            prop_assert!(others.is_empty(), "{:x?}", others);
        }
    }

    #[test]
    fn a_counter_that_wraps_is_followed_as_long_as_it_is_read_within_half_its_range(
        name in prop::sample::select(vec![
            "amd-legacy",
            "zen3-5950x",
            "zen5-9800x3d",
            "intel-v1",
            "intel-v2",
            "yonah-t2400",
            "intel-hybrid-efficient",
            "netburst-irwindale",
            "p6-dothan",
            "pentium-p55c",
        ]),
        chunks in prop::collection::vec(0..1_u64 << 47, 1..30),
    ) {
        let machine = SimMachine::named(name, 1);
        let cpu = machine.processor(0);
        let hal = Hal::new(cpu, 1).unwrap();
        simulation::access_first(&hal, cpu, 0);
        prop_assert!(hal.initialize(boot(cpu)));
        let state = hal.state_for(Source(2), 0, false).unwrap().with_owner(1).with_user(true);
        let counter = hal.reserve(ProcessorIndex::BOOT, state).unwrap();
        hal.start(boot(cpu), CounterSet::NONE.with(counter));
        let mut happened = 0;
        for chunk in chunks {
            let chunk = chunk >> (48 - hal.interface().width_of(counter));
            machine.run(0, Mode::User, &|_| chunk);
            happened += chunk;
            prop_assert_eq!(hal.count(boot(cpu), counter), happened);
        }
        hal.stop(boot(cpu), CounterSet::NONE.with(counter));
        prop_assert_eq!(hal.total(ProcessorIndex::BOOT, counter), happened);
    }

    #[test]
    fn every_interval_overflows_after_just_so_many_events(
        name in prop::sample::select(vec![
            "amd-legacy",
            "zen3-5950x",
            "zen5-9800x3d",
            "intel-v1",
            "intel-v2",
            "yonah-t2400",
            "intel-hybrid-efficient",
            "netburst-cedarmill",
            "netburst-irwindale",
            "p6-dothan",
        ]),
        interval in prop_oneof![4_096..10_000_u32, 0x7FFF_0000..=0x7FFF_FFFF_u32, 4_096..=0x7FFF_FFFF_u32],
        rounds in 1..4_u32,
        source in prop::sample::select(vec![2_u64, 6]),
    ) {
        let machine = SimMachine::named(name, 1);
        let cpu = machine.processor(0);
        let hal = Hal::new(cpu, 1).unwrap();
        hal.set_system_information(HAL_PROFILE_SOURCE_INTERRUPT_HANDLER, &1_u64.to_le_bytes(), 1).unwrap();
        simulation::access_first(&hal, cpu, 0);
        prop_assert!(hal.initialize(boot(cpu)));
        hal.set_interval(Source(source), interval).unwrap();
        let state = hal.state_for(Source(source), 0, true).unwrap().with_owner(1).with_user(true);
        let reserved = hal.reserve(ProcessorIndex::BOOT, state).unwrap();
        let counter = CounterSet::NONE.with(reserved);
        hal.start(boot(cpu), counter);
        for _ in 0..rounds {
            machine.run(0, Mode::User, &|_| u64::from(interval) - 1);
            hal.count(boot(cpu), reserved); // an intermediate read changes nothing
            prop_assert!(!cpu.model().interrupt_pending());
            prop_assert_eq!(hal.check_overflow(boot(cpu)).number(), 0);
            machine.run(0, Mode::User, &|_| 1);
            prop_assert!(cpu.model().take_interrupt());
            let entry = cpu.model().lvt();
            cpu.model().set_lvt(entry & !(1 << 16));
            prop_assert_eq!(hal.check_overflow(boot(cpu)).0, counter);
            prop_assert_eq!(hal.interrupt(boot(cpu)).0, counter);
        }
        hal.stop(boot(cpu), counter);
        prop_assert_eq!(hal.total(ProcessorIndex::BOOT, reserved), u64::from(interval) * u64::from(rounds));
    }
}
