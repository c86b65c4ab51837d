//! Precise samples of load latency and of stores, and the access of memory behind each.

use model::{Fragments, Mode, RecordedAccess};
use pmu::CoreType;
use pmu::extra::{AUXILIARY, Selector};
use pmu::source::RawEvent;
use proptest::prelude::*;
use protocol::{
    AccessEncoding, AccessKind, AccessOperation, AccessRecord, Event, EventRequest, PreciseKind, PreciseSample, RING,
    Record, StartHeader, modes,
};
use simulation::{Client, SimMachine};

use super::scene::{
    INSTRUCTIONS, INTERVAL, TO_RECORD, engine, fetched, header, interrupted, is_left_clean, machine, overflows,
    precise, records, register, run, set_register, started, stopped,
};

type Encoding = (u16, u16);

/// A processor whose records have accesses.
struct Recorded {
    name: &'static str,
    load: Encoding,
    store: Option<Encoding>,
    /// How loads and stores are encoded.
    encodings: [AccessEncoding; 2],
    /// Whether records have the latency of stores, and of instructions.
    has_latencies: bool,
    /// Whether loads have a source only beside another event.
    needs_auxiliary: bool,
}

const fn older(name: &'static str, load: Encoding, store: Option<Encoding>, of: AccessEncoding) -> Recorded {
    let encodings = [of, AccessEncoding::Store];
    Recorded { name, load, store, encodings, has_latencies: false, needs_auxiliary: false }
}

const fn later(name: &'static str, load: Encoding, store: Encoding, of: AccessEncoding) -> Recorded {
    let (store, encodings) = (Some(store), [of; 2]);
    Recorded { name, load, store, encodings, has_latencies: true, needs_auxiliary: false }
}

const LOAD: Encoding = (0xCD, 0x01);
const STORE: Encoding = (0xCD, 0x02);
const ALL_STORES: Encoding = (0xD0, 0x82);
const SMALL_LOAD: Encoding = (0xD0, 0x05);
const SMALL_STORE: Encoding = (0xD0, 0x06);

const PROCESSORS: [Recorded; 22] = [
    older("nehalem-920", (0x0B, 0x10), None, AccessEncoding::Nehalem),
    older("westmere-980x", (0x0B, 0x10), None, AccessEncoding::Nehalem),
    older("sandy-bridge-2600k", LOAD, Some(STORE), AccessEncoding::SandyBridge),
    older("ivy-bridge-ep-4930k", LOAD, Some(STORE), AccessEncoding::SandyBridge),
    older("haswell-4710mq", LOAD, Some(ALL_STORES), AccessEncoding::SandyBridge),
    older("broadwell-6950x", LOAD, Some(ALL_STORES), AccessEncoding::SandyBridge),
    older("skylake-6600k", LOAD, Some(ALL_STORES), AccessEncoding::Skylake),
    older("ice-lake-1065g7", LOAD, Some(ALL_STORES), AccessEncoding::Skylake),
    older("tiger-lake-1135g7", LOAD, Some(ALL_STORES), AccessEncoding::Skylake),
    Recorded { needs_auxiliary: true, ..later("sapphire-rapids-2475x", LOAD, STORE, AccessEncoding::Skylake) },
    Recorded { needs_auxiliary: true, ..later("alder-lake-12900k", LOAD, STORE, AccessEncoding::Skylake) },
    later("granite-rapids-658x", LOAD, STORE, AccessEncoding::Skylake),
    later("alder-lake-n-95", SMALL_LOAD, SMALL_STORE, AccessEncoding::Gracemont),
    later("alder-lake-p-12900h-efficient", SMALL_LOAD, SMALL_STORE, AccessEncoding::Gracemont),
    later("meteor-lake-155h-efficient", SMALL_LOAD, SMALL_STORE, AccessEncoding::Crestmont),
    later("lunar-lake-288v", LOAD, STORE, AccessEncoding::LionCove),
    later("lunar-lake-288v-efficient", SMALL_LOAD, SMALL_STORE, AccessEncoding::Crestmont),
    later("arrow-lake-h-285h-low-power", SMALL_LOAD, SMALL_STORE, AccessEncoding::Crestmont),
    later("panther-lake-355", LOAD, STORE, AccessEncoding::LionCove),
    later("panther-lake-355-efficient", SMALL_LOAD, SMALL_STORE, AccessEncoding::Crestmont),
    later("wildcat-lake-320-efficient", SMALL_LOAD, SMALL_STORE, AccessEncoding::Crestmont),
    later("clearwater-forest-derived", SMALL_LOAD, SMALL_STORE, AccessEncoding::Crestmont),
];

/// Returns the processor of this name.
fn find(name: &str) -> &'static Recorded {
    PROCESSORS.iter().find(|recorded| recorded.name == name).unwrap()
}

const THRESHOLD: u64 = 30;

/// The processor that executes the accesses, not the first one.
const PROCESSOR: u32 = 1;

/// MSR_PEBS_DATA_CFG, and what another program has left there: the general registers and last branches.
const DATA_CFG: u32 = 0x3F2;
const OF_OTHERS: u64 = 31 << 24 | 0b1010;

fn request((event, umask): Encoding, selector: u8, extra: u64) -> EventRequest {
    let raw = RawEvent::new().with_event(event).with_umask(umask).with_selector(selector);
    EventRequest { event: Event { extra, ..Event::of(raw.source().0) }, ..precise(0, INTERVAL) }
}

impl Recorded {
    /// Returns the format of its records.
    fn format(&self) -> u8 {
        let capabilities = cpuid_dumps::find(self.name).unwrap().perf_capabilities();
        (capabilities >> 8 & 0xF) as u8
    }

    fn machine(&self) -> SimMachine {
        machine(self.name, self.format(), PROCESSOR + 1)
    }

    /// Returns the request of load latency.
    fn load(&self) -> EventRequest {
        request(self.load, Selector::LoadLatency as u8, THRESHOLD)
    }

    /// Returns the request of stores.
    fn store(&self) -> Option<EventRequest> {
        self.store.map(|store| request(store, 0, 0))
    }

    /// Returns the requests of loads, with what they need, and of stores, in sessions whose events fit on the counters.
    fn sessions(&self) -> Vec<Vec<EventRequest>> {
        let auxiliary = EventRequest {
            event: Event::of(AUXILIARY.source().0),
            modes: modes::USER,
            interval: 0,
            ..EventRequest::EMPTY
        };
        let beside = if self.needs_auxiliary { vec![auxiliary] } else { Vec::new() };
        let loads = [vec![self.load()], beside].concat();
        // The only counter of both is the same one.
        let are_apart = self.name.starts_with("sandy-bridge") || self.name.starts_with("ivy-bridge");
        match self.store() {
            None => vec![loads],
            Some(store) if are_apart => vec![loads, vec![store]],
            Some(store) => vec![[loads, vec![store]].concat()],
        }
    }
}

const fn recorded(address: u64, source: u64, latency: u64, instruction_latency: u64) -> RecordedAccess {
    RecordedAccess { address, source, latency, instruction_latency }
}

/// Addresses in the kernel, of zero, and not canonical; sources that are reserved; a latency of more than 16 bits.
const LOADS: [RecordedAccess; 4] = [
    recorded(0x7FF6_0000_1000, 0x1, 31, 40),
    recorded(0xFFFF_F800_0000_2000, 0x67, 300, 301),
    recorded(0, 0xA, 0x1_2345, 0x2_0001),
    recorded(0x8000_0000_0000_0000, 0x5_FFFF_FFFF, 30, 0),
];
const STORES: [RecordedAccess; 3] = [
    recorded(0x7FF6_0000_1008, 0x31, 7, 9),
    recorded(0, 0x0, 0, 0),
    recorded(0xFFFF_8000_0000_0000, 0xFFFF, 900, 1_000),
];

fn set_accesses(machine: &SimMachine, loads: &[RecordedAccess], stores: &[RecordedAccess]) {
    machine.processor(PROCESSOR).model().set_accesses(loads.to_vec(), stores.to_vec());
}

/// Returns what the records of a processor have of accesses.
fn as_recorded(accesses: &[RecordedAccess], of: &Recorded, operation: AccessOperation) -> Vec<RecordedAccess> {
    let seen = |access: &RecordedAccess| {
        let RecordedAccess { address, source, latency, instruction_latency } = *access;
        let (latency, instruction_latency) = match operation {
            _ if of.has_latencies => (latency & 0xFFFF, instruction_latency & 0xFFFF),
            AccessOperation::Load => (latency, 0),
            _ => (0, 0),
        };
        recorded(address, source & 0xFFFF_FFFF, latency, instruction_latency)
    };
    accesses.iter().map(seen).collect()
}

/// Splits records into precise samples, each with the access behind it if there is one. An access behind no sample is
/// an error.
fn samples(records: &[Record]) -> Vec<(PreciseSample, Option<AccessRecord>)> {
    let mut samples: Vec<(PreciseSample, Option<AccessRecord>)> = Vec::new();
    for record in records {
        match record {
            Record::Precise(sample) => samples.push((*sample, None)),
            Record::Access(access) => {
                let (sample, of_it) = samples.last_mut().unwrap();
                let of_access = (access.time, access.process, access.thread, access.processor, access.event);
                let of_sample = (sample.time, sample.process, sample.thread, sample.processor, sample.event);
                assert_eq!((of_access, access.kind), (of_sample, AccessKind::Access));
                assert_eq!((u64::from(access.number), *of_it), (sample.number & 0xFFFF, None));
                *of_it = Some(*access);
            }
            Record::Lost(_) | Record::Pause(_) | Record::Stop(_) => {}
            other => unreachable!("{other:?}"),
        }
    }
    samples
}

fn found(access: &AccessRecord) -> RecordedAccess {
    let AccessRecord { address, source, latency, instruction_latency, .. } = *access;
    recorded(address, source.into(), latency.into(), instruction_latency.into())
}

/// Checks a session of these events beside one of instructions, whose records have no access.
fn check(of: &Recorded, events: &[EventRequest], batch: u32) {
    let name = of.name;
    let machine = of.machine();
    let is_adaptive = (4..15).contains(&of.format());
    if is_adaptive {
        set_register(&machine, PROCESSOR, DATA_CFG, OF_OTHERS);
    }
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    set_accesses(&machine, &[&[recorded(0x1111, 1, THRESHOLD - 1, 1)], &LOADS[..]].concat(), &STORES);
    let all = [&[precise(INSTRUCTIONS, 3 * INTERVAL)], events].concat();
    let session = started(client, &mut engine, &header(batch), &all);
    if is_adaptive {
        assert_eq!(register(&machine, PROCESSOR, DATA_CFG), Some(1), "{name}");
    }
    for step in 0..12 {
        run(&machine, &engine, PROCESSOR, 0x40_0000 + step * 16, TO_RECORD);
    }
    let mut records_of = fetched(client, &mut engine, session);
    let counts = stopped(client, &mut engine, session, None);
    records_of.extend(fetched(client, &mut engine, session));
    let samples = samples(&records_of);
    for (index, event) in (0..).zip(&all).filter(|(_, event)| event.interval > 0) {
        let own: Vec<_> = samples.iter().filter(|(sample, _)| sample.event == index).collect();
        let is_load = event.event == of.load().event;
        let operation = if is_load { AccessOperation::Load } else { AccessOperation::Store };
        let accesses: Vec<RecordedAccess> = own.iter().filter_map(|(_, access)| access.as_ref()).map(found).collect();
        let least = if index == 0 { 2 } else { 8 };
        assert!(own.len() >= least, "{name} {index}: {}", own.len());
        let wanted = match index {
            0 => Vec::new(),
            _ if is_load => as_recorded(&LOADS, of, operation),
            _ => as_recorded(&STORES, of, operation),
        };
        let wanted: Vec<_> = wanted.iter().copied().cycle().take(own.len()).collect();
        assert_eq!(accesses, wanted, "{name} {index}: without those below the threshold");
        let [of_loads, of_stores] = of.encodings;
        let encoding = if is_load { of_loads } else { of_stores };
        let is_encoded = |access: &AccessRecord| (access.encoding, access.operation) == (encoding, operation);
        assert!(own.iter().filter_map(|(_, access)| access.as_ref()).all(is_encoded), "{name} {index}");
    }
    let numbers: Vec<u64> = samples.iter().map(|(sample, _)| sample.number).collect();
    assert_eq!(numbers, (0..samples.len() as u64).collect::<Vec<_>>(), "{name}: each record has its number");
    let told: u64 = counts.iter().map(|count| count.samples).sum();
    assert_eq!((told, records(&machine, PROCESSOR)), (samples.len() as u64, told), "{name}: accesses are no samples");
    for count in counts.iter().filter(|count| count.processor == PROCESSOR) {
        assert_eq!(count.count, machine.counted(PROCESSOR, count.counter), "{name} {count:?}");
    }
    if is_adaptive {
        assert_eq!(register(&machine, PROCESSOR, DATA_CFG), Some(OF_OTHERS), "{name}: it is put back");
    }
    assert!(is_left_clean(&machine), "{name}");
    assert!(machine.all().all(|cpu| cpu.model().accesses().faulted == 0), "{name}");
}

#[test]
fn each_sample_of_accesses_is_followed_by_its_access_and_no_other_sample_is() {
    for of in &PROCESSORS {
        for events in of.sessions() {
            for batch in [0, 1, 7] {
                check(of, &events, batch);
            }
        }
    }
}

/// The memory group can be in any fragment.
#[test]
fn an_access_is_found_in_any_fragment_of_its_record() {
    for name in ["panther-lake-355", "panther-lake-355-efficient"] {
        for are_late in [false, true] {
            let of = find(name);
            let machine = of.machine();
            machine.processor(PROCESSOR).model().set_fragments(Fragments::ByTurns);
            machine.processor(PROCESSOR).model().set_late_records(are_late);
            set_accesses(&machine, &LOADS, &STORES);
            let mut engine = engine(&machine);
            let client = Client::open(&mut engine, 1, 10);
            let session = started(client, &mut engine, &header(3), &of.sessions().concat());
            for step in 0..24 {
                run(&machine, &engine, PROCESSOR, 0x40_0000 + step * 16, TO_RECORD);
            }
            let counts = stopped(client, &mut engine, session, None);
            let samples = samples(&fetched(client, &mut engine, session));
            assert_eq!(samples.len() as u64, records(&machine, PROCESSOR), "{name}");
            for (index, (accesses, operation)) in
                (0..).zip([(&LOADS[..], AccessOperation::Load), (&STORES, AccessOperation::Store)])
            {
                let own: Vec<_> = samples.iter().filter(|(sample, _)| sample.event == index).collect();
                let wanted = as_recorded(accesses, of, operation);
                let wanted: Vec<_> = wanted.into_iter().cycle().take(own.len()).map(Some).collect();
                let own: Vec<_> = own.iter().map(|(_, access)| access.as_ref().map(found)).collect();
                assert_eq!(own, wanted, "{name} {index}");
                assert!(own.len() > 16);
            }
            for count in counts.iter().filter(|count| count.processor == PROCESSOR) {
                assert_eq!(count.count, machine.counted(PROCESSOR, count.counter), "{name} {count:?}");
            }
        }
    }
}

/// Each core type has its own events and its own encodings, whichever one boots.
#[test]
fn accesses_of_a_hybrid_are_encoded_as_the_core_that_recorded_them_does() {
    for [first, second] in [
        ["alder-lake-12900k", "alder-lake-p-12900h-efficient"],
        ["lunar-lake-288v", "lunar-lake-288v-efficient"],
        ["panther-lake-355", "panther-lake-355-efficient"],
        ["lunar-lake-288v-efficient", "panther-lake-355"],
    ] {
        for names in [[first, second], [second, first]] {
            let machine = SimMachine::of(names.map(|name| {
                let identity = cpuid_dumps::find(name).unwrap();
                let dump = identity.cpuid();
                let processor = model::Processor::new(Box::new(move |leaf, subleaf| dump.cpuid(leaf, subleaf)));
                let mut processor = processor.with_perf_capabilities(identity.perf_capabilities());
                processor.set_memory(Box::new(host_memory::ProcessMemory));
                processor.set_accesses(LOADS.to_vec(), STORES.to_vec());
                processor
            }));
            let mut engine = engine(&machine);
            let client = Client::open(&mut engine, 1, 10);
            let mut sessions = Vec::new();
            let mut events = Vec::new();
            for name in names {
                let of = find(name);
                let is_small = of.load == SMALL_LOAD;
                let core_type = if is_small { CoreType::Atom } else { CoreType::Core }.number();
                let own = of.sessions().concat().into_iter();
                events
                    .extend(own.map(|request| EventRequest { event: Event { core_type, ..request.event }, ..request }));
                sessions.push(of);
            }
            let session = started(client, &mut engine, &header(0), &events);
            for step in 0..12 {
                (0..2).for_each(|processor| run(&machine, &engine, processor, 0x1000 + step, TO_RECORD));
            }
            stopped(client, &mut engine, session, None);
            let records = fetched(client, &mut engine, session);
            for (processor, of) in (0..).zip(sessions) {
                let is_own = |record: &&Record| record.processor() == processor;
                let own = samples(&records.iter().filter(is_own).copied().collect::<Vec<_>>());
                let accesses: Vec<AccessRecord> = own.iter().map(|(_, access)| access.unwrap()).collect();
                for (operation, all) in [(AccessOperation::Load, &LOADS[..]), (AccessOperation::Store, &STORES)] {
                    let found: Vec<_> =
                        accesses.iter().filter(|access| access.operation == operation).map(found).collect();
                    let wanted = as_recorded(all, of, operation).into_iter().cycle().take(found.len());
                    assert_eq!(found, wanted.collect::<Vec<_>>(), "{names:?} {processor}");
                    assert!(found.len() > 8, "{names:?} {processor}");
                }
                assert!(accesses.iter().all(|access| access.encoding == of.encodings[0]), "{names:?} {processor}");
            }
            assert!(is_left_clean(&machine), "{names:?}");
        }
    }
}

#[test]
fn over_a_sleep_accesses_go_on_and_the_groups_are_asked_for_again() {
    for of in [find("skylake-6600k"), find("sapphire-rapids-2475x"), find("lunar-lake-288v"), find("panther-lake-355")]
    {
        let machine = of.machine();
        set_accesses(&machine, &LOADS, &STORES);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let session = started(client, &mut engine, &header(5), &of.sessions().concat());
        let mut all = 0;
        for _ in 0..3 {
            (0..7).for_each(|step| run(&machine, &engine, PROCESSOR, step, TO_RECORD));
            machine.fall_asleep(&engine);
            assert_eq!(register(&machine, PROCESSOR, DATA_CFG).unwrap_or_default(), 0, "{}", of.name);
            machine.wake(&engine);
            all += 7;
        }
        stopped(client, &mut engine, session, None);
        let samples = samples(&fetched(client, &mut engine, session));
        let loads = samples.iter().filter(|(sample, _)| sample.event == 0).count();
        assert!(loads >= all - 3 && samples.len() > loads, "{}: {loads} of {all}", of.name);
        assert!(samples.iter().all(|(_, access)| access.is_some()), "{}", of.name);
        assert!(is_left_clean(&machine), "{}", of.name);
    }
}

/// Another program asks for other groups during the session: its records are lost, one by one, and what it wrote stays.
#[test]
fn records_of_other_groups_are_lost_each_and_recording_goes_on() {
    for of in [find("ice-lake-1065g7"), find("sapphire-rapids-2475x"), find("lunar-lake-288v-efficient")] {
        let foreign = [(0b10, false), (0b111, false), (7 << 24 | 0b1000, false), (0, false), (1, true)];
        let sessions = [of.sessions().concat(), vec![of.store().unwrap()]];
        for ((groups, has_access), events) in
            foreign.into_iter().flat_map(|one| sessions.iter().map(move |of| (one, of)))
        {
            let machine = of.machine();
            set_accesses(&machine, &LOADS, &STORES);
            let mut engine = engine(&machine);
            let client = Client::open(&mut engine, 1, 10);
            let session = started(client, &mut engine, &header(0), events);
            let run = |steps: u64| (0..steps).for_each(|step| run(&machine, &engine, PROCESSOR, step, TO_RECORD));
            run(3);
            let before = records(&machine, PROCESSOR);
            set_register(&machine, PROCESSOR, DATA_CFG, groups);
            run(5);
            let changed = records(&machine, PROCESSOR) - before;
            set_register(&machine, PROCESSOR, DATA_CFG, 1);
            run(4);
            let later = records(&machine, PROCESSOR) - changed - before;
            set_register(&machine, PROCESSOR, DATA_CFG, groups);
            let counts = stopped(client, &mut engine, session, None);
            let samples = samples(&fetched(client, &mut engine, session));
            let (told, lost): (u64, u64) =
                counts.iter().fold((0, 0), |(told, lost), count| (told + count.samples, lost + count.lost));
            let is_lost = !has_access && groups != 0;
            let what = format!("{} {groups:#b}", of.name);
            assert!(changed >= 5, "{what}");
            assert_eq!((told, told + lost), (samples.len() as u64, overflows(&machine, PROCESSOR)), "{what}");
            assert_eq!(told, before + later + if is_lost { 0 } else { changed }, "{what}");
            let with_access = samples.iter().filter(|(_, access)| access.is_some()).count() as u64;
            assert_eq!(with_access, before + later + if has_access { changed } else { 0 }, "{what}");
            assert!(samples.iter().all(|(sample, _)| sample.kind == PreciseKind::Precise), "{what}");
            let left = register(&machine, PROCESSOR, DATA_CFG);
            assert_eq!(left, Some(if groups == 1 { 0 } else { groups }), "{what}: only the driver's value goes");
        }
    }
}

/// The buffer is full in the middle of a burst, with records of two sizes.
#[test]
fn in_a_burst_every_overflow_is_a_sample_with_its_access_or_lost() {
    for name in ["skylake-6600k", "ice-lake-1065g7", "lunar-lake-288v", "panther-lake-355"] {
        for (batch, burst) in [(1, 10), (1, 300), (10, 60), (100, 3_000)] {
            let of = find(name);
            let machine = of.machine();
            if of.format() == 15 {
                machine.processor(PROCESSOR).model().set_fragments(Fragments::ByTurns);
            }
            set_accesses(&machine, &LOADS, &STORES);
            let mut engine = engine(&machine);
            let client = Client::open(&mut engine, 1, 10);
            let header = StartHeader { ring: 1 << 16, ..header(batch) };
            let all = [vec![precise(INSTRUCTIONS, INTERVAL)], of.sessions().concat()].concat();
            let session = started(client, &mut engine, &header, &all);
            for _ in 0..3 {
                machine.run(PROCESSOR, Mode::User, &|_| burst * TO_RECORD);
                machine.deliver(&engine, PROCESSOR, &interrupted(PROCESSOR));
            }
            let counts = stopped(client, &mut engine, session, None);
            let samples = samples(&fetched(client, &mut engine, session));
            let what = format!("{name} {batch} {burst}");
            for count in counts.iter().filter(|count| count.processor == PROCESSOR) {
                assert_eq!(count.count, machine.counted(PROCESSOR, count.counter), "{what}");
            }
            let (told, lost): (u64, u64) = counts
                .iter()
                .fold((0, 0), |(told, lost), count| (told + count.samples, lost + count.lost + count.throttled));
            assert_eq!((told, told), (samples.len() as u64, records(&machine, PROCESSOR)), "{what}");
            assert_eq!(told + lost, overflows(&machine, PROCESSOR), "{what}");
            let is_right =
                |(sample, access): &(PreciseSample, Option<AccessRecord>)| access.is_some() == (sample.event != 0);
            assert!(samples.iter().all(is_right) && samples.len() > 10, "{what}");
        }
    }
}

/// A record of 64 bytes counts as one: it alone caused the interrupt, so that the interrupted thread made it.
#[test]
fn a_record_with_an_access_has_the_thread_that_it_interrupted() {
    for name in ["skylake-6600k", "ice-lake-1065g7", "lunar-lake-288v", "panther-lake-355"] {
        let of = find(name);
        let machine = of.machine();
        set_accesses(&machine, &LOADS, &STORES);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let session = started(client, &mut engine, &header(1), &[of.load()]);
        for step in 0..5 {
            run(&machine, &engine, PROCESSOR, step, TO_RECORD);
            let told = fetched(client, &mut engine, session);
            let [Record::Precise(sample), Record::Access(access)] = told[..] else { panic!("{name}: {told:?}") };
            let who = (100 + PROCESSOR, 200);
            assert_eq!([(sample.process, sample.thread), (access.process, access.thread)], [who; 2], "{name}");
        }
    }
}

/// Sessions without accesses do not touch MSR_PEBS_DATA_CFG.
#[test]
fn the_register_of_groups_is_accessed_only_for_accesses() {
    let of = find("sapphire-rapids-2475x");
    let accesses = |events: &[EventRequest]| {
        let machine = of.machine();
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        // The first accesses, which trials are part of, are made.
        let session = started(client, &mut engine, &header(0), events);
        stopped(client, &mut engine, session, None);
        let before = machine.processor(PROCESSOR).model().accesses();
        let session = started(client, &mut engine, &header(0), events);
        stopped(client, &mut engine, session, None);
        let now = machine.processor(PROCESSOR).model().accesses();
        (now.rdmsr - before.rdmsr, now.wrmsr - before.wrmsr)
    };
    let plain = accesses(&[request((0xD0, 0x81), 0, 0)]);
    let store = accesses(&[request(STORE, 0, 0)]);
    // At the start: the trial (2 R, 3 W), what is found and the value (1 R, 1 W). At the end: whether it is still the
    // driver's, and what was found (1 R, 1 W).
    assert_eq!(store, (plain.0 + 4, plain.1 + 5));
}

proptest! {
    /// A ring that is full loses samples and accesses, and an access never goes to another sample than its own.
    #[test]
    fn an_access_belongs_to_the_sample_before_it_whatever_is_lost(
        steps in 1_u64..200,
        fetches in 1_u64..100,
        batch in 1_u32..5,
        name in prop::sample::select(vec!["skylake-6600k", "ice-lake-1065g7", "lunar-lake-288v", "panther-lake-355"]),
    ) {
        let of = find(name);
        let machine = of.machine();
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        // The address of each load tells which one it is.
        let loads: Vec<RecordedAccess> = (0..steps).map(|number| recorded(0x1_0000 + number, 1, 100, 100)).collect();
        set_accesses(&machine, &loads, &[]);
        let header = StartHeader { ring: *RING.start(), ..header(batch) };
        let session = started(client, &mut engine, &header, &[of.load()]);
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
