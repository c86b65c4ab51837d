//! A recording of two CPUs, which `cargo xtask test --consumers` exports and opens with the programs of others.

use std::collections::BTreeSet;
use std::env;
use std::fs::{self, File};
use std::path::PathBuf;

use bench_protocol::TraceScript;
use report::{Contents, Detail};
use tests::Lab;

/// The file that the recording is copied to, in the environment.
const FILE: &str = "HALPROF_RECORDING";

/// One thread is interrupted on both CPUs, in functions and by callers that have names.
#[test]
fn two_cpus_record_a_thread_with_its_callers() {
    let mut lab = Lab::boot("zen4-7700x").unwrap();
    lab.install().unwrap();
    let workload = lab.workload().unwrap();
    let (sites, stacks): (Vec<_>, Vec<_>) = workload.description.traced_sites().unwrap().into_iter().unzip();
    for processor in 0..2 {
        lab.wire.set_interrupt_sites(processor, &sites).unwrap();
    }
    lab.wire.set_stacks(stacks).unwrap();
    lab.run_in_real_time().unwrap();
    let record = ["record", "-g", "-a", "--duration", "0.5s", "-e", "TotalIssues@4M", "-o", "C:\\two-cpus.rec"];
    lab.traced_client(&TraceScript::default(), &record).unwrap().success().unwrap();
    lab.run_by_script().unwrap();
    let recorded = lab.wine().drive_c("two-cpus.rec");
    let detail = Detail { processor: true, thread: true, stacks: true, parallelism: false };
    let contents = Contents::read(&mut File::open(&recorded).unwrap(), detail).unwrap();
    let cpus: BTreeSet<_> = contents.sample_counts.locations().map(|(location, _)| location.processor).collect();
    assert_eq!(cpus.len(), 2, "{cpus:?}");
    let file = env::var_os(FILE).map(PathBuf::from).expect("run `cargo xtask test --consumers`");
    fs::copy(recorded, file).unwrap();
    drop(workload);
    lab.finish().unwrap();
}
