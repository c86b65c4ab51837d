//! Behaviours that no suite has.

use profile::hal::information::HAL_PROFILE_SOURCE_INTERRUPT_HANDLER;
use profile::state::CounterSet;

use super::bench::{
    ANYWHERE, Bench, FIXED_CTR_CTRL, GLOBAL_CTRL, GLOBAL_STATUS, LONG, PLAIN, SHORT, processor_of, version_of,
    with_counters, with_global_registers,
};

#[test]
fn no_peer_an_interrupt_that_comes_after_the_stop_tells_of_nothing() {
    for identity in with_counters() {
        let bench = Bench::new(processor_of(identity));
        let name = identity.name;
        let stopped = bench.started(ANYWHERE, Some(SHORT));
        let other = bench.started(ANYWHERE, Some(LONG));
        bench.run(u64::from(SHORT) + 3);
        bench.stop(CounterSet::NONE.with(stopped));
        assert_eq!(bench.hal.total(0, stopped), u64::from(SHORT) + 3, "{name}: the count is whole");
        assert!(bench.deliver(), "{name}: nothing recalls it");
        assert_eq!(bench.serve(), [], "{name}");
        assert_eq!(bench.hal.total(0, stopped), u64::from(SHORT) + 3, "{name}: told once");
        assert_eq!(bench.model().enabled_counters().len(), 1, "{name}: serving does not start it again");
        if version_of(identity) >= 2 {
            assert_eq!(bench.msr(GLOBAL_STATUS), 0, "{name}: nothing is left for the next");
        }
        bench.run(1_000);
        assert_eq!(bench.hal.total(0, stopped), u64::from(SHORT) + 3, "{name}: it stays stopped");
        assert_eq!(bench.hal.count(&bench, 0, other), u64::from(SHORT) + 1_003, "{name}: the other goes on");
        bench.finish();
        bench.release();
        assert_eq!(bench.serve(), [], "{name}: nor after the release");
        assert_eq!(bench.model().enabled_counters(), [], "{name}");
    }
}

#[test]
fn no_peer_a_stop_tells_of_the_overflows_that_nobody_served() {
    for identity in with_counters() {
        let bench = Bench::new(processor_of(identity));
        let name = identity.name;
        let due = bench.started(ANYWHERE, Some(SHORT));
        let later = bench.started(ANYWHERE, Some(LONG));
        bench.run(u64::from(SHORT));
        assert_eq!((bench.deliver(), bench.serve()), (true, vec![due]), "{name}: served");
        assert_eq!(bench.hal.stop(&bench, 0, CounterSet::NONE.with(due)).0, CounterSet::NONE, "{name}");
        bench.hal.start(&bench, 0, CounterSet::NONE.with(due));
        bench.run(u64::from(SHORT) + 9);
        let both = CounterSet::NONE.with(due).with(later);
        assert_eq!(bench.hal.stop(&bench, 0, both).0, CounterSet::NONE.with(due), "{name}: not served");
        assert_eq!(bench.hal.stop(&bench, 0, both).0, CounterSet::NONE, "{name}: told once");
        bench.hal.free(0, both);
        let counting = bench.started(ANYWHERE, None);
        bench.run(1);
        assert_eq!(bench.hal.stop(&bench, 0, CounterSet::NONE.with(counting)).number(), 0, "{name}: no interval");
    }
}

#[test]
fn no_peer_an_interrupt_for_which_nobody_is_registered_touches_nothing() {
    for identity in with_counters() {
        let bench = Bench::new(processor_of(identity));
        let counter = bench.started(ANYWHERE, Some(SHORT));
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
fn no_peer_an_interrupt_that_comes_after_the_next_start_is_not_taken_for_the_new_owners() {
    for identity in with_counters() {
        let bench = Bench::new(processor_of(identity));
        let counter = bench.started(ANYWHERE, Some(SHORT));
        bench.run(u64::from(SHORT));
        bench.finish();
        assert_eq!(bench.started(ANYWHERE, Some(SHORT)), counter, "{}: the same counter", identity.name);
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
        let counter = bench.started(ANYWHERE, Some(SHORT));
        bench.run(u64::from(SHORT));
        assert!(bench.deliver(), "{name}");
        bench.hal.interrupt(&bench, 0, |_| bench.run(u64::from(SHORT) + 2)); // the counter goes on
        assert_eq!((bench.deliver(), bench.serve()), (true, vec![counter]), "{name}");
        assert_eq!((bench.deliver(), bench.serve()), (false, vec![]), "{name}");
        assert_eq!(bench.finish(), [2 * u64::from(SHORT) + 2], "{name}");
    }
    for identity in with_counters().filter(|identity| version_of(identity) >= 2) {
        let bench = Bench::new(processor_of(identity));
        let counter = bench.started(ANYWHERE, Some(SHORT));
        bench.run(u64::from(SHORT));
        assert!(bench.deliver(), "{}", identity.name);
        bench.hal.interrupt(&bench, 0, |_| bench.run(u64::from(SHORT) + 2)); // all stand still
        assert_eq!((bench.deliver(), bench.serve()), (false, vec![]), "{}", identity.name);
        bench.run(u64::from(SHORT));
        assert_eq!((bench.deliver(), bench.serve()), (true, vec![counter]), "{}", identity.name);
        assert_eq!(bench.finish(), [2 * u64::from(SHORT)], "{}", identity.name);
    }
}

#[test]
fn no_peer_overflows_between_the_interrupt_and_its_handler_are_one() {
    for identity in with_counters() {
        let bench = Bench::new(processor_of(identity));
        let second = bench.reserve(ANYWHERE, Some(SHORT + 100));
        let first = bench.reserve(ANYWHERE, Some(SHORT));
        bench.start([first, second]);
        bench.run(u64::from(SHORT));
        assert!(bench.deliver(), "{}", identity.name);
        bench.run(100); // the second overflows, and its interrupt is pending when both are served
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
        assert_eq!(bench.serve(), [], "{}: with nothing started", identity.name);
        let (armed, free) = (bench.started(ANYWHERE, Some(SHORT)), bench.started(ANYWHERE, None));
        for _ in 0..3 {
            bench.run(1_000);
            assert_eq!(bench.serve(), [], "{}", identity.name);
            assert_eq!(bench.model().enabled_counters().len(), 2, "{}: they go on", identity.name);
        }
        let counts = [armed, free].map(|counter| bench.hal.count(&bench, 0, counter));
        assert_eq!(counts, [3_000, 3_000], "{}", identity.name);
        bench.run(u64::from(SHORT) - 3_000);
        assert_eq!((bench.deliver(), bench.serve()), (true, vec![armed]), "{}", identity.name);
    }
}

#[test]
fn no_peer_a_handler_that_does_nothing_finds_its_counter_armed_again() {
    for identity in with_counters() {
        let bench = Bench::new(processor_of(identity));
        bench.started(ANYWHERE, Some(SHORT));
        for round in 1..=5 {
            bench.run(u64::from(SHORT));
            assert!(bench.deliver(), "{}, round {round}", identity.name);
            bench.hal.interrupt(&bench, 0, |_| ());
        }
        assert_eq!(bench.finish(), [5 * u64::from(SHORT)], "{}", identity.name);
    }
}

#[test]
fn no_peer_a_counter_that_firmware_left_running_is_stopped_and_stays_so() {
    for identity in with_counters() {
        let bench = Bench::idle(processor_of(identity));
        let (general, fixed) = (bench.general(), identity.expected.fixed);
        for counter in 0..general {
            bench.set_msr(bench.select(counter), 0x0053_003C); // with its interrupt
            bench.set_msr(bench.counter(counter), 0xFFFF_FFF0);
        }
        if fixed > 0 {
            let fields = (0..fixed).fold(0, |all, number| all | 0xB << (4 * number)); // with theirs
            bench.set_msr(FIXED_CTR_CTRL, fields);
            bench.set_msr(GLOBAL_CTRL, ((1 << general) - 1) | (((1 << fixed) - 1) << 32));
        }
        let control = || if fixed > 0 { bench.msr(FIXED_CTR_CTRL) } else { 0 };
        let selects = || (0..general).map(|counter| bench.msr(bench.select(counter))).collect::<Vec<_>>();
        assert_eq!(bench.model().enabled_counters().len(), usize::from(general + fixed), "{}", identity.name);
        bench.initialize();
        assert_eq!(bench.model().enabled_counters(), [], "{}", identity.name);
        assert_eq!((selects(), control()), (vec![0; usize::from(general)], 0), "{}", identity.name);
        bench.run(1 << 20);
        assert!(!bench.model().interrupt_pending(), "{}", identity.name);
        let counter = bench.started(ANYWHERE, None);
        bench.run(9);
        assert_eq!(bench.hal.count(&bench, 0, counter), 9, "{}: from zero", identity.name);
        bench.finish();
        bench.release();
        assert_eq!((selects(), control()), (vec![0; usize::from(general)], 0), "{}", identity.name);
        assert_eq!(bench.model().enabled_counters(), [], "{}", identity.name);
    }
}

#[test]
fn no_peer_counts_and_intervals_outlive_the_loss_of_registers() {
    for identity in with_counters() {
        let bench = Bench::new(processor_of(identity));
        let name = identity.name;
        let (armed, free) = (bench.started(ANYWHERE, Some(SHORT)), bench.started(ANYWHERE, None));
        let mut given = 0;
        for before in [0, 1, 4_999, 5_000, 5_001, 12_345] {
            bench.run(before); // an overflow of these is not served before the sleep
            bench.hal.save(&bench, 0);
            assert_eq!(bench.model().enabled_counters(), [], "{name}");
            given += before;
            assert_eq!([armed, free].map(|counter| bench.hal.total(0, counter)), [given; 2], "{name}");
            bench.lose_registers();
            bench.run(500); // nothing counts
            bench.hal.restore(&bench, 0);
            bench.deliver();
            assert_eq!(bench.serve(), [], "{name}: an interrupt of before the sleep is nobody's");
            assert_eq!([armed, free].map(|counter| bench.hal.count(&bench, 0, counter)), [given; 2], "{name}");
            bench.run(u64::from(SHORT) - 1);
            assert_eq!((bench.deliver(), bench.serve()), (false, vec![]), "{name}: a whole interval anew");
            bench.run(1);
            assert_eq!((bench.deliver(), bench.serve()), (true, vec![armed]), "{name}");
            given += u64::from(SHORT);
            assert_eq!([armed, free].map(|counter| bench.hal.count(&bench, 0, counter)), [given; 2], "{name}");
        }
        assert_eq!([armed, free].map(|counter| bench.given(counter)), [given; 2], "{name}: by the model");
        assert_eq!(bench.finish(), [given; 2], "{name}");
    }
}

#[test]
fn no_peer_what_was_stopped_before_the_sleep_is_stopped_after_it() {
    for identity in with_counters() {
        let bench = Bench::new(processor_of(identity));
        let counter = bench.started(ANYWHERE, Some(SHORT));
        bench.run(10);
        bench.stop(CounterSet::NONE.with(counter));
        bench.hal.save(&bench, 0);
        bench.lose_registers();
        bench.hal.restore(&bench, 0);
        bench.run(100);
        assert_eq!(bench.model().enabled_counters(), [], "{}", identity.name);
        assert_eq!(bench.hal.total(0, counter), 10, "{}", identity.name);
    }
}

#[test]
fn no_peer_what_firmware_starts_during_the_sleep_is_stopped_after_it() {
    for identity in with_counters() {
        let bench = Bench::new(processor_of(identity));
        let (counter, other) = (bench.started(ANYWHERE, None), bench.general() - 1);
        assert_ne!(counter, other, "{}", identity.name);
        bench.hal.save(&bench, 0);
        bench.lose_registers();
        bench.set_msr(bench.select(other), 0x0053_003C);
        bench.hal.restore(&bench, 0);
        assert_eq!(bench.msr(bench.select(other)), 0, "{}", identity.name);
        bench.run(100);
        assert_eq!(bench.finish(), [100], "{}", identity.name);
        assert_eq!(bench.given(other), 0, "{}", identity.name);
    }
}

#[test]
fn no_peer_an_interrupt_that_comes_after_the_release_leaves_what_release_put_back() {
    for identity in with_global_registers() {
        let bench = Bench::idle(processor_of(identity));
        let reset = bench.msr(GLOBAL_CTRL);
        bench.initialize();
        bench.started(ANYWHERE, Some(SHORT));
        bench.run(u64::from(SHORT));
        bench.finish();
        bench.release();
        assert_eq!(bench.msr(GLOBAL_STATUS), 0, "{}", identity.name);
        assert_eq!((bench.deliver(), bench.serve()), (true, vec![]), "{}", identity.name);
        assert_eq!(bench.msr(GLOBAL_CTRL), reset, "{}", identity.name);
    }
}

#[test]
fn no_peer_waking_without_a_session_leaves_the_registers_alone() {
    let bench = Bench::named("intel-v2");
    bench.started(ANYWHERE, None);
    bench.finish();
    bench.release();
    bench.hal.save(&bench, 0);
    bench.lose_registers();
    bench.hal.restore(&bench, 0);
    assert_eq!(bench.msr(GLOBAL_CTRL), 0xF, "as from reset");
}

#[test]
fn no_peer_initializing_twice_does_not_forget_what_was_found() {
    let bench = Bench::idle(processor_of(processors::find("intel-v2").unwrap()));
    let reset = bench.msr(GLOBAL_CTRL);
    bench.initialize();
    bench.initialize();
    bench.release();
    assert_eq!(bench.msr(GLOBAL_CTRL), reset);
}
