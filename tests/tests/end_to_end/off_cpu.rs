//! Recordings of the times in which threads do not run, against the ledger of the scheduler.

use std::collections::BTreeMap;
use std::fs;

use bench_protocol::{Disorder, HalScript, LockScript, TraceScript, WaitLedger};
use tests::{Lab, Workload};

use crate::own_hal::{ledger, script};

const RECORDING: &str = "C:\\wait.rec";
/// Thread IDs of the threads that share a lock.
const LOCKING: [u32; 3] = [0x2328, 0x232C, 0x2330];

/// Returns the address of a function of the workload.
fn address(workload: &Workload, name: &str) -> u64 {
    workload.description.functions.iter().find(|function| function.name == name).unwrap().address
}

/// Returns what the recording has of each thread, from its lines in CSV: waited and ready in units of 100 ns, how often
/// it ran on, and the threads that made it ready.
fn recorded(lab: &Lab) -> BTreeMap<u32, WaitLedger> {
    lab.client(&["export", "--format", "csv", "-o", "C:\\wait.csv", RECORDING]).unwrap().success().unwrap();
    let text = fs::read_to_string(lab.wine().drive_c("wait.csv")).unwrap();
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let mut threads: BTreeMap<u32, WaitLedger> = BTreeMap::new();
    for line in lines {
        let fields: BTreeMap<&str, &str> = names.iter().copied().zip(line.split(',')).collect();
        if fields["kind"] != "off_cpu" {
            continue;
        }
        assert_eq!(fields["source"], "offcpu-time");
        let number = |name: &str| fields[name].parse::<u64>().unwrap();
        let thread = u32::try_from(number("thread")).unwrap();
        let one = threads.entry(thread).or_default();
        (one.process, one.thread) = (u32::try_from(number("process")).unwrap(), thread);
        let ticks = number("duration_ns") / 100;
        if fields["reason"] == "ready" {
            one.ready += ticks;
        } else {
            one.waited += ticks;
        }
        one.wakers.extend(fields["waker"].parse::<u32>());
    }
    threads
}

#[test]
fn the_waits_of_a_lock_have_their_time_stack_reason_and_the_holder_that_ended_them() {
    let mut lab = Lab::boot("haswell-4710mq").unwrap();
    lab.install().unwrap();
    let workload = lab.workload().unwrap();
    let process = workload.description.process;
    // Return addresses: `beta` calls `alpha`, which waits.
    let frames = ["alpha", "beta"].map(|name| address(&workload, name) + 4).to_vec();
    let lock = Some(LockScript { process, threads: LOCKING.to_vec(), frames });
    let disorder = Disorder { seed: 3, delay: 100, shuffle: 30, duplicates: 0, ..Disorder::default() };
    let script = script(HalScript { lock, ..HalScript::default() }, disorder);
    for backend in ["driver", "hal"] {
        let own = process.to_string();
        let options = ["--backend", backend, "-e", "TotalCycles@100k", "--off-cpu", "-p", &own];
        let line = [&["record", "--duration", "2s", "-o", RECORDING], &options[..]].concat();
        let ran = lab.traced_client(&script, &line).unwrap().success().unwrap();
        let recorded = recorded(&lab);
        let truth: BTreeMap<u32, WaitLedger> =
            ledger(&lab).waits.into_iter().filter(|one| one.process == process).map(|one| (one.thread, one)).collect();
        assert!(LOCKING.iter().all(|thread| truth[thread].switches > 5), "{backend}: {truth:?} {}", ran.err);
        for (thread, truth) in &truth {
            let truth = WaitLedger { switches: 0, ..truth.clone() };
            assert_eq!(recorded[thread], truth, "{backend} {thread}: {}", ran.err);
        }
        assert!(recorded.values().all(|one| one.process == process), "{recorded:?}");
        for thread in LOCKING {
            assert!(recorded[&thread].wakers.iter().all(|waker| LOCKING.contains(waker)), "{backend}: {recorded:?}");
        }
        assert!(ran.err.contains("off the CPU: "), "{}", ran.err);
        let sched = lab.client(&["sched", "--json", RECORDING]).unwrap().json().unwrap();
        for row in sched["threads"].as_array().unwrap() {
            let truth = &truth[&u32::try_from(row["thread"].as_u64().unwrap()).unwrap()];
            for (name, ticks) in [("wait_ms", truth.waited), ("ready_ms", truth.ready)] {
                let told = row[name].as_f64().unwrap() * 1e4;
                assert!((told - f64::from(u32::try_from(ticks).unwrap())).abs() < 1.0, "{backend}: {row} {truth:?}");
            }
            assert_eq!(row["switches"].as_u64(), Some(truth.switches), "{backend}: {row}");
        }

        let folded = ["export", "--format", "folded", "-e", "offcpu-time", RECORDING];
        let folded = lab.client(&folded).unwrap().success().unwrap().out;
        assert!(folded.contains("workload::functions::beta();workload::functions::alpha();"), "{folded}");

        // Both in one picture: the time in which the threads ran, and that of their waits.
        lab.client(&["flamegraph", "--wall-clock", "-o", "C:\\wall.svg", RECORDING]).unwrap().success().unwrap();
        let svg = fs::read_to_string(lab.wine().drive_c("wall.svg")).unwrap();
        let drawn = svg.split("<title>all (").nth(1).and_then(|rest| rest.split(' ').next()).unwrap().replace(',', "");
        let of = |row: &serde_json::Value| ["run_ms", "wait_ms", "ready_ms"].map(|name| row[name].as_f64().unwrap());
        let told: f64 = sched["threads"].as_array().unwrap().iter().flat_map(of).sum();
        let drawn = drawn.parse::<f64>().unwrap() / 1e6;
        assert!(svg.contains("<title>[waits] (") && (drawn / told - 1.0).abs() < 0.01, "{backend}: {drawn} {told}");
    }
    // Of lost switches the table has the number, too.
    let script = TraceScript { disorder: Disorder { seed: 4, lost_events: 5, ..Disorder::default() }, ..script };
    let own = process.to_string();
    let line = ["record", "-e", "TotalCycles@100k", "--off-cpu", "-p", &own, "--duration", "1s", "-o", RECORDING];
    let ran = lab.traced_client(&script, &line).unwrap().success().unwrap();
    assert!(ran.err.contains("warning: context switches were lost in "), "{}", ran.err);
    let sched = lab.client(&["sched", RECORDING]).unwrap().success().unwrap();
    assert!(sched.out.contains("Context switches were lost in "), "{}", sched.out);
    drop(workload);
    lab.finish().unwrap();
}
