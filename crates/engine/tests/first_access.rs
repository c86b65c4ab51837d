//! Every register is accessed for the first time under a guard. A fault there is a refusal that names the register,
//! after which nothing is held and nothing was changed.
//!
//! The machine of these tests panics at every unguarded access that no guarded one preceded, so that each test of the
//! engine shows that no register is forgotten.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::collections::BTreeSet;
use std::ops::Range;

use cpuid_dumps::CpuIdentity;
use engine::{Engine, Interrupted};
use model::{FaultingAccess, Mode, Processor};
use pmu::first_access::Access;
use pmu::{Kind, ProfileInterface};
use protocol::{
    AreaRequest, BRANCHES, Code, ErrorCode, Event, EventRequest, ProcessorSet, RegisterFault, SessionEvent,
    StartHeader, area, modes,
};
use simulation::{Answer, Client, SimMachine};
use zerocopy::IntoBytes;

/// The global registers of PerfMonV2, without which the driver counts as well.
const GLOBAL_OF_AMD: [u32; 3] = [0xC000_0300, 0xC000_0301, 0xC000_0302];

/// IA32_DEBUGCTL, without which the driver counts as well, but does not record branches.
const DEBUGCTL: u32 = 0x1D9;

/// Registers and RDPMC indexes of general counters 6 and 7, and of fixed counter 3 with its metrics.
const HIDDEN_GENERAL: [u32; 6] = [0x18C, 0x18D, 0xC7, 0xC8, 0x4C7, 0x4C8];
const HIDDEN_UNIT: [u32; 2] = [0x30C, 0x329];
const INDEXES: [[u32; 2]; 2] = [[6, 7], [1 << 30 | 3, 1 << 29]];

/// Configuration registers of the counters: which others reload them, and with what, which is what a record needs too.
const CONFIGS: Range<u32> = 0x1900..0x1A00;
const CONFIG_C: u32 = 3;
/// That of fixed counter 1, which records nothing.
const CONFIG_C_OF_CYCLES: u32 = 0x1987;

const INTERVAL: u32 = 4_096;

const fn event(source: u64, modes: u32, interval: u32) -> EventRequest {
    EventRequest { event: Event::of(source), modes, interval, ..EventRequest::EMPTY }
}

/// Returns the identities that have counters.
fn with_counters() -> impl Iterator<Item = &'static CpuIdentity> {
    cpuid_dumps::all().iter().filter(|identity| {
        let machine = SimMachine::new(identity, 1);
        let engine = Engine::new(&machine, [0; 4]).unwrap();
        let hal = engine.sampler().hal();
        hal.interface().counters() > 0 && hal.boot.is_enumerated
    })
}

/// Returns whether a register only lets counters reload each other, which no session needs.
fn reloads_alone(identity: &CpuIdentity, records: bool, number: u32) -> bool {
    let is_architectural = identity.cpuid().cpuid(0x23, 0)[0] >> 4 & 1 == 1;
    let is_of_records = number % 4 == CONFIG_C && number != CONFIG_C_OF_CYCLES && records && is_architectural;
    CONFIGS.contains(&number) && !is_of_records
}

/// Returns whether an access is that of a counter which CPUID hides, without which the driver counts as well.
fn is_hidden(identity: &CpuIdentity, (access, number): (Access, u32)) -> bool {
    let [_, general, ..] = identity.cpuid().cpuid(0xA, 0)[0].to_le_bytes();
    let hides_general = identity.hides_counters() && general < 8;
    let reports_unit = identity.perf_capabilities() >> 15 & 1 == 1 && identity.cpuid().cpuid(0xA, 0)[3] & 0x1F > 3;
    let hides_unit = identity.hides_counters() && !reports_unit;
    match access {
        Access::Counter => hides_general && INDEXES[0].contains(&number) || hides_unit && INDEXES[1].contains(&number),
        _ => hides_general && HIDDEN_GENERAL.contains(&number) || hides_unit && HIDDEN_UNIT.contains(&number),
    }
}

/// Returns a session that touches every register that a session can touch on this identity: all counters, an interrupt,
/// branches and precise events.
fn events(identity: &'static CpuIdentity) -> Vec<EventRequest> {
    let machine = SimMachine::new(identity, 1);
    let engine = Engine::new(&machine, [0; 4]).unwrap();
    let hal = engine.sampler().hal();
    let interrupts = hal.interface().interrupts();
    let interval = if interrupts { INTERVAL } else { 0 };
    let first = *identity.expected.supported.first().unwrap();
    let mut events = vec![event(first, modes::USER, interval)];
    if identity.has_debug_store() && hal.interface().kind() == Kind::Emon && hal.interface().pmu_version() >= 2 {
        events.push(event(BRANCHES, modes::USER, 64));
        let without_engine = SimMachine::new(identity, 1);
        if pmu::debug_store::examine(without_engine.processor(0)).is_ok_and(|found| found.precise.is_ok()) {
            events.push(event(0x1A, modes::USER | modes::PRECISE, INTERVAL));
        }
    }
    events
}

fn start(client: Client, engine: &mut Engine<&SimMachine>, events: &[EventRequest]) -> Answer {
    let samples = events.iter().any(|event| event.interval > 0);
    let header = StartHeader { ring: if samples { 64 } else { 0 }, ..StartHeader::EMPTY };
    client.start_with(engine, header, events)
}

const NOWHERE: Interrupted = Interrupted { ip: 1, process: 2, thread: 3, mode: protocol::Mode::User };

/// Lives a whole life on the machine and returns the guarded accesses that were made on processor 1, with the events
/// that were really started.
fn whole_life(machine: &SimMachine, events: &[EventRequest]) -> (BTreeSet<(Access, u32)>, Vec<EventRequest>) {
    let mut engine = Engine::new(machine, [0; 4]).unwrap();
    let client = Client::open(&mut engine, 1, 10);
    let mut events = events.to_vec();
    let mut answer = start(client, &mut engine, &events).header();
    // The processor has a Debug Store, but records no such event, or no branches.
    let lacking = [ErrorCode::NotPrecise, ErrorCode::NoDebugStore, ErrorCode::UnsupportedSource];
    while events.len() > 1 && lacking.map(|cause| cause as u32).contains(&answer.cause) {
        events.pop();
        answer = start(client, &mut engine, &events).header();
    }
    assert_eq!((answer.status, answer.cause), (0, 0), "{answer:?}");
    for _ in 0..3 {
        machine.run(1, Mode::User, &|_| u64::from(INTERVAL));
        machine.deliver(&engine, 1, &NOWHERE);
        machine.tick_sampling(&engine, 1);
    }
    machine.fall_asleep(&engine);
    machine.wake(&engine);
    machine.run(1, Mode::User, &|_| u64::from(INTERVAL));
    machine.deliver(&engine, 1, &NOWHERE);
    client.read(&mut engine, answer.detail[0]);
    client.stop(&mut engine, answer.detail[0], None);
    engine.shut_down();
    assert!(!machine.is_in_use());
    (machine.processor(1).guarded_accesses(), events)
}

fn faulting((access, number): (Access, u32)) -> FaultingAccess {
    match access {
        Access::Read => FaultingAccess::Rdmsr(number),
        Access::Write | Access::ReadBack => FaultingAccess::Wrmsr(number),
        Access::Counter => FaultingAccess::Rdpmc(number),
    }
}

/// Checks that the start is refused by this fault, and that nothing is left of it.
fn check_refused(machine: &SimMachine, events: &[EventRequest], fault: (Access, u32), what: &str) {
    let mut engine = Engine::new(machine, [0; 4]).unwrap();
    let interface = engine.sampler().hal().interface().kind() as u8;
    let hypervisor = u8::try_from(engine.sampler().hal().boot.hypervisor as u32).unwrap();
    let client = Client::open(&mut engine, 1, 10);
    let mut writes = None;
    for round in 0..2 {
        let refused = start(client, &mut engine, events).header();
        assert_eq!((refused.cause, refused.processor), (ErrorCode::RegisterFault as u32, 1), "{what}, {round}");
        let (access, number) = fault;
        let wanted = RegisterFault { number, access: access as u8, interface, hypervisor };
        assert_eq!(RegisterFault::from_detail(refused.detail[0]), wanted, "{what}, {round}");
        assert!(!machine.is_in_use(), "{what}, {round}: something is held");
        assert_eq!(client.tell::<_, SessionEvent>(&mut engine, Code::ListSessions), [], "{what}, {round}");
        assert!(machine.all().all(|cpu| cpu.model().enabled_counters().is_empty()), "{what}, {round}");
        // What was changed before the fault is put back: up to four control registers. Then the fault is remembered. A
        // second start only reads again what tells the features of the Debug Store. Counters do without IA32_DEBUGCTL,
        // and without reloading each other.
        let again = if events.len() > 1 && round > 0 { 3 } else { 0 };
        let after = machine.processor(1).accesses_since_fault().unwrap();
        let is_enough = fault.1 == DEBUGCTL || CONFIGS.contains(&fault.1) || after <= 4 + again;
        assert!(is_enough, "{what}, {round}: {after} accesses after the fault");
        let written = machine.processor(1).model().accesses().wrmsr;
        assert_eq!(*writes.get_or_insert(written), written, "{what}, {round}");
    }
}

#[test]
fn a_fault_at_each_first_access_in_turn_refuses_the_start_and_leaves_nothing() {
    let (mut identities, mut faults) = (0, 0);
    for identity in with_counters() {
        let (guarded, events) = whole_life(&SimMachine::new(identity, 2), &events(identity));
        assert!(guarded.len() >= 3, "{}", identity.name);
        for fault in guarded {
            let machine = SimMachine::new(identity, 2);
            machine.processor(1).model().set_faulting([faulting(fault)]);
            let what = format!("{}: {} of {:#x}", identity.name, fault.0, fault.1);
            let is_left_out = fault.1 == DEBUGCTL && events.len() == 1 || is_hidden(identity, fault);
            let is_left_out = is_left_out || reloads_alone(identity, events.len() > 1, fault.1);
            if GLOBAL_OF_AMD.contains(&fault.1) || is_left_out {
                whole_life(&machine, &events);
            } else {
                check_refused(&machine, &events, fault, &what);
            }
            faults += 1;
        }
        identities += 1;
    }
    println!("{identities} identities, {faults} faults");
    assert!(identities > 30 && faults > 1_000, "{identities} identities, {faults} faults");
}

#[test]
fn without_the_global_registers_of_amd_the_same_counters_count_and_sample() {
    for name in ["zen4-7700x", "amd-kvm-perfmon-v2"] {
        // Every combination of the three registers that a hypervisor may lack.
        for absent in 0..8_u32 {
            let lacks = |index: usize| absent >> index & 1 == 1;
            let machine = SimMachine::named(name, 2);
            let faulting =
                (0..3).filter(|index| lacks(*index)).flat_map(|index| FaultingAccess::without(GLOBAL_OF_AMD[index]));
            machine.processor(1).model().set_faulting(faulting);
            let mut engine = Engine::new(&machine, [0; 4]).unwrap();
            let client = Client::open(&mut engine, 1, 10);
            let session =
                start(client, &mut engine, &[event(2, modes::USER, INTERVAL), event(6, modes::USER, 0)]).header();
            assert_eq!(session.status, 0, "{name}, {absent:03b}");
            for processor in 0..2 {
                for _ in 0..3 {
                    machine.run(processor, Mode::User, &|_| u64::from(INTERVAL));
                    machine.deliver(&engine, processor, &NOWHERE);
                }
            }
            let counts = client.stop(&mut engine, session.detail[0], None).records::<protocol::CountRecord>();
            let counted: Vec<_> = counts.iter().map(|one| (one.processor, one.count, one.samples)).collect();
            let each = 3 * u64::from(INTERVAL);
            assert_eq!(counted, [(0, each, 3), (0, each, 0), (1, each, 3), (1, each, 0)], "{name}, {absent:03b}");
            // Processor 0 has the registers, and uses them.
            let uses = |processor: u32| {
                machine.processor(processor).guarded_accesses().contains(&(Access::Write, GLOBAL_OF_AMD[2]))
            };
            assert!(uses(0), "{name}, {absent:03b}");
            assert_eq!(uses(1), absent == 0, "{name}, {absent:03b}");
        }
    }
}

#[test]
fn a_fault_in_x2apic_mode_or_of_the_save_area_is_refused_as_well() {
    // IA32_APIC_BASE; in x2APIC mode the LVT entry.
    for number in [0x1B, 0x834] {
        for access in
            [Access::Read, Access::Write].into_iter().filter(|access| number != 0x1B || *access == Access::Read)
        {
            let dump = cpuid_dumps::find("haswell-4710mq").unwrap().cpuid();
            let of = || {
                let dump = dump.clone();
                Processor::new(Box::new(move |leaf, subleaf| dump.cpuid(leaf, subleaf))).with_x2apic()
            };
            let machine = SimMachine::of([of(), of()]);
            machine.processor(1).model().set_faulting([faulting((access, number))]);
            check_refused(&machine, &[event(2, modes::USER, INTERVAL)], (access, number), "x2APIC");
        }
    }
    // A request for control areas, which reads IA32_MISC_ENABLE, IA32_PERF_CAPABILITIES and IA32_DS_AREA.
    for number in [0x1A0, 0x345, 0x600] {
        let machine = SimMachine::named("haswell-4710mq", 2);
        machine.processor(1).model().set_faulting(FaultingAccess::without(number));
        let mut engine = Engine::new(&machine, [0; 4]).unwrap();
        let client = Client::open(&mut engine, 1, 10);
        let request =
            AreaRequest { operation: area::ALLOCATE, current: 0, reserved: 0, processors: ProcessorSet::EMPTY };
        let refused = client.ask(&mut engine, Code::ControlArea, request.as_bytes(), 4096).header();
        assert_eq!((refused.cause, refused.processor), (ErrorCode::RegisterFault as u32, 1), "{number:#x}");
        assert_eq!(RegisterFault::from_detail(refused.detail[0]).number, number);
        assert!(!machine.is_in_use(), "{number:#x}");
    }
}

#[test]
fn a_second_start_tries_only_what_its_event_needs() {
    for identity in with_counters() {
        let machine = SimMachine::new(identity, 1);
        let mut engine = Engine::new(&machine, [0; 4]).unwrap();
        let client = Client::open(&mut engine, 1, 10);
        let accesses = || {
            let model::Accesses { rdmsr, wrmsr, rdpmc, .. } = machine.processor(0).model().accesses();
            [rdmsr, wrmsr, rdpmc]
        };
        let mut spent = [[0; 3]; 3];
        for spent in &mut spent {
            let before = accesses();
            let first = *identity.expected.supported.first().unwrap();
            let session = start(client, &mut engine, &[event(first, modes::USER, 0)]).header();
            assert_eq!(session.status, 0, "{}", identity.name);
            client.stop(&mut engine, session.detail[0], None);
            let after = accesses();
            *spent = [0, 1, 2].map(|index| after[index] - before[index]);
        }
        let guarded = machine.processor(0).guarded_accesses();
        let of = |access: Access| guarded.iter().filter(|(kind, _)| *kind == access).count() as u64;
        // Both phases read everything, the second one after each write as well, and only it writes.
        assert_eq!(spent[1], spent[2], "{}", identity.name);
        for (index, least) in [(0, 2 * of(Access::Read)), (1, of(Access::Write)), (2, 2 * of(Access::Counter))] {
            assert!(spent[0][index] >= spent[1][index] + least, "{}: {spent:?}", identity.name);
        }
    }
}

#[test]
fn an_added_processor_that_lacks_a_register_is_left_out() {
    for name in ["amd-legacy", "haswell-4710mq"] {
        let select = if name == "amd-legacy" { 0xC001_0000 } else { 0x186 };
        let machine = SimMachine::named(name, 2).with_active(1);
        machine.processor(1).model().set_faulting(FaultingAccess::without(select));
        let mut engine = Engine::new(&machine, [0; 4]).unwrap();
        let client = Client::open(&mut engine, 1, 10);
        let session = start(client, &mut engine, &[event(2, modes::USER, 0)]).header();
        machine.add_processor(&mut engine);
        assert_eq!(client.read(&mut engine, session.detail[0]).len(), 1, "{name}: it goes on where it was");
        assert_eq!(machine.processor(1).accesses_since_fault(), Some(0), "{name}");
        client.stop(&mut engine, session.detail[0], None);
        assert!(!machine.is_in_use(), "{name}");
    }
}

#[test]
fn nothing_is_accessed_for_the_first_time_while_the_machine_sleeps() {
    let machine = SimMachine::named("haswell-4710mq", 1);
    let mut engine = Engine::new(&machine, [0; 4]).unwrap();
    let client = Client::open(&mut engine, 1, 10);
    machine.fall_asleep(&engine);
    let refused = start(client, &mut engine, &[event(2, modes::USER, 0)]).header();
    assert_eq!(refused.cause, ErrorCode::Asleep as u32);
    assert!(!machine.is_in_use());
    machine.wake(&engine);
    assert_eq!(start(client, &mut engine, &[event(2, modes::USER, 0)]).header().status, 0);
}
