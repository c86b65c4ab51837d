//! Tests of the program with an output that is closed before it writes: `.\client report | head`.

#![expect(clippy::unwrap_used, reason = "test helpers fail by panicking")]

use std::io;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use protocol::{CounterKind, CounterSample, Mode, SampleRecord, modes};
use recording::{Count, RecordedEvent, RecordedSession, Summary, Writer};

/// Creates a recording of 10,000 samples at different addresses. No output of it fits into the buffer of a pipe.
pub fn record(path: &Path) {
    let event = RecordedEvent {
        source: 0x13,
        name: "TotalCycles".to_owned(),
        modes: modes::BOTH,
        interval: 65_536,
        frequency: 0,
        core_type: 0,
    };
    let session = RecordedSession {
        created_unix_ms: 1_767_225_600_000,
        client: "0.1.0".to_owned(),
        driver: "0.1.0".to_owned(),
        processor: "Example Processor".to_owned(),
        computer: None,
        command: Vec::new(),
        clock: 10_000_000,
        processors: vec![0],
        batch: 0,
        core_types: Vec::new(),
        events: vec![event],
        condition: None,
        last_branches: 0,
        tasks: recording::RecordedTasks::default(),
        part: 0,
    };
    let sample = |number: u64| CounterSample {
        time: number,
        ip: 0x1_4000_0000 + 16 * number,
        process: 8,
        thread: 9,
        processor: 0,
        event: 0,
        interval: 65_536,
        kind: CounterKind::Sample,
        mode: Mode::User,
        pebs_sequence: 0,
        cookie: 0,
    };
    let samples: Vec<SampleRecord> = (0..10_000).map(|number| sample(number).into()).collect();
    let count = Count {
        event: 0,
        processor: 0,
        count: 0,
        samples: 10_000,
        lost: 0,
        throttled: 0,
        unmet: 0,
        filtered: 0,
        disturbed: None,
        recorder: 0,
    };
    let summary = Summary { elapsed: 10_000_000, counts: vec![count], ..Summary::default() };
    let mut writer = Writer::new(std::fs::File::create(path).unwrap(), &session).unwrap();
    writer.samples(&samples).unwrap();
    writer.finish(&summary).unwrap();
}

/// Returns the write end of a pipe with a closed read end.
fn closed() -> Stdio {
    let (reader, writer) = io::pipe().unwrap();
    drop(reader);
    writer.into()
}

fn client(line: &str, file: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_client"));
    command.args(line.split_whitespace().map(|word| if word == "FILE" { file.to_str().unwrap() } else { word }));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

#[test]
fn every_verb_ends_quietly_if_its_output_is_closed() {
    let file = tempfile::NamedTempFile::new().unwrap();
    record(file.path());
    for line in [
        "list --interface amd64",
        "list --interface amd64 --json",
        "diagnose",
        "diagnose --json",
        "report FILE",
        "report FILE --csv",
        "report FILE --json",
        "report FILE --merge",
        "report FILE --merge --csv",
        "report FILE --merge --json",
        "export FILE --format csv",
        "export FILE --format folded",
        "export FILE --format json",
        "export FILE --format firefox",
        "flamegraph FILE -o -",
        "--help",
        "--version",
    ] {
        let Output { status, stderr, .. } = client(line, file.path()).stdout(closed()).output().unwrap();
        assert_eq!((status.code(), String::from_utf8_lossy(&stderr).as_ref()), (Some(0), ""), "{line}");
    }
}

#[test]
fn errors_have_their_code_with_a_closed_standard_error() {
    for (line, code) in [("report no-such-file", 21), ("report --sort colour", 2), ("stat --per-cup app", 2)] {
        let Output { status, stdout, .. } = client(line, Path::new("")).stderr(closed()).output().unwrap();
        assert_eq!((status.code(), stdout.len()), (Some(code), 0), "{line}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_reported_as_an_error() {
    let file = tempfile::NamedTempFile::new().unwrap();
    record(file.path());
    for line in ["list --interface amd64", "report FILE --csv", "export FILE --format firefox"] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let Output { status, stderr, .. } = client(line, file.path()).stdout(full).output().unwrap();
        assert_eq!(status.code(), Some(1), "{line}");
        let stderr = String::from_utf8_lossy(&stderr);
        assert!(stderr.contains("error: cannot write the output\n  because: No space left on device"), "{stderr}");
    }
}
