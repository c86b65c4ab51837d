//! The shipped binary chooses and explains the interface of each processor.

use protocol::{Code, InfoReply};
use tests::{Lab, Reply, thousands};
use zerocopy::FromBytes;

use crate::life::connect;
use crate::sampling::Sampler;

#[test]
fn the_driver_chooses_the_expected_interface_for_every_identity() {
    let mut lab = Lab::boot("amd-legacy").unwrap();
    let mut probe = lab.probe().unwrap();
    for identity in cpuid_dumps::all() {
        lab.become_processor(identity.name).unwrap();
        lab.install().unwrap();
        let handle = connect(&mut probe);
        let reply = probe.control(handle, Code::Info as u32, "-", &size_of::<InfoReply>().to_string()).unwrap();
        let Reply::Done(bytes) = reply else { panic!("{}: {reply:?}", identity.name) };
        let info = InfoReply::read_from_bytes(&bytes).unwrap();
        let expected = identity.expected;
        let names = ["Default", "Emon", "Amd64", "NetBurst", "P6", "Pentium"];
        let told = (names[info.interface as usize], names[info.windows10 as usize]);
        assert_eq!(told, (expected.interface, expected.windows10), "{}: {}", identity.name, info.reason);
        assert_eq!((info.counters, info.width), (expected.counters.into(), expected.width.into()), "{}", identity.name);
        assert_eq!(probe.command(&format!("close {handle}")).unwrap(), "ok");
        lab.stop().unwrap();
    }
    drop(probe);
    lab.finish().unwrap();
}

#[test]
fn masked_counters_are_reported_and_no_register_is_accessed() {
    let mut lab = Lab::boot("amd-legacy").unwrap();
    for (identity, reason) in [
        ("amd-hyperv-masked", "hypervisor masks"),
        ("amd-kvm-hyperv-off", "hypervisor masks"),
        ("intel-kvm-hyperv-off", "says version 0"),
        ("intel-no-leaf-a", "no leaf 0xA"),
        ("intel-zero-counters", "zero counters"),
    ] {
        lab.become_processor(identity).unwrap();
        lab.install().unwrap();
        let info = lab.client(&["info"]).unwrap().success().unwrap();
        assert!(info.out.contains("Default") && info.out.contains(reason), "{identity}:\n{}", info.out);
        let ran = lab.client(&["start", "TotalIssues"]).unwrap();
        assert_eq!(ran.code, 7, "{}", ran.err);
        let accesses = lab.wire.accesses().unwrap();
        assert!(accesses.iter().all(|of| (of.rdmsr, of.wrmsr, of.rdpmc) == (0, 0, 0)), "{identity}: {accesses:?}");
        lab.uninstall().unwrap();
    }
    lab.finish().unwrap();
}

#[test]
fn guests_of_kvm_with_enlightenments_count_and_sample_only_if_the_hal_has_enabled_the_interrupt() {
    const RECORD: [&str; 6] = ["record", "-e", "TotalIssues", "--", "cmd", "/c"];
    let record: Vec<&str> = RECORD.into_iter().chain(["ver"]).collect();
    let mut lab = Lab::boot("amd-legacy").unwrap();
    for (identity, interface) in [("intel-kvm-hyperv", "Emon"), ("amd-kvm-hyperv", "Amd64")] {
        lab.become_processor(identity).unwrap();
        lab.install().unwrap();
        let info = lab.client(&["info"]).unwrap().success().unwrap().out;
        assert!(info.contains(&format!("Interface       {interface}\n")), "{identity}:\n{info}");
        assert!(info.contains("HAL  Default\n") && info.contains("KVM with Hyper-V enlightenments"), "{info}");
        lab.client(&["start", "TotalIssues"]).unwrap().success().unwrap();
        lab.wire.run(1, &[(0xC0, 0, 777_000)], &[]).unwrap();
        let counts = lab.client(&["stop", "--all", "--json"]).unwrap().success().unwrap().json().unwrap();
        let count = counts["events"][0]["processors"][1]["count"].as_u64().unwrap();
        assert_eq!(thousands(count), 777, "{identity}: {counts}");

        // The HAL has taken Default: it has enabled no entry, and registers no handler.
        let ran = lab.client(&record).unwrap();
        assert_eq!(ran.code, 7, "{identity}: {}", ran.err);
        assert!(ran.err.contains("because: KVM with Hyper-V enlightenments hides"), "{}", ran.err);
        assert!(ran.err.contains("performance interrupt of CPU") && ran.err.contains("0x10000;"), "{}", ran.err);
        (0..2).for_each(|processor| lab.wire.set_lvt(processor, 0xFE).unwrap());
        lab.wire.refuse_handler(true).unwrap();
        let ran = lab.client(&record).unwrap();
        lab.wire.refuse_handler(false).unwrap();
        assert_eq!(ran.code, 19, "{identity}: {}", ran.err);
        assert!(ran.err.contains("because: KVM with Hyper-V enlightenments hides"), "{}", ran.err);
        // A HAL that takes another interface enables the entry.
        let mut sampler = Sampler::start(&lab, 64, 10_000, 900);
        (0..4).for_each(|_| lab.wire.run(1, &[(0xC0, 0, 10_000)], &[]).unwrap());
        assert_eq!(sampler.stop(), [[0, 0, 0], [4, 0, 0]], "{identity}");
        drop(sampler);
        lab.uninstall().unwrap();
        lab.check_clean().unwrap();
    }
    lab.finish().unwrap();
}

#[test]
fn a_hygon_counts_as_a_processor_of_amd_with_the_option_alone() {
    let mut lab = Lab::boot("hygon-dhyana-3185").unwrap();
    for (option, interface, code) in [(None, "Default", 7), (Some(1), "Amd64", 0), (Some(0), "Default", 7)] {
        if let Some(value) = option {
            lab.set_option("HygonAsAmd", value).unwrap();
        }
        lab.install().unwrap();
        let info = lab.client(&["info"]).unwrap().success().unwrap();
        assert!(info.out.contains(&format!("Interface       {interface}\n")), "{option:?}:\n{}", info.out);
        assert_eq!(info.out.contains("/v HygonAsAmd"), interface == "Default", "{}", info.out);
        let ran = lab.client(&["start", "TotalIssues"]).unwrap();
        assert_eq!(ran.code, code, "{option:?}: {}", ran.err);
        if code == 0 {
            lab.client(&["stop", "--all"]).unwrap().success().unwrap();
        }
        lab.stop().unwrap();
    }
    lab.finish().unwrap();
}

#[test]
fn loading_the_driver_accesses_no_register() {
    let mut lab = Lab::boot("amd-legacy").unwrap();
    for identity in ["amd-legacy", "haswell-4710mq"] {
        lab.become_processor(identity).unwrap();
        lab.install().unwrap();
        lab.client(&["list"]).unwrap().success().unwrap();
        let accesses = lab.wire.accesses().unwrap();
        assert!(accesses.iter().all(|of| (of.rdmsr, of.wrmsr, of.rdpmc) == (0, 0, 0)), "{identity}: {accesses:?}");
        lab.uninstall().unwrap();
    }
    lab.finish().unwrap();
}
