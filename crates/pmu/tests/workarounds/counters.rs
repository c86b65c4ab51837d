//! Workarounds that change which counters a processor has.

use model::{CounterId, Mode};
use pmu::ProfileInterface;
use pmu::source::RawEvent;

use super::Bench;

/// General counters can count BranchInstructions, fixed ones TotalIssues, Cycles and ReferenceCycles.
const BRANCHES: u64 = 0x06;
const FIXED: [u64; 3] = [0x02, 0x13, 0x1B];

/// TSX_FORCE_ABORT and RTM_ALWAYS_ABORT, CPUID.(7,0):EDX\[13\] and \[11\].
const FORCE_ABORT: u32 = 1 << 13;
const ALWAYS_ABORT: u32 = 1 << 11;

mod leave_counter_3 {
    use super::*;

    /// Reserves and starts as many counters of branches as there are. Returns their hardware numbers and their counts.
    fn counted(bench: &Bench) -> Vec<(CounterId, u64)> {
        let counters: Vec<u8> = std::iter::from_fn(|| bench.reserve(BRANCHES)).collect();
        for counter in &counters {
            bench.start(*counter);
        }
        bench.run(1_000);
        bench.run(1_000);
        counters.iter().map(|counter| (bench.machine.counter(0, *counter), bench.count(*counter))).collect()
    }

    #[test]
    fn the_counter_of_the_microcode_is_neither_used_nor_touched() {
        let four = || Bench::new("skylake-sp-tsx-derived");
        let eight = || {
            Bench::with_cpuid("skylake-6600k", |leaf, [eax, ebx, ecx, edx]| {
                [eax, ebx, ecx, if leaf == 7 { edx | FORCE_ABORT } else { edx }]
            })
        };
        for (bench, general) in [(four(), vec![0, 1, 2]), (eight(), vec![0, 1, 2, 4, 5, 6, 7])] {
            let wanted: Vec<_> = general.iter().map(|number| (CounterId::General(*number), 2_000)).collect();
            let cpu = bench.machine.processor(0);
            assert!(cpu.write_foreign(0x189, 0x0041_00AA), "the microcode uses it");
            assert_eq!(counted(&bench), wanted);
            assert_eq!(usize::from(bench.hal.interface().countable()), general.len() + 3);
            bench.hal.release(bench.machine.current(0));
            assert_eq!(cpu.model().rdmsr(0x189), Ok(0x0041_00AA));
            assert!(bench.hal.in_use_elsewhere(bench.machine.current(0)).is_none(), "it is no other program");
        }
    }

    #[test]
    fn it_is_used_if_every_transaction_aborts() {
        let bench = Bench::with_cpuid("skylake-sp-tsx-derived", |leaf, [eax, ebx, ecx, edx]| {
            [eax, ebx, ecx, if leaf == 7 { edx | ALWAYS_ABORT } else { edx }]
        });
        assert_eq!(bench.hal.interface().counters(), 7);
        let used: Vec<_> = std::iter::from_fn(|| bench.reserve(BRANCHES)).collect();
        assert_eq!(used, [0, 1, 2, 3]);
    }

    #[test]
    fn the_register_of_transactions_is_never_written() {
        // The model has no such register: a write would fault and stop the test.
        assert!(Bench::new("skylake-sp-tsx-derived").machine.processor(0).model().rdmsr(0x10F).is_err());
    }
}

mod low_counters_for_user_alone {
    use pmu::placement::Wanted;
    use pmu::{ProcessorIndex, Source};

    use super::*;

    /// Eight general counters, as with hyper-threading off.
    const EIGHT: &str = "broadwell-ht-off-derived";

    /// Reserves and starts as many counters of branches in these modes as there are. Returns their hardware numbers and
    /// their counts.
    fn counted(bench: &Bench, kernel: bool) -> Vec<(CounterId, u64)> {
        let state = bench.hal.state_for(Source(BRANCHES), 0, false).unwrap().with_owner(1);
        let state = state.with_user(true).with_kernel(kernel);
        let one = || bench.hal.reserve(ProcessorIndex::BOOT, state);
        let counters: Vec<u8> = std::iter::from_fn(one).collect();
        let possible: Vec<u8> = bench.hal.counters_for(ProcessorIndex::BOOT, state).iter().collect();
        assert_eq!(possible, counters);
        for counter in &counters {
            bench.start(*counter);
        }
        bench.run(1_000);
        counters.iter().map(|counter| (bench.machine.counter(0, *counter), bench.count(*counter))).collect()
    }

    #[test]
    fn events_in_user_mode_alone_are_where_they_count() {
        for (name, general) in [(EIGHT, 4), ("broadwell-6950x", 4), ("skylake-6600k", 8)] {
            let bench = Bench::new(name);
            let wanted: Vec<_> = (0..general).map(|number| (CounterId::General(number), 1_000)).collect();
            assert_eq!(counted(&bench, false), wanted);
        }
        // The start itself counts in kernel mode.
        let both = counted(&Bench::new(EIGHT), true);
        assert!(both.len() == 8 && both.iter().all(|(_, count)| *count > 1_000), "{both:?}");
    }

    #[test]
    fn events_in_user_mode_alone_are_counted_by_fixed_counters() {
        let bench = Bench::new(EIGHT);
        let counters = FIXED.map(|source| bench.reserve(source).unwrap());
        assert_eq!(counters.map(|counter| bench.machine.counter(0, counter)), [0, 1, 2].map(CounterId::Fixed));
    }

    #[test]
    fn an_event_of_the_kernel_makes_room_for_one_of_user_mode() {
        let bench = Bench::new(EIGHT);
        let state = bench.hal.state_for(Source(BRANCHES), 0, false).unwrap().with_owner(1);
        let narrowed = |state| bench.hal.narrowed(ProcessorIndex::BOOT, Wanted::from(state));
        let mut assigned = [0; 8];
        let wanted = [[narrowed(state.with_kernel(true)); 4], [narrowed(state.with_user(true)); 4]].concat();
        bench.hal.assign(ProcessorIndex::BOOT, &wanted, &mut assigned).unwrap();
        let mut of_user = assigned[4..].to_vec();
        of_user.sort_unstable();
        assert_eq!(of_user, [0, 1, 2, 3], "{assigned:?}");
    }
}

mod three_fixed_counters {
    use super::*;

    #[test]
    fn early_processors_have_three_although_they_report_fewer() {
        for name in ["core2-6420", "merom-t5600", "diamondville-230"] {
            let bench = Bench::new(name);
            let counters = FIXED.map(|source| bench.reserve(source).unwrap());
            assert_eq!(
                counters.map(|counter| bench.machine.counter(0, counter)),
                [0, 1, 2].map(CounterId::Fixed),
                "{name}"
            );
            assert!(counters.iter().all(|counter| bench.hal.interface().width_of(*counter) == 40), "{name}");
            for counter in &counters {
                bench.start(*counter);
            }
            bench.run(700);
            assert_eq!(counters.map(|counter| bench.stop(counter)), [700; 3], "{name}");
        }
    }

    #[test]
    fn under_a_hypervisor_those_that_it_reports_are_used() {
        let bench = Bench::with_cpuid("core2-6420", |leaf, [eax, ebx, ecx, edx]| {
            [eax, ebx, if leaf == 1 { ecx | 1 << 31 } else { ecx }, edx]
        });
        assert_eq!((bench.hal.interface().counters(), bench.hal.interface().fixed_counters()), (2, 0));
    }
}

mod merge_counters {
    use super::*;

    /// Retired SSE and AVX FLOPs.
    fn flops() -> u64 {
        RawEvent::new().with_event(0x003).with_umask(0x0F).source().0
    }

    #[test]
    fn flops_are_counted_whole_and_leave_the_odd_counter_to_nothing_else() {
        for name in ["zen-1800x", "rome-7742", "zen3-5950x", "zen4-7700x", "zen5-9800x3d"] {
            let bench = Bench::new(name);
            let counter = bench.reserve(flops()).unwrap();
            let others = std::iter::from_fn(|| bench.reserve(BRANCHES)).collect::<Vec<_>>();
            assert!(
                counter.is_multiple_of(2) && others.len() == 4 && !others.contains(&(counter + 1)),
                "{name}: {others:?}"
            );
            bench.start(counter);
            // A thousand cycles with 32 operations each.
            bench.machine.run(0, Mode::User, &|selected| if selected.event == 3 { 32_000 } else { 1_000 });
            assert_eq!(bench.stop(counter), 32_000, "{name}");
        }
    }

    #[test]
    fn before_family_17h_an_event_with_that_number_takes_one_counter() {
        let bench = Bench::new("k10-thuban");
        let counters: Vec<u8> = std::iter::from_fn(|| bench.reserve(flops())).collect();
        assert_eq!(counters, [0, 1, 2, 3]);
    }
}
