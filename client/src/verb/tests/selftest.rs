//! Tests of `selftest` with the driver's engine on the model.

use recording::MissingStack;

use super::*;
use crate::verb::record::explained;
use fake_system::{FakeEvent, ModelMachine};
use system::trace::{TraceLosses, TracePlan};

fn system(identity: &str, accuracy: u64) -> FakeSystem {
    FakeSystem { model: Some(ModelMachine::new(identity, 2, accuracy)), ..FakeSystem::running(FakeDriver::default()) }
}

/// Returns the exit code, and the verdict of all checks together and of each.
fn verdicts(system: &FakeSystem, options: &str) -> (i32, String, Vec<String>) {
    let ran = run(system, &format!("selftest --json {options}"));
    let json = ran.json();
    let checks = json["checks"].as_array().unwrap();
    let verdict = |value: &Value| value["verdict"].as_str().unwrap().to_owned();
    (ran.outcome.unwrap(), verdict(&json), checks.iter().map(verdict).collect())
}

#[test]
fn each_generation_passes_and_fails_with_counters_that_are_wrong_by_one_percent() {
    for (identity, wrong) in cpuid_dumps::GENERATIONS.into_iter().zip([990, 1_010].into_iter().cycle()) {
        let (code, verdict, checks) = verdicts(&system(identity, 1_000), "");
        assert_eq!((code, verdict.as_str()), (0, "passed"), "{identity}: {checks:?}");
        let processors = if identity == "intel-hybrid" { 2 } else { 1 };
        assert_eq!(checks.len(), 5 * processors, "{identity}");
        assert!(checks.iter().all(|check| check == "passed"), "{identity}: {checks:?}");
        let (code, verdict, checks) = verdicts(&system(identity, wrong), "");
        assert_eq!((code, verdict.as_str()), (28, "failed"), "{identity}: {checks:?}");
        assert!(checks.starts_with(&["failed".to_owned(), "failed".to_owned()]), "{identity}: {checks:?}");
    }
}

#[test]
fn the_table_of_a_selftest_shows_what_was_expected_and_measured() {
    let ran = run(&system("haswell-4710mq", 1_010), "selftest -C 1");
    assert_eq!(ran.outcome.unwrap(), Exit::Selftest.code());
    let expected = "\
CPU  Test                        Expected   Measured  Tolerance  Verdict
---  -------------------------  ---------  ---------  ---------  -------
  1  instructions, user mode    2,000,000  2,020,000     10,000  FAILED
  1  branches, user mode          250,000    252,500      1,250  FAILED
  1  instructions, kernel mode          0          0     10,000  passed
  1  samples of two functions         400        400         40  passed
  1  share of the first            75.0 %     75.0 %      5.0 %  passed

The counters of this machine do not count as expected, or other programs disturbed them.
";
    assert_eq!(ran.out, expected);
}

#[test]
fn a_machine_without_counters_is_not_tested_and_says_why() {
    let ran = run(&system("intel-no-leaf-a", 1_000), "selftest");
    assert_eq!(ran.outcome.unwrap(), Exit::Selftest.code());
    let end = "
CPU 0: no source of this machine counts this

This machine has no counters to test; `.\\client info` says why.
";
    assert!(ran.out.ends_with(end), "{}", ran.out);
    assert_eq!(ran.out.matches("not tested").count(), 5, "{}", ran.out);
}

#[test]
fn a_thread_that_cannot_be_moved_fails_the_test_and_leaves_no_session() {
    let system = system("haswell-4710mq", 1_000);
    system.failing.replace((0..100).filter(|number| *number > 0).collect());
    let ran = run(&system, "selftest --json");
    assert_eq!(ran.outcome.unwrap(), Exit::Selftest.code());
    let json: Value = serde_json::from_str(&ran.out).unwrap();
    for check in json["checks"].as_array().unwrap() {
        assert_eq!(check["reason"], "cannot run on CPU 0: the call execute failed", "{check}");
    }
    system.failing.take();
    let (code, ..) = verdicts(&system, "");
    assert_eq!(code, 0, "the counters are free again");
}

/// Runs a selftest with call stacks on a machine whose trace session delivers changed events. Returns what it printed,
/// and the verdict and the reason of each of the tests of call stacks.
fn stacks(change: fn(&mut Vec<FakeEvent>), losses: TraceLosses) -> (String, [(String, Value); 2]) {
    let system = system("haswell-4710mq", 1_000);
    system.trace.change.set(Some(change));
    system.trace.losses.set(losses);
    let ran = run(&system, "selftest --stacks --json");
    let json = ran.json();
    let checks = json["checks"].as_array().unwrap();
    assert!(checks[..5].iter().all(|check| check["verdict"] == "passed"), "{json}");
    let of_stacks = [&checks[5], &checks[6]];
    assert_eq!(of_stacks.map(|check| &check["name"]), ["samples with a stack", "stacks equal to the calls"]);
    let text = run(&system, "selftest --stacks");
    assert_eq!((text.outcome.unwrap(), ran.outcome.unwrap()), (28, 28), "{json}");
    (text.out, of_stacks.map(|check| (check["verdict"].as_str().unwrap().to_owned(), check["reason"].clone())))
}

#[test]
fn the_stacks_of_each_generation_are_those_of_the_calls() {
    for identity in cpuid_dumps::GENERATIONS {
        let system = system(identity, 1_000);
        let (code, verdict, checks) = verdicts(&system, "--stacks");
        assert_eq!((code, verdict.as_str()), (0, "passed"), "{identity}: {checks:?}");
        let processors = if identity == "intel-hybrid" { 2 } else { 1 };
        assert_eq!(checks, vec!["passed"; 7 * processors], "{identity}");
        let plan = TracePlan { samples_per_second: 10_000, processors: 2, off_cpu: false, file: None };
        assert_eq!(system.trace.started.take(), vec![plan; processors], "{identity}");
        assert_eq!(system.trace.stopped.take(), processors, "{identity}");
    }
}

#[test]
fn the_table_has_the_tests_of_call_stacks() {
    let ran = run(&system("zen4-7700x", 1_000), "selftest --stacks");
    assert_eq!(ran.outcome.unwrap(), 0);
    let expected = "\
CPU  Test                        Expected   Measured  Tolerance  Verdict
---  -------------------------  ---------  ---------  ---------  -------
  0  instructions, user mode    2,000,000  2,000,000     10,000  passed
  0  branches, user mode          250,000    250,000      1,250  passed
  0  instructions, kernel mode          0          0     10,000  passed
  0  samples of two functions         400        400         40  passed
  0  share of the first            75.0 %     75.0 %      5.0 %  passed
  0  samples with a stack         100.0 %    100.0 %      5.0 %  passed
  0  stacks equal to the calls    100.0 %    100.0 %      0.0 %  passed

The counters of this machine count as expected.
The call stacks are those of the calls.
";
    assert_eq!(ran.out, expected);
}

#[test]
fn a_wrong_caller_fails_the_test_and_is_named() {
    let (text, [with_stack, equal]) = stacks(
        |events| {
            let frames = &mut events[7].stacks[0].1;
            frames[2] += 1;
        },
        TraceLosses::default(),
    );
    assert_eq!(with_stack, ("passed".to_owned(), Value::Null));
    let reason = "1 of 200 call stacks differ; in the first, caller 2 is 0x0000000140002051, \
                  but the call returns to 0x0000000140002050";
    assert_eq!(equal, ("failed".to_owned(), reason.into()));
    let end = "
  0  samples with a stack         100.0 %    100.0 %      5.0 %  passed
  0  stacks equal to the calls    100.0 %     99.5 %      0.0 %  FAILED
CPU 0: 1 of 200 call stacks differ; in the first, caller 2 is 0x0000000140002051, but the call returns to 0x0000000140002050

The counters of this machine count as expected.
Call stacks are missing or wrong.
";
    assert!(text.ends_with(end), "{text}");
}

#[test]
fn stacks_that_end_before_the_outermost_call_differ() {
    let (_, [with_stack, equal]) =
        stacks(|events| events.iter_mut().for_each(|event| event.stacks[0].1.truncate(3)), TraceLosses::default());
    assert_eq!(with_stack.0, "passed");
    let reason = "200 of 200 call stacks differ; in the first, there is no caller 3, \
                  but a call returns to 0x0000000140002090";
    assert_eq!(equal, ("failed".to_owned(), reason.into()));
}

#[test]
fn lost_events_fail_the_test_and_are_named() {
    let every_second = |events: &mut Vec<FakeEvent>| {
        let mut kept = [false, true].into_iter().cycle();
        events.retain(|_| kept.next().unwrap());
    };
    let (text, [with_stack, equal]) = stacks(every_second, TraceLosses { events: 100, buffers: 1 });
    let (why, _) = explained(MissingStack::EventLost);
    let reason = format!("samples without a call stack: 50.0 %: {why}; Windows lost 100 events and 1 buffer");
    assert_eq!(with_stack, ("failed".to_owned(), json!(reason)));
    assert_eq!(equal, ("passed".to_owned(), Value::Null));
    assert!(text.contains("  0  samples with a stack         100.0 %     50.0 %      5.0 %  FAILED\n"), "{text}");
    assert!(text.contains(&format!("\nCPU 0: {reason}\n")), "{text}");

    let (_, [with_stack, equal]) = stacks(Vec::clear, TraceLosses::default());
    assert_eq!(with_stack, ("failed".to_owned(), json!(format!("samples without a call stack: 100.0 %: {why}"))));
    assert_eq!(equal, ("failed".to_owned(), "no sample has a call stack".into()));
}

#[test]
fn a_few_lost_events_are_tolerated() {
    let few = |events: &mut Vec<FakeEvent>| events.truncate(190);
    let system = system("skylake-6600k", 1_000);
    system.trace.change.set(Some(few));
    assert_eq!(verdicts(&system, "--stacks").0, 0);
    system.trace.change.set(Some(|events| events.truncate(189)));
    assert_eq!(verdicts(&system, "--stacks").0, 28);
}

#[test]
fn a_refused_trace_session_fails_the_tests_of_call_stacks_alone() {
    let system = system("haswell-4710mq", 1_000);
    system.trace.refusal.set(Some(win32::ERROR_NO_SYSTEM_RESOURCES));
    let ran = run(&system, "selftest --stacks --json");
    assert_eq!(ran.outcome.unwrap(), 28);
    let cause = io::Error::from_raw_os_error(win32::ERROR_NO_SYSTEM_RESOURCES);
    let reason = format!("Windows refuses the trace session: StartTrace failed: {cause}");
    let json: Value = serde_json::from_str(&ran.out).unwrap();
    for (number, check) in json["checks"].as_array().unwrap().iter().enumerate() {
        let is_of_stacks = number >= 5;
        assert_eq!(check["verdict"], if is_of_stacks { "failed" } else { "passed" }, "{check}");
        assert_eq!(check["reason"], if is_of_stacks { json!(reason) } else { Value::Null }, "{check}");
    }
    let text = run(&system, "selftest --stacks").out;
    assert_eq!(text.matches(&format!("\nCPU 0: {reason}\n")).count(), 1, "{text}");
    system.trace.refusal.take();
    assert_eq!(verdicts(&system, "--stacks").0, 0, "the counters are free");
}

#[test]
fn work_that_cannot_be_executed_stops_the_trace_session() {
    let system = system("haswell-4710mq", 1_000);
    let work = ["open", "execute"];
    run(&system, "selftest --stacks");
    let calls = system.calls.take();
    assert!(calls.iter().all(|call| work.contains(call) || *call == "note interrupts"), "{calls:?}");
    // The last work is that of the call stacks.
    system.failing.replace(vec![calls.len() - 1]);
    let json: Value = serde_json::from_str(&run(&system, "selftest --stacks --json").out).unwrap();
    for number in [5, 6] {
        let check = &json["checks"][number];
        let reason = "cannot execute nested calls on CPU 0: the call execute failed";
        assert_eq!((&check["verdict"], &check["reason"]), (&"failed".into(), &reason.into()), "{check}");
    }
    assert_eq!((system.trace.started.take().len(), system.trace.stopped.take()), (2, 2));
}

#[test]
fn call_stacks_are_not_tested_without_a_source_that_interrupts() {
    let system = system("intel-no-leaf-a", 1_000);
    let ran = run(&system, "selftest --stacks");
    assert_eq!(ran.outcome.unwrap(), 28);
    let end = "
CPU 0: no source of this machine counts this

This machine has no counters to test; `.\\client info` says why.
";
    assert!(ran.out.ends_with(end), "{}", ran.out);
    assert_eq!(ran.out.matches("not tested").count(), 7, "{}", ran.out);
    assert!(system.trace.started.take().is_empty());
}

#[test]
fn no_trace_session_runs_without_the_option() {
    let system = system("haswell-4710mq", 1_000);
    assert_eq!(verdicts(&system, "").0, 0);
    assert!(system.trace.started.take().is_empty());
    assert!(!system.done.borrow().contains(&"note interrupts"));
}

#[test]
fn ctrl_c_ends_the_tests_after_the_present_processor() {
    let system = system("haswell-4710mq", 1_000);
    system.until_interrupt.set(Some(1));
    let ran = run(&system, "selftest --stacks -C 0-1");
    assert_eq!(ran.err, "warning: Ctrl-C was pressed: CPU 1 not tested\n");
    let rows = [0, 1].map(|number| ran.out.matches(&format!("\n  {number}  ")).count());
    assert_eq!((ran.outcome.unwrap(), rows), (28, [7, 0]), "{}", ran.out);
}
