//! A hypervisor that enumerates a register and does not have it: the driver handles the fault and refuses, or does
//! without. The lab records a violation for each register that the driver first accesses in another way.

use bench_protocol::RegisterQuirk;
use tests::Lab;

use crate::sampling::Sampler;

/// Exit code for a feature that the machine does not support.
const UNSUPPORTED: i32 = 7;

const INTERVAL: u32 = 10_000;

const GLOBAL_STATUS: u32 = 0xC000_0300;
const GLOBAL_CTL: u32 = 0xC000_0301;
const GLOBAL_STATUS_CLR: u32 = 0xC000_0302;

#[test]
fn a_register_that_faults_is_reported_by_name_and_nothing_is_held() {
    let mut lab = Lab::boot("haswell-4710mq").unwrap();
    for (identity, register, name) in [
        ("haswell-4710mq", 0x38F, "IA32_PERF_GLOBAL_CTRL (MSR 0x38f)"),
        ("kvm-8650u", 0x30B, "IA32_FIXED_CTR2 (MSR 0x30b)"),
        ("amd-kvm-perfmon-v2", 0xC001_0203, "PERF_CTR1 (MSR 0xc0010203)"),
        ("alder-lake-p-12900h", 0x309, "IA32_FIXED_CTR0 (MSR 0x309)"),
    ] {
        lab.become_processor(identity).unwrap();
        lab.wire.set_faulting(&[register]).unwrap();
        lab.install().unwrap();
        let mut accesses = None;
        for (verb, code) in [
            (&["stat", "-a", "-e", "TotalIssues", "--", "cmd", "/c", "ver"][..], 0),
            (&["start", "TotalIssues"], UNSUPPORTED),
            (&["record", "-e", "TotalIssues", "--", "cmd", "/c", "ver"], UNSUPPORTED),
        ] {
            let ran = lab.client(verb).unwrap();
            assert_eq!(ran.code, code, "{identity}: {}", ran.err);
            assert!(ran.err.contains("CPU 0 faulted (#GP) when it read"), "{}", ran.err);
            assert!(ran.err.contains(name) && ran.err.contains("\n  try: "), "{}", ran.err);
            assert!(!lab.wire.counters_reserved().unwrap(), "{identity}");
            assert_eq!(lab.enabled_counters().unwrap(), 0, "{identity}");
            // The fault is remembered: no register is accessed again.
            let now = lab.wire.accesses().unwrap();
            assert_eq!(accesses.get_or_insert_with(|| now.clone()), &now, "{identity}");
            assert_eq!(now[0].faulted, 1, "{identity}");
        }
        lab.wire.set_faulting(&[]).unwrap();
        lab.uninstall().unwrap();
        lab.check_clean().unwrap();
        // The driver that is loaded next tries again.
        lab.install().unwrap();
        lab.client(&["stat", "-a", "-e", "TotalIssues", "--", "cmd", "/c", "ver"]).unwrap().success().unwrap();
        lab.uninstall().unwrap();
    }
    lab.finish().unwrap();
}

#[test]
fn perfmon_v2_is_used_under_a_hypervisor_if_its_registers_answer_and_sampling_works_without_them() {
    let mut lab = Lab::boot("haswell-4710mq").unwrap();
    for faulting in [
        &[][..],
        &[GLOBAL_STATUS],
        &[GLOBAL_CTL],
        &[GLOBAL_STATUS_CLR],
        &[GLOBAL_STATUS, GLOBAL_CTL, GLOBAL_STATUS_CLR],
    ] {
        lab.become_processor("amd-kvm-perfmon-v2").unwrap();
        lab.wire.set_faulting(faulting).unwrap();
        lab.install().unwrap();
        let mut sampler = Sampler::start(&lab, 64, INTERVAL, 900);
        if !faulting.contains(&GLOBAL_CTL) {
            // Used, it lets the one counter through; otherwise it is as the processor's reset leaves it.
            let wanted = if faulting.is_empty() { 0b1 } else { 0b11_1111 };
            assert_eq!(lab.wire.read_msr(1, GLOBAL_CTL).unwrap(), wanted, "{faulting:x?}");
        }
        for processor in [0, 1] {
            for _ in 0..4 {
                lab.wire.run(processor, &[(0xC0, 0, INTERVAL.into())], &[]).unwrap();
            }
        }
        assert_eq!(sampler.stop(), [[4, 0, 0], [4, 0, 0]], "{faulting:x?}");
        drop(sampler);
        lab.uninstall().unwrap();
        lab.check_clean().unwrap();
    }
    lab.finish().unwrap();
}

const DEBUGCTL: u32 = 0x1D9;
const GLOBAL_STATUS_RESET: u32 = 0x390;
const PERFEVTSEL: std::ops::Range<u32> = 0x186..0x18E;

#[test]
fn bits_that_fault_or_do_not_stick_remove_their_feature_and_nothing_else() {
    const FREEZE_WHILE_SMM: u64 = 1 << 14;
    let mut lab = Lab::boot("skylake-6600k").unwrap();
    let stat = ["stat", "-a", "-e", "TotalIssues", "-e", "cpu/event=0xC4,umask=0x20/", "--", "cmd", "/c", "ver"];
    let [without_umask, without_smm] = [
        PERFEVTSEL.map(|register| RegisterQuirk::Faults { register, bits: 1 << 13 }).collect::<Vec<_>>(),
        vec![
            RegisterQuirk::Drops { register: DEBUGCTL, bits: FREEZE_WHILE_SMM },
            RegisterQuirk::Faults { register: GLOBAL_STATUS_RESET, bits: 0b11 << 58 },
        ],
    ];
    for (quirks, includes_smm) in [(&[][..], "false"), (&without_smm[..], "true")] {
        lab.become_processor("skylake-6600k").unwrap();
        lab.wire.set_quirks(quirks).unwrap();
        lab.install().unwrap();
        let counted = lab.client(&stat).unwrap();
        assert_eq!((counted.code, counted.out.contains('*')), (0, false), "{}{}", counted.out, counted.err);
        let info = lab.client(&["info"]).unwrap().success().unwrap().out;
        assert_eq!(info.contains("may include System Management Mode"), includes_smm == "true", "{info}");
        let json = lab.client(&["info", "--json"]).unwrap().success().unwrap().out;
        let wanted = format!("\"includes_smm\":{includes_smm}");
        assert!(json.replace(' ', "").contains(&wanted), "{json}");
        lab.uninstall().unwrap();
        lab.check_clean().unwrap();
    }
    // The unit mask of one event, in whatever select register: the other event counts.
    lab.become_processor("skylake-6600k").unwrap();
    lab.wire.set_quirks(&without_umask).unwrap();
    lab.install().unwrap();
    let refused = lab.client(&stat).unwrap();
    assert_eq!(refused.code, 0, "{}", refused.err);
    assert!(refused.err.contains("<not supported>  cpu/event=0xc4,umask=0x20/\n"), "{}", refused.err);
    assert!(!refused.err.contains("<not supported>  TotalIssues"), "{}", refused.err);
    assert!(
        refused.err.contains("faulted (#GP) for the value") && refused.err.contains("IA32_PERFEVTSEL"),
        "{}",
        refused.err
    );
    lab.client(&["stat", "-a", "-e", "TotalIssues", "--", "cmd", "/c", "ver"]).unwrap().success().unwrap();
    lab.uninstall().unwrap();
    lab.check_clean().unwrap();
    lab.finish().unwrap();
}
