//! Programs that others wrote, with the integrations of this repository, on the bench: google/benchmark, criterion, and
//! the header in the shape of lemire/counters. `cargo xtask test --consumers` builds them and runs this.
//!
//! Each iteration of these programs executes a known number of events, which the model's counters count.

#![cfg(not(windows))]
#![expect(clippy::expect_used, clippy::float_cmp, clippy::indexing_slicing, clippy::panic, reason = "tests")]
#![expect(clippy::unwrap_used, reason = "tests")]

mod agent;
mod layout;
mod recording;
mod steps;

use std::collections::BTreeMap;
use std::env;
use std::path::PathBuf;

use bench_protocol::{Scheduling, ThreadScript, UserRdpmc};
use serde_json::Value;
use tests::{Lab, ProgramOutput};

/// The folder of the programs, in the environment.
const FOLDER: &str = "HALPROF_CONSUMERS";

fn program(name: &str) -> String {
    let folder = env::var_os(FOLDER).map(PathBuf::from);
    folder.expect("run `cargo xtask test --consumers`").join(name).to_string_lossy().into_owned()
}

/// What happens to threads of the programs: everything, or nothing. Windows' functions execute instructions and
/// branches from the first call on, so calibration sees both.
fn scripts() -> [ThreadScript; 2] {
    let kind = Scheduling { kinds: vec![(0xC0, 0), (0xC2, 0)], ..Scheduling::default() };
    // Without RDPMC, as Windows has it, the counts of the kind one are undisturbed.
    let rdpmc = UserRdpmc::Works;
    let unkind = Scheduling { seed: 23, preempt: 5, migrate: 50, interrupt: 20, delay: 10, rdpmc, ..kind.clone() };
    [unkind, kind].map(|scheduling| ThreadScript { scheduling, ..ThreadScript::default() })
}

/// Options of google/benchmark: without the benchmark of two threads, and that one alone.
const ONE_THREAD: &str = "--benchmark_filter=-BM_overlap";
const TWO_THREADS: &str = "--benchmark_filter=BM_overlap";

/// Runs a program on a machine with the driver.
fn run(lab: &mut Lab, name: &str, script: &ThreadScript, arguments: &[&str]) -> ProgramOutput {
    lab.run_scheduled(&program(name), script, arguments).unwrap().0
}

fn with_driver() -> Lab {
    let mut lab = Lab::boot("zen4-7700x").unwrap();
    lab.install().unwrap();
    lab
}

/// Returns the counters of each benchmark in the JSON of google/benchmark.
fn benchmarks(out: &str) -> BTreeMap<String, Value> {
    let json: Value = serde_json::from_str(out).unwrap_or_else(|error| panic!("{error}\n{out}"));
    let rows = json["benchmarks"].as_array().unwrap().clone();
    rows.into_iter().map(|row| (row["name"].as_str().unwrap().to_owned(), row)).collect()
}

const GOOGLE: [&str; 2] = ["google-benchmark-dll.exe", "google-benchmark-static.exe"];

#[test]
fn google_benchmark_prints_the_counts_of_the_model() {
    let mut lab = with_driver();
    for (name, script) in GOOGLE.iter().zip(scripts()) {
        let counters = "--benchmark_perf_counters=INSTRUCTIONS,BRANCHES,DISTURBED";
        let arguments = ["--benchmark_format=json", counters, ONE_THREAD];
        let ran = run(&mut lab, name, &script, &arguments).success().unwrap();
        assert!(!ran.err.contains("not exact"), "{}", ran.err);
        let rows = benchmarks(&ran.out);
        for (name, instructions, branches) in [
            ("BM_instructions/1000/iterations:8", 1000.0, 0.0),
            ("BM_instructions/123456/iterations:8", 123_456.0, 0.0),
            ("BM_branches/iterations:4", 700.0, 90.0),
        ] {
            let row = &rows[name];
            let found = ["INSTRUCTIONS", "BRANCHES", "DISTURBED"].map(|counter| row[counter].as_f64().unwrap());
            assert_eq!(found, [instructions, branches, 0.0], "{name}: {row}\n{}", ran.err);
        }
    }
    // All threads share one pair of readings, so that a thread may subtract what the other one has stored.
    let arguments = ["--benchmark_format=json", "--benchmark_perf_counters=INSTRUCTIONS,DISTURBED", TWO_THREADS];
    let ran = run(&mut lab, GOOGLE[0], &ThreadScript::default(), &arguments).success().unwrap();
    let row = &benchmarks(&ran.out)["BM_overlap/iterations:1/threads:2"];
    assert!(row["DISTURBED"].as_f64().unwrap() > 0.0, "{row}\n{}", ran.err);
    assert!(ran.err.contains("not exact: threads of a benchmark share one pair of readings"), "{}", ran.err);
    assert!(ran.err.contains("halprof: 2 of 2 regions were disturbed"), "{}", ran.err);
    lab.finish().unwrap();
}

#[test]
fn google_benchmark_reports_every_region_that_is_not_exact() {
    let mut lab = with_driver();
    let script = ThreadScript { missing: vec!["ReadThreadProfilingData".to_owned()], ..ThreadScript::default() };
    let arguments = ["--benchmark_format=json", "--benchmark_perf_counters=INSTRUCTIONS,DISTURBED", ONE_THREAD];
    let ran = run(&mut lab, GOOGLE[0], &script, &arguments).success().unwrap();
    let lines = ran.err.lines().filter(|line| line.starts_with("halprof: the counts of a region are not exact: "));
    assert_eq!(lines.count(), 3, "{}", ran.err);
    assert!(ran.err.contains("halprof: 3 of 3 regions were disturbed: their counts are not exact"), "{}", ran.err);
    assert_eq!(benchmarks(&ran.out)["BM_branches/iterations:4"]["DISTURBED"].as_f64(), Some(0.25));
    lab.finish().unwrap();
}

#[test]
fn without_the_driver_every_program_says_so_and_none_crashes() {
    let lab = Lab::boot("zen4-7700x").unwrap();
    for name in GOOGLE {
        let ran = lab.wine().run(&program(name), &["--benchmark_perf_counters=INSTRUCTIONS"]).unwrap();
        let ran = ran.success().unwrap();
        assert!(ran.err.contains("halprof: the counters cannot be used: the driver is not installed"), "{}", ran.err);
    }
    let ran = lab.wine().run(&program("event-counters.exe"), &[]).unwrap();
    assert_eq!((ran.code, ran.out.as_str()), (1, "no counters: the driver is not installed\ntry: .\\client install\n"));
    let ran = lab.wine().run(&program("event-counters-example.exe"), &[]).unwrap().success().unwrap();
    assert!(ran.out.starts_with("no counters, times only: the driver is not installed"), "{}", ran.out);
    let ran = lab.wine().run(&program("criterion-benchmark.exe"), &["1000"]).unwrap();
    assert_eq!((ran.code, ran.err.as_str()), (1, "instructions cannot be counted: the driver is not installed\n"));
    lab.finish().unwrap();
}

#[test]
fn the_header_in_the_shape_of_lemires_counters_has_the_counts_of_the_model() {
    let mut lab = with_driver();
    for script in scripts() {
        let ran = run(&mut lab, "event-counters.exe", &script, &[]).success().unwrap();
        assert_eq!(ran.out, "2000.0 instructions, 300.0 branches, 10 exact, 0 disturbed\n");
    }
    lab.finish().unwrap();
}

/// Returns what criterion printed for a benchmark, without the confidence interval.
fn criterion_value(out: &str, name: &str) -> String {
    let (_, after) = out.split_once(name).unwrap_or_else(|| panic!("no {name} in {out}"));
    let (_, after) = after.split_once("time:").unwrap();
    let (interval, _) = after.split_once('[').unwrap().1.split_once(']').unwrap();
    let words: Vec<&str> = interval.split_whitespace().collect();
    assert!(
        words.len().is_multiple_of(3) && words.chunks(words.len() / 3).all(|part| part == &words[..part.len()]),
        "{out}"
    );
    words[..words.len() / 3].join(" ")
}

#[test]
fn criterion_prints_the_counts_of_the_model() {
    let mut lab = with_driver();
    for script in scripts() {
        let ran = run(&mut lab, "criterion-benchmark.exe", &script, &["700"]).success().unwrap();
        for name in ["exact", "plain"] {
            assert_eq!(criterion_value(&ran.out, name), "700.00 instr", "{}", ran.out);
        }
        assert!(!ran.err.contains("not exact"), "{}", ran.err);
    }
    lab.finish().unwrap();
}
