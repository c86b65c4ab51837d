//! More events than counters: they take turns, and their scaled counts are close to what happened.

use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;
use tests::Lab;

/// Each machine: an event that is counted all the time and in turns, and the number of general counters.
const MACHINES: [(&str, &str); 3] = [
    ("haswell-4710mq", "cpu/event=0xC4,umask=0x20/"),
    ("zen4-7700x", "cpu/event=0xC2,umask=0x20/"),
    ("alder-lake-p-12900h", "cpu/event=0xC0,umask=0x00/"),
];

/// Returns 24 events: one that is pinned, the same in a turn, and others, three of them in a group.
fn events(event: &str) -> Vec<String> {
    let other = |number: u32| format!("cpu/event={:#x},umask=0x81/", 0x90 + number);
    let mut events = vec![format!("{event}D"), format!("{{{event},{},{}}}", other(20), other(21))];
    events.extend((0..20).map(other));
    events
}

fn number(event: &Value, key: &str) -> f64 {
    event[key].as_f64().unwrap_or_else(|| panic!("{key}: {event}"))
}

#[test]
fn twenty_four_events_take_turns_on_intel_amd_and_a_hybrid() {
    let mut lab = Lab::boot(MACHINES[0].0).unwrap();
    for (identity, event) in MACHINES {
        lab.run_by_script().unwrap();
        lab.become_processor(identity).unwrap();
        lab.install().unwrap();
        lab.run_in_real_time().unwrap();
        let events = events(event);
        let mut start = vec!["start", "-C", "0"];
        start.extend(events.iter().map(String::as_str));
        lab.client(&start).unwrap().success().unwrap();
        sleep(Duration::from_secs(1));
        let shown = lab.client(&["read"]).unwrap().success().unwrap();
        assert!(shown.out.contains("Events took turns on the counters. Each had one for"), "{}", shown.out);
        let json = lab.client(&["stop", "--all", "--json"]).unwrap().success().unwrap().json().unwrap();
        let counted = json["events"].as_array().unwrap();
        assert_eq!(counted.len(), 24, "{identity}");
        let [pinned, turned, together @ ..] = counted.as_slice() else { panic!("{json}") };
        assert_eq!(pinned["percent_running"], 100.0, "{identity}");
        for event in counted.iter().skip(1) {
            let share = number(event, "percent_running");
            assert!((5.0..60.0).contains(&share), "{identity}: {event}");
        }
        for event in &together[..2] {
            assert_eq!(event["percent_running"], turned["percent_running"], "{identity}: a group");
        }
        // The rates of the model are constant. A turn begins and ends a little before or after its time is taken.
        let (estimate, truth) = (number(turned, "scaled"), number(pinned, "count"));
        assert!((estimate / truth - 1.0).abs() < 0.05, "{identity}: {estimate} for {truth}");
        assert_eq!(lab.enabled_counters().unwrap(), 0);
        lab.uninstall().unwrap();
    }
    lab.finish().unwrap();
}

#[test]
fn a_group_that_does_not_fit_is_refused_with_the_part_that_does() {
    let mut lab = Lab::boot("zen4-7700x").unwrap();
    lab.install().unwrap();
    let group: Vec<String> = (0..7).map(|number| format!("cpu/event={:#x}/", 0x90 + number)).collect();
    let group = format!("{{{}}}", group.join(","));
    let refused = lab.client(&["stat", "-a", "-e", &group, "--", "cmd", "/c", "exit 0"]).unwrap();
    assert!(refused.err.contains("the 7 events of a group cannot be counted at the same time"), "{}", refused.err);
    assert!(refused.err.contains("6 fit together"), "{}", refused.err);
    // Of events that take turns the command's share is not known, and the counts are of everything.
    let list = group.replace(['{', '}'], "");
    let stat = lab.client(&["stat", "-e", &list, "--", "cmd", "/c", "exit 0"]).unwrap();
    assert!(stat.err.contains(", system wide, while ") && stat.err.contains("\nEverything that ran was counted: "));
    assert!(stat.err.lines().all(|line| line.chars().count() <= 80), "{}", stat.err);
    assert_eq!(stat.code, 0);
    let all = lab.client(&["stat", "-a", "-e", &list, "--", "cmd", "/c", "exit 0"]).unwrap();
    assert!(!all.err.contains("Everything that ran was counted"), "{}", all.err);
    lab.finish().unwrap();
}

/// The metrics of `stat -M` are those of its own counts: recomputed here, on general counters and with PERF_METRICS.
#[test]
fn metrics_follow_from_the_counts_of_the_same_run() {
    let mut lab = Lab::boot("zen4-7700x").unwrap();
    // The P cores of an Alder Lake have PERF_METRICS, which CPUID hides, and its E cores have general counters.
    for (identity, cores) in [("zen4-7700x", 1), ("ice-lake-1065g7", 1), ("alder-lake-p-12900h", 2)] {
        lab.run_by_script().unwrap();
        lab.become_processor(identity).unwrap();
        lab.install().unwrap();
        lab.run_in_real_time().unwrap();
        let stat = ["stat", "-M", "IPC,TopdownL1", "--duration", "0.5s", "--json", "-o", "-"];
        let json = lab.client(&stat).unwrap().success().unwrap().json().unwrap();
        let metrics = json["metrics"].as_array().unwrap();
        let of = |name: &str| -> Vec<f64> {
            metrics.iter().filter(|one| one["name"] == name).map(|one| number(one, "value")).collect()
        };
        let parts = ["Frontend_Bound", "Bad_Speculation", "Backend_Bound", "Retiring", "SMT_Contention"].map(of);
        assert_eq!((of("IPC").len(), parts[0].len()), (cores, cores), "{identity}: {json}");
        let counted = json["events"].as_array().unwrap();
        let scaled = |index: usize| number(&counted[index], "scaled");
        if identity.starts_with("zen") {
            // AMD counts each part, so nothing is what the others leave.
            let of_event = |name: &str| counted.iter().find(|event| event["name"] == name).unwrap();
            let ops = |name| number(of_event(name), "scaled");
            let (dispatched, retired) = (ops("OPS_SOURCE_DISPATCHED_FROM_DECODER.ALL"), ops("RETIRED_OPS"));
            let lost = parts[3][0] * (dispatched - retired) / retired;
            assert!((parts[1][0] - lost).abs() < 1e-6, "{identity}: {lost} % are lost: {json}");
        } else {
            for index in 0..cores {
                let sum: f64 = parts.iter().filter_map(|values| values.get(index)).sum();
                assert!((sum - 100.0).abs() < 1e-6, "{identity}: level 1 is {sum} %: {json}");
            }
        }
        // The first group begins with instructions and cycles.
        assert!((of("IPC")[0] / (scaled(0) / scaled(1)) - 1.0).abs() < 1e-9, "{identity}: {json}");
        assert_eq!(lab.enabled_counters().unwrap(), 0);
        lab.uninstall().unwrap();
    }
    lab.run_by_script().unwrap();
    lab.become_processor("skylake-u-6500u").unwrap();
    lab.install().unwrap();
    lab.run_in_real_time().unwrap();
    a_metric_divides_counts_of_the_same_turns(&mut lab);
    lab.finish().unwrap();
}

/// The program is in another phase while the group with the cache misses has counters: everything occurs a hundred
/// times as often. Its misses must not be divided by the instructions of the other group's turns.
fn a_metric_divides_counts_of_the_same_turns(lab: &mut Lab) {
    const MISSES: (u16, u16) = (0x2E, 0x41);
    const FACTOR: u32 = 100;
    // Rates of the model, per instruction: 20 misses in 14,000, and 14,000 instructions in 10,000 cycles.
    let (misses_of_thousand, per_cycle) = (1_000.0 * 20.0 / 14_000.0, 1.4);
    lab.wire.set_phase(MISSES, FACTOR).unwrap();
    let stat = ["stat", "-M", "IPC,TopdownL1,Cache_MPKI", "--duration", "0.5s", "--json", "-o", "-"];
    let json = lab.client(&stat).unwrap().success().unwrap().json().unwrap();
    let counted = json["events"].as_array().unwrap();
    let instructions = counted.iter().filter(|event| event["name"] == "TotalIssues");
    let instructions: Vec<f64> = instructions.map(|event| number(event, "scaled")).collect();
    let [of_ipc, of_misses] = instructions.as_slice() else { panic!("the groups are others: {json}") };
    assert!(of_misses / of_ipc > 50.0, "there are no phases: {json}");
    for (name, right) in [("Cache_MPKI", misses_of_thousand), ("IPC", per_cycle)] {
        let metric = json["metrics"].as_array().unwrap().iter().find(|metric| metric["name"] == name).unwrap();
        let value = number(metric, "value");
        assert!((value / right - 1.0).abs() < 0.02, "{name} is {value} instead of {right}: {json}");
    }
}
