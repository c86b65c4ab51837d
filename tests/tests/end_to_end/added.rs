//! Processors added to the running machine.

use serde_json::Value;
use tests::{Lab, first_or_all, thousands};

use crate::sampling::Sampler;

/// Each test uses the first ones, the soak all of them.
const IDENTITIES: [&str; 3] = ["amd-legacy", "haswell-4710mq", "intel-v1"];
const USUAL: usize = 2;

const INTERVAL: u32 = 10_000;

#[test]
fn a_session_on_all_processors_counts_on_an_added_processor() {
    let mut lab = Lab::boot("amd-legacy").unwrap();
    for identity in first_or_all(&IDENTITIES, USUAL) {
        lab.become_processor(identity).unwrap();
        lab.wire.set_processors(2, 4).unwrap();
        lab.install().unwrap();
        lab.client(&["start", "TotalIssues", "Time"]).unwrap().success().unwrap();
        lab.client(&["start", "BranchInstructions", "-C", "0"]).unwrap().success().unwrap();
        for processor in [2, 3] {
            assert!(lab.wire.add_processor().unwrap(), "{identity}");
            lab.wire.run(processor, &[(0xC0, 0, 1_000 * (100 + u64::from(processor)))], &[]).unwrap();
        }
        let read = lab.client(&["stop", "--all", "--json"]).unwrap().success().unwrap();
        let read: Value = serde_json::from_str(&read.out).unwrap();
        let counts = |name: &str| -> Vec<u64> {
            let event = read["events"].as_array().unwrap().iter().find(|event| event["name"] == name).unwrap();
            event["processors"].as_array().unwrap().iter().map(|one| one["count"].as_u64().unwrap()).collect()
        };
        let issues: Vec<u64> = counts("TotalIssues").into_iter().map(thousands).collect();
        assert_eq!(issues, [0, 0, 102, 103], "{identity}");
        let time = counts("Time");
        assert_eq!(time.len(), 4, "{identity}");
        assert!(time[0] > time[2] && time[2] > 0, "{identity}: {time:?}, though processor 2 was added later");
        let branches: Vec<u64> = counts("BranchInstructions").into_iter().map(thousands).collect();
        assert_eq!(branches, [0], "{identity}: it is on processor 0 alone");
        lab.uninstall().unwrap();
        lab.check_clean().unwrap();
    }
    lab.finish().unwrap();
}

#[test]
fn a_session_on_all_processors_samples_on_an_added_processor() {
    let mut lab = Lab::boot("amd-legacy").unwrap();
    for identity in first_or_all(&IDENTITIES, USUAL) {
        lab.become_processor(identity).unwrap();
        lab.wire.set_processors(1, 8).unwrap();
        lab.install().unwrap();
        let mut sampler = Sampler::start(&lab, 64, INTERVAL, 900);
        // If an allocation fails, the session does not include the new processor, but includes the next one.
        for (processor, failing) in (1..8).zip([None, Some(4), Some(5), Some(6), Some(5), Some(4), None]) {
            lab.wire.fail_allocation(failing).unwrap();
            assert!(lab.wire.add_processor().unwrap(), "{identity}");
            lab.wire.fail_allocation(None).unwrap();
            for _ in 0..3 {
                lab.wire.run(processor, &[(0xC0, 0, INTERVAL.into())], &[]).unwrap();
            }
        }
        let (records, _) = sampler.fetch(30);
        let of_records: Vec<u32> = records.iter().map(protocol::Record::processor).collect();
        assert_eq!(of_records, [1, 1, 1, 7, 7, 7], "{identity}");
        assert_eq!(sampler.stop(), [[0, 0, 0], [3, 0, 0], [3, 0, 0]], "{identity}");
        drop(sampler);
        lab.uninstall().unwrap();
        lab.check_clean().unwrap();
    }
    lab.finish().unwrap();
}
