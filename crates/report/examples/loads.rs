//! Writes a deterministic recording of loads, of four functions and of lines of a heap: a source and a latency follow
//! each sample.
//!
//! ```text
//! cargo run --release -p report --example loads -- 20000 loads.rec
//! ```

mod session;

use std::env;
use std::error::Error;
use std::fs::File;

use protocol::{
    AccessEncoding, AccessKind, AccessOperation, AccessRecord, CounterSample, PreciseKind, PreciseSample, SampleRecord,
    modes,
};
use recording::{Module, Process, RecordedEvent, RecordedSession, Summary, Writer};
use session::{CLOCK, sample, session};

const BASE: u64 = 0x1_4000_0000;
const HEAP: u64 = 0x5000_0000;

/// Sources of Skylake's loads, their first latencies, and their parts of 100.
const SOURCES: [(u32, u32, u64); 5] = [(0x1, 4, 60), (0x3, 14, 25), (0x4, 45, 10), (0xA, 240, 4), (0x3B, 500, 1)];

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = env::args().skip(1).collect();
    let [number, path] = words.as_slice() else { return Err("NUMBER FILE".into()) };
    let event = RecordedEvent {
        name: "cpu/event=0xcd,umask=0x01,ldlat=3/".to_owned(),
        modes: modes::BOTH | modes::PRECISE,
        ..session(2).events.remove(0)
    };
    let mut writer = Writer::new(File::create(path)?, &RecordedSession { events: vec![event], ..session(2) })?;
    let path = "C:\\Program Files\\Example\\example.exe".to_owned();
    let module = Module { base: BASE, size: 0x10_0000, path, timestamp: 1, image_size: 0x10_0000, debug: None };
    writer.process(&Process { id: 4, created: Some(1), name: "example.exe".to_owned(), modules: vec![module] })?;
    let samples = (0..number.parse()?).map(load).collect::<Result<Vec<_>, _>>()?;
    for batch in samples.chunks(recording::MAX_SAMPLES / 2) {
        writer.samples(batch.as_flattened())?;
    }
    writer.finish(&Summary { elapsed: CLOCK, exit_code: Some(0), ..Summary::default() })?;
    Ok(())
}

/// Returns a sample with its load.
fn load(number: u64) -> Result<[SampleRecord; 2], Box<dyn Error>> {
    // Multiples of odd numbers run through all remainders.
    let part = number * 37 % 100;
    let mut sum = 0;
    let of = SOURCES.iter().find(|(.., parts)| {
        sum += parts;
        part < sum
    });
    let (source, latency, _) = of.copied().unwrap_or_default();
    let low = u16::try_from(number & 0xFFFF)?;
    let ip = BASE + 0x1000 + 0x40 * (number * 7 % 4);
    let CounterSample { time, process, thread, processor, event, interval, mode, .. } =
        sample(number * CLOCK / 20_000, ip, 4, u32::try_from(number % 2)?);
    let kind = PreciseKind::Precise;
    let sample = PreciseSample { time, ip, process, thread, processor, event, interval, kind, mode, number };
    let access = AccessRecord {
        time,
        address: HEAP + 8 * (number * 13 % 4096),
        process,
        thread,
        processor,
        event,
        latency: latency + u32::try_from(number * 11 % u64::from(latency))?,
        kind: AccessKind::Access,
        number: low,
        source,
        instruction_latency: 0,
        encoding: AccessEncoding::Skylake,
        operation: AccessOperation::Load,
    };
    Ok([sample.into(), access.into()])
}
