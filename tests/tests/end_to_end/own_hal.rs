//! The unmodified client without the driver: Windows' own HAL counts at context switches of a scheduler whose truth the
//! test knows.

use std::fs;

use bench_protocol::{Disorder, HalScript, ProcessLedger, Refusal, SwitchLedger, TraceScript};
use serde_json::Value;
use tests::{Lab, ProgramOutput};

pub const LEDGER: &str = "lab/ledger.json";
pub const SESSIONS: &str = "lab/sessions.txt";
pub const COMMAND: [&str; 4] = ["--", "cmd", "/c", "for /L %i in (1,1,200000) do @rem"];

pub fn script(hal: HalScript, disorder: Disorder) -> TraceScript {
    TraceScript {
        hal: HalScript { ledger: Some(format!("C:\\{LEDGER}").into()), ..hal },
        disorder,
        ..TraceScript::default()
    }
}

fn stat(lab: &Lab, script: &TraceScript, options: &[&str]) -> ProgramOutput {
    lab.traced_client(script, &[&["stat"], options, &COMMAND].concat()).unwrap()
}

pub fn ledger(lab: &Lab) -> SwitchLedger {
    serde_json::from_str(&fs::read_to_string(lab.wine().drive_c(LEDGER)).unwrap()).unwrap()
}

/// Returns what the command executed, by the ledger. On a busy machine the command of an earlier client may still be in
/// the list of processes.
fn truth(ledger: &SwitchLedger) -> Vec<u64> {
    let is_named = |process: &ProcessLedger, name: &str| process.name.eq_ignore_ascii_case(name);
    let is_client = |id: u32| ledger.processes.iter().any(|one| one.process == id && is_named(one, "client.exe"));
    let of_client = |one: &&ProcessLedger| is_named(one, "cmd.exe") && is_client(one.parent);
    let commands: Vec<_> = ledger.processes.iter().filter(of_client).collect();
    let [command] = &commands[..] else { panic!("{ledger:#?}") };
    command.events.clone()
}

fn counts(stat: &Value) -> Vec<u64> {
    stat["events"].as_array().unwrap().iter().map(|event| event["count"].as_u64().unwrap()).collect()
}

#[test]
fn without_the_driver_a_command_has_the_counts_of_its_own_threads() {
    let lab = Lab::boot("haswell-4710mq").unwrap();
    let disorder = Disorder { seed: 3, delay: 100, shuffle: 30, duplicates: 10, ..Disorder::default() };
    for hal in [
        HalScript::default(),
        HalScript {
            seed: 1,
            version: 2,
            withheld: 90,
            maximum: 0,
            sessions: Some(format!("C:\\{SESSIONS}").into()),
            ..HalScript::default()
        },
    ] {
        // A session that a killed client has left.
        fs::write(lab.wine().drive_c(SESSIONS), "halprof-counts").unwrap();
        let script = script(hal, disorder.clone());
        let ran = stat(&lab, &script, &["--json", "-e", "TotalIssues,TotalCycles,BranchInstructions", "-o", "-"]);
        assert!(ran.err.contains("Windows' own HAL counts, without the driver"), "{}", ran.err);
        let stat = ran.json().unwrap();
        let truth = truth(&ledger(&lab));
        assert_eq!(counts(&stat), truth);
        assert!(truth.iter().all(|count| *count > 0), "{truth:?}");
        assert_eq!((&stat["of_processes"], &stat["remarks"]), (&Value::Bool(true), &Value::Null));
    }
    lab.finish().unwrap();
}

/// A client that is killed at any call leaves nothing that the next one does not remove.
#[test]
fn the_next_client_removes_what_one_that_was_killed_at_any_call_has_left() {
    const KILLED: i32 = 99;
    const ADDED: &str = "lab/added.txt";
    let lab = Lab::boot("haswell-4710mq").unwrap();
    let files = [SESSIONS, ADDED].map(|file| lab.wine().drive_c(file));
    let [sessions, added] = [SESSIONS, ADDED].map(|file| Some(format!("C:\\{file}").into()));
    let hal = HalScript { sessions, added, ..HalScript::default() };
    let run = |line: &[&str], killed_at| {
        let script = script(HalScript { killed_at, ..hal.clone() }, Disorder::default());
        lab.traced_client(&script, &[line, &["--", "cmd", "/c", "exit"]].concat()).unwrap()
    };
    let mut kinds = [0; 2];
    for line in [
        &["stat", "-e", "cpu/event=0xc0/,TotalCycles"][..],
        &["record", "-g", "-e", "cpu/event=0xc0/@100k", "-o", "C:\\killed.rec"],
    ] {
        fs::write(&files[0], "").unwrap();
        fs::write(&files[1], "Other").unwrap();
        let mut calls = 0;
        while run(line, calls + 1).code == KILLED {
            calls += 1;
            let left = files.each_ref().map(|file| fs::read_to_string(file).unwrap());
            kinds[0] += u32::from(!left[0].is_empty());
            kinds[1] += u32::from(left[1] != "Other");
            run(&["stat", "-e", "TotalCycles"], 0).success().unwrap();
            let left = files.each_ref().map(|file| fs::read_to_string(file).unwrap());
            assert_eq!(left, ["", "Other"], "{line:?}, killed at call {calls}");
        }
        assert!(calls > 8, "{calls}");
    }
    assert!(kinds.iter().all(|count| *count > 4), "sessions and sources are left now and then: {kinds:?}");
    lab.finish().unwrap();
}

/// The counts of a process that runs before and after begin and end with some slice on each CPU.
#[test]
fn a_process_that_runs_already_has_its_counts_to_one_slice_on_each_cpu() {
    let lab = Lab::boot("haswell-4710mq").unwrap();
    let workload = lab.workload().unwrap();
    let process = workload.description.process;
    let script = script(HalScript::default(), Disorder::default());
    let line = ["stat", "--json", "-e", "2,0x13", "-p", &process.to_string(), "--duration", "1s", "-o", "-"];
    let counted = counts(&lab.traced_client(&script, &line).unwrap().json().unwrap());
    let ledger = ledger(&lab);
    let whole = ledger.processes.iter().find(|one| one.process == process).unwrap();
    for (counted, whole) in counted.iter().zip(&whole.events) {
        // The ledger also has the time until every CPU had shown its counters.
        assert!(*counted > 0 && counted <= whole, "{counted} of {whole}");
    }
    let line = ["stat", "-p", "99999"];
    let ran = lab.traced_client(&script, &line).unwrap();
    assert!(ran.code == 10 && ran.err.contains("no process has the ID 99999"), "{}", ran.err);
    drop(workload);
    lab.finish().unwrap();
}

#[test]
fn the_list_of_the_hal_says_how_many_at_once_and_what_the_driver_has_more() {
    let lab = Lab::boot("haswell-4710mq").unwrap();
    for (hal, wanted) in [
        (HalScript::default(), "any 4 of them, and Time"),
        (HalScript { maximum: 12, ..HalScript::default() }, "any 7 of them, and Time"),
        (HalScript { maximum: 0, grows: true, ..HalScript::default() }, "any 4 of them, and Time"),
        (HalScript { sources: vec![(0, "Timer".to_owned())], ..HalScript::default() }, "No counters: "),
        (HalScript { sources: vec![(2, "Added5".to_owned())], ..HalScript::default() }, "Only the HAL has: Added5"),
    ] {
        let ran = lab.traced_client(&script(hal, Disorder::default()), &["list", "--backend", "hal"]).unwrap();
        let ran = ran.success().unwrap();
        assert!(ran.out.contains(wanted), "{}", ran.out);
    }
    lab.finish().unwrap();
}

/// The loops of a selftest: iterations of eight instructions and a branch, once and twice, and what is around them.
fn known_work(thousandths: u64) -> Vec<Vec<u64>> {
    let of = |times: u64| [8, 1].map(|each| 5_000 + times * 20_000_000 * each * thousandths / 1_000).to_vec();
    vec![of(1), of(2)]
}

fn verdicts(ran: &ProgramOutput, code: i32) -> Vec<(String, String)> {
    assert_eq!(ran.code, code, "{}{}", ran.out, ran.err);
    let json: Value = serde_json::from_str(&ran.out).unwrap();
    json_schemas::check(&json).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let of = |check: &Value| (text(&check["name"]), text(&check["verdict"]));
    json["checks"].as_array().unwrap().iter().map(of).collect()
}

#[test]
fn a_selftest_of_the_hal_counts_known_work_of_the_client_alone() {
    let lab = Lab::boot("haswell-4710mq").unwrap();
    for (thousandths, code, verdict) in [(1_000, 0, "passed"), (970, 28, "failed")] {
        let hal = HalScript { known_work: known_work(thousandths), ..HalScript::default() };
        let ran = lab.traced_client(&script(hal, Disorder::default()), &["selftest", "-C", "0", "--json"]).unwrap();
        let wanted = ["instructions, own HAL", "branches, own HAL"].map(|name| (name.to_owned(), verdict.to_owned()));
        assert_eq!(verdicts(&ran, code), wanted);
    }
    let silent = script(HalScript { silent: vec![1], ..HalScript::default() }, Disorder::default());
    let ran = lab.traced_client(&silent, &["selftest", "--backend", "hal"]).unwrap();
    assert!(ran.code == 28 && ran.out.contains("no counters arrive from CPU 1"), "{}{}", ran.out, ran.err);
    let ran = lab.traced_client(&silent, &["selftest", "--stacks"]).unwrap();
    assert!(ran.code == 7 && ran.err.contains("a test of call stacks or of threads needs the driver"), "{}", ran.err);
    let ran = lab.traced_client(&silent, &["selftest", "--compare"]).unwrap();
    assert!(ran.code == 3 && ran.err.contains("not installed"), "{}", ran.err);
    lab.finish().unwrap();
}

#[test]
fn a_live_diagnosis_has_the_hals_own_list_and_who_holds_counters() {
    let mut lab = Lab::boot("haswell-4710mq").unwrap();
    let tag = u32::from_le_bytes(*b"Etwp");
    let held = || HalScript { owners: vec![[0; 3], [3, 0x13, tag], [1, 0, 0]], ..HalScript::default() };
    let live = |lab: &Lab, hal, options: &[&str]| {
        let line = [&["diagnose", "--live"], options].concat();
        lab.traced_client(&script(hal, Disorder::default()), &line).unwrap().success().unwrap()
    };
    let out = live(&lab, held(), &[]).out;
    for wanted in [
        "HAL's own list  13 sources\n",
        "Counters held   counter 1 by Etwp (source 19) on CPUs 0-1, counter 2 by someone unknown on CPUs 0-1\n",
        "The driver is not installed, so no register was read.\n",
    ] {
        assert!(out.contains(wanted), "{wanted}{out}");
    }
    let refused = Refusal { function: "TraceSetInformation(9)".to_owned(), error: 1_450, times: 1 };
    let busy = TraceScript { refusals: vec![refused], ..script(held(), Disorder::default()) };
    let ran = stat(&lab, &busy, &["-e", "TotalIssues"]);
    let wanted = "Windows does not give the counters to this program, but counters to others: counter 1 by Etwp";
    assert!(ran.code == 24 && ran.err.contains(wanted), "{}", ran.err);

    lab.install().unwrap();
    let json = live(&lab, HalScript::default(), &["--json"]).json().unwrap();
    assert_eq!(json["own_hal"]["sources"].as_array().unwrap().len(), 13);
    assert!(json["own_hal"]["held_counters"].is_null() && json["driver"]["interface"] == "Emon");
    assert!(!json["processors"][0]["registers"].as_array().unwrap().is_empty());
    lab.finish().unwrap();
}

#[test]
fn without_administrator_the_events_of_a_process_are_estimated_in_each_mode() {
    let lab = Lab::boot("haswell-4710mq").unwrap();
    let workload = lab.workload().unwrap();
    let process = workload.description.process.to_string();
    let script = script(HalScript { hits: [100, 40], ..HalScript::default() }, Disorder::default());
    let line = |options: &[&'static str]| [&["stat", "--backend", "profile"], options].concat();
    let events = "TotalCycles:u,TotalCycles:k,TotalCycles,TotalIssues:u";
    let options = ["--json", "-e", events, "-p", &process, "--duration", "100ms", "-o", "-"];
    let options: Vec<&str> = line(&[]).into_iter().chain(options).collect();
    let stat = lab.traced_client(&script, &options).unwrap().json().unwrap();
    assert_eq!(counts(&stat), [1_900, 760, 2_660, 200].map(|hits| hits * 65_536));
    let remark = stat["remarks"][3].as_str().unwrap();
    assert_eq!(remark, "TotalIssues is 200 interrupts, one for 65536 events, and so true to 7.1 %");

    let refused = |function: &str, status| TraceScript {
        refusals: vec![Refusal { function: function.to_owned(), error: status, times: 1 }],
        ..script.clone()
    };
    for (script, options, code, reason) in [
        (&refused("NtCreateProfileEx", 0xC000_00BB), &["-p", &process][..], 1, "NtCreateProfileEx failed"),
        (&refused("NtStartProfile", 0xC000_0022), &["-p", &process], 5, "NtCreateProfileEx failed"),
        (&script, &["-a", "--duration", "10ms"], 5, "a count of the whole machine needs an administrator"),
        (&script, &["-e", "r00c4", "-p", &process], 5, "an event by its number needs an administrator"),
    ] {
        let options: Vec<&str> = line(&[]).into_iter().chain(options.iter().copied()).collect();
        let ran = lab.traced_client(script, &options).unwrap();
        assert!(ran.code == code && ran.err.contains(reason), "{}", ran.err);
    }
    for (verb, reason) in [(&["record", "-a"][..], "sampling"), (&["selftest"], "a self-test")] {
        let ran = lab.traced_client(&script, &[verb, &["--backend", "profile"]].concat()).unwrap();
        assert!(ran.code == 5 && ran.err.contains(&format!("{reason} needs an administrator")), "{}", ran.err);
    }
    drop(workload);
    lab.finish().unwrap();
}

#[test]
fn what_the_hal_cannot_do_is_refused_with_the_way_to_the_driver() {
    let lab = Lab::boot("haswell-4710mq").unwrap();
    let script = script(HalScript::default(), Disorder::default());
    for (options, code, reason) in [
        (&["-e", "TotalIssues:u"][..], 7, "a count in one mode alone needs the driver"),
        (&["-e", "{TotalIssues,TotalCycles}"], 7, "a group that is counted at the same time needs the driver"),
        (&["-e", "cpu/event=0xc0,any/"], 7, "or with such fields, needs the driver"),
        (&["-e", "0"], 7, "the time as an event needs the driver"),
        (&["-I", "100"], 7, "a count at any moment needs the driver"),
        (&["-e", "2,6,0xa,0xb,0x13"], 8, "5 events need the 4 that can count them"),
        (&["--backend", "driver"], 3, "the driver is not installed"),
    ] {
        let ran = stat(&lab, &script, options);
        assert!(ran.code == code && ran.err.contains(reason), "{}", ran.err);
        assert!(ran.err.contains("\n  try: "), "{}", ran.err);
    }
    lab.finish().unwrap();
}

#[test]
fn counters_that_do_not_count_are_refused_and_losses_are_told() {
    let lab = Lab::boot("haswell-4710mq").unwrap();
    let refusal = |function: &str, error| Refusal { function: function.to_owned(), error, times: 1 };
    let quiet = script(HalScript::default(), Disorder::default());
    let with = |hal| TraceScript { hal, ..quiet.clone() };
    let refused = |one| TraceScript { refusals: vec![one], ..quiet.clone() };
    for (script, code, reason) in [
        (with(HalScript { silent: vec![1], ..HalScript::default() }), 24, "no counters arrive from CPU 1"),
        (with(HalScript { still: vec![0], ..HalScript::default() }), 24, "the counters of CPU 0 stand still"),
        (refused(refusal("TraceSetInformation(9)", 1_450)), 24, "Windows does not give the counters"),
        (refused(refusal("TraceSetInformation(9)", 4_206)), 24, "Windows does not give the counters"),
        (refused(refusal("TraceQueryInformation(7)", 5)), 5, "TraceQueryInformation for the profile sources failed"),
        (refused(refusal("StartTraceW", 5)), 5, "elevated prompt"),
        (refused(refusal("StartTraceW", 1_450)), 1, "StartTrace failed"),
    ] {
        let ran = stat(&lab, &script, &["-e", "TotalIssues"]);
        assert!(ran.code == code && ran.err.contains(reason), "{}", ran.err);
    }
    let lossy = HalScript { bare: 5, set_back: 5, untold: 5, ledger: quiet.hal.ledger.clone(), ..HalScript::default() };
    let lossy = TraceScript { disorder: Disorder { lost_events: 5, ..Disorder::default() }, ..with(lossy) };
    let ran = stat(&lab, &lossy, &["-e", "TotalIssues"]).success().unwrap();
    for told in ["not attributed: what ran in", "went back: another program", "events and 0 buffers"] {
        assert!(ran.err.contains(told), "{}", ran.err);
    }
    lab.finish().unwrap();
}

#[test]
fn events_by_number_are_sources_of_the_hal_until_the_client_ends() {
    const ADDED: &str = "lab/added.txt";
    let lab = Lab::boot("haswell-4710mq").unwrap();
    let file = lab.wine().drive_c(ADDED);
    let hal = HalScript { added: Some(format!("C:\\{ADDED}").into()), ..HalScript::default() };
    let left = || fs::read_to_string(&file).unwrap();
    let options = ["--json", "-e", "cpu/event=0xc0/,TotalCycles,cpu/event=0xc2,umask=1,name=second/", "-o", "-"];
    for third_version in [true, false] {
        // What a killed client has left, and a source of another program.
        fs::write(&file, "HalprofAdded0\nOther\nHalprofAdded1").unwrap();
        let script = script(HalScript { third_version, ..hal.clone() }, Disorder::default());
        let stat = stat(&lab, &script, &options).json().unwrap();
        let ledger = ledger(&lab);
        assert_eq!(counts(&stat), truth(&ledger), "{stat:#}");
        assert!(ledger.sources[0] >= 0x200 && ledger.sources[2] >= 0x200, "{ledger:?}");
        assert_eq!(left(), "Other");
    }
    // The counters are refused after the sources were added, or the second source is.
    let refusal = |function: &str, error| Refusal { function: function.to_owned(), error, times: 1 };
    for (one, reason) in [
        (refusal("TraceSetInformation(9)", 1_450), "Windows does not give the counters"),
        (refusal("StartTraceW", 5), "StartTrace failed"),
    ] {
        let script = TraceScript { refusals: vec![one], ..script(hal.clone(), Disorder::default()) };
        let ran = stat(&lab, &script, &options);
        assert!(ran.code != 0 && ran.err.contains(reason), "{}", ran.err);
        assert_eq!(left(), "Other");
    }
    let refused = Refusal { times: 9, ..refusal("NtSetSystemInformation", 0xC000_000D) };
    let script = TraceScript { refusals: vec![refused], ..script(hal, Disorder::default()) };
    let ran = stat(&lab, &script, &options);
    assert!(ran.code == 7 && ran.err.contains("Windows does not add cpu/event=0xc0"), "{}", ran.err);
    lab.finish().unwrap();
}
