//! MSR accesses of NetBurst, P6 and Pentium.
//!
//! NetBurst costs more than the minimum: each counter has an ESCR in addition to the CCCR, each load is written twice
//! (erratum N15), and each CCCR has an OVF flag instead of one status register. An additional RDPMC for each counter
//! with a clear flag finds overflows that did not set the flag. P6 and Pentium share a flag or a register between both
//! counters, which costs one more write if it changes for only one of them.

use model::Mode;
use pmu::state::CounterSet;
use pmu::{Hal, ProfileInterface};

use super::{Bench, Cost};
use simulation::boot;

/// Identity, and the number of counters that can count its source 2 at the same time.
const NETBURST: [(&str, u64); 2] = [("netburst-cedarmill", 6), ("netburst-irwindale", 3)];
const P6: [&str; 2] = ["p6-coppermine", "p6-dothan"];
const PENTIUM: [&str; 2] = ["pentium-p54c", "pentium-p55c"];

/// A number of counters.
fn reserved(bench: &Bench, count: u64, interrupt: bool) -> CounterSet {
    (0..count).map(|_| bench.reserve(interrupt)).collect()
}

/// Reserves this many counters with an interval. Whether their counts must miss nothing.
fn sampled(bench: &Bench, count: u64, counted: bool) -> CounterSet {
    (0..count).map(|_| bench.reserve_for(true, counted)).collect()
}

/// Returns the cost of starting and stopping this many counters at once.
fn start_and_stop(name: &str, count: u64, interrupt: bool) -> (Cost, Cost) {
    let bench = Bench::new(name);
    let counters = reserved(&bench, count, interrupt);
    (bench.cost(|| bench.start(counters)), bench.cost(|| bench.stop(counters)))
}

#[test]
fn start_and_stop_of_n_counters() {
    for interrupt in [false, true] {
        for (name, most) in NETBURST {
            for n in 1..=most {
                assert_eq!(start_and_stop(name, n, interrupt), ((0, 4 * n, 0), (0, n, n)), "{name}, {n}");
            }
        }
        for name in P6 {
            for n in 1..=2 {
                assert_eq!(start_and_stop(name, n, interrupt), ((0, 2 * n, 0), (0, n, n)), "{name}, {n}");
            }
        }
    }
    for name in PENTIUM {
        for n in 1..=2 {
            assert_eq!(start_and_stop(name, n, false), ((0, n + 1, 0), (n, 1, 0)), "{name}, {n}");
        }
    }
}

#[test]
fn start_and_stop_of_one_counter_beside_others() {
    for (name, most) in NETBURST {
        let bench = Bench::new(name);
        let counters = reserved(&bench, most, true);
        for counter in counters.iter() {
            assert_eq!(bench.cost(|| bench.start(CounterSet::NONE.with(counter))), (0, 4, 0), "{name}");
        }
        for counter in counters.iter() {
            assert_eq!(bench.cost(|| bench.stop(CounterSet::NONE.with(counter))), (0, 1, 1), "{name}");
        }
    }
    for name in P6 {
        let [first, second] = [0, 1].map(|counter| CounterSet::NONE.with(counter));
        for (one, other, start, stop) in [(first, second, (2, 2), (1, 2)), (second, first, (3, 2), (1, 1))] {
            let bench = Bench::new(name);
            assert_eq!(reserved(&bench, 2, true), first.or(second));
            // The second counter alone needs the flag in the first register, and clears it at the stop.
            assert_eq!(bench.cost(|| bench.start(one)), (0, start.0, 0), "{name}");
            assert_eq!(bench.cost(|| bench.start(other)), (0, start.1, 0), "{name}");
            assert_eq!(bench.cost(|| bench.stop(one)), (0, stop.0, 1), "{name}");
            assert_eq!(bench.cost(|| bench.stop(other)), (0, stop.1, 1), "{name}");
        }
    }
}

#[test]
fn an_interrupt_with_k_of_n_counters_overflowed_and_a_check_for_it() {
    let all = NETBURST.into_iter().chain(P6.map(|name| (name, 2)));
    for (name, most, counted) in all.flat_map(|(name, most)| [false, true].map(|counted| (name, most, counted))) {
        let netburst = name.starts_with("netburst");
        for n in 1..=most {
            for k in 0..=n {
                let bench = Bench::new(name);
                let (due, later) = (sampled(&bench, k, counted), sampled(&bench, n - k, counted));
                let others = reserved(&bench, most - n, false);
                bench.start(due);
                bench.start(others);
                bench.machine.run(0, Mode::User, &|_| 60_000);
                bench.start(later);
                bench.machine.run(0, Mode::User, &|_| 10_000);
                let cpu = bench.machine.processor(0);
                let check = bench.cost(|| assert_eq!(bench.hal.check_overflow(boot(cpu)).0, due, "{name}"));
                let cost = bench.cost(|| assert_eq!(bench.hal.interrupt(boot(cpu)).0, due, "{name}"));
                // On NetBurst each counter is read: with a clear flag for an overflow that did not set it, and with a
                // set flag for the events since the overflow. If its count must miss nothing, a counter stands still
                // from this reading to its load.
                let budget = match (netburst, counted) {
                    (true, false) => ((n, 0, n - k), (n, 3 * k, n)),
                    (true, true) => ((n, 0, n - k), (n + k, 4 * k, n)),
                    (false, false) => ((0, 0, n), (0, k, n)),
                    (false, true) => ((0, 0, n), (k, 3 * k, n + k)),
                };
                assert_eq!((check, cost), budget, "{name}: {k} of {n}, {counted}");
            }
        }
    }
}

#[test]
fn an_interrupt_reads_the_lvt_entry_once_and_writes_it_only_if_it_is_masked() {
    const MASKED: u32 = 0x0001_00FE;
    const OPEN: u32 = 0xFE;
    for name in NETBURST.map(|(name, _)| name).into_iter().chain(P6) {
        let bench = Bench::new(name);
        bench.start(reserved(&bench, 1, true));
        for (events, entry, writes) in [(70_000, OPEN, 0), (70_000, MASKED, 1), (0, OPEN, 0), (0, MASKED, 1)] {
            bench.machine.run(0, Mode::User, &|_| events);
            let cpu = bench.machine.processor(0);
            cpu.model().set_lvt(entry);
            let before = cpu.local_accesses();
            bench.hal.interrupt(boot(cpu));
            let (reads, written) = cpu.local_accesses();
            assert_eq!((reads - before.0, written - before.1, cpu.model().lvt()), (1, writes, OPEN), "{name}");
        }
    }
}

#[test]
fn a_read_costs_one_access_and_initializing_looking_and_releasing_what_the_registers_are() {
    // Identity; read; InitializeProfiling with the probe of the registers; search for counters in use elsewhere;
    // release.
    let cases: [(&str, Cost, Cost, Cost, Cost); 6] = [
        // 18 CCCRs, or 9 of a thread; 8 ESCRs, or 4. The probe writes one CCCR and one counter twice and restores them.
        ("netburst-cedarmill", (0, 0, 1), (4, 18 + 6, 0), (19, 0, 0), (0, 18 + 8, 0)),
        ("netburst-irwindale", (0, 0, 1), (4, 9 + 6, 0), (10, 0, 0), (0, 9 + 4, 0)),
        ("p6-coppermine", (0, 0, 1), (2, 2 + 4, 0), (3, 0, 0), (0, 2, 0)),
        ("p6-dothan", (0, 0, 1), (2, 2 + 4, 0), (3, 0, 0), (0, 2, 0)),
        ("pentium-p54c", (1, 0, 0), (2, 1 + 4, 0), (1, 0, 0), (0, 1, 0)),
        ("pentium-p55c", (1, 0, 0), (2, 1 + 4, 0), (1, 0, 0), (0, 1, 0)),
    ];
    for (name, read, initialize, look, release) in cases {
        let bench = Bench::new(name);
        let counters = reserved(&bench, 1, false);
        bench.start(counters);
        let cpu = bench.machine.processor(0);
        let count = || counters.iter().for_each(|counter| _ = bench.hal.count(boot(cpu), counter));
        assert_eq!(bench.cost(count), read, "{name}");
        bench.stop(counters);
        assert_eq!(bench.cost(|| bench.hal.release(boot(cpu))), release, "{name}");
        let hal = Hal::new(cpu, 1).unwrap();
        assert_eq!(bench.cost(|| assert_eq!(hal.in_use_elsewhere(boot(cpu)), None)), look, "{name}");
        assert_eq!(bench.cost(|| assert!(hal.initialize(boot(cpu)))), initialize, "{name}");
        assert!(hal.interface().counters() >= 2, "{name}");
    }
}

#[test]
fn a_comparison_reads_each_register_of_active_counters_once_and_none_of_the_others() {
    // Registers of one active counter, and of each further one. NetBurst has a CCCR and an ESCR for each, the P6 a
    // select register, the Pentium one register for both.
    let cases = NETBURST.map(|(name, _)| (name, 2, 2)).into_iter().chain(P6.map(|name| (name, 1, 1)));
    for (name, first, further) in cases.chain(PENTIUM.map(|name| (name, 1, 0))) {
        let bench = Bench::new(name);
        let compare = || assert!(bench.hal.compare(bench.machine.current(0), 0).is_empty(), "{name}");
        assert_eq!(bench.cost(compare), (0, 0, 0), "{name}");
        for (number, counter) in (0..).zip(reserved(&bench, 2, false).iter()) {
            bench.start(CounterSet::NONE.with(counter));
            assert_eq!(bench.cost(compare), (first + number * further, 0, 0), "{name}");
        }
    }
    // The flag that enables both counters of a P6 is in the first select register.
    for name in P6 {
        let bench = Bench::new(name);
        reserved(&bench, 2, false);
        bench.start(CounterSet::NONE.with(1));
        let compare = || assert!(bench.hal.compare(bench.machine.current(0), 0).is_empty(), "{name}");
        assert_eq!(bench.cost(compare), (2, 0, 0), "{name}");
    }
}
