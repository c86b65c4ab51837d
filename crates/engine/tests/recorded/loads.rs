//! Precise samples of load latency, and the access of memory behind each.

use model::RecordedLoad;
use pmu::extra::Selector;
use pmu::source::RawEvent;
use proptest::prelude::*;
use protocol::{
    AccessEncoding, AccessKind, AccessOperation, AccessRecord, Event, EventRequest, RING, Record, StartHeader,
};
use simulation::{Client, SimMachine};

use super::scene::{
    INSTRUCTIONS, INTERVAL, TO_RECORD, engine, fetched, header, is_left_clean, machine, precise, precise_sample, run,
    started, stopped,
};

/// A processor of each format whose records have loads, its event of load latency, and the encoding of its sources.
const PROCESSORS: [(&str, u8, (u16, u16), AccessEncoding); 3] = [
    ("nehalem-920", 1, (0x0B, 0x10), AccessEncoding::Nehalem),
    ("haswell-4710mq", 2, (0xCD, 0x01), AccessEncoding::SandyBridge),
    ("skylake-6600k", 3, (0xCD, 0x01), AccessEncoding::Skylake),
];

const THRESHOLD: u64 = 30;

/// The processor that executes the loads, not the first one.
const PROCESSOR: u32 = 1;

/// Returns the request of load latency.
fn latency((event, umask): (u16, u16)) -> EventRequest {
    let raw = RawEvent::new().with_event(event).with_umask(umask).with_selector(Selector::LoadLatency as u8);
    let event = Event { extra: THRESHOLD, ..Event::of(raw.source().0) };
    EventRequest { event, ..precise(0, INTERVAL) }
}

fn load(address: u64, source: u64, latency: u64) -> RecordedLoad {
    RecordedLoad { address, source, latency }
}

fn set_loads(machine: &SimMachine, loads: &[RecordedLoad]) {
    machine.processor(PROCESSOR).model().set_loads(loads.to_vec());
}

fn access(record: &Record) -> AccessRecord {
    let Record::Access(access) = record else { unreachable!("{record:?}") };
    *access
}

/// Addresses in the kernel, of zero, and not canonical; sources that are reserved; a latency of more than 16 bits.
#[test]
fn each_sample_of_load_latency_is_followed_by_its_load_and_no_other_sample_is() {
    let loads = [
        load(0x7FF6_0000_1000, 0x1, 31),
        load(0xFFFF_F800_0000_2000, 0x67, 300),
        load(0, 0xA, 0x1_2345),
        load(0x8000_0000_0000_0000, 0xFFFF, 30),
    ];
    for (name, format, event, encoding) in PROCESSORS {
        let machine = machine(name, format, PROCESSOR + 1);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        set_loads(&machine, &[&[load(0x1111, 1, THRESHOLD - 1)], &loads[..]].concat());
        let session = started(client, &mut engine, &header(0), &[precise(INSTRUCTIONS, 3 * INTERVAL), latency(event)]);
        for step in 0..12 {
            run(&machine, &engine, PROCESSOR, 0x40_0000 + step * 16, TO_RECORD);
        }
        let records = fetched(client, &mut engine, session);
        let mut of_loads = Vec::new();
        let mut others = 0;
        let mut records = records.iter().peekable();
        while let Some(record) = records.next() {
            let sample = precise_sample(record);
            if sample.event == 0 {
                others += 1;
                assert!(!matches!(records.peek(), Some(Record::Access(_))), "{name}: instructions have no load");
                continue;
            }
            let access = access(records.next().unwrap());
            let of_access = (access.time, access.process, access.thread, access.processor, access.event);
            assert_eq!(
                of_access,
                (sample.time, sample.process, sample.thread, sample.processor, sample.event),
                "{name}"
            );
            assert_eq!((u64::from(access.number), access.kind), (sample.number & 0xFFFF, AccessKind::Access));
            let how = (access.encoding, access.operation, access.instruction_latency);
            assert_eq!(how, (encoding, AccessOperation::Load, 0), "{name}");
            of_loads.push(load(access.address, access.source.into(), access.latency.into()));
        }
        let expected: Vec<_> = loads.into_iter().cycle().take(of_loads.len()).collect();
        assert_eq!(of_loads, expected, "{name}: without those below the threshold");
        assert!(of_loads.len() >= 8 && others >= 2, "{name}: {} and {others}", of_loads.len());
        let counts = stopped(client, &mut engine, session, None);
        let samples: u64 = counts.iter().map(|count| count.samples).sum();
        assert_eq!(samples, of_loads.len() as u64 + others, "{name}: accesses are no samples");
        assert!(is_left_clean(&machine), "{name}");
    }
}

proptest! {
    /// A ring that is full loses samples and accesses, and an access never goes to another sample than its own.
    #[test]
    fn an_access_belongs_to_the_sample_before_it_whatever_is_lost(
        steps in 1_u64..200,
        fetches in 1_u64..100,
        batch in 1_u32..5,
    ) {
        let (name, format, event, _) = PROCESSORS[2];
        let machine = machine(name, format, PROCESSOR + 1);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        // The address of each load tells which one it is.
        let loads: Vec<RecordedLoad> = (0..steps).map(|number| load(0x1_0000 + number, 1, 100)).collect();
        set_loads(&machine, &loads);
        let header = StartHeader { ring: *RING.start(), ..header(batch) };
        let session = started(client, &mut engine, &header, &[latency(event)]);
        let mut records = Vec::new();
        for step in 0..steps {
            run(&machine, &engine, PROCESSOR, 0x40_0000 + step, TO_RECORD);
            if step % fetches == 0 {
                records.extend(fetched(client, &mut engine, session));
            }
        }
        let [_, count] = stopped(client, &mut engine, session, None)[..] else { panic!() };
        records.extend(fetched(client, &mut engine, session));
        let (mut before, mut samples, mut accesses) = (None, 0, 0);
        for record in records {
            match record {
                Record::Precise(sample) => {
                    before = Some(sample);
                    samples += 1;
                }
                Record::Access(access) => {
                    let own = before.take().filter(|sample| u64::from(access.number) == sample.number & 0xFFFF);
                    prop_assert_eq!(own.map(|sample| 0x1_0000 + sample.number), own.map(|_| access.address));
                    accesses += u64::from(own.is_some());
                }
                _ => {}
            }
        }
        prop_assert_eq!((samples, samples + count.lost), (count.samples, steps));
        prop_assert!(accesses <= samples && (count.lost > 0 || accesses == samples), "{} of {}", accesses, samples);
    }
}
