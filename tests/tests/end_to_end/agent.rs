//! The agent under Wine: what Prometheus would scrape is what the model executed.

use std::fs;
use std::path::Path;

use tests::{Agent, Lab, agent_address, artifacts, configure, get, wait_until};

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
    agent.counts(ISSUES, 246_912).unwrap();
    let occurred = [0, 1].map(|processor| *lab.ledger(processor, 0xC0, 0).unwrap().start());
    assert_eq!(occurred, [123_456; 2]);
    agent.counts("halprof_events_scaled_total{event=\"TotalIssues\"}", 246_912).unwrap();

    // Another session takes every counter, at once.
    let numbers: Vec<String> = (0x90..0x96).map(|event| format!("cpu/event={event:#x},umask=0x81/")).collect();
    lab.client(&["start", &numbers.join(",")]).unwrap().success().unwrap();
    agent.says("gave the counters to another session").unwrap();
    agent.reaches("halprof_counting", 0.0).unwrap();
    agent.reaches("halprof_gaps_total{reason=\"yielded\"}", 1.0).unwrap();
    execute(&mut lab, 100_000);
    lab.client(&["stop", "--all"]).unwrap().success().unwrap();
    agent.says("counting 1 events on 2 CPUs").unwrap();
    execute(&mut lab, 50_000);
    agent.counts(ISSUES, 346_912).unwrap();

    // The driver is stopped: the agent closes its handle, and counts from zero when the driver runs again.
    lab.uninstall().unwrap();
    agent.says("waiting for the driver").unwrap();
    agent.reaches("halprof_gaps_total{reason=\"driver\"}", 1.0).unwrap();
    lab.install().unwrap();
    agent.says("counting 1 events on 2 CPUs").unwrap();
    execute(&mut lab, 70_000);
    agent.counts(ISSUES, 140_000).unwrap();
    drop(agent);

    // So does another agent. A killed one has left nothing.
    let agent = Agent::start(&lab, COUNTING, 0).unwrap();
    agent.says("counting 1 events on 2 CPUs").unwrap();
    execute(&mut lab, 70_000);
    agent.counts(ISSUES, 140_000).unwrap();
    drop(agent);

    // One that reads seldom tells a gap no later.
    let agent = Agent::start(&lab, "[counting]\nevents = [\"TotalIssues\"]\ninterval = \"1h\"\n", 0).unwrap();
    agent.says("counting 1 events on 2 CPUs").unwrap();
    lab.client(&["start", &numbers.join(",")]).unwrap().success().unwrap();
    agent.says("gave the counters to another session").unwrap();
    agent.reaches("halprof_counting", 0.0).unwrap();
    lab.client(&["stop", "--all"]).unwrap().success().unwrap();
    drop(agent);
    lab.finish().unwrap();
}

#[test]
fn a_client_that_is_killed_takes_its_agent_along() {
    let mut lab = Lab::boot("zen4-7700x").unwrap();
    lab.install().unwrap();
    let agent = Agent::start_by_client(&lab, COUNTING).unwrap();
    agent.reaches("halprof_counting", 1.0).unwrap();
    let address = agent.address().to_owned();
    drop(agent);
    wait_until("the agent runs on", || get(&address, "/metrics").is_err());
    lab.finish().unwrap();
}

/// Under Wine every file belongs to the account of the process, and no account is an administrator by its files. So an
/// installation is refused, and the tests create the service, which trusts the files of its own account.
#[test]
fn the_service_logs_stops_and_leaves_nothing_and_one_with_files_of_a_user_is_not_installed() {
    let mut lab = Lab::boot("zen4-7700x").unwrap();
    lab.install().unwrap();
    configure(&lab, COUNTING, 0).unwrap();
    let log = lab.wine().drive_c("agent.log");
    let _ = fs::remove_file(&log); // left by an earlier test
    let refused = lab.client(&["agent", "install", "--config", "C:\\agent.toml"]).unwrap();
    assert_eq!(refused.code, 2);
    let begin = "error: the service halprof-agent runs as SYSTEM, and must not use C:\\agent.toml\n  because: ";
    assert!(refused.err.starts_with(begin) && refused.err.contains("belongs to S-1-5-21-"), "{}", refused.err);
    assert_eq!(uninstall(&lab), "not installed; nothing to do\n", "a service was left");

    lab.wine().copy(&artifacts().unwrap().join("halprof-agent.exe"), "halprof-agent.exe").unwrap();
    let command = r"C:\halprof-agent.exe run --service --config C:\agent.toml";
    lab.wine().run("sc.exe", &["create", "halprof-agent", "binPath=", command]).unwrap().success().unwrap();
    lab.wine().run("sc.exe", &["start", "halprof-agent"]).unwrap().success().unwrap();
    says(&log, "counting 1 events on 2 CPUs");
    let text = fs::read_to_string(&log).unwrap();
    let address = agent_address(&text).unwrap();
    assert!(get(address, "/metrics").unwrap().contains("halprof_counting 1"));

    // The service closes its handle when the driver is to stop.
    lab.uninstall().unwrap();
    says(&log, "waiting for the driver");
    assert_eq!(uninstall(&lab), "service halprof-agent deleted\n");
    assert!(get(address, "/metrics").is_err(), "it still runs");

    // What makes it end is in the log.
    fs::write(lab.wine().drive_c("agent.toml"), "[counting]\n").unwrap();
    lab.wine().run("sc.exe", &["create", "halprof-agent", "binPath=", command]).unwrap().success().unwrap();
    lab.wine().run("sc.exe", &["start", "halprof-agent"]).unwrap();
    says(&log, "error: [counting] names neither an event nor a metric");
    assert_eq!(uninstall(&lab), "service halprof-agent deleted\n");
    lab.install().unwrap();
    lab.finish().unwrap();
}

/// Deletes the service and returns what was said.
fn uninstall(lab: &Lab) -> String {
    lab.client(&["agent", "uninstall"]).unwrap().success().unwrap().out.clone()
}

/// Waits until a log has this text.
fn says(log: &Path, text: &str) {
    wait_until(&format!("no {text} in {}", log.display()), || {
        fs::read_to_string(log).is_ok_and(|log| log.contains(text))
    });
}
