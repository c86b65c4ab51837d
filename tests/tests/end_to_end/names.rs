//! Events by their makers' names: the client asks for them, the driver counts them, and the model says what occurred.

use serde_json::Value;
use tests::{Lab, thousands};

/// Returns name and count, in thousands, of each event from `--json` output.
fn rows(json: &Value) -> Vec<(String, u64)> {
    let row = |event: &Value| (event["name"].as_str().unwrap().to_owned(), thousands(event["count"].as_u64().unwrap()));
    json["events"].as_array().unwrap().iter().map(row).collect()
}

fn row(name: &str, count: u64) -> (String, u64) {
    (name.to_owned(), count)
}

/// Loads that miss the last level cache, lines that replace others in the L1, instructions, and cycles.
const OCCURRED: [(u16, u16, u64); 4] =
    [(0xD1, 0x20, 1_000_000), (0x51, 0x01, 70_000), (0xC0, 0x00, 9_000_000), (0x3C, 0x00, 20_000_000)];

#[test]
fn names_of_the_maker_and_of_perf_count_what_occurred() {
    let mut lab = Lab::boot("skylake-6600k").unwrap();
    lab.install().unwrap();
    let events = ["mem_load_retired.l3_miss", "L1D.REPLACEMENT:u", "instructions", "CPU_CLK_UNHALTED.THREAD"];
    lab.client(&[&["start"][..], &events].concat()).unwrap().success().unwrap();
    lab.wire.run(0, &OCCURRED, &OCCURRED).unwrap();
    let read = lab.client(&["read", "MEM_LOAD_RETIRED.L3_MISS", "--json"]).unwrap().json().unwrap();
    assert_eq!(rows(&read), [row("MEM_LOAD_RETIRED.L3_MISS", 2_000)]);
    let all = lab.client(
        &[&["stop", "--json"][..], &["MEM_LOAD_RETIRED.L3_MISS", "L1D.REPLACEMENT", "TotalIssues", "TotalCycles"]]
            .concat(),
    );
    let mut counts = rows(&all.unwrap().json().unwrap());
    counts.sort();
    assert_eq!(
        counts,
        [
            row("L1D.REPLACEMENT", 70),
            row("MEM_LOAD_RETIRED.L3_MISS", 2_000),
            row("TotalCycles", 40_000),
            row("TotalIssues", 18_000),
        ]
    );
    let refused = lab.client(&["start", "MEM_TRANS_RETIRED.LOAD_LATENCY_GT_128"]).unwrap();
    assert!(refused.err.contains("load latency is measured by precise samples only"), "{}", refused.err);
    assert_eq!(lab.enabled_counters().unwrap(), 0);
    lab.client(&["start", "OFFCORE_RESPONSE:offcore_rsp=0x10002", "FRONTEND_RETIRED.DSB_MISS"])
        .unwrap()
        .success()
        .unwrap();
    lab.wire.run(0, &[(0xB7, 0x01, 33_000), (0xC6, 0x01, 7_000)], &[]).unwrap();
    let stopped = rows(&lab.client(&["stop", "--all", "--json"]).unwrap().json().unwrap());
    assert_eq!(
        stopped,
        [row("cpu/event=0xb7,umask=0x01,offcore_rsp=0x10002/", 33), row("cpu/event=0xc6,umask=0x01,frontend=0x11/", 7),]
    );
    lab.finish().unwrap();
}

#[test]
fn on_a_hybrid_a_name_counts_on_each_core_type_that_has_it() {
    let mut lab = Lab::boot("alder-lake-p-12900h").unwrap();
    lab.install().unwrap();
    lab.client(&["start", "BR_MISP_RETIRED.ALL_BRANCHES", "MEM_LOAD_RETIRED.L3_MISS"]).unwrap().success().unwrap();
    for processor in [0, 1] {
        lab.wire.run(processor, &[(0xC5, 0x00, 10_000), (0xD1, 0x20, 500_000)], &[]).unwrap();
    }
    let counts = rows(&lab.client(&["stop", "--all", "--json"]).unwrap().json().unwrap());
    let expected =
        [row("cpu_core/event=0xc5/", 10), row("cpu_core/event=0xd1,umask=0x20/", 500), row("cpu_atom/event=0xc5/", 10)];
    assert_eq!(counts, expected, "another client does not know which of the names was typed");
    lab.finish().unwrap();
}
