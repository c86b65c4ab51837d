//! Tests of `export --format autofdo`.

use protocol::{Prediction, last_branches};

use super::last_branches::with_branches;
use super::*;

/// A program with a loop from 0x1040 to 0x1083, of crates/report/tests/fixtures/branches.c.
pub(super) const IMAGE: &[u8] = include_bytes!("../../../../../crates/report/tests/fixtures/branches.exe");

/// Its branch, that into it, and the call before both.
pub(super) const LOOP: [(u64, u64); 3] = [(0x1083, 0x1040), (0x100A, 0x1019), (0x10B8, 0x1000)];

pub(super) const USER: u32 = last_branches::USER | last_branches::ANY;

/// Returns a recording of ten samples of the program with these branches, the newest first, and of one of ntdll.
pub(super) fn of(bits: u32, branches: &[(u64, u64)]) -> File {
    let untimed: Vec<(u64, u64, u16)> = branches.iter().map(|(from, to)| (*from, *to, 0)).collect();
    timed(bits, &untimed)
}

/// Returns what [`of`] does, of branches with their cycles.
pub(super) fn timed(bits: u32, branches: &[(u64, u64, u16)]) -> File {
    of_events(bits, branches, &[0])
}

/// Returns what [`timed`] does, with ten samples of the program for each of these events.
pub(super) fn of_events(bits: u32, branches: &[(u64, u64, u16)], events: &[u32]) -> File {
    let path = "C:\\app\\branches.exe".to_owned();
    let session = RecordedSession { last_branches: bits, command: vec![path.clone()], ..session() };
    let mut writer = Writer::new(Vec::new(), &session).unwrap();
    let image = Module { timestamp: 0x7BFE_7F2A, image_size: 36_864, debug: None, ..module(APP, &path) };
    let modules = vec![image, module(NTDLL, "C:\\Windows\\ntdll.dll")];
    writer.process(&Process { id: 8, created: None, name: "branches.exe".to_owned(), modules }).unwrap();
    let at = |base: u64| {
        move |(from, to, cycles): &(u64, u64, u16)| (base + from, base + to, Prediction::Predicted, *cycles)
    };
    let sample = |event, time| CounterSample { time, ..record(event, 100_003, 8, APP + 0x1075) };
    let app: Vec<_> = branches.iter().map(at(APP)).collect();
    let ntdll: Vec<_> = [(0x20, 0x10, 0), (0x20, 0x10, 0)].iter().map(at(NTDLL)).collect();
    let of_event = |event: &u32| (0..10).flat_map(|time| with_branches(sample(*event, 2 * time), &app)).collect();
    let records: Vec<Vec<SampleRecord>> = events.iter().map(of_event).collect();
    writer.samples(&records.concat()).unwrap();
    writer.samples(&with_branches(sample(0, 1_000), &ntdll)).unwrap();
    File::holding(&writer.finish(&summary()).unwrap())
}

#[test]
fn the_profile_is_that_of_the_program_and_agrees_with_its_image() {
    let file = of(USER, &[LOOP[0], LOOP[0], LOOP[1], LOOP[2]]);
    let text = "3\n1000-100a:10\n1019-1083:10\n1040-1083:10\n3\n100a->1019:10\n1083->1040:20\n10b8->1000:10\n";
    let ran = file.run("export FILE --format autofdo");
    assert_eq!((ran.out.as_str(), ran.outcome.unwrap()), (text, 0));
    let told = "[ branches.exe: 3 ranges 30 times, 3 branches 40 times, of 11 samples ]\nnote: the branches were not ";
    assert!(ran.err.starts_with(told), "{}", ran.err);
    fs::write(file.beside("branches.exe"), IMAGE).unwrap();
    let ran = file.run("export FILE --format autofdo -o OUT.txt");
    assert!(ran.err.ends_with("of 11 samples ]\n"), "{}", ran.err);
    assert_eq!(fs::read_to_string(file.beside("out.txt")).unwrap(), text);
    assert_eq!(file.run("export FILE --format autofdo --module ntdll").out, "1\n10-20:1\n1\n20->10:2\n");
}

#[test]
fn branches_of_fused_instructions_are_corrected_and_those_of_other_code_refused() {
    let file = of(USER, &[(0x1080, 0x1040), (0x1080, 0x1040)]);
    fs::write(file.beside("branches.exe"), IMAGE).unwrap();
    let ran = file.run("export FILE --format autofdo");
    assert_eq!(ran.out, "1\n1040-1083:10\n1\n1083->1040:20\n");
    assert!(ran.err.contains("[ 20 branches: the processor named the instruction before the branch"), "{}", ran.err);
    let file = of(USER, &[LOOP[0], (0x1066, 0x1040)]);
    fs::write(file.beside("branches.exe"), IMAGE).unwrap();
    let (exit, report) = file.run("export FILE --format autofdo").failure();
    assert_eq!(exit, Exit::NoCode);
    assert!(report.starts_with("error: 10 of 20 branches are at no branch instruction of "), "{report}");
}

#[test]
fn what_makes_no_profile_is_refused_with_the_reason() {
    let kinds = last_branches::MODES | last_branches::DIRECT_CALL | last_branches::RETURN;
    let other = "the recording has no branches in a module kernel32; it has branches.exe, ntdll.dll";
    for (bits, options, text) in [
        (0, "", "the samples of "),
        (kinds, "", "the recording has some kinds of branches only"),
        (USER, "--module kernel32", other),
        (USER, "--symbol foo", "--symbol has no meaning for --format autofdo"),
        (USER, "-e BranchMispredictions", "no branch of the selected samples is in a module"),
    ] {
        let (_, report) = of(bits, &LOOP).run(&format!("export FILE --format autofdo {options}")).failure();
        assert!(report.starts_with(&format!("error: {text}")), "{report}");
    }
    let (exit, report) = of(USER, &LOOP).run("export FILE --format autofdo --module *").failure();
    assert_eq!(exit, Exit::NotRecorded);
    assert_eq!(report, "error: several modules have branches: branches.exe, ntdll.dll\n  try: --module branches.exe");
}
