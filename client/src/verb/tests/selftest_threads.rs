//! Tests of `selftest --threads` with the driver's engine on the model, and threads that a fake Windows schedules.

use std::path::PathBuf;

use bench_protocol::{Accounting, HandleTarget, Scheduling, UserRdpmc};
use tempfile::TempDir;

use super::*;
use fake_system::ModelMachine;

/// A machine with threads, and the folder of its record.
struct Lab {
    system: FakeSystem,
    model: Arc<ModelMachine>,
    folder: TempDir,
}

impl Lab {
    fn new(identity: &str, accuracy: u64) -> Self {
        let folder = TempDir::new().unwrap();
        let model = ModelMachine::new(identity, 2, accuracy);
        model.threads.record.set(folder.path().join("threads.json"));
        let system = FakeSystem { model: Some(model.clone()), ..FakeSystem::running(FakeDriver::default()) };
        Self { system, model, folder }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("threads.json")
    }

    fn record(&self) -> Option<Value> {
        fs::read(self.file()).ok().map(|text| serde_json::from_slice(&text).unwrap())
    }
}

/// Names and results of the tests of threads.
type Checks = Vec<(String, String, Value)>;

impl Lab {
    /// Runs the tests. Returns the exit code, the tests of threads, and what was saved.
    fn test(&self, options: &str) -> (i32, Checks, Value) {
        let ran = run(&self.system, &format!("selftest --threads --json {options}"));
        let json = ran.json();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let checks = json["checks"].as_array().unwrap().iter();
        let of_threads = checks.filter(|check| NAMES.contains(&check["name"].as_str().unwrap()));
        let of_threads =
            of_threads.map(|check| (text(&check["name"]), text(&check["verdict"]), check["reason"].clone()));
        (ran.outcome.unwrap(), of_threads.collect(), json["verified_threads"].clone())
    }

    /// Saves what a test of another machine would have saved.
    fn save_older(&self) {
        fs::write(self.file(), "{}").unwrap();
    }

    fn saved(&self, keeps_64_bits: bool) -> Value {
        json!({ "file": self.file(), "reading": "memory", "keeps_64_bits": keeps_64_bits })
    }
}

const NAMES: [&str; 3] = ["instructions, thread", "instructions, switched", "instructions, long slice"];

fn verdicts(checks: &Checks) -> Vec<&str> {
    checks.iter().map(|(_, verdict, _)| verdict.as_str()).collect()
}

fn reasons(checks: &Checks) -> Vec<&Value> {
    checks.iter().map(|(.., reason)| reason).collect()
}

#[test]
fn each_generation_passes_and_saves_it_once() {
    for identity in cpuid_dumps::GENERATIONS {
        let lab = Lab::new(identity, 1_000);
        let (code, checks, saved) = lab.test("");
        let processors = if identity == "intel-hybrid" { 2 } else { 1 };
        assert_eq!((code, checks.len()), (0, 3 * processors), "{identity}");
        if identity == "netburst-irwindale" {
            // With hyper-threading, the two threads of a core have other counters.
            assert_eq!((verdicts(&checks), saved), (vec!["untested"; 3], Value::Null), "{checks:?}");
            let reason = checks[0].2.as_str().unwrap();
            assert!(
                reason.starts_with("virtualized counts are unavailable: no counter counts TotalIssues"),
                "{reason}"
            );
            continue;
        }
        assert_eq!(verdicts(&checks), vec!["passed"; 3 * processors], "{identity}: {checks:?}");
        assert_eq!((saved, lab.model.threads.written.get()), (lab.saved(true), 1), "{identity}");
        let record = lab.record().unwrap();
        assert_eq!((&record["keeps_64_bits"], &record["machine"]["driver"]), (&true.into(), &"0.0.0".into()));
        let driver = system::connection::open(&lab.system).unwrap();
        let machine = halprof::Machine::over(driver, system::System::thread_system(&lab.system));
        assert!(machine.verification().unwrap().is_some_and(|record| record.keeps_64_bits), "{identity}");
    }
}

#[test]
fn the_table_has_the_tests_of_threads_and_says_where_the_record_is() {
    let lab = Lab::new("zen4-7700x", 1_000);
    let ran = run(&lab.system, "selftest --threads -C 1");
    let expected = format!(
        "\
CPU  Test                             Expected        Measured   Tolerance  Verdict
---  -------------------------  --------------  --------------  ----------  -------
  1  instructions, user mode         2,000,000       2,000,000      10,000  passed
  1  branches, user mode               250,000         250,000       1,250  passed
  1  instructions, kernel mode               0               0      10,000  passed
  1  samples of two functions              400             400          40  passed
  1  share of the first                 75.0 %          75.0 %       5.0 %  passed
  1  instructions, thread            2,000,000       2,000,000      10,000  passed
  1  instructions, switched          2,000,000       2,000,040      10,000  passed
  1  instructions, long slice   10,737,418,240  10,737,418,280  53,687,091  passed

The counters of this machine count as expected.
Counts of threads are those of the work.
They are verified on this machine from now on: {}
Programs cannot execute RDPMC on this machine; the library counts without it.
Windows keeps every bit of long regions.
",
        lab.file().display()
    );
    assert_eq!((ran.outcome.unwrap(), ran.out), (0, expected));
}

#[test]
fn noise_of_other_threads_does_not_count() {
    for seed in 0..8 {
        let lab = Lab::new("skylake-6600k", 1_000);
        // The high priority of the long slice keeps other threads away, but no interrupts.
        let scheduling = Scheduling { seed, preempt: 40, interrupt: 30, delay: 10, slices: 8, ..Scheduling::default() };
        lab.model.threads.schedule(scheduling);
        let (code, checks, saved) = lab.test("");
        assert_eq!((code, verdicts(&checks), saved), (0, vec!["passed"; 3], lab.saved(true)), "{seed}: {checks:?}");
    }
}

#[test]
fn windows_that_keeps_32_bits_passes_and_is_saved_as_such() {
    let lab = Lab::new("haswell-4710mq", 1_000);
    let truncated = Scheduling { accounting: Accounting::Truncated, ..Scheduling::default() };
    lab.model.threads.schedule(truncated);
    // The second run has a record.
    for run_number in 1..=2 {
        let (code, checks, saved) = lab.test("");
        assert_eq!((code, verdicts(&checks), saved), (0, vec!["passed"; 3], lab.saved(false)), "{checks:?}");
        assert_eq!(
            (lab.record().unwrap()["keeps_64_bits"].as_bool(), lab.model.threads.written.get()),
            (Some(false), run_number)
        );
    }
    let ran = run(&lab.system, "selftest --threads");
    assert!(ran.out.contains("instructions, long slice   10,737,418,240  2,147,483,6"), "{}", ran.out);
    let end = "\nWindows may keep only 32 bits of what is counted between two context switches: long regions need checkpoints.\n";
    assert!(ran.out.ends_with(end), "{}", ran.out);
}

#[test]
fn a_record_of_64_bits_does_not_hide_that_windows_keeps_32() {
    let lab = Lab::new("haswell-4710mq", 1_000);
    assert_eq!(lab.test("").2, lab.saved(true));
    lab.model.threads.schedule(Scheduling { accounting: Accounting::Truncated, ..Scheduling::default() });
    assert_eq!(lab.test("").2, lab.saved(false));
}

#[test]
fn wrong_counters_fail_and_remove_the_record() {
    for accuracy in [990, 1_010] {
        let lab = Lab::new("zen3-5950x", accuracy);
        lab.save_older();
        let (code, checks, saved) = lab.test("");
        assert_eq!((code, verdicts(&checks), saved), (28, vec!["failed"; 3], Value::Null), "{checks:?}");
        assert_eq!((lab.record(), lab.model.threads.written.get()), (None, 0));
        let ran = run(&lab.system, "selftest --threads");
        assert!(ran.out.ends_with("\nCounts of threads are not those of the work.\n"), "{}", ran.out);
    }
}

#[test]
fn wrong_numbers_of_windows_fail_though_the_counters_are_right() {
    let lab = Lab::new("haswell-4710mq", 1_000);
    lab.model.threads.schedule(Scheduling { rdpmc: UserRdpmc::Works, ..Scheduling::default() });
    lab.model.threads.excess.set(10);
    lab.save_older();
    let (code, checks, saved) = lab.test("");
    assert_eq!((code, verdicts(&checks), saved), (28, vec!["failed"; 3], Value::Null), "{checks:?}");
    assert_eq!(lab.record(), None);
}

#[test]
fn the_grade_of_a_machine_where_programs_execute_rdpmc_is_that_of_the_function() {
    for rdpmc in [UserRdpmc::Works, UserRdpmc::WorksInProfiledThreads, UserRdpmc::WorksOnProcessor0] {
        let lab = Lab::new("haswell-4710mq", 1_000);
        lab.model.threads.schedule(Scheduling { rdpmc, ..Scheduling::default() });
        let (code, checks, saved) = lab.test("");
        assert_eq!((code, verdicts(&checks)), (0, vec!["passed"; 3]), "{rdpmc:?}: {checks:?}");
        assert_eq!((&saved["reading"], &saved["keeps_64_bits"]), (&json!("function"), &json!(true)), "{rdpmc:?}");
        assert!(!run(&lab.system, "selftest --threads").out.contains("RDPMC"));
    }
    // Two CPUs that differ prove nothing for a thread that moves.
    let lab = Lab::new("haswell-4710mq", 1_000);
    lab.model.threads.schedule(Scheduling { rdpmc: UserRdpmc::WorksOnProcessor0, ..Scheduling::default() });
    let (code, checks, saved) = lab.test("-C 0-1");
    assert_eq!((code, verdicts(&checks), saved), (0, vec!["passed"; 6], Value::Null), "{checks:?}");
}

#[test]
fn a_handle_that_points_elsewhere_is_not_tested_and_plausible_memory_that_is_wrong_fails() {
    for handle in HandleTarget::IMPLAUSIBLE {
        let lab = Lab::new("haswell-4710mq", 1_000);
        lab.model.threads.schedule(Scheduling { handle, ..Scheduling::default() });
        let (code, checks, saved) = lab.test("");
        // With one counter, at position 0, its index is 0 wherever it is.
        if handle == HandleTarget::OtherCounters && verdicts(&checks)[0] != "untested" {
            assert_eq!((code, &*checks[1].1, saved), (28, "failed", Value::Null), "{checks:?}");
            continue;
        }
        assert_eq!((code, verdicts(&checks), saved), (0, vec!["untested"; 3], Value::Null), "{handle:?}: {checks:?}");
        let reason = checks[0].2.as_str().unwrap();
        let begin = "virtualized counts are unavailable: programs cannot execute RDPMC on this machine (CR4.PCE is clear), \
                     and the handle of EnableThreadProfiling does not point to ";
        assert!(reason.starts_with(begin), "{handle:?}: {reason}");
    }
    for handle in [HandleTarget::Frozen, HandleTarget::Exchanged] {
        let lab = Lab::new("haswell-4710mq", 1_000);
        lab.save_older();
        lab.model.threads.schedule(Scheduling { handle, ..Scheduling::default() });
        let (code, checks, saved) = lab.test("");
        assert_eq!((code, &*checks[1].1, saved), (28, "failed", Value::Null), "{handle:?}: {checks:?}");
        assert_eq!(lab.record(), None);
    }
}

#[test]
fn windows_without_the_functions_is_not_tested_and_keeps_the_record() {
    let lab = Lab::new("haswell-4710mq", 1_000);
    lab.model.threads.missing.set(Some("ReadThreadProfilingData"));
    lab.save_older();
    let (code, checks, saved) = lab.test("");
    assert_eq!((code, verdicts(&checks), saved), (0, vec!["untested"; 3], Value::Null));
    let reason = "virtualized counts are unavailable: this Windows has no ReadThreadProfilingData";
    assert_eq!(reasons(&checks), [reason; 3]);
    assert_eq!(lab.record(), Some(json!({})));
    let ran = run(&lab.system, "selftest --threads");
    let end = format!(
        "\nCPU 0: {reason}\n\nThe counters of this machine count as expected.\n\
         Not every test of threads was done, so nothing was saved.\n"
    );
    assert!(ran.out.ends_with(&end), "{}", ran.out);
}

#[test]
fn without_a_context_switch_nothing_is_saved() {
    let lab = Lab::new("haswell-4710mq", 1_000);
    lab.model.threads.never_switches.set(true);
    let (code, checks, saved) = lab.test("");
    assert_eq!((code, verdicts(&checks), saved), (0, vec!["passed", "untested", "untested"], Value::Null));
    let reason = "Windows counted no context switch of the thread";
    assert_eq!(reasons(&checks)[1..], [reason, reason]);
    assert_eq!(lab.record(), None);
}

#[test]
fn without_a_long_slice_windows_counts_as_one_that_keeps_32_bits() {
    for (rdpmc, reading, reason) in [
        (UserRdpmc::Works, "function", "no slice was certainly long"),
        (UserRdpmc::Faults, "memory", "the thread was switched out whenever its counters were read"),
    ] {
        let lab = Lab::new("haswell-4710mq", 1_000);
        lab.model.threads.schedule(Scheduling { rdpmc, ..Scheduling::default() });
        lab.model.threads.is_overloaded.set(true);
        let (code, checks, saved) = lab.test("");
        assert_eq!((code, verdicts(&checks)), (0, vec!["passed", "passed", "untested"]), "{checks:?}");
        assert_eq!((&saved["reading"], &saved["keeps_64_bits"]), (&json!(reading), &json!(false)));
        let told = checks[2].2.as_str().unwrap();
        assert!(told.contains(reason), "{told}");
    }
}

#[test]
fn every_chosen_processor_must_pass() {
    let lab = Lab::new("haswell-4710mq", 1_000);
    let (.., saved) = lab.test("-C 0-1");
    assert_eq!((saved, lab.model.threads.written.get()), (lab.saved(true), 1));
    let calls = lab.system.calls.take();
    let competes: Vec<_> = (0..calls.len()).filter(|number| calls[*number] == "compete").collect();
    assert_eq!(competes.len(), 2);
    lab.system.failing.replace(vec![competes[1]]);
    let (code, checks, saved) = lab.test("-C 0-1");
    assert_eq!((code, &checks[4].1, saved), (0, &"untested".to_owned(), Value::Null));
    assert_eq!(checks[4].2, "no other thread can run on the CPU: the call compete failed");
    assert_eq!(lab.model.threads.written.get(), 1);
}

#[test]
fn ctrl_c_saves_nothing() {
    let lab = Lab::new("haswell-4710mq", 1_000);
    lab.system.until_interrupt.set(Some(1));
    let (code, checks, saved) = lab.test("--stacks -C 0-1");
    assert_eq!((code, verdicts(&checks), saved), (28, vec!["passed"; 3], Value::Null));
    assert_eq!(lab.record(), None);
}

#[test]
fn work_that_cannot_be_executed_fails_and_frees_the_counters() {
    let lab = Lab::new("haswell-4710mq", 1_000);
    lab.test("");
    let calls = lab.system.calls.take();
    let competes = calls.iter().position(|call| *call == "compete").unwrap();
    // The first work of the second test.
    lab.system.failing.replace(vec![competes + 1]);
    let (code, checks, _) = lab.test("");
    assert_eq!((code, verdicts(&checks)), (28, vec!["passed", "failed", "passed"]));
    assert_eq!(checks[1].2, "cannot run on CPU 0: the call execute failed");
    assert_eq!(lab.record(), None);
    lab.system.failing.take();
    assert_eq!(lab.test("").2, lab.saved(true));
}

#[test]
fn a_record_that_cannot_be_changed_is_an_error_after_the_table() {
    let lab = Lab::new("haswell-4710mq", 1_000);
    fs::create_dir(lab.file()).unwrap();
    let ran = run(&lab.system, "selftest --threads");
    assert!(ran.out.ends_with("\nCounts of threads are those of the work.\n"), "{}", ran.out);
    let (exit, report) = ran.failure();
    assert_eq!(exit, Exit::Failure);
    let [error, because, remedy] = report.lines().collect::<Vec<_>>()[..] else { panic!("{report}") };
    assert_eq!(error, "error: cannot save the record, so counts of threads stay unverified");
    assert!(because.starts_with("  because: "), "{report}");
    assert_eq!(remedy, r"  try: run as administrator, and let administrators own %ProgramData%\halprof");

    let wrong = Lab::new("haswell-4710mq", 990);
    fs::create_dir(wrong.file()).unwrap();
    let (_, report) = run(&wrong.system, "selftest --threads").failure();
    assert!(report.starts_with("error: cannot remove the record, so wrong counts"), "{report}");

    let unknown = Lab::new("haswell-4710mq", 1_000);
    unknown.model.threads.build.take();
    let (_, report) = run(&unknown.system, "selftest --threads").failure();
    assert!(report.contains("\n  because: the build of Windows is unknown\n"), "{report}");
}

#[test]
fn no_thread_is_profiled_without_the_option() {
    let lab = Lab::new("haswell-4710mq", 1_000);
    let ran = run(&lab.system, "selftest --json");
    assert_eq!(ran.json()["verified_threads"], Value::Null);
    assert!(!lab.system.calls.borrow().iter().any(|call| ["compete", "raise priority"].contains(call)));
    assert_eq!(lab.record(), None);
}
