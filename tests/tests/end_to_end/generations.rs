//! Features of some generations only: raw events.

use serde_json::Value;
use tests::{Lab, first_or_all};

/// An event that is in no table.
const RAW: &str = "cpu/event=0xa1,umask=0x04/";

/// Returns the name and the count of each event from `--json` output.
fn counts(json: &Value) -> Vec<(&str, u64)> {
    let events = json["events"].as_array().unwrap();
    events.iter().map(|event| (event["name"].as_str().unwrap(), event["count"].as_u64().unwrap())).collect()
}

#[test]
fn raw_events_count_together_with_table_events() {
    let mut lab = Lab::boot("amd-legacy").unwrap();
    let cases = ["netburst-cedarmill", "haswell-4710mq", "k8-clawhammer", "zen4-7700x", "intel-v1", "ice-lake-sp-6330"];
    for identity in first_or_all(&cases, 4) {
        lab.become_processor(identity).unwrap();
        lab.install().unwrap();
        let ran = lab.client(&["start", RAW, "TotalIssues"]).unwrap();
        if identity.starts_with("netburst") {
            assert_eq!(ran.code, 7, "{identity}: {}", ran.err);
            assert!(ran.err.contains("does not support raw events"), "{identity}: {}", ran.err);
            assert!(lab.wire.accesses().unwrap().iter().all(|of| of.wrmsr == 0), "{identity}");
        } else {
            ran.success().unwrap();
            let happened = [(0xA1, 0x04, 41), (0xC0, 0x00, 500), (0xA1, 0x05, 10_000)];
            lab.wire.run(0, &happened, &happened).unwrap();
            let read = lab.client(&["read", "--json"]).unwrap().json().unwrap();
            assert_eq!(counts(&read), [(RAW, 82), ("TotalIssues", 1_000)], "{identity}");
            let stopped = lab.client(&["stop", RAW, "--json"]).unwrap().json().unwrap();
            assert_eq!(counts(&stopped), [(RAW, 82)], "{identity}");
            let status = lab.client(&["status"]).unwrap().success().unwrap();
            assert!(status.out.contains("TotalIssues") && !status.out.contains(RAW), "{identity}: {}", status.out);
            lab.client(&["stop", "--all"]).unwrap().success().unwrap();
        }
        assert_eq!(lab.enabled_counters().unwrap(), 0, "{identity}");
        lab.stop().unwrap();
    }
    lab.finish().unwrap();
}

#[test]
fn a_raw_event_that_exceeds_the_register_is_refused_with_the_limits() {
    let mut lab = Lab::boot("amd-legacy").unwrap();
    for (identity, taken) in [("haswell-4710mq", false), ("k8-clawhammer", false), ("zen-1800x", true)] {
        lab.become_processor(identity).unwrap();
        lab.install().unwrap();
        let ran = lab.client(&["start", "cpu/event=0x1c2,umask=0x01/:u"]).unwrap();
        assert_eq!(ran.code, if taken { 0 } else { 7 }, "{identity}: {}", ran.err);
        assert!(taken || ran.err.contains("numbers below 0x100"), "{identity}: {}", ran.err);
        let refused = lab.client(&["start", "cpu/event=0xc0,any=1/"]).unwrap();
        assert_eq!(refused.code, 2, "{identity}: what could select another register is no term: {}", refused.err);
        lab.uninstall().unwrap();
    }
    lab.finish().unwrap();
}

#[test]
fn a_raw_event_is_sampled_and_reported_under_its_name() {
    let mut lab = Lab::boot("zen4-7700x").unwrap();
    lab.install().unwrap();
    lab.run_in_real_time().unwrap();
    let event = "cpu/event=0xc0,umask=0x00/@4M";
    let arguments = ["record", "-a", "--duration", "0.3", "-e", event, "-o", "C:\\raw.rec"];
    lab.client(&arguments).unwrap().success().unwrap();
    lab.run_by_script().unwrap();
    let report = lab.client(&["report", "C:\\raw.rec"]).unwrap().success().unwrap();
    assert!(report.out.contains("cpu/event=0xc0/"), "{}", report.out);
    lab.finish().unwrap();
}
