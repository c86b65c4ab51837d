//! P6: the steps of the HAL PMU design, section 3.2, in order, and the common enable flag of both counters.

use pmu::state::CounterSet;

use super::bench::{Access, Bench, SHORT, of_interface, processor_of};
use simulation::boot;

const EN: u64 = 1 << 22;
const INT: u64 = 1 << 20;
/// OS and USR.
const BOTH_MODES: u64 = 3 << 16;
const SELECT0: u32 = 0x186;
const SELECT1: u32 = 0x187;
const COUNTER0: u32 = 0xC1;

const BOTH: CounterSet = CounterSet::NONE.with(0).with(1);

/// Checks a law with both counters reserved, for instructions and branches with an interval, and an empty log.
fn each(law: impl Fn(&Bench)) {
    for identity in of_interface("P6") {
        let bench = Bench::new(processor_of(identity)).in_both_modes();
        assert_eq!([2, 6].map(|source| bench.reserve(source, Some(SHORT))), [0, 1]);
        bench.take_log();
        law(&bench);
    }
}

const INITIAL: u64 = (1 << 40) - SHORT as u64;
const FIRST: u64 = INT | BOTH_MODES | 0xC0 | EN;
const SECOND: u64 = INT | BOTH_MODES | 0xC4;

#[test]
fn enabling_loads_the_counter_then_sets_its_select_up_with_int_and_en() {
    each(|bench| {
        bench.start([0]);
        assert_eq!(bench.take_log(), [Access::Write(COUNTER0, INITIAL), Access::Write(SELECT0, FIRST)]);
        bench.start([1]);
        assert_eq!(bench.take_log(), [Access::Write(COUNTER0 + 1, INITIAL), Access::Write(SELECT1, SECOND)]);
    });
}

#[test]
fn the_second_counter_alone_needs_the_enable_flag_of_the_first_and_both_start_at_once() {
    each(|bench| {
        bench.start([1]);
        let load = Access::Write(COUNTER0 + 1, INITIAL);
        assert_eq!(bench.take_log(), [load, Access::Write(SELECT1, SECOND), Access::Write(SELECT0, EN)]);
        bench.run(10);
        assert_eq!((bench.given(0), bench.given(1)), (0, 10));
        bench.stop(BOTH);
        bench.take_log();
        bench.start([0, 1]);
        let wanted = [
            Access::Write(COUNTER0, INITIAL),
            Access::Write(COUNTER0 + 1, INITIAL),
            Access::Write(SELECT1, SECOND),
            Access::Write(SELECT0, FIRST),
        ];
        assert_eq!(bench.take_log(), wanted);
    });
}

#[test]
fn disabling_clears_en_and_int_of_the_counter_and_leaves_the_other_counting() {
    each(|bench| {
        for (stopped, left, first) in [(0, 1, Access::Write(SELECT0, EN)), (1, 0, Access::Write(SELECT1, 0))] {
            bench.start([0, 1]);
            bench.take_log();
            bench.stop(CounterSet::NONE.with(stopped));
            assert_eq!(bench.take_log(), [first, Access::Counter(stopped.into())]);
            let before = bench.given(left);
            bench.run(100);
            assert_eq!(bench.given(left) - before, 100, "{left} goes on");
            bench.take_log();
            bench.stop(CounterSet::NONE.with(left));
            // Stopping the last counter clears the flag.
            let writes = if left == 0 {
                vec![Access::Write(SELECT0, 0)]
            } else {
                vec![Access::Write(SELECT1, 0), Access::Write(SELECT0, 0)]
            };
            assert_eq!(bench.take_log(), [writes, vec![Access::Counter(left.into())]].concat());
            assert_eq!(bench.model().enabled_counters(), []);
        }
    });
}

#[test]
fn checking_for_overflow_examines_the_value_of_each_active_counter() {
    each(|bench| {
        bench.start([0]);
        bench.run(100);
        bench.start([1]);
        bench.run(u64::from(SHORT) - 100);
        bench.take_log();
        assert_eq!(bench.hal.check_overflow(boot(bench)).0, CounterSet::NONE.with(0));
        assert_eq!(bench.take_log(), [Access::Counter(0), Access::Counter(1)]);
        assert!(bench.deliver());
        assert_eq!(bench.serve(), [0]);
        // The first counter stands still while it is read and loaded, and the second one goes on.
        let wanted = [
            Access::Counter(0),
            Access::Read(SELECT0),
            Access::Write(SELECT0, FIRST & !BOTH_MODES),
            Access::Counter(0),
            Access::Write(COUNTER0, INITIAL),
            Access::Write(SELECT0, FIRST),
            Access::Counter(1),
        ];
        assert_eq!(bench.take_log(), wanted);
    });
}

#[test]
fn a_foreign_counter_is_one_that_is_enabled_and_selects_an_event() {
    let cases = [(0, 0, None), (EN, 0, None), (0, BOTH_MODES | 0x79, None), (BOTH_MODES | 0x79, 0, None)];
    let found = [(EN | 1 << 16 | 0x79, 0, Some(0)), (EN, 1 << 17 | 0x79, Some(1)), (EN | FIRST, SECOND, Some(0))];
    for identity in of_interface("P6") {
        for (first, second, counter) in cases.into_iter().chain(found) {
            let bench = Bench::idle(processor_of(identity));
            bench.set_msr(SELECT0, first);
            bench.set_msr(SELECT1, second);
            let told = bench.hal.in_use_elsewhere(boot(&bench)).map(|enabled| (enabled.counter, enabled.value));
            let select = |counter| if counter == 0 { first } else { second };
            assert_eq!(told, counter.map(|counter| (counter, select(counter))), "{first:#x}, {second:#x}");
        }
    }
}
