//! Tests of `report --branch`.

use protocol::{BranchKind, BranchRecord, BranchType, Prediction, last_branches};

use super::*;

/// Returns a sample with branches: source, target, prediction and cycles of each, the newest first.
pub(in super::super) fn with_branches(
    sample: CounterSample,
    branches: &[(u64, u64, Prediction, u16)],
) -> Vec<SampleRecord> {
    let CounterSample { time, process, thread, processor, event, .. } = sample;
    let record = |&(from, to, prediction, cycles): &(u64, u64, Prediction, u16)| {
        BranchRecord {
            time,
            from,
            process,
            thread,
            processor,
            event,
            cycles,
            prediction,
            branch_type: BranchType::NotReported,
            kind: BranchKind::LastBranch,
            mode: if from >= NT { Mode::Kernel } else { Mode::User },
            to,
        }
        .into()
    };
    [sample.into()].into_iter().chain(branches.iter().map(record)).collect()
}

/// Returns a recording of these samples.
pub(in super::super) fn recorded(session: &RecordedSession, records: &[SampleRecord]) -> File {
    let mut writer = Writer::new(Vec::new(), session).unwrap();
    for process in processes() {
        writer.process(&process).unwrap();
    }
    writer.samples(records).unwrap();
    File::holding(&writer.finish(&summary()).unwrap())
}

fn bench() -> File {
    let bits = last_branches::MODES | last_branches::ANY;
    let session = RecordedSession { last_branches: bits, ..session() };
    let (hit, miss, unknown) = (Prediction::Predicted, Prediction::Mispredicted, Prediction::NotReported);
    let of = |time| CounterSample { time, ..record(0, 100_003, 8, APP + 0x1000) };
    let records = [
        with_branches(of(1_000), &[(APP + 0x30, APP + 0x10, hit, 4), (APP + 0x30, APP + 0x10, miss, 20)]),
        with_branches(of(2_000), &[(APP + 0x50, NT + 0x100, unknown, 0), (APP + 0x30, APP + 0x10, hit, 6)]),
        // The process has no module at the target.
        with_branches(of(3_000), &[(APP + 0x30, 0x77_0000, hit, 6), (APP + 0x30, APP + 0x10, hit, 6)]),
    ];
    recorded(&session, &records.concat())
}

#[test]
fn the_last_branches_are_shown_by_source_and_target() {
    let bench = bench();
    insta::assert_snapshot!(bench.run("report FILE --branch").out);
    let rest = bench.run("report FILE --branch --limit 1").out;
    assert!(rest.ends_with("1 row left out; --limit N shows N\n"), "{rest}");
    let csv = bench.run("report FILE --branch --csv").out;
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(
        lines[1..],
        [
            "3,0.750000,0.333333,10.000000,0x0000000140000030,app.exe,app.exe+0x30,0x0000000140000010,app.exe,app.exe+0x10",
            "1,0.250000,,,0x0000000140000050,app.exe,app.exe+0x50,0xfffff80000000100,ntoskrnl.exe,ntoskrnl.exe+0x100"
        ]
    );
    let json = bench.run("report FILE --branch --json").json();
    let of = |member: &str| json[member].as_u64().unwrap();
    assert_eq!(["samples", "records", "cut_samples", "cut", "different"].map(of), [3, 4, 1, 2, 2]);
}

#[test]
fn csv_has_a_line_for_each_branch_behind_its_sample_with_what_the_processor_reports() {
    let csv = bench().run("export FILE --format csv").out;
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 1 + 3 + 4, "{csv}");
    assert!(
        lines[0].ends_with(",branch_type,operation,memory_level,snoop,tlb,locked,data_address,latency,data_source"),
        "{csv}"
    );
    let branches: Vec<&str> = lines.iter().copied().filter(|line| line.contains(",last_branch,")).collect();
    let first = "0,last_branch,0,TotalCycles,8,app.exe,9,u,0,0x0000000140000030,app.exe,app.exe+0x30,";
    let rest = ["predicted,4,,,,,,,,,", "mispredicted,20,,,,,,,,,"]
        .map(|rest| format!("{first},0x0000000140000010,,,,,{rest}"));
    assert_eq!(branches[..2], rest);
    let call = "0x0000000140000050,app.exe,app.exe+0x50,,0xfffff80000000100,,,,,,,,,,,,,,,";
    assert!(branches[2].ends_with(call), "{}", branches[2]);
    assert!(lines[1].contains(",sample,") && lines[4].contains(",sample,"), "{csv}");
}

#[test]
fn folded_histories_have_the_newest_end_next_to_the_function() {
    let bench = bench();
    let folded = bench.run("export FILE --format folded --branch-history").out;
    let path = "app.exe;app.exe+0x1000";
    let round = "to app.exe+0x10;from app.exe+0x30";
    let call = "to ntoskrnl.exe+0x100_[k];from app.exe+0x50";
    assert_eq!(folded, format!("{path} 100003\n{path};{round} 100003\n{path};{call};{round} 100003\n"));
    let graph = bench.run("flamegraph FILE --branch-history -o -").out;
    assert!(graph.contains("from app.exe+0x50"), "{graph}");
    let (exit, report) = bench.run("export FILE --format pprof --branch-history -o OUT").failure();
    assert_eq!(exit, Exit::Usage);
    assert!(report.starts_with("error: --branch-history is only for --format folded"), "{report}");
    let (exit, _) = recorded(&session(), &[]).run("flamegraph FILE --branch-history -o -").failure();
    assert_eq!(exit, Exit::NotRecorded);
}

#[test]
fn script_has_a_line_of_branches_behind_each_sample_on_request() {
    let run = bench().run("script FILE -F +brstack");
    let branches: Vec<&str> = run.out.lines().filter(|line| line.contains("/-/-/")).collect();
    let round = |end| format!(" 0x140000030/0x140000010/{end}");
    let unknown = " 0x140000050/0xfffff80000000100/-/-/-/0";
    let wanted = [[round("P/-/-/4"), round("M/-/-/20")].concat(), format!("{unknown}{}", round("P/-/-/6"))];
    assert_eq!(branches, wanted);
    assert_eq!(
        run.err.lines().next(),
        Some("[ 2 branches: of 1 sample other processes can have them ]"),
        "{}",
        run.err
    );
    // The rest is what it is without them.
    let without = bench().run("script FILE").out;
    let rest: Vec<&str> = run.out.lines().filter(|line| !line.contains("/-/-/")).collect();
    assert_eq!(rest, without.lines().collect::<Vec<_>>());
    let (exit, report) = recorded(&session(), &[]).run("script FILE -F +brstack").failure();
    assert_eq!(exit, Exit::NotRecorded);
    assert!(report.ends_with(" have no last branches\n  try: .\\client record -b -- COMMAND"), "{report}");
}

#[test]
fn names_select_where_a_branch_begins() {
    let bench = bench();
    let csv = bench.run("report FILE --branch --csv --module app").out;
    assert_eq!(csv.lines().count(), 3);
    let (exit, report) = bench.run("report FILE --branch --module ntoskrnl").failure();
    assert_eq!(exit, Exit::NotRecorded);
    assert!(report.contains("module ntoskrnl; it has app.exe"), "{report}");
}

#[test]
fn a_recording_without_branches_says_how_to_record_them() {
    let (exit, report) = recorded(&session(), &[]).run("report FILE --branch").failure();
    assert_eq!(exit, Exit::NotRecorded);
    assert!(report.ends_with(" have no last branches\n  try: .\\client record -b -- COMMAND"), "{report}");
}

#[test]
fn last_branches_are_in_no_count_of_other_reports() {
    let json = bench().run("report FILE --json").json();
    assert_eq!(json["sources"][0]["samples"], 3);
    assert_eq!(json["sources"][0]["rows"].as_array().unwrap().len(), 1);
}

#[test]
fn the_branch_history_is_below_the_function_with_the_newest_end_first() {
    insta::assert_snapshot!(bench().run("report FILE --branch-history").out);
}
