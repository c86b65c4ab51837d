//! Recordings of one process, and what its users wait for.

use bench_protocol::InterruptSite;
use recording::{Block, Reader};
use serde_json::Value;
use std::fs::File;
use tests::{Description, Lab, Workload, artifacts};

use crate::life::wait_for_enabled_counters;
use crate::record::symbol;

/// Cycles in a millisecond of the clocks, which the test holds and advances.
const PERIOD: u64 = 100_000;

/// Number and unit mask of cycles.
const CYCLES: (u16, u16) = (0x3C, 0);

/// Returns where the workload is interrupted in a function.
fn site(workload: &Workload, name: &str) -> InterruptSite {
    let description = &workload.description;
    let ip = description.functions.iter().find(|function| function.name == name).unwrap().address;
    InterruptSite { ip, user: true, process: description.process, thread: description.thread, weight: 1 }
}

/// Lets both processors run for some milliseconds, each at its place.
fn run(lab: &mut Lab, milliseconds: u64, places: [InterruptSite; 2]) {
    for (processor, place) in (0..).zip(places) {
        lab.wire.set_interrupt_sites(processor, &[place]).unwrap();
    }
    for _ in 0..milliseconds {
        lab.wire.advance(1).unwrap();
        for processor in 0..2 {
            lab.wire.run(processor, &[(CYCLES.0, CYCLES.1, PERIOD)], &[]).unwrap();
        }
    }
}

/// Returns the first row of a report, and the samples of the source that are recorded, filtered and lost.
fn report(lab: &Lab, options: &[&str]) -> (Value, [u64; 3]) {
    let arguments = [&["report", "C:\\one.rec", "--json", "--sort", "symbol"], options].concat();
    let report = lab.client(&arguments).unwrap().json().unwrap();
    let source = &report["sources"][0];
    let numbers = ["samples", "filtered", "lost"].map(|name| source[name].as_u64().unwrap_or_default());
    (source["rows"][0].clone(), numbers)
}

/// Checks an estimate of the cycles that a process had for these milliseconds, and that its error is a fifth at most.
fn check_estimate(lab: &Lab, milliseconds: u64) {
    let stat: Value = serde_json::from_slice(&std::fs::read(lab.wine().drive_c("one.json")).unwrap()).unwrap();
    let event = &stat["events"][0];
    let (found, error) = (event["scaled"].as_f64().unwrap(), event["error"].as_f64().unwrap());
    #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
    let truth = (milliseconds * PERIOD) as f64;
    assert!((found - truth).abs() <= error && error < 0.2 * truth, "{found} +- {error}: {stat}");
    assert_eq!(stat["of_processes"], true);
}

/// The serial phase takes 60 ms on one processor, the parallel one 40 ms on both.
#[test]
fn latency_ranks_the_serial_phase_first_where_the_overhead_ranks_the_parallel_one() {
    let mut lab = Lab::boot("haswell-4710mq").unwrap();
    lab.install().unwrap();
    let workload = lab.workload().unwrap();
    let process = workload.description.process.to_string();
    let arguments = ["record", "-e", "cycles@100k", "-p", &process, "-o", "C:\\one.rec"];
    let beside = [&arguments[..], &["--", "cmd", "/c", "pause"]].concat();
    lab.wire.hold_clocks(true).unwrap();
    let counts = |lab: &mut Lab| lab.enabled_counters().unwrap() == 2;
    let mut client = lab.client_running(&beside, "not 2 count", counts).unwrap();
    let [serial, parallel] = ["alpha", "beta"].map(|name| site(&workload, name));
    let other = InterruptSite { ip: 0xFFFF_F800_0001_0000, user: false, process: 4, thread: 8, weight: 1 };
    run(&mut lab, 60, [serial, other]);
    run(&mut lab, 40, [parallel, parallel]);
    lab.wire.hold_clocks(false).unwrap();
    drop(client.stdin.take()); // ends the pause
    assert!(client.wait().unwrap().success());
    wait_for_enabled_counters(&mut lab, 0);

    let (plain, numbers) = report(&lab, &[]);
    let (first, _) = report(&lab, &["--latency"]);
    assert_eq!([&plain["symbol"], &first["symbol"]], [&symbol("beta"), &symbol("alpha")], "{plain} {first}");
    let latency = first["latency"].as_f64().unwrap();
    assert!((0.57..0.63).contains(&latency), "{first}");
    let [recorded, filtered, lost] = numbers;
    assert_eq!(recorded + filtered + lost, 200, "every overflow");
    assert!((58..=60).contains(&filtered) && lost <= 2, "{numbers:?}");
    let file = File::open(lab.wine().drive_c("one.rec")).unwrap();
    for block in Reader::new(file).unwrap().map(Result::unwrap) {
        let is_own = |record: &protocol::SampleRecord| {
            record.parse().unwrap().sample().is_none_or(|sample| sample.process.to_string() == process)
        };
        assert!(!matches!(&block, Block::Samples(records) if !records.iter().all(is_own)), "{block:?}");
    }

    // The same for the count of the process: 700 of the 1,000 ms of both processors.
    let count = ["stat", "-e", "cycles", "-p", &process, "--json", "-o", "C:\\one.json", "--", "cmd", "/c", "pause"];
    lab.wire.hold_clocks(true).unwrap();
    let mut client = lab.client_running(&count, "not 2 count", counts).unwrap();
    run(&mut lab, 300, [serial, other]);
    run(&mut lab, 200, [parallel, parallel]);
    lab.wire.hold_clocks(false).unwrap();
    drop(client.stdin.take());
    assert!(client.wait().unwrap().success());
    check_estimate(&lab, 700);

    // It ends with the process.
    let mut client = lab.client_running(&arguments, "not 2 count", counts).unwrap();
    drop(workload);
    assert!(client.wait().unwrap().success());
    let ran = lab.client(&arguments).unwrap();
    assert!(ran.err.contains(&format!("error: no process has the ID {process}\n  try: tasklist")), "{}", ran.err);
    lab.finish().unwrap();
}

/// The child does the work, beside another process. The command ends before its last samples are fetched.
#[test]
fn a_command_is_recorded_with_the_process_that_it_starts_and_no_other() {
    let mut lab = Lab::boot("haswell-4710mq").unwrap();
    lab.install().unwrap();
    let other = lab.workload().unwrap();
    let program = format!("Z:{}", artifacts().unwrap().join("workload.exe").display()).replace('/', "\\");
    let arguments = ["record", "-e", "cycles@100k", "-o", "C:\\one.rec", "--", "cmd", "/c", &program, "describe"];
    let output = lab.wine().drive_c("lab/output.txt");
    let described = || {
        let text = std::fs::read_to_string(&output).unwrap_or_default();
        text.lines().find_map(|line| serde_json::from_str::<Description>(line).ok())
    };
    lab.wire.hold_clocks(true).unwrap();
    let mut client = lab.client_running(&arguments, "the child says nothing", |_| described().is_some()).unwrap();
    let child = described().unwrap();
    let of_child = InterruptSite { process: child.process, thread: child.thread, ..site(&other, "alpha") };
    run(&mut lab, 50, [of_child, site(&other, "beta")]);
    lab.wire.hold_clocks(false).unwrap();
    drop(client.stdin.take()); // ends the child
    assert!(client.wait().unwrap().success());
    wait_for_enabled_counters(&mut lab, 0);
    let (_, [recorded, filtered, lost]) = report(&lab, &[]);
    assert_eq!(recorded + filtered + lost, 100, "every overflow");
    assert!(
        (49..=50).contains(&recorded) && (49..=50).contains(&filtered) && lost <= 2,
        "{recorded} {filtered} {lost}"
    );
    // The count of the command is that of its child.
    std::fs::remove_file(&output).unwrap();
    let count = ["stat", "-e", "cycles", "--json", "-o", "C:\\one.json", "--", "cmd", "/c", &program, "describe"];
    lab.wire.hold_clocks(true).unwrap();
    let mut client = lab.client_running(&count, "the child says nothing", |_| described().is_some()).unwrap();
    let child = described().unwrap();
    let of_child = InterruptSite { process: child.process, thread: child.thread, ..site(&other, "alpha") };
    run(&mut lab, 250, [of_child, site(&other, "beta")]);
    lab.wire.hold_clocks(false).unwrap();
    drop(client.stdin.take());
    assert!(client.wait().unwrap().success());
    check_estimate(&lab, 250);
    drop(other);
    lab.finish().unwrap();
}
