//! Precise records and branches among samples, and unknown processes.

use std::fmt::Debug;
use std::io::Cursor;

use inferno::collapse::Collapse;
use inferno::collapse::perf::{Folder, Options};
use proptest::prelude::*;
use protocol::{CounterSample, PreciseKind, PreciseSample, Prediction, Record, SampleRecord, UNKNOWN};
use recording::Block;
use report::{
    Column, Contents, Detail, Filter, SampleWeight, Table, TableRow, Total, firefox, folded, samples_csv, script,
};
use zerocopy::FromBytes;

use super::support::{
    APP, BRANCHES, CYCLES, MISSES, NT, branch, file, precise, processes, read, records, sample, symbol_index,
};

const COLUMNS: [Column; 3] = [Column::Process, Column::Module, Column::Symbol];

/// Returns samples of every kind.
fn kinds() -> Vec<SampleRecord> {
    let ordinary = |ip| CounterSample { pebs_sequence: 6, ..sample(CYCLES, 8, ip, 1000) };
    let of_kind = |kind, ip| precise(kind, 6, ordinary(ip));
    let of_unknown_process =
        |ip| PreciseSample { process: UNKNOWN, thread: UNKNOWN, ..of_kind(PreciseKind::Precise, ip) };
    vec![
        ordinary(APP + 0x10).into(),
        of_kind(PreciseKind::Precise, APP + 0x20).into(),
        of_kind(PreciseKind::PreciseNext, APP + 0x20).into(),
        of_unknown_process(APP + 0x30).into(),
        of_unknown_process(NT + 0x40).into(),
        branch(8, APP + 0x50, NT, Prediction::NotReported).into(),
        branch(8, APP + 0x50, NT, Prediction::Predicted).into(),
    ]
}

fn recording() -> Vec<u8> {
    let mut blocks: Vec<Block> = processes().into_iter().map(Block::Process).collect();
    blocks.push(Block::Samples(kinds()));
    file(&blocks)
}

fn rows(contents: &Contents, source: u32) -> Vec<TableRow> {
    Table::new(contents, &symbol_index(contents), source, &COLUMNS, &Filter::default()).sorted_rows()
}

#[test]
fn precise_records_count_as_samples_and_separately_in_the_total() {
    let contents = read(&recording());
    let wanted = Total {
        weight: SampleWeight { samples: 5, events: 5000 },
        precise: 3,
        precise_next: 1,
        squares: 5_000_000,
        ..Total::default()
    };
    assert_eq!(contents.sample_counts.total(CYCLES), wanted);
}

#[test]
fn branch_is_one_event_at_its_source() {
    let contents = read(&recording());
    let [row] = &rows(&contents, BRANCHES)[..] else { panic!() };
    assert_eq!((row.weight, row.symbol.as_deref()), (SampleWeight { samples: 2, events: 2 }, Some("app.exe+0x50")));
}

#[test]
fn unknown_process_has_kernel_modules_but_no_user_modules() {
    let rows = rows(&read(&recording()), CYCLES);
    let unknown: Vec<_> = rows.iter().filter(|row| row.process == Some(UNKNOWN)).collect();
    let names: Vec<_> = unknown.iter().map(|row| (row.process_name.as_deref(), row.symbol.as_deref())).collect();
    let name = Some("[unknown]");
    assert_eq!(names, [(name, Some("[unknown]")), (name, Some("ntoskrnl.exe+0x40"))]);
}

#[test]
fn exports_have_every_kind_and_no_id_of_unknown_processes() {
    let bytes = recording();
    let contents = read(&bytes);
    let symbol_index = symbol_index(&contents);
    assert_eq!(
        folded(&contents, &symbol_index, CYCLES, &Filter::default()),
        [
            "[unknown];[unknown];[unknown] 1000",
            "[unknown];ntoskrnl.exe;ntoskrnl.exe+0x40 1000",
            "app.exe;app.exe;app.exe+0x10 1000",
            "app.exe;app.exe;app.exe+0x20 2000",
        ]
    );

    let mut out = Vec::new();
    samples_csv(&contents, &symbol_index, &Filter::default(), &mut Cursor::new(&bytes), &mut out).unwrap();
    insta::assert_snapshot!(String::from_utf8(out).unwrap());
}

#[test]
fn firefox_profile_weighs_each_kind_by_its_events_and_has_a_track_of_unknown_threads() {
    let bytes = recording();
    let contents = read(&bytes);
    let mut out = Vec::new();
    firefox(&contents, &symbol_index(&contents), &Filter::default(), u64::MAX, &mut Cursor::new(&bytes), &mut out)
        .unwrap();
    let profile: serde_json::Value = serde_json::from_slice(&out).unwrap();
    let tracks = profile["threads"].as_array().unwrap().iter().map(|thread| {
        let weights = thread["samples"]["weight"].as_array().unwrap().iter().map(|weight| weight.as_u64().unwrap());
        (thread["processName"].as_str().unwrap(), thread["name"].as_str().unwrap(), weights.collect::<Vec<u64>>())
    });
    let mut tracks: Vec<_> = tracks.collect();
    tracks.sort_unstable();
    assert_eq!(
        tracks,
        [
            ("Sampling", "CPU 0", vec![]),
            ("[unknown]", "Thread [unknown]: TotalCycles", vec![1000, 1000]),
            ("app.exe", "Thread 9: TotalCycles", vec![1000, 1000, 1000]),
            ("app.exe", "Thread 9: event 2", vec![1, 1]),
        ]
    );
}

/// Other programs take the first number without a sign for the process.
#[test]
fn inferno_finds_the_samples_of_unknown_processes_in_a_script() {
    let file = recording();
    let contents = read(&file);
    let filter = Filter { events: Some([CYCLES].into()), ..Filter::default() };
    let mut text = Vec::new();
    script(&contents, &symbol_index(&contents), &filter, &mut Cursor::new(&file), &mut text).unwrap();
    let mut folded = Vec::new();
    Folder::from(Options::default()).collapse(text.as_slice(), &mut folded).unwrap();
    let folded = String::from_utf8(folded).unwrap();
    let mut lines: Vec<&str> = folded.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["[unknown];[[ntoskrnl.exe]] 1000", "[unknown];[unknown] 1000", "app.exe;[app.exe] 3000"]);
}

/// Returns what is counted of a recording, except the locations.
fn counted(contents: &Contents) -> impl PartialEq + Debug + use<> {
    let counts = &contents.sample_counts;
    let (totals, losses): (Vec<_>, Vec<_>) = (counts.totals().collect(), counts.loss_stats().collect());
    (totals, losses, counts.slept(), counts.earliest(), counts.unreadable())
}

proptest! {
    /// Without processors, samples are counted place by place; with them, one after the other.
    #[test]
    fn records_of_all_kinds_are_counted_alike_place_by_place(
        picks in prop::collection::vec((any::<prop::sample::Index>(), 0_u64..4), 0..80)
    ) {
        let damaged = SampleRecord::read_from_bytes(&[0xFF; size_of::<SampleRecord>()]).unwrap();
        let of_kinds = [kinds(), records(), vec![damaged]].concat();
        let picked = picks.iter().map(|(index, later)| match index.get(&of_kinds).parse() {
            Ok(Record::Sample(sample)) => CounterSample {
                time: sample.time + later,
                interval: sample.interval + u32::try_from(*later).unwrap(),
                ..sample
            }
            .into(),
            _ => *index.get(&of_kinds),
        });
        let bytes = file(&[Block::Samples(picked.collect())]);
        let of = |processor| Contents::read(&mut Cursor::new(&bytes), Detail { thread: true, processor, ..Detail::default() }).unwrap();
        let (by_place, by_record) = (of(false), of(true));
        prop_assert_eq!(counted(&by_place), counted(&by_record));
        for source in [CYCLES, MISSES, BRANCHES] {
            prop_assert_eq!(rows(&by_place, source), rows(&by_record, source));
        }
    }
}
