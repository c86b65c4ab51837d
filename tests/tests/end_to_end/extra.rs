//! Events with an extra register: the client names its value, the driver chooses the register, and the model counts
//! only if the register selects something.

use serde_json::Value;
use tests::{Lab, thousands};

const READS: &str = "cpu/event=0xb7,umask=0x01,offcore_rsp=0x10001/";
const WRITES: &str = "cpu/event=0xb7,umask=0x01,offcore_rsp=0x10002/";
const CODE: &str = "cpu/event=0xb7,umask=0x01,offcore_rsp=0x10004/";
const MISSES: &str = "cpu/event=0xc6,umask=0x01,frontend=0x15/";
const LATENCY: &str = "cpu/event=0xcd,umask=0x01,ldlat=30/:p@4096";

/// Exit codes: usage; no free counter.
const USAGE: i32 = 2;

/// Returns name and count, in thousands, of each event from `--json` output.
fn rows(json: &Value) -> Vec<(String, u64)> {
    let row = |event: &Value| (event["name"].as_str().unwrap().to_owned(), thousands(event["count"].as_u64().unwrap()));
    json["events"].as_array().unwrap().iter().map(row).collect()
}

#[test]
fn each_value_is_counted_by_its_register_and_load_latency_is_recorded() {
    let mut lab = Lab::boot("skylake-6600k").unwrap();
    lab.install().unwrap();
    lab.client(&["start", READS, WRITES, MISSES]).unwrap().success().unwrap();
    // The second value is counted by the event of the other register.
    lab.wire.run(0, &[(0xB7, 0x01, 100_000), (0xBB, 0x01, 20_000), (0xC6, 0x01, 3_000)], &[]).unwrap();
    let status = lab.client(&["status"]).unwrap().success().unwrap();
    assert!(status.out.contains("offcore_rsp=0x10002") && status.out.contains("frontend=0x15"), "{}", status.out);
    let refused = lab.client(&["start", CODE]).unwrap();
    assert!(refused.err.contains("MSR_OFFCORE_RSP_0 (MSR 0x1a6) to be 0x10001"), "{}", refused.err);
    let counted = lab.client(&["start", "cpu/event=0xcd,umask=0x01,ldlat=30/"]).unwrap();
    assert_eq!(counted.code, USAGE, "{}", counted.err);
    assert!(counted.err.contains("precise samples"), "{}", counted.err);
    let counts = rows(&lab.client(&["stop", "--all", "--json"]).unwrap().json().unwrap());
    let expected = [(READS, 100), (WRITES, 20), (MISSES, 3)].map(|(name, count)| (name.to_owned(), count));
    assert_eq!(counts, expected);
    assert_eq!(lab.enabled_counters().unwrap(), 0);

    lab.run_in_real_time().unwrap();
    let arguments = ["record", "-a", "--duration", "0.2s", "-e", LATENCY, "-o", "C:\\latency.rec"];
    lab.client(&arguments).unwrap().success().unwrap();
    lab.run_by_script().unwrap();
    let report = lab.client(&["report", "C:\\latency.rec"]).unwrap().success().unwrap();
    assert!(report.out.contains("ldlat=30"), "{}", report.out);
    let written: u64 =
        lab.wire.ds_writes().unwrap().iter().flat_map(|of| of.records.iter().map(|(_, records)| *records)).sum();
    assert!(written > 0, "records of load latency");
    lab.finish().unwrap();
}
