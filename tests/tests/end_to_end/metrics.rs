//! Slots and the metrics of the top-down method, by their names: the model divides fixed counter 3 as a processor does.

use serde_json::Value;
use tests::{Lab, thousands};

const NAMES: [&str; 5] = [
    "TOPDOWN.SLOTS",
    "PERF_METRICS.RETIRING",
    "PERF_METRICS.BAD_SPECULATION",
    "PERF_METRICS.FRONTEND_BOUND",
    "PERF_METRICS.BACKEND_BOUND",
];

/// Exit code: an event that this processor does not have.
const UNSUPPORTED: i32 = 7;

/// Returns the count of each event, in thousands.
fn counts(json: &Value) -> Vec<u64> {
    let count = |event: &Value| thousands(event["count"].as_u64().unwrap());
    json["events"].as_array().unwrap().iter().map(count).collect()
}

#[test]
fn metrics_are_counted_by_name_beside_other_events_and_never_sampled() {
    let mut lab = Lab::boot("ice-lake-1065g7").unwrap();
    lab.install().unwrap();
    let mut start = vec!["start", "-C", "0", "instructions"];
    start.extend(NAMES);
    lab.client(&start).unwrap().success().unwrap();
    // Fractions of 255 that a byte has exactly.
    let slots = [(0xA4, 0x01, 2_550_000), (0xC0, 0x00, 7_000)];
    let first = [(0x00, 0x80, 1_020_000), (0x00, 0x81, 260_000), (0x00, 0x82, 510_000), (0x00, 0x83, 760_000)];
    lab.wire.run(0, &[slots.as_slice(), &first].concat(), &[]).unwrap();
    let read = lab.client(&["read", "--json"]).unwrap().success().unwrap().json().unwrap();
    let expected = [7, 2_550, 1_020, 260, 510, 760];
    assert_eq!(counts(&read), expected);
    // After the reading, both registers began at zero again: a phase of another kind is as exact.
    lab.wire.run(0, &[(0xA4, 0x01, 100_000), (0x00, 0x81, 100_000)], &[]).unwrap();
    let stopped = lab.client(&["stop", "--all", "--json"]).unwrap().success().unwrap().json().unwrap();
    assert_eq!(counts(&stopped), [7, 2_650, 1_020, 360, 510, 760]);
    for (metric, count) in (0x80..).zip([1_020_000, 360_000, 510_000, 760_000]) {
        assert_eq!(*lab.ledger(0, 0x00, metric).unwrap().start(), count);
    }
    assert_eq!(lab.enabled_counters().unwrap(), 0);

    let sampled = lab.client(&["record", "-a", "-e", "PERF_METRICS.RETIRING@1M", "-o", "C:\\metrics.rec"]).unwrap();
    assert_eq!(sampled.code, UNSUPPORTED, "{}", sampled.err);
    assert!(sampled.err.contains("slots and top-down metrics can be counted, but not sampled"), "{}", sampled.err);

    lab.run_in_real_time().unwrap();
    let mut line = vec!["stat", "-C", "0", "--json", "-o", "-", "-e"];
    let names = NAMES.join(",");
    line.extend([names.as_str(), "--", "cmd", "/c", "exit 0"]);
    let found = counts(&lab.client(&line).unwrap().success().unwrap().json().unwrap());
    let [all, parts @ ..] = found.as_slice() else { panic!("{found:?}") };
    let sum: u64 = parts.iter().sum();
    assert!(*all > 0 && sum.abs_diff(*all) <= all / 50, "{sum} of {all} slots");
    lab.finish().unwrap();
}
