//! Tests with code: perf maps, inlined functions and disassembly of the images among the fixtures of `report`.

use std::io::Read as _;
use std::path::Path;

use flate2::read::GzDecoder;
use protocol::{CounterKind, CounterSample, Mode, SampleRecord};
use recording::{DebugFile, Module, Process, RecordedEvent, RecordedSession, Summary, Writer};
use tempfile::TempDir;

use super::*;

const DLL: &[u8] = include_bytes!("../../../../crates/report/tests/fixtures/functions.dll");
const PDB: &[u8] = include_bytes!("../../../../crates/report/tests/fixtures/functions.pdb.gz");

/// Base address of functions.dll.
const BASE: u64 = 0x1_8000_0000;

/// Address of compiled code.
const JIT: u64 = 0x7FF8_1234_0000;

fn dll() -> Module {
    let debug = DebugFile { name: "functions.pdb".to_owned(), id: "FB43168BD573ADCA4C4C44205044422E1".to_owned() };
    Module {
        base: BASE,
        size: 20480,
        path: "C:\\fixtures\\functions.dll".to_owned(),
        timestamp: 0x52AB_7D57,
        image_size: 20480,
        debug: Some(debug),
    }
}

/// Creates a folder with a recording, a.rec, of samples at these addresses.
fn folder(modes: u32, samples: &[u64]) -> TempDir {
    folder_with(dll(), modes, samples)
}

fn folder_with(dll: Module, modes: u32, samples: &[u64]) -> TempDir {
    let event =
        RecordedEvent { source: 25, name: "TotalCycles".to_owned(), modes, interval: 1000, frequency: 0, core_type: 0 };
    let session = RecordedSession {
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
        condition: None,
        last_branches: 0,
        tasks: recording::RecordedTasks::default(),
        part: 0,
    };
    let record = |ip: &u64| -> SampleRecord {
        CounterSample {
            time: 1000,
            ip: *ip,
            process: 8,
            thread: 9,
            processor: 0,
            event: 0,
            interval: 1000,
            kind: CounterKind::Sample,
            mode: Mode::User,
            pebs_sequence: 0,
            cookie: 0,
        }
        .into()
    };
    let mut writer = Writer::new(Vec::new(), &session).unwrap();
    writer.process(&Process { id: 8, created: None, name: "app.exe".to_owned(), modules: vec![dll] }).unwrap();
    writer.samples(&samples.iter().map(record).collect::<Vec<_>>()).unwrap();
    let summary = Summary { elapsed: 10_000_000, exit_code: Some(0), ..Summary::default() };
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
    // The page has one row of the function, and beneath it what is inlined.
    let page = run("export FILE --format html").out;
    assert_eq!(page.matches("\"symbol\":\"functions::alpha()\"").count(), 1, "{page}");
    let parts = page.split("{\"frames\":[").skip(1).filter_map(|part| Some(part.split_once('}')?.0));
    let wanted = [("atomic_add()", "0.5,\"samples\":2"), ("atomic_xor()", "0.25,\"samples\":1")];
    assert_eq!(parts.clone().count(), wanted.len());
    for (part, (innermost, share)) in parts.zip(wanted) {
        assert!(part.contains(&format!("core::sync::atomic::{innermost}\"],\"share\":{share}")), "{part}");
    }
    let stacks = run("export FILE --format folded").out;
    let first = "app.exe;functions.dll;functions::alpha() 1000\napp.exe;functions.dll;functions::alpha();core::";
    assert!(stacks.starts_with(first), "{stacks}");
}

/// Creates a folder with a recording of samples in functions.dll, its image and its PDB.
fn functions(modes: u32) -> TempDir {
    let folder =
        folder(modes, &[0x1020, 0x1020, 0x1020, 0x1028, 0x1030, 0x1040, 0x1053, JIT - BASE].map(|at| BASE + at));
    fs::write(folder.path().join("functions.dll"), DLL).unwrap();
    add_pdb(folder.path());
    folder
}

#[test]
fn annotate_shows_instructions_with_their_shares_and_lines() {
    let folder = functions(modes::BOTH);
    fs::write(folder.path().join("functions.rs"), "\n".repeat(33) + "    alpha();\n    inner::beta();\n").unwrap();
    let text = |function: &str| {
        let run = run_in(folder.path(), &format!("annotate {function} FILE"));
        assert_eq!((run.outcome.unwrap(), run.err.as_str()), (Exit::Done.code(), ""), "{function}");
        run.out.replace(folder.path().to_str().unwrap(), "FOLDER")
    };
    insta::assert_snapshot!(text("functions::entry()") + &text("ALPHA"));
    for same in ["*alpha()", "functions!*alpha*", "functions.dll!functions::alpha()", "FUNCTIONS!alpha"] {
        assert_eq!(text(same), text("functions::alpha()"), "{same}");
    }
}

/// Go writes no time stamp and no debug record.
#[test]
fn names_of_an_image_that_cannot_be_verified_are_shown_with_a_note() {
    let module = Module { timestamp: 0, debug: None, ..dll() };
    let folder = folder_with(module, modes::BOTH, &[BASE + 0x1020, BASE + 0x1040]);
    let image = folder.path().join("functions.dll");
    let mut bytes = DLL.to_vec();
    let stamp = bytes.windows(4).position(|bytes| bytes == 0x52AB_7D57_u32.to_le_bytes()).unwrap();
    bytes[stamp..stamp + 4].fill(0);
    fs::write(&image, bytes).unwrap();
    let note = format!(
        "note: the names of functions.dll can be wrong: {} cannot be verified: it has no time stamp of its own and \
         names no PDB, so another build can look the same\n",
        image.display()
    );
    let run = run_in(folder.path(), "report FILE");
    assert_eq!(rows(&run.out), ["functions.dll  alpha", "functions.dll  entry"]);
    assert_eq!(run.err, note);
    assert_eq!(run_in(folder.path(), "annotate alpha FILE").err, note);
}

#[test]
fn annotate_as_json_has_every_instruction() {
    let folder = functions(modes::BOTH);
    let json = run_in(folder.path(), "annotate alpha FILE --json").json();
    let fields = ["skid", "samples", "events", "share", "samples_outside"].map(|key| json[key].clone());
    assert_eq!(fields, [json!("interrupt"), json!(5), json!(5000), json!(0.625), json!(0)]);
    let instructions: Vec<_> = json["instructions"].as_array().unwrap().iter().collect();
    let shares: Vec<_> = instructions.iter().map(|one| (&one["address"], &one["samples"], &one["share"])).collect();
    assert_eq!(
        shares,
        [
            (&json!("0x1020"), &json!(3), &json!(0.6)),
            (&json!("0x1028"), &json!(1), &json!(0.2)),
            (&json!("0x1030"), &json!(1), &json!(0.2)),
        ]
    );
    assert_eq!(instructions[2]["line"], json!({ "file": "/fixtures/functions.rs", "number": 20 }));
}

#[test]
fn annotate_and_report_have_colors_only_where_they_are_wanted() {
    let folder = functions(modes::BOTH);
    for (verb, wanted) in [
        ("annotate alpha", "\u{1b}[1m\u{1b}[31m 60.00%\u{1b}[0m        3     1020  lock add"),
        ("annotate alpha", "\u{1b}[36matomic.rs:"),
        ("report", "\n  \u{1b}[1m\u{1b}[31m62.50%\u{1b}[0m        5  app.exe (8)"),
        ("report", "\n\u{1b}[2mOverhead  Samples  Process"),
    ] {
        let line = format!("{verb} {}", folder.path().join("a.rec").display());
        let cli = Cli::try_parse_from(["client"].into_iter().chain(line.split_whitespace())).unwrap();
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut input = io::empty();
        let mut context = Context::new(None, &mut input, &mut out, &mut err);
        context.out.has_colors = true;
        super::super::run(&cli.verb, &mut context).unwrap();
        let colored = String::from_utf8(out).unwrap();
        assert!(colored.contains(wanted), "{colored}");
        let plain = run_anywhere(&line, &[]).out;
        assert_eq!(anstream::adapter::strip_str(&colored).to_string(), plain);
    }
}

#[test]
fn annotate_says_what_is_missing() {
    let folder = functions(modes::BOTH);
    let failure = |line: &str| run_in(folder.path(), line).failure();
    let (exit, report) = failure("annotate omega FILE");
    assert_eq!(
        (exit, report.lines().next()),
        (Exit::NotRecorded, Some("error: no function with samples matches omega"))
    );
    assert_eq!(failure("annotate other!alpha FILE").0, Exit::NotRecorded);
    assert_eq!(
        failure("annotate functions FILE"),
        (
            Exit::NotRecorded,
            "error: functions matches 2 functions:\n  functions.dll!functions::alpha()\n  \
             functions.dll!functions::entry()\n  try: .\\client annotate \"functions.dll!functions::alpha()\""
                .to_owned()
        )
    );
    let path = folder.path().join("functions.dll");
    let remedy = "try: --symbols DIR, with the recorded functions.dll (time stamp 52AB7D57, size 0x5000)";
    let mut other = DLL.to_vec();
    let stamp = other.windows(4).position(|bytes| bytes == 0x52AB_7D57_u32.to_le_bytes()).unwrap();
    other[stamp] ^= 1;
    fs::write(&path, other).unwrap();
    let (exit, report) = failure("annotate alpha FILE");
    let what = "error: there is no machine code for functions.dll!functions::alpha()";
    let because = format!("{} is from another build", path.display());
    assert_eq!((exit, report), (Exit::NoCode, format!("{what}\n  because: {because}\n  {remedy}")));
    fs::remove_file(&path).unwrap();
    let (exit, report) = failure("annotate alpha FILE");
    assert_eq!((exit, report), (Exit::NoCode, format!("{what}\n  because: no image was found\n  {remedy}")));
}
