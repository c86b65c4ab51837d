//! Counters of P cores that CPUID hides: the driver tries them, and counts with those that count.

use bench_protocol::{Counter, RegisterQuirk};
use serde_json::Value;
use tests::Lab;

const ALDER_LAKE: &str = "alder-lake-p-12900h";
const METRICS: [&str; 4] = ["Retiring", "Bad_Speculation", "Frontend_Bound", "Backend_Bound"];

/// Returns events of P cores that every general counter counts, and no other.
fn general(number: u32) -> Vec<String> {
    (0..number).map(|umask| format!("cpu_core/event=0xc4,umask={:#x}/", 0x10 + umask)).collect()
}

/// Runs `stat` on a P core and an E core.
fn stat(lab: &Lab, options: &[&str]) -> Value {
    let line = [&["stat", "--duration", "0.2s", "--json", "-o", "-"], options].concat();
    lab.client(&line).unwrap().success().unwrap().json().unwrap()
}

fn metric(json: &Value, name: &str) -> f64 {
    let metrics = json["metrics"].as_array().unwrap();
    metrics.iter().find(|one| one["name"] == name && one["core_type"] == "cpu_core").unwrap()["value"].as_f64().unwrap()
}

/// Returns whether slots divide into the metrics in these counts.
fn has_slots(json: &Value) -> bool {
    let names = json["events"].as_array().unwrap().iter().map(|event| event["name"].as_str().unwrap());
    names.into_iter().any(|name| name.contains("event=0x0,umask=0x8") || name.contains("PERF_METRICS"))
}

/// Returns the number of general counters that `info` shows of P cores.
fn general_counters(lab: &Lab) -> u32 {
    let info = lab.client(&["info"]).unwrap().success().unwrap().out;
    let row = info.lines().find(|line| line.starts_with("cpu_core")).unwrap();
    row.split_whitespace().nth(2).unwrap().parse().unwrap()
}

/// Checks that no event of `stat` waited for a counter.
fn check_whole(json: &Value, number: usize) {
    let events = json["events"].as_array().unwrap();
    assert_eq!(events.len(), number, "{json}");
    assert!(events.iter().all(|event| event["percent_running"].as_f64() == Some(100.0)), "{json}");
}

#[test]
fn level_1_is_that_of_perf_metrics_and_equals_the_ledger() {
    let mut lab = Lab::boot(ALDER_LAKE).unwrap();
    for identity in [ALDER_LAKE, "meteor-lake-155h"] {
        lab.run_by_script().unwrap();
        lab.become_processor(identity).unwrap();
        lab.install().unwrap();
        lab.run_in_real_time().unwrap();
        let json = stat(&lab, &["-M", "TopdownL1"]);
        assert!(has_slots(&json), "{identity}: {json}");
        // By the ledger, of all that occurred while the counter of slots was on.
        let parts = [0x80, 0x81, 0x82, 0x83].map(|umask| {
            let thousands = lab.ledger(0, 0x00, umask).unwrap().end() / 1_000;
            f64::from(u32::try_from(thousands).unwrap())
        });
        let slots: f64 = parts.iter().sum();
        assert!(slots > 1e3, "{identity}: {parts:?}");
        for (name, part) in METRICS.into_iter().zip(parts) {
            let (found, exact) = (metric(&json, name), 100.0 * part / slots);
            // Each reading rounds to 1/255, and the two ends of the session differ by a few events.
            assert!((found - exact).abs() < 0.5, "{identity}: {name} is {found}, not {exact}: {json}");
        }
        assert_eq!(lab.enabled_counters().unwrap(), 0, "{identity}");
        lab.uninstall().unwrap();
    }
    lab.finish().unwrap();
}

#[test]
fn eight_general_events_are_counted_at_once_and_take_no_turns() {
    let mut lab = Lab::boot(ALDER_LAKE).unwrap();
    lab.install().unwrap();
    let events = general(8);
    let mut start = vec!["start", "-C", "0"];
    start.extend(events.iter().map(String::as_str));
    lab.client(&start).unwrap().success().unwrap();
    let happened: Vec<(u16, u16, u64)> =
        (0..8).map(|umask| (0xC4, 0x10 + umask, 1_000_000 * u64::from(umask + 1))).collect();
    lab.wire.run(0, &happened, &[]).unwrap();
    let json = lab.client(&["stop", "--all", "--json"]).unwrap().success().unwrap().json().unwrap();
    let counts = json["events"].as_array().unwrap().iter().map(|event| event["count"].as_u64().unwrap() / 1_000_000);
    assert_eq!(counts.collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6, 7, 8], "{json}");
    lab.run_in_real_time().unwrap();
    check_whole(&stat(&lab, &["-e", &general(8).join(",")]), 8);
    let nine = stat(&lab, &["-e", &general(9).join(",")]);
    let shares = nine["events"].as_array().unwrap().iter().map(|event| event["percent_running"].as_f64().unwrap());
    assert!(shares.into_iter().any(|percent| percent < 100.0), "{nine}");
    assert_eq!(general_counters(&lab), 8);
    lab.finish().unwrap();
}

/// Makes a machine unkind.
type Change = fn(&mut Lab);

/// Registers of general counters 6 and 7.
const GENERAL: [u32; 6] = [0x18C, 0x18D, 0xC7, 0xC8, 0x4C7, 0x4C8];

/// The first start shows what does not work, and has to succeed without it.
#[test]
fn a_machine_whose_hidden_counters_do_not_work_counts_with_the_others_from_the_first_start_on() {
    let mut lab = Lab::boot(ALDER_LAKE).unwrap();
    let changes: [(&str, bool, Change); 3] = [
        ("only fixed counter 3 answers", true, |lab| lab.wire.set_faulting(&GENERAL).unwrap()),
        ("the global control register refuses all of them", false, |lab| {
            let bits = 1 << 48 | 1 << 35 | 0xC0;
            for processor in [0, 1] {
                lab.wire.write_msr(processor, 0x38F, 0).unwrap();
            }
            lab.wire.set_quirks(&[RegisterQuirk::Faults { register: 0x38F, bits }]).unwrap();
        }),
        ("none of them counts", false, |lab| {
            let still = [Counter::General(6), Counter::General(7), Counter::Fixed(3)].map(|counter| (counter, 0));
            lab.wire.set_movement(0, &still).unwrap();
        }),
    ];
    for (what, slots, change) in changes {
        lab.run_by_script().unwrap();
        lab.become_processor(ALDER_LAKE).unwrap();
        change(&mut lab);
        lab.install().unwrap();
        lab.run_in_real_time().unwrap();
        let json = stat(&lab, &["-M", "TopdownL1,IPC,Branch_MPKI,Cache_MPKI,Frequency"]);
        assert_eq!(has_slots(&json), slots, "{what}: {json}");
        let sum: f64 = METRICS.into_iter().map(|name| metric(&json, name)).sum();
        assert!((sum - 100.0).abs() < 1.0, "{what}: level 1 is {sum} %: {json}");
        check_whole(&stat(&lab, &["-e", &general(6).join(",")]), 6);
        let refused =
            lab.client(&["stat", "-e", &format!("{{{}}}", general(7).join(",")), "--duration", "0.1s"]).unwrap();
        assert!(refused.err.contains("6 fit together"), "{what}: {}", refused.err);
        assert_eq!(general_counters(&lab), 6, "{what}");
        assert_eq!(lab.enabled_counters().unwrap(), 0, "{what}");
        lab.uninstall().unwrap();
    }
    lab.finish().unwrap();
}
