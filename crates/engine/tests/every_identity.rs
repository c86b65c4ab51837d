//! Every identity: list, placement, counted run, precise events and branches. Nothing that a client asks for makes a
//! processor raise #GP.

use std::collections::BTreeMap;

use cpuid_dumps::CpuIdentity;
use engine::{Engine, Interrupted};
use model::{Accesses, Mode, Selected};
use pmu::ProfileInterface;
use protocol::{
    BRANCHES, Code, CountRecord, ErrorCode, Event, EventRequest, SourceRecord, StartHeader, event_flags, modes,
};
use simulation::{Client, SimMachine};

const PROFILE_TIME: u64 = 0;

/// The interrupted code, which does not matter here.
const NOWHERE: Interrupted = Interrupted { ip: 1, process: 2, thread: 3, mode: protocol::Mode::User };

/// Processors of each machine: both core types of a hybrid.
const PROCESSORS: u32 = 2;

/// Interval of the sampled sources, and how often their events occur and are served.
const INTERVAL: u32 = 10_000;
const ROUNDS: u32 = 8;

/// Returns a different number of occurrences for each event.
fn work(selected: Selected) -> u64 {
    1 + u64::from(selected.event) * 1_000 + u64::from(selected.umask)
}

/// Returns the supported sources of the list, except ProfileTime.
fn supported(client: Client, engine: &mut Engine<&SimMachine>) -> Vec<u64> {
    let list: Vec<SourceRecord> = client.tell(engine, Code::ListSources);
    assert!(list.iter().any(|source| source.source == PROFILE_TIME), "ProfileTime needs no counter");
    let supported = list.iter().filter(|source| source.support == pmu::Support::Supported as u32);
    supported.map(|source| source.source).filter(|source| *source != PROFILE_TIME).collect()
}

/// Starts as many of these sources as there are counters for, in these modes, with an interval or without, then counts,
/// and checks each count against the model's ledger. Returns how many were counted.
fn count(
    name: &str,
    machine: &SimMachine,
    engine: &mut Engine<&SimMachine>,
    sources: &[u64],
    (modes, interval): (u32, u32),
) -> usize {
    let client = Client::open(engine, 2, 10);
    let header = StartHeader { ring: if interval > 0 { 64 } else { 0 }, ..StartHeader::EMPTY };
    // To try an event of the Pentium, or any counter of a guest, lets it count, so that the model's ledger then has
    // more than the session. In user mode nothing occurs until the ledger is cleared.
    let hal = engine.sampler().hal();
    let counts_before = hal.interface().kind() == pmu::Kind::Pentium || hal.must_try_counters();
    let modes = if counts_before { modes::USER } else { modes };
    let mut chosen: Vec<EventRequest> = Vec::new();
    // The longest prefix that can be placed: each refusal names its cause, and changes nothing.
    for source in sources {
        chosen.push(EventRequest {
            event: Event::of(*source),
            modes,
            interval,
            flags: event_flags::COUNTED,
            ..EventRequest::EMPTY
        });
        let answer = client.start_with(engine, header, &chosen).header();
        if answer.status == 0 {
            client.stop(engine, answer.detail[0], None);
        } else {
            let causes = [ErrorCode::NoFreeCounter, ErrorCode::UnsupportedSource].map(|cause| cause as u32);
            assert!(causes.contains(&answer.cause), "{name}: {answer:?}");
            chosen.pop();
        }
    }
    assert!(!chosen.is_empty(), "{name}: no source can be started");
    machine.all().for_each(|cpu| cpu.model().clear_ledger());
    let answer = client.start_with(engine, header, &chosen).header();
    assert_eq!((answer.status, answer.cause), (0, 0), "{name}");
    if counts_before {
        machine.all().for_each(|cpu| cpu.model().clear_ledger());
    }
    for _ in 0..if interval > 0 { ROUNDS } else { 1 } {
        for processor in 0..PROCESSORS {
            machine.run(processor, Mode::User, &work);
            machine.run(processor, Mode::Kernel, &work);
            machine.deliver(engine, processor, &NOWHERE);
        }
    }
    let counts = client.read(engine, answer.detail[0]);
    assert_eq!(counts.len(), chosen.len() * PROCESSORS as usize, "{name}");
    let mut overflows = 0;
    let stopped: Vec<CountRecord> = client.stop(engine, answer.detail[0], None).records();
    for (count, stopped) in counts.iter().zip(&stopped) {
        // Between the two readings are those of other counters.
        assert!((1..=stopped.count).contains(&count.count), "{name}: {count:?}");
        overflows += stopped.samples + stopped.lost + stopped.throttled;
    }
    assert_eq!(overflows > 0, interval > 0, "{name}");
    // Each counter of the ledger belongs to one count.
    for processor in 0..PROCESSORS {
        let entries = machine.ledger(processor);
        let counted: BTreeMap<_, u64> = entries.into_iter().map(|entry| (entry.counter, entry.counted)).collect();
        let mut ledger: Vec<u64> = counted.into_values().collect();
        let of_processor = stopped.iter().filter(|count| count.processor == processor);
        let mut told: Vec<u64> = of_processor.map(|count| count.count).collect();
        ledger.sort_unstable();
        told.sort_unstable();
        assert_eq!(told, ledger, "{name}, processor {processor}");
    }
    machine.all().for_each(|cpu| assert_eq!(cpu.model().enabled_counters(), [], "{name}"));
    chosen.len()
}

/// Asks for what only processors with a Debug Store have, and stops it again where it is granted.
fn record(name: &str, engine: &mut Engine<&SimMachine>) {
    let client = Client::open(engine, 3, 10);
    let header = StartHeader { ring: 64, ..StartHeader::EMPTY };
    for (source, modes, interval) in
        [(BRANCHES, modes::USER, 64), (2, modes::USER | modes::PRECISE, 4_096), (2, modes::USER, 4_096)]
    {
        let event = EventRequest { event: Event::of(source), modes, interval, ..EventRequest::EMPTY };
        let answer = client.start_with(engine, header, &[event]).header();
        if answer.status == 0 {
            client.stop(engine, answer.detail[0], None);
        } else {
            assert_ne!(answer.cause, ErrorCode::RegisterFault as u32, "{name}: {answer:?}");
        }
    }
}

fn accesses(machine: &SimMachine) -> Vec<Accesses> {
    machine.all().map(|cpu| cpu.model().accesses()).collect()
}

#[test]
fn each_identity_lists_places_and_counts_or_refuses_without_a_write() {
    let (mut identities, mut with_counters, mut counted, mut sampled) = (0, 0, 0, 0);
    for identity in cpuid_dumps::all() {
        let CpuIdentity { name, .. } = identity;
        let machine = SimMachine::new(identity, PROCESSORS);
        let mut engine = Engine::new(&machine, [0; 4]).unwrap();
        let client = Client::open(&mut engine, 1, 10);
        let sources = supported(client, &mut engine);
        assert_eq!(sources, identity.expected.supported, "{name}");
        let hal = engine.sampler().hal();
        let has_counters = hal.interface().counters() > 0 && hal.boot.is_enumerated;
        let hal_interrupts = hal.interface().interrupts();
        identities += 1;
        if has_counters {
            with_counters += 1;
            counted += count(name, &machine, &mut engine, &sources, (modes::BOTH, 0));
            count(name, &machine, &mut engine, &sources, (modes::USER, 0));
            if hal_interrupts {
                sampled += count(name, &machine, &mut engine, &sources, (modes::BOTH, INTERVAL));
            }
            record(name, &mut engine);
            assert!(accesses(&machine).iter().all(|accesses| accesses.faulted == 0), "{name}");
        } else {
            refuses(name, &machine, &mut engine);
        }
        engine.shut_down();
        assert!(!machine.is_in_use(), "{name}: something is held");
    }
    println!("{identities} identities, {with_counters} with counters, {counted} counted sources, {sampled} sampled");
    assert!(identities >= 120 && with_counters >= 120, "{identities}, {with_counters}");
}

/// Checks that a processor without counters, or whose hypervisor does not enumerate them, refuses every event with a
/// cause, without a write and without a fault.
fn refuses(name: &str, machine: &SimMachine, engine: &mut Engine<&SimMachine>) {
    let client = Client::open(engine, 2, 10);
    for source in [2, 6, 0x19, BRANCHES] {
        for interval in [0, 4_096] {
            let header = StartHeader { ring: if interval > 0 { 64 } else { 0 }, ..StartHeader::EMPTY };
            let event = EventRequest { event: Event::of(source), modes: modes::USER, interval, ..EventRequest::EMPTY };
            let answer = client.start_with(engine, header, &[event]).header();
            assert!(answer.status != 0 && answer.cause != 0, "{name}: {source:#x}, {answer:?}");
        }
    }
    // Branches are refused by what the registers of the Debug Store report.
    let untouched = |all: &Accesses| *all == Accesses { rdmsr: all.rdmsr, ..Accesses::default() };
    assert!(accesses(machine).iter().all(untouched), "{name}: {:?}", accesses(machine));
    assert!(!machine.is_in_use(), "{name}: something is held");
}

/// Processors with architectural PEBS lack IA32_PEBS_ENABLE; the driver does not even try it.
#[test]
fn architectural_pebs_records_without_an_access_of_the_registers_that_it_lacks() {
    const PEBS_REGISTERS: [u32; 2] = [0x3F1, 0x3F2];
    let architectural = |identity: &&CpuIdentity| {
        let leaves = identity.cpuid();
        leaves.cpuid(7, 1)[0] >> 8 & 1 == 1 && leaves.cpuid(0x23, 0)[0] >> 4 & 0b11 != 0
    };
    let mut tried = 0;
    for identity in cpuid_dumps::all().iter().filter(architectural) {
        let machine = SimMachine::new(identity, PROCESSORS);
        let mut engine = Engine::new(&machine, [0; 4]).unwrap();
        let client = Client::open(&mut engine, 1, 10);
        for register in PEBS_REGISTERS {
            let read = machine.processor(0).model().uncounted(|model| model.rdmsr(register));
            assert!(read.is_err(), "{}: the model has {register:#x}", identity.name);
        }
        let header = StartHeader { ring: 64, ..StartHeader::EMPTY };
        let precise = EventRequest {
            event: Event::of(0x1A),
            modes: modes::USER | modes::PRECISE,
            interval: 4_096,
            ..EventRequest::EMPTY
        };
        let branches =
            EventRequest { event: Event::of(BRANCHES), modes: modes::USER, interval: 64, ..EventRequest::EMPTY };
        for event in [precise, branches] {
            let answer = client.start_with(&mut engine, header, &[event]).header();
            assert_eq!((answer.status, answer.cause), (0, 0), "{}: {event:?}", identity.name);
            client.stop(&mut engine, answer.detail[0], None);
        }
        for cpu in machine.all() {
            assert_eq!(cpu.model().accesses().faulted, 0, "{}", identity.name);
        }
        engine.shut_down();
        tried += 1;
    }
    assert_eq!(tried, 8);
}
