//! AAK100, AAP53, BD53: the general counters are reset before some of them start.

use pmu::state::CounterSet;
use pmu::{Disturbance, ProcessorIndex, Source};

use super::Bench;

const PROCESSORS: [&str; 6] =
    ["nehalem-920", "lynnfield-860", "beckton-e7520", "westmere-980x", "clarkdale-650", "eagleton-4870"];

/// BranchInstructions, which no fixed counter counts; CacheMisses; TotalIssues, which a fixed counter counts.
const BRANCHES: u64 = 0x06;
const MISSES: u64 = 0x0A;
const ISSUES: u64 = 0x02;

#[test]
fn counters_count_exactly_from_the_first_start_and_after_every_pause() {
    for name in PROCESSORS {
        let bench = Bench::new(name);
        let (first, second) = (bench.reserve(BRANCHES).unwrap(), bench.reserve(MISSES).unwrap());
        for round in 1..=3 {
            bench.run(5_000); // nothing counts
            bench.start(first);
            bench.run(1_000);
            bench.start(second);
            bench.run(100);
            assert_eq!((bench.stop(first), bench.stop(second)), (1_100 * round, 100 * round), "{name}, round {round}");
        }
    }
}

#[test]
fn a_release_between_two_sessions_needs_another_reset() {
    let bench = Bench::new("nehalem-920");
    let counter = bench.reserve(BRANCHES).unwrap();
    for round in 1..=2 {
        bench.start(counter);
        bench.run(300);
        assert_eq!(bench.stop(counter), 300 * round);
        bench.hal.release(bench.machine.current(0));
        simulation::access_first(&bench.hal, bench.machine.processor(0), 0);
        assert!(bench.hal.initialize(bench.machine.current(0)));
    }
}

/// The processor of the model has the registers that CPUID enumerates; an access of another one would panic.
#[test]
fn no_reset_uses_global_registers_that_a_hypervisor_hides() {
    for name in PROCESSORS {
        let bench = Bench::with_cpuid(name, |leaf, [eax, ebx, ecx, edx]| {
            [if leaf == 0xA { eax & !0xFF | 1 } else { eax }, ebx, ecx, edx]
        });
        let counter = bench.reserve(BRANCHES).unwrap();
        bench.start(counter);
        bench.stop(counter);
        assert_eq!(bench.machine.processor(0).model().accesses().faulted, 0, "{name}");
    }
}

#[test]
fn counters_that_count_are_not_disturbed() {
    for name in PROCESSORS {
        let bench = Bench::new(name);
        let (issues, branches) = (bench.reserve(ISSUES).unwrap(), bench.reserve(BRANCHES).unwrap());
        bench.start(issues);
        bench.run(10);
        // The reset happens while the fixed counter runs, and events occur before each of its accesses.
        for access in 1..=20 {
            let before = bench.count(issues);
            bench.machine.processor(0).happen_before_access(access, 100);
            bench.start(branches);
            bench.run(1);
            assert_eq!(bench.count(issues), before + 1, "{name}: not counted in kernel mode");
            bench.stop(branches);
        }
    }
}

#[test]
fn counters_of_other_programs_keep_their_registers_and_counts() {
    const THEIRS: u64 = 0x0041_00C4;
    let bench = Bench::new("nehalem-920");
    let branches = bench.reserve(BRANCHES).unwrap();
    let cpu = bench.machine.processor(0);
    // A program that does not ask the HAL takes the last counter, with the reset that it needs.
    for (counter, event) in (0..).zip([0x0043_00B5, 0x0043_00D2, 0x0043_00B1, 0x0043_00B1]) {
        assert!(cpu.write_foreign(0x186 + counter, event) && cpu.write_foreign(0xC1 + counter, 0));
    }
    for (msr, value) in [(0x38F, 0xF), (0x38F, 0), (0x186, 0), (0x187, 0), (0x188, 0), (0x189, THEIRS), (0x38F, 8)] {
        assert!(cpu.write_foreign(msr, value));
    }
    bench.run(40);
    bench.start(branches);
    bench.run(2);
    let model = cpu.model().uncounted(|model| [model.rdmsr(0x189), model.rdpmc(3)]);
    assert_eq!(model[0], Ok(THEIRS));
    assert!(model[1].unwrap() >= 40, "counted so far");

    // Without the reset the own counter counts wrongly.
    let mut marks = Vec::new();
    let own = CounterSet::NONE.with(branches);
    bench.hal.take_disturbances(bench.machine.current(0), own, 0, |counter, mark, _| marks.push((counter, mark)));
    assert!(bench.count(branches) == 2 || marks.len() == 1, "{} of 2, {marks:x?}", bench.count(branches));
    let [(counter, Disturbance { register, found, expected })] = marks[..] else { panic!("{marks:x?}") };
    assert_eq!((counter, register, found & 0xF, expected & 0xF), (branches, 0x38F, 8, 0));
}

/// The reset stops the counters that count; each keeps its count and what is left of its interval, whether its overflow
/// interrupts or writes a record.
#[test]
fn a_start_beside_a_counter_with_an_interval_keeps_its_interval() {
    for (name, precise) in PROCESSORS.into_iter().flat_map(|name| [(name, false), (name, true)]) {
        let bench = Bench::new(name);
        let armed = bench.hal.state_for(Source(BRANCHES), 0, true).unwrap().with_interval(1_000).with_precise(precise);
        let first = 0;
        bench.hal.set_up(ProcessorIndex::BOOT, first, armed.with_owner(1).with_user(true));
        let second = bench.reserve(MISSES).unwrap();
        bench.start(first);
        bench.run(600);
        bench.start(second);
        bench.run(399);
        let overflowed = || bench.machine.processor(0).model().uncounted(|model| model.rdmsr(0x38E)).unwrap() & 0xF;
        assert_eq!(overflowed(), 0, "{name}, precise: {precise}");
        bench.run(1);
        assert_eq!(overflowed(), 1 << first, "{name}, precise: {precise}");
        assert_eq!((bench.count(first), bench.count(second)), (1_000, 400), "{name}, precise: {precise}");
    }
}

#[test]
fn a_start_with_the_reset_costs_one_read_and_at_most_fourteen_writes_more() {
    for name in PROCESSORS {
        for (count, n) in [(1, 1_u64), (2, 2), (3, 3), (4, 4)] {
            let bench = Bench::new(name);
            let (issues, sources) = (bench.reserve(ISSUES).unwrap(), [BRANCHES, MISSES, 0x1C, 0x1D]);
            let counters: CounterSet =
                sources.iter().take(count).map(|source| bench.reserve(*source).unwrap()).collect();
            let cost = |work: &dyn Fn()| {
                let before = bench.machine.processor(0).model().accesses();
                work();
                let after = bench.machine.processor(0).model().accesses();
                (after.rdmsr - before.rdmsr, after.wrmsr - before.wrmsr, after.rdpmc - before.rdpmc)
            };
            let start = |counters| bench.hal.start(bench.machine.current(0), counters);
            // A fixed counter needs no reset: the counter, its control, the global control.
            assert_eq!(cost(&|| bench.start(issues)), (0, 3, 0), "{name}");
            // The read tells whether a counter of another program counts. Four events and four counters are written,
            // the global control twice, and the select registers of the counters that do not start.
            let reset = 4 + 4 + 2 + (4 - n);
            assert_eq!(cost(&|| start(counters)), (1, 2 * n + 1 + reset, 0), "{name}, {count}");
            // Beside counters that count, all of them stop and go on.
            let (first, active) = (counters.iter().next().unwrap(), n - 1);
            if active > 0 {
                bench.stop(first);
                let reset = 1 + 4 + 4 + 2 + (4 - n) + 2 * active;
                assert_eq!(cost(&|| bench.start(first)), (1, 2 + 1 + reset, active), "{name}, {count}");
            }
        }
    }
}
