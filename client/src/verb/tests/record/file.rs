//! Tests of the file that `record` writes, and of when it ends.

use super::*;

/// Words of a command that runs for a second.
#[cfg(not(windows))]
const SLEEP: [&str; 2] = ["sleep", "1"];
#[cfg(windows)]
const SLEEP: [&str; 4] = ["ping", "-n", "2", "127.0.0.1"];

impl Bench {
    fn old_file(&self) -> PathBuf {
        self.folder.path().join("app.rec.old")
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
    assert!(recording.summary().elapsed < SECOND / 2, "{}", recording.summary().elapsed);
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
