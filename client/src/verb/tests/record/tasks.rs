//! Recordings of some processes and threads only.

use std::time::Duration;

use super::*;
use fake_system::PROTECTED;

fn bench(batches: &[&[SampleRecord]]) -> Bench {
    let bench = Bench::new(batches);
    let running = [(4, "System"), (12, "app.exe"), (16, "App.exe"), (20, "other.exe")];
    bench.system.processes.replace(running.map(|(id, name)| (id, name.to_owned())).to_vec());
    bench
}

/// The sum law: what the driver delivered is recorded or filtered.
#[test]
fn only_samples_of_the_chosen_processes_are_recorded_and_the_others_counted() {
    let lost: SampleRecord = LostRecord::new(5, 0, 0, 1).into();
    let batches: [&[SampleRecord]; 2] = [&[sample(12, 1), sample(4, 2), sample(16, 3)], &[sample(20, 4), lost]];
    for (options, wanted, recorded) in [
        ("-p 12", vec![sample(12, 1), lost], [&[12][..], &[]]),
        ("-p 12,20", vec![sample(12, 1), sample(20, 4), lost], [&[12, 20], &[]]),
        ("--pid APP", vec![sample(12, 1), sample(16, 3), lost], [&[12, 16], &[]]),
        ("-p app.exe -p 12", vec![sample(12, 1), sample(16, 3), lost], [&[12, 16], &[]]),
        // The fake gives a thread the ID of its process, and samples are of thread 8.
        ("-t 12", vec![lost], [&[], &[12]]),
    ] {
        let bench = bench(&batches);
        let ran = bench.record_exit_3(options);
        let filtered = 5 - wanted.len() as u64;
        assert!(
            ran.err.contains(&format!("[ filtered {filtered} samples of other processes and threads ]")),
            "{}",
            ran.err
        );
        assert!(ran.err.contains(&format!("[ recorded {} samples ", wanted.len() - 1)), "{}", ran.err);
        let recording = bench.recording();
        assert_eq!(recording.samples(), wanted, "{options}");
        let tasks = &recording.session().tasks;
        assert_eq!([&tasks.processes[..], &tasks.threads], recorded, "{options}");
        let of_counts: u64 = recording.summary().counts.iter().map(|count| count.filtered).sum();
        assert_eq!(of_counts, filtered, "{options}");
        let known = recording.processes();
        assert!(known.iter().all(|one| one.name != "System"), "{options}: nothing of others: {known:?}");

        let file = bench.file();
        let report = ["report", file.to_str().unwrap()];
        let text = run_words(&bench.system, &report).out;
        assert!(text.contains(&format!("Filtered  {filtered} samples of other processes and threads")), "{text}");
        assert!(text.contains("\nOnly      "), "{text}");
        let json = run_words(&bench.system, &[&report[..], &["--json"]].concat()).json();
        assert_eq!(json["sources"][0]["filtered"], filtered, "{options}");
        assert_eq!(json["recording"]["tasks"]["processes"], serde_json::json!(recorded[0]));
    }
}

#[test]
fn a_recording_ends_with_the_last_of_its_processes_and_the_command_goes_on() {
    let bench = bench(&[&[sample(12, 1)]]);
    let processes = Arc::clone(&bench.system.processes);
    let end = std::thread::spawn(move || {
        for left in [1, 0] {
            std::thread::sleep(Duration::from_millis(200));
            processes.borrow_mut().retain(|(id, _)| ![12, 20][left..].contains(id));
        }
    });
    let file = bench.file();
    let ran = run_words(&bench.system, &["record", "-o", file.to_str().unwrap(), "-p", "12,20"]);
    end.join().unwrap();
    assert_eq!(ran.outcome.unwrap(), 0);
    assert!(ran.err.contains("[ recording processes 12, 20 to ") && ran.err.contains("their end or Ctrl-C ends it ]"));
    let summary = bench.recording();
    let summary = summary.summary();
    assert!(!summary.interrupted_by_user && summary.elapsed >= 4_000_000 - 1_000_000, "{summary:?}");
}

#[test]
fn what_cannot_be_recorded_is_refused_before_anything_starts() {
    let protected = PROTECTED.to_string();
    for (options, exit, text) in [
        ("-p 7", Exit::NotRunning, "error: no process has the ID 7\n  try: tasklist   (lists processes)"),
        ("-p 12,7", Exit::NotRunning, "error: no process has the ID 7"),
        ("-t 7", Exit::NotRunning, "error: no thread has the ID 7\n  try: -p with its process"),
        ("-p none", Exit::NotRunning, "error: no running process has the name none\n  try: tasklist"),
        (
            &format!("-p {protected}"),
            Exit::Denied,
            &format!("error: the process {protected} cannot be opened\n  because: "),
        ),
    ] {
        let bench = bench(&[]);
        let ran = bench.record(options);
        assert_eq!(ran.err, "", "{options}: nothing is said of a recording that does not begin");
        let (found, report) = ran.failure();
        assert!(found == exit && report.starts_with(text), "{options}: {report}");
        assert!(bench.system.driver.inputs(Code::Start).is_empty() && !bench.file().exists(), "{options}");
    }
}

#[test]
fn all_is_less_than_a_process_as_with_perf() {
    let bench = bench(&[&[sample(12, 1), sample(4, 2)]]);
    let ran = bench.record_command("-p 12");
    assert!(ran.err.contains("note: -p and -t choose processes and threads, and -a does not\n"), "{}", ran.err);
    assert_eq!(bench.recording().samples(), [sample(12, 1)]);
}

/// The sum law again: what is of no process of the command is filtered.
#[test]
fn a_command_is_recorded_with_the_processes_that_it_starts() {
    let samples = [sample(12, 1), sample(4, 2), sample(16, 3), sample(20, 4)];
    let recorded_of = |options: &str, untold| {
        let bench = bench(&[&samples]);
        bench.system.starts.add(&[(12, true), (16, true), (16, false), (12, false)]);
        bench.system.starts.lose(untold);
        (bench.record_exit_3(options), bench.recording())
    };
    let (ran, recording) = recorded_of("", 0);
    assert_eq!(recording.samples(), [sample(12, 1), sample(16, 3)], "{}", ran.err);
    assert!(ran.err.contains("[ filtered 2 samples of other processes and threads ]"), "{}", ran.err);
    let tasks = &recording.session().tasks;
    assert!(tasks.processes.len() == 1 && tasks.with_children, "{tasks:?}");
    assert_eq!(recording.summary().counts.iter().map(|count| count.filtered).sum::<u64>(), 2);
    let (ran, recording) = recorded_of("", 1);
    assert!(ran.err.contains("warning: Windows did not tell of 1 processes of the command"), "{}", ran.err);
    assert_eq!(recording.samples().len(), 2);
    for options in ["-a", "-p 4,12,16,20"] {
        assert_eq!(recorded_of(options, 0).1.samples(), samples, "{options}");
    }
}

#[test]
fn processes_that_go_on_after_the_command_are_named() {
    let bench = bench(&[&[sample(16, 3)]]);
    bench.system.starts.add(&[(12, true), (16, true), (20, true), (12, false)]);
    let ran = bench.record_exit_3("");
    assert!(ran.err.contains("[ processes that the command started continue: 16, 20 ]"), "{}", ran.err);
}
