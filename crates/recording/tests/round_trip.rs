//! A recording is read as it was written.

#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests fail by panicking")]

mod support;

use std::io::{self, Read, Write};

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use protocol::SampleRecord;
use recording::{
    Block, CoreTypeProcessors, Count, DebugFile, Disturbed, MAX_SAMPLES, Module, Process, ReadError, RecordedEvent,
    Session, Summary, WriteError, Writer,
};
use support::{block_ranges, forged, process, read, sample, session, small, summary, written};
use zerocopy::{FromBytes, IntoBytes};

/// Generates records of any content: a recording stores what the driver returned.
fn any_sample() -> impl Strategy<Value = SampleRecord> {
    any::<[u64; 6]>().prop_map(|words| SampleRecord::read_from_bytes(words.as_bytes()).unwrap())
}

fn any_event() -> impl Strategy<Value = RecordedEvent> {
    any::<(u32, String, u32, u32, u32, u32)>().prop_map(|(source, name, modes, interval, frequency, core_type)| {
        RecordedEvent { source, name, modes, interval, frequency, core_type }
    })
}

fn any_core_type() -> impl Strategy<Value = CoreTypeProcessors> {
    (any::<(u32, String)>(), vec(any::<u32>(), 0..3)).prop_map(|((core_type, name), processors)| CoreTypeProcessors {
        core_type,
        name,
        processors,
    })
}

fn any_session() -> impl Strategy<Value = Session> {
    let texts = any::<(String, String, String, Option<String>)>();
    let events = (vec(any_core_type(), 0..3), vec(any_event(), 0..3));
    (any::<(u64, u64, u32)>(), texts, vec(any::<String>(), 0..3), vec(any::<u32>(), 0..4), events).prop_map(
        |((created_unix_ms, clock, batch), (client, driver, processor, computer), command, processors, events)| {
            let (core_types, events) = events;
            Session {
                created_unix_ms,
                client,
                driver,
                processor,
                computer,
                command,
                clock,
                processors,
                batch,
                core_types,
                events,
            }
        },
    )
}

fn any_module() -> impl Strategy<Value = Module> {
    let debug = option::of(any::<(String, String)>().prop_map(|(name, id)| DebugFile { name, id }));
    (any::<(u64, u64, String, u32, u32)>(), debug).prop_map(|((base, size, path, timestamp, image_size), debug)| {
        Module { base, size, path, timestamp, image_size, debug }
    })
}

fn any_process() -> impl Strategy<Value = Process> {
    (any::<(u32, String)>(), vec(any_module(), 0..4)).prop_map(|((id, name), modules)| Process { id, name, modules })
}

fn any_count() -> impl Strategy<Value = Count> {
    let disturbed = any::<(u32, u32, u64, u64, u64)>()
        .prop_map(|(register, interface, found, expected, at)| Disturbed { register, interface, found, expected, at });
    (any::<(u32, u32, u32, u64, u64, u64, u64)>(), option::of(disturbed)).prop_map(
        |((source, modes, processor, count, samples, lost, throttled), disturbed)| Count {
            source,
            modes,
            processor,
            count,
            samples,
            lost,
            throttled,
            disturbed,
        },
    )
}

fn any_recording() -> impl Strategy<Value = Vec<Block>> {
    let middle = prop_oneof![any_process().prop_map(Block::Process), vec(any_sample(), 1..8).prop_map(Block::Samples)];
    let summary = (any::<(u64, bool, Option<i32>)>(), vec(any_count(), 0..4)).prop_map(
        |((elapsed, interrupted_by_user, exit_code), counts)| Summary {
            elapsed,
            counts,
            interrupted_by_user,
            exit_code,
        },
    );
    (any_session(), vec(middle, 0..8), summary).prop_map(|(session, middle, summary)| {
        [vec![Block::Session(session)], middle, vec![Block::Summary(summary)]].concat()
    })
}

proptest! {
    #[test]
    fn every_recording_round_trips(blocks in any_recording()) {
        let (back, end) = read(&written(&blocks)[..]);
        prop_assert_eq!(back, blocks);
        prop_assert!(end.is_none(), "{:?}", end);
    }
}

#[test]
fn layout_is_as_documented() {
    let session = session();
    let file = Writer::new(Vec::new(), &session).unwrap().finish(&summary()).unwrap();
    let text = serde_json::to_vec(&session).unwrap();
    let last = serde_json::to_vec(&summary()).unwrap();
    let length = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap();
    let wanted = [
        &[0x89, b'H', b'A', b'L', b'P', b'R', b'F', 0x0A, 3, 0, 0, 0, 0, 0, 0, 0][..],
        &forged(1, 0, length(&text), &text),
        &forged(4, 1, length(&last), &last),
    ];
    assert_eq!(file, wanted.concat());
}

#[test]
fn samples_are_split_over_as_many_blocks_as_needed() {
    let samples: Vec<SampleRecord> = (0..=2 * MAX_SAMPLES as u64).map(sample).collect();
    let mut writer = Writer::new(Vec::new(), &session()).unwrap();
    writer.samples(&[]).unwrap();
    writer.samples(&samples).unwrap();
    let (blocks, end) = read(&writer.finish(&summary()).unwrap()[..]);
    let lengths =
        blocks.iter().filter_map(|block| if let Block::Samples(some) = block { Some(some.len()) } else { None });
    assert_eq!(lengths.collect::<Vec<_>>(), [MAX_SAMPLES, MAX_SAMPLES, 1]);
    let back = blocks.into_iter().filter_map(|block| if let Block::Samples(some) = block { Some(some) } else { None });
    assert_eq!(back.flatten().collect::<Vec<_>>(), samples);
    assert!(end.is_none());
}

#[test]
fn modules_are_split_over_several_blocks_in_order() {
    let one = process(4).modules.remove(0);
    let modules: Vec<Module> = (0..3).map(|base| Module { base, path: "x".repeat(12 << 20), ..one.clone() }).collect();
    let mut writer = Writer::new(Vec::new(), &session()).unwrap();
    writer.process(&Process { id: 4, name: "app.exe".into(), modules }).unwrap();
    let (blocks, end) = read(&writer.finish(&summary()).unwrap()[..]);
    let processes: Vec<&Process> = blocks
        .iter()
        .filter_map(|block| if let Block::Process(process) = block { Some(process) } else { None })
        .collect();
    assert!(processes.len() > 1 && processes.iter().all(|process| (process.id, &*process.name) == (4, "app.exe")));
    assert!(processes.iter().flat_map(|process| &process.modules).map(|module| module.base).eq(0..3));
    assert!(end.is_none());
}

#[test]
fn block_that_is_too_long_is_rejected_and_later_blocks_are_readable() {
    let mut writer = Writer::new(Vec::new(), &session()).unwrap();
    let huge = Process { name: "x".repeat(33 << 20), ..process(4) };
    assert!(matches!(writer.process(&huge), Err(WriteError::TooLong { length }) if length > 33 << 20));
    let (blocks, end) = read(&writer.finish(&summary()).unwrap()[..]);
    assert_eq!((blocks.len(), end.is_none()), (2, true));
}

/// Logs the size of each write. The write with index `full_at` is cut in half, later ones fail.
struct Disk {
    file: Vec<u8>,
    writes: Vec<usize>,
    full_at: usize,
}

impl Write for &mut Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.writes.len() > self.full_at {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let taken = if self.writes.len() == self.full_at { bytes.len() / 2 } else { bytes.len() };
        self.file.extend(&bytes[..taken]);
        self.writes.push(taken);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn disk(full_at: usize) -> Disk {
    Disk { file: Vec::new(), writes: Vec::new(), full_at }
}

#[test]
fn every_block_is_written_in_one_write_before_the_call_returns() {
    let mut disk = disk(usize::MAX);
    let mut writer = Writer::new(&mut disk, &session()).unwrap();
    writer.process(&process(4)).unwrap();
    writer.samples(&[sample(1), sample(2)]).unwrap();
    let reported = writer.written();
    drop(writer);
    assert_eq!(disk.file.len() as u64, reported, "nothing is buffered");
    let mut blocks: Vec<usize> = block_ranges(&disk.file).into_iter().map(|range| range.len()).collect();
    blocks[0] += support::FILE_HEADER;
    assert_eq!(disk.writes, blocks);
}

#[test]
fn blocks_before_a_full_disk_are_readable() {
    for full_at in 1..4 {
        let mut disk = disk(full_at);
        let mut writer = Writer::new(&mut disk, &session()).unwrap();
        let error = (0..9).find_map(|time| writer.samples(&[sample(time)]).err());
        assert!(
            matches!(&error, Some(WriteError::Write(cause)) if cause.kind() == io::ErrorKind::StorageFull),
            "{error:?}"
        );
        let whole = writer.written();
        drop(writer);
        let (blocks, end) = read(&disk.file[..]);
        assert_eq!(blocks.len(), full_at);
        assert!(matches!(end, Some(ReadError::CutOff { offset }) if offset == whole), "{end:?}");
    }
}

/// Returns one byte per read, each after an `Interrupted` error, and fails at the end.
struct Slow<'a> {
    bytes: &'a [u8],
    interrupted: bool,
}

impl Read for Slow<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.interrupted = !self.interrupted;
        if self.interrupted {
            return Err(io::ErrorKind::Interrupted.into());
        }
        match self.bytes.split_first() {
            Some((first, rest)) => {
                bytes[0] = *first;
                self.bytes = rest;
                Ok(1)
            }
            None => Err(io::Error::other("unplugged")),
        }
    }
}

#[test]
fn short_reads_are_continued_and_failures_are_reported_with_their_offset() {
    let file = written(&small());
    let cut = block_ranges(&file)[3].start;
    let (blocks, end) = read(Slow { bytes: &file[..cut + 30], interrupted: false });
    assert_eq!(blocks, small()[..3]);
    let Some(ReadError::Read { offset, cause }) = end else { panic!("{end:?}") };
    assert_eq!((offset, cause.to_string().as_str()), (cut as u64, "unplugged"));
}
