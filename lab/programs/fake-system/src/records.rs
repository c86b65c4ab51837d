//! Records as the driver returns them.

use halprof::source::Sources;
use protocol::{
    CountRecord, CounterKind, CounterSample, Mode, NAME_LENGTH, PreciseKind, PreciseSample, SampleRecord, SourceRecord,
};
use zerocopy::FromZeros;

use system::LoadedModule;

/// Creates the record of a source as the driver returns it.
pub fn record(source: u64, name: &str, support: u32) -> SourceRecord {
    let mut bytes = [0; NAME_LENGTH];
    bytes[..name.len()].copy_from_slice(name.as_bytes());
    SourceRecord {
        source,
        support,
        interval: 65536,
        minimum: 4096,
        maximum: i32::MAX as u32,
        select: 0x300C0,
        counters: if source == 0 { 0 } else { 0b111 },
        name_length: u32::try_from(name.len()).unwrap(),
        name: bytes,
        ..SourceRecord::new_zeroed()
    }
}

/// Returns a few sources, some of them unsupported.
pub fn sources() -> Vec<SourceRecord> {
    vec![
        record(0, "Time", 4),
        record(2, "TotalIssues", 0),
        record(6, "BranchInstructions", 0),
        record(8, "DcacheMisses", 1),
        record(10, "CacheMisses", 3),
        record(11, "BranchMispredictions", 0),
        record(0x13, "TotalCycles", 0),
    ]
}

/// Returns the name of the event of a count, if it is one of [`sources`].
pub fn named(record: &CountRecord) -> String {
    Sources::new(&sources()).name_of(&record.event)
}

/// Creates a sample of a process in user mode.
pub fn sample(process: u32, time: u64) -> SampleRecord {
    let (kind, mode) = (CounterKind::Sample, Mode::User);
    let (ip, thread, processor, source, interval, pebs_sequence) = (0x40_1000, 8, 0, 0, 65_536, 0);
    CounterSample {
        time,
        ip,
        process,
        thread,
        processor,
        event: source,
        interval,
        kind,
        mode,
        pebs_sequence,
        cookie: 0,
    }
    .into()
}

/// Creates a precise sample of the same instruction.
pub fn precise_sample(process: u32, kind: PreciseKind) -> SampleRecord {
    let (time, ip, thread, processor, source, interval, mode) = (1, 0x40_1000, 8, 0, 0x13, 65_536, Mode::User);
    PreciseSample { time, ip, process, thread, processor, event: source, interval, kind, mode, number: 0 }.into()
}

/// Creates a module of 4 KiB without a file.
pub fn module(base: u64, path: &str) -> LoadedModule {
    LoadedModule { base, size: 0x1000, path: path.into() }
}
