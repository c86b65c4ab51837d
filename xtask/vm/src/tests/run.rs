//! Runs against the stand-in: success, crashes with dumps, resuming, a guest without counters, a guest that never
//! answers.

use std::{collections::BTreeMap, fs, time::Duration};

use anyhow::Result;
use serde_json::Value;
use tempfile::TempDir;

use super::stand_in::{FakeClock, StandIn, Trouble};
use crate::{
    Run,
    claims::{CLAIMS, Scope},
    execute,
    facts::Facts,
    guest::Ran,
    output,
    plan::{Action, Step},
    proof::Outcome,
    report::{Report, Verdict},
    state::{State, StepResult},
    steps::plan,
};

/// A folder of a run with a payload.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("payload/package")).unwrap();
    folder
}

fn fresh() -> State {
    State::new("0123".to_owned(), Facts { linux_package: true, ..Facts::default() })
}

fn about<'a>(steps: &'a [Step], folder: &'a TempDir) -> Run<'a> {
    Run { name: "test", transport: "a stand-in", steps, folder: folder.path() }
}

fn go(guest: &mut StandIn, folder: &TempDir, state: State, clock: &mut FakeClock) -> Result<Report> {
    let steps = plan();
    let ran = execute(&about(&steps, folder), guest, clock, state);
    // Whatever happens, both files are there and agree with their form.
    let report: Value = serde_json::from_str(&fs::read_to_string(folder.path().join("report.json")).unwrap()).unwrap();
    assert_eq!(report["schema"], "halprof.vm/1");
    let page = fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
    assert!(!page.contains("://"), "the page requests something");
    ran
}

fn run(guest: &mut StandIn) -> (Report, TempDir) {
    let folder = folder();
    (go(guest, &folder, fresh(), &mut FakeClock::default()).unwrap(), folder)
}

/// Goes on with the run in a folder.
fn resume(guest: &mut StandIn, folder: &TempDir) -> Report {
    let state = State::unfinished(folder.path()).unwrap().expect("a run that can go on");
    go(guest, folder, state, &mut FakeClock::default()).unwrap()
}

fn result<'a>(report: &'a Report, step: &str) -> &'a StepResult {
    report.steps.iter().find(|found| found.name == step).unwrap().result.as_ref().unwrap()
}

fn outcomes(report: &Report) -> BTreeMap<String, Outcome> {
    let results =
        report.steps.iter().filter_map(|step| Some((step.name.clone(), step.result.as_ref()?.outcome.clone())));
    results.collect()
}

fn verdict(report: &Report, claim: &str) -> (Verdict, String) {
    let claim = report.claims.iter().find(|found| found.id == claim).unwrap();
    (claim.verdict, claim.because.clone())
}

#[test]
fn a_run_without_trouble_proves_every_claim_that_this_guest_can_decide() {
    let mut guest = StandIn::new();
    let (report, folder) = run(&mut guest);
    assert!(report.complete && report.interrupted.is_none());
    assert_eq!((report.summary.refuted, report.summary.failed_steps, report.summary.crashes), (0, 0, 0));
    let proved: Vec<&str> =
        report.claims.iter().filter(|claim| claim.verdict == Verdict::Proved).map(|claim| claim.id).collect();
    assert_eq!(
        proved,
        [
            "service-lifecycle",
            "refused-without-test-signing",
            "package-counts-and-leaves-nothing",
            "loads-under-test-signing",
            "inf-lifecycle",
            "catalog-from-linux",
            "set-vmprocessor-perfmon",
            "interrupt-through-handler-slot",
            "hal-tells-its-sources",
            "counters-on-switches",
            "hal-counts-as-driver",
            "events-from-dpc",
            "stack-from-dpc",
            "inf-restricts-events",
            "shares-of-callers",
            "recording-profile",
            "pending-stop",
            "driver-verifier",
            "dlls-of-system32",
            "agent-in-protected-folder",
        ]
    );
    assert_eq!(report.summary.in_part, 28);
    // A claim that steps decide in part says what remains, and one without steps why.
    let because = |claim| verdict(&report, claim).1;
    assert_eq!(
        because("exact-counts"),
        "in part: counts and samples of known work are as expected; this remains: that each event is exact, which needs \
         the model's ledger"
    );
    assert_eq!(because("hygon-option"), "no step: it needs a Hygon processor");
    assert_eq!(because("memory-integrity"), "loads-with-memory-integrity: memory integrity does not run in the guest");
    assert_eq!(report.guest.windows.as_deref(), Some("Microsoft Windows [Version 10.0.26100.1]"));
    assert!(folder.path().join("output/info.json").is_file());
    assert!(State::unfinished(folder.path()).unwrap().is_none(), "a run that ended does not go on");
}

#[test]
fn after_a_crash_the_dumps_are_collected_and_the_other_steps_run() {
    let (undisturbed, _) = run(&mut StandIn::new());
    let mut guest = StandIn::with("record -a -o record.rec", Trouble::Crash);
    let (report, folder) = run(&mut guest);
    let record = result(&report, "record");
    assert_eq!(record.outcome, Outcome::Failed("the guest crashed or restarted by itself and left 2 dumps".to_owned()));
    let crash = record.crash.as_ref().unwrap();
    assert_eq!(crash.dumps.len(), 2, "{crash:?}");
    for dump in &crash.dumps {
        assert_eq!(fs::read_to_string(folder.path().join(dump)).unwrap(), "PAGEDU64", "{dump}");
    }
    assert!(crash.dumps.contains(&"dumps/record/MEMORY.DMP".to_owned()));
    // Everything else is as without the crash; the driver was started again.
    let mut wanted = outcomes(&undisturbed);
    wanted.insert("record".to_owned(), record.outcome.clone());
    wanted.insert("report".to_owned(), Outcome::NotTried("the step record did not pass".to_owned()));
    assert_eq!(outcomes(&report), wanted);
    assert_eq!(verdict(&report, "interrupt-through-handler-slot").0, Verdict::Refuted);
    assert_eq!(verdict(&report, "driver-verifier").0, Verdict::Proved);
    assert_eq!((report.summary.crashes, report.summary.failed_steps), (1, 1));
    let page = fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert!(page.contains("dump: dumps/record/MEMORY.DMP"), "{page}");
}

/// Returns the steps that run a program in an undisturbed guest, with their command lines.
fn commands() -> Vec<(String, String)> {
    let mut guest = StandIn::new();
    let (report, _) = run(&mut guest);
    let ran = |step: &&Step| result(&report, &step.name).code.is_some();
    plan().iter().filter(ran).filter_map(|step| Some((step.name.clone(), step.call()?.line()))).collect()
}

#[test]
fn a_crash_at_any_step_fails_a_step_and_every_step_has_a_result() {
    let commands = commands();
    assert!(commands.len() > 50, "{}", commands.len());
    for (_, line) in &commands {
        let mut guest = StandIn::with(line, Trouble::Crash);
        let (report, _) = run(&mut guest);
        assert!(report.complete, "{line}");
        assert_eq!(report.summary.crashes, 1, "{line}");
        let crashed = report.steps.iter().find(|step| step.result.as_ref().unwrap().crash.is_some()).unwrap();
        assert_eq!(result(&report, &crashed.name).crash.as_ref().unwrap().dumps.len(), 2, "{line}");
        // No other step is blamed: those that build on this one are not tried.
        let failed = outcomes(&report).into_iter().filter(|(_, outcome)| matches!(outcome, Outcome::Failed(_)));
        let failed: Vec<String> = failed.map(|(name, _)| name).collect();
        let wanted = if crashed.name == "test-signing" {
            vec!["test-signing", "test-signing-is-on"]
        } else {
            vec![crashed.name.as_str()]
        };
        assert_eq!(failed, wanted, "{line}");
    }
}

#[test]
fn a_run_that_the_user_ended_goes_on_at_the_step_that_ran_and_repeats_no_other() {
    let mut guest = StandIn::new();
    let (undisturbed, _) = run(&mut guest);
    let calls = guest.calls.len();
    // Every third: each run writes its state some 150 times.
    for (name, line) in commands().into_iter().step_by(3) {
        let (mut guest, folder) = (StandIn::with(&line, Trouble::HostEnds), folder());
        let error = go(&mut guest, &folder, fresh(), &mut FakeClock::default()).unwrap_err();
        assert_eq!(error.to_string(), "the user ended the command", "{name}");
        let part: Value =
            serde_json::from_str(&fs::read_to_string(folder.path().join("report.json")).unwrap()).unwrap();
        assert_eq!((&part["complete"], &part["interrupted"]), (&false.into(), &"the user ended the command".into()));
        let report = resume(&mut guest, &folder);
        assert_eq!(outcomes(&report), outcomes(&undisturbed), "{name}");
        // The step that ran is repeated, and before it perhaps the start of the driver.
        let repeated = guest.calls.iter().filter(|line| !line.starts_with("taskkill.exe")).count() - calls;
        assert!((1..=2).contains(&repeated), "{name}: {repeated}");
    }
}

#[test]
fn a_crash_while_the_host_was_away_fails_the_step_that_ran() {
    let (mut guest, folder) = (StandIn::with("record -a -o record.rec", Trouble::HostEndsAndCrash), folder());
    go(&mut guest, &folder, fresh(), &mut FakeClock::default()).unwrap_err();
    let report = resume(&mut guest, &folder);
    assert!(matches!(result(&report, "record").outcome, Outcome::Failed(_)));
    assert_eq!(result(&report, "record").crash.as_ref().unwrap().dumps.len(), 2);
    assert_eq!(
        guest.calls.iter().filter(|line| line.contains("record -a -o record.rec")).count(),
        1,
        "it was repeated"
    );
}

#[test]
fn a_crash_after_a_step_ended_fails_this_step() {
    let mut guest = StandIn::with("stat --json -o - -a -e cpu/event=0xC4", Trouble::CrashAfterwards);
    let (report, _) = run(&mut guest);
    let stat = result(&report, "stat-raw");
    assert!(matches!(stat.outcome, Outcome::Failed(_)) && stat.code == Some(0), "{stat:?}");
    assert_eq!(report.summary.failed_steps, 1);
}

#[test]
fn a_crash_in_a_restart_that_was_requested_fails_the_restart() {
    let mut guest = StandIn::with("shutdown.exe /r", Trouble::Crash);
    let (report, _) = run(&mut guest);
    let restart = result(&report, "restart-for-test-signing");
    assert_eq!(restart.crash.as_ref().unwrap().dumps.len(), 2, "{restart:?}");
    assert!(matches!(restart.outcome, Outcome::Failed(_)));
    assert_eq!((report.summary.crashes, report.summary.failed_steps), (1, 1));
}

#[test]
fn a_guest_that_hangs_is_interrupted_or_the_user_is_asked_to_reset_it() {
    let mut guest = StandIn::with("record -a -o record.rec", Trouble::Hang);
    let (report, _) = run(&mut guest);
    assert_eq!(result(&report, "record").crash.as_ref().unwrap().dumps.len(), 2);

    let (mut guest, folder) = (StandIn::with("record -a -o record.rec", Trouble::Hang), folder());
    guest.hypervisor = false;
    let error = go(&mut guest, &folder, fresh(), &mut FakeClock::default()).unwrap_err().to_string();
    assert!(error.contains("has not answered for 15 min 0 s since the step record: ssh: connect to host"), "{error}");
    assert!(error.contains("try: reset the virtual machine, then run the same command again"), "{error}");
    guest.hypervisor = true;
    guest.host_resets();
    let report = resume(&mut guest, &folder);
    assert!(matches!(result(&report, "record").outcome, Outcome::Failed(_)), "{:?}", result(&report, "record"));
}

#[test]
fn a_guest_that_never_answers_ends_the_run_in_a_bounded_time() {
    let (mut guest, folder, mut clock) = (StandIn::new(), folder(), FakeClock::default());
    guest.reachable = false;
    let error = go(&mut guest, &folder, fresh(), &mut clock).unwrap_err().to_string();
    assert!(
        error.starts_with("the guest has not answered for 15 min 0 s: ssh: connect to host guest port 22"),
        "{error}"
    );
    assert!(error.contains("\n  try: start the virtual machine, check that it is reachable"), "{error}");
    assert!((Duration::from_mins(15)..Duration::from_mins(16)).contains(&clock.0), "{:?}", clock.0);
    // When it answers, the same command goes on.
    guest.reachable = true;
    assert!(resume(&mut guest, &folder).complete);
}

#[test]
fn without_counters_the_claims_that_need_them_are_not_tried() {
    let mut guest = StandIn::new();
    guest.pmu = false;
    let (report, _) = run(&mut guest);
    assert_eq!(report.summary.failed_steps, 0, "{:?}", outcomes(&report));
    let no_pmu = "no PMU: Hyper-V masks the counters of this virtual machine";
    for (claim, step) in [
        ("set-vmprocessor-perfmon", "guest-has-counters"),
        ("package-counts-and-leaves-nothing", "stat"),
        ("interrupt-through-handler-slot", "record"),
        ("exact-counts", "selftest"),
        ("driver-verifier", "verifier-standard-stat"),
    ] {
        assert_eq!(verdict(&report, claim), (Verdict::NotTried, format!("{step}: {no_pmu}")), "{claim}");
    }
    assert_eq!(verdict(&report, "reason-of-no-counters").0, Verdict::Proved);
    assert_eq!(verdict(&report, "loads-under-test-signing").0, Verdict::Proved);
    assert_eq!(result(&report, "record-time").outcome, Outcome::Passed);
    let counting = guest.calls.iter().filter(|line| line.contains(" stat ") || line.contains("selftest"));
    assert_eq!(counting.count(), 0, "{:?}", guest.calls);
}

#[test]
fn secure_boot_fails_one_step_and_refutes_nothing_about_the_driver() {
    let mut guest = StandIn::new();
    (guest.secure_boot, guest.hypervisor) = (true, false);
    let (report, _) = run(&mut guest);
    let failed: Vec<&str> = report
        .steps
        .iter()
        .filter(|step| matches!(step.result.as_ref().unwrap().outcome, Outcome::Failed(_)))
        .map(|step| step.name.as_str())
        .collect();
    assert_eq!(failed, ["test-signing", "test-signing-is-on"]);
    assert_eq!(report.summary.refuted, 0, "{:?}", report.claims);
    assert_eq!(verdict(&report, "refused-without-test-signing").0, Verdict::Proved);
}

#[test]
fn an_endless_program_fails_and_a_lost_connection_shows_nothing() {
    let at = "record -a -o record.rec";
    let (report, _) = run(&mut StandIn::with(at, Trouble::Endless));
    assert_eq!(result(&report, "record").outcome, Outcome::Failed("it did not end within 3 min 0 s".to_owned()));
    let (report, _) = run(&mut StandIn::with(at, Trouble::Disconnect));
    assert_eq!(
        result(&report, "record").outcome,
        Outcome::NotTried(
            "the connection was lost, and the guest did not restart: Connection reset by peer".to_owned()
        )
    );
    assert_eq!(report.summary.crashes, 0);
    assert_eq!(verdict(&report, "interrupt-through-handler-slot").0, Verdict::NotTried);
}

#[test]
fn without_the_test_program_its_claims_are_not_tried_for_this_reason() {
    let folder = folder();
    let mut state = fresh();
    state.facts.tests = Some("the end-to-end tests could not be built".to_owned());
    let report = go(&mut StandIn::new(), &folder, state, &mut FakeClock::default()).unwrap();
    assert_eq!(
        verdict(&report, "service-lifecycle"),
        (Verdict::NotTried, "tests-package: the end-to-end tests could not be built".to_owned())
    );
}

/// One failed step refutes a claim, one step without a result leaves it open, and no claim is proved without a step.
#[test]
fn the_verdict_of_each_claim_follows_from_its_steps() {
    let (steps, folder) = (plan(), folder());
    let done = |outcome: Outcome| StepResult { outcome, code: Some(0), seconds: 0.0, crash: None };
    let mut all = fresh();
    all.results = steps.iter().map(|step| (step.name.clone(), done(Outcome::Passed))).collect();
    let report = |state: &State| Report::new(&about(&steps, &folder), state, None);
    for claim in CLAIMS.iter() {
        let best = verdict(&report(&all), claim.id).0;
        assert_eq!(best == Verdict::Proved, claim.scope == Scope::Complete, "{}", claim.id);
        assert_ne!(best, Verdict::Refuted, "{}", claim.id);
    }
    for step in steps.iter().filter(|step| !step.decides.is_empty()) {
        let with = |outcome: Option<Outcome>| {
            let mut state = all.clone();
            state.results.remove(&step.name);
            state.results.extend(outcome.map(|outcome| (step.name.clone(), done(outcome))));
            report(&state)
        };
        for (report, wanted) in [
            (with(Some(Outcome::Failed("x".to_owned()))), Verdict::Refuted),
            (with(Some(Outcome::NotTried("x".to_owned()))), Verdict::NotTried),
            (with(None), Verdict::NotTried),
        ] {
            for claim in &step.decides {
                let (found, because) = verdict(&report, claim);
                assert_eq!(found, wanted, "{claim} by {}", step.name);
                assert!(because.starts_with(&format!("{}: ", step.name)), "{claim}: {because}");
            }
            assert!(report.complete || report.steps.iter().any(|step| step.result.is_none()));
        }
    }
}

#[test]
fn every_restart_of_the_plan_happens() {
    let mut guest = StandIn::new();
    run(&mut guest);
    let planned = plan().iter().filter(|step| step.action == Action::Restart).count();
    assert_eq!(guest.calls.iter().filter(|line| line.starts_with("shutdown.exe /r")).count(), planned);
}

#[test]
fn output_in_the_page_is_text() {
    let folder = folder();
    let steps = plan();
    let mut state = fresh();
    let evil = "<script src=x>\"&'</pre>".to_owned();
    output::write(folder.path(), "windows", &Ran { code: 1, out: evil.clone(), err: evil.clone() }).unwrap();
    let result = StepResult { outcome: Outcome::Failed(evil), code: Some(1), seconds: 0.0, crash: None };
    state.results.insert("windows".to_owned(), result);
    let run = Run { name: "<b>", ..about(&steps, &folder) };
    Report::new(&run, &state, None).write(folder.path()).unwrap();
    let page = fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert!(!page.contains("<script") && !page.contains("<b>,"), "{page}");
    assert_eq!(page.matches("&lt;script src=x&gt;&quot;&amp;&apos;&lt;/pre&gt;").count(), 3, "{page}");
}
