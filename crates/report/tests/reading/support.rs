//! A small recording for the tests.

#[path = "../../examples/session/mod.rs"]
mod synthetic;

use std::io::Cursor;

use protocol::{
    BranchKind, BranchRecord, BranchType, CounterSample, LostRecord, Mode, PauseKind, PauseRecord, PreciseKind,
    PreciseSample, Prediction, SampleRecord, StopKind, StopRecord, modes,
};
use recording::{
    Block, Count, DebugFile, KERNEL, Module, Process, RecordedEvent, RecordedSession, StackTree, Summary, Writer,
};
use report::{Contents, Detail, Filter, SampleWeight, SymbolFinder, SymbolIndex, Table, TableRow, Total};

/// The sources TotalCycles (EMON interface) and BranchMispredictions.
pub const CYCLES: u32 = 0;
pub const MISSES: u32 = 1;

/// Branches, which the session has only if a test adds them.
pub const BRANCHES: u32 = 2;

/// Base addresses of the modules.
pub const APP: u64 = 0x1_4000_0000;
pub const NTDLL: u64 = 0x7FF8_0000_0000;
pub const NT: u64 = 0xFFFF_F800_0000_0000;

pub fn session() -> RecordedSession {
    RecordedSession {
        processor: "Example Processor".to_owned(),
        computer: Some("WS1".to_owned()),
        command: vec!["C:\\app\\app.exe".to_owned(), "--fast".to_owned()],
        events: vec![event(25, "TotalCycles", 100_003), event(11, "BranchMispredictions", 1009)],
        ..synthetic::session(2)
    }
}

pub fn event(source: u64, name: &str, interval: u32) -> RecordedEvent {
    RecordedEvent { source, name: name.to_owned(), modes: modes::BOTH, interval, frequency: 0, core_type: 0 }
}

pub fn module(base: u64, path: &str) -> Module {
    let id = "FB43168BD573ADCA4C4C44205044422E1".to_owned();
    let debug = Some(DebugFile { name: format!("{path}.pdb"), id });
    Module { base, size: 0x10_0000, path: path.to_owned(), timestamp: 7, image_size: 0x10_0000, debug }
}

pub fn processes() -> [Process; 3] {
    let ntdll = module(NTDLL, "C:\\Windows\\System32\\ntdll.dll");
    [
        Process {
            id: KERNEL,
            created: None,
            name: "kernel".to_owned(),
            modules: vec![module(NT, "C:\\Windows\\ntoskrnl.exe")],
        },
        Process {
            id: 8,
            created: None,
            name: "app.exe".to_owned(),
            modules: vec![module(APP, "C:\\app\\app.exe"), ntdll.clone()],
        },
        Process { id: 12, created: None, name: "other.exe".to_owned(), modules: vec![ntdll] },
    ]
}

/// Returns a sample in kernel mode if `ip` is in the upper half, else in user mode.
pub fn sample(source: u32, process: u32, ip: u64, interval: u32) -> CounterSample {
    CounterSample { event: source, interval, mode: mode_of(ip), ..synthetic::sample(1000, ip, process, 0) }
}

/// Returns the precise sample with the fields of `sample`.
pub fn precise(kind: PreciseKind, number: u64, sample: CounterSample) -> PreciseSample {
    let CounterSample { time, ip, process, thread, processor, event: source, interval, mode, .. } = sample;
    PreciseSample { time, ip, process, thread, processor, event: source, interval, kind, mode, number }
}

/// Returns a branch on processor 0.
pub fn branch(process: u32, from: u64, to: u64, prediction: Prediction) -> BranchRecord {
    let CounterSample { time, thread, processor, event: source, mode, .. } = sample(BRANCHES, process, from, 0);
    let kind = BranchKind::Branch;
    BranchRecord {
        time,
        from,
        process,
        thread,
        processor,
        event: source,
        cycles: 0,
        prediction,
        branch_type: BranchType::NotReported,
        kind,
        mode,
        to,
    }
}

fn mode_of(ip: u64) -> Mode {
    if ip >= 1 << 63 { Mode::Kernel } else { Mode::User }
}

/// Returns ten samples of cycles and two of mispredictions, a loss and a pause of 0.5 ms.
pub fn records() -> Vec<SampleRecord> {
    let cycles = [
        (8, APP + 0x1000),
        (8, APP + 0x1000),
        (8, APP + 0x1004),
        (8, NTDLL + 0x20),
        (8, NT + 0x500),
        (8, NT + 0x500),
        (12, NTDLL + 0x20),
        (12, NT + 0x500),
        (12, 0x1234_5678),
        (99, 0x1000),
    ];
    let mut records: Vec<SampleRecord> = (1000_u64..)
        .step_by(10_000)
        .zip(cycles)
        .map(|(time, (process, ip))| CounterSample { time, ..sample(CYCLES, process, ip, 100_003) }.into())
        .collect();
    records.push(CounterSample { time: 2000, processor: 1, ..sample(MISSES, 8, APP + 0x1000, 1009) }.into());
    records.push(CounterSample { time: 3000, processor: 1, ..sample(MISSES, 12, NTDLL + 0x40, 1009) }.into());
    records.push(LostRecord::new(4000, 1, CYCLES, 3).into());
    records.push(StopRecord::new(StopKind::Throttled, 5000, 1).into());
    records.push(PauseRecord::new(PauseKind::Resumed, 10_000, 1, 5000).into());
    records.push(StopRecord::new(StopKind::Silenced, 11_000, 1).into());
    records
}

pub fn summary() -> Summary {
    let count = |event, processor, samples, lost| Count {
        event,
        processor,
        count: samples * 100_003,
        samples,
        lost,
        throttled: 0,
        unmet: 0,
        filtered: 0,
        disturbed: None,
        recorder: 0,
    };
    Summary {
        elapsed: 100_000,
        counts: vec![count(CYCLES, 0, 10, 0), count(CYCLES, 1, 0, 3), count(MISSES, 0, 0, 0), count(MISSES, 1, 2, 0)],

        exit_code: Some(0),
        ..Summary::default()
    }
}

/// Writes a file with these blocks between the session and the summary.
pub fn file(blocks: &[Block]) -> Vec<u8> {
    file_of(&session(), blocks)
}

/// Writes a file with these blocks between this session and the summary.
pub fn file_of(session: &RecordedSession, blocks: &[Block]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), session).unwrap();
    let mut tree = StackTree::default();
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
            Block::Session(_) | Block::Summary(_) => {}
        }
    }
    writer.finish(&summary()).unwrap()
}

/// Writes the complete small recording.
pub fn recording() -> Vec<u8> {
    let mut blocks: Vec<Block> = processes().into_iter().map(Block::Process).collect();
    blocks.push(Block::Samples(records()));
    file(&blocks)
}

pub fn read(file: &[u8]) -> Contents {
    Contents::read(&mut Cursor::new(file), Detail { thread: true, processor: true, stacks: true, ..Detail::default() })
        .unwrap()
}

/// Returns an atlas without symbol files.
pub fn symbol_index(contents: &Contents) -> SymbolIndex {
    SymbolIndex::new(contents, &Filter::default(), &SymbolFinder::new(Vec::new(), None, None).unwrap())
}

/// The rows of a table, without what they were made of.
#[derive(Debug, PartialEq)]
pub struct SortedTable {
    pub total: Total,
    pub selected: SampleWeight,
    pub rows: Vec<TableRow>,
}

impl SortedTable {
    pub fn of(table: &Table) -> Self {
        Self { total: table.total, selected: table.selected, rows: table.sorted_rows() }
    }
}
