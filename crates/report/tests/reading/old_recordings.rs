//! Recordings of earlier versions can still be opened.

use std::fmt::Write;
use std::io::Cursor;

use protocol::{CounterSample, Record, SampleRecord};
use report::{BranchCounts, Column, Contents, Filter, RecordedTime, Table, firefox, samples_csv, timeline};

use super::support::{CYCLES, read, symbol_index};

/// The same as `EVERY_KIND` in format version 3, which adds a disturbed count.
const EVERY_KIND_3: &[u8] = include_bytes!("../fixtures/every-kind-v3.halprof");

/// The same as `EVERY_KIND_3` in format version 4, which has columns.
const EVERY_KIND_4: &[u8] = include_bytes!("../fixtures/every-kind-v4.halprof");

/// A recording with every kind of record, fields at their limits, and a record of an unknown kind.
const EVERY_KIND: &[u8] = include_bytes!("../fixtures/every-kind-v2.halprof");

fn counts(contents: &Contents) -> String {
    let mut text = String::new();
    for (source, total) in contents.sample_counts.totals() {
        let source = source.source;
        writeln!(text, "{source:#x} {total:?}").unwrap();
    }
    for (source, processor, stats) in contents.sample_counts.loss_stats() {
        writeln!(text, "{source:#x} {processor} {stats:?}").unwrap();
    }
    let (slept, earliest) = (contents.sample_counts.slept(), contents.sample_counts.earliest());
    writeln!(text, "{slept:?} {earliest:?} {}", contents.sample_counts.unreadable()).unwrap();
    text
}

#[test]
fn the_recording_with_every_kind_gives_the_same_counts_and_samples_as_when_it_was_written() {
    let contents = read(EVERY_KIND);
    assert!(contents.damage.is_none() && contents.summary.is_some());
    insta::assert_snapshot!("old_recordings_counts", counts(&contents));

    let mut out = Vec::new();
    samples_csv(&contents, &symbol_index(&contents), &Filter::default(), Cursor::new(EVERY_KIND), &mut out).unwrap();
    insta::assert_snapshot!("old_recordings_samples", String::from_utf8(out).unwrap());

    let rows =
        Table::new(&contents, &symbol_index(&contents), CYCLES, &[Column::Address], &Filter::default()).sorted_rows();
    let rows: Vec<_> = rows.iter().map(|row| (row.address, row.weight.samples, row.weight.events)).collect();
    insta::assert_snapshot!("old_recordings_table", format!("{rows:#x?}"));
}

/// The times of samples are in the records themselves.
#[test]
fn the_time_of_an_old_recording_is_found() {
    for bytes in [EVERY_KIND, EVERY_KIND_3, EVERY_KIND_4] {
        let recorded = RecordedTime::read(bytes).unwrap().unwrap();
        let found = read(bytes).sample_counts;
        assert_eq!((Some(recorded.first), Some(recorded.last)), (found.earliest(), found.latest()));
    }
}

#[test]
fn the_recording_with_every_kind_gives_the_same_profile_and_timeline_as_when_it_was_written() {
    let contents = read(EVERY_KIND);
    let mut out = Vec::new();
    firefox(&contents, &symbol_index(&contents), &Filter::default(), u64::MAX, Cursor::new(EVERY_KIND), &mut out)
        .unwrap();
    let profile: serde_json::Value = serde_json::from_slice(&out).unwrap();
    let tracks = profile["threads"].as_array().unwrap().iter();
    let tracks = tracks.fold(String::new(), |mut text, track| {
        let [process, name] = ["processName", "name"].map(|key| track[key].as_str().unwrap());
        writeln!(text, "{process}, {name}\n  {}\n  {}", track["samples"], track["markers"]).unwrap();
        text
    });
    insta::assert_snapshot!("old_recordings_firefox", tracks);

    let merged = timeline(&contents, &Filter::default(), EVERY_KIND).unwrap();
    let order = merged.iter().fold(String::new(), |mut text, one| {
        let sample = &one.sample;
        let (number, mode) = (one.pebs_sequence, if one.location(&contents.processes).kernel { "k" } else { "u" });
        let place = (sample.processor, number, sample.time, sample.event, sample.process, sample.thread);
        writeln!(text, "{place:x?} {mode} {:#x} {} {}", sample.ip, one.is_precise(), one.inferred).unwrap();
        text
    });
    insta::assert_snapshot!("old_recordings_timeline", order);
}

#[test]
fn the_branches_of_the_recording_with_every_kind_are_counted_with_their_prediction() {
    let mut branches = BranchCounts::default();
    for block in recording::Reader::new(EVERY_KIND).unwrap() {
        if let recording::Block::Samples(samples) = block.unwrap() {
            branches.record(&samples);
        }
    }
    insta::assert_snapshot!("old_recordings_branches", format!("{:#x?}", branches.top(9)));
}

#[test]
fn the_recording_of_version_3_has_the_same_samples_and_its_disturbed_count() {
    let [old, new] = [EVERY_KIND, EVERY_KIND_3].map(read);
    assert!(new.damage.is_none());
    assert_eq!(counts(&old), counts(&new));
    let blocks = |bytes| recording::Reader::new(bytes).unwrap().map(Result::unwrap);
    let is_samples = |block: &recording::Block| matches!(block, recording::Block::Samples(_));
    assert!(blocks(EVERY_KIND).filter(is_samples).eq(blocks(EVERY_KIND_3).filter(is_samples)));
    let disturbed = |contents: &Contents| contents.summary.as_ref().unwrap().counts[0].disturbed;
    assert_eq!((disturbed(&old), disturbed(&new).unwrap().register), (None, 0x38D));
}

#[test]
fn the_recording_with_every_kind_is_the_same_in_the_present_version() {
    let blocks: Vec<recording::Block> = recording::Reader::new(EVERY_KIND).unwrap().map(Result::unwrap).collect();
    let [recording::Block::Session(session), middle @ .., recording::Block::Summary(summary)] = &blocks[..] else {
        panic!("{blocks:?}")
    };
    let mut writer = recording::Writer::new(Vec::new(), session).unwrap();
    for block in middle {
        match block {
            recording::Block::Process(process) => writer.process(process).unwrap(),
            recording::Block::Samples(samples) => writer.samples(samples).unwrap(),
            other => panic!("{other:?}"),
        }
    }
    let file = writer.finish(summary).unwrap();
    // Records had a number of 64 bits where a sample has its cookie now, which is not stored.
    let stored = |block: &recording::Block| match block {
        recording::Block::Samples(records) => recording::Block::Samples(records.iter().map(without_cookie).collect()),
        other => other.clone(),
    };
    assert!(recording::Reader::new(&file[..]).unwrap().map(Result::unwrap).eq(blocks.iter().map(stored)));
}

fn without_cookie(record: &SampleRecord) -> SampleRecord {
    match record.parse() {
        Ok(Record::Sample(sample)) => CounterSample { cookie: 0, ..sample }.into(),
        _ => *record,
    }
}

#[test]
fn the_recording_of_version_4_has_the_same_blocks_as_that_of_version_3() {
    let blocks = |bytes| recording::Reader::new(bytes).unwrap().map(Result::unwrap);
    assert!(blocks(EVERY_KIND_3).eq(blocks(EVERY_KIND_4)));
    assert_eq!(EVERY_KIND_4[8], 4);
}
