//! Tests with code: perf maps, inlined functions and disassembly of the images among the fixtures of `report`.

use std::io::Read as _;
use std::path::Path;

use flate2::read::GzDecoder;
use protocol::{CounterKind, CounterSample, Mode, SampleRecord};
use recording::{DebugFile, Module, Process, RecordedEvent, Session, Summary, Writer};
use tempfile::TempDir;

use super::*;

const PDB: &[u8] = include_bytes!("../../../../crates/report/tests/fixtures/functions.pdb.gz");

/// Base address of functions.dll.
const BASE: u64 = 0x1_8000_0000;

/// Address of compiled code.
const JIT: u64 = 0x7FF8_1234_0000;

/// Creates a folder with a recording, a.rec, of samples at these addresses.
fn folder(modes: u32, samples: &[u64]) -> TempDir {
    let event =
        RecordedEvent { source: 25, name: "TotalCycles".to_owned(), modes, interval: 1000, frequency: 0, core_type: 0 };
    let session = Session {
        created_unix_ms: 1_767_225_600_000,
        client: "0.1.0".to_owned(),
        driver: "0.1.0".to_owned(),
        processor: "Example Processor 3000".to_owned(),
        computer: Some("WS1".to_owned()),
        command: vec!["app.exe".to_owned()],
        clock: 10_000_000,
        processors: vec![0],
        batch: 0,
        core_types: Vec::new(),
        events: vec![event],
    };
    let debug = DebugFile { name: "functions.pdb".to_owned(), id: "FB43168BD573ADCA4C4C44205044422E1".to_owned() };
    let dll = Module {
        base: BASE,
        size: 20480,
        path: "C:\\fixtures\\functions.dll".to_owned(),
        timestamp: 0x52AB_7D57,
        image_size: 20480,
        debug: Some(debug),
    };
    let record = |ip: &u64| -> SampleRecord {
        CounterSample {
            time: 1000,
            ip: *ip,
            process: 8,
            thread: 9,
            processor: 0,
            source: 25,
            interval: 1000,
            kind: CounterKind::Sample,
            mode: Mode::User,
            pebs_sequence: 0,
        }
        .into()
    };
    let mut writer = Writer::new(Vec::new(), &session).unwrap();
    writer.process(&Process { id: 8, name: "app.exe".to_owned(), modules: vec![dll] }).unwrap();
    writer.samples(&samples.iter().map(record).collect::<Vec<_>>()).unwrap();
    let summary = Summary { elapsed: 10_000_000, counts: Vec::new(), interrupted_by_user: false, exit_code: Some(0) };
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.rec"), writer.finish(&summary).unwrap()).unwrap();
    folder
}

/// Runs a verb with the recording as FILE.
fn run_in(folder: &Path, line: &str) -> Run {
    run_anywhere(&line.replace("FILE", folder.join("a.rec").to_str().unwrap()), &[])
}

fn add_pdb(folder: &Path) {
    let mut pdb = Vec::new();
    GzDecoder::new(PDB).read_to_end(&mut pdb).unwrap();
    fs::write(folder.join("functions.pdb"), pdb).unwrap();
}

/// Returns the last columns of the table in `out`.
fn rows(out: &str) -> Vec<&str> {
    out.lines()
        .filter(|line| line.contains('%'))
        .filter_map(|line| line.split_once("app.exe (8)  "))
        .map(|(_, rest)| rest.trim_end())
        .collect()
}

#[test]
fn a_report_names_compiled_code_and_reports_bad_lines_of_its_map() {
    let folder = folder(modes::BOTH, &[JIT, JIT, JIT + 0x2000, JIT + 0x3000, JIT + 0x1_0000]);
    fs::write(folder.path().join("perf-8.map"), "7ff812340000 20 [App] Main()\nbad line\n").unwrap();
    let run = run_in(folder.path(), "report FILE --symbols nowhere");
    assert_eq!(
        rows(&run.out),
        [
            "[JIT]      [App] Main()",
            "[unknown]  [JIT or unmapped] 0x7ff812340000",
            "[unknown]  [JIT or unmapped] 0x7ff812350000",
        ]
    );
    let path = folder.path().join("perf-8.map");
    assert_eq!(run.err, format!("warning: {}: 1 line without a function left out\n", path.display()));
    assert_eq!(run.outcome.unwrap(), Exit::Done.code());
}

#[test]
fn inline_attributes_samples_to_inlined_functions() {
    let folder = folder(modes::BOTH, &[BASE + 0x1020, BASE + 0x1020, BASE + 0x1028, BASE + 0x1030]);
    add_pdb(folder.path());
    let run = |line| run_in(folder.path(), line);
    assert_eq!(rows(&run("report FILE").out), ["functions.dll  functions::alpha()"]);
    assert_eq!(
        rows(&run("report FILE --inline --wide").out),
        [
            "functions.dll  core::sync::atomic::atomic_add() (inlined)",
            "functions.dll  core::sync::atomic::atomic_xor() (inlined)",
            "functions.dll  functions::alpha()",
        ]
    );
    let stacks = run("export FILE --format folded").out;
    let first =
        "app.exe (8);functions.dll;functions::alpha() 1000\napp.exe (8);functions.dll;functions::alpha();core::";
    assert!(stacks.starts_with(first), "{stacks}");
}
