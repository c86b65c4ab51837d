//! Recordings for the tests to write, damage and read.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::io;
use std::ops::Range;

use protocol::{CounterKind, CounterSample, Mode, SampleRecord};
use recording::{
    Block, Count, DebugFile, Disturbed, KERNEL, Method, Methods, MissingStack, Module, Process, ReadError, Reader,
    RecordedEvent, RecordedSession, StackEnd, StackId, StackNode, StackNodes, StackTree, Summary, Writer,
};

/// Size of the file header in bytes.
pub const FILE_HEADER: usize = 16;

/// Size of a block header in bytes.
pub const BLOCK_HEADER: usize = 24;

/// Returns a session with one event on two processors.
pub fn session() -> RecordedSession {
    RecordedSession {
        created_unix_ms: 1_790_000_000_000,
        client: "0.1.0".into(),
        driver: "0.1.0".into(),
        processor: "AMD Ryzen 7".into(),
        computer: Some("BENCH".into()),
        command: vec!["app.exe".into(), "--fast".into()],
        clock: 10_000_000,
        processors: vec![0, 1],
        batch: 0,
        core_types: Vec::new(),
        events: vec![RecordedEvent {
            source: 0x13,
            name: "TotalCycles".into(),
            modes: 3,
            interval: 65_536,
            frequency: 0,
            core_type: 0,
        }],
        condition: None,
        last_branches: 0,
        tasks: recording::RecordedTasks::default(),
        part: 0,
    }
}

/// Returns a process with one module.
pub fn process(id: u32) -> Process {
    let debug = Some(DebugFile { name: "app.pdb".into(), id: "3F4A0C0B8A3B4D1F9E0C6A5B4C3D2E1F1".into() });
    let path = "C:\\app\\app.exe".into();
    let module = Module { base: 0x1_4000_0000, size: 0x9000, path, timestamp: 7, image_size: 0x9000, debug };
    Process { id, created: None, name: "app.exe".into(), modules: vec![module] }
}

/// Returns functions of a just-in-time compiler.
pub fn methods(id: u32) -> Methods {
    let name = "App.Program::Main(string[])".to_owned();
    Methods { id, created: Some(7), methods: vec![Method { address: 0x7F_0010, size: 0x20, name, loaded: 9 }] }
}

/// Returns a sample of processor 1.
pub fn sample(time: u64) -> SampleRecord {
    let ip = 0x1_4000_1000 + time;
    CounterSample {
        time,
        ip,
        process: 4,
        thread: 8,
        processor: 1,
        event: 0x13,
        interval: 65_536,
        kind: CounterKind::Sample,
        mode: Mode::User,
        pebs_sequence: 0,
        cookie: 0,
    }
    .into()
}

/// Returns the summary of a recording of one second.
pub fn summary() -> Summary {
    let disturbed = Some(Disturbed { register: 0x38D, interface: 1, found: u64::MAX, expected: 2, at: 5 });
    let count = Count {
        event: 0,
        processor: 1,
        count: u64::MAX,
        samples: 3,
        lost: 1,
        throttled: 2,
        unmet: 0,
        filtered: 0,
        disturbed,
        recorder: 3,
    };
    Summary { elapsed: 10_000_000, counts: vec![count], exit_code: Some(-3), ..Summary::default() }
}

/// Returns a recording with blocks of every kind.
pub fn small() -> Vec<Block> {
    vec![
        Block::Session(session()),
        Block::Process(process(KERNEL)),
        Block::Samples(vec![sample(1), sample(2)]),
        Block::Process(process(4)),
        Block::Samples(vec![sample(3)]),
        Block::Methods(methods(4)),
        Block::Stacks(StackNodes {
            first: id(16),
            nodes: vec![
                StackNode { parent: StackEnd::Truncated.into(), address: 0x1_4000_5000 },
                StackNode { parent: id(16), address: 0xFFFF_F800_0000_1000 },
            ],
        }),
        Block::StackedSamples(vec![
            (sample(4), id(17)),
            (sample(5), StackEnd::Complete.into()),
            (sample(6), MissingStack::Merged.into()),
            (sample(7), StackId::NOT_RECORDED),
        ]),
        Block::Summary(summary()),
    ]
}

/// Writes a file with these blocks.
pub fn written(blocks: &[Block]) -> Vec<u8> {
    let [Block::Session(session), middle @ .., Block::Summary(summary)] = blocks else {
        panic!("a session first and a summary last")
    };
    let mut writer = Writer::new(Vec::new(), session).unwrap();
    write_all(&mut writer, middle, &mut StackTree::default());
    writer.finish(summary).unwrap()
}

/// Writes these blocks; `tree` has the call stacks before them.
pub fn write_all<W: io::Write>(writer: &mut Writer<W>, blocks: &[Block], tree: &mut StackTree) {
    for block in blocks {
        match block {
            Block::Process(process) => writer.process(process).unwrap(),
            Block::Methods(methods) => writer.methods(methods).unwrap(),
            Block::Stacks(nodes) => tree.add(nodes),
            Block::Samples(samples) => writer.samples(samples).unwrap(),
            Block::StackedSamples(samples) => {
                let samples: Vec<_> = samples.iter().map(|(record, stack)| (*record, tree.stack(*stack))).collect();
                writer.stacked_samples(&samples).unwrap();
            }
            Block::Session(_) | Block::Summary(_) => panic!("a session first and a summary last"),
        }
    }
}

/// Returns the node with this number.
fn id(number: u32) -> StackId {
    StackId::from_number(number).unwrap()
}

/// Returns the blocks that can be read and the error after them, if any.
pub fn read(source: impl io::Read) -> (Vec<Block>, Option<ReadError>) {
    let reader = match Reader::new(source) {
        Ok(reader) => reader,
        Err(error) => return (Vec::new(), Some(error)),
    };
    let (mut blocks, mut end) = (Vec::new(), None);
    for block in reader {
        assert!(end.is_none(), "nothing comes after {end:?}");
        match block {
            Ok(block) => blocks.push(block),
            Err(error) => end = Some(error),
        }
    }
    (blocks, end)
}

/// Returns the byte ranges of the blocks of an intact file, according to the lengths in their headers.
pub fn block_ranges(file: &[u8]) -> Vec<Range<usize>> {
    let (mut ranges, mut start) = (Vec::new(), FILE_HEADER);
    while start < file.len() {
        let length = u32::from_le_bytes(file[start + 4..start + 8].try_into().unwrap()) as usize;
        ranges.push(start..start + BLOCK_HEADER + length);
        start += BLOCK_HEADER + length;
    }
    ranges
}

/// Builds a block with correct checksums and arbitrary contents.
pub fn forged(kind: u32, number: u64, length: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = [&kind.to_le_bytes()[..], &length.to_le_bytes(), &number.to_le_bytes()].concat();
    bytes.extend(crc32fast::hash(payload).to_le_bytes());
    bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
    bytes.extend(payload);
    bytes
}

/// Builds a block of samples with correct checksums and arbitrary contents: the earliest and latest time, the numbers
/// of samples and places, the size of the columns, and the frame with them.
pub fn forged_samples(times: [u64; 2], numbers: [u32; 3], frame: &[u8]) -> Vec<u8> {
    let mut payload: Vec<u8> = times.iter().flat_map(|time| time.to_le_bytes()).collect();
    payload.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    payload.extend(crc32fast::hash(&payload).to_le_bytes());
    payload.extend(frame);
    forged(3, 2, u32::try_from(payload.len()).unwrap(), &payload)
}

/// Returns the file with another version in its header.
pub fn of_version(version: u8, file: &[u8]) -> Vec<u8> {
    [&file[..8], &[version], &file[9..]].concat()
}
