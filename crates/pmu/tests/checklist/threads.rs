//! NetBurst with Hyper-Threading: two threads share the registers of a core.

use model::{Mode, Processor};
use pmu::state::CounterSet;
use pmu::{Hal, ProcessorIndex, Source};

use super::bench::{Access, Bench, SHORT, processor_of};
use simulation::{boot, current};

/// Returns the two threads of a core, each with its own HAL, so that they share only the registers.
fn threads() -> [Bench; 2] {
    let identity = cpuid_dumps::find("netburst-irwindale").unwrap();
    let first = processor_of(identity);
    let second = first.other_thread(Box::new(identity.cpuid_of_second_thread()));
    [first, second.unwrap()].map(Bench::idle)
}

fn written(life: &[Access]) -> CounterRegisters {
    let registers = life.iter().filter_map(|access| match access {
        Access::Write(msr, _) => Some(*msr),
        _ => None,
    });
    registers.collect()
}

type CounterRegisters = std::collections::BTreeSet<u32>;

#[test]
fn each_thread_writes_its_own_column_of_the_registers_alone() {
    let [first, second] = threads();
    let [first, second] = [first.whole_life(), second.whole_life()].map(|life| written(&life));
    assert!(!first.is_empty() && !second.is_empty());
    assert_eq!(first.intersection(&second).collect::<Vec<_>>(), Vec::<&u32>::new());
    let column = |thread: u32| {
        let counters = [[0, 1, 4, 5, 8, 9, 12, 13, 16], [2, 3, 6, 7, 10, 11, 14, 15, 17]][thread as usize];
        let used = [[0, 12, 13, 16], [2, 14, 15, 17]][thread as usize];
        let escrs = [0x3A0, 0x3A2, 0x3B8, 0x3CC].map(|escr| escr + thread);
        let cccrs = counters.iter().map(|counter| 0x360 + counter);
        cccrs.chain(used.iter().map(|counter| 0x300 + counter)).chain(escrs).collect::<CounterRegisters>()
    };
    assert_eq!([first, second], [0, 1].map(column));
}

#[test]
fn both_threads_count_and_sample_the_same_at_once_and_neither_sees_the_others_events() {
    let [first, second] = threads();
    let both = [(&first, 1_u64), (&second, 2)];
    for (bench, _) in both {
        bench.initialize();
    }
    let counters = both.map(|(bench, _)| [bench.started(0x13, None), bench.started(2, Some(SHORT))]);
    for (bench, factor) in both {
        bench.run(factor * 1_000);
        bench.machine.run(0, Mode::Kernel, &|_| factor * 10);
    }
    for ((bench, factor), counters) in both.into_iter().zip(counters) {
        assert_eq!(counters.map(|counter| bench.hal.count(boot(bench), counter)), [factor * 1_000; 2]);
    }
    for (bench, factor) in both {
        let rest = u64::from(SHORT) - factor * 1_000;
        bench.run(rest - 1);
        assert!(!bench.model().interrupt_pending());
        bench.run(1);
        let other = if factor == 1 { &second } else { &first };
        assert!(!other.deliver(), "to the thread whose counter it was");
        assert!(bench.deliver());
        assert_eq!(bench.serve(), [counters[0][1]]);
        assert_eq!(bench.finish(), [u64::from(SHORT); 2]);
        bench.release();
    }
    assert!(both.iter().all(|(bench, _)| bench.model().accesses().faulted == 0));
}

#[test]
fn initializing_stopping_and_releasing_one_thread_leaves_the_other_running() {
    for (stays, goes) in [(0, 1), (1, 0)] {
        let threads = threads();
        let [stays, goes] = [&threads[stays], &threads[goes]];
        stays.initialize();
        let counter = stays.started(2, Some(SHORT));
        goes.whole_life();
        stays.run(u64::from(SHORT));
        assert_eq!((stays.deliver(), stays.serve()), (true, vec![counter]));
        assert_eq!(stays.hal.in_use_elsewhere(boot(stays)), None, "ours");
        assert_eq!(
            goes.hal.in_use_elsewhere(boot(goes)),
            None,
            "and what the other thread counts is not in this one's way"
        );
        assert_eq!(stays.finish(), [u64::from(SHORT)]);
    }
}

#[test]
fn one_hal_serves_both_threads_each_by_what_it_found_there() {
    let [first, second] = threads();
    let hal = Hal::new(&first, 2).unwrap();
    for (processor, bench) in [(0, &first), (1, &second)] {
        simulation::access_first(&hal, bench.machine.processor(0), processor);
        assert!(hal.initialize(current(bench, processor)));
        let state = hal.state_for(Source(2), 0, false).unwrap().with_owner(1).with_user(true);
        let counter = hal.reserve(ProcessorIndex::new(processor), state).unwrap();
        hal.start(current(bench, processor), CounterSet::NONE.with(counter));
        bench.run(100 + u64::from(processor));
        assert_eq!(hal.count(current(bench, processor), counter), 100 + u64::from(processor));
    }
    let counting = |bench: &Bench| bench.model().enabled_counters().len();
    assert_eq!((counting(&first), counting(&second)), (1, 1));
}

#[test]
fn packages_with_more_than_one_core_are_told_from_cores_with_two_threads() {
    // Logical processors of the package, leaf 4 EAX, HTT, number of counters.
    let cases = [(1, 0, true, 18), (2, 0, true, 9), (2, 0, false, 18), (2, 1 << 26, true, 18), (4, 1 << 26, true, 9)];
    for (logical, leaf_4, htt, counters) in cases {
        let processor = Processor::new(Box::new(move |leaf, _| match leaf {
            0 => [5, 0x756E_6547, 0x6C65_746E, 0x4965_6E69],
            1 => [0x0F64, logical << 16, 0, u32::from(htt) << 28],
            4 => [leaf_4 | 0x4121, 0, 0, 0],
            _ => [0; 4],
        }));
        let bench = Bench::idle(processor);
        assert_eq!(bench.counters(), counters, "{logical} {leaf_4:#x} {htt}");
        bench.whole_life(); // the model refuses bits that a processor without threads does not have
    }
}
