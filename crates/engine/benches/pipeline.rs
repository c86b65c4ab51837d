//! From the overflow to the file on one core: handler, ring, drain and file writer, with the hardware replaced by plain
//! memory. Prints how many samples a second came through, and how many were lost.
//!
//! `cargo bench -p engine --bench pipeline`

#![expect(clippy::expect_used, reason = "a bench that cannot be set up must not measure")]
#![forbid(unsafe_code)]

#[path = "plain/mod.rs"]
mod plain;

use std::time::Instant;

use engine::{Engine, Interrupted, Samples, Ticks};
use plain::{Plain, PlainCpu};
use protocol::last_branches::{ANY, MODES};
use protocol::status::STATUS_SUCCESS;
use protocol::{
    Code, Event, EventRequest, Hello, Mode, PROTOCOL_VERSION, Record, ReplyHeader, SampleRecord, SamplesRequest,
    StartHeader, modes,
};
use recording::{RecordedSession, Writer};
use simulation::boot;
use zerocopy::{FromBytes, IntoBytes};

/// Number of records: of samples, and of their branches.
const RECORDS: u64 = 20_000_000;

/// LBR_FMT of Skylake.
const FORMAT: u64 = 5;

/// Time between two interrupts in units of 100 ns, and interrupts between two ticks: few enough for the budget.
const PAUSE: u64 = 100;
const TICK: u64 = 1_000;

/// Records for which the ring has room; the reader comes at half of it.
const RING: u32 = 1 << 14;

const CLIENT: engine::ClientId = engine::ClientId(1);

fn main() {
    for (interface, name, branches) in [
        ("Amd64", "amd-legacy", 0),
        ("Emon v2+", "haswell-4710mq", 0),
        ("the same with 32 branches", "skylake-6600k", 32),
    ] {
        let file = tempfile::tempfile().expect("a file");
        let mut writer = Writer::new(file, &description()).expect("a recording");
        let cpu = PlainCpu::<true>::new(name, 1);
        let cpu = if branches == 0 { cpu } else { cpu.with_branches(FORMAT) };
        let machine = Plain { cpu };
        let mut engine = Engine::new(&machine, [0; 4]).expect("memory");
        let session = start(&mut engine, if branches == 0 { 0 } else { MODES | ANY });
        let samples = RECORDS / (1 + branches);
        let mut buffer = vec![0; size_of::<ReplyHeader>() + RING as usize * size_of::<SampleRecord>()];
        let (mut written, mut lost) = (0, 0);
        let begun = Instant::now();
        for number in 0..samples {
            let interrupted =
                Interrupted { ip: 0x1_4000_0000 + number % 4_096, process: 1_000, thread: 1_001, mode: Mode::User };
            let now = Ticks(number * PAUSE);
            if number.is_multiple_of(TICK) {
                _ = engine.sampler().tick(boot(&machine.cpu), now);
            }
            let watermark_hit = engine.sampler().interrupt(boot(&machine.cpu), || now, &interrupted).reader;
            if watermark_hit || number + 1 == samples {
                let request = SamplesRequest { session, wait: 0, reserved: 0 };
                let fetch = Samples { client: CLIENT, input: request.as_bytes(), output: &mut buffer, may_wait: false };
                engine.samples(fetch).expect("it does not wait");
                let (header, rest) = ReplyHeader::read_from_prefix(&buffer).expect("an answer");
                let bytes = rest.get(..header.count as usize * size_of::<SampleRecord>()).unwrap_or_default();
                let records = <[SampleRecord]>::ref_from_bytes(bytes).expect("records");
                for record in records {
                    match record.parse() {
                        Ok(Record::Sample(_) | Record::LastBranch(_)) => written += 1,
                        Ok(Record::Lost(record)) => lost += record.count,
                        _ => {}
                    }
                }
                writer.samples(records).expect("room on the disk");
            }
        }
        let bytes = writer.written();
        drop(writer);
        let time = begun.elapsed();
        let a_second = u128::from(samples) * 1_000 / time.as_millis().max(1);
        println!("{interface:9} {samples} samples, {} MB in {time:.2?}: {a_second} a second", bytes / 1_000_000);
        assert_eq!(written, samples * (1 + branches));
        // The counter has overflowed at a tick, too, which takes its interrupt for lost.
        assert!(lost <= samples.div_ceil(TICK));
        // A folder for temporary files is cleaned by others, too.
    }
}

fn description() -> RecordedSession {
    RecordedSession {
        created_unix_ms: 0,
        client: String::new(),
        driver: String::new(),
        processor: String::new(),
        computer: None,
        command: Vec::new(),
        batch: 0,
        condition: None,
        last_branches: 0,
        tasks: recording::RecordedTasks::default(),
        part: 0,
        core_types: Vec::new(),
        clock: 10_000_000,
        processors: vec![0],
        events: Vec::new(),
    }
}

/// Opens a handle and samples one source on the one processor.
fn start(engine: &mut Engine<&Plain<true>>, last_branches: u32) -> u64 {
    assert_eq!(engine.open(CLIENT, 1), STATUS_SUCCESS);
    let mut ask = |code: Code, input: &[u8]| {
        let mut buffer = input.to_vec();
        buffer.resize(512, 0);
        let (input, output) = (input.len(), buffer.len());
        let request = engine::Request { client: CLIENT, code: code as u32, buffer: &mut buffer, input, output };
        assert_eq!(engine.serve(request).status, STATUS_SUCCESS);
        ReplyHeader::read_from_prefix(&buffer).expect("an answer").0
    };
    ask(Code::Hello, Hello { version: PROTOCOL_VERSION, reserved: 0 }.as_bytes());
    let header = StartHeader { ring: RING, budget: 900, last_branches, ..StartHeader::EMPTY };
    let event = EventRequest { event: Event::of(6), modes: modes::BOTH, interval: 65_536, ..EventRequest::EMPTY };
    let started = ask(Code::Start, &[header.as_bytes(), event.as_bytes()].concat());
    assert_eq!(started.status, 0);
    let [session, _] = started.detail;
    session
}
