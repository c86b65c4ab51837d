//! `stat` in intervals, in repeated runs, and for sets of processors.

use serde_json::Value;
use tests::{Lab, is_soak};

/// Lines per second.
const LINES: usize = 10;

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value}"))
}

fn seconds(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value}"))
}

#[test]
fn intervals_runs_and_cores_add_up() {
    let mut lab = Lab::boot("haswell-4710mq").unwrap();
    lab.install().unwrap();
    lab.run_in_real_time().unwrap();
    intervals(&mut lab);
    repeated_runs(&mut lab);
    cores(&mut lab);
    assert_eq!(lab.enabled_counters().unwrap(), 0);
    lab.finish().unwrap();
}

/// There is at most a line for each interval, and the lines add up to the total. When each is due, the client's own
/// tests say: here a busy machine may delay any of them.
fn intervals(lab: &mut Lab) {
    let duration = if is_soak() { 10 } else { 2 };
    let seconds_asked = format!("{duration}s");
    let command = ["stat", "-e", "cycles,instructions", "-I", "100", "--summary", "--duration", &seconds_asked];
    let ran = lab.client(&[&command[..], &["--json", "-o", "-"]].concat()).unwrap().success().unwrap();
    let lines: Vec<Value> = ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (total, lines) = lines.split_last().unwrap();
    assert!((2..=duration * LINES).contains(&lines.len()), "{}", lines.len());
    let mut last = 0.0;
    for line in lines {
        let time = seconds(&line["time_seconds"]);
        assert!(time > last, "{time} after {last}");
        last = time;
    }
    for event in 0..2 {
        let of = |line: &Value| number(&line["events"][event]["count"]);
        assert_eq!(lines.iter().map(of).sum::<u64>(), of(total));
        assert!(lines.iter().all(|line| of(line) > 0));
    }
}

/// Mean and standard error are those of the runs, computed again.
fn repeated_runs(lab: &mut Lab) {
    const RUNS: usize = 20;
    let command =
        ["stat", "-a", "-e", "cycles,instructions", "-r", "20", "--json", "-o", "-", "--", "cmd", "/c", "exit 0"];
    let json = lab.client(&command).unwrap().success().unwrap().json().unwrap();
    for event in json["events"].as_array().unwrap() {
        let repeated = &event["repeated"];
        let runs: Vec<f64> = repeated["runs"].as_array().unwrap().iter().map(seconds).collect();
        assert_eq!(runs.len(), RUNS);
        let mean = runs.iter().sum::<f64>() / 20.0;
        let squares: f64 = runs.iter().map(|run| (run - mean).powi(2)).sum();
        let error = (squares / 19.0 / 20.0).sqrt();
        assert!((seconds(&repeated["mean"]) / mean - 1.0).abs() < 1e-12, "{repeated}");
        assert!((seconds(&repeated["standard_error"]) / error - 1.0).abs() < 1e-9, "{repeated}: {error}");
        assert!((seconds(&event["scaled"]) - mean).abs() <= 0.5, "{event}");
    }
    assert_eq!(json["elapsed"]["runs"].as_array().unwrap().len(), RUNS);
}

/// The cores and packages that Wine reports have the counts of their processors.
fn cores(lab: &mut Lab) {
    for set in ["--per-core", "--per-socket", "--per-core-type"] {
        let command = ["stat", "-e", "cycles", set, "--duration", "0.1s", "--json", "-o", "-"];
        let json = lab.client(&command).unwrap().success().unwrap().json().unwrap();
        let blocks = json["blocks"].as_array().unwrap();
        let of = |block: &Value| number(&block["events"][0]["count"]);
        assert_eq!(blocks.iter().map(of).sum::<u64>(), number(&json["events"][0]["count"]), "{set}: {json}");
        let processors: usize = blocks.iter().map(|block| block["processors"].as_array().unwrap().len()).sum();
        assert_eq!(processors, 2, "{set}: {json}");
    }
}
