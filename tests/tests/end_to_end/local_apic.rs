//! The local APIC: sampling requires that Windows has enabled the interrupt, and the driver unmasks it after delivery.

use tests::Lab;

use crate::sampling::Sampler;

const INTERVAL: u32 = 10_000;

/// Exit code for a feature that the machine does not support.
const UNSUPPORTED: i32 = 7;

const MASKED: u32 = 1 << 16;
const OF_WINDOWS: u32 = 0xFE;

#[test]
fn sampling_is_refused_if_windows_has_not_enabled_the_interrupt() {
    let mut lab = Lab::boot("haswell-4710mq").unwrap();
    for (identity, x2apic) in [("haswell-4710mq", false), ("haswell-4710mq", true), ("zen4-7700x", false)] {
        lab.become_processor(identity).unwrap();
        lab.wire.set_apic(x2apic).unwrap();
        lab.install().unwrap();
        for entry in [MASKED, 0x4FE, 0xFD] {
            lab.wire.set_lvt(1, entry).unwrap();
            let ran = lab.client(&["record", "-e", "TotalIssues", "--", "cmd", "/c", "ver"]).unwrap();
            assert_eq!(ran.code, UNSUPPORTED, "{identity}: {}", ran.err);
            assert!(ran.err.contains("has not enabled the performance interrupt of CPU 1"), "{}", ran.err);
            assert!(ran.err.contains(&format!("{entry:#x}")), "{}", ran.err);
            assert_eq!(lab.wire.lvt(1).unwrap(), entry, "{identity}: left as it was");
            assert!(lab.wire.handler().unwrap().registration.is_none(), "{identity}");
        }
        lab.client(&["stat", "-a", "-e", "TotalIssues", "--", "cmd", "/c", "ver"]).unwrap().success().unwrap();
        lab.wire.set_lvt(1, OF_WINDOWS).unwrap();
        lab.uninstall().unwrap();
        lab.check_clean().unwrap();
    }
    lab.finish().unwrap();
}

#[test]
fn every_interrupt_is_delivered_even_if_the_hal_leaves_the_entry_masked() {
    let mut lab = Lab::boot("haswell-4710mq").unwrap();
    for (identity, x2apic) in [("haswell-4710mq", false), ("haswell-4710mq", true), ("intel-v1", false)] {
        lab.become_processor(identity).unwrap();
        lab.wire.set_apic(x2apic).unwrap();
        lab.wire.hal_unmasks(false).unwrap();
        lab.wire.set_lvt(0, OF_WINDOWS | MASKED).unwrap();
        lab.install().unwrap();
        let mut sampler = Sampler::start(&lab, 64, INTERVAL, 900);
        for processor in [0, 1] {
            for _ in 0..4 {
                lab.wire.run(processor, &[(0xC0, 0, INTERVAL.into())], &[]).unwrap();
            }
            assert_eq!(lab.wire.lvt(processor).unwrap(), OF_WINDOWS, "{identity}, x2APIC {x2apic}");
        }
        assert_eq!(sampler.stop(), [[4, 0, 0], [4, 0, 0]], "{identity}, x2APIC {x2apic}");
        drop(sampler);
        lab.uninstall().unwrap();
        lab.check_clean().unwrap();
    }
    lab.finish().unwrap();
}
