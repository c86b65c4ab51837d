//! A small recording for the tests.

use protocol::{ALL_SOURCES, Sample, SampleKind, UNKNOWN, modes};
use recording::{Block, Count, DebugFile, KERNEL, Module, Process, RecordedEvent, Session, Summary, Writer};
use report::{Contents, Detail, Filter, SymbolFinder, SymbolIndex};

/// The sources TotalCycles (EMON interface) and BranchMispredictions.
pub const CYCLES: u32 = 25;
pub const MISSES: u32 = 11;

/// Base addresses of the modules.
pub const APP: u64 = 0x1_4000_0000;
pub const NTDLL: u64 = 0x7FF8_0000_0000;
pub const NT: u64 = 0xFFFF_F800_0000_0000;

pub fn session() -> Session {
    Session {
        created_unix_ms: 1_767_225_600_000,
        client: "0.1.0".to_owned(),
        driver: "0.1.0".to_owned(),
        processor: "Example Processor".to_owned(),
        computer: Some("WS1".to_owned()),
        command: vec!["C:\\app\\app.exe".to_owned(), "--fast".to_owned()],
        clock: 10_000_000,
        processors: vec![0, 1],
        batch: 0,
        events: vec![event(CYCLES, "TotalCycles", 100_003), event(MISSES, "BranchMispredictions", 1009)],
    }
}

fn event(source: u32, name: &str, interval: u32) -> RecordedEvent {
    RecordedEvent { source, name: name.to_owned(), modes: modes::BOTH, interval, frequency: 0 }
}

pub fn module(base: u64, path: &str) -> Module {
    let id = "FB43168BD573ADCA4C4C44205044422E1".to_owned();
    let debug = Some(DebugFile { name: format!("{path}.pdb"), id });
    Module { base, size: 0x10_0000, path: path.to_owned(), timestamp: 7, image_size: 0x10_0000, debug }
}

pub fn processes() -> [Process; 3] {
    let ntdll = module(NTDLL, "C:\\Windows\\System32\\ntdll.dll");
    [
        Process { id: KERNEL, name: "kernel".to_owned(), modules: vec![module(NT, "C:\\Windows\\ntoskrnl.exe")] },
        Process { id: 8, name: "app.exe".to_owned(), modules: vec![module(APP, "C:\\app\\app.exe"), ntdll.clone()] },
        Process { id: 12, name: "other.exe".to_owned(), modules: vec![ntdll] },
    ]
}

/// Returns a sample in kernel mode if `ip` is in the upper half, else in user mode.
pub fn sample(source: u32, process: u32, ip: u64, interval: u32) -> Sample {
    let mode = if ip >= 1 << 63 { modes::KERNEL } else { modes::USER };
    Sample {
        time: 1000,
        ip,
        process,
        thread: if process == UNKNOWN { UNKNOWN } else { process + 1 },
        processor: 0,
        source,
        interval,
        kind: SampleKind::Sample as u16,
        modes: mode.try_into().unwrap(),
        pebs_sequence: 0,
    }
}

/// Returns a record of a loss, pause or sleep on processor 1.
pub fn status_record(kind: SampleKind, source: u32, time: u64, detail: u64) -> Sample {
    Sample {
        time,
        ip: detail,
        process: 0,
        thread: 0,
        processor: 1,
        source,
        interval: 0,
        kind: kind as u16,
        modes: 0,
        pebs_sequence: 0,
    }
}

/// Returns ten samples of cycles and two of mispredictions, a loss and a pause of 0.5 ms.
pub fn records() -> Vec<Sample> {
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
    let mut records: Vec<Sample> = (1000_u64..)
        .step_by(10_000)
        .zip(cycles)
        .map(|(time, (process, ip))| Sample { time, ..sample(CYCLES, process, ip, 100_003) })
        .collect();
    records.push(Sample { time: 2000, processor: 1, ..sample(MISSES, 8, APP + 0x1000, 1009) });
    records.push(Sample { time: 3000, processor: 1, ..sample(MISSES, 12, NTDLL + 0x40, 1009) });
    records.push(status_record(SampleKind::Lost, CYCLES, 4000, 3));
    records.push(status_record(SampleKind::Throttled, ALL_SOURCES, 5000, 0));
    records.push(status_record(SampleKind::Resumed, ALL_SOURCES, 10_000, 5000));
    records.push(status_record(SampleKind::Silenced, ALL_SOURCES, 11_000, 0));
    records
}

pub fn summary() -> Summary {
    let count = |source, processor, samples, lost| Count {
        source,
        modes: modes::BOTH,
        processor,
        count: samples * 100_003,
        samples,
        lost,
        throttled: 0,
    };
    Summary {
        elapsed: 100_000,
        counts: vec![count(CYCLES, 0, 10, 0), count(CYCLES, 1, 0, 3), count(MISSES, 0, 0, 0), count(MISSES, 1, 2, 0)],
        interrupted_by_user: false,
        exit_code: Some(0),
    }
}

/// Writes a file with these blocks between the session and the summary.
pub fn file(blocks: &[Block]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), &session()).unwrap();
    for block in blocks {
        match block {
            Block::Process(process) => writer.process(process).unwrap(),
            Block::Samples(samples) => writer.samples(samples).unwrap(),
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
    Contents::read(file, Detail { thread: true, processor: true }).unwrap()
}

/// Returns an atlas without symbol files.
pub fn symbol_index(contents: &Contents) -> SymbolIndex {
    SymbolIndex::new(contents, &Filter::default(), &SymbolFinder::new(Vec::new(), None, None).unwrap())
}
