//! The agent under Wine: what Prometheus would scrape is what the model executed.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Child;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use tests::Lab;

/// The longest wait for what the agent does within a second or two.
const LIMIT: Duration = Duration::from_secs(30);

/// A running agent, which is killed when this is dropped.
struct Agent {
    child: Child,
    address: String,
    lines: Receiver<String>,
}

impl Drop for Agent {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Agent {
    fn start(lab: &Lab, counting: &str) -> Self {
        let text = format!("{counting}[prometheus]\nlisten = \"127.0.0.1:0\"\n");
        std::fs::write(lab.wine().drive_c("agent.toml"), text).unwrap();
        let mut child = lab.client_watched(&["agent", "run", "--config", "C:\\agent.toml"]).unwrap();
        let err = BufReader::new(child.stderr.take().unwrap());
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || err.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let line = lines.recv_timeout(LIMIT).unwrap();
        let address = line.strip_prefix("[ agent: metrics at http://").and_then(|rest| rest.strip_suffix("/metrics ]"));
        let address = address.unwrap_or_else(|| panic!("{line}")).to_owned();
        Self { child, address, lines }
    }

    /// Waits for a line.
    fn says(&self, text: &str) {
        let end = Instant::now() + LIMIT;
        let mut lines = Vec::new();
        while !lines.last().is_some_and(|line: &String| line.contains(text)) {
            let left = end.saturating_duration_since(Instant::now());
            lines.push(self.lines.recv_timeout(left).unwrap_or_else(|_| panic!("no line with {text} in {lines:#?}")));
        }
    }

    fn scrape(&self) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: agent\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    /// Returns the value of a sample.
    fn value(&self, name: &str) -> Option<f64> {
        let text = self.scrape();
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
    }

    /// Waits until a sample has a value.
    fn reaches(&self, name: &str, expected: f64) {
        let end = Instant::now() + LIMIT;
        while self.value(name) != Some(expected) {
            assert!(Instant::now() < end, "{name} is not {expected}: {}", self.scrape());
            thread::sleep(Duration::from_millis(100));
        }
    }
}

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
    let agent = Agent::start(&lab, COUNTING);
    agent.says("counting 1 events on 2 CPUs");
    agent.reaches("halprof_counting", 1.0);
    execute(&mut lab, 123_456);
    agent.reaches(ISSUES, 246_912.0);
    assert_eq!(lab.ledger(0, 0xC0, 0).unwrap() + lab.ledger(1, 0xC0, 0).unwrap(), 246_912);
    agent.reaches("halprof_events_scaled_total{event=\"TotalIssues\"}", 246_912.0);

    // Another session takes every counter, at once.
    let numbers: Vec<String> = (0x90..0x96).map(|event| format!("cpu/event={event:#x},umask=0x81/")).collect();
    lab.client(&["start", &numbers.join(",")]).unwrap().success().unwrap();
    agent.says("gave the counters to another session");
    agent.reaches("halprof_counting", 0.0);
    agent.reaches("halprof_gaps_total{reason=\"yielded\"}", 1.0);
    execute(&mut lab, 1_000);
    lab.client(&["stop", "--all"]).unwrap().success().unwrap();
    agent.says("counting 1 events on 2 CPUs");
    execute(&mut lab, 500);
    agent.reaches(ISSUES, 247_912.0);

    // The driver is stopped: the agent closes its handle, and counts from zero when the driver runs again.
    lab.uninstall().unwrap();
    agent.says("waiting for the driver");
    agent.reaches("halprof_gaps_total{reason=\"driver\"}", 1.0);
    lab.install().unwrap();
    agent.says("counting 1 events on 2 CPUs");
    execute(&mut lab, 70);
    agent.reaches(ISSUES, 140.0);
    drop(agent);

    // So does another agent. A killed one has left nothing.
    let agent = Agent::start(&lab, COUNTING);
    agent.says("counting 1 events on 2 CPUs");
    execute(&mut lab, 7);
    agent.reaches(ISSUES, 14.0);
    drop(agent);
    lab.finish().unwrap();
}
