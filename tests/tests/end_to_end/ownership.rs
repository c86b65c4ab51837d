//! Ownership of counters: the driver reserves them with the HAL and does not touch counters that other software has
//! enabled.

use tests::{Lab, first_or_all};

/// Exit code for counters that other software uses.
const COUNTERS_TAKEN: i32 = 24;

/// Identity and its second select register. Each test uses the first ones, the soak all of them.
const CASES: [(&str, u32); 3] = [("haswell-4710mq", 0x187), ("amd-legacy", 0xC001_0001), ("zen4-7700x", 0xC001_0202)];
const USUAL: usize = 2;

#[test]
fn counters_that_the_hal_refuses_are_reported_and_not_accessed() {
    let mut lab = Lab::boot("haswell-4710mq").unwrap();
    for (identity, _) in first_or_all(&CASES, USUAL) {
        lab.become_processor(identity).unwrap();
        lab.install().unwrap();
        for status in [0xC000_009A, 0x8000_0011] {
            lab.wire.refuse_counters(Some(status)).unwrap();
            let before = lab.wire.accesses().unwrap();
            for verb in [&["start", "TotalIssues"][..], &["stat", "-a", "-e", "TotalIssues", "--", "cmd", "/c", "ver"]]
            {
                let ran = lab.client(verb).unwrap();
                assert_eq!(ran.code, COUNTERS_TAKEN, "{identity}: {}", ran.err);
                assert!(ran.err.contains("another driver has the counters"), "{}", ran.err);
                assert!(ran.err.contains(&format!("0x{status:08X}")), "{}", ran.err);
            }
            assert_eq!(lab.wire.accesses().unwrap(), before, "{identity}");
            lab.wire.refuse_counters(None).unwrap();
            assert!(!lab.wire.counters_reserved().unwrap(), "{identity}");
        }
        lab.client(&["start", "TotalIssues"]).unwrap().success().unwrap();
        assert!(lab.wire.counters_reserved().unwrap(), "{identity}");
        let info = lab.client(&["info"]).unwrap().success().unwrap();
        assert!(info.out.contains("reserved with the HAL"), "{}", info.out);
        lab.client(&["stop", "--all"]).unwrap().success().unwrap();
        assert!(!lab.wire.counters_reserved().unwrap(), "{identity}");
        // Unloading the driver frees them as well.
        lab.client(&["start", "TotalIssues"]).unwrap().success().unwrap();
        lab.uninstall().unwrap();
        lab.check_clean().unwrap();
    }
    lab.finish().unwrap();
}

#[test]
fn counters_that_another_owner_is_asked_to_release_are_waited_for_and_not_for_ever() {
    const MINUTE: u64 = 60_000;
    let mut lab = Lab::boot("haswell-4710mq").unwrap();
    for identity in ["haswell-4710mq", "zen4-7700x", "intel-hybrid"] {
        lab.become_processor(identity).unwrap();
        lab.install().unwrap();
        lab.wire.busy_counters(200).unwrap();
        lab.client(&["start", "TotalIssues"]).unwrap().success().unwrap();
        assert!(lab.wire.counters_reserved().unwrap(), "{identity}");
        lab.client(&["stop", "--all"]).unwrap().success().unwrap();
        lab.wire.busy_counters(MINUTE).unwrap();
        let ran = lab.client(&["start", "TotalIssues"]).unwrap();
        assert_eq!(ran.code, COUNTERS_TAKEN, "{identity}: {}", ran.err);
        assert!(ran.err.contains("0x80000011") && ran.err.contains("another driver has the counters"), "{}", ran.err);
        assert!(!lab.wire.counters_reserved().unwrap(), "{identity}");
        lab.uninstall().unwrap();
        lab.check_clean().unwrap();
    }
    lab.finish().unwrap();
}

#[test]
fn a_foreign_counter_is_reported_and_used_only_with_force() {
    let mut lab = Lab::boot("haswell-4710mq").unwrap();
    for &(identity, register) in first_or_all(&CASES, USUAL) {
        const THEIRS: u64 = 1 << 22 | 0x3_00C0;
        lab.become_processor(identity).unwrap();
        lab.install().unwrap();
        lab.wire.write_msr(1, register, THEIRS).unwrap();
        let ran = lab.client(&["start", "TotalIssues"]).unwrap();
        assert_eq!(ran.code, COUNTERS_TAKEN, "{identity}: {}", ran.err);
        assert!(ran.err.contains("counter 1 on CPU 1 is in use by another program"), "{}", ran.err);
        assert!(ran.err.contains("--force") && ran.err.contains("holds 0x4300c0"), "{}", ran.err);
        assert!(ran.err.contains(&format!("(MSR {register:#x})")), "{}", ran.err);
        assert!(ran.err.contains("Microsoft Defender"), "{}", ran.err);
        assert_eq!(lab.wire.read_msr(1, register).unwrap(), THEIRS, "{identity}");
        assert!(!lab.wire.counters_reserved().unwrap(), "{identity}");
        // A processor without such a counter needs no --force.
        lab.client(&["stat", "-a", "-C", "0", "-e", "TotalIssues", "--", "cmd", "/c", "ver"])
            .unwrap()
            .success()
            .unwrap();
        assert_eq!(lab.wire.read_msr(1, register).unwrap(), THEIRS, "{identity}");
        lab.client(&["start", "TotalIssues", "--force"]).unwrap().success().unwrap();
        assert_eq!(lab.enabled_counters().unwrap(), 2, "{identity}: ours alone");
        lab.uninstall().unwrap();
    }
    lab.finish().unwrap();
}

/// Another program writes a register of a running session: the select register that the session uses, or on Intel the
/// control of fixed counters. `stop` marks the count, names register and values, and fits a console.
#[test]
fn a_count_that_another_program_disturbed_has_a_mark_with_register_and_values() {
    const CASES: [(&str, u32, &str); 4] = [
        ("haswell-4710mq", 0x38D, "IA32_FIXED_CTR_CTRL (MSR 0x38d)"),
        ("alder-lake-p-12900h", 0x38D, "IA32_FIXED_CTR_CTRL (MSR 0x38d)"),
        ("amd-legacy", 0xC001_0000, "PERF_LEGACY_CTL0 (MSR 0xc0010000)"),
        ("zen4-7700x", 0xC001_0200, "PERF_CTL0 (MSR 0xc0010200)"),
    ];
    let mut lab = Lab::boot("haswell-4710mq").unwrap();
    for (identity, register, name) in CASES {
        lab.become_processor(identity).unwrap();
        lab.install().unwrap();
        lab.client(&["start", "TotalIssues"]).unwrap().success().unwrap();
        let expected = lab.wire.read_msr(1, register).unwrap();
        assert_ne!(expected, 0, "{identity}");
        lab.wire.write_msr(1, register, 0).unwrap();
        let json = lab.client(&["read", "--json"]).unwrap().success().unwrap().out;
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        // On the hybrid, each processor is in the row of its core type.
        let rows = json["events"].as_array().unwrap().iter();
        let processors: Vec<_> = rows.flat_map(|event| event["processors"].as_array().unwrap()).collect();
        assert_eq!(processors[0]["disturbed"], serde_json::Value::Null, "{identity}: {json}");
        assert_eq!(processors[1]["disturbed"]["register"], name, "{identity}: {json}");
        let stopped = lab.client(&["stop", "--all", "-A"]).unwrap().success().unwrap().out;
        let source = if identity.starts_with("alder") { "cpu_atom/TotalIssues/" } else { "TotalIssues" };
        let found = format!("  {source} on CPU 1: {name}");
        assert!(stopped.lines().any(|line| line.trim_end() == found), "{identity}: {stopped}");
        assert!(stopped.contains(&format!("had 0x0 instead of {expected:#x} after ")), "{identity}: {stopped}");
        assert!(stopped.contains("known to do this: "), "{identity}: {stopped}");
        assert!(stopped.lines().all(|line| line.trim_end().len() <= 80), "{identity}: {stopped}");
        // A count that was not disturbed has no mark.
        let stat = ["stat", "-a", "-e", "TotalIssues", "--", "cmd", "/c", "ver"];
        let ran = lab.client(&stat).unwrap().success().unwrap();
        assert!(!ran.err.contains("disturbed"), "{identity}: {}", ran.err);
        lab.uninstall().unwrap();
        lab.check_clean().unwrap();
    }
    lab.finish().unwrap();
}
