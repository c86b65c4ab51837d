//! Processors that are added to the running machine.

use serde_json::Value;
use tests::{Lab, first_or_all};

use crate::sampling::Sampler;

/// The first two in each test, and all of them in the soak.
const IDENTITIES: [&str; 3] = ["amd-legacy", "haswell-4710mq", "intel-v1"];
const USUAL: usize = 2;

const INTERVAL: u32 = 10_000;

#[test]
fn what_counts_everywhere_counts_on_an_added_processor() {
    let mut lab = Lab::boot("amd-legacy").unwrap();
    for identity in first_or_all(&IDENTITIES, USUAL) {
        lab.become_processor(identity).unwrap();
        lab.wire.set_processors(2, 4).unwrap();
        lab.install().unwrap();
        lab.client(&["start", "TotalIssues", "Time"]).unwrap().success().unwrap();
        lab.client(&["start", "BranchInstructions", "-C", "0"]).unwrap().success().unwrap();
        for processor in [2, 3] {
            assert!(lab.wire.add_processor().unwrap(), "{identity}");
            lab.wire.run(processor, &[(0xC0, 0, 100 + u64::from(processor))], &[]).unwrap();
            lab.wire.tick(processor, 7).unwrap();
        }
        let read = lab.client(&["stop", "--all", "--json"]).unwrap().success().unwrap();
        let read: Value = serde_json::from_str(&read.out).unwrap();
        let counts = |name: &str| -> Vec<u64> {
            let event = read["events"].as_array().unwrap().iter().find(|event| event["name"] == name).unwrap();
            event["processors"].as_array().unwrap().iter().map(|one| one["count"].as_u64().unwrap()).collect()
        };
        assert_eq!(counts("TotalIssues"), [0, 0, 102, 103], "{identity}");
        assert_eq!(counts("Time"), [0, 0, 7, 7], "{identity}");
        assert_eq!(counts("BranchInstructions"), [0], "{identity}: it is on processor 0 alone");
        lab.uninstall().unwrap();
        lab.left_nothing().unwrap();
    }
    lab.finish().unwrap();
}

#[test]
fn what_samples_everywhere_samples_on_an_added_processor() {
    let mut lab = Lab::boot("amd-legacy").unwrap();
    for identity in first_or_all(&IDENTITIES, USUAL) {
        lab.become_processor(identity).unwrap();
        lab.wire.set_processors(1, 2).unwrap();
        lab.install().unwrap();
        let mut sampler = Sampler::start(&lab, 64, INTERVAL, 900);
        assert!(lab.wire.add_processor().unwrap(), "{identity}");
        for _ in 0..3 {
            lab.wire.run(1, &[(0xC0, 0, INTERVAL.into())], &[]).unwrap();
        }
        let (records, _) = sampler.fetch(10);
        assert_eq!(records.iter().map(|record| record.processor).collect::<Vec<_>>(), [1, 1, 1], "{identity}");
        assert_eq!(sampler.stop(), [[0, 0, 0], [3, 0, 0]], "{identity}");
        drop(sampler);
        lab.uninstall().unwrap();
        lab.left_nothing().unwrap();
    }
    lab.finish().unwrap();
}
