//! Tests of `selftest` with the driver's engine on the model.

use super::*;
use crate::fake::ModelMachine;

fn system(identity: &str, accuracy: u64) -> FakeSystem {
    FakeSystem { model: Some(ModelMachine::new(identity, 2, accuracy)), ..FakeSystem::running(FakeDriver::default()) }
}

/// Returns the exit code, and the verdict of all checks together and of each.
fn verdicts(system: &FakeSystem) -> (i32, String, Vec<String>) {
    let ran = run(system, "selftest --json");
    let json: Value = serde_json::from_str(&ran.out).unwrap();
    let checks = json["checks"].as_array().unwrap();
    let verdict = |value: &Value| value["verdict"].as_str().unwrap().to_owned();
    (ran.outcome.unwrap(), verdict(&json), checks.iter().map(verdict).collect())
}

#[test]
fn each_generation_passes_and_fails_with_counters_that_are_wrong_by_one_percent() {
    for (identity, wrong) in cpuid_dumps::GENERATIONS.into_iter().zip([990, 1_010].into_iter().cycle()) {
        let (code, verdict, checks) = verdicts(&system(identity, 1_000));
        assert_eq!((code, verdict.as_str()), (0, "passed"), "{identity}: {checks:?}");
        let processors = if identity == "intel-hybrid" { 2 } else { 1 };
        assert_eq!(checks.len(), 5 * processors, "{identity}");
        assert!(checks.iter().all(|check| check == "passed"), "{identity}: {checks:?}");
        let (code, verdict, checks) = verdicts(&system(identity, wrong));
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

This machine has no counters to test; `client info` says why.
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
    let (code, ..) = verdicts(&system);
    assert_eq!(code, 0, "the counters are free again");
}
