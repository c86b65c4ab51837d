//! Tests of `top` without a terminal.

use std::collections::VecDeque;

use protocol::{LostRecord, SampleRecord};

use super::*;
use fake_system::{module, sample};

/// Creates a machine whose driver returns a batch of samples for each request, as long as there are any.
fn system(batches: usize) -> FakeSystem {
    let driver = FakeDriver::default();
    let lost = |number| -> SampleRecord { LostRecord::new(1, 1, 0, number).into() };
    let batch = vec![sample(12, 1), sample(12, 2), sample(4, 3), lost(2)];
    driver.samples.replace(VecDeque::from(vec![batch; batches]));
    driver.counts.replace(vec![CountRecord { samples: 9, lost: 2, ..count(0x13, 0, 200_000, SECOND) }]);
    let system = FakeSystem::running(driver);
    system.processes.replace(vec![(4, "System".into()), (12, "app.exe".into())]);
    system.modules.borrow_mut().insert(12, vec![module(0x40_1000, "C:\\app.exe")]);
    system
}

#[test]
fn top_without_a_terminal_prints_each_update() {
    let system = system(100);
    let ran = run(&system, "top --batch -n 2 --delay 100ms --limit 1");
    assert_eq!(ran.outcome.unwrap(), Exit::Done.code());
    let updates: Vec<&str> = ran.out.split("\n\n\n").filter(|update| !update.trim().is_empty()).collect();
    assert_eq!(updates.len(), 2, "{}", ran.out);
    let lines: Vec<&str> = updates[0].lines().collect();
    assert!(
        lines[0].starts_with("0.1 s: ") && lines[0].contains(" lost, paused 0.0 % of the time, client "),
        "{lines:?}"
    );
    assert!(lines[1].starts_with("TotalCycles: ") && lines[1].contains(", CPU 0 "), "{lines:?}");
    assert_eq!(lines[3], "Overhead  Process       Module   Symbol");
    assert_eq!(lines[5], "  66.67%  app.exe (12)  app.exe  app.exe+0x0");
    assert_eq!(lines.len(), 6, "--limit 1: {}", ran.out);
    assert!(
        ran.err.contains("samples (2 lost, none because a ring was full, paused 0.0 % of the time) in 0."),
        "{}",
        ran.err
    );
    assert!(ran.err.contains("; the client used 0."), "{}", ran.err);
    assert_eq!(system.driver.inputs(Code::Stop).len(), 1);
}

#[test]
fn ctrl_c_ends_top_with_a_stopped_session() {
    let system = system(5);
    system.until_interrupt.set(Some(3));
    let ran = run(&system, "top --batch");
    assert_eq!(ran.outcome.unwrap(), Exit::Done.code());
    assert!(ran.out.is_empty(), "no update is due: {}", ran.out);
    assert_eq!(system.driver.inputs(Code::Stop).len(), 1);
}

#[test]
fn an_error_while_samples_are_fetched_stops_the_session() {
    let system = system(5);
    system.driver.fail_samples_after.set(Some(2));
    let ran = run(&system, "top --batch");
    assert_eq!(ran.failure().0, Exit::Failure);
    assert_eq!(system.driver.inputs(Code::Stop).len(), 1);
}
