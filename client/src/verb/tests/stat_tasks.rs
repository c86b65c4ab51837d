//! Tests of `stat` for processes and threads, which the driver estimates from samples.

use std::collections::VecDeque;

use protocol::{EventRequest, LostRecord, SampleRecord, StartHeader, flags};

use super::*;
use crate::verb::stat::Unestimated;
use fake_system::sample;

/// A driver that has counted 4,000 instructions on CPU 0, and has these samples of them.
fn sampling(samples: &[SampleRecord]) -> FakeSystem {
    let driver = FakeDriver::default();
    driver.samples.replace(VecDeque::from([samples.to_vec()]));
    driver.counts.replace(vec![CountRecord { samples: 4, ..count(2, 0, 4_000, SECOND) }]);
    let system = FakeSystem::running(driver);
    let running = [(4, "System"), (12, "app.exe"), (16, "App.exe"), (20, "other.exe")];
    system.processes.replace(running.map(|(id, name)| (id, name.to_owned())).to_vec());
    system
}

fn four() -> FakeSystem {
    sampling(&[sample(12, 1), sample(4, 2), sample(16, 3), sample(20, 4)])
}

/// Runs `stat` with a command that exits with code 3, which is the process 12 and starts 16.
fn stat_command(system: &FakeSystem, options: &str) -> Run {
    system.starts.add(&[(12, true), (16, true)]);
    let line = format!("stat {options} -- {EXIT_3}");
    run_words(system, &line.split_whitespace().chain(["exit 3"]).collect::<Vec<_>>())
}

#[test]
fn the_count_of_processes_is_their_share_of_the_samples() {
    for (options, scaled, of) in [
        ("-p 12", 1_000, "process 12"),
        ("-p 12,20 --duration 10s", 2_000, "processes 12, 20"),
        ("--pid APP -p 12", 2_000, "processes 12, 16"),
        ("-p 4,12,16,20", 4_000, "processes 4, 12, 16, 20"),
        // The fake gives a thread the ID of its process, and samples are of thread 8.
        ("-t 12", 0, "thread 12"),
    ] {
        let line = |format: &str| format!("stat -e TotalIssues {options} --duration 0.01s {format}");
        let line = |format: &str| line(format).replace("--duration 10s --duration 0.01s", "--duration 0.01s");
        let text = run(&four(), &line("")).err;
        assert!(text.starts_with(&format!("\n Counts of {of}, on CPU 0, for ")), "{text}");
        assert!(text.contains(" of 4 samples: the share of these in what the CPUs counted.\n"), "{text}");
        assert!(
            text.contains("+- is half of the interval in which the true number lies in 95 of 100 cases.\n"),
            "{text}"
        );
        let event = &run(&four(), &line("--json -o -")).json()["events"][0];
        assert_eq!((&event["count"], &event["scaled"]), (&json!(scaled), &json!(scaled)), "{options}");
        let error = event["error"].as_f64().unwrap();
        assert!((1_000.0..4_000.0).contains(&error), "{options}: four samples tell little: {error}");
    }
}

#[test]
fn a_command_is_counted_with_what_it_starts_and_everything_with_a() {
    let system = four();
    let ran = stat_command(&system, "-e TotalIssues");
    assert_eq!(ran.outcome.as_ref().unwrap(), &3);
    assert!(ran.err.contains(" Counts of the command and what it started, on CPU 0, while "), "{}", ran.err);
    assert!(ran.err.contains("               2,000 +-"), "{}", ran.err);
    assert!(ran.err.contains("Estimated from 2 of 4 samples"), "{}", ran.err);
    let [start] = &system.driver.inputs(Code::Start)[..] else { panic!() };
    let (header, events) = StartHeader::read_from_prefix(start).unwrap();
    let event = EventRequest::read_from_prefix(events).unwrap().0;
    assert_eq!((header.flags & flags::MULTIPLEX, event.frequency), (0, 4_000), "{header:?}");

    let ran = stat_command(&four(), "-e TotalIssues -a");
    assert!(ran.err.contains(" Counts of CPU 0, system wide, while "), "{}", ran.err);
    assert!(ran.err.contains("               4,000  TotalIssues"), "{}", ran.err);
    // What is chosen is counted, beside a command too, and everything is less than that.
    let ran = stat_command(&four(), "-e TotalIssues -a -p 4");
    assert!(ran.err.contains("               1,000 +-"), "{}", ran.err);
    assert!(ran.err.contains("note: -p and -t choose processes and threads, and -a does not\n"), "{}", ran.err);
}

#[test]
fn intervals_count_the_whole_machine_and_are_refused_for_processes() {
    let ran = stat_command(&four(), "-e TotalIssues -I 20");
    assert!(!ran.err.contains("Estimated from"), "{}", ran.err);
    for options in ["-I 20 -p 12", "-I 20 -t 12"] {
        let (exit, report) = run(&four(), &format!("stat -e TotalIssues --duration 0.05s {options}")).failure();
        assert_eq!(exit, Exit::UnsupportedSource);
        assert!(report.starts_with(&format!("error: {}", Unestimated { option: "-I" })), "{report}");
    }
}

#[test]
fn samples_that_are_missing_are_told() {
    let lost: SampleRecord = LostRecord::new(5, 0, 0, 900).into();
    let system = sampling(&[sample(12, 1), lost]);
    system.driver.counts.borrow_mut()[0].lost = 900;
    let text = run(&system, "stat -e TotalIssues -p 12 --duration 0.01s").err;
    assert!(text.contains("\n900 samples are missing; the shares are those of the others.\n"), "{text}");
}

#[test]
fn what_is_too_short_for_samples_is_counted_on_the_whole_machine() {
    let ran = stat_command(&sampling(&[]), "-e TotalIssues");
    assert!(
        ran.err.starts_with("\n Counts of CPU 0, system wide, while ") && ran.err.contains("\n               4,000  T")
    );
    assert!(ran.err.contains("\nEverything that ran was counted: it was too short for a sample"), "{}", ran.err);
}
