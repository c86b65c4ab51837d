//! A request interrupts only the processors that it concerns.

use bench_protocol::Interruptions;
use tests::{Lab, thousands, wait_until};

use crate::sampling::Sampler;

/// Processors of the machine.
const COUNT: u32 = 4;

/// Runs the client. Returns how often each processor was interrupted by a targeted call meanwhile, and by a broadcast.
fn interrupted(lab: &mut Lab, arguments: &[&str]) -> (Vec<u64>, Vec<u64>) {
    let before = lab.wire.interruptions().unwrap();
    lab.client(arguments).unwrap().success().unwrap();
    let after = lab.wire.interruptions().unwrap();
    let more =
        |of: fn(&Interruptions) -> u64| after.iter().zip(&before).map(move |(after, before)| of(after) - of(before));
    (more(|one| one.targeted).collect(), more(|one| one.broadcasts).collect())
}

#[test]
fn a_session_on_chosen_processors_interrupts_no_other_and_one_on_all_interrupts_all_together() {
    let mut lab = Lab::boot("haswell-4710mq").unwrap();
    lab.wire.set_processors(COUNT, COUNT).unwrap();
    lab.install().unwrap();
    // The client runs on any processor, and one that is on the only processor of a request is not interrupted.
    for request in [&["start", "TotalIssues", "-C", "1,3"][..], &["read"], &["stop", "--all"]] {
        let (targeted, broadcasts) = interrupted(&mut lab, request);
        assert!(targeted[1] > 0 && targeted[1] == targeted[3], "{request:?}: {targeted:?}");
        assert_eq!(([targeted[0], targeted[2]], &*broadcasts), ([0; 2], &[0; 4][..]), "{request:?}");
    }
    for request in [&["start", "TotalIssues", "-C", "2"][..], &["stop", "--all"]] {
        let (targeted, broadcasts) = interrupted(&mut lab, request);
        assert_eq!(([targeted[0], targeted[1], targeted[3]], &*broadcasts), ([0; 3], &[0; 4][..]), "{request:?}");
    }
    for request in [&["start", "TotalIssues"][..], &["stop", "--all"]] {
        let (targeted, broadcasts) = interrupted(&mut lab, request);
        assert_eq!(targeted, [0; 4], "{request:?}");
        assert!(
            broadcasts[0] > 0 && broadcasts.iter().all(|each| *each == broadcasts[0]),
            "{request:?}: {broadcasts:?}"
        );
    }
    lab.uninstall().unwrap();
    lab.check_clean().unwrap();
    lab.finish().unwrap();
}

#[test]
fn a_processor_that_cannot_be_addressed_is_reached_by_a_broadcast() {
    let mut lab = Lab::boot("haswell-4710mq").unwrap();
    lab.wire.set_processors(COUNT, COUNT).unwrap();
    lab.install().unwrap();
    for (nth, function) in [(1, "KeGetProcessorNumberFromIndex"), (2, "KeSetTargetProcessorDpcEx")] {
        lab.client(&["start", "TotalIssues", "-C", "1,3"]).unwrap().success().unwrap();
        lab.wire.run(3, &[(0xC0, 0, 42_000)], &[]).unwrap();
        lab.wire.fail_call(Some(nth)).unwrap();
        let before = lab.wire.interruptions().unwrap();
        let stopped = lab.client(&["stop", "--all", "--json"]).unwrap().json().unwrap();
        let after = lab.wire.interruptions().unwrap();
        assert_eq!(lab.wire.failed_call().unwrap().as_deref(), Some(function));
        lab.wire.fail_call(None).unwrap();
        let more = |of: fn(&Interruptions) -> u64| -> Vec<u64> {
            after.iter().zip(&before).map(|(after, before)| of(after) - of(before)).collect()
        };
        assert_eq!(more(|one| one.broadcasts), [1; 4], "{function}: instead of one call on two processors");
        let targeted = more(|one| one.targeted);
        assert!(targeted[0] + targeted[2] == 0 && targeted[1] > 0, "{function}: {targeted:?}, the others");
        let counts: Vec<_> = stopped["events"][0]["processors"].as_array().unwrap().iter().collect();
        assert!(counts.iter().any(|one| thousands(one["count"].as_u64().unwrap()) == 42), "{function}: {counts:?}");
    }
    lab.uninstall().unwrap();
    lab.check_clean().unwrap();
    lab.finish().unwrap();
}

#[test]
fn timers_expire_only_on_the_processors_of_a_session() {
    let mut lab = Lab::boot("haswell-4710mq").unwrap();
    lab.wire.set_processors(COUNT, COUNT).unwrap();
    lab.install().unwrap();
    for source in ["TotalIssues@4M", "ProfileTime@10000"] {
        let before = lab.wire.ticks().unwrap().ran;
        lab.run_in_real_time().unwrap();
        let file = "C:\\one.rec";
        lab.client(&["record", "-C", "1", "-e", source, "--duration", "0.5s", "-o", file]).unwrap().success().unwrap();
        lab.run_by_script().unwrap();
        let after = lab.wire.ticks().unwrap();
        let ran: Vec<u64> = after.ran.iter().zip(&before).map(|(after, before)| after - before).collect();
        assert!(ran[1] > 3, "{source}: {ran:?}");
        assert_eq!((ran[0], ran[2], ran[3], after.set), (0, 0, 0, 0), "{source}");
    }
    lab.uninstall().unwrap();
    lab.check_clean().unwrap();
    lab.finish().unwrap();
}

#[test]
fn the_interrupt_queues_a_dpc_only_if_a_request_waits() {
    const INTERVAL: u32 = 10_000;
    let mut lab = Lab::boot("amd-legacy").unwrap();
    lab.install().unwrap();
    let mut sampler = Sampler::start(&lab, 64, INTERVAL, 900);
    let queued = |lab: &mut Lab| -> u64 { lab.wire.interruptions().unwrap().iter().map(|one| one.untargeted).sum() };
    let sample = |lab: &mut Lab, count: u32| {
        (0..count).for_each(|_| lab.wire.run(0, &[(0xC0, 0, INTERVAL.into())], &[]).unwrap());
    };
    let before = queued(&mut lab);
    sample(&mut lab, 40);
    assert_eq!(queued(&mut lab), before, "the ring is more than half full, and no request waits");
    assert_eq!(sampler.fetch(100).0.len(), 40);
    sampler.wait(60_000, 100);
    wait_until("the request does not wait", || lab.wire.pending_requests().unwrap() > 0);
    sample(&mut lab, 32);
    assert_eq!(sampler.waited().len(), 32);
    assert_eq!(queued(&mut lab), before + 1);
    sample(&mut lab, 40);
    assert_eq!(queued(&mut lab), before + 1, "no request waits any more");
    drop(sampler);
    lab.uninstall().unwrap();
    lab.check_clean().unwrap();
    lab.finish().unwrap();
}
