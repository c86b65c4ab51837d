use std::time::SystemTime;

use super::*;
use crate::family::Family;

fn snapshot(points: Vec<Point>) -> Snapshot {
    Snapshot {
        time: SystemTime::UNIX_EPOCH,
        begun: SystemTime::UNIX_EPOCH,
        driver_begun: SystemTime::UNIX_EPOCH,
        points,
    }
}

fn point(family: Family, labels: &[(&'static str, &str)], value: Value) -> Point {
    let labels = labels.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    Point { family, labels, value }
}

/// By "Exposition formats" of Prometheus, "Text format details".
#[test]
fn a_snapshot_is_this_text() {
    let points = vec![
        point(Family::Events, &[("event", "cycles"), ("core_type", "P")], Value::Integer(u64::MAX)),
        point(Family::BuildInfo, &[("version", "0.1.0"), ("processor", "a \"b\" \\ c\nd")], Value::Integer(1)),
        point(Family::Events, &[("event", "cycles"), ("core_type", "E")], Value::Integer(7)),
        point(Family::EventEnabled, &[("event", "cycles")], Value::Real(0.5)),
        point(Family::EventRunning, &[], Value::Real(-1.0)),
        point(Family::Metric, &[("metric", "IPC")], Value::Real(f64::NAN)),
        point(Family::Metric, &[("metric", "a")], Value::Real(f64::INFINITY)),
        point(Family::Metric, &[("metric", "b")], Value::Real(f64::NEG_INFINITY)),
        point(Family::Metric, &[("metric", "c")], Value::Real(1e-7)),
        point(Family::ProfilesWaitingSize, &[], Value::Integer(4_096)),
    ];
    let expected = "\
# HELP halprof_build 1, with the versions of agent and driver, the profile interface and the processor
# TYPE halprof_build gauge
halprof_build{version=\"0.1.0\",processor=\"a \\\"b\\\" \\\\ c\\nd\"} 1
# HELP halprof_events_total Events that were counted while the event had a counter
# TYPE halprof_events_total counter
halprof_events_total{event=\"cycles\",core_type=\"P\"} 18446744073709551615
halprof_events_total{event=\"cycles\",core_type=\"E\"} 7
# HELP halprof_event_enabled_seconds_total Time in which the agent counted, summed over CPUs
# TYPE halprof_event_enabled_seconds_total counter
halprof_event_enabled_seconds_total{event=\"cycles\"} 0.5
# HELP halprof_metric Value of a metric in the last interval
# TYPE halprof_metric gauge
halprof_metric{metric=\"IPC\"} NaN
halprof_metric{metric=\"a\"} +Inf
halprof_metric{metric=\"b\"} -Inf
halprof_metric{metric=\"c\"} 0.0000001
# HELP halprof_profiles_waiting_size_bytes Size of the profiles that wait on the disk to be sent
# TYPE halprof_profiles_waiting_size_bytes gauge
halprof_profiles_waiting_size_bytes 4096
";
    assert_eq!(encode(&snapshot(points)).unwrap(), expected);
    assert_eq!(encode(&snapshot(Vec::new())).unwrap(), "");
}
