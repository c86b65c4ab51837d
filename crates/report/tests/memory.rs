//! Memory of exports of recordings with many places. This test has its own program because it counts every allocation.

#![expect(clippy::unwrap_used, reason = "test helpers fail by panicking")]

#[path = "../examples/session/mod.rs"]
mod session;

use std::io::{self, Cursor};

use protocol::SampleRecord;
use recording::{Module, Process, Summary, Writer};
use report::{Contents, Detail, Filter, SymbolFinder, SymbolIndex, pprof};
use session::{sample, session};

#[global_allocator]
static HEAP: dhat::Alloc = dhat::Alloc;

/// Places, each with one sample and without a symbol.
const PLACES: u32 = 150_000;

const PROCESS: u32 = 8;
const BASE: u64 = 0x1_4000_0000;

fn recording() -> Vec<u8> {
    let size = 16 * PLACES;
    let path = "C:\\app\\app.exe".to_owned();
    let app = Module { base: BASE, size: size.into(), path, timestamp: 7, image_size: size, debug: None };
    let mut writer = Writer::new(Vec::new(), &session(1)).unwrap();
    writer.process(&Process { id: PROCESS, created: None, name: "app.exe".to_owned(), modules: vec![app] }).unwrap();
    let of_place = |place| sample(1000, BASE + u64::from(16 * place), PROCESS, 0).into();
    let samples: Vec<SampleRecord> = (0..PLACES).map(of_place).collect();
    for block in samples.chunks(recording::MAX_SAMPLES) {
        writer.samples(block).unwrap();
    }
    let summary = Summary { elapsed: 1000, ..Summary::default() };
    writer.finish(&summary).unwrap()
}

/// A place is sorted in 16 bytes, and its number is kept in 13 bytes of a table that is half empty and grows. Besides,
/// 10,000 samples are encoded at a time.
#[test]
fn pprof_takes_less_than_110_bytes_for_a_place() {
    let contents = Contents::read(&mut Cursor::new(recording()), Detail::default()).unwrap();
    let filter = Filter::default();
    let index = SymbolIndex::new(&contents, &filter, &SymbolFinder::new(Vec::new(), None, None).unwrap());
    let _heap = dhat::Profiler::builder().testing().build();
    pprof(&contents, &index, &filter, &mut io::sink()).unwrap();
    let bytes = dhat::HeapStats::get().max_bytes / PLACES as usize;
    assert!(bytes < 110, "{bytes} bytes");
}
