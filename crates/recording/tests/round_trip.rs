//! A recording is read as it was written.

use std::io::{self, Read, Write};

use crate::support::{block_ranges, forged, process, read, sample, session, small, summary, write_all, written};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use protocol::{RecordKind, SampleRecord};
use recording::{
    Block, BlockError, CallStack, CoreTypeProcessors, Count, DebugFile, Disturbed, EncodedBlock, Kept, MAX_SAMPLES,
    MissingStack, Module, OffCpuSummary, Process, ReadError, Reader, RecordedEvent, RecordedSession, RecordedTasks,
    SampleStack, StackEnd, StackTree, Summary, WriteError, Writer,
};
use zerocopy::{FromBytes, IntoBytes};

/// Generates records of any content, most of them like each other: a recording stores what the driver returned.
fn any_sample() -> impl Strategy<Value = SampleRecord> {
    // A sample has a cookie in the upper half of its last word, which is not stored.
    let record = |mut words: [u64; 6]| {
        if words[4] >> 32 & 0xFFFF == RecordKind::Sample as u64 {
            words[5] &= 0xFFFF_FFFF;
        }
        SampleRecord::read_from_bytes(words.as_bytes()).unwrap()
    };
    let similar = (0_u64..3, 0_u64..3, 0_u64..2, 0_u64..2, 0_u64..13, any::<u64>()).prop_map(
        move |(time, address, processor, interval, kind, last)| {
            record([
                time,
                address << 40,
                8 << 32 | 4,
                0x13 << 32 | processor,
                kind << 32 | interval,
                last >> (kind * 5),
            ])
        },
    );
    prop_oneof![any::<[u64; 6]>().prop_map(record), similar]
}

/// Returns the records by the words that the documentation of the format names, independently of the reader.
fn words(record: &SampleRecord) -> [u64; 6] {
    <[u64; 6]>::read_from_bytes(record.as_bytes()).unwrap()
}

fn any_event() -> impl Strategy<Value = RecordedEvent> {
    any::<(u64, String, u32, u32, u32, u32)>().prop_map(|(source, name, modes, interval, frequency, core_type)| {
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

fn any_session() -> impl Strategy<Value = RecordedSession> {
    let texts = any::<(String, String, String, Option<String>, Option<String>)>();
    let events = (vec(any_core_type(), 0..3), vec(any_event(), 0..3), any_tasks());
    (any::<(u64, u64, u32, u32, u32)>(), texts, vec(any::<String>(), 0..3), vec(any::<u32>(), 0..4), events).prop_map(
        |(
            (created_unix_ms, clock, batch, part, last_branches),
            (client, driver, processor, computer, condition),
            command,
            processors,
            events,
        )| {
            let (core_types, events, tasks) = events;
            RecordedSession {
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
                condition,
                last_branches,
                tasks,
                part,
            }
        },
    )
}

fn any_tasks() -> impl Strategy<Value = RecordedTasks> {
    let ids = || vec(any::<u32>(), 0..3).prop_map(Vec::into_boxed_slice);
    (ids(), ids(), any::<bool>()).prop_map(|(processes, threads, with_children)| RecordedTasks {
        processes,
        threads,
        with_children,
    })
}

fn any_module() -> impl Strategy<Value = Module> {
    let debug = option::of(any::<(String, String)>().prop_map(|(name, id)| DebugFile { name, id }));
    (any::<(u64, u64, String, u32, u32)>(), debug).prop_map(|((base, size, path, timestamp, image_size), debug)| {
        Module { base, size, path, timestamp, image_size, debug }
    })
}

fn any_process() -> impl Strategy<Value = Process> {
    (any::<(u32, Option<u64>, String)>(), vec(any_module(), 0..4)).prop_map(|((id, created, name), modules)| Process {
        id,
        created,
        name,
        modules,
    })
}

fn any_count() -> impl Strategy<Value = Count> {
    let disturbed = any::<(u32, u32, u64, u64, u64)>()
        .prop_map(|(register, interface, found, expected, at)| Disturbed { register, interface, found, expected, at });
    (any::<(u32, u32, u64, u64, u64, u64, u64, u64, u32)>(), option::of(disturbed)).prop_map(
        |((event, processor, count, samples, lost, throttled, unmet, filtered, recorder), disturbed)| Count {
            event,
            processor,
            count,
            samples,
            lost,
            throttled,
            unmet,
            filtered,
            disturbed,
            recorder,
        },
    )
}

fn any_recording() -> impl Strategy<Value = Vec<Block>> {
    let middle = prop_oneof![any_process().prop_map(Block::Process), vec(any_sample(), 1..8).prop_map(Block::Samples)];
    let kept = option::of(any::<(u64, u64)>().prop_map(|(elapsed, removed)| Kept { elapsed, removed }));
    let summary = (any::<(u64, bool, Option<i32>)>(), vec(any_count(), 0..4), kept).prop_map(
        |((elapsed, interrupted_by_user, exit_code), counts, kept)| Summary {
            elapsed,
            counts,
            interrupted_by_user,
            exit_code,
            kept,
            off_cpu: kept.map(|kept| OffCpuSummary { open: kept.removed, ..OffCpuSummary::default() }),
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
fn samples_are_stored_in_columns_as_documented() {
    let records: Vec<SampleRecord> = [
        // time, address, thread and process, source and processor, mode, kind and interval, last
        [107_u64, 0x4010, 8 << 32 | 4, 0x13 << 32 | 1, 1 << 48 | 0x3E8, 5],
        [105, 0x4000, 8 << 32 | 4, 0x13 << 32 | 1, 1 << 48 | 0x3E9, 6],
        [100, 0x4010, 8 << 32 | 4, 0x13 << 32, 1 << 48 | 7, 0],
        [101, 0x4010, 8 << 32 | 4, 0x13 << 32, 7 << 32 | 7, 0x4000],
    ]
    .iter()
    .map(|words| SampleRecord::read_from_bytes(words.as_bytes()).unwrap())
    .collect();
    let mut writer = Writer::new(Vec::new(), &session()).unwrap();
    writer.samples(&records).unwrap();
    let file = writer.finish(&summary()).unwrap();
    let block = &file[block_ranges(&file)[1].clone()];
    let (head, frame) = block[crate::support::BLOCK_HEADER..].split_at(32);
    let columns = zstd::bulk::decompress(frame, 1_000).unwrap();
    let wanted: [&[u8]; 13] = [
        &[1, 0, 0, 7],                      // kind: three places
        &[1, 1, 1, 0],                      // mode
        &[1, 0x13, 0x13, 0x13],             // source
        &[1, 4, 4, 4],                      // process
        &[1, 8, 8, 8],                      // thread
        &[2, 0x20, 0x1F, 0x20, 0x80, 0, 0], // address: +0x4010, -0x10, +0x10
        &[1, 0, 0, 0x1F],                   // target: -0x10
        &[0],                               // stack: none
        &[1, 1, 1, 0, 0],                   // processor
        &[1, 0, 1, 0, 2],                   // place
        &[1, 14, 3, 0, 2],                  // time: +7, -2, +0, +1
        &[2, 0xD0, 2, 14, 0, 7, 0, 0, 0],   // interval: +1000, +1, +7, +0
        &[1, 10, 2, 0, 0],                  // last: +5, +1, +0, none
    ];
    assert_eq!(columns, wanted.concat());
    let numbers: Vec<u32> = head.chunks(4).map(|bytes| u32::from_le_bytes(bytes.try_into().unwrap())).collect();
    let length = u32::try_from(columns.len()).unwrap();
    assert_eq!(numbers, [100, 0, 107, 0, 4, 3, length, crc32fast::hash(&head[..28])]);
    assert_eq!(read(&file[..]).0[1], Block::Samples(records));
}

#[test]
fn columns_are_the_samples_by_their_fields() {
    let records: Vec<SampleRecord> = (0..9_u64)
        .map(|number| {
            [
                number,
                number % 2,
                4,
                (0x13 << 32) + number % 3,
                ((number % 2 * 7) << 32) + 9,
                70 + (1 - number % 2) * number,
            ]
        })
        .map(|words| SampleRecord::read_from_bytes(words.as_bytes()).unwrap())
        .collect();
    let file = written(&[Block::Session(session()), Block::Samples(records.clone()), Block::Summary(summary())]);
    assert_eq!(read(&file[..]).0[1], Block::Samples(records.clone()));
    let mut reader = Reader::new(&file[..]).unwrap();
    let samples = std::iter::from_fn(|| reader.next_encoded()).find_map(|block| match block.unwrap() {
        EncodedBlock::Samples(samples) => Some(samples),
        _ => None,
    });
    let columns = samples.unwrap().columns().unwrap();
    assert_eq!(columns.places.len(), 2);
    assert_eq!(columns.records().collect::<Vec<_>>(), records);
    for (index, record) in records.iter().enumerate() {
        let [time, address, _, source, number, last] = words(record);
        assert_eq!(columns.time[index], time);
        assert_eq!(u64::from(columns.processor[index]) | 0x13 << 32, source);
        assert_eq!(u64::from(columns.number[index]), number & 0xFFFF_FFFF);
        let place = words(&columns.places[columns.place[index] as usize]);
        // Kind 7 is a branch, whose place has its last field.
        let lasts = if index % 2 == 1 { [last, 0] } else { [0, last] };
        assert_eq!((place[1], [place[5], columns.last[index]]), (address, lasts), "{index}");
    }
}

/// Generates samples of which most have the interval of their processor, so many that they are not decoded at a time.
fn many_samples() -> impl Strategy<Value = Vec<SampleRecord>> {
    let alike = |others: u32, processors: u64| {
        let interval = prop_oneof![100_000 => Just(None), others => (0_u64..0xFFFF_FFFF).prop_map(Some)];
        let sample = (0_u64..40, 0..processors, interval).prop_map(|(address, processor, interval)| {
            let interval = interval.unwrap_or(1_000 + processor / 2);
            let words = [address, address << 4, 8 << 32 | 4, 0x13 << 32 | processor, interval, 0];
            SampleRecord::read_from_bytes(words.as_bytes()).unwrap()
        });
        vec(sample, 1..3_000)
    };
    prop_oneof![vec(any_sample(), 1..60), alike(1, 1), alike(100, 2), alike(1, 4), alike(20_000, 4)]
}

proptest! {
    #[test]
    fn the_counts_of_a_block_are_those_of_its_samples(
        records in many_samples(),
        missing in prop::sample::select(&MissingStack::ALL[..]),
    ) {
        let mut writer = Writer::new(Vec::new(), &session()).unwrap();
        writer.samples(&records).unwrap();
        let stacked = records.iter().map(|record| (*record, SampleStack::Missing(missing)));
        writer.stacked_samples(&stacked.collect::<Vec<_>>()).unwrap();
        let file = writer.finish(&summary()).unwrap();
        let mut reader = Reader::new(&file[..]).unwrap();
        let blocks = std::iter::from_fn(|| reader.next_encoded()).filter_map(|block| match block.unwrap() {
            EncodedBlock::Samples(samples) => Some(samples.decompress().unwrap()),
            _ => None,
        });
        let mut number = 0;
        for block in blocks {
            let (counts, columns) = (block.place_counts().unwrap(), block.columns().unwrap());
            prop_assert_eq!((counts.earliest, counts.latest), (columns.earliest, columns.latest));
            prop_assert_eq!(counts.places.len(), columns.places.len());
            for (index, place) in counts.places.iter().enumerate() {
                let of_place = columns.place.iter().zip(&columns.number).filter(|(place, _)| **place as usize == index);
                let numbers: Vec<u128> = of_place.map(|(_, number)| u128::from(*number)).collect();
                prop_assert_eq!(place.samples as usize, numbers.len());
                prop_assert_eq!(u128::from(place.numbers), numbers.iter().sum::<u128>());
                prop_assert_eq!(place.squares, numbers.iter().map(|number| number * number).sum::<u128>());
                prop_assert_eq!(place.stack, columns.stacks[index]);
                let [time, _, ids, source, kind, _] = words(&columns.places[index]);
                prop_assert_eq!(place.address, words(&columns.places[index])[1]);
                prop_assert_eq!(words(&counts.groups[place.group as usize]), [time, 0, ids, source, kind, 0]);
            }
            number += 1;
        }
        prop_assert_eq!(number, 2);
    }
}

#[test]
fn a_stack_with_more_callers_than_the_limit_is_written_whole() {
    let stack = |first: u64| CallStack { callers: (first..first + 5).collect(), end: StackEnd::Complete };
    let stacks: Vec<CallStack> = [10, 20, 10, 30].map(stack).into();
    for limit in [0, 1, 4, 5, 6, 100] {
        let mut file = Vec::new();
        let mut writer = Writer::new(&mut file, &session()).unwrap().with_node_limit(limit);
        let samples = stacks.iter().zip(1..).map(|(stack, time)| (sample(time), SampleStack::Stack(stack.clone())));
        writer.stacked_samples(&samples.collect::<Vec<_>>()).unwrap();
        writer.finish(&summary()).unwrap();
        let (mut tree, mut found) = (StackTree::default(), Vec::new());
        for block in read(&file[..]).0 {
            match block {
                Block::Stacks(nodes) => tree.add(&nodes),
                Block::StackedSamples(samples) => found.extend(samples.iter().map(|(_, stack)| tree.stack(*stack))),
                _ => {}
            }
        }
        assert_eq!(found, stacks.iter().cloned().map(SampleStack::Stack).collect::<Vec<_>>(), "{limit}");
    }
}

#[test]
fn blocks_of_other_times_are_skipped() {
    let block = |first: u64| Block::Samples(vec![sample(first + 5), sample(first), sample(first + 9)]);
    let blocks = [
        vec![Block::Session(session()), block(10), Block::Process(process(4))],
        vec![block(20), block(30), block(40), Block::Summary(summary())],
    ]
    .concat();
    let file = written(&blocks);
    for (times, skipped) in [
        (0..=u64::MAX, &[][..]),
        (19..=29, &[4, 5]),
        (20..=30, &[1, 5]),
        (29..=29, &[1, 4, 5]),
        (50..=60, &[1, 3, 4, 5]),
        (0..=9, &[1, 3, 4, 5]),
    ] {
        let read: Vec<Block> =
            Reader::new(io::Cursor::new(&file)).unwrap().within(times.clone()).map(Result::unwrap).collect();
        let wanted = blocks.iter().enumerate().filter(|(index, _)| !skipped.contains(index));
        assert_eq!(read, wanted.map(|(_, block)| block.clone()).collect::<Vec<_>>(), "{times:?}");
    }
    let mut times = Vec::new();
    let mut reader = Reader::new(file.as_slice()).unwrap();
    while let Some(block) = reader.next_encoded().transpose().unwrap() {
        if let EncodedBlock::Samples(samples) = block {
            times.extend(samples.times().unwrap());
        }
    }
    assert_eq!(times, [10..=19, 20..=29, 30..=39, 40..=49]);
    let without = Reader::new(io::Cursor::new(&file)).unwrap().without_samples();
    assert!(without.map(Result::unwrap).eq([0, 2, 6].map(|index| blocks[index].clone())));
}

#[test]
fn layout_is_as_documented() {
    let session = session();
    let file = Writer::new(Vec::new(), &session).unwrap().finish(&summary()).unwrap();
    let text = serde_json::to_vec(&session).unwrap();
    let last = serde_json::to_vec(&summary()).unwrap();
    let length = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap();
    let wanted = [
        &[0x89, b'H', b'A', b'L', b'P', b'R', b'F', 0x0A, 6, 0, 0, 0, 0, 0, 0, 0][..],
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
    writer.process(&Process { id: 4, created: Some(7), name: "app.exe".into(), modules }).unwrap();
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
    blocks[0] += crate::support::FILE_HEADER;
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

/// Writes the blocks in parts of so many blocks each, behind a first part that has none, and appends them to it.
fn written_in_parts(blocks: &[Block], length: usize) -> Vec<u8> {
    let [Block::Session(session), middle @ .., Block::Summary(summary)] = blocks else {
        panic!("a session first and a summary last")
    };
    let mut whole = Writer::new(Vec::new(), session).unwrap();
    let mut tree = StackTree::default();
    for blocks in middle.chunks(length) {
        let mut bytes = Vec::new();
        let mut part = Writer::new(&mut bytes, session).unwrap();
        write_all(&mut part, blocks, &mut tree);
        let count = part.blocks();
        whole.append(&*bytes, count).unwrap();
    }
    whole.finish(summary).unwrap()
}

proptest! {
    #[test]
    fn parts_that_were_appended_are_read_as_one_recording(blocks in any_recording(), length in 1..4_usize) {
        let file = written_in_parts(&blocks, length);
        let (seen, end) = read(&*file);
        prop_assert!(end.is_none(), "{end:?}");
        prop_assert_eq!(seen, blocks);
    }
}

#[test]
fn a_recording_in_parts_that_is_cut_anywhere_keeps_its_whole_blocks() {
    let blocks = small();
    let file = written_in_parts(&blocks, 2);
    let mut most = 0;
    for length in 16..file.len() {
        let (seen, end) = read(&file[..length]);
        assert!(matches!(end, Some(ReadError::CutOff { .. })), "{length}: {end:?}");
        assert_eq!(seen, blocks[..seen.len()], "{length}");
        assert!(seen.len() >= most, "{length}");
        most = seen.len();
    }
    assert_eq!(most, blocks.len() - 1);
}

#[test]
fn a_part_of_another_recording_or_version_is_refused() {
    let first = Writer::new(Vec::new(), &session()).unwrap().finish(&summary()).unwrap();
    let whole = block_ranges(&first)[0].end;
    let other = RecordedSession { created_unix_ms: session().created_unix_ms + 1, ..session() };
    let other = Writer::new(Vec::new(), &other).unwrap().finish(&summary()).unwrap();
    let mut newer = first.clone();
    newer[8] += 1;
    for part in [other, newer] {
        let (seen, end) = read(&*[&first[..whole], &part].concat());
        assert_eq!(seen, [Block::Session(session())]);
        assert!(matches!(end, Some(ReadError::Damaged { cause: BlockError::Part, .. })), "{end:?}");
    }
}

#[test]
fn a_session_that_is_larger_than_any_machine_is_refused() {
    let event = session().events[0].clone();
    for (events, processors, is_read) in [(1_024, 2_048, true), (1_025, 1, false), (1, 2_049, false)] {
        let session =
            RecordedSession { events: vec![event.clone(); events], processors: (0..processors).collect(), ..session() };
        let file = Writer::new(Vec::new(), &session).unwrap().finish(&summary()).unwrap();
        let (seen, end) = read(&*file);
        let is_refused = matches!(end, Some(ReadError::Damaged { cause: BlockError::SessionSize { .. }, .. }));
        assert_eq!((!seen.is_empty(), is_refused), (is_read, !is_read), "{events} {processors}: {end:?}");
    }
}
