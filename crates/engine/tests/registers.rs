//! The registers of a processor as they are: all that a session touches, and nothing is written.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::collections::BTreeSet;

use engine::Engine;
use model::{FaultingAccess, Processor};
use pmu::first_access::Access;
use protocol::status::STATUS_NOT_SUPPORTED;
use protocol::{
    BRANCHES, Code, ErrorCode, Event, EventRequest, HalSourceRecord, ReadBy, RegisterRecord, RegistersRequest,
    SourceRecord, StartHeader, modes,
};
use simulation::{Answer, Call, Client, SimMachine};
use zerocopy::IntoBytes;

/// Offset of the LVT entry in the page of the local APIC, and how it is read there.
const LVT_ENTRY: (u32, u16) = (0x340, ReadBy::LocalApic as u16);

/// The entry as Windows sets it up.
const OF_WINDOWS: u64 = 0xFE;

fn ask(client: Client, engine: &mut Engine<&SimMachine>, processor: u32) -> Answer {
    let request = RegistersRequest { processor, reserved: 0 };
    client.ask(engine, Code::ReadRegisters, request.as_bytes(), 64 << 10)
}

fn registers(client: Client, engine: &mut Engine<&SimMachine>, processor: u32) -> Vec<RegisterRecord> {
    let answer = ask(client, engine, processor);
    assert_eq!((answer.header().status, answer.header().count), (0, answer.header().total));
    answer.records()
}

/// Returns the registers that were read, without their values.
fn read(records: &[RegisterRecord]) -> BTreeSet<(u32, u16)> {
    let read: BTreeSet<_> = records.iter().map(|record| (record.number, record.read_by)).collect();
    assert_eq!(read.len(), records.len(), "each once");
    read
}

/// Returns the guarded reads of a session with all kinds of events, on processor 1.
fn read_by_a_session(machine: &SimMachine) -> BTreeSet<(u32, u16)> {
    let mut engine = Engine::new(machine, [0; 4]).unwrap();
    let client = Client::open(&mut engine, 1, 10);
    let interval = if engine.sampler().hal().interface().pmu_version() >= 2 { 4_096 } else { 0 };
    let event = |source, modes| EventRequest { event: Event::of(source), modes, interval, ..EventRequest::EMPTY };
    for events in [
        [event(2, modes::USER)].as_slice(),
        &[event(BRANCHES, modes::USER)],
        &[event(0x1A, modes::USER | modes::PRECISE)],
    ] {
        let ring = if interval > 0 { 64 } else { 0 };
        let header = StartHeader { ring, ..StartHeader::EMPTY };
        client.start_with(&mut engine, header, events);
    }
    engine.shut_down();
    let read = |(access, number)| match access {
        Access::Read => Some((number, ReadBy::Rdmsr as u16)),
        Access::Counter => Some((number, ReadBy::Rdpmc as u16)),
        Access::Write | Access::ReadBack => None,
    };
    machine.processor(1).guarded_accesses().into_iter().filter_map(read).collect()
}

#[test]
fn every_register_that_a_session_reads_is_read_and_none_is_written() {
    let mut most = 0;
    for identity in cpuid_dumps::all() {
        let machine = SimMachine::new(identity, 2);
        machine.processor(1).model().set_lvt(0xFE);
        let mut engine = Engine::new(&machine, [0; 4]).unwrap();
        let client = Client::open(&mut engine, 1, 10);
        let before = [0, 1].map(|processor| machine.processor(processor).model().accesses());
        let records = registers(client, &mut engine, 1);
        let after = [0, 1].map(|processor| machine.processor(processor).model().accesses());
        let name = identity.name;
        assert_eq!((after[0], after[1].wrmsr), (before[0], before[1].wrmsr), "{name}");
        assert_eq!(machine.processor(1).local_accesses().1, 0, "{name}");
        assert!(!machine.is_in_use(), "{name}");
        for record in records.iter().filter(|record| record.read_by == ReadBy::Rdmsr as u16) {
            // A guest can lack registers that CPUID does not enumerate one by one.
            let value = machine.processor(1).model().rdmsr(record.number);
            let wanted = (value.is_err().into(), value.unwrap_or(0));
            assert_eq!((record.failed, record.value), wanted, "{name}: {:#x}", record.number);
        }
        let entry = records.iter().find(|record| (record.number, record.read_by) == LVT_ENTRY);
        assert_eq!(entry.map_or(OF_WINDOWS, |entry| entry.value), OF_WINDOWS, "{name}");

        let of_session = read_by_a_session(&SimMachine::new(identity, 2));
        let missing: Vec<_> = of_session.difference(&read(&records)).copied().collect();
        assert!(missing.is_empty(), "{name}: {missing:x?} of {of_session:x?}");
        most = most.max(records.len());
    }
    assert!(most > 50, "{most} registers at most");
}

#[test]
fn the_registers_of_single_events_are_read_as_well() {
    /// MSR_OFFCORE_RSP_0 and 1, MSR_PEBS_LD_LAT_THRESHOLD, MSR_PEBS_FRONTEND, IA32_PEBS_ENABLE, IA32_DS_AREA.
    const OF_SKYLAKE: [u32; 6] = [0x1A6, 0x1A7, 0x3F6, 0x3F7, 0x3F1, 0x600];
    /// MSR_PERF_METRICS and fixed counter 3 as well.
    const OF_ICE_LAKE: [u32; 8] = [0x1A6, 0x1A7, 0x3F6, 0x3F7, 0x3F1, 0x600, 0x329, 0x30C];
    /// The global registers of PerfMonV2.
    const OF_ZEN_4: [u32; 2] = [0xC000_0300, 0xC000_0301];
    for (name, wanted) in
        [("skylake-6600k", OF_SKYLAKE.as_slice()), ("ice-lake-1065g7", &OF_ICE_LAKE), ("zen4-7700x", &OF_ZEN_4)]
    {
        let machine = SimMachine::named(name, 1);
        let mut engine = Engine::new(&machine, [0; 4]).unwrap();
        let client = Client::open(&mut engine, 1, 10);
        let read = read(&registers(client, &mut engine, 0));
        let missing: Vec<_> = wanted.iter().filter(|number| !read.contains(&(**number, 0))).collect();
        assert!(missing.is_empty(), "{name}: {missing:x?}");
    }
}

#[test]
fn a_register_that_faults_is_reported_and_those_behind_it_are_read() {
    let whole = {
        let machine = SimMachine::named("skylake-6600k", 1);
        let mut engine = Engine::new(&machine, [0; 4]).unwrap();
        let client = Client::open(&mut engine, 1, 10);
        read(&registers(client, &mut engine, 0))
    };
    for (number, read_by) in whole.iter().copied().filter(|one| *one != LVT_ENTRY) {
        let machine = SimMachine::named("skylake-6600k", 1);
        let faulting =
            if read_by == ReadBy::Rdpmc as u16 { FaultingAccess::Rdpmc(number) } else { FaultingAccess::Rdmsr(number) };
        machine.processor(0).model().set_faulting([faulting]);
        let mut engine = Engine::new(&machine, [0; 4]).unwrap();
        let client = Client::open(&mut engine, 1, 10);
        for _ in 0..2 {
            let records = registers(client, &mut engine, 0);
            let failed: Vec<_> = records.iter().filter(|record| record.failed == 1).collect();
            let wanted = RegisterRecord { number, read_by, failed: 1, value: 0 };
            assert_eq!(failed, [&wanted], "{faulting:x?}");
            // Without these it is unknown where the LVT entry is, whether there is a Debug Store, or what it records.
            let decides = [0x1B, 0x1A0, 0x345, 0x8B].contains(&number);
            assert!(decides || read(&records) == whole, "{faulting:x?}");
            assert!(records.len() > 20, "{faulting:x?}: {}", records.len());
        }
        // Nothing is remembered: whether a session works is decided by its own accesses.
        machine.processor(0).model().set_faulting([]);
        client.started(&mut engine, 0, &[2]);
    }
}

#[test]
fn the_registers_of_a_session_are_read_while_it_counts() {
    let machine = SimMachine::named("haswell-4710mq", 2);
    let mut engine = Engine::new(&machine, [0; 4]).unwrap();
    let client = Client::open(&mut engine, 1, 10);
    let select = |records: Vec<RegisterRecord>| records.iter().find(|record| record.number == 0x186).unwrap().value;
    assert_eq!(select(registers(client, &mut engine, 1)), 0);
    let session = client.started(&mut engine, 0, &[0x0B]);
    let enabled = select(registers(client, &mut engine, 1));
    assert_ne!(enabled & 1 << 22, 0, "{enabled:#x}");
    machine.run(1, model::Mode::User, &|_| 50);
    assert_eq!(client.read(&mut engine, session)[1].count, 50);
}

#[test]
fn in_x2apic_mode_the_entry_is_a_register() {
    let dump = cpuid_dumps::find("haswell-4710mq").unwrap().cpuid();
    let processor = Processor::new(Box::new(move |leaf, subleaf| dump.cpuid(leaf, subleaf))).with_x2apic();
    let machine = SimMachine::of([processor]);
    // Without the register, nothing reaches the entry in another way.
    for faulting in [None, Some(FaultingAccess::Rdmsr(0x834))] {
        machine.processor(0).model().set_faulting(faulting);
        machine.processor(0).model().set_lvt(0xFE);
        let mut engine = Engine::new(&machine, [0; 4]).unwrap();
        let client = Client::open(&mut engine, 1, 10);
        let records = registers(client, &mut engine, 0);
        let entry = records.iter().find(|record| record.number == 0x834).unwrap();
        let wanted = if faulting.is_some() { (1, 0) } else { (0, OF_WINDOWS) };
        assert_eq!((entry.failed, entry.value), wanted);
        assert!(!read(&records).contains(&LVT_ENTRY));
        assert_eq!(machine.processor(0).local_accesses(), (0, 0));
    }
}

#[test]
fn a_local_apic_without_access_leaves_the_other_registers() {
    const STATUS: u32 = 0xC000_0001;
    let machine = SimMachine::named("zen4-7700x", 1);
    let mut engine = Engine::new(&machine, [0; 4]).unwrap();
    let client = Client::open(&mut engine, 1, 10);
    let whole = registers(client, &mut engine, 0);
    machine.refuse(Call::OpenLocalApic, STATUS);
    let records = registers(client, &mut engine, 0);
    let entry = records.last().unwrap();
    assert_eq!(((entry.number, entry.read_by), entry.failed, entry.value), (LVT_ENTRY, 1, STATUS.into()));
    assert_eq!(read(&records), read(&whole));
}

#[test]
fn a_request_that_cannot_be_served_is_refused() {
    let machine = SimMachine::named("haswell-4710mq", 2);
    let mut engine = Engine::new(&machine, [0; 4]).unwrap();
    let client = Client::open(&mut engine, 1, 10);
    let refused = ask(client, &mut engine, 2).header();
    assert_eq!((refused.cause, refused.processor), (ErrorCode::NoSuchProcessor as u32, 2));
    assert_eq!((refused.detail[0], refused.count), (2, 0));
    let reserved = RegistersRequest { processor: 0, reserved: 1 };
    let refused = client.ask(&mut engine, Code::ReadRegisters, reserved.as_bytes(), 4_096).header();
    assert_eq!((refused.cause, refused.detail[0]), (ErrorCode::BadFlags as u32, 1));
    machine.fall_asleep(&engine);
    assert_eq!(ask(client, &mut engine, 0).header().cause, ErrorCode::Asleep as u32);
    machine.wake(&engine);
    assert_eq!(ask(client, &mut engine, 0).header().cause, 0);
}

#[test]
fn the_hal_is_asked_about_every_source_of_the_driver() {
    let machine = SimMachine::named("haswell-4710mq", 1);
    let mut engine = Engine::new(&machine, [0; 4]).unwrap();
    let client = Client::open(&mut engine, 1, 10);
    let sources: Vec<SourceRecord> = client.tell(&mut engine, Code::ListSources);
    let answers: Vec<HalSourceRecord> = client.tell(&mut engine, Code::ListHalSources);
    let asked = |source: u32| {
        let status = if source == 0x13 { STATUS_NOT_SUPPORTED.number() } else { 0 };
        HalSourceRecord { source, status, supported: u32::from(source.is_multiple_of(2)), interval: source }
    };
    assert_eq!(answers, sources.iter().map(|record| asked(u32::try_from(record.source).unwrap())).collect::<Vec<_>>());
    machine.refuse(Call::AskHal, 0xC000_009A);
    let refused = client.ask(&mut engine, Code::ListHalSources, &[], 4_096).header();
    assert_eq!((refused.status, refused.cause, refused.count), (0xC000_009A, ErrorCode::NoMemory as u32, 0));
}
