//! Two kinds of processors in one machine: which counters each has, and events of one core type.

use serde_json::Value;
use tests::{Lab, thousands};

/// Loads that miss the last level cache on Golden Cove, and that find a modified line on Gracemont.
const TERMS: &str = "event=0xd1,umask=0x20";

/// Golden Cove on even processors, Gracemont on odd ones.
const ALDER_LAKE: &str = "alder-lake-p-12900h";

/// Makes a different number, in thousands, of loads and of cycles occur on each of two processors.
fn happen(lab: &mut Lab) {
    for (processor, loads, cycles) in [(0, 1_000_000, 50_000_000), (1, 7_000, 20_000_000)] {
        let happened = [(0xD1, 0x20, loads), (0x3C, 0x00, cycles)];
        lab.wire.run(processor, &happened, &happened).unwrap();
    }
}

/// Returns name, core type, count in thousands and processors of each event from `--json` output.
fn rows(json: &Value) -> Vec<(String, String, u64, Vec<u64>)> {
    let row = |event: &Value| {
        let text = |key: &str| event[key].as_str().unwrap_or_default().to_owned();
        let processors = event["processors"].as_array().unwrap().iter().map(|one| one["processor"].as_u64().unwrap());
        (text("name"), text("core_type"), thousands(event["count"].as_u64().unwrap()), processors.collect())
    };
    json["events"].as_array().unwrap().iter().map(row).collect()
}

fn row(name: &str, core_type: &str, count: u64, processor: u64) -> (String, String, u64, Vec<u64>) {
    (name.to_owned(), core_type.to_owned(), count, vec![processor])
}

#[test]
fn counts_of_two_core_types_are_rows_of_their_own() {
    let mut lab = Lab::boot(ALDER_LAKE).unwrap();
    lab.install().unwrap();
    let [core, atom] = ["cpu_core", "cpu_atom"].map(|core_type| format!("{core_type}/{TERMS}/"));
    lab.client(&["start", &core, &atom, "TotalCycles", "cpu/event=0x3c/:u"]).unwrap().success().unwrap();
    happen(&mut lab);
    let read = lab.client(&["read", "--json"]).unwrap().json().unwrap();
    let expected = [
        row(&core, "cpu_core", 2_000, 0),
        row("cpu_core/TotalCycles/", "cpu_core", 100_000, 0),
        row("cpu_core/event=0x3c/", "cpu_core", 50_000, 0),
        row(&atom, "cpu_atom", 14, 1),
        row("cpu_atom/TotalCycles/", "cpu_atom", 40_000, 1),
        row("cpu_atom/event=0x3c/", "cpu_atom", 20_000, 1),
    ];
    assert_eq!(rows(&read), expected);
    let status = lab.client(&["status"]).unwrap().success().unwrap();
    assert!(status.out.contains(&format!("{core}, {atom}, TotalCycles, cpu/event=0x3c/:u")), "{}", status.out);
    let stopped = lab.client(&["stop", &atom, "--json"]).unwrap().json().unwrap();
    assert_eq!(rows(&stopped), [row(&atom, "cpu_atom", 14, 1)]);
    let rest = lab.client(&["stop", "--all"]).unwrap().success().unwrap();
    assert!(rest.out.contains("cpu_core/TotalCycles/") && !rest.out.contains(&atom), "{}", rest.out);
    assert_eq!(lab.enabled_counters().unwrap(), 0);
    lab.finish().unwrap();
}

#[test]
fn stat_shows_each_core_type_with_its_processors() {
    let mut lab = Lab::boot(ALDER_LAKE).unwrap();
    lab.install().unwrap();
    let events = format!("cpu_core/{TERMS}/,cpu_atom/{TERMS}/,TotalCycles");
    let ran = lab.client(&["stat", "-a", "-e", &events, "--", "cmd", "/c", "exit 0"]).unwrap().success().unwrap();
    assert!(ran.err.contains("cpu_core is CPU 0, cpu_atom CPU 1"), "{}", ran.err);
    for label in
        [&format!("cpu_core/{TERMS}/"), &format!("cpu_atom/{TERMS}/"), "cpu_core/TotalCycles/", "cpu_atom/TotalCycles/"]
    {
        assert_eq!(ran.err.matches(label).count(), 1, "{label}: {}", ran.err);
    }
    lab.finish().unwrap();
}

#[test]
fn an_event_that_the_core_types_count_differently_is_refused_with_both_notations() {
    let mut lab = Lab::boot(ALDER_LAKE).unwrap();
    lab.install().unwrap();
    let plain = format!("cpu/{TERMS}/");
    let refused = lab.client(&["start", &plain]).unwrap();
    assert_eq!(refused.code, 2, "{}", refused.err);
    for part in ["cpu_core is CPU 0", "cpu_atom is CPU 1", &format!("cpu_core/{TERMS}/"), &format!("cpu_atom/{TERMS}/")]
    {
        assert!(refused.err.contains(part), "{part}: {}", refused.err);
    }
    assert!(lab.wire.accesses().unwrap().iter().all(|of| of.wrmsr == 0), "no register was written");
    lab.client(&["start", &plain, "-C", "1"]).unwrap().success().unwrap();
    happen(&mut lab);
    let stopped = lab.client(&["stop", "--all", "--json"]).unwrap().json().unwrap();
    assert_eq!(rows(&stopped), [row(&format!("cpu_atom/{TERMS}/"), "cpu_atom", 14, 1)]);
    let nowhere = lab.client(&["start", &format!("cpu_core/{TERMS}/"), "-C", "1"]).unwrap();
    assert_eq!(nowhere.code, 13, "{}", nowhere.err);
    assert!(nowhere.err.contains("has no CPU to run on"), "{}", nowhere.err);
    lab.uninstall().unwrap();

    lab.become_processor("skylake-6600k").unwrap();
    lab.install().unwrap();
    let refused = lab.client(&["start", &format!("cpu_core/{TERMS}/")]).unwrap();
    assert_eq!(refused.code, 7, "{}", refused.err);
    assert!(refused.err.contains(&format!("try: {plain}")), "{}", refused.err);
    lab.finish().unwrap();
}

#[test]
fn a_recording_of_one_core_type_has_samples_of_its_processors_only() {
    let mut lab = Lab::boot(ALDER_LAKE).unwrap();
    lab.install().unwrap();
    lab.run_in_real_time().unwrap();
    let arguments = ["record", "-a", "--duration", "0.3s", "-e", "cpu_atom/TotalIssues/@4M", "-o", "C:\\atom.rec"];
    lab.client(&arguments).unwrap().success().unwrap();
    let arguments = ["record", "-a", "--duration", "0.3s", "-e", "TotalIssues@4M", "-o", "C:\\both.rec"];
    lab.client(&arguments).unwrap().success().unwrap();
    lab.run_by_script().unwrap();
    let atom = lab.client(&["report", "C:\\atom.rec", "--json", "--sort", "processor"]).unwrap().json().unwrap();
    let [source] = &atom["sources"].as_array().unwrap()[..] else { panic!("{atom:#}") };
    assert_eq!(
        (source["name"].as_str(), source["core_type"].as_str()),
        (Some("cpu_atom/TotalIssues/"), Some("cpu_atom"))
    );
    let [only] = &source["rows"].as_array().unwrap()[..] else { panic!("{source:#}") };
    assert_eq!(only["processor"], 1);
    let both = lab.client(&["report", "C:\\both.rec"]).unwrap().success().unwrap();
    for name in ["cpu_core/TotalIssues/", "cpu_atom/TotalIssues/"] {
        assert_eq!(both.out.matches(name).count(), 1, "{name}: {}", both.out);
    }
    lab.finish().unwrap();
}

/// The first kind has eight general and three fixed counters, the second six and two. Only the first has LLCMisses.
#[test]
fn each_processor_of_a_hybrid_machine_uses_its_own_counters() {
    let mut lab = Lab::boot("intel-hybrid").unwrap();
    lab.install().unwrap();
    let start = |sources: &[&str], processor: &str| {
        let arguments: Vec<&str> =
            ["start"].into_iter().chain(sources.iter().copied()).chain(["-C", processor]).collect();
        lab.client(&arguments).unwrap()
    };
    for (processor, most, event, fixed) in
        [("0", 8, 0xA1, ["TotalIssues", "TotalCycles"]), ("1", 6, 0xA2, ["InstructionRetired", "UnhaltedCoreCycles"])]
    {
        let events: Vec<String> = (1..=most + 1).map(|umask| format!("cpu/event={event},umask={umask}/")).collect();
        let events: Vec<&str> = events.iter().map(String::as_str).collect();
        let together = format!("{{{}}}", events.join(","));
        let refused = start(&[&together], processor);
        assert_eq!(refused.code, 8, "{processor}: {}", refused.err);
        assert!(refused.err.contains(&format!("; {most} fit together\n")), "{}", refused.err);
        start(&events[..most], processor).success().unwrap();
        start(&fixed, processor).success().unwrap();
    }
    lab.client(&["stop", "--all"]).unwrap().success().unwrap();
    let misses = lab.client(&["start", "LLCMisses"]).unwrap();
    assert_eq!(misses.code, 7, "{}", misses.err);
    assert!(misses.err.contains("not supported on CPU 1, but is on others"), "{}", misses.err);
    start(&["LLCMisses"], "0").success().unwrap();
    assert_eq!(lab.enabled_counters().unwrap(), 1);
    lab.finish().unwrap();
}
