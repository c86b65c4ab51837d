//! Sleep: counting continues afterwards, and results report the sleep.

use protocol::{Record, RecordKind};
use serde_json::Value;
use tests::{Lab, first_or_all, thousands};

use crate::sampling::Sampler;

/// Each test uses the first ones, the soak all of them.
const IDENTITIES: [&str; 4] = ["haswell-4710mq", "amd-legacy", "zen4-7700x", "intel-v1"];
const USUAL: usize = 2;

const INTERVAL: u32 = 10_000;

#[test]
fn counting_continues_after_a_sleep_and_reports_its_duration() {
    let mut lab = Lab::boot("amd-legacy").unwrap();
    for identity in first_or_all(&IDENTITIES, USUAL) {
        lab.become_processor(identity).unwrap();
        lab.install().unwrap();
        lab.client(&["start", "TotalIssues"]).unwrap().success().unwrap();
        lab.wire.run(1, &[(0xC0, 0, 1_000_000)], &[]).unwrap();
        // Other power notifications have no effect.
        for (first, second) in [(0, 0), (1, 0), (2, 1), (4, 0), (5, 0)] {
            lab.wire.notify_power(first, second).unwrap();
        }
        lab.wire.run(1, &[(0xC0, 0, 20_000)], &[]).unwrap();
        lab.wire.sleep().unwrap();
        lab.wire.wake(3_000).unwrap();
        lab.wire.run(1, &[(0xC0, 0, 300_000)], &[]).unwrap();
        let read: Value =
            serde_json::from_str(&lab.client(&["read", "--json"]).unwrap().success().unwrap().out).unwrap();
        let event = &read["events"][0];
        let counts = [&event["count"], &event["processors"][1]["count"]].map(|it| thousands(it.as_u64().unwrap()));
        assert_eq!(counts, [1_320; 2], "{identity}");
        let asleep = event["asleep_seconds"].as_f64().unwrap();
        assert!((3.0..60.0).contains(&asleep), "{identity}: {asleep}");
        let stopped = lab.client(&["stop", "--all"]).unwrap().success().unwrap();
        assert!(stopped.out.contains("The machine slept for "), "{identity}: {}", stopped.out);
        let info = lab.client(&["info"]).unwrap().success().unwrap();
        assert!(info.out.contains("once, for "), "{identity}: {}", info.out);
        lab.uninstall().unwrap();
        lab.check_clean().unwrap();
    }
    lab.finish().unwrap();
}

#[test]
fn sampling_continues_after_a_sleep_and_records_it_on_every_processor() {
    let mut lab = Lab::boot("amd-legacy").unwrap();
    for identity in first_or_all(&IDENTITIES, USUAL) {
        lab.become_processor(identity).unwrap();
        lab.install().unwrap();
        let mut sampler = Sampler::start(&lab, 64, INTERVAL, 900);
        for _ in 0..2 {
            lab.wire.run(0, &[(0xC0, 0, INTERVAL.into())], &[]).unwrap();
            lab.wire.sleep().unwrap();
            lab.wire.wake(500).unwrap();
        }
        lab.wire.run(0, &[(0xC0, 0, INTERVAL.into())], &[]).unwrap();
        let (records, _) = sampler.fetch(100);
        let of = |processor, kind: RecordKind| {
            let is_it = |record: &&Record| (record.processor(), record.kind()) == (processor, kind);
            records.iter().filter(is_it).count()
        };
        assert_eq!([0, 1].map(|processor| of(processor, RecordKind::Slept)), [2, 2], "{identity}");
        assert_eq!([0, 1].map(|processor| of(processor, RecordKind::Sample)), [3, 0], "{identity}");
        drop(sampler);
        lab.uninstall().unwrap();
        lab.check_clean().unwrap();
    }
    lab.finish().unwrap();
}

#[test]
fn an_idle_driver_accesses_no_register_across_a_sleep() {
    let mut lab = Lab::boot("haswell-4710mq").unwrap();
    lab.install().unwrap();
    let before = lab.wire.accesses().unwrap();
    lab.wire.sleep().unwrap();
    lab.wire.wake(10).unwrap();
    assert_eq!(lab.wire.accesses().unwrap(), before, "no register is its own");
    // A session can be stopped while the machine goes to sleep. None can be started: its values are tried first.
    lab.client(&["start", "TotalIssues"]).unwrap().success().unwrap();
    lab.wire.sleep().unwrap();
    let refused = lab.client(&["start", "BranchInstructions"]).unwrap();
    assert!(refused.code == 1 && refused.err.contains("is going to sleep"), "{}", refused.err);
    lab.client(&["stop", "TotalIssues"]).unwrap().success().unwrap();
    lab.wire.wake(10).unwrap();
    lab.client(&["start", "BranchInstructions"]).unwrap().success().unwrap();
    assert_eq!(lab.enabled_counters().unwrap(), 2);
    lab.wire.run(0, &[(0xC4, 0, 55_000)], &[]).unwrap();
    let read = lab.client(&["stop", "--all", "--json"]).unwrap().success().unwrap();
    let read: Value = serde_json::from_str(&read.out).unwrap();
    assert_eq!(thousands(read["events"][0]["count"].as_u64().unwrap()), 55);
    // Requests that need a register access are refused. Stopping one of two sessions that share a counter needs none.
    let [mut first, mut second] = [(); 2].map(|()| Sampler::start(&lab, 64, INTERVAL, 900));
    lab.wire.sleep().unwrap();
    for arguments in [
        &["record", "-a", "-e", "BranchInstructions", "--duration", "0.2s"][..],
        &["branches", "--duration", "0.2s"],
        &["control-area"],
    ] {
        let refused = lab.client(arguments).unwrap();
        assert!(refused.code == 1 && refused.err.contains("is going to sleep"), "{arguments:?}: {}", refused.err);
    }
    first.stop();
    lab.wire.wake(10).unwrap();
    lab.wire.run(1, &[(0xC0, 0, INTERVAL.into())], &[]).unwrap();
    assert_eq!(second.stop(), [[0; 3], [1, 0, 0]]);
    lab.finish().unwrap();
}
