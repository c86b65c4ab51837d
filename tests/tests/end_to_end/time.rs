//! Sampling by time, on machines whose counters are masked and on others.

use std::fs::File;

use bench_protocol::TimerMode;
use recording::Count;
use report::{Column, Contents, Detail, Filter, SymbolFinder, SymbolIndex, Table, TableRow};
use tests::{Lab, SHARES, artifacts};

use crate::record::symbol;

/// The index of ProfileTime.
const TIME: u32 = 0;

const FILE: &str = "C:\\time.rec";

/// Nanoseconds in an hour.
const HOUR: u64 = 3_600_000_000_000;

/// Boots a machine that executes the functions of workload.exe, and records what `arguments` say.
fn record(identity: &str, timers: TimerMode, arguments: &[&str]) -> (String, Contents, Vec<TableRow>, String) {
    let mut lab = Lab::boot(identity).unwrap();
    lab.wire.set_timers(timers).unwrap();
    lab.install().unwrap();
    let workload = lab.workload().unwrap();
    for processor in 0..2 {
        lab.wire.set_interrupt_sites(processor, &workload.description.interrupt_sites()).unwrap();
    }
    lab.run_in_real_time().unwrap();
    let all = [&["record", "-a", "--duration", "1s", "-o", FILE], arguments].concat();
    let ran = lab.client(&all).unwrap().success().unwrap();
    lab.run_by_script().unwrap();
    let mut file = File::open(lab.wine().drive_c("time.rec")).unwrap();
    let contents = Contents::read(&mut file, Detail { thread: true, processor: true, ..Detail::default() }).unwrap();
    assert!(contents.damage.is_none(), "{:?}", contents.damage);
    // The time of its creation is one of the clock of samples.
    let process = contents.processes.named("workload").next().unwrap();
    let age = contents.sample_counts.earliest().unwrap().checked_sub(process.created).unwrap();
    assert!(process.created > 0 && contents.duration(age) < HOUR, "{process:?} {age}");
    let finder = SymbolFinder::new(vec![artifacts().unwrap()], None, None).unwrap();
    let filter = Filter::default();
    let symbol_index = SymbolIndex::new(&contents, &filter, &finder);
    let rows = Table::new(&contents, &symbol_index, TIME, &[Column::Process, Column::Symbol], &filter).sorted_rows();
    let report = lab.client(&["report", FILE]).unwrap().success().unwrap().out;
    drop(workload);
    lab.finish().unwrap();
    (ran.err, contents, rows, report)
}

/// Returns the counts of ProfileTime.
fn counts(contents: &Contents) -> Vec<Count> {
    let summary = contents.summary.clone().expect("a whole recording");
    summary.counts.into_iter().filter(|count| count.event == TIME).collect()
}

#[test]
fn a_machine_whose_counters_are_masked_records_by_time_and_says_so() {
    for (identity, reason) in [
        ("amd-hyperv-masked", "Hyper-V runs underneath this Windows and hides the counters"),
        ("intel-no-leaf-a", "the processor has no counters that this driver knows"),
    ] {
        let (told, contents, rows, report) = record(identity, TimerMode::Clock, &[]);
        assert!(told.contains("sampling by time, 1,000 times a second on each CPU"), "{identity}: {told}");
        assert!(told.contains(reason), "{identity}: {told}");
        let counts = counts(&contents);
        assert_eq!(counts.len(), 2, "{identity}: one for each processor");
        for count in &counts {
            let taken = count.samples + count.lost + count.throttled;
            assert!(count.samples > 100 && taken <= count.count, "{identity}: {count:?}");
            assert!((900..5_000).contains(&count.count), "{identity}: {count:?}: a second in milliseconds");
        }
        for (name, percent) in SHARES {
            let row = rows.iter().find(|row| row.symbol == Some(symbol(name)));
            let row = row.unwrap_or_else(|| panic!("{identity}: no {name} in {rows:#?}"));
            let wanted = f64::from(percent) / 100.0;
            assert!((row.interval.low..=row.interval.high).contains(&wanted), "{identity}: {row:?}, not {wanted}");
            assert!(report.contains(name), "{identity}: {report}");
        }
    }
}

#[test]
fn time_and_counters_are_recorded_together_with_timers_that_are_late_or_merged() {
    const INTEL: &str = "haswell-4710mq";
    const AMD: &str = "zen4-7700x";
    const HYBRID: &str = "alder-lake-p-12900h";
    for (identity, timers) in [
        (AMD, TimerMode::Exact),
        (INTEL, TimerMode::Coarse),
        (AMD, TimerMode::Coarse),
        (HYBRID, TimerMode::Coarse),
        (INTEL, TimerMode::Late),
        (HYBRID, TimerMode::Merged),
    ] {
        let arguments = ["-e", "ProfileTime@10000", "-e", "TotalIssues@4M"];
        let (told, contents, _, _) = record(identity, timers, &arguments);
        assert!(!told.contains("sampling by time"), "{told}");
        let samples: u64 = counts(&contents).iter().map(|count| count.samples).sum();
        assert!(samples > 30, "{identity}, {timers:?}: {:?}", contents.summary);
        let all = contents.summary.clone().unwrap().counts;
        assert!(all.iter().any(|count| count.event == 1 && count.samples > 0), "{timers:?}: {all:?}");
        for count in counts(&contents) {
            let taken = count.samples + count.lost + count.throttled;
            assert!(taken <= count.count, "{timers:?}: {count:?}");
            if timers == TimerMode::Coarse {
                assert!(count.samples <= count.count * 64 / 1_000 + 2, "{count:?}: at the rate of the clock");
            }
        }
    }
}

#[test]
fn an_idle_processor_is_sampled_without_an_address() {
    let mut lab = Lab::boot("amd-hyperv-masked").unwrap();
    lab.install().unwrap();
    lab.run_in_real_time().unwrap();
    lab.client(&["record", "-a", "--duration", "0.5s", "-o", FILE]).unwrap().success().unwrap();
    lab.run_by_script().unwrap();
    let mut file = File::open(lab.wine().drive_c("time.rec")).unwrap();
    let contents = Contents::read(&mut file, Detail { thread: true, processor: true, ..Detail::default() }).unwrap();
    let finder = SymbolFinder::new(Vec::new(), None, None).unwrap();
    let filter = Filter::default();
    let symbol_index = SymbolIndex::new(&contents, &filter, &finder);
    let table = Table::new(&contents, &symbol_index, TIME, &[Column::Process, Column::Address], &filter);
    let rows: Vec<_> = table.rows().map(|row| (row.process, row.address)).collect();
    assert_eq!(rows, [(Some(0), Some(0))], "{table:#?}");
    assert!(table.total.weight.samples > 50, "{table:#?}");
    lab.finish().unwrap();
}

#[test]
fn stat_runs_its_command_without_counters_and_says_why() {
    let mut lab = Lab::boot("hyperv-root-6300u").unwrap();
    lab.install().unwrap();
    let ran = lab.client(&["stat", "--", "cmd", "/c", "exit 3"]).unwrap();
    assert_eq!(ran.code, 3, "{}", ran.err);
    for text in [
        "     <not supported>  cycles\n",
        " seconds time elapsed\n",
        " seconds user\n",
        " seconds sys\n",
        "<not supported>: cycles, instructions, branches, branch-misses\n  \
         because: Hyper-V runs underneath this Windows and hides the counters\n  try: turn off what uses Hyper-V",
    ] {
        assert!(ran.err.contains(text), "{}", ran.err);
    }
    lab.finish().unwrap();
}
