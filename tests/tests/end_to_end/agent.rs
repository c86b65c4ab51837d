//! The agent under Wine: what Prometheus would scrape is what the model executed.

use tests::{Agent, Lab};

const COUNTING: &str = "[counting]\nevents = [\"TotalIssues\"]\ninterval = \"1s\"\n";
const ISSUES: &str = "halprof_events_total{event=\"TotalIssues\"}";

fn execute(lab: &mut Lab, events: u64) {
    for processor in 0..2 {
        lab.wire.run(processor, &[(0xC0, 0, events)], &[]).unwrap();
    }
}

#[test]
fn what_is_scraped_is_the_ledger_and_gaps_and_restarts_are_seen() {
    let mut lab = Lab::boot("zen4-7700x").unwrap();
    lab.install().unwrap();
    let agent = Agent::start(&lab, COUNTING, 0).unwrap();
    agent.says("counting 1 events on 2 CPUs").unwrap();
    agent.reaches("halprof_counting", 1.0).unwrap();
    execute(&mut lab, 123_456);
    agent.reaches(ISSUES, 246_912.0).unwrap();
    assert_eq!(lab.ledger(0, 0xC0, 0).unwrap() + lab.ledger(1, 0xC0, 0).unwrap(), 246_912);
    agent.reaches("halprof_events_scaled_total{event=\"TotalIssues\"}", 246_912.0).unwrap();

    // Another session takes every counter, at once.
    let numbers: Vec<String> = (0x90..0x96).map(|event| format!("cpu/event={event:#x},umask=0x81/")).collect();
    lab.client(&["start", &numbers.join(",")]).unwrap().success().unwrap();
    agent.says("gave the counters to another session").unwrap();
    agent.reaches("halprof_counting", 0.0).unwrap();
    agent.reaches("halprof_gaps_total{reason=\"yielded\"}", 1.0).unwrap();
    execute(&mut lab, 1_000);
    lab.client(&["stop", "--all"]).unwrap().success().unwrap();
    agent.says("counting 1 events on 2 CPUs").unwrap();
    execute(&mut lab, 500);
    agent.reaches(ISSUES, 247_912.0).unwrap();

    // The driver is stopped: the agent closes its handle, and counts from zero when the driver runs again.
    lab.uninstall().unwrap();
    agent.says("waiting for the driver").unwrap();
    agent.reaches("halprof_gaps_total{reason=\"driver\"}", 1.0).unwrap();
    lab.install().unwrap();
    agent.says("counting 1 events on 2 CPUs").unwrap();
    execute(&mut lab, 70);
    agent.reaches(ISSUES, 140.0).unwrap();
    drop(agent);

    // So does another agent. A killed one has left nothing.
    let agent = Agent::start(&lab, COUNTING, 0).unwrap();
    agent.says("counting 1 events on 2 CPUs").unwrap();
    execute(&mut lab, 7);
    agent.reaches(ISSUES, 14.0).unwrap();
    drop(agent);
    lab.finish().unwrap();
}
