//! Behaviors that no other suite checks.

use pmu::hal::information::HAL_PROFILE_SOURCE_INTERRUPT_HANDLER;
use pmu::state::CounterSet;

use super::bench::{Bench, LONG, PLAIN, SHORT, amd, processor_of, with_counters, with_global_registers};
use pmu::ProcessorIndex;
use simulation::boot;

#[test]
fn no_peer_a_late_interrupt_after_the_stop_reports_nothing() {
    for identity in with_counters() {
        let bench = Bench::new(processor_of(identity));
        let name = identity.name;
        let stopped = bench.started(bench.anywhere(), Some(SHORT));
        let other = bench.started(bench.anywhere(), Some(LONG));
        bench.run(u64::from(SHORT) + 3);
        bench.stop(CounterSet::NONE.with(stopped));
        assert_eq!(bench.hal.total(ProcessorIndex::BOOT, stopped), u64::from(SHORT) + 3, "{name}: the count is whole");
        assert!(bench.deliver(), "{name}: nothing recalls it");
        assert!(bench.serve().is_empty(), "{name}");
        assert_eq!(bench.hal.total(ProcessorIndex::BOOT, stopped), u64::from(SHORT) + 3, "{name}: told once");
        assert_eq!(bench.model().enabled_counters().len(), 1, "{name}: serving does not start it again");
        if let Some(global) = bench.global {
            assert_eq!(bench.msr(global.status), 0, "{name}: nothing is left for the next");
        }
        bench.run(1_000);
        assert_eq!(bench.hal.total(ProcessorIndex::BOOT, stopped), u64::from(SHORT) + 3, "{name}: it stays stopped");
        assert_eq!(bench.hal.count(boot(&bench), other), u64::from(SHORT) + 1_003, "{name}: the other goes on");
        bench.finish();
        bench.release();
        assert!(bench.serve().is_empty(), "{name}: nor after the release");
        assert_eq!(bench.model().enabled_counters(), [], "{name}");
    }
}

#[test]
fn no_peer_a_stop_reports_the_unserved_overflows() {
    for identity in with_counters() {
        let bench = Bench::new(processor_of(identity));
        let name = identity.name;
        let due = bench.started(bench.anywhere(), Some(SHORT));
        let later = bench.started(bench.anywhere(), Some(LONG));
        bench.run(u64::from(SHORT));
        assert_eq!((bench.deliver(), bench.serve()), (true, vec![due]), "{name}: served");
        assert_eq!(bench.hal.stop(boot(&bench), CounterSet::NONE.with(due)).0, CounterSet::NONE, "{name}");
        bench.hal.start(boot(&bench), CounterSet::NONE.with(due));
        bench.run(u64::from(SHORT) + 9);
        let both = CounterSet::NONE.with(due).with(later);
        assert_eq!(bench.hal.stop(boot(&bench), both).0, CounterSet::NONE.with(due), "{name}: not served");
        assert_eq!(bench.hal.stop(boot(&bench), both).0, CounterSet::NONE, "{name}: told once");
        bench.hal.free(ProcessorIndex::BOOT, both);
        let counting = bench.started(bench.anywhere(), None);
        bench.run(1);
        assert_eq!(bench.hal.stop(boot(&bench), CounterSet::NONE.with(counting)).number(), 0, "{name}: no interval");
    }
}

#[test]
fn no_peer_an_interrupt_without_a_registered_handler_touches_nothing() {
    for identity in with_counters() {
        let bench = Bench::new(processor_of(identity));
        let counter = bench.started(bench.anywhere(), Some(SHORT));
        bench.run(u64::from(SHORT));
        let handler = |address: u64| {
            bench.hal.set_system_information(HAL_PROFILE_SOURCE_INTERRUPT_HANDLER, &address.to_le_bytes(), 1).unwrap();
        };
        handler(0);
        bench.take_log();
        assert_eq!((bench.deliver(), bench.serve()), (true, vec![]), "{}", identity.name);
        assert_eq!(bench.take_log(), [], "{}", identity.name);
        handler(1);
        assert_eq!(bench.serve(), [counter], "{}", identity.name);
    }
}

#[test]
fn no_peer_a_late_interrupt_after_the_next_start_is_not_attributed_to_the_new_owner() {
    for identity in with_counters() {
        let bench = Bench::new(processor_of(identity));
        let counter = bench.started(bench.anywhere(), Some(SHORT));
        bench.run(u64::from(SHORT));
        bench.finish();
        assert_eq!(bench.started(bench.anywhere(), Some(SHORT)), counter, "{}: the same counter", identity.name);
        bench.run(10);
        assert_eq!((bench.deliver(), bench.serve()), (true, vec![]), "{}", identity.name);
        bench.run(u64::from(SHORT) - 10);
        assert_eq!((bench.deliver(), bench.serve()), (true, vec![counter]), "{}", identity.name);
        assert_eq!(bench.finish(), [u64::from(SHORT)], "{}", identity.name);
    }
}

#[test]
fn no_peer_a_second_overflow_inside_the_handler_is_served_by_a_second_interrupt() {
    for name in PLAIN {
        let bench = Bench::named(name);
        let bench = bench.in_both_modes();
        let [counter, other] = [SHORT, 1 << 30].map(|interval| bench.reserve(bench.anywhere(), Some(interval)));
        bench.start([counter, other]);
        bench.run(u64::from(SHORT));
        assert!(bench.deliver(), "{name}");
        // The entry and the counter are read; it is stopped, which takes a read, read again, loaded and started; and it
        // counts before the next one is read.
        bench.machine.processor(0).happen_before_access(8, u64::from(SHORT) + 2);
        assert_eq!(bench.serve(), [counter], "{name}");
        assert_eq!((bench.deliver(), bench.serve()), (true, vec![counter]), "{name}");
        assert_eq!((bench.deliver(), bench.serve()), (false, vec![]), "{name}");
        assert_eq!(bench.finish(), [bench.given(counter), bench.given(other)], "{name}");
    }
    for (identity, _) in with_global_registers() {
        let bench = Bench::new(processor_of(identity)).in_both_modes();
        let counter = bench.started(bench.anywhere(), Some(SHORT));
        bench.run(u64::from(SHORT));
        assert!(bench.deliver(), "{}", identity.name);
        // All counters are stopped by the second write.
        bench.machine.processor(0).happen_before_access(4, u64::from(SHORT) + 2);
        assert_eq!(bench.serve(), [counter], "{}", identity.name);
        assert_eq!((bench.deliver(), bench.serve()), (false, vec![]), "{}", identity.name);
        bench.run(u64::from(SHORT));
        assert_eq!((bench.deliver(), bench.serve()), (true, vec![counter]), "{}", identity.name);
        assert_eq!(bench.finish(), [bench.given(counter)], "{}", identity.name);
        assert_eq!(bench.given(counter) - bench.between(counter), 2 * u64::from(SHORT), "{}", identity.name);
    }
}

#[test]
fn no_peer_overflows_between_the_interrupt_and_its_handler_are_one() {
    for identity in with_counters() {
        let bench = Bench::new(processor_of(identity));
        let second = bench.reserve(bench.anywhere(), Some(SHORT + 100));
        let first = bench.reserve(bench.anywhere(), Some(SHORT));
        bench.start([first, second]);
        bench.run(u64::from(SHORT));
        assert!(bench.deliver(), "{}", identity.name);
        bench.run(100); // the second overflows, and its interrupt is still pending when both are served
        let both: CounterSet = [first, second].into_iter().collect();
        assert_eq!(bench.serve(), both.iter().collect::<Vec<_>>(), "{}", identity.name);
        assert_eq!((bench.deliver(), bench.serve()), (true, vec![]), "{}: the late one", identity.name);
        bench.run(u64::from(SHORT));
        assert_eq!((bench.deliver(), bench.serve()), (true, vec![first]), "{}", identity.name);
    }
}

#[test]
fn no_peer_a_spurious_interrupt_changes_nothing() {
    for identity in with_counters() {
        let bench = Bench::new(processor_of(identity));
        assert!(bench.serve().is_empty(), "{}: with nothing started", identity.name);
        let (armed, free) = (bench.started(bench.anywhere(), Some(SHORT)), bench.started(bench.anywhere(), None));
        for _ in 0..3 {
            bench.run(1_000);
            assert!(bench.serve().is_empty(), "{}", identity.name);
            assert_eq!(bench.model().enabled_counters().len(), 2, "{}: they go on", identity.name);
        }
        let counts = [armed, free].map(|counter| bench.hal.count(boot(&bench), counter));
        assert_eq!(counts, [3_000, 3_000], "{}", identity.name);
        bench.run(u64::from(SHORT) - 3_000);
        assert_eq!((bench.deliver(), bench.serve()), (true, vec![armed]), "{}", identity.name);
    }
}

#[test]
fn no_peer_a_handler_that_does_nothing_finds_its_counter_armed_again() {
    for identity in with_counters() {
        let bench = Bench::new(processor_of(identity));
        bench.started(bench.anywhere(), Some(SHORT));
        for round in 1..=5 {
            bench.run(u64::from(SHORT));
            assert!(bench.deliver(), "{}, round {round}", identity.name);
            bench.hal.interrupt(boot(&bench));
        }
        assert_eq!(bench.finish(), [5 * u64::from(SHORT)], "{}", identity.name);
    }
}

#[test]
fn no_peer_a_counter_that_firmware_left_running_is_stopped_and_stays_so() {
    for identity in with_counters() {
        let bench = Bench::idle(processor_of(identity));
        let usable = bench.usable();
        usable.iter().for_each(|counter| bench.occupy(counter));
        assert_eq!(bench.model().enabled_counters().len(), usable.iter().count(), "{}", identity.name);
        bench.initialize();
        assert_eq!(bench.model().enabled_counters(), [], "{}", identity.name);
        assert!(bench.controls().iter().all(|control| *control == 0), "{}", identity.name);
        // The counters were about to overflow when they were stopped, with their interrupt.
        bench.deliver();
        bench.run(1 << 20);
        assert!(!bench.model().interrupt_pending(), "{}", identity.name);
        let counter = bench.started(bench.anywhere(), None);
        bench.run(9);
        assert_eq!(bench.hal.count(boot(&bench), counter), 9, "{}: from zero", identity.name);
        bench.finish();
        bench.release();
        assert!(bench.controls().iter().all(|control| *control == 0), "{}", identity.name);
        assert_eq!(bench.model().enabled_counters(), [], "{}", identity.name);
    }
}

#[test]
fn no_peer_counts_and_intervals_outlive_the_loss_of_registers() {
    for identity in with_counters() {
        let bench = Bench::new(processor_of(identity));
        let name = identity.name;
        let (armed, free) = (bench.started(bench.anywhere(), Some(SHORT)), bench.started(bench.anywhere(), None));
        let mut given = 0;
        for before in [0, 1, 4_999, 5_000, 5_001, 12_345] {
            bench.run(before); // an overflow here is not served before the sleep
            bench.hal.save(boot(&bench));
            assert_eq!(bench.model().enabled_counters(), [], "{name}");
            given += before;
            assert_eq!(
                [armed, free].map(|counter| bench.hal.total(ProcessorIndex::BOOT, counter)),
                [given; 2],
                "{name}"
            );
            bench.lose_registers();
            bench.run(500); // nothing counts
            bench.hal.restore(boot(&bench));
            bench.deliver();
            assert!(bench.serve().is_empty(), "{name}: an interrupt from before the sleep has no overflow");
            assert_eq!([armed, free].map(|counter| bench.hal.count(boot(&bench), counter)), [given; 2], "{name}");
            bench.run(u64::from(SHORT) - 1);
            assert_eq!((bench.deliver(), bench.serve()), (false, vec![]), "{name}: a whole interval anew");
            bench.run(1);
            assert_eq!((bench.deliver(), bench.serve()), (true, vec![armed]), "{name}");
            given += u64::from(SHORT);
            assert_eq!([armed, free].map(|counter| bench.hal.count(boot(&bench), counter)), [given; 2], "{name}");
        }
        assert_eq!([armed, free].map(|counter| bench.given(counter)), [given; 2], "{name}: by the model");
        assert_eq!(bench.finish(), [given; 2], "{name}");
    }
}

#[test]
fn no_peer_counters_stopped_before_a_sleep_stay_stopped() {
    for identity in with_counters() {
        let bench = Bench::new(processor_of(identity));
        let counter = bench.started(bench.anywhere(), Some(SHORT));
        bench.run(10);
        bench.stop(CounterSet::NONE.with(counter));
        bench.hal.save(boot(&bench));
        bench.lose_registers();
        bench.hal.restore(boot(&bench));
        bench.run(100);
        assert_eq!(bench.model().enabled_counters(), [], "{}", identity.name);
        assert_eq!(bench.hal.total(ProcessorIndex::BOOT, counter), 10, "{}", identity.name);
    }
}

#[test]
fn no_peer_counters_that_firmware_starts_during_a_sleep_are_stopped_after_it() {
    for identity in with_counters() {
        let bench = Bench::new(processor_of(identity));
        let (counter, other) = (bench.started(bench.anywhere(), None), bench.general() - 1);
        // The first accesses may have tried the other counter.
        bench.model().clear_ledger();
        assert_ne!(counter, other, "{}", identity.name);
        bench.hal.save(boot(&bench));
        bench.lose_registers();
        bench.occupy(other);
        bench.hal.restore(boot(&bench));
        assert_eq!(bench.msr(bench.select(other)), 0, "{}", identity.name);
        bench.run(100);
        assert_eq!(bench.finish(), [100], "{}", identity.name);
        assert_eq!(bench.given(other), bench.between(other), "{}", identity.name);
    }
}

#[test]
fn no_peer_a_late_interrupt_after_the_release_leaves_the_restored_registers() {
    for (identity, global) in with_global_registers() {
        let bench = Bench::idle(processor_of(identity));
        let reset = bench.msr(global.control);
        bench.initialize();
        bench.started(bench.anywhere(), Some(SHORT));
        bench.run(u64::from(SHORT));
        bench.finish();
        bench.release();
        assert_eq!(bench.msr(global.status), 0, "{}", identity.name);
        assert_eq!((bench.deliver(), bench.serve()), (true, vec![]), "{}", identity.name);
        assert_eq!(bench.msr(global.control), reset, "{}", identity.name);
    }
}

#[test]
fn no_peer_waking_without_a_session_leaves_the_registers_alone() {
    for (identity, global) in with_global_registers() {
        let bench = Bench::new(processor_of(identity));
        bench.started(bench.anywhere(), None);
        bench.finish();
        bench.release();
        bench.hal.save(boot(&bench));
        bench.lose_registers();
        bench.hal.restore(boot(&bench));
        assert_eq!(bench.msr(global.control), (1 << bench.general()) - 1, "{}: as from reset", identity.name);
    }
}

#[test]
fn no_peer_initializing_twice_keeps_the_saved_values() {
    for (identity, global) in with_global_registers() {
        let bench = Bench::idle(processor_of(identity));
        let reset = bench.msr(global.control);
        bench.initialize();
        bench.initialize();
        bench.release();
        assert_eq!(bench.msr(global.control), reset, "{}", identity.name);
    }
}

/// PerfCntrGlobalStatus, bit 59: no counter counts.
const FROZEN: u64 = 1 << 59;

#[test]
fn no_peer_frozen_counters_run_after_a_start() {
    for (freeze_before_initializing, interval) in [(true, None), (true, Some(SHORT)), (false, Some(SHORT))] {
        let bench = Bench::idle(amd(true, Some(6)));
        let freeze = || bench.set_msr(0xC000_0303, FROZEN | 1 << 58);
        if freeze_before_initializing {
            freeze();
        }
        bench.initialize();
        if !freeze_before_initializing {
            freeze();
        }
        bench.started(bench.anywhere(), interval);
        bench.run(100);
        assert_eq!(bench.msr(0xC000_0300), 1 << 58, "the records of branches are not ours");
        assert_eq!(bench.finish(), [100]);
    }
}

#[test]
fn no_peer_counters_that_freeze_on_interrupt_run_after_it() {
    let bench = Bench::new(amd(true, Some(6)));
    bench.set_msr(0x1D9, 1 << 12); // DebugCtl
    let (armed, free) = (bench.started(bench.anywhere(), Some(SHORT)), bench.started(bench.anywhere(), None));
    for _ in 0..3 {
        bench.run(u64::from(SHORT));
        assert_eq!(bench.msr(0xC000_0300) & FROZEN, FROZEN);
        bench.run(1_000); // nothing counts
        assert_eq!((bench.deliver(), bench.serve()), (true, vec![armed]));
        assert_eq!(bench.msr(0xC000_0300), 0);
    }
    assert_eq!([armed, free].map(|counter| bench.hal.count(boot(&bench), counter)), [3 * u64::from(SHORT); 2]);
    assert_eq!(bench.msr(0x1D9), 1 << 12, "left as it was");
}

#[test]
fn no_peer_the_freeze_bit_is_never_written_if_unsupported() {
    // The bit is reserved there, so the model refuses it.
    let bench = Bench::idle(processor_of(cpuid_dumps::find("zen4-7700x").unwrap()));
    let [features, ..] = bench.model().cpuid(0x8000_0022, 0);
    assert_eq!(features >> 2 & 1, 0);
    bench.whole_life();
}
