//! Ownership of counters: the driver reserves them with the HAL and does not touch counters that other software has
//! enabled.

use tests::{Lab, first_or_all};

/// Exit code for counters that other software uses.
const COUNTERS_TAKEN: i32 = 24;

/// Identity and its second select register. Each test uses the first ones, the soak all of them.
const CASES: [(&str, u32); 3] = [("haswell-4710mq", 0x187), ("amd-legacy", 0xC001_0001), ("zen4-7700x", 0xC001_0001)];
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
            for verb in [&["start", "TotalIssues"][..], &["stat", "-e", "TotalIssues", "--", "cmd", "/c", "ver"]] {
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
        assert!(ran.err.contains("--force") && ran.err.contains("0x4300c0"), "{}", ran.err);
        assert_eq!(lab.wire.read_msr(1, register).unwrap(), THEIRS, "{identity}");
        assert!(!lab.wire.counters_reserved().unwrap(), "{identity}");
        // A processor without such a counter needs no --force.
        lab.client(&["stat", "-C", "0", "-e", "TotalIssues", "--", "cmd", "/c", "ver"]).unwrap().success().unwrap();
        assert_eq!(lab.wire.read_msr(1, register).unwrap(), THEIRS, "{identity}");
        lab.client(&["start", "TotalIssues", "--force"]).unwrap().success().unwrap();
        assert_eq!(lab.enabled_counters().unwrap(), 2, "{identity}: ours alone");
        lab.uninstall().unwrap();
    }
    lab.finish().unwrap();
}
