//! Machines without counters, and events that a machine does not count.

use super::*;

const REASON: &str = "Hyper-V runs underneath this Windows and hides the counters";

/// Creates the root partition of Hyper-V, which hides the counters.
fn root() -> FakeSystem {
    let info = InfoReply {
        interface: pmu::Kind::Default as u32,
        reason: pmu::Reason::MaskedByHypervisor as u32,
        hypervisor: pmu::Hypervisor::Root as u32,
        signature: 0x0005_06E3,
        ..info()
    };
    let sources = vec![record(0, "Time", 0), record(2, "TotalIssues", 1)];
    let driver = FakeDriver { info, sources, ..FakeDriver::default() };
    driver.counts.replace(Vec::new());
    FakeSystem::running(driver)
}

/// Creates a machine that refuses an event when a session is to count it, and counts another.
fn without(source: u64) -> FakeSystem {
    let refused_sources = vec![(source, ErrorCode::UnsupportedSource, [pmu::Support::NoCounter as u64, 0])];
    let driver = FakeDriver { refused_sources, ..FakeDriver::default() };
    driver.counts.replace(vec![count(0x13, 0, 500, SECOND)]);
    FakeSystem::running(driver)
}

#[test]
fn each_verb_says_why_there_are_no_counters() {
    for (line, name) in [
        ("stat --strict -e instructions:u,cycles -a --duration 0.001s", "instructions"),
        ("stat --strict -a --duration 0.001s", "cycles"),
        ("record -e cycles -a --duration 0.001s -o NUL", "cycles"),
        ("record -e MEM_LOAD_RETIRED.L3_MISS -a --duration 0.001s -o NUL", "MEM_LOAD_RETIRED.L3_MISS"),
        ("top -e TotalCycles --batch -n 1 --delay 100ms", "TotalCycles"),
        ("start cpu/event=0x3c/", "cpu/event=0x3c/"),
        ("start TotalIssues", "TotalIssues"),
        ("query cycles", "cycles"),
        ("query cpu/event=0x3c/", "cpu/event=0x3c/"),
        ("interval TotalIssues 100000", "TotalIssues"),
    ] {
        let system = root();
        let (exit, report) = run(&system, line).failure();
        assert_eq!(exit, Exit::UnsupportedSource, "{line}");
        let wanted =
            format!("error: {name} cannot be counted: this machine has no counters\n  because: {REASON}\n  try: ");
        assert!(report.starts_with(&wanted) && report.contains("msinfo32"), "{line}: {report}");
        assert!(system.driver.inputs(Code::Start).is_empty(), "{line}");
    }
    assert_eq!(run(&root(), "start xyzzy").failure().0, Exit::UnknownSource);
    assert!(run(&root(), "query Time").outcome.is_ok());
    let (_, report) = run(&root(), "stat --strict -M IPC -a --duration 0.001s").failure();
    assert!(report.contains(&format!("instructions was not counted: {REASON}")), "{report}");
}

#[test]
fn stat_runs_the_command_without_counters_and_says_why() {
    for (options, names) in [
        ("", &["cycles", "instructions", "branches", "branch-misses"][..]),
        ("-e cycles,cache-references:u", &["cycles", "cache-references:u"]),
        ("-e cpu/event=0x3c,name=mine/", &["mine"]),
    ] {
        let ran = stat(&root(), options);
        assert_eq!(ran.outcome.unwrap(), 3, "the code of the command");
        let rows: Vec<String> = names.iter().map(|name| format!("     <not supported>  {name}\n")).collect();
        assert!(ran.err.contains(&format!("\n\n{}\n", rows.concat())), "{}", ran.err);
        assert!(ran.err.contains(" seconds time elapsed\n"), "{}", ran.err);
        let note = format!("\n<not supported>: {}\n  because: {REASON}\n  try: ", names.join(", "));
        assert_eq!(ran.err.matches(&note).count(), 1, "{}", ran.err);
    }
    let ran = stat(&root(), "-M IPC");
    assert_eq!(ran.outcome.unwrap(), 3);
    assert!(ran.err.contains("n/a") && ran.err.contains(REASON), "{}", ran.err);
    // A timer counts, also here.
    let system = root();
    system.driver.counts.replace(vec![count(0, 0, 7, SECOND)]);
    let ran = stat(&system, "-e cpu-clock,cycles");
    assert!(ran.err.contains("7  cpu-clock") && ran.err.contains("<not supported>  cycles"), "{}", ran.err);
}

#[test]
fn one_event_that_is_not_there_does_not_refuse_the_others() {
    let ran = stat(&without(2), "-e cycles,instructions:u");
    assert_eq!(ran.outcome.unwrap(), 3, "{}", ran.err);
    assert!(ran.err.contains("                 500  cycles "), "{}", ran.err);
    assert!(ran.err.contains("     <not supported>  instructions:u\n"), "{}", ran.err);
    let reason = "no general counter of this processor counts the event with this unit mask";
    assert!(ran.err.contains(&format!("<not supported>: instructions:u\n  because: {reason}\n  try: ")), "{}", ran.err);

    let (exit, report) = stat(&without(2), "--strict -e cycles,instructions:u").failure();
    assert_eq!((exit, report.starts_with("error: instructions is not supported")), (Exit::UnsupportedSource, true));
    // A name that nothing has is a mistake, as in perf.
    assert_eq!(stat(&without(2), "-e cycles,xyzzy").failure().0, Exit::UnknownSource);
}

#[test]
fn csv_and_json_have_the_events_that_are_not_counted() {
    let line = |options: &str, lead: &str| {
        let ran = stat(&without(2), &format!("{options} -e cycles,instructions:u -o -"));
        let wanted = format!("{lead}<not supported>,,instructions:u,");
        let found = ran.out.lines().find(|line| line.starts_with(&wanted)).map(str::to_owned);
        assert!(ran.err.contains("<not supported>: instructions:u\n  because: "), "{options}: {}", ran.err);
        found.unwrap_or_else(|| panic!("{options}: {}", ran.out))
    };
    assert_eq!(line("--csv", ""), "<not supported>,,instructions:u,0,100.00,,");
    assert_eq!(line("--csv --per-cpu", "CPU0,"), "CPU0,<not supported>,,instructions:u,0,100.00,,");
    assert_eq!(line("--csv -r 2", ""), "<not supported>,,instructions:u,,0,100.00,,");

    let json = stat(&without(2), "-e cycles,instructions:u --json -o -").json();
    assert_eq!(json["unsupported"][0]["name"], "instructions:u");
    assert!(json["unsupported"][0]["reason"].as_str().unwrap().starts_with("no general counter"), "{json}");
    assert_eq!(
        (&json["events"][0]["name"], &json["events"][0]["stands_for"]),
        (&json!("cycles"), &json!("cpu/event=0x3c/"))
    );
    let json = stat(&without(2), "-e TotalCycles --json -o -").json();
    assert_eq!((&json["events"][0]["name"], &json["events"][0]["stands_for"]), (&json!("TotalCycles"), &json!(null)));
    assert_eq!(json["unsupported"], json!(null));
}

#[test]
fn messages_have_the_word_of_the_user_and_query_what_it_stands_for() {
    let counted = || {
        let raw: SourceName = "cpu/event=0x3c/".parse().unwrap();
        let SourceName::Raw(event) = raw else { panic!("{raw}") };
        let sources = [sources(), vec![record(event.source, "", 0)]].concat();
        FakeSystem::running(FakeDriver { sources, ..FakeDriver::default() })
    };
    let ran = run(&counted(), "start cycles,TotalIssues");
    assert!(ran.out.contains(": cycles, TotalIssues\nuntil: .\\client stop cycles TotalIssues"), "{}", ran.out);
    let ran = run(&counted(), "query cycles");
    assert!(ran.out.contains("Name        cycles\nStands for  cpu/event=0x3c/\n"), "{}", ran.out);
    assert!(!run(&counted(), "query TotalCycles").out.contains("Stands for"));
}
