//! Tests of `report`, `export` and `flamegraph`, which need no driver and run on any system.

mod autofdo;
mod blocks;
pub(super) mod html;
pub(super) mod last_branches;
#[cfg(unix)]
mod spgo;
mod stacks;
mod thinning;

use std::path::{Path, PathBuf};

use pmu::Recorder;
use protocol::{
    CounterKind, CounterSample, LostRecord, Mode, PauseKind, PauseRecord, PreciseKind, PreciseSample, SampleRecord,
    StopKind, StopRecord, UNKNOWN,
};
use recording::{Count, DebugFile, KERNEL, Kept, Module, Process, RecordedEvent, RecordedSession, Summary, Writer};
use tempfile::TempDir;

pub(super) use self::last_branches::recorded;

use super::*;

pub(super) const APP: u64 = 0x1_4000_0000;
pub(super) const NTDLL: u64 = 0x7FF8_0000_0000;
pub(super) const NT: u64 = 0xFFFF_F800_0000_0000;

pub(super) fn session() -> RecordedSession {
    let event = |source, name: &str, modes, interval, frequency| RecordedEvent {
        source,
        name: name.to_owned(),
        modes,
        interval,
        frequency,
        core_type: 0,
    };
    RecordedSession {
        created_unix_ms: 1_767_225_600_000,
        client: "0.1.0".to_owned(),
        driver: "0.1.0".to_owned(),
        processor: "Example Processor 3000".to_owned(),
        computer: Some("WS1".to_owned()),
        command: vec!["C:\\app\\app.exe".to_owned(), "--fast".to_owned()],
        clock: 10_000_000,
        processors: vec![0, 1],
        batch: 0,
        core_types: Vec::new(),
        events: vec![
            event(25, "TotalCycles", modes::BOTH, 100_003, 0),
            event(11, "BranchMispredictions", modes::USER, 1009, 1000),
        ],
        condition: None,
        last_branches: 0,
        tasks: recording::RecordedTasks::default(),
        part: 0,
    }
}

fn module(base: u64, path: &str) -> Module {
    let debug = Some(DebugFile { name: "none.pdb".to_owned(), id: "FB43168BD573ADCA4C4C44205044422E1".to_owned() });
    Module { base, size: 0x10_0000, path: path.to_owned(), timestamp: 7, image_size: 0x10_0000, debug }
}

pub(super) fn processes() -> [Process; 3] {
    let long = "C:\\app\\a_library_with_a_name_that_is_far_too_long_for_a_console_of_eighty_columns.dll";
    [
        Process {
            id: KERNEL,
            created: None,
            name: String::new(),
            modules: vec![module(NT, "C:\\Windows\\ntoskrnl.exe")],
        },
        Process { id: 8, created: None, name: "app.exe".to_owned(), modules: vec![module(APP, "C:\\app\\app.exe")] },
        Process { id: 4321, created: None, name: "another program.exe".to_owned(), modules: vec![module(NTDLL, long)] },
    ]
}

pub(super) fn record(event: u32, interval: u32, process: u32, ip: u64) -> CounterSample {
    CounterSample {
        time: 1000,
        ip,
        process,
        thread: process + 1,
        processor: process % 2,
        event,
        interval,
        kind: CounterKind::Sample,
        mode: if ip >= NT { Mode::Kernel } else { Mode::User },
        pebs_sequence: 0,
        cookie: 0,
    }
}

/// Creates a recording of 2,000 samples of cycles and 4 of misses, a loss, a pause of 0.5 ms and a sleep of 3.2 s. More
/// samples were lost after the last one.
fn records() -> Vec<SampleRecord> {
    let cycles = [(1200, 8, APP + 0x1000), (500, 8, NT + 0x50), (298, 4321, NTDLL + 0x20), (2, 99, 0x1000)];
    let mut records: Vec<SampleRecord> = cycles
        .into_iter()
        .flat_map(|(number, process, ip)| vec![record(0, 100_003, process, ip).into(); number])
        .collect();
    let misses = [1000, 1000, 500, 3000].map(|interval| record(1, interval, 8, APP + u64::from(interval)));
    records.extend(misses.map(SampleRecord::from));
    records.extend::<[SampleRecord; 7]>([
        StopRecord::new(StopKind::Throttled, 1000, 1).into(),
        PauseRecord::new(PauseKind::Resumed, 1000, 1, 5000).into(),
        PauseRecord::new(PauseKind::Slept, 1000, 1, 32_000_000).into(),
        StopRecord::new(StopKind::Silenced, 1000, 1).into(),
        StopRecord::new(StopKind::Disconnected, 1000, 1).into(),
        PauseRecord::new(PauseKind::Reconnected, 1000, 1, 1_100_000).into(),
        LostRecord::new(1000, 1, 0, 30).into(),
    ]);
    records
}

pub(super) fn summary() -> Summary {
    let count = |event, processor, samples, lost, throttled| Count {
        event,
        processor,
        count: 0,
        samples,
        lost,
        throttled,
        unmet: 0,
        filtered: 0,
        disturbed: None,
        recorder: 0,
    };
    Summary {
        elapsed: 12_345_678,
        counts: vec![count(0, 0, 1700, 0, 0), count(0, 1, 300, 34, 1200), count(1, 0, 4, 1, 0), count(1, 1, 0, 0, 0)],
        exit_code: Some(3),
        ..Summary::default()
    }
}

/// A recording in a temporary folder.
pub(super) struct File {
    _folder: TempDir,
    path: PathBuf,
}

impl File {
    pub(super) fn holding(bytes: &[u8]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.rec");
        fs::write(&path, bytes).unwrap();
        Self { _folder: folder, path }
    }

    /// Runs a verb with the recording as FILE and `out.svg` in the same folder as OUT.
    pub(super) fn run(&self, line: &str) -> Run {
        self.run_on(None, line)
    }

    pub(super) fn run_on(&self, columns: Option<usize>, line: &str) -> Run {
        let [file, out] = [self.path.clone(), self.beside("out")].map(|path| path.to_str().unwrap().to_owned());
        // At once, because the random name of the folder may contain either word.
        let parts: Vec<String> = line.split("OUT").map(|part| part.replace("FILE", &file)).collect();
        run_on(columns, &parts.join(&out), &[])
    }

    pub(super) fn beside(&self, name: &str) -> PathBuf {
        self.path.with_file_name(name)
    }
}

fn bytes() -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), &session()).unwrap();
    for process in processes() {
        writer.process(&process).unwrap();
    }
    writer.samples(&records()).unwrap();
    writer.finish(&summary()).unwrap()
}

pub(super) fn recording() -> File {
    File::holding(&bytes())
}

fn text(line: &str) -> String {
    let run = recording().run(line);
    assert_eq!(run.outcome.unwrap(), Exit::Done.code(), "{line}");
    run.out
}

#[test]
fn a_report_shows_the_recording_and_its_samples() {
    insta::assert_snapshot!(recording().run_on(Some(80), "report FILE").out);
}

/// The final counts include what was lost before the samples that were kept.
#[test]
fn shares_of_a_recording_with_a_limit_refer_to_what_was_kept() {
    let mut writer = Writer::new(Vec::new(), &session()).unwrap();
    writer.samples(&records()).unwrap();
    let kept = Some(Kept { elapsed: 2_500_000, removed: 5 });
    let file = File::holding(&writer.finish(&Summary { kept, ..summary() }).unwrap());
    let report = file.run("report FILE");
    let row = "\nKept      the last 0.250 s; 5 samples before them were removed\n";
    assert!(report.out.contains(row), "{}", report.out);
    let json = file.run("report FILE --json").json();
    let source = &json["sources"][0];
    // 30 were lost beside 2,000 samples, and one of two processors paused for 0.5 ms.
    let told = ["lost", "lost_share", "paused_share"].map(|key| source[key].clone());
    assert_eq!(json!(told), json!([30, 30.0 / 2030.0, 0.001]));
}

/// Creates a recording of `TotalCycles:u,TotalCycles:k`.
fn by_mode() -> File {
    let mut session = session();
    let [event, ..] = &session.events[..] else { panic!() };
    session.events = [(modes::USER, 1000), (modes::KERNEL, 70_000)]
        .map(|(modes, interval)| RecordedEvent { modes, interval, ..event.clone() })
        .into();
    let mut writer = Writer::new(Vec::new(), &session).unwrap();
    for process in processes() {
        writer.process(&process).unwrap();
    }
    let samples = [(0, 30, 1000, APP + 0x1000), (1, 7, 70_000, NT + 0x50)];
    let samples = samples.into_iter();
    let samples = samples.flat_map(|(event, number, events, ip)| vec![record(event, events, 8, ip).into(); number]);
    writer.samples(&samples.collect::<Vec<_>>()).unwrap();
    writer.samples(&[StopRecord::new(StopKind::Throttled, 1000, 0).into()]).unwrap();
    let mut summary = summary();
    let count = summary.counts[0].clone();
    summary.counts = [(0, 5), (1, 0)].map(|(event, lost)| Count { event, lost, processor: 0, ..count.clone() }).into();
    File::holding(&writer.finish(&summary).unwrap())
}

/// A window without a sample is no loss, and no sample either.
#[test]
fn a_condition_is_reported_with_the_windows_that_met_it_and_losses_are_of_all_windows() {
    let session = RecordedSession { condition: Some("IPC<0.5".to_owned()), ..session() };
    let mut writer = Writer::new(Vec::new(), &session).unwrap();
    writer.samples(&vec![record(0, 100_003, 8, NT + 0x50).into(); 30]).unwrap();
    let mut summary = summary();
    let count = |processor, samples, unmet| Count { processor, samples, unmet, lost: 5, ..summary.counts[0].clone() };
    summary.counts = vec![count(0, 10, 300), count(1, 20, 660)];
    let bytes = writer.finish(&summary).unwrap();
    let file = File::holding(&bytes);
    let text = file.run("report FILE").out;
    assert!(text.contains("\nWindows  30 of 990 met IPC<0.5, 3.0 %\n"), "{text}");
    assert!(text.contains("\nLost     10 samples, 1.0 % "), "{text}");
    assert!(text.contains("standing for 3,000,090 events"), "{text}");
    let source = &file.run("report FILE --json").json()["sources"][0];
    assert_eq!(source["condition"], json!({ "text": "IPC<0.5", "met": 30, "unmet": 960 }));
    let text = File::holding(&bytes[..bytes.len() - 1]).run("report FILE").out;
    assert!(text.contains("\nWindows  those that met IPC<0.5\n"), "{text}");
}

/// The shares of one would depend on the interval of the other.
#[test]
fn an_event_for_each_mode_is_apart_in_reports_and_exports() {
    let file = by_mode();
    let report = file.run("report FILE --json --sort module").json();
    let told = |source: &Value| {
        let row = &source["rows"][0];
        let events = source["events"].as_array().unwrap().iter().map(|event| event["modes"].clone());
        json!([
            source["name"],
            events.collect::<Value>(),
            source["sampled_events"],
            source["lost"],
            row["module"],
            row["share"]
        ])
    };
    let sources: Value = report["sources"].as_array().unwrap().iter().map(told).collect();
    assert_eq!(
        sources,
        json!([
            ["TotalCycles:u", ["u"], 30_000, 5, "app.exe", 1.0],
            ["TotalCycles:k", ["k"], 490_000, 0, "ntoskrnl.exe", 1.0]
        ])
    );
    for source in report["sources"].as_array().unwrap() {
        assert_eq!(source["disturbed"][0]["pauses"], 1, "a pause concerns both: {source}");
    }
    for (line, words) in [
        ("export FILE --format csv", ["sample,0,TotalCycles:u,8", "sample,0,TotalCycles:k,8"]),
        ("export FILE --format speedscope", ["\"name\":\"TotalCycles:u\"", "\"name\":\"TotalCycles:k\""]),
        ("script FILE", [" 1000 TotalCycles:u:\n", " 70000 TotalCycles:k:\n"]),
        ("export FILE --format firefox", ["TotalCycles:u", "TotalCycles:k"]),
    ] {
        let run = file.run(line);
        for word in words {
            assert!(run.out.contains(word), "{line}: no {word} in {}", run.out);
        }
    }
}

/// Creates a recording of two processors with batches of precise records.
fn precise() -> File {
    let event = |source, name: &str, modes, interval| RecordedEvent {
        source,
        name: name.to_owned(),
        modes,
        interval,
        frequency: 0,
        core_type: 0,
    };
    let session = RecordedSession {
        batch: 16,
        core_types: Vec::new(),
        events: vec![
            event(2, "TotalIssues", modes::BOTH | modes::PRECISE, 100_003),
            event(11, "BranchMispredictions", modes::USER | modes::PRECISE, 1009),
            event(25, "TotalCycles", modes::BOTH, 100_003),
        ],
        ..session()
    };
    let of = |source, process: u32, number, ip| CounterSample {
        time: 1000 + 12_345 * u64::from(number),
        process,
        thread: if process == UNKNOWN { UNKNOWN } else { process + 1 },
        processor: 0,
        pebs_sequence: number,
        ..record(source, 1009, 0, ip)
    };
    let precise = |kind, sample: CounterSample| {
        let CounterSample { time, ip, process, thread, processor, event: source, interval, mode, .. } = sample;
        let number = sample.pebs_sequence.into();
        PreciseSample { time, ip, process, thread, processor, event: source, interval, kind, mode, number }
    };
    let ordinary = |process, number, ip| of(2, process, number, ip).into();
    let nobodys = |number, ip| precise(PreciseKind::Precise, of(0, UNKNOWN, number, ip)).into();
    let next = |number, ip| {
        SampleRecord::from(PreciseSample { processor: 1, ..precise(PreciseKind::PreciseNext, of(1, 4321, number, ip)) })
    };
    let mut records = vec![
        ordinary(8, 0, APP + 0x10),
        ordinary(8, 2, NT + 0x20),
        ordinary(4321, 4, NTDLL + 0x30),
        nobodys(0, APP + 0x11),
        nobodys(1, NT + 0x21),
        nobodys(2, APP + 0x12),
        nobodys(3, NT + 0x22),
        nobodys(4, APP + 0x13),
    ];
    records.extend([next(0, NTDLL + 0x31), next(1, NTDLL + 0x32)]);
    let mut writer = Writer::new(Vec::new(), &session).unwrap();
    for process in processes() {
        writer.process(&process).unwrap();
    }
    writer.samples(&records).unwrap();
    let by = |event, processor, recorder: Recorder| Count {
        event,
        processor,
        count: 0,
        samples: 0,
        lost: 0,
        throttled: 0,
        unmet: 0,
        filtered: 0,
        disturbed: None,
        recorder: recorder as u32,
    };
    let counts = vec![by(0, 0, Recorder::Fixed), by(0, 1, Recorder::General), by(1, 1, Recorder::Distributed)];
    File::holding(&writer.finish(&Summary { counts, ..summary() }).unwrap())
}

#[test]
fn a_report_of_precise_events_shows_skid_and_batch() {
    insta::assert_snapshot!(precise().run_on(Some(80), "report FILE").out);
}

#[test]
fn a_timeline_has_samples_and_records_in_one_order() {
    insta::assert_snapshot!(precise().run_on(Some(80), "report FILE --merge").out);
}

#[test]
fn a_timeline_of_one_process_has_the_records_assigned_to_it() {
    let out = precise().run("report FILE --merge --process app --csv").out;
    let told: Vec<Vec<&str>> = out.lines().skip(1).map(|line| line.split(',').collect()).collect();
    let told: Vec<_> = told.iter().map(|fields| (fields[2], fields[4], fields[8])).collect();
    let (sample, record) =
        (|pebs_sequence| (pebs_sequence, "sample", "0"), |pebs_sequence| (pebs_sequence, "precise", "1"));
    assert_eq!(told, [sample("0"), record("0"), record("1"), sample("2")]);
}

#[test]
fn a_timeline_is_limited_on_each_processor() {
    let out = precise().run("report FILE --merge --limit 1").out;
    assert!(out.ends_with("\n8 rows left out; --limit N shows N of each processor\n"), "{out}");
    let rows = out.lines().filter(|line| line.trim_start().starts_with(['0', '1'])).count();
    assert_eq!(rows, 2, "{out}");
    let all = precise().run("report FILE --merge --csv").out;
    assert_eq!(all.lines().count(), 11, "programs are given all");
}

#[test]
fn a_timeline_as_json_has_null_for_unknown_values() {
    let report = precise().run("report FILE --merge --json -e totalissues").json();
    assert_eq!(report["recording"]["batch"], 16);
    let samples = report["samples"].as_array().unwrap();
    assert_eq!(samples.len(), 5);
    assert_eq!(
        samples[0],
        json!({
            "processor": 0, "time_ns": 0, "number": 0, "event": "TotalIssues", "kind": "precise", "process": 8,
            "process_name": "app.exe", "thread": 9, "inferred": true, "address": "0x0000000140000011",
            "module": "app.exe", "symbol": "app.exe+0x11"
        })
    );
    assert_eq!(
        samples[4],
        json!({
            "processor": 0, "time_ns": 4_938_000, "number": 4, "event": "TotalIssues", "kind": "precise",
            "process": null, "process_name": "[unknown]", "thread": null, "inferred": false,
            "address": "0x0000000140000013", "module": "[unknown]", "symbol": "0x0000000140000013"
        })
    );
}

#[test]
fn a_report_by_other_columns_with_errors_of_one_process() {
    insta::assert_snapshot!(text("report FILE -e totalcycles --process APP --sort processor,symbol,thread --error"));
}

#[test]
fn a_report_by_address_has_the_addresses() {
    insta::assert_snapshot!(text("report FILE -e 11 --sort address,module --limit 2"));
}

#[test]
fn a_report_as_json_has_every_number() {
    insta::assert_snapshot!(text("report FILE --json --limit 2"));
}

#[test]
fn a_report_as_csv_has_a_line_for_each_row() {
    insta::assert_snapshot!(text("report FILE --csv --sort module"));
}

#[test]
fn a_report_fits_its_terminal_and_shortens_nothing_in_a_pipe_or_if_it_is_wide() {
    for sort in ["process,module,symbol", "process,thread,processor,symbol", "module,symbol,address", "symbol"] {
        for options in ["", " --error"] {
            let report =
                |columns, more| recording().run_on(columns, &format!("report FILE --sort {sort}{options}{more}")).out;
            let full = report(None, "");
            assert!(full.contains("_that_is_far_too_long_for_a_console_"), "{full}");
            assert_eq!(report(Some(80), " --wide"), full);
            for columns in [80, 120, 200] {
                let widest = report(Some(columns), "").lines().map(|line| line.chars().count()).max().unwrap();
                let needed = full.lines().map(|line| line.chars().count()).max().unwrap();
                // A limit for all columns can leave some of the width.
                assert!(
                    (needed.min(columns - 3)..=columns).contains(&widest),
                    "{widest} of {columns}, {sort}{options}"
                );
            }
        }
    }
}

#[test]
fn a_symbol_is_found_by_a_part_or_as_it_was_printed() {
    let file = recording();
    let of = |symbol: &str| file.run(&format!("report FILE -e 25 --sort symbol --symbol {symbol} --csv"));
    let wanted = of("app.exe+0x1000");
    assert!(wanted.out.contains("app.exe+0x1000") && wanted.err.lines().all(|line| !line.contains("--symbol ")));
    for (given, note) in
        [("app..000", None), ("App*1000", None), ("exe+0x1000", Some("note: --symbol exe+0x1000 is app.exe+0x1000"))]
    {
        let found = of(given);
        assert_eq!(found.out, wanted.out, "{given}");
        assert_eq!(found.err.lines().find(|line| line.contains("--symbol ")), note, "{given}");
    }
    let (exit, report) = of("EXE+0x").failure();
    let wanted =
        "error: EXE+0x matches 2 functions:\n  app.exe+0x1000\n  ntoskrnl.exe+0x50\n  try: --symbol \"*EXE+0x*\"";
    assert_eq!((exit, report.as_str()), (Exit::NotRecorded, wanted));
    assert_eq!(of("*EXE+0x*").out.lines().count(), 3);
}

/// The rows of cycles have shares of 60, 25, 14.9 and 0.1 percent.
#[test]
fn the_suggested_option_shows_the_next_omitted_row() {
    let report = |options: &str| text(&format!("report FILE -e 25 --sort address{options}"));
    let rows = |report: &str| report.lines().filter(|line| line.trim_start().contains("%  ")).count();
    for (options, shown, advice) in [
        (" --limit 2", 2, "2 rows left out, 15.00% together; --limit N shows N"),
        (" --percent-limit 20", 2, "2 rows left out, 15.00% together; a lower --percent-limit shows more"),
        (" --percent-limit 70", 0, "4 rows left out, 100.00% together; a lower --percent-limit shows more"),
        (" --percent-limit 20 --limit 1", 1, "3 rows left out, 40.00% together; --limit N shows N"),
        (" --percent-limit 20 --limit 3", 2, "2 rows left out, 15.00% together; a lower --percent-limit shows more"),
        (
            " --percent-limit 20 --limit 2",
            2,
            "2 rows left out, 15.00% together; a larger --limit and a lower --percent-limit show more",
        ),
    ] {
        let report = report(options);
        assert_eq!((rows(&report), report.lines().last()), (shown, Some(advice)), "{options}: {report}");
    }
}

#[test]
fn modules_without_symbols_are_listed_on_standard_error() {
    let run = recording().run("report FILE --sort symbol");
    assert!(run.err.starts_with("note: no symbols for "), "{}", run.err);
    assert!(
        run.err.contains("ntoskrnl.exe") && run.err.ends_with("; --symbols DIR says where they are\n"),
        "{}",
        run.err
    );
}

#[test]
fn a_script_is_written_to_standard_output_or_to_a_file() {
    let file = recording();
    let run = file.run("script FILE --process app.exe");
    assert!(run.out.starts_with("app.exe 8/"), "{}", run.out);
    assert!(!run.out.contains("another program.exe"), "{}", run.out);
    assert_eq!(file.run("script FILE --process app.exe -o OUT").out, "");
    assert_eq!(fs::read_to_string(file.beside("out")).unwrap(), run.out);
}

#[test]
fn a_profile_for_pprof_is_compressed() {
    let file = recording();
    file.run("export FILE --format pprof -o OUT").outcome.unwrap();
    assert_eq!(fs::read(file.beside("out")).unwrap()[..3], [0x1F, 0x8B, 8], "gzip with deflate, RFC 1952");
}

#[test]
fn a_profile_for_pprof_of_several_events_has_a_note_how_to_compare_it() {
    let file = recording();
    let note = "note: the profile has 2 events, each a sample type\n  because: go tool pprof -diff_base refuses a \
                profile whose sample types differ\n  try: -e EVENT for both profiles, which makes them comparable\n";
    let noted = |line: &str| file.run(&format!("export FILE {line} -o OUT")).err.contains(note);
    assert!(noted("--format pprof"));
    assert!(!noted("--format pprof -e TotalCycles"), "one event has one sample type");
    assert!(!noted("--format speedscope"), "this is of pprof");
}

#[test]
fn every_format_is_written_to_standard_output_or_to_a_file() {
    let file = recording();
    for (format, beginning) in [
        ("firefox", "{\"meta\":"),
        ("folded --pid", "[unknown] (99);[unknown];0x0000000000001000 200006\n"),
        ("csv", "time_ns,kind,"),
        ("speedscope", "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\","),
        (
            "json",
            "{\n  \"schema\": \"halprof.report/1\",\n  \"recording\": {\n    \"created\": \"2026-01-01T00:00:00Z\",",
        ),
    ] {
        let run = file.run(&format!("export FILE --format {format}"));
        assert!(run.out.starts_with(beginning), "{}", run.out);
        let written = file.run(&format!("export FILE --format {format} -o OUT"));
        assert_eq!((written.outcome.unwrap(), written.out.as_str()), (Exit::Done.code(), ""));
        assert_eq!(fs::read_to_string(file.beside("out")).unwrap(), run.out);
    }
}

#[test]
fn csv_and_folded_stacks_have_every_sample_of_the_source() {
    let lines = text("export FILE --format csv -e 25");
    assert_eq!(lines.lines().filter(|line| line.contains(",sample,")).count(), 2000);
    let folded = text("export FILE --format folded");
    let events: u64 = folded.lines().map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum();
    assert_eq!(events, 2000 * 100_003);
}

#[test]
fn a_flame_graph_shows_the_first_event_by_default() {
    let file = recording();
    for (options, title) in [("", "TotalCycles"), (" -e BranchMispredictions", "BranchMispredictions")] {
        let run = file.run(&format!("flamegraph FILE -o OUT{options}"));
        assert_eq!(run.outcome.unwrap(), Exit::Done.code());
        let svg = fs::read_to_string(file.beside("out")).unwrap();
        assert!(svg.contains(&format!(">{title}</text>")) && svg.contains("app.exe+0x"), "{svg}");
    }
    assert!(file.run("flamegraph FILE -o -").out.starts_with("<?xml"));
}

/// Runs a report of cycles by address, and returns its line about the selection and the number of its rows.
fn selected(options: &str) -> (String, usize) {
    let report = text(&format!("report FILE -e 25 --sort address,module {options}"));
    let line = report.lines().find(|line| line.starts_with("Selected")).unwrap_or_default().to_owned();
    (line, report.lines().filter(|line| line.contains("%  ")).count())
}

#[test]
fn a_selection_says_its_share_of_all_events() {
    let of = |samples: &str, share: &str| {
        format!("Selected   {samples} samples, {share} of all events; Overhead is of all events")
    };
    for (options, line, rows) in [
        ("", String::new(), 4),
        ("--cpu 0", of("1,700", "85.0 %"), 2),
        ("--cpu 0-1", of("2,000", "100.0 %"), 4),
        ("-C 1", of("300", "15.0 %"), 2),
        ("--process app", of("1,700", "85.0 %"), 2),
        ("--process a*", of("1,998", "99.9 %"), 3),
        ("--process app --process 99", of("1,702", "85.1 %"), 3),
        ("--thread 9,100", of("1,702", "85.1 %"), 3),
        ("--module NTOSKRNL", of("500", "25.0 %"), 1),
        ("--module ntos* --module app.exe", of("1,700", "85.0 %"), 2),
        ("--symbol app.exe+0x1000", of("1,200", "60.0 %"), 1),
        ("--time -1us", of("2,000", "100.0 %"), 4),
        ("--time 0-", of("2,000", "100.0 %"), 4),
        ("--process app --cpu 1", of("0", "0.0 %"), 0),
    ] {
        assert_eq!(selected(options), (line, rows), "{options}");
    }
    let report = text("report FILE -e 25 --module app --json").parse::<Value>().unwrap();
    let source = &report["sources"][0];
    assert_eq!((&source["samples"], &source["selected_samples"]), (&json!(2000), &json!(1200)));
    assert_eq!(source["selected_events"], json!(1200 * 100_003));
    assert_eq!(source["rows"][0]["share"], json!(0.6));
}

#[test]
fn every_verb_that_reads_recordings_has_the_selection() {
    let lines = text("export FILE --format csv -e 25 --module app");
    assert_eq!(lines.lines().filter(|line| line.contains(",sample,")).count(), 1200);
    let folded = text("export FILE --format folded --symbol app*");
    assert_eq!(folded, "app.exe;app.exe;app.exe+0x1000 120003600\n");
    let file = recording();
    let svg = file.run("flamegraph FILE -o - --cpu 0").out;
    assert!(svg.contains(">C:\\app\\app.exe --fast (CPU 0: 85.0 % of all events are selected)</text>"), "{svg}");
    let profile = text("export FILE --format firefox --thread 9").parse::<Value>().unwrap();
    let names: Vec<&str> = profile["threads"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|one| one["name"].as_str())
        .filter(|name| name.starts_with("Thread"))
        .collect();
    assert_eq!(names, ["Thread 9: BranchMispredictions", "Thread 9: TotalCycles"]);
    let rows = text("report FILE --merge --csv --module app --limit 5").lines().count();
    assert_eq!(rows, 6);
}

#[test]
fn fields_are_the_columns_of_a_report() {
    let report = text("report FILE -e 25 --fields symbol,events,overhead,error --limit 1");
    let rows: Vec<&str> = report.lines().skip_while(|line| !line.starts_with("Symbol")).collect();
    assert_eq!(
        rows[..3],
        [
            "Symbol               Events  Overhead   +/-",
            "--------------  -----------  --------  ----",
            "app.exe+0x1000  120,003,600    60.00%  2.15",
        ],
    );
    let (exit, report) = recording().run("report FILE --sort module --fields symbol").failure();
    assert!(exit == Exit::Usage && report.contains("--fields has symbol, but --sort has not"), "{report}");
}

#[test]
fn an_incomplete_recording_is_reported_with_a_warning() {
    let mut cut = bytes();
    cut.truncate(cut.len() - 1);
    let run = File::holding(&cut).run("report FILE --sort module");
    assert!(run.out.contains("2,000, standing for 200,006,000 events"), "{}", run.out);
    assert!(
        run.out.contains("\nLost     30 samples, 1.5 % (CPU 1: 30)\nPaused   1 time, 0.001 s in all\n"),
        "{}",
        run.out
    );
    assert!(run.err.contains("warning: the recording was cut off after "), "{}", run.err);
    assert_eq!(run.outcome.unwrap(), Exit::Incomplete.code());

    let mut damaged = bytes();
    *damaged.last_mut().unwrap() ^= 1;
    let run = File::holding(&damaged).run("report FILE --json");
    assert!(run.json()["recording"]["damage"].as_str().unwrap().starts_with("the recording is damaged at byte "));
    assert!(run.err.contains("\n  because: the checksum of the payload "), "{}", run.err);
    assert_eq!(run.outcome.unwrap(), Exit::Incomplete.code());
}

#[test]
fn unreadable_files_and_unrecorded_names_have_their_codes() {
    let file = recording();
    for (line, exit, words) in [
        (
            "report FILE -e CacheMisses",
            Exit::NotRecorded,
            "no source CacheMisses; it has TotalCycles, BranchMispredictions",
        ),
        ("report FILE --process ap", Exit::NotRecorded, "no process ap; it has another program.exe, app.exe"),
        ("export FILE --format csv --process 7", Exit::NotRecorded, "no process 7;"),
        ("report FILE --cpu 0-2", Exit::NotRecorded, "the recording has no CPU 2; it has 0, 1"),
        ("report FILE --thread 9,7", Exit::NotRecorded, "the recording has no thread 7; it has 9, 100, 4322"),
        (
            "report FILE --module ntdl",
            Exit::NotRecorded,
            "the recording has no module ntdl; it has app.exe, ntoskrnl.exe, a_library",
        ),
        (
            "export FILE --format json --cpu 0 --symbol Bpp*",
            Exit::NotRecorded,
            "the selection has no symbol Bpp*; it has app.exe+0x1000, ntoskrnl.exe+0x50, app.exe+0xbb8,",
        ),
        ("report FILE --time 1s-2s", Exit::NotRecorded, "the recording has no time 1s-2s; it has 0s-0.000s"),
        ("report FILE --merge --module no", Exit::NotRecorded, "the recording has no module no; it has app.exe"),
        ("export FILE --format csv -o FILE", Exit::Usage, "is the recording itself"),
        ("report FILE.not", Exit::Recording, ".not was not found\n  try: .\\client record -o "),
        ("flamegraph FILE -e 11 --process 99 -o OUT", Exit::NotRecorded, "has no samples"),
    ] {
        let (code, report) = file.run(line).failure();
        assert!(code == exit && report.contains(words), "{line}: {report}");
    }
    assert_eq!(fs::read(&file.path).unwrap(), bytes(), "the recording is as it was");
    assert!(!Path::new(&file.beside("out")).exists(), "the file was not created");
    let mut newer = bytes();
    newer[8] += 1;
    for (bytes, words) in
        [(&b"perf.data"[..], "the file is not a recording"), (&newer, "of the client that recorded it")]
    {
        let (code, report) = File::holding(bytes).run("report FILE").failure();
        assert!(code == Exit::Recording && report.contains(words), "{report}");
    }
}

#[test]
fn a_recording_without_samples_is_reported_as_such() {
    let writer = Writer::new(Vec::new(), &session()).unwrap();
    let file = File::holding(&writer.finish(&Summary { counts: Vec::new(), ..summary() }).unwrap());
    let run = file.run("report FILE");
    assert!(
        run.out.contains("0, standing for 0 events\nLost     0 samples\nPaused   0.0 % of the time\n\nno samples"),
        "{}",
        run.out
    );
    assert_eq!(run.outcome.unwrap(), Exit::Done.code());
    assert_eq!(file.run("flamegraph FILE -o OUT").failure().0, Exit::NotRecorded);
}
