//! Groups: the grade that a machine offers, what is given back and when, regions that are used wrongly or fail, and the
//! overhead.

#![expect(clippy::unwrap_used, reason = "a group that fails must fail its test")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use crate::lab::{INTEL, Lab, LabSystem, start_session};
use bench_protocol::{Accounting, HandleTarget, Scheduling, UserRdpmc};
use halprof::verification::{self, MachineIdentity, ThreadReading, Verification};
use halprof::{Builder, Disturbance, Error, Grade, GroupError, Quality, ThreadGroup, Unavailable};

const HASWELL: &str = "haswell-4710mq";

fn quiet() -> Scheduling {
    Scheduling { kinds: INTEL.to_vec(), rdpmc: UserRdpmc::Works, ..Scheduling::default() }
}

/// As Windows has it.
fn faulting() -> Scheduling {
    Scheduling { rdpmc: UserRdpmc::Faults, ..quiet() }
}

/// Writes the record of a self-test.
fn verify(lab: &Lab, reading: ThreadReading, keeps_64_bits: bool) {
    let record = Verification::new(lab.machine().identity().unwrap(), reading, keeps_64_bits);
    verification::write(&LabSystem(lab.clone()), &record).unwrap();
}

fn truncated() -> Scheduling {
    Scheduling { accounting: Accounting::Truncated, ..quiet() }
}

fn lab() -> Lab {
    Lab::new(HASWELL, 2, quiet())
}

fn instructions() -> Builder {
    Builder::new().event("instructions").unwrap()
}

fn group(lab: &Lab) -> ThreadGroup {
    instructions().build_for_thread_on(&lab.machine()).unwrap()
}

/// Executes so many instructions.
fn run(lab: &Lab, count: u64) {
    let [instructions, ..] = INTEL;
    lab.run_user(&[(instructions, count)]);
}

fn disturbance(quality: &Quality) -> Option<&Disturbance> {
    match quality {
        Quality::Disturbed(disturbance) => Some(disturbance),
        _ => None,
    }
}

/// What is wrong with a machine, the grade of its groups, and why they have no better one, if the reason is checked.
type Case = (&'static str, fn(&Lab), Grade, Option<Unavailable>, Option<Unavailable>);

#[test]
fn the_best_grade_is_built_and_the_reason_why_not_a_better_one_is_told() {
    let failed = |text: &str| Unavailable::ProfilingFailed { reason: text.to_owned() };
    let error = std::io::Error::from_raw_os_error(31).to_string();
    let missing = Unavailable::MissingFunction { name: "ReadThreadProfilingData" };
    let cases: [Case; 6] = [
        ("nothing", |_| (), Grade::Virtualized, None, None),
        (
            "a missing function",
            |lab| lab.state().missing = Some("ReadThreadProfilingData"),
            Grade::Disturbed,
            Some(missing.clone()),
            Some(missing),
        ),
        (
            "EnableThreadProfiling fails",
            |lab| lab.state().failing.push("EnableThreadProfiling"),
            Grade::Disturbed,
            Some(failed(&error)),
            Some(failed(&error)),
        ),
        (
            "the thread is profiled",
            |lab| lab.profile(),
            Grade::Disturbed,
            Some(Unavailable::AlreadyProfiled),
            Some(Unavailable::AlreadyProfiled),
        ),
        (
            "no affinity",
            |lab| {
                lab.state().failing.push("SetThreadGroupAffinity");
                lab.refuse_threads(true);
            },
            Grade::Undisturbed,
            None,
            None,
        ),
        ("Windows refuses the configuration", |lab| lab.refuse_threads(true), Grade::Undisturbed, None, None),
    ];
    for (case, setup, grade, virtualized, undisturbed) in cases {
        let lab = lab();
        setup(&lab);
        let mut group = group(&lab);
        let availability = group.availability().clone();
        assert_eq!(availability.grade(), grade, "{case}: {availability}");
        assert_eq!(availability.why_not(Grade::Virtualized).is_some(), grade != Grade::Virtualized, "{case}");
        if virtualized.is_some() {
            assert_eq!(availability.why_not(Grade::Virtualized), virtualized.as_ref(), "{case}");
        }
        assert_eq!(availability.why_not(Grade::Undisturbed), undisturbed.as_ref(), "{case}");
        let counts = group.measure(|| run(&lab, 1_000)).unwrap();
        assert_eq!(counts.quality.grade(), grade, "{case}: {}", counts.quality);
        // Even a disturbed group has a value.
        assert_eq!(counts.get("instructions"), Some(1_040), "{case}");
        drop(group);
        lab.state().failing.clear();
        if case != "the thread is profiled" {
            assert!(lab.is_free(), "{case}");
        }
        let refused = instructions().require(Grade::Virtualized).build_for_thread_on(&lab.machine());
        if grade == Grade::Undisturbed {
            let Err(error) = refused else { panic!("{case}: built") };
            assert_eq!(error.kind(), halprof::ErrorKind::GradeUnavailable);
            assert!(error.to_string().starts_with("virtualized counts are unavailable: "), "{error}");
        }
    }
}

#[test]
fn kernel_mode_is_exact_only_in_a_virtualized_group() {
    let lab = lab();
    let build = || instructions().kernel().build_for_thread_on(&lab.machine()).unwrap();
    assert_eq!(build().availability().grade(), Grade::Virtualized);
    lab.refuse_threads(true);
    let mut group = build();
    assert_eq!(group.availability().why_not(Grade::Undisturbed), Some(&Unavailable::KernelMode));
    let counts = group.measure(|| run(&lab, 1_000)).unwrap();
    assert_eq!(counts.quality, Quality::Disturbed(Disturbance::KernelMode));
}

#[test]
fn a_counter_that_does_not_count_lowers_the_grade_and_no_region_is_exact() {
    let lab = Lab::new("kvm-8650u", 2, quiet());
    assert_eq!(group(&lab).availability().grade(), Grade::Virtualized);
    lab.stand_still(1);
    let still = Unavailable::DoesNotCount { cpu: 1 };
    let mut marked = group(&lab);
    assert_eq!(marked.availability().grade(), Grade::Disturbed);
    assert_eq!(marked.availability().why_not(Grade::Virtualized), Some(&still));
    let counts = marked.measure(|| run(&lab, 1_000)).unwrap();
    assert_eq!(counts.quality, Quality::Disturbed(Disturbance::DoesNotCount { cpu: 1 }));
    // The reason is what happened in the region, if there is something, and not what holds for all regions.
    let changed = marked.measure(|| lab.change_counters(1)).unwrap();
    assert_eq!(changed.quality, Quality::Disturbed(Disturbance::CountersChanged { cpu: 1 }));
    drop(marked);
    let refused = instructions().require(Grade::Virtualized).build_for_thread_on(&lab.machine());
    assert!(refused.is_err_and(|error| error.kind() == halprof::ErrorKind::GradeUnavailable));
    assert!(lab.is_free());
}

#[test]
fn a_second_group_of_the_thread_is_built_with_what_is_left() {
    let lab = lab();
    let first = group(&lab);
    let second = group(&lab);
    assert_eq!(second.availability().why_not(Grade::Virtualized), Some(&Unavailable::AlreadyProfiled));
    drop(first);
    drop(second);
    assert!(lab.is_free());
}

#[test]
fn everything_is_given_back_in_any_order_of_drops() {
    for grade in [Grade::Virtualized, Grade::Undisturbed] {
        let lab = lab();
        lab.refuse_threads(grade == Grade::Undisturbed);
        let machine = lab.machine();
        let mut group = instructions().pin(1).build_for_thread_on(&machine).unwrap();
        assert_eq!((group.availability().grade(), lab.current()), (grade, 1));
        group.begin().unwrap();
        drop(machine);
        assert!(!lab.is_free());
        drop(group);
        assert!(lab.is_free(), "{grade}");
        lab.state().failing.push("SetThreadGroupAffinity");
        let refused = instructions().pin(1).build_for_thread_on(&lab.machine());
        assert!(matches!(refused, Err(Error::Group(GroupError::NotPinned { cpu: 1, .. }))));
        assert!(lab.is_free(), "{grade}");
    }
}

#[test]
fn a_panic_in_the_closure_ends_the_region_and_nothing_else() {
    let lab = lab();
    let mut group = group(&lab);
    let panicked = catch_unwind(AssertUnwindSafe(|| group.measure(|| panic!("the work"))));
    assert!(panicked.is_err());
    assert!(matches!(group.end(), Err(Error::Group(GroupError::NotBegun))));
    let counts = group.measure(|| run(&lab, 7)).unwrap();
    assert_eq!((counts.get("instructions"), counts.quality.is_exact()), (Some(47), true));
    let dropped = catch_unwind(AssertUnwindSafe(move || group.measure(|| panic!("the work"))));
    assert!(dropped.is_err());
    assert!(lab.is_free());
}

#[test]
fn a_region_begins_once_and_ends_once() {
    let lab = lab();
    let mut group = group(&lab);
    let is = |result: Result<(), Error>, wanted: &str| assert_eq!(result.unwrap_err().to_string(), wanted);
    is(group.end().map(drop), "no region has begun");
    is(group.checkpoint(), "no region has begun");
    group.begin().unwrap();
    is(group.begin(), "a region has begun already");
    is(group.measure(|| ()).map(drop), "a region has begun already");
    is(group.calibrate().map(drop), "a region has begun already");
    run(&lab, 5);
    assert!(group.end().unwrap().quality.is_exact());
    group.begin().unwrap();
    group.cancel();
    is(group.end().map(drop), "no region has begun");
}

#[test]
fn a_failed_reading_loses_nothing() {
    for grade in [Grade::Virtualized, Grade::Undisturbed] {
        let lab = lab();
        lab.refuse_threads(grade == Grade::Undisturbed);
        let mut group = group(&lab);
        for call in ["ReadThreadProfilingData", "ReadGroup"] {
            lab.state().failing.push(call);
            assert!(group.begin().is_err(), "{call}");
            lab.state().failing.clear();
            group.begin().unwrap();
            run(&lab, 100);
            lab.state().failing.push(call);
            let failed = group.end();
            lab.state().failing.clear();
            if let Ok(counts) = failed {
                // The values are read; only their proof is missing.
                assert_eq!((grade, call), (Grade::Virtualized, "ReadGroup"));
                assert!(matches!(disturbance(&counts.quality), Some(Disturbance::NotChecked { .. })));
                assert_eq!(counts.get("instructions"), Some(140));
            } else {
                run(&lab, 10);
                let counts = group.end().unwrap();
                assert!(counts.quality.is_exact() && counts.get("instructions").unwrap() >= 150, "{counts:?}");
            }
        }
        // A region of `measure` does not go on after a failure.
        let failed = group.measure(|| lab.state().failing.push("ReadThreadProfilingData"));
        lab.state().failing.clear();
        assert!(failed.is_err());
        assert!(group.measure(|| ()).unwrap().quality.is_exact());
        drop(group);
        assert!(lab.is_free());
    }
}

#[test]
fn a_thread_that_was_moved_from_its_cpu_has_the_counts_of_that_cpu() {
    let lab = lab();
    lab.refuse_threads(true);
    let mut group = instructions().pin(0).build_for_thread_on(&lab.machine()).unwrap();
    // What was counted before the region is no part of it, and what the thread executes elsewhere was not counted.
    run(&lab, 1_000_000);
    let counts = group.measure(|| {
        run(&lab, 1_000);
        lab.move_to(1);
        run(&lab, 1_000_000);
    });
    let counts = counts.unwrap();
    assert_eq!(counts.quality, Quality::Disturbed(Disturbance::Migrated { from: 0, to: 1 }));
    assert!((1_000..2_000).contains(&counts.get("instructions").unwrap()), "{counts:?}");
}

#[test]
fn a_sleep_between_any_two_readings_is_seen() {
    for (grade, scheduling) in
        [(Grade::Virtualized, quiet()), (Grade::Virtualized, faulting()), (Grade::Undisturbed, quiet())]
    {
        let mut calls = 0;
        loop {
            let lab = Lab::new(HASWELL, 2, scheduling.clone());
            verify(&lab, if scheduling == faulting() { ThreadReading::Memory } else { ThreadReading::Function }, true);
            lab.refuse_threads(grade == Grade::Undisturbed);
            let mut group = group(&lab);
            assert!(group.measure(|| ()).unwrap().quality.is_exact(), "the base of all CPUs is read before");
            lab.state().sleep_before = Some(calls);
            let counts = group.measure(|| run(&lab, 100)).unwrap();
            let is_over = lab.state().sleep_before.is_some();
            if is_over {
                break;
            }
            let slept = Disturbance::Slept { duration: Duration::from_secs(5) };
            assert_eq!(disturbance(&counts.quality), Some(&slept), "{grade}: before call {calls}");
            calls += 1;
        }
        // Both accounts of Windows and both readings of the group, at least.
        assert!(calls >= 4, "{grade}: {calls}");
    }
}

/// What the kernel executes between a reading of the driver and one of Windows belongs to either: it proves nothing
/// about events in kernel mode.
#[test]
fn kernel_events_between_two_readings_are_no_contradiction() {
    for events in [1_u64 << 12, 1 << 21, 1 << 24] {
        let lab = Lab::new(HASWELL, 2, quiet());
        let mut group = instructions().both().allow_unverified().build_for_thread_on(&lab.machine()).unwrap();
        for seed in 0..20 {
            let behavior =
                Scheduling { seed, interrupt: 10, kernel: events, accounting: Accounting::Truncated, ..quiet() };
            lab.state().scheduler.set_behavior(behavior);
            let counts = group.measure(|| run(&lab, 1_000)).unwrap();
            let truncated = Disturbance::MayHaveTruncated { event: "instructions".to_owned() };
            let is_expected = counts.quality.is_exact() || counts.quality == Quality::Disturbed(truncated);
            assert!(is_expected, "{events}: {counts:?}");
        }
    }
}

#[test]
fn functions_that_succeed_and_report_zeros_prove_nothing() {
    for refuse in [false, true] {
        let lab = lab();
        lab.refuse_threads(refuse);
        lab.state().charges_nothing = true;
        let counts = group(&lab).measure(|| run(&lab, 1_000)).unwrap();
        assert_eq!(counts.quality, Quality::Disturbed(Disturbance::NotAccounted));
    }
}

#[test]
fn an_empty_closure_counts_nothing_after_calibration() {
    for refuse in [false, true] {
        let lab = lab();
        lab.refuse_threads(refuse);
        let builder = instructions().event("cycles").unwrap().user();
        let mut group = builder.build_for_thread_on(&lab.machine()).unwrap();
        assert_eq!(group.overhead(), None);
        let overhead = group.calibrate().unwrap().clone();
        assert_eq!(overhead.regions(), 64);
        for event in overhead.events() {
            assert_eq!((event.subtracted(), event.bound()), (40, 0), "{}", event.name());
        }
        for _ in 0..100 {
            let counts = group.measure(|| ()).unwrap();
            assert!(counts.iter().all(|(name, count)| count <= overhead.get(name).unwrap().bound()), "{counts:?}");
        }
        assert_eq!(group.measure(|| run(&lab, 123)).unwrap().get("instructions"), Some(123));
    }
}

#[test]
fn the_bound_of_an_overhead_that_varies_holds() {
    // The kernel's part of each request is random, and a region has a part of one at each end.
    let lab = Lab::new(HASWELL, 2, faulting());
    let mut group = instructions().both().allow_unverified().build_for_thread_on(&lab.machine()).unwrap();
    let bound = group.calibrate().unwrap().get("instructions").unwrap().bound();
    assert!(bound > 0);
    let counts: Vec<_> = (0..100).map(|_| group.measure(|| ()).unwrap().get("instructions").unwrap()).collect();
    // Each part is at most 200 events, of which a region has two.
    assert!(counts.iter().all(|count| *count <= bound.max(400)), "{bound} {counts:?}");
}

#[test]
fn a_region_with_more_than_2_32_events_is_exact_disturbed_or_split() {
    const EVENTS: u64 = 7 << 32 | 0x63;
    // The thread keeps its CPU: the driver's count restores what Windows dropped.
    let lab = Lab::new(HASWELL, 2, truncated());
    let counts = group(&lab).measure(|| run(&lab, EVENTS)).unwrap();
    assert_eq!((counts.get("instructions"), counts.quality.is_exact()), (Some(EVENTS + 40), true));
    // It is switched out, and other threads count too.
    let work = |lab: &Lab| {
        run(lab, EVENTS / 2);
        lab.wait();
        run(lab, EVENTS / 2);
    };
    let mut other = group(&lab);
    let counts = other.measure(|| work(&lab)).unwrap();
    let truncated = Disturbance::MayHaveTruncated { event: "instructions".to_owned() };
    assert_eq!(counts.quality, Quality::Disturbed(truncated));
    // Parts of less than 2^32 events are proven one by one.
    other.begin().unwrap();
    for part in 0..15 {
        if part > 0 {
            other.checkpoint().unwrap();
        }
        run(&lab, 1 << 31);
        lab.wait();
    }
    let counts = other.end().unwrap();
    assert!(counts.quality.is_exact(), "{}", counts.quality);
    assert_eq!(counts.get("instructions"), Some((15 << 31) + 15 * 40));
    drop(other);
    // Where Windows is known to keep every bit, nothing else is needed.
    let lab = self::lab();
    verify(&lab, ThreadReading::Function, true);
    let mut verified = group(&lab);
    assert!(verified.availability().is_verified());
    let counts = verified.measure(|| work(&lab)).unwrap();
    assert_eq!(counts.quality, Quality::Virtualized { verified: true });
    assert_eq!(counts.get("instructions"), Some(EVENTS / 2 * 2 + 40));
}

#[test]
fn a_record_of_another_machine_verifies_nothing() {
    let lab = lab();
    let own = lab.machine().identity().unwrap();
    let others = [
        MachineIdentity { windows_build: "26100.2".to_owned(), ..own.clone() },
        MachineIdentity { signature: own.signature ^ 1, ..own.clone() },
        MachineIdentity { brand: "another".to_owned(), ..own.clone() },
        MachineIdentity { driver: "9.9.9".to_owned(), ..own.clone() },
    ];
    for (machine, verified) in others.into_iter().map(|other| (other, false)).chain([(own, true)]) {
        verification::write(
            &LabSystem(lab.clone()),
            &Verification::new(machine.clone(), ThreadReading::Function, true),
        )
        .unwrap();
        assert_eq!(group(&lab).availability().is_verified(), verified, "{machine:?}");
    }
}

#[test]
fn where_rdpmc_faults_counts_are_undisturbed_until_a_selftest_has_verified_the_memory() {
    let lab = Lab::new(HASWELL, 2, faulting());
    for record in [None, Some(ThreadReading::Function), Some(ThreadReading::Memory)] {
        if let Some(reading) = record {
            verify(&lab, reading, true);
        }
        let mut group = group(&lab);
        let availability = group.availability().clone();
        let is_verified = record == Some(ThreadReading::Memory);
        let (grade, quality, reading) = if is_verified {
            (Grade::Virtualized, Quality::Virtualized { verified: true }, record)
        } else {
            assert_eq!(availability.why_not(Grade::Virtualized), Some(&Unavailable::Unverified));
            (Grade::Undisturbed, Quality::Undisturbed, None)
        };
        assert_eq!((availability.grade(), availability.reading()), (grade, reading), "{record:?}");
        assert_eq!(availability.is_verified(), is_verified, "{record:?}");
        let counts = group.measure(|| run(&lab, 1_000)).unwrap();
        assert_eq!((counts.get("instructions"), &counts.quality), (Some(1_040), &quality), "{record:?}");
        // More than 32 bits in one slice, and a switch.
        let work = || {
            run(&lab, 5 << 32);
            lab.wait();
            run(&lab, 3);
        };
        let counts = group.measure(work).unwrap();
        assert_eq!(counts.quality.is_exact(), is_verified, "{}", counts.quality);
        if is_verified {
            assert_eq!(counts.get("instructions"), Some((5 << 32) + 43));
        }
        drop(group);
        assert!(lab.is_free());
    }
    lab.state().verification = None;
    let Err(error) = instructions().require(Grade::Virtualized).build_for_thread_on(&lab.machine()) else {
        panic!("built without a record")
    };
    assert_eq!(error.remedy().as_deref(), Some(".\\client selftest --threads"));
    let unverified = instructions().allow_unverified().build_for_thread_on(&lab.machine()).unwrap();
    assert_eq!(unverified.availability().reading(), Some(ThreadReading::Memory));
    assert!(!unverified.availability().is_verified(), "it is for the self-test");
}

#[test]
fn a_handle_that_points_elsewhere_leaves_the_undisturbed_grade() {
    for (handle, reason) in [
        (HandleTarget::Nothing, "does not point to memory"),
        (HandleTarget::Unreadable, "does not point to memory"),
        (HandleTarget::Garbage, "does not point to THREAD_PERFORMANCE_DATA: Size is 0xa5a5 instead of 0x1c0"),
        (HandleTarget::OtherVersion, "does not point to THREAD_PERFORMANCE_DATA: Version is 0x2 instead of 0x1"),
        (HandleTarget::OtherCounters, "the index of a counter is 0x0 instead of 0x1"),
    ] {
        let lab = Lab::new(HASWELL, 2, Scheduling { handle, ..faulting() });
        verify(&lab, ThreadReading::Memory, true);
        // Counters 0 and 1.
        let mut group = instructions().event("branches").unwrap().build_for_thread_on(&lab.machine()).unwrap();
        let why = group.availability().why_not(Grade::Virtualized).unwrap();
        assert!(matches!(why, Unavailable::NoThreadMemory { .. }) && why.to_string().contains(reason), "{why}");
        let counts = group.measure(|| run(&lab, 1_000)).unwrap();
        assert_eq!((counts.get("instructions"), counts.quality), (Some(1_040), Quality::Undisturbed), "{handle:?}");
        drop(group);
        assert!(lab.is_free());
    }
}

#[test]
fn memory_that_is_wrong_in_one_slice_is_a_contradiction() {
    let lab = Lab::new(HASWELL, 2, Scheduling { handle: HandleTarget::Exchanged, ..faulting() });
    let mut group = instructions().allow_unverified().build_for_thread_on(&lab.machine()).unwrap();
    // The first slice has no total that could be exchanged.
    run(&lab, 1_000);
    lab.wait();
    group.begin().unwrap();
    run(&lab, 1_000);
    lab.wait();
    run(&lab, 1_000);
    let counts = group.end().unwrap();
    assert!(!counts.quality.is_exact() || counts.get("instructions") != Some(2_040), "only known work can tell");
}

#[test]
fn rdpmc_that_works_on_one_cpu_only_is_used_by_threads_that_stay_there() {
    let scheduling = Scheduling { rdpmc: UserRdpmc::WorksOnProcessor0, migrate: 100, preempt: 5, ..quiet() };
    for (pin, reading) in [(Some(0), Some(ThreadReading::Function)), (Some(1), None), (None, None)] {
        let lab = Lab::new(HASWELL, 2, scheduling.clone());
        let builder = pin.map_or_else(instructions, |cpu| instructions().pin(cpu));
        let mut group = builder.build_for_thread_on(&lab.machine()).unwrap();
        assert_eq!(group.availability().reading(), reading, "{pin:?}: {}", group.availability());
        for _ in 0..50 {
            group.measure(|| run(&lab, 1_000)).unwrap();
        }
    }
}

#[test]
fn rdpmc_that_stops_working_is_an_error_and_not_the_end_of_the_program() {
    let lab = lab();
    let mut group = group(&lab);
    assert_eq!(group.availability().reading(), Some(ThreadReading::Function));
    lab.state().scheduler.set_behavior(faulting());
    let error = group.begin().unwrap_err();
    assert!(matches!(error, Error::Group(GroupError::NoUserRdpmc { .. })), "{error}");
    assert!(matches!(group.end(), Err(Error::Group(GroupError::NotBegun))));
}

#[test]
fn a_thread_that_is_switched_at_every_reading_is_told_so() {
    let lab = Lab::new(HASWELL, 2, faulting());
    verify(&lab, ThreadReading::Memory, true);
    let mut group = group(&lab);
    lab.state().scheduler.set_behavior(Scheduling { preempt: 100, ..faulting() });
    let counts = group.measure(|| run(&lab, 1_000)).unwrap();
    assert_eq!(counts.quality, Quality::Disturbed(Disturbance::SwitchedWhileRead));
    lab.state().scheduler.set_behavior(faulting());
    assert!(group.measure(|| run(&lab, 1_000)).unwrap().quality.is_exact());
}

/// What the driver read before a switch belongs to another CPU, or to another thread too. The value is what Windows
/// counted between two switches, which the thread has executed in the region.
#[test]
fn a_value_that_the_driver_read_before_a_switch_is_not_used() {
    let [(event, umask), ..] = INTEL;
    for seed in 0..20 {
        let lab = Lab::new(HASWELL, 2, faulting());
        verify(&lab, ThreadReading::Memory, true);
        let mut group = group(&lab);
        let busy = Scheduling { seed, preempt: 100, migrate: 50, others: 1_000_000, ..faulting() };
        lab.state().scheduler.set_behavior(busy);
        let before = lab.ledger().user(event, umask);
        let counts = group.measure(|| run(&lab, 1_000)).unwrap();
        let executed = lab.ledger().user(event, umask) - before;
        assert_eq!(counts.quality, Quality::Disturbed(Disturbance::SwitchedWhileRead));
        let value = counts.get("instructions").unwrap();
        assert!((1_000..=executed).contains(&value), "seed {seed}: {value} of {executed}");
    }
}

#[test]
fn a_group_for_cpus_counts_every_thread_there() {
    let lab = lab();
    let machine = lab.machine();
    let mut all = instructions().build_for_all_cpus_on(&machine).unwrap();
    let mut idle = instructions().build_for_cpu_on(&machine, 1 - lab.current()).unwrap();
    idle.begin().unwrap();
    let counts = all.measure(|| run(&lab, 1_000_000)).unwrap();
    assert_eq!(counts.quality, Quality::Undisturbed);
    assert!((1_000_000..1_001_000).contains(&counts.get("instructions").unwrap()), "{counts:?}");
    assert_eq!(counts.time_enabled, counts.time_running);
    assert_eq!(idle.end().unwrap().get("instructions"), Some(0));
    let by_cpu = all.read_per_cpu().unwrap();
    // Each has its own: the thread stayed on one.
    let counted = |cpu: u32| {
        let counts = by_cpu.iter().find(|(number, _)| *number == cpu).unwrap();
        counts.1.get("instructions").unwrap()
    };
    // A region has what happened in it alone, whatever was counted before.
    let counts = all.measure(|| run(&lab, 500_000)).unwrap();
    assert!((500_000..501_000).contains(&counts.get("instructions").unwrap()), "{counts:?}");
    // Each CPU has one entry, however many events it counts.
    let several = instructions().event("branch-misses").unwrap().build_for_all_cpus_on(&machine).unwrap();
    assert_eq!(several.read_per_cpu().unwrap().iter().map(|(cpu, _)| *cpu).collect::<Vec<_>>(), [0, 1]);
    drop(several);
    let (here, idle_cpu) = (lab.current(), 1 - lab.current());
    assert!(counted(here) >= 1_000_000 && by_cpu.len() == 2, "{by_cpu:?}");
    assert_eq!(counted(idle_cpu), 0, "{by_cpu:?}");
    // A region that has begun changes nothing about what was counted since the group was built.
    all.begin().unwrap();
    assert!(all.read().unwrap().get("instructions").unwrap() >= 1_000_000);
    all.end().unwrap();
    assert!(matches!(idle.end(), Err(Error::Group(GroupError::NotBegun))));
    // Sleep stops the counters and the time; a register that was changed is a disturbance.
    all.begin().unwrap();
    lab.sleep(Duration::from_hours(1));
    let counts = all.end().unwrap();
    assert!(counts.time_enabled < Duration::from_mins(1) && counts.quality.is_exact(), "{counts:?}");
    all.begin().unwrap();
    lab.change_counters(1);
    assert_eq!(all.end().unwrap().quality, Quality::Disturbed(Disturbance::CountersChanged { cpu: 1 }));
    drop((all, idle, machine));
    assert!(lab.is_free());
}

#[test]
fn a_group_needs_events_that_the_machine_has() {
    let lab = lab();
    let machine = lab.machine();
    assert!(matches!(Builder::new().build_for_thread_on(&machine), Err(Error::Group(GroupError::NoEvent))));
    assert!(Builder::new().event("").is_err());
    let unknown = Builder::new().event("no-such-event").unwrap().build_for_thread_on(&machine);
    assert_eq!(unknown.map(drop).unwrap_err().kind(), halprof::ErrorKind::UnknownSource);
    // A session for threads excludes what samples, and names its holder; groups for CPUs run beside it.
    let group = group(&lab);
    assert!(start_session(machine.driver(), "branch-misses").is_some());
    drop(group);
}
