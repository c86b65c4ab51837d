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
use protocol::status::STATUS_SUCCESS;
use protocol::{
    Code, Event, EventRequest, Hello, Mode, PROTOCOL_VERSION, Record, ReplyHeader, SampleRecord, SamplesRequest,
    StartHeader, modes,
};
use recording::{RecordedSession, Writer};
use simulation::boot;
use zerocopy::{FromBytes, IntoBytes};

const SAMPLES: u64 = 20_000_000;

/// Records for which the ring has room; the reader comes at half of it.
const RING: u32 = 1 << 14;

const CLIENT: engine::ClientId = engine::ClientId(1);

fn main() {
    for (interface, name) in [("Amd64", "amd-legacy"), ("Emon v2+", "haswell-4710mq")] {
        let file = tempfile::tempfile().expect("a file");
        let mut writer = Writer::new(file, &description()).expect("a recording");
        let machine = Plain { cpu: PlainCpu::new(name, 1) };
        let mut engine = Engine::new(&machine, [0; 4]).expect("memory");
        let session = start(&mut engine);
        let mut buffer = vec![0; size_of::<ReplyHeader>() + RING as usize * size_of::<SampleRecord>()];
        let (mut written, mut lost) = (0, 0);
        let begun = Instant::now();
        for number in 0..SAMPLES {
            let interrupted =
                Interrupted { ip: 0x1_4000_0000 + number % 4_096, process: 1_000, thread: 1_001, mode: Mode::User };
            let watermark_hit = engine.sampler().interrupt(boot(&machine.cpu), || Ticks(number), &interrupted).reader;
            if watermark_hit || number + 1 == SAMPLES {
                let request = SamplesRequest { session, wait: 0, reserved: 0 };
                let fetch = Samples { client: CLIENT, input: request.as_bytes(), output: &mut buffer, may_wait: false };
                engine.samples(fetch).expect("it does not wait");
                let (header, rest) = ReplyHeader::read_from_prefix(&buffer).expect("an answer");
                let bytes = rest.get(..header.count as usize * size_of::<SampleRecord>()).unwrap_or_default();
                let records = <[SampleRecord]>::ref_from_bytes(bytes).expect("records");
                lost += records.iter().filter_map(lost_samples).sum::<u64>();
                written += records.len() as u64;
                writer.samples(records).expect("room on the disk");
            }
        }
        let bytes = writer.written();
        drop(writer);
        let time = begun.elapsed();
        let a_second = u128::from(written) * 1_000 / time.as_millis().max(1);
        println!(
            "{interface:9} {written} samples, {} MB in {time:.2?}: {a_second} a second, {lost} lost",
            bytes / 1_000_000
        );
        assert_eq!((written, lost), (SAMPLES, 0));
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
fn start(engine: &mut Engine<&Plain>) -> u64 {
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
    let header = StartHeader { ring: RING, budget: 900, ..StartHeader::EMPTY };
    let event = EventRequest { event: Event::of(6), modes: modes::BOTH, interval: 65_536, ..EventRequest::EMPTY };
    let started = ask(Code::Start, &[header.as_bytes(), event.as_bytes()].concat());
    assert_eq!(started.status, 0);
    let [session, _] = started.detail;
    session
}

fn lost_samples(record: &SampleRecord) -> Option<u64> {
    match record.parse() {
        Ok(Record::Lost(lost)) => Some(lost.count),
        _ => None,
    }
}
