//! Pentium: one control register for both counters, and no interrupt.

use model::Mode;
use pmu::state::CounterSet;
use pmu::{HalError, ProcessorIndex, Source};

use super::bench::{Access, Bench, processor_of};
use simulation::boot;

fn each(law: impl Fn(&Bench)) {
    for identity in cpuid_dumps::all().iter().filter(|identity| identity.expected.interface == "Pentium") {
        let bench = Bench::new(processor_of(identity));
        bench.take_log();
        law(&bench);
    }
}

/// Bits 7:6 of a half: CPL 3, and CPL 0 to 2.
const BOTH_MODES: u64 = 3 << 6;

#[test]
fn starting_clears_the_counters_then_writes_one_register_that_starts_them_all() {
    each(|bench| {
        bench.in_kernel_mode_too();
        let counters = [2, 6].map(|source| bench.reserve(source, None));
        bench.start([counters[0]]);
        assert_eq!(bench.take_log(), [Access::Write(0x12, 0), Access::Write(0x11, BOTH_MODES | 0x16)]);
        bench.run(5);
        bench.start([counters[1]]);
        let both = (BOTH_MODES | 0x12) << 16 | BOTH_MODES | 0x16;
        assert_eq!(bench.take_log(), [Access::Write(0x13, 0), Access::Write(0x11, both)]);
        bench.run(7);
        bench.stop(CounterSet::NONE.with(counters[0]));
        let left = (BOTH_MODES | 0x12) << 16;
        assert_eq!(bench.take_log(), [Access::Write(0x11, left), Access::Read(0x12)], "read without RDPMC");
        bench.run(9);
        bench.stop(CounterSet::NONE.with(counters[1]));
        assert_eq!(bench.take_log(), [Access::Write(0x11, 0), Access::Read(0x13)]);
        let between = counters.map(|counter| bench.between(counter));
        assert_eq!(bench.finish(), [12 + between[0], 16 + between[1]]);
    });
}

#[test]
fn sampling_is_refused_with_its_reason_and_touches_nothing() {
    each(|bench| {
        for source in bench.sources().into_iter().map(Source) {
            assert_eq!(bench.hal.state_for(source, 0, true), Err(HalError::NoInterrupt(source)));
            assert!(bench.hal.state_for(source, 0, false).is_ok());
        }
        assert!(bench.serve().is_empty());
        assert_eq!(bench.hal.check_overflow(boot(bench)).number(), 0);
        assert_eq!(bench.take_log(), []);
    });
}

#[test]
fn each_mode_and_every_source_is_counted_as_the_model_counted() {
    each(|bench| {
        for source in bench.sources() {
            for (user, kernel) in [(true, false), (false, true), (true, true)] {
                let state = bench
                    .hal
                    .state_for(Source(source), 0, false)
                    .unwrap()
                    .with_owner(1)
                    .with_user(user)
                    .with_kernel(kernel);
                bench.model().clear_ledger();
                let counters = [0, 1].map(|_| bench.hal.reserve(ProcessorIndex::BOOT, state).unwrap());
                bench.start(counters);
                bench.machine.run(0, Mode::User, &|selected| u64::from(selected.event) + 100);
                bench.machine.run(0, Mode::Kernel, &|selected| u64::from(selected.event) + 10_000);
                let event = bench.msr(0x11) & 0x3F;
                let wanted = u64::from(user) * (event + 100) + u64::from(kernel) * (event + 10_000);
                let totals = bench.finish();
                assert_eq!(totals, counters.map(|counter| wanted + bench.between(counter)), "{source:#x}");
                assert_eq!(bench.model().enabled_counters(), []);
            }
        }
    });
}

#[test]
fn counts_outlive_a_sleep_and_a_release_leaves_the_register_clear() {
    each(|bench| {
        let counters = [2, 6].map(|source| bench.started(source, None));
        bench.run(30);
        bench.hal.save(boot(bench));
        assert_eq!(bench.msr(0x11), 0);
        for counter in [0x12, 0x13] {
            bench.set_msr(counter, 0x55);
        }
        bench.run(1_000);
        bench.hal.restore(boot(bench));
        bench.run(4);
        assert_eq!(counters.map(|counter| bench.hal.count(boot(bench), counter)), [34; 2]);
        assert_eq!(bench.finish(), [34; 2]);
        bench.release();
        assert_eq!(bench.msr(0x11), 0);
        let accesses = bench.take_log();
        let own = |access: &Access| matches!(access, Access::Read(0x11..=0x13) | Access::Write(0x11..=0x13, _));
        assert!(accesses.iter().all(own), "{accesses:x?}");
        assert_eq!(bench.model().accesses().faulted, 0);
    });
}

#[test]
fn a_foreign_counter_and_registers_that_drop_writes_are_detected() {
    each(|bench| {
        bench.release();
        for (cesr, counter) in [(0, None), (0x16, None), (0x40, Some(0)), (0x80, Some(0)), (0x40 << 16, Some(1))] {
            bench.set_msr(0x11, cesr);
            let told = bench.hal.in_use_elsewhere(boot(bench)).map(|enabled| (enabled.counter, enabled.value));
            assert_eq!(told, counter.map(|counter| (counter, cesr)), "{cesr:#x}");
        }
        let nothing = Bench::idle(model::Processor::new(Box::new(|_, _| [0; 4])).with_absent_msrs_ignored());
        assert!(!bench.hal.initialize(boot(&nothing)));
    });
}
