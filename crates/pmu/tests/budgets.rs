//! The exact number of MSR accesses of each operation, for every number of counters and overflows.
//!
//! | | start | stop | interrupt |
//! |---|---|---|---|
//! | Amd64 before PerfMonV2, Emon version 1 | 2N W | N W + N P | Ns P + k W |
//! | Amd64 with PerfMonV2 | (2N + 1) W, 1 W more with intervals | 1 W + N P | 2 R + (3 + k) W + k P |
//! | Emon version 2 and later | (2N + F + 1) W, 1 W more if F > 0 | 1 W + (N + F) P | 2 R + (3 + k) W + k P |
//! | NetBurst | 4N W | N W + N P | Ns R + Ns P + 3k W |
//! | P6 | 2N W | N W + N P | Ns P + k W |
//! | Pentium | (N + 1) W | 1 W + N R | none |
//!
//! The k P of an interrupt read what each counter counted between its overflow and its reload, so that counts are
//! exact. The second R of an interrupt with a status register reads the global control register, because the writes
//! that stop and start the counters would remove the traces of another program that changed it. An interrupt while none
//! of our counters runs costs 1 R + 1 W with a status register, to acknowledge it.
//!
//! An event of AMD that takes two counters costs 2 W more at the start, 1 W more at the stop, and 1 W more for each
//! overflow; `pairs.rs` asserts them.
//!
//! On Intel processors an interrupt also reads the LVT entry once, and writes it once if it is masked.
//!
//! R is RDMSR, W is WRMSR, P is RDPMC. N is the number of general counters, Ns of them with an interval and k
//! overflowed; F is the number of fixed counters. The assertions explain additional costs of a design.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod old;

use model::{CounterId, Mode};
use pmu::hal::information::HAL_PROFILE_SOURCE_INTERRUPT_HANDLER;
use pmu::interface::Enabled;
use pmu::state::CounterSet;
use pmu::{Hal, Interface, ProcessorIndex, ProfileInterface, Source};
use simulation::{SimMachine, boot};

/// (RDMSR, WRMSR, RDPMC)
type Cost = (u64, u64, u64);

/// A processor of an identity.
struct Bench {
    machine: SimMachine,
    hal: Hal,
    /// Whether the processor has global registers.
    is_global: bool,
}

impl Bench {
    fn new(identity: &str) -> Self {
        let machine = SimMachine::named(identity, 1);
        let hal = Hal::new(machine.processor(0), 1).unwrap();
        hal.set_system_information(HAL_PROFILE_SOURCE_INTERRUPT_HANDLER, &1_u64.to_le_bytes(), 1).unwrap();
        simulation::access_first(&hal, machine.processor(0), 0);
        assert!(hal.initialize(machine.current(0)));
        Self { machine, hal, is_global: GLOBAL.contains(&identity) }
    }

    /// Returns the accesses of `work`.
    fn cost(&self, work: impl FnOnce()) -> Cost {
        let accesses = || self.machine.processor(0).model().accesses();
        let before = accesses();
        work();
        let after = accesses();
        (after.rdmsr - before.rdmsr, after.wrmsr - before.wrmsr, after.rdpmc - before.rdpmc)
    }

    /// Reserves a counter for the first source that gets one, fixed counters first.
    fn reserve(&self, interrupt: bool) -> u8 {
        self.reserve_for(interrupt, false)
    }

    /// As [`reserve`](Self::reserve). Whether its count must miss nothing.
    fn reserve_for(&self, interrupt: bool, counted: bool) -> u8 {
        // On Emon: instructions, core cycles, reference cycles, and branches, which no fixed counter counts.
        let sources = if self.is_intel() { [0x02, 0x13, 0x1B, 0x06].as_slice() } else { &[0x02] };
        let reserve = |source: &u64| {
            let state = self.hal.state_for(Source(*source), 0, interrupt).unwrap();
            self.hal.reserve(ProcessorIndex::BOOT, state.with_owner(1).with_user(true).with_counted(counted))
        };
        let (mut fixed, mut any) = (sources.iter(), sources.iter().rev());
        let is_fixed = |counter: &u8| matches!(self.machine.counter(0, *counter), CounterId::Fixed(_));
        fixed.find_map(|source| self.kept(reserve(source), is_fixed)).or_else(|| any.find_map(reserve)).unwrap()
    }

    /// Returns the counter if `wanted` accepts it, and frees it otherwise.
    fn kept(&self, counter: Option<u8>, wanted: impl Fn(&u8) -> bool) -> Option<u8> {
        let kept = counter.filter(wanted);
        if let (Some(other), None) = (counter, kept) {
            self.hal.free(ProcessorIndex::BOOT, CounterSet::NONE.with(other));
        }
        kept
    }

    fn is_intel(&self) -> bool {
        matches!(self.hal.interface(), Interface::Emon(_))
    }

    /// Returns the number of writes that starting these counters costs.
    fn start_writes(&self, counters: CounterSet) -> u64 {
        let is_fixed = |counter: &u8| matches!(self.machine.counter(0, *counter), CounterId::Fixed(_));
        let fixed = counters.iter().filter(is_fixed).count() as u64;
        let general = u64::from(counters.len()) - fixed;
        let global = u64::from(self.is_global);
        2 * general + fixed + global + u64::from(fixed > 0) + self.thaw(counters)
    }

    /// With PerfMonV2 each start with an interval costs one more write, which clears the status and so unfreezes
    /// counters that other software froze. Checking first would cost as much.
    fn thaw(&self, counters: CounterSet) -> u64 {
        let cpu_counters = self.hal.cpu_counters(ProcessorIndex::BOOT);
        let sampling = counters.iter().any(|counter| cpu_counters.get(counter).interrupt());
        u64::from(self.is_global && !self.is_intel() && sampling)
    }

    fn start(&self, counters: CounterSet) {
        self.hal.start(self.machine.current(0), counters);
    }

    fn stop(&self, counters: CounterSet) {
        let _ = self.hal.stop(self.machine.current(0), counters);
        self.hal.free(ProcessorIndex::BOOT, counters);
    }
}

/// Identities without and with global registers.
const PLAIN: [&str; 5] = ["amd-legacy", "k8-clawhammer", "bulldozer-fx8150", "zen3-5950x", "intel-v1"];
const GLOBAL: [&str; 8] = [
    "core2-e5200",
    "core2-6420",
    "haswell-4710mq",
    "alder-lake-12900k",
    "intel-hybrid",
    "intel-hybrid-efficient",
    "zen4-7700x",
    "zen5-9800x3d",
];

fn all() -> impl Iterator<Item = (&'static str, bool)> {
    PLAIN.iter().map(|name| (*name, false)).chain(GLOBAL.iter().map(|name| (*name, true)))
}

#[test]
fn start_and_stop_of_n_counters() {
    for (name, global) in all() {
        for interrupt in [false, true] {
            let most = Bench::new(name).hal.interface().counters();
            assert!(most >= 2, "{name}");
            for count in 1..=most {
                let bench = Bench::new(name);
                let counters: CounterSet = (0..count).map(|_| bench.reserve(interrupt)).collect();
                let n = u64::from(count);
                let start = (0, bench.start_writes(counters), 0);
                let stop = if global { (0, 1, n) } else { (0, n, n) };
                assert_eq!(bench.cost(|| bench.start(counters)), start, "{name}, start of {n}");
                assert_eq!(bench.cost(|| bench.stop(counters)), stop, "{name}, stop of {n}");
            }
        }
    }
}

#[test]
fn start_of_general_counters_alone_costs_nothing_for_fixed_ones() {
    for name in GLOBAL {
        let bench = Bench::new(name);
        let fixed = cpuid_dumps::find(name).unwrap().expected.fixed;
        (0..fixed).for_each(|_| _ = bench.reserve(false)); // reserved, but not started
        let counters: CounterSet = (fixed..bench.hal.interface().counters()).map(|_| bench.reserve(true)).collect();
        let n = u64::from(counters.len());
        let start = (0, 2 * n + 1 + bench.thaw(counters), 0);
        assert_eq!(bench.cost(|| bench.start(counters)), start, "{name}");
    }
}

#[test]
fn start_and_stop_of_one_counter_cost_the_same_beside_any_number_of_others() {
    for (name, global) in all() {
        let bench = Bench::new(name);
        let mut running = CounterSet::NONE;
        for _ in 0..bench.hal.interface().counters() {
            let counter = bench.reserve(false);
            running = running.with(counter);
            let start = if global { (0, 3, 0) } else { (0, 2, 0) };
            assert_eq!(bench.cost(|| bench.start(CounterSet::NONE.with(counter))), start, "{name}");
        }
        for counter in running.iter() {
            assert_eq!(bench.cost(|| bench.stop(CounterSet::NONE.with(counter))), (0, 1, 1), "{name}");
        }
    }
}

#[test]
fn a_start_with_intervals_costs_one_write_more_where_a_status_may_be_stale_and_only_once() {
    // A counter that counted without an interval may have wrapped, and one that was stopped with its interrupt pending
    // has overflowed. Each may have left its status bit set. The first interrupt after the next start would take the
    // bit for an overflow and report events that did not occur. One write clears the bits of all started counters.
    for (name, global) in all() {
        for (interrupt, events, is_stale) in [(false, 0, true), (true, 10, false), (true, 70_000, true)] {
            let bench = Bench::new(name);
            let most = bench.hal.interface().counters();
            let start = |interrupt| {
                let counters: CounterSet = (0..most).map(|_| bench.reserve(interrupt)).collect();
                (counters, bench.cost(|| bench.start(counters)).1 - bench.start_writes(counters))
            };
            let (counters, _) = start(interrupt);
            bench.machine.run(0, Mode::User, &|_| events);
            bench.stop(counters);
            // With PerfMonV2 each start clears the status.
            for more in [u64::from(global && is_stale && bench.is_intel()), 0] {
                let (counters, found) = start(true);
                assert_eq!(found, more, "{name}, {interrupt}, {events}");
                bench.stop(counters);
            }
        }
    }
}

#[test]
fn initialization_and_release_have_fixed_costs() {
    for (name, global) in all() {
        let identity = cpuid_dumps::find(name).unwrap();
        let bench = Bench::new(name);
        let (g, f) = (u64::from(global), u64::from(identity.expected.fixed));
        let (n, has_fixed) = (u64::from(identity.expected.counters) - f, u64::from(f > 0));
        let cpu = bench.machine.processor(0);
        let capabilities = u64::from(bench.is_intel() && identity.cpuid().cpuid(1, 0)[2] >> 15 & 1 == 1);
        // IA32_DEBUGCTL is read where its bits can stop counters, and written where it does not stop them in SMM yet.
        // The release puts it back.
        let freeze = capabilities * g;
        let smm = u64::from(identity.perf_capabilities() >> 12 & 1 == 1);
        let release = (smm, n + has_fixed + 2 * g + smm, 0);
        assert_eq!(bench.cost(|| bench.hal.release(boot(cpu))), release, "{name}");
        // The probe of a select register, a general counter and each fixed counter takes two writes and a read.
        let tried = 2 + f;
        let cost = (freeze + tried, n + 2 * g + smm + has_fixed + 2 * tried, 0);
        assert_eq!(bench.cost(|| assert!(bench.hal.initialize(boot(cpu)))), cost, "{name}");
    }
}

#[test]
fn an_interrupt_with_k_of_n_counters_overflowed() {
    for (name, global, counted) in all().flat_map(|(name, global)| [false, true].map(|counted| (name, global, counted)))
    {
        let most = Bench::new(name).hal.interface().counters();
        for with_interval in 1..=most {
            for without in [0, most - with_interval] {
                for overflowed in 0..=with_interval {
                    let bench = Bench::new(name);
                    // Started at different times, so that only the first ones are due.
                    let due: CounterSet = (0..overflowed).map(|_| bench.reserve_for(true, counted)).collect();
                    let later = overflowed..with_interval;
                    let later: CounterSet = later.map(|_| bench.reserve_for(true, counted)).collect();
                    let others: CounterSet = (0..without).map(|_| bench.reserve(false)).collect();
                    bench.start(due);
                    bench.start(others);
                    bench.machine.run(0, Mode::User, &|_| 60_000);
                    bench.start(later);
                    bench.machine.run(0, Mode::User, &|_| 10_000);

                    let mut told = CounterSet::NONE;
                    let cost = bench.cost(|| told = bench.hal.interrupt(bench.machine.current(0)).0);
                    let (n, k) = (u64::from(with_interval), u64::from(overflowed));
                    // Without a status register each counter is read. With one, only counters that overflowed are read:
                    // they hold the events since the overflow, which would be missing in the count. The control
                    // register is read before it is written, to find what another program changed. Without one, each
                    // counter that overflowed, whose count must miss nothing, is stopped by its select register until
                    // it is loaded: one read and two writes, and another reading, because events follow the first.
                    let budget = match (global, counted) {
                        (true, _) => (2, 3 + k, k),
                        (false, false) => (0, k, n),
                        (false, true) => (k, 3 * k, n + k),
                    };
                    assert_eq!(cost, budget, "{name}: {k} of {n}, {without} others, {counted}");
                    assert_eq!(told, due, "{name}");
                }
            }
        }
    }
}

#[test]
fn an_interrupt_without_active_counters_costs_the_status_and_nothing_after_release() {
    for (name, global) in all() {
        let bench = Bench::new(name);
        let serve = || _ = bench.hal.interrupt(bench.machine.current(0));
        // The status is read, and the bits of our counters are cleared, even if none is set.
        let budget = if global { (1, 1, 0) } else { (0, 0, 0) };
        assert_eq!(bench.cost(serve), budget, "{name}");
        bench.hal.release(bench.machine.current(0));
        assert_eq!(bench.cost(serve), (0, 0, 0), "{name}: they are not ours");
    }
}

#[test]
fn an_interrupt_reads_the_lvt_entry_once_and_writes_it_only_if_it_is_masked() {
    const MASKED: u32 = 0x0001_00FE;
    const OPEN: u32 = 0xFE;
    for (name, _) in all() {
        let bench = Bench::new(name);
        let counter = CounterSet::NONE.with(bench.reserve(true));
        bench.start(counter);
        // With and without an overflow: Intel's processors mask the entry at every delivery, and so do hypervisors on
        // AMD's.
        for events in [70_000, 0] {
            for (entry, writes) in [(OPEN, 0), (MASKED, 1)] {
                bench.machine.run(0, Mode::User, &|_| events);
                let cpu = bench.machine.processor(0);
                cpu.model().set_lvt(entry);
                let before = cpu.local_accesses();
                bench.hal.interrupt(boot(cpu));
                let (reads, written) = cpu.local_accesses();
                let cost = (reads - before.0, written - before.1, cpu.model().lvt());
                assert_eq!(cost, (1, writes, OPEN), "{name}, {events}");
            }
        }
    }
}

#[test]
fn detecting_foreign_counters_reads_each_up_to_the_first_and_one_register_for_all_fixed_ones() {
    const EN: u64 = 1 << 22;
    for (name, _) in all() {
        let machine = SimMachine::named(name, 1);
        let cpu = machine.processor(0);
        let hal = Hal::new(cpu, 1).unwrap();
        let fixed = cpuid_dumps::find(name).unwrap().expected.fixed;
        let general = hal.interface().counters() - fixed;
        let (first, stride) = match (hal.interface(), general) {
            (Interface::Emon(_), _) => (0x186, 1),
            (_, 4) => (0xC001_0000, 1),
            _ => (0xC001_0200, 2),
        };
        let look = || {
            let before = cpu.model().accesses();
            let found = hal.in_use_elsewhere(boot(cpu));
            let after = cpu.model().accesses();
            assert_eq!((after.wrmsr, after.rdpmc), (before.wrmsr, before.rdpmc), "{name}");
            let fields = |Enabled { counter, register, value }| (counter, register.address(), value);
            (found.map(fields), after.rdmsr - before.rdmsr)
        };
        let all = u64::from(general) + u64::from(fixed > 0);
        assert_eq!(look(), (None, all), "{name}");
        for number in (0..fixed).rev() {
            let value = 0x3 << (4 * number);
            cpu.model().wrmsr(0x38D, value).unwrap();
            assert_eq!(look(), (Some((general + number, 0x38D, value)), all), "{name}");
        }
        for counter in (0..general).rev() {
            let register = first + stride * u32::from(counter);
            cpu.model().wrmsr(register, EN | 0xC0).unwrap();
            assert_eq!(look(), (Some((counter, register, EN | 0xC0)), u64::from(counter) + 1), "{name}");
        }
        simulation::access_first(&hal, cpu, 0);
        assert!(hal.initialize(boot(cpu)));
        assert_eq!(look(), (None, 0), "{name}: ours");
    }
}

#[test]
fn a_read_costs_one_rdpmc_and_checking_for_overflow_no_write() {
    for (name, global) in all() {
        let bench = Bench::new(name);
        let counters: CounterSet = (0..2).map(|_| bench.reserve(true)).collect();
        bench.start(counters);
        let cpu = bench.machine.processor(0);
        for counter in counters.iter() {
            assert_eq!(bench.cost(|| assert_eq!(bench.hal.count(boot(cpu), counter), 0)), (0, 0, 1), "{name}");
        }
        let check = if global { (1, 0, 0) } else { (0, 0, 2) };
        assert_eq!(bench.cost(|| assert_eq!(bench.hal.check_overflow(boot(cpu)).number(), 0)), check, "{name}");
    }
}

#[test]
fn a_comparison_reads_each_register_of_active_counters_once_and_none_of_the_others() {
    for (name, global) in all() {
        for count in 0..=Bench::new(name).hal.interface().counters() {
            let bench = Bench::new(name);
            let counters: CounterSet = (0..count).map(|_| bench.reserve(true)).collect();
            let compare = || assert!(bench.hal.compare(bench.machine.current(0), 0).is_empty(), "{name}");
            assert_eq!(bench.cost(compare), (0, 0, 0), "{name}: nothing is active");
            bench.start(counters);
            let is_fixed = |counter: &u8| matches!(bench.machine.counter(0, *counter), CounterId::Fixed(_));
            let fixed = counters.iter().filter(is_fixed).count() as u64;
            let selects = u64::from(count) - fixed + u64::from(fixed > 0);
            let identity = cpuid_dumps::find(name).unwrap();
            let [version, ..] = identity.cpuid().cpuid(0xA, 0)[0].to_le_bytes();
            // The global control register, a status that reports a freeze, and IA32_DEBUGCTL where it can stop
            // counters.
            let has_freeze = if bench.is_intel() { version >= 4 } else { true };
            let debug_control = bench.is_intel() && identity.cpuid().cpuid(1, 0)[2] >> 15 & 1 == 1;
            let control = 1 + u64::from(has_freeze) + u64::from(debug_control);
            let reads = if count == 0 { 0 } else { selects + u64::from(global) * control };
            assert_eq!(bench.cost(compare), (reads, 0, 0), "{name}: {count}");
        }
    }
}
