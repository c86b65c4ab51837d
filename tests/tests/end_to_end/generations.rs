//! Features of some generations only: raw events.

use serde_json::Value;
use tests::{Lab, first_or_all, thousands};

/// An event that is in no table.
const RAW: &str = "cpu/event=0xa1,umask=0x04/";

/// Returns the name and the count, in thousands, of each event from `--json` output.
fn counts(json: &Value) -> Vec<(&str, u64)> {
    let events = json["events"].as_array().unwrap().iter();
    events.map(|event| (event["name"].as_str().unwrap(), thousands(event["count"].as_u64().unwrap()))).collect()
}

/// Counts two events on counters 0 and 1 of a Haswell, which are then full.
fn count_narrowed(lab: &mut Lab) {
    const EVENTS: [&str; 3] = [
        "cpu/event=0xa1,umask=0x01,counters=0x3/",
        "cpu/event=0xa1,umask=0x02,counters=0x3/",
        "cpu/event=0xa1,umask=0x04,counters=0x3/",
    ];
    // CYCLE_ACTIVITY.CYCLES_L1D_PENDING counts on counter 2 alone.
    let never = lab.client(&["start", "cpu/event=0xa3,umask=0x08,counters=0x3/"]).unwrap();
    assert!(never.code != 0 && never.err.contains("it can use counters=0x4"), "{}", never.err);
    assert!(never.err.contains("counters=0x3 was asked for"), "{}", never.err);
    let third = lab.client(&["start", &format!("{{{}}}", EVENTS.join(","))]).unwrap();
    assert!(third.code == 8 && third.err.contains("; 2 fit together"), "{}", third.err);
    lab.client(&["start", EVENTS[0], EVENTS[1]]).unwrap().success().unwrap();
    for processor in 0..2 {
        lab.wire.run(processor, &[(0xA1, 0x01, 30_000), (0xA1, 0x02, 5_000), (0xA1, 0x04, 7_000)], &[]).unwrap();
    }
    let stopped = lab.client(&["stop", "--all", "--json"]).unwrap().json().unwrap();
    assert_eq!(counts(&stopped), [("cpu/event=0xa1,umask=0x01/", 60), ("cpu/event=0xa1,umask=0x02/", 10)]);
}

/// Counts a thousand cycles with 32 FLOPs each on a Zen: more than one counter adds.
fn count_merged(lab: &mut Lab) {
    const FLOPS: &str = "cpu/event=0x03,umask=0x0f/";
    let info = lab.client(&["info"]).unwrap().success().unwrap();
    assert!(info.out.contains("\nWorkaround      event 0x003 takes two counters, which are merged\n"), "{}", info.out);
    lab.client(&["start", FLOPS, "TotalIssues"]).unwrap().success().unwrap();
    assert_eq!(lab.enabled_counters().unwrap(), 4, "on two processors; the odd counters count nothing themselves");
    for processor in 0..2 {
        let happened = [(0x03, 0x0F, 32_000), (0x76, 0x00, 1_000), (0xC0, 0x00, 4_000)];
        lab.wire.run(processor, &happened, &happened).unwrap();
    }
    let stopped = lab.client(&["stop", "--all", "--json"]).unwrap().json().unwrap();
    assert_eq!(counts(&stopped), [(FLOPS, 128), ("TotalIssues", 16)]);
    // Three pairs are all that six counters make.
    let four = [FLOPS, "cpu/event=0x03,umask=1/", "cpu/event=0x03,umask=2/", "cpu/event=0x03,umask=4/"].join(",");
    let four = lab.client(&["start", &format!("{{{four}}}")]).unwrap();
    assert!(four.code == 8 && four.err.contains("; 3 fit together"), "{}", four.err);
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
            let happened = [(0xA1, 0x04, 41_000), (0xC0, 0x00, 500_000), (0xA1, 0x05, 10_000)];
            lab.wire.run(0, &happened, &happened).unwrap();
            let read = lab.client(&["read", "--json"]).unwrap().json().unwrap();
            assert_eq!(counts(&read), [(RAW, 82), ("TotalIssues", 1_000)], "{identity}");
            let stopped = lab.client(&["stop", RAW, "--json"]).unwrap().json().unwrap();
            assert_eq!(counts(&stopped), [(RAW, 82)], "{identity}");
            let status = lab.client(&["status"]).unwrap().success().unwrap();
            assert!(status.out.contains("TotalIssues") && !status.out.contains(RAW), "{identity}: {}", status.out);
            lab.client(&["stop", "--all"]).unwrap().success().unwrap();
            match *identity {
                "haswell-4710mq" => count_narrowed(&mut lab),
                "zen4-7700x" => count_merged(&mut lab),
                _ => {}
            }
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
        let refused = lab.client(&["start", "cpu/event=0xc0,config1=1/"]).unwrap();
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
    let arguments = ["record", "-a", "--duration", "0.3s", "-e", event, "-o", "C:\\raw.rec"];
    lab.client(&arguments).unwrap().success().unwrap();
    lab.run_by_script().unwrap();
    let report = lab.client(&["report", "C:\\raw.rec"]).unwrap().success().unwrap();
    assert!(report.out.contains("cpu/event=0xc0/"), "{}", report.out);
    lab.finish().unwrap();
}
