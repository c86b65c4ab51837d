//! A transcript of command lines: what each prints, and its exit code. Every message of the client can be read in these
//! snapshots. To add a command line, add it to a list and review the snapshot.
//!
//! In a command line, FILE is a recording, OLD one that is cut off, TEXT a file that is no recording, NEW and SVG files
//! that do not exist, DUMP the CPUID of a processor, APP a command that exits with code 3, and GONE a missing folder.

mod bad;
mod good;

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::Path;

use protocol::{
    CounterKind, CounterSample, Event, LostRecord, Mode, PauseKind, PauseRecord, SampleRecord, SourceRecord, StopKind,
    StopRecord, area,
};
use recording::{Count, KERNEL, Module, Process, RecordedEvent, RecordedSession, Summary, Writer};

use super::*;
use crate::cli::usage;

const APP: u64 = 0x1_4000_0000;
const NT: u64 = 0xFFFF_F800_0000_0000;

/// Maximum number of lines that are shown of the output of a verb. Its other tests look at all of them.
const MAX_LINES: usize = 40;

/// Creates a machine with two CPUs, Time and counts of four sources.
fn machine() -> FakeSystem {
    let time = SourceRecord { minimum: 1_221, maximum: 1_000_000, interval: 10_000, ..record(0, "Time", 0) };
    let counts = [(0, 2, 1_400_000), (1, 0x13, 700_000)];
    let counts = counts.into_iter().flat_map(|(index, source, number)| {
        let first = CountRecord { index, ..count(source, 0, number, SECOND) };
        [first, CountRecord { processor: 1, count: number / 2, samples: 3, lost: 1, ..first }]
    });
    let flags = area::BRANCHES | area::PRECISE | area::MODES;
    let idle = |processor| protocol::AreaRecord {
        processor,
        status: 0xC000_00A0,
        address: 0,
        size: 0,
        flags,
        format: 4,
        missing_feature: 0,
    };
    let sources = [vec![time], sources().split_off(1)].concat();
    let counts: Vec<CountRecord> = counts.collect();
    let driver = FakeDriver {
        sources,
        runs: VecDeque::from(vec![counts.clone(); 2]).into(),
        counts: counts.into(),
        areas: vec![idle(0), idle(1)],
        ..FakeDriver::default()
    };
    FakeSystem::running(driver)
}

/// Creates a machine whose driver refuses to start a session.
fn refusing(cause: ErrorCode, detail: [u64; 2]) -> FakeSystem {
    let session_events = vec![SessionEvent {
        event: Event::of(2),
        session: 3,
        modes: 3,
        process: 12,
        flags: 1,
        processors: 2,
        first_processor: 0,
        ..SessionEvent::new_zeroed()
    }];
    let refuse = Some((Code::Start, cause, detail));
    FakeSystem::running(FakeDriver { session_events, refuse, ..FakeDriver::default() })
}

/// Creates a recording of 12 samples of two sources, with losses, a pause and a sleep.
fn recording() -> Vec<u8> {
    let event = |source, name: &str, modes, interval, frequency| RecordedEvent {
        source,
        name: name.to_owned(),
        modes,
        interval,
        frequency,
        core_type: 0,
    };
    let session = RecordedSession {
        created_unix_ms: 1_767_225_600_000,
        client: "0.1.0".to_owned(),
        driver: "0.1.0".to_owned(),
        processor: "Example Processor 3000".to_owned(),
        computer: Some("WS1".to_owned()),
        command: vec!["app.exe".to_owned(), "--fast".to_owned()],
        clock: SECOND,
        processors: vec![0, 1],
        batch: 0,
        core_types: Vec::new(),
        events: vec![
            event(25, "TotalCycles", modes::BOTH, 100_000, 0),
            event(11, "BranchMispredictions", 1, 1009, 1000),
        ],
        condition: None,
        last_branches: 0,
        tasks: recording::RecordedTasks::default(),
        part: 0,
    };
    let module = |base, path: &str| Module {
        base,
        size: 0x10_0000,
        path: path.to_owned(),
        timestamp: 7,
        image_size: 0x10_0000,
        debug: None,
    };
    let processes = [
        Process {
            id: KERNEL,
            created: None,
            name: String::new(),
            modules: vec![module(NT, "C:\\Windows\\ntoskrnl.exe")],
        },
        Process { id: 8, created: None, name: "app.exe".to_owned(), modules: vec![module(APP, "C:\\app\\app.exe")] },
        Process { id: 4320, created: None, name: "other.exe".to_owned(), modules: Vec::new() },
    ];
    let sample = |(index, source, interval, process, ip): (u64, u32, u32, u32, u64)| -> SampleRecord {
        let (time, thread, processor) = (1_000 + index * 500, process + 1, u32::from(process > 8));
        let (kind, mode) = (CounterKind::Sample, if ip >= NT { Mode::Kernel } else { Mode::User });
        CounterSample {
            time,
            ip,
            process,
            thread,
            processor,
            event: source,
            interval,
            kind,
            mode,
            pebs_sequence: 0,
            cookie: 0,
        }
        .into()
    };
    let mut records: Vec<SampleRecord> = (0..6).map(|index| sample((index, 0, 100_000, 8, APP + 0x1000))).collect();
    records.extend((6..9).map(|index| sample((index, 0, 100_000, 8, NT + 0x50))));
    records.push(sample((9, 0, 100_000, 4320, 0x40_0000)));
    records.extend((10..12).map(|index| sample((index, 1, 1_000, 8, APP + 0x2000))));
    records.extend::<[SampleRecord; 4]>([
        StopRecord::new(StopKind::Throttled, 7_100, 1).into(),
        PauseRecord::new(PauseKind::Resumed, 1_000_000, 1, 992_900).into(),
        PauseRecord::new(PauseKind::Slept, 1_000_000, 1, 32_000_000).into(),
        LostRecord::new(1_000_000, 1, 0, 3).into(),
    ]);
    let count = |event, processor, samples, lost| Count {
        event,
        processor,
        count: 0,
        samples,
        lost,
        throttled: 0,
        unmet: 0,
        filtered: 0,
        disturbed: None,
        recorder: 0,
    };
    let counts = vec![count(0, 0, 9, 0), count(0, 1, 1, 3), count(1, 0, 2, 0), count(1, 1, 0, 0)];
    let summary = Summary { elapsed: 5_000_000, counts, exit_code: Some(3), ..Summary::default() };
    let mut writer = Writer::new(Vec::new(), &session).unwrap();
    for process in processes {
        writer.process(&process).unwrap();
    }
    writer.samples(&records).unwrap();
    writer.finish(&summary).unwrap()
}

/// The files that command lines can name.
pub struct Files(tempfile::TempDir);

impl Files {
    const NAMES: [(&str, &str); 6] = [
        ("FILE", "file.rec"),
        ("OLD", "old.rec"),
        ("TEXT", "text.txt"),
        ("NEW", "new.rec"),
        ("SVG", "new.svg"),
        ("DUMP", "dump.txt"),
    ];

    pub fn new() -> Self {
        let files = Self(tempfile::tempdir().unwrap());
        let bytes = recording();
        fs::write(files.0.path().join("file.rec"), &bytes).unwrap();
        fs::write(files.0.path().join("old.rec"), &bytes[..bytes.len() - 20]).unwrap();
        fs::write(files.0.path().join("text.txt"), "no recording, and no dump").unwrap();
        fs::write(files.0.path().join("dump.txt"), cpuid_dumps::find("haswell-4710mq").unwrap().dump()).unwrap();
        files
    }

    /// Returns the words of a command line, with the paths of the files.
    pub fn words(&self, line: &str) -> Vec<String> {
        let folder = self.0.path();
        let path = |path: &Path| path.to_str().unwrap().to_owned();
        let word = |word: &str| match Self::NAMES.iter().find(|(name, _)| *name == word) {
            Some((_, file)) => vec![path(&folder.join(file))],
            None if word == "APP" => EXIT_3.split(' ').chain(["exit 3"]).map(ToOwned::to_owned).collect(),
            None if word.starts_with("GONE") => vec![path(&folder.join("gone").join("file"))],
            None => vec![word.to_owned()],
        };
        line.split_whitespace().flat_map(word).collect()
    }

    /// Replaces what differs from run to run: the folder, the command, times and sizes.
    fn steady(&self, text: &str, line: &str) -> String {
        let folder = format!("{}{}", self.0.path().display(), std::path::MAIN_SEPARATOR);
        let app = format!("{EXIT_3} exit 3");
        let text = text.replace(&folder, "").replace(&folder.replace('\\', "\\\\"), "").replace(&app, "app");
        let is_measured = ["stat", "record", "branches"].iter().any(|verb| line.starts_with(verb));
        let text = without_system_errors(&text);
        let text = if is_measured { without_times(&text) } else { text };
        let version = env!("CARGO_PKG_VERSION");
        text.replace(&format!("client {version}"), "client VERSION")
    }
}

/// Replaces the texts of the system, which have another wording on each: those of a missing file or program, and of a
/// denied access.
fn without_system_errors(text: &str) -> String {
    let errors = [2, 3, 5].map(|code| io::Error::from_raw_os_error(code).to_string());
    let errors = errors.into_iter().chain(["program not found".to_owned()]);
    errors.fold(text.to_owned(), |text, error| text.replace(&error, "SYSTEM ERROR")).replace("gone\\file", "gone/file")
}

/// Replaces each number with a decimal point before a unit of time, and each size in bytes and rate of wakeups.
fn without_times(text: &str) -> String {
    let is_time = |word: &str| word.contains('.') && word.parse::<f64>().is_ok();
    let is_size = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit() || byte == b',') && !word.is_empty();
    let line = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let next = |index: usize| words.get(index + 1).copied().unwrap_or_default();
        let word = |(index, word): (usize, &&str)| match (*word, next(index)) {
            (word, "s" | "s," | "seconds" | "seconds:") if is_time(word) => "TIME".to_owned(),
            (word, "bytes" | "bytes," | "kB" | "kB,") if is_size(word) => "SIZE".to_owned(),
            (word, "wakeups/s") if is_size(word) => "RATE".to_owned(),
            (word, ")") if word.ends_with('%') => "ERROR".to_owned(),
            (word, _) => word.to_owned(),
        };
        words.iter().enumerate().map(word).collect::<Vec<_>>().join(" ")
    };
    // The width of an error varies.
    let lines = text.lines().map(|text| line(text).replace("+-  ERROR", "+- ERROR"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Runs a command line as `main` does. Returns standard output, standard error and the exit code.
fn client(system: Option<&FakeSystem>, words: &[String]) -> (String, String, i32) {
    let words: Vec<OsString> =
        ["client"].into_iter().map(OsString::from).chain(words.iter().map(OsString::from)).collect();
    let cli = match usage::parse_words(&words) {
        Ok(cli) => cli,
        Err(error) => {
            return match usage::report(&error, &words) {
                Some(report) => (String::new(), format!("{report}\n"), Exit::Usage.code()),
                None => (error.render().to_string(), String::new(), error.exit_code()),
            };
        }
    };
    let (mut input, mut out, mut err) = (io::empty(), Vec::new(), Vec::new());
    let system = system.map(|system| system as &dyn system::System);
    let outcome = super::super::run(&cli.verb, &mut Context::new(system, &mut input, &mut out, &mut err));
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (out, mut err) = (text(out), text(err));
    let code = outcome.unwrap_or_else(|error| {
        // Writing to a `String` cannot fail.
        let _ = writeln!(err, "{}", error.report());
        error.exit().code()
    });
    (out, err, code)
}

/// Returns the transcript of command lines without Windows, each with files of its own.
fn without_windows(lines: &[&str]) -> String {
    transcript(|| None, lines)
}

/// Returns the transcript of command lines on machines, each on one of its own.
fn on(machine: impl Fn() -> FakeSystem, lines: &[&str]) -> String {
    transcript(|| Some(machine()), lines)
}

fn transcript(system: impl Fn() -> Option<FakeSystem>, lines: &[&str]) -> String {
    let mut text = Vec::new();
    for line in lines {
        let files = Files::new();
        let system = system();
        let (out, err, code) = client(system.as_ref(), &files.words(line));
        let (out, err) = (files.steady(&out, line), files.steady(&err, line));
        let hidden = out.lines().count().saturating_sub(MAX_LINES);
        text.push(format!("> client {line}"));
        text.extend(out.lines().take(MAX_LINES).map(|line| format!("  | {line}")));
        text.extend((hidden > 0).then(|| format!("  | ({hidden} more lines)")));
        text.extend(err.lines().map(|line| format!("  ! {line}")));
        text.push(format!("  exit code {code}\n"));
    }
    let lines: Vec<&str> = text.iter().map(|line| line.trim_end_matches(' ')).collect();
    lines.join("\n")
}
