//! Tests of counts that another program disturbed.

use protocol::CountRecord;

use super::*;
use fake_system::disturbed;

fn system() -> FakeSystem {
    let driver = FakeDriver::default();
    let samples = |processor| CountRecord { samples: 3, ..count(0x13, processor, 1_000_000, SECOND) };
    driver.counts.replace(vec![samples(0), disturbed(samples(1))]);
    FakeSystem::running(driver)
}

const PROGRAMS: &str = "known to do this: HWiNFO, Core Temp, OCCT, ThrottleStop, Intel PCM";

#[test]
fn stat_marks_the_count_and_says_below_what_was_changed() {
    let ran = stat(&system(), "-e TotalCycles");
    let lines: Vec<&str> = ran.err.lines().collect();
    assert!(lines.iter().any(|line| line.trim_start().starts_with("*2,000,000  TotalCycles")), "{}", ran.err);
    let note = lines.iter().position(|line| line.starts_with("* disturbed: ")).unwrap();
    assert_eq!(lines[note + 1], "  TotalCycles on CPU 1: IA32_FIXED_CTR_CTRL (MSR 0x38d)");
    assert_eq!(lines[note + 2], "    had 0x333 instead of 0x2 after 0.500 s");
    assert_eq!(lines[note + 3].trim_start(), PROGRAMS);
    assert!(lines.iter().all(|line| line.len() <= 80), "{}", ran.err);
    let per_cpu = stat(&system(), "-A -e TotalCycles").err;
    assert!(
        per_cpu.contains("CPU0      1,000,000  TotalCycles") && per_cpu.contains("\nCPU1     *1,000,000"),
        "{per_cpu}"
    );
}

#[test]
fn stat_as_csv_keeps_its_columns_and_warns() {
    let ran = stat(&system(), "--csv -e TotalCycles");
    assert!(ran.err.contains("2000000,,TotalCycles,"), "{}", ran.err);
    assert!(ran.err.contains("* disturbed: ") && ran.err.contains(PROGRAMS), "{}", ran.err);
}

#[test]
fn json_has_the_register_of_each_processor() {
    let counts = run(&system(), "stop --all --json").json();
    let event = &counts["events"][0];
    assert_eq!((&event["disturbed"], &event["processors"][0]["disturbed"]), (&json!(true), &Value::Null));
    assert_eq!(
        event["processors"][1]["disturbed"],
        json!({
            "register": "IA32_FIXED_CTR_CTRL (MSR 0x38d)", "found": "0x333", "expected": "0x2",
            "found_after_seconds": 0.5, "known_writers": "HWiNFO, Core Temp, OCCT, ThrottleStop, Intel PCM"
        })
    );
}

#[test]
fn record_warns_and_the_report_of_its_file_names_the_register() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("app.rec");
    let path = file.to_str().unwrap();
    let ran = run_words(&system(), &["record", "-o", path, "-a", "--duration", "0.001s", "-e", "0x13"]);
    let warning = "warning: another program changed registers, and samples are missing or wrong\n  \
                   TotalCycles on CPU 1: IA32_FIXED_CTR_CTRL (MSR 0x38d)\n";
    assert!(ran.err.contains(warning) && ran.err.contains(PROGRAMS), "{}", ran.err);
    let report = run_words(&system(), &["report", path]).out;
    let line = "Disturbed  CPU 1: IA32_FIXED_CTR_CTRL (MSR 0x38d) had 0x333, not 0x2";
    assert!(report.lines().any(|one| one.split_whitespace().eq(line.split_whitespace())), "{report}");
    let json = run_words(&system(), &["report", "--json", path]).json();
    assert_eq!(json["sources"][0]["disturbed"][0]["changed_register"]["found"], "0x333");
}
