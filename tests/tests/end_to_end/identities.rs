//! Each processor gets its interface, told with its reason, by the real binary.

use tests::Lab;

#[test]
fn the_driver_says_of_every_identity_what_its_leaves_ask_for() {
    let mut lab = Lab::boot("amd-legacy").unwrap();
    for identity in processors::all() {
        lab.wire.set_identity(identity.name).unwrap();
        lab.install().unwrap();
        let info = lab.client(&["info", "--json"]).unwrap().json().unwrap();
        let expected = identity.expected;
        let told = (info["interface"].as_str().unwrap(), info["windows10_interface"].as_str().unwrap());
        assert_eq!(told, (expected.interface, expected.windows10), "{}: {}", identity.name, info["reason"]);
        let told = (info["counters"].as_u64().unwrap(), info["counter_width"].as_u64().unwrap());
        assert_eq!(told, (expected.counters.into(), expected.width.into()), "{}", identity.name);
        lab.client(&["uninstall"]).unwrap().success().unwrap();
    }
    lab.finish().unwrap();
}

#[test]
fn where_counters_are_masked_the_reason_is_told_and_no_register_is_touched() {
    for (identity, reason) in [
        ("amd-hyperv-masked", "hypervisor masks"),
        ("intel-no-leaf-a", "no leaf 0xA"),
        ("intel-zero-counters", "zero counters"),
    ] {
        let mut lab = Lab::boot(identity).unwrap();
        lab.install().unwrap();
        let info = lab.client(&["info"]).unwrap().success().unwrap();
        assert!(info.out.contains("Default") && info.out.contains(reason), "{identity}:\n{}", info.out);
        let ran = lab.client(&["start", "Time"]).unwrap();
        assert_eq!(ran.code, 7, "{}", ran.err);
        let accesses = lab.wire.accesses().unwrap();
        assert!(accesses.iter().all(|of| (of.rdmsr, of.wrmsr, of.rdpmc) == (0, 0, 0)), "{identity}: {accesses:?}");
        lab.finish().unwrap();
    }
}

#[test]
fn loading_touches_no_register_before_something_is_started() {
    for identity in ["amd-legacy", "haswell-4710mq"] {
        let mut lab = Lab::boot(identity).unwrap();
        lab.install().unwrap();
        lab.client(&["list"]).unwrap().success().unwrap();
        let accesses = lab.wire.accesses().unwrap();
        assert!(accesses.iter().all(|of| (of.rdmsr, of.wrmsr, of.rdpmc) == (0, 0, 0)), "{identity}: {accesses:?}");
        lab.finish().unwrap();
    }
}
