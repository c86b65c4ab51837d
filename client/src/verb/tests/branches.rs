//! Tests of `branches`.

use std::collections::VecDeque;

use protocol::{
    BRANCHES, BranchKind, BranchRecord, BranchType, Event, EventRequest, Mode, PauseKind, PauseRecord, Prediction,
    SampleRecord, StartHeader, StopKind, StopRecord, UNKNOWN,
};
use recording::{Block, Reader};

use super::*;
use fake_system::{CLOCK, module};

const APP: u64 = 0x40_0000;
const NT: u64 = 0xFFFF_F800_0000_0000;

/// Creates a branch on processor 0.
fn branch(from: u64, to: u64, prediction: Prediction) -> SampleRecord {
    let (time, process, thread, processor, event) = (1, UNKNOWN, UNKNOWN, 0, 0);
    let (kind, mode) = (BranchKind::Branch, if from < NT { Mode::User } else { Mode::Kernel });
    BranchRecord {
        time,
        from,
        process,
        thread,
        processor,
        event,
        cycles: 0,
        prediction,
        branch_type: BranchType::NotReported,
        kind,
        mode,
        to,
    }
    .into()
}

/// Returns eight branches, five of them equal.
fn records(prediction: Prediction) -> Vec<SampleRecord> {
    let mut records = vec![branch(APP + 0x10, APP + 0x80, prediction); 4];
    records.push(branch(APP + 0x10, APP + 0x80, Prediction::NotReported));
    records.push(branch(APP + 0x20, NT + 0x100, Prediction::NotReported));
    records.extend([branch(NT + 0x200, NT + 0x300, prediction); 2]);
    records
}

fn system(records: &[SampleRecord]) -> FakeSystem {
    let driver = FakeDriver::default();
    driver.samples.replace(records.chunks(3).map(<[SampleRecord]>::to_vec).collect::<VecDeque<_>>());
    let count = |processor, lost| CountRecord { samples: 4, lost, ..count(BRANCHES, processor, 4, SECOND) };
    driver.counts.replace(vec![count(0, 2), count(3, 0)]);
    let system = FakeSystem::running(driver);
    system.kernel.replace(vec![module(NT, "C:\\ntoskrnl.exe")]);
    system
}

fn start(system: &FakeSystem) -> (StartHeader, EventRequest) {
    let [input] = &system.driver.inputs(Code::Start)[..] else { panic!() };
    let (header, event) = StartHeader::read_from_prefix(input).unwrap();
    (header, EventRequest::read_from_bytes(event).unwrap())
}

#[test]
fn the_session_has_one_event_with_the_buffer_as_its_interval() {
    for (options, modes, buffer, ring) in [
        ("", 3, 4_096, 32_768),
        ("--user --buffer 64", 1, 64, 512),
        ("--kernel --buffer 1k --ring 2048", 2, 1_000, 2_048),
    ] {
        let system = system(&[]);
        run(&system, &format!("branches -C 0,3 --duration 0.001s {options}")).outcome.unwrap();
        let (header, event) = start(&system);
        assert_eq!(event, EventRequest { event: Event::of(BRANCHES), modes, interval: buffer, ..EventRequest::EMPTY });
        assert_eq!((header.ring, header.batch, header.flags), (ring, 0, 0));
        assert!(header.processors.iter().eq([0, 3]));
        assert_eq!(system.driver.inputs(Code::Stop).len(), 1);
    }
}

#[test]
fn a_ring_of_less_than_two_buffers_is_rejected_before_the_start() {
    let system = system(&[]);
    let (exit, report) = run(&system, "branches -a --ring 4096").failure();
    assert_eq!(exit, Exit::Usage);
    assert_eq!(
        report,
        "error: a ring of 4096 records is too small for a buffer of 4096\n  \
         because: one interrupt delivers a whole buffer, and the next can come before\n  \
         that is fetched\n  \
         try: --ring 8192, or a smaller --buffer"
    );
    assert!(system.driver.asked.borrow().is_empty());
}

#[test]
fn the_most_frequent_branches_come_first_with_source_and_target() {
    let ran = run(&system(&records(Prediction::Predicted)), "branches --duration 0.001s");
    let (table, _) = ran.out.split_once("\nElapsed").unwrap();
    insta::assert_snapshot!(table);
    assert!(ran.out.lines().all(|line| line.len() <= 80), "{}", ran.out);
    assert_eq!(ran.err.lines().next(), Some("warning: 2 branches were lost, and the shares are of the others"));
    assert_eq!(ran.outcome.unwrap(), 0);
}

#[test]
fn branches_of_unknown_processes_have_one_row() {
    let mut records: Vec<SampleRecord> =
        (0..12).map(|number| branch(APP + 16 * number, APP + 0x800, Prediction::NotReported)).collect();
    records.extend((0..4).map(|number| branch(APP + 16 * number, NT + 0x100, Prediction::Predicted)));
    records.push(branch(NT + 0x200, NT + 0x300, Prediction::Predicted));
    let ran = run(&system(&records), "branches --duration 0.001s --top 2");
    let rows: Vec<String> =
        ran.out.lines().skip(2).take(3).map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(rows, ["12 70.59% [unknown] [unknown] 0.00%", "4 23.53% [unknown] ntoskrnl.exe+0x100 100.00%", ""]);
    let json = run(&system(&records), "branches --duration 0.001s --top 2 --json").json();
    let addresses: Vec<&Value> =
        json["branches"].as_array().unwrap().iter().map(|row| &row["from"]["address"]).collect();
    assert_eq!(addresses.len(), 2, "programs are given the addresses");
}

#[test]
fn number_and_duration_of_pauses_are_reported() {
    let throttled = StopRecord::new(StopKind::Throttled, 1, 0).into();
    let resumed = PauseRecord::new(PauseKind::Resumed, 1, 0, 1_000 * CLOCK).into();
    let warning = |times: &str, percent: u32| {
        format!(
            "warning: recording paused {times}: interrupts had {percent} % of a\n  \
             processor's time; the branches of that time are in no count\n  \
             try: a larger --budget, or one mode alone (--user, --kernel)\n"
        )
    };
    for (loss_records, options, line, warned, numbers) in [
        (&[][..], "", "0.0 % of the time", String::new(), json!([0, 0, 0.0, 0.0])),
        (
            &[throttled, resumed],
            "",
            "100.0 % of the time: 1 time, 1000.000 s in all",
            warning("1 time", 25),
            json!([1, 1, 1000.0, 1.0]),
        ),
        (
            &[throttled, resumed, throttled, resumed, throttled],
            "--budget 50",
            "100.0 % of the time: 3 times, 2000.000 s in all\n            (1 of them lasted to the end and is not in the time)",
            warning("3 times", 50),
            json!([3, 2, 2000.0, 1.0]),
        ),
        // The ring was full when the pause started, so its record is missing.
        (
            &[resumed],
            "",
            "100.0 % of the time: 1 time, 1000.000 s in all",
            warning("1 time", 25),
            json!([1, 1, 1000.0, 1.0]),
        ),
    ] {
        let system = || {
            let system = system(&[&records(Prediction::Predicted)[..], loss_records].concat());
            system.driver.counts.replace(vec![count(BRANCHES, 0, 4, SECOND)]);
            system
        };
        let ran = run(&system(), &format!("branches --duration 0.001s {options}"));
        assert!(ran.out.contains(&format!("\nPaused      {line}\nProcessors  ")), "{}", ran.out);
        assert_eq!(ran.err, warned);
        assert!(ran.out.lines().chain(ran.err.lines()).all(|line| line.len() <= 80), "{}{}", ran.out, ran.err);
        for format in ["--json", "--csv"] {
            let ran = run(&system(), &format!("branches --duration 0.001s {options} {format}"));
            assert_eq!(ran.err, warned, "{format}");
        }
        let told = run(&system(), &format!("branches --duration 0.001s {options} --json")).json();
        assert_eq!(
            json!([told["pauses"], told["pauses_ended"], told["paused_seconds"], told["paused_share"]]),
            numbers
        );
    }
}

#[test]
fn no_prediction_share_is_shown_without_prediction_bits() {
    let ran = run(&system(&records(Prediction::NotReported)), "branches --duration 0.001s --csv --top 1");
    assert_eq!(
        ran.out,
        "count,share,predicted,from_address,from_module,from_symbol,to_address,to_module,to_symbol\n\
         5,0.625000,,0x0000000000400010,[unknown],0x0000000000400010,0x0000000000400080,[unknown],0x0000000000400080\n"
    );
    let text = run(&system(&records(Prediction::NotReported)), "branches --duration 0.001s").out;
    assert!(text.lines().nth(2).unwrap().ends_with("  -"), "{text}");
    let none = run(&system(&[]), "branches --duration 0.001s").out;
    assert!(none.starts_with("no branches\n\nRecords     0, of 0 different branches\n"), "{none}");
}

#[test]
fn json_has_every_number_and_null_for_unknown_ones() {
    let mut traced = run(&system(&records(Prediction::Predicted)), "branches --duration 0.001s --json --top 2").json();
    assert!(traced.as_object_mut().unwrap().remove("elapsed_seconds").unwrap().as_f64().unwrap() > 0.0);
    assert_eq!(
        traced,
        json!({
            "processors": [0, 3], "records": 8, "lost": 2, "lost_share": 0.2, "pauses": 0, "pauses_ended": 0,
            "paused_seconds": 0.0, "paused_share": 0.0, "different": 3, "branches": [
                {
                    "count": 5, "share": 0.625, "predicted": 0.8,
                    "from":
                        {"address": "0x0000000000400010", "module": "[unknown]", "symbol": "0x0000000000400010"},
                    "to": {"address": "0x0000000000400080", "module": "[unknown]", "symbol": "0x0000000000400080"}
                },
                {
                    "count": 2, "share": 0.25, "predicted": 1.0,
                    "from":
                        {"address": "0xfffff80000000200", "module": "ntoskrnl.exe", "symbol": "ntoskrnl.exe+0x200"},
                    "to": {"address": "0xfffff80000000300", "module": "ntoskrnl.exe", "symbol": "ntoskrnl.exe+0x300"}
                }
            ]
        })
    );
}

#[test]
fn report_reads_the_file_that_branches_wrote() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.rec");
    let name = path.to_str().unwrap();
    let words = ["branches", "-o", name, "--"].into_iter().chain(EXIT_3.split(' ')).chain(["exit 3"]);
    let ran = run_words(&system(&records(Prediction::Predicted)), &words.collect::<Vec<_>>());
    assert_eq!(ran.outcome.as_ref().unwrap(), &3, "the code of the command");
    assert!(ran.err.starts_with(&format!("[ written to {name}, ")), "{}", ran.err);

    let blocks: Vec<Block> = Reader::new(fs::File::open(&path).unwrap()).unwrap().map(Result::unwrap).collect();
    let Some(Block::Session(session)) = blocks.first() else { panic!() };
    assert_eq!((session.events[0].name.as_str(), session.events[0].interval, session.batch), ("Branches", 4_096, 0));
    let samples =
        blocks.iter().filter_map(|block| if let Block::Samples(samples) = block { Some(samples) } else { None });
    assert_eq!(samples.flatten().copied().collect::<Vec<_>>(), records(Prediction::Predicted));

    let report = run_anywhere(&format!("report {name} -e branches --sort symbol"), b"").out;
    let (_, report) = report.split_once("\nEvent ").unwrap();
    insta::assert_snapshot!(report);
}

#[test]
fn a_refusal_is_reported_and_creates_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.rec");
    let refuse = Some((Code::Start, ErrorCode::NoDebugStore, [4, 0]));
    let system = FakeSystem::running(FakeDriver { refuse, ..FakeDriver::default() });
    let (exit, report) = run(&system, &format!("branches -a -o {}", path.display())).failure();
    assert_eq!(exit, Exit::UnsupportedSource);
    assert!(report.contains("Branch Trace Store is unavailable") && !path.exists(), "{report}");
}
