//! From the overflow to the report: a program with known functions, interrupted at places and frequencies that the
//! bench sets.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use recording::JoinedFile;
use report::{Column, Contents, Detail, Filter, SymbolFinder, SymbolIndex, Table, TableRow};
use tests::{Lab, SHARES, artifacts};

use crate::life::wait_for_enabled_counters;

/// TotalIssues.
const EVENT: u32 = 0;

/// Reads a recording on this system, with the symbols next to workload.exe.
fn read(file: &Path, columns: &[Column]) -> (Contents, Vec<TableRow>) {
    let contents =
        Contents::read(&mut File::open(file).unwrap(), Detail { thread: true, processor: true, ..Detail::default() })
            .unwrap();
    assert!(contents.damage.is_none(), "{:?}", contents.damage);
    let finder = SymbolFinder::new(vec![artifacts().unwrap()], None, None).unwrap();
    let filter = Filter::default();
    let symbol_index = SymbolIndex::new(&contents, &filter, &finder);
    let rows = Table::new(&contents, &symbol_index, EVENT, columns, &filter).sorted_rows();
    (contents, rows)
}

/// Returns the name of a function in the PDB.
pub fn symbol(name: &str) -> String {
    format!("workload::functions::{name}()")
}

fn row<'a>(rows: &'a [TableRow], name: &str) -> &'a TableRow {
    let mut found = rows.iter().filter(|row| row.symbol == Some(symbol(name)));
    found.next().unwrap_or_else(|| panic!("no {name} in {rows:#?}"))
}

#[test]
fn the_report_shows_the_true_shares_of_the_functions() {
    for identity in ["zen4-7700x", "haswell-4710mq"] {
        let mut lab = Lab::boot(identity).unwrap();
        lab.install().unwrap();
        let workload = lab.workload().unwrap();
        for processor in 0..2 {
            lab.wire.set_interrupt_sites(processor, &workload.description.interrupt_sites()).unwrap();
        }
        lab.run_in_real_time().unwrap();
        let file = lab.wine().drive_c("halprof.rec");
        let arguments = ["record", "-a", "--duration", "0.5s", "-e", "TotalIssues@4M", "-o", "C:\\halprof.rec"];
        let ran = lab.client(&arguments).unwrap().success().unwrap();
        lab.run_by_script().unwrap();
        assert!(ran.err.contains("recorded"), "{}", ran.err);

        let (contents, rows) = read(&file, &[Column::Process, Column::Module, Column::Symbol]);
        let samples = contents.sample_counts.total(EVENT).weight.samples;
        assert!(samples > 200, "{identity}: {samples}");
        for (name, percent) in SHARES {
            let row = row(&rows, name);
            assert_eq!(row.process, Some(workload.description.process), "{identity} {name}");
            assert!(row.module.as_deref().is_some_and(|module| module.contains("workload")), "{row:?}");
            let wanted = f64::from(percent) / 100.0;
            assert!((row.interval.low..=row.interval.high).contains(&wanted), "{identity}: {row:?}, not {wanted}");
        }

        // Compares each address with the bench's count. The last few samples may be lost at the stop.
        let (_, addresses) = read(&file, &[Column::Address]);
        let found: BTreeMap<u64, u64> =
            addresses.iter().map(|row| (row.address.unwrap(), row.weight.samples)).collect();
        let summary = contents.summary.expect("a whole recording");
        let mut missing: u64 = summary.counts.iter().map(|count| count.lost + count.throttled).sum();
        let interrupted = lab.interrupts_by_address().unwrap();
        assert!(found.keys().all(|address| interrupted.contains_key(address)), "{identity}: nothing else was there");
        for (address, times) in &interrupted {
            let samples = found.get(address).copied().unwrap_or_default();
            assert!(samples <= *times && times - samples <= missing, "{identity}: {address:#x}: {samples} of {times}");
            missing -= times - samples;
        }
        drop(workload);
        lab.finish().unwrap();
    }
}

#[test]
fn the_client_reports_exports_and_draws_its_recording() {
    let mut lab = Lab::boot("zen4-7700x").unwrap();
    lab.install().unwrap();
    let workload = lab.workload().unwrap();
    for processor in 0..2 {
        lab.wire.set_interrupt_sites(processor, &workload.description.interrupt_sites()).unwrap();
    }
    lab.run_in_real_time().unwrap();
    let recorded = ["record", "-e", "TotalIssues@4M", "-o", "C:\\halprof.rec", "--", "cmd", "/c", "exit 3"];
    assert_eq!(lab.client(&recorded).unwrap().code, 3, "the command's own code");
    let all = ["record", "-a", "--duration", "0.5s", "-e", "TotalIssues@4M", "-o", "C:\\halprof.rec"];
    lab.client(&all).unwrap().success().unwrap();
    lab.run_by_script().unwrap();

    let report = lab.client(&["report", "C:\\halprof.rec"]).unwrap().success().unwrap();
    for (name, _) in SHARES {
        assert!(report.out.contains(&symbol(name)), "no name is shortened in a pipe: {}", report.out);
    }
    assert!(report.out.contains("ntoskrnl.exe+0x1ed10") && !report.out.contains("[unknown]"), "{}", report.out);
    let json = lab.client(&["report", "C:\\halprof.rec", "--json"]).unwrap().json().unwrap();
    assert!(json.is_object());
    let folded = lab.client(&["export", "C:\\halprof.rec", "--format", "folded"]).unwrap().success().unwrap();
    assert!(
        folded.out.lines().any(|line| line.contains(&format!("workload.exe;{}", symbol("alpha")))),
        "{}",
        folded.out
    );
    let drawn = lab.client(&["flamegraph", "C:\\halprof.rec", "-o", "C:\\halprof.svg"]).unwrap();
    drawn.success().unwrap();
    let svg = std::fs::read_to_string(lab.wine().drive_c("halprof.svg")).unwrap();
    assert!(svg.starts_with("<?xml") && svg.contains("alpha"), "{svg}");
    drop(workload);
    lab.finish().unwrap();
}

#[test]
fn a_killed_recording_keeps_every_complete_block() {
    let mut lab = Lab::boot("amd-legacy").unwrap();
    lab.install().unwrap();
    lab.run_in_real_time().unwrap();
    let arguments = ["record", "-a", "--duration", "30s", "-e", "TotalIssues@1M", "-o", "C:\\halprof.rec"];
    let file = lab.wine().drive_c("halprof.rec");
    let _ = std::fs::remove_file(&file); // left by an earlier test
    // A few hundred samples.
    let has_begun = |_: &mut Lab| std::fs::metadata(&file).map_or(0, |file| file.len()) >= 32 << 10;
    let mut client = lab.client_running(&arguments, "nothing is written", has_begun).unwrap();
    client.kill().unwrap();
    client.wait().unwrap();
    wait_for_enabled_counters(&mut lab, 0);
    lab.run_by_script().unwrap();
    let contents =
        Contents::read(&mut File::open(file).unwrap(), Detail { processor: true, ..Detail::default() }).unwrap();
    assert!(contents.damage.is_some(), "it did not end by itself");
    assert!(contents.sample_counts.total(EVENT).weight.samples > 100, "what was written is there");
    lab.finish().unwrap();
}

#[test]
fn record_samples_cycles_at_one_kilohertz_by_default() {
    let mut lab = Lab::boot("haswell-4710mq").unwrap();
    lab.install().unwrap();
    lab.run_in_real_time().unwrap();
    let ran = lab.client(&["record", "-a", "--duration", "2s", "-o", "C:\\halprof.rec"]).unwrap().success().unwrap();
    lab.run_by_script().unwrap();
    assert!(ran.err.starts_with("[ sampling TotalCycles, about 1,000 samples a second on each CPU ]\n"), "{}", ran.err);
    let report = lab.client(&["report", "C:\\halprof.rec", "--json"]).unwrap().json().unwrap();
    let source = &report["sources"][0];
    assert_eq!(source["name"], "TotalCycles", "{report}");
    assert_eq!(source["events"][0]["frequency"], 1_000, "{report}");
    // The initial interval is 65,536, about 37,000 samples per second.
    let on_each = source["samples"].as_u64().unwrap() / 2;
    assert!((1_000..6_000).contains(&on_each), "{on_each} samples in 2 s\n{}", ran.err);
    for share in ["lost_share", "paused_share"] {
        assert!((0.0..=1.0).contains(&source[share].as_f64().unwrap()), "{share}: {report}");
    }
    lab.finish().unwrap();
}

/// Parts are deleted, appended and renamed while the system has rules of its own for files that are open.
#[test]
fn only_the_end_of_a_recording_is_kept() {
    let mut lab = Lab::boot("haswell-4710mq").unwrap();
    lab.install().unwrap();
    lab.run_in_real_time().unwrap();
    let arguments = ["record", "-a", "--duration", "4s", "--keep-last", "1s", "-o", "C:\\halprof.rec"];
    let file = lab.wine().drive_c("halprof.rec");
    let part = |number| file.with_file_name(format!("halprof.rec.part{number}"));
    let mut client = lab.client_running(&arguments, "there is one part", |_| part(2).exists()).unwrap();
    // It is read while it is written.
    let contents = Contents::read(&mut JoinedFile::open(&file).unwrap(), Detail::default()).unwrap();
    assert!(contents.damage.is_some() && contents.sample_counts.latest().is_some());
    assert!(client.wait().unwrap().success());
    lab.run_by_script().unwrap();
    assert!((1..9).all(|number| !part(number).exists()));
    let report = lab.client(&["report", "C:\\halprof.rec", "--json"]).unwrap().json().unwrap();
    let kept = &report["recording"]["kept"];
    let seconds = kept["seconds"].as_f64().unwrap();
    assert!((0.5..3.5).contains(&seconds) && kept["removed"].as_u64().unwrap() > 100, "{kept}");
    assert!(report["sources"][0]["samples"].as_u64().unwrap() > 100, "{report}");
    lab.finish().unwrap();
}
