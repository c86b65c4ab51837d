//! Tests of the file that `record` writes, and of when it ends.

use std::path::Path;

use recording::{Kept, Limits, Parts, Writer, existing_parts};

use super::*;

/// A limit in bytes that one block does not reach.
const MIN_SIZE: u64 = 10_000_000;

/// Words of a command that runs for a second.
#[cfg(not(windows))]
const SLEEP: [&str; 2] = ["sleep", "1"];
#[cfg(windows)]
const SLEEP: [&str; 4] = ["ping", "-n", "2", "127.0.0.1"];

impl Bench {
    fn old_file(&self) -> PathBuf {
        self.folder.path().join("app.rec.old")
    }

    /// Returns the number of parts that the recording has.
    fn parts(&self) -> usize {
        existing_parts(&self.file()).unwrap().len()
    }
}

#[test]
fn an_earlier_recording_is_kept_and_the_one_before_it_is_not() {
    let bench = Bench::new(&[&[sample(12, 1)]]);
    let ran = bench.record("-a --duration 1ms");
    assert!(!ran.err.contains("earlier"), "{}", ran.err);
    assert!(!bench.old_file().exists());
    fs::write(bench.file(), vec![0xEE; 1 << 20]).unwrap();
    fs::write(bench.old_file(), "older").unwrap();
    bench.system.driver.samples.borrow_mut().push_back(vec![sample(12, 2)]);
    let ran = bench.record("-a --duration 1ms");
    let line = format!("[ the earlier recording is kept as {} ]\n", bench.old_file().display());
    assert!(ran.err.contains(&line), "{}", ran.err);
    assert_eq!(fs::read(bench.old_file()).unwrap(), vec![0xEE; 1 << 20]);
    assert_eq!(bench.recording().samples(), [sample(12, 2)]);
}

#[test]
fn an_empty_file_is_not_kept() {
    let bench = Bench::new(&[]);
    fs::write(bench.file(), "").unwrap();
    bench.record("-a --duration 1ms").outcome.unwrap();
    assert!(!bench.old_file().exists());
}

/// Returns 20,000 samples, of which three fill a block, at a quarter of a second.
fn quarter(number: u64) -> Vec<SampleRecord> {
    (0..20_000).map(|index| sample(12, number * CLOCK / 4 + index)).collect()
}

#[test]
fn only_the_last_seconds_are_kept_and_the_reports_say_so() {
    let batches: Vec<Vec<SampleRecord>> = (0..12).map(quarter).collect();
    let bench = Bench::new(&batches.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let ran = bench.record("-a --duration 100ms --ring 65536 --keep-last 1s");
    let recording = bench.recording();
    let Kept { elapsed, removed } = recording.summary().kept.unwrap();
    // The last second has 80,000 samples. A block more is kept, and how many batches are in it depends on the load.
    assert!((80_000..=160_000).contains(&removed), "{removed}");
    let kept = batches.concat().split_off(removed.try_into().unwrap());
    assert!(recording.samples() == kept);
    let ticks = kept.last().unwrap().time() - kept[0].time();
    assert_eq!(elapsed, ticks * SECOND / CLOCK);
    let line = format!("[ kept the last {:.1} s; {},000 samples before", seconds(elapsed), removed / 1_000);
    assert!(
        ran.err.contains("[ recorded 240,000 samples ") && ran.err.contains(&line),
        "{line}: {:?}: {}",
        ran.outcome,
        ran.err
    );

    let file = bench.file();
    let json = run_words(&bench.system, &["report", file.to_str().unwrap(), "--json"]).json();
    assert_eq!(json["recording"]["kept"], json!({ "seconds": seconds(elapsed), "removed": removed }));
}

#[test]
fn a_recording_with_a_limit_that_it_did_not_reach_has_everything() {
    let bench = Bench::new(&[&[sample(12, 1)], &[sample(12, 9 * CLOCK)]]);
    for option in ["--max-size 10M", "--keep-last 20s", "--max-size 1G --keep-last 5s"] {
        bench.system.driver.samples.replace([vec![sample(12, 1)], vec![sample(12, 9 * CLOCK)]].into());
        let ran = bench.record(&format!("-a --duration 1ms {option}"));
        assert!(!ran.err.contains("removed"), "{}", ran.err);
        let recording = bench.recording();
        assert_eq!((recording.samples().len(), recording.summary().kept), (2, None), "{option}");
        assert_eq!(bench.parts(), 0);
    }
}

#[test]
fn parts_of_a_terminated_client_are_kept_with_their_recording() {
    let bench = Bench::new(&[&[sample(12, 1)]]);
    bench.record("-a --duration 1ms").outcome.unwrap();
    // As if it had been terminated: no summary, and the samples beside it.
    let session = bench.recording().session().clone();
    drop(Writer::new(fs::File::create(bench.file()).unwrap(), &session).unwrap());
    let limits = Limits { bytes: Some(MIN_SIZE), time: None };
    Parts::new(&bench.file(), &session, limits).samples(&[sample(12, 7)]).unwrap();
    assert_eq!(bench.parts(), 1);
    let file = bench.file();
    let script = |path: &Path| run_words(&bench.system, &["script", path.to_str().unwrap()]);
    let before = script(&file);
    assert!(before.out.contains("TotalCycles") && before.err.contains("was cut off"), "{}", before.err);

    bench.system.driver.samples.borrow_mut().push_back(vec![sample(12, 2)]);
    bench.record("-a --duration 1ms").outcome.unwrap();
    assert_eq!((bench.recording().samples(), bench.parts()), (vec![sample(12, 2)], 0));
    assert_eq!(script(&bench.old_file()).out, before.out);

    fs::remove_file(bench.file()).unwrap();
    Parts::new(&bench.file(), &session, limits).samples(&[sample(12, 7)]).unwrap();
    bench.record("-a --duration 1ms").outcome.unwrap();
    assert_eq!(bench.parts(), 0, "parts without their recording are deleted");
}

#[test]
fn branches_keep_an_earlier_recording_too() {
    let bench = Bench::new(&[]);
    fs::write(bench.file(), "old").unwrap();
    let file = bench.file();
    let ran = run_words(&bench.system, &["branches", "-a", "--duration", "1ms", "-o", file.to_str().unwrap()]);
    assert!(ran.err.starts_with("[ the earlier recording is kept as "), "{}", ran.err);
    assert_eq!(fs::read_to_string(bench.old_file()).unwrap(), "old");
}

#[test]
fn a_recording_that_cannot_be_kept_is_not_replaced() {
    let bench = Bench::new(&[]);
    fs::write(bench.file(), "old").unwrap();
    fs::create_dir(bench.old_file()).unwrap();
    fs::write(bench.old_file().join("in the way"), "").unwrap();
    let (exit, report) = bench.record("-a --duration 1ms").failure();
    assert_eq!(exit, Exit::Unwritten);
    assert!(report.starts_with("error: cannot write "), "{report}");
    assert_eq!(fs::read_to_string(bench.file()).unwrap(), "old");
    assert_eq!(bench.system.driver.inputs(Code::Stop).len(), 1);
}

#[test]
fn a_file_that_cannot_be_written_is_reported_before_the_command_runs() {
    let bench = Bench::new(&[]);
    let path = bench.folder.path().join("no").join("where");
    let words = ["record", "-o", path.to_str().unwrap(), "--", "no-such-command-anywhere"];
    let (exit, report) = run_words(&bench.system, &words).failure();
    assert_eq!(exit, Exit::Unwritten);
    assert!(report.starts_with("error: cannot write ") && report.contains("\n  try: -o with a file in"), "{report}");
    assert_eq!(bench.system.driver.inputs(Code::Stop).len(), 1);
}

#[test]
fn a_command_that_outlives_the_duration_continues() {
    let bench = Bench::new(&[]);
    let file = bench.file();
    let words = ["record", "-o", file.to_str().unwrap(), "--duration", "1ms", "--"];
    let ran = run_words(&bench.system, &words.into_iter().chain(SLEEP).collect::<Vec<_>>());
    assert_eq!(ran.outcome.unwrap(), Exit::Done.code());
    assert!(ran.err.contains("[ the command continues: process "), "{}", ran.err);
    let recording = bench.recording();
    assert_eq!((recording.summary().exit_code, recording.summary().interrupted_by_user), (None, false));
}

#[test]
fn a_command_that_ends_before_the_duration_ends_the_recording() {
    let bench = Bench::new(&[]);
    let ran = bench.record_command("--duration 600s");
    assert_eq!(ran.outcome.unwrap(), 3);
    assert!(!ran.err.contains("continues"), "{}", ran.err);
    assert_eq!(bench.recording().summary().exit_code, Some(3));
}

#[test]
fn record_without_a_command_says_what_it_records_and_how_to_end_it() {
    let bench = Bench::new(&[]);
    for (options, processors) in [("", "all CPUs"), ("-C 0,2-3 -e 2", "CPUs 0,2-3"), ("-C 1 -a", "CPU 1")] {
        bench.system.until_interrupt.set(Some(0));
        let ran = bench.record(options);
        assert_eq!(ran.outcome.unwrap(), Exit::Done.code());
        let line = format!("[ recording {processors} to {}; Ctrl-C ends it ]\n", bench.file().display());
        assert!(ran.err.contains(&line), "{options}: {}", ran.err);
    }
    let ran = bench.record("--duration 1ms");
    assert!(!ran.err.contains("Ctrl-C"), "{}", ran.err);
}
