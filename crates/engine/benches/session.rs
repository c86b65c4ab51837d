//! Starts a session of four events and one of 24, ends a round of the latter, and reads the group of one and of four
//! events, each once, for callgrind to count the instructions; `cargo xtask bench` does that. A start is the whole
//! request: its checks, the plan with its memory, the first look at the registers, and the registers.
//!
//! An access is a load or a store here, as in `handler`.

#![expect(clippy::expect_used, reason = "a bench that cannot be set up must not measure")]
#![forbid(unsafe_code)]

#[path = "plain/mod.rs"]
mod plain;

use std::hint::black_box;
use std::sync::atomic::Ordering;

use engine::{ClientId, Engine, Platform, Request, Sampler, Ticks};
use plain::{Plain, PlainCpu};
use pmu::source::RawEvent;
use pmu::{Cpu, CurrentCpu, ProcessorIndex};
use protocol::status::STATUS_SUCCESS;
use protocol::{
    Code, Event, EventRequest, GroupReply, GroupRequest, Hello, PROTOCOL_VERSION, ReplyHeader, StartHeader, flags,
    group_flags, modes,
};
use simulation::SimMachine;
use zerocopy::{FromBytes, IntoBytes};

/// The interfaces, each with a processor that has four general counters at least.
const INTERFACES: [(&str, &str); 3] =
    [("Amd64", "amd-legacy"), ("Amd64 V2", "zen4-7700x"), ("Emon v2+", "haswell-4710mq")];

const CLIENT: ClientId = ClientId(1);

/// When the first round is over, in units of 100 ns.
const LATER: u64 = 50_000;

/// RDMSR, WRMSR, RDPMC.
type Accesses = [u64; 3];

fn main() {
    for (interface, name) in INTERFACES {
        for events in [4, 24] {
            let (start, round) = accesses(name, events);
            let machine = Plain { cpu: PlainCpu::new(name, 0) };
            let mut engine = opened(&machine);
            let mut buffer = request(events);
            measured_start(black_box(&mut engine), black_box(&mut buffer));
            assert_is_started(&buffer);
            report(format_args!("{interface}|start session|{events}|0"), start);
            if events == 24 {
                machine.cpu.clock.store(LATER, Ordering::Relaxed);
                measured_round(
                    black_box(engine.sampler()),
                    CurrentCpu::new(black_box(&machine.cpu), ProcessorIndex::BOOT),
                );
                report(format_args!("{interface}|next round|{events}|0"), round);
            }
        }
        for (operation, flags) in [("group read", 0), ("group compared", group_flags::COMPARE)] {
            for events in [1, 4] {
                read_group(interface, operation, name, events, flags);
            }
        }
    }
}

/// Reads the counters of a session as the driver does without the engine's lock.
fn read_group(interface: &str, operation: &str, name: &str, events: u16, flags: u32) {
    let (model, machine) = (SimMachine::named(name, 1), Plain { cpu: PlainCpu::<false>::new(name, 0) });
    let (mut of_model, mut engine) = (opened(&model), opened(&machine));
    let accesses = accesses_of(&model, &mut of_model, events, |engine, session| {
        let current = model.current(0);
        let wanted = GroupRequest { session, flags, reserved: 0 };
        serve_group(engine.sampler(), current, &mut group_request(wanted));
    });
    let session = start(&mut engine, events);
    let mut buffer = group_request(GroupRequest { session, flags, reserved: 0 });
    let current = CurrentCpu::new(black_box(&machine.cpu), ProcessorIndex::BOOT);
    measured_group(black_box(engine.sampler()), current, black_box(&mut buffer));
    report(format_args!("{interface}|{operation}|{events}|0"), accesses);
}

/// Returns a request in a buffer with room for its reply.
fn group_request(wanted: GroupRequest) -> Vec<u8> {
    let mut buffer = wanted.as_bytes().to_vec();
    buffer.resize(size_of::<GroupReply>(), 0);
    buffer
}

/// Starts a session and returns its number.
fn start<M: Platform>(engine: &mut Engine<M>, events: u16) -> u64 {
    let mut buffer = request(events);
    let input = buffer.len();
    serve(engine, Code::Start, &mut buffer, input);
    assert_is_started(&buffer);
    let (ReplyHeader { detail: [session, _], .. }, _) = ReplyHeader::read_from_prefix(&buffer).expect("an answer");
    session
}

/// Returns the accesses of `work` beside a session that runs, as the model counts them.
fn accesses_of<'a>(
    machine: &'a SimMachine,
    engine: &mut Engine<&'a SimMachine>,
    events: u16,
    work: impl FnOnce(&Engine<&'a SimMachine>, u64),
) -> Accesses {
    let session = start(engine, events);
    let made = || machine.processor(0).model().accesses();
    let before = made();
    work(engine, session);
    let after = made();
    [after.rdmsr - before.rdmsr, after.wrmsr - before.wrmsr, after.rdpmc - before.rdpmc]
}

fn opened<M: Platform>(machine: M) -> Engine<M> {
    let mut engine = Engine::new(machine, [0; 4]).expect("memory");
    assert_eq!(engine.open(CLIENT, 1), STATUS_SUCCESS);
    let mut buffer = Hello { version: PROTOCOL_VERSION, reserved: 0 }.as_bytes().to_vec();
    let input = buffer.len();
    buffer.resize(256, 0);
    serve(&mut engine, Code::Hello, &mut buffer, input);
    engine
}

/// A request of so many events that every general counter can count.
fn request(events: u16) -> Vec<u8> {
    let header = StartHeader { flags: flags::MULTIPLEX, ..StartHeader::EMPTY };
    let event = |number| {
        let source = RawEvent::new().with_event(0x90 + number).with_umask(0x81).source().0;
        EventRequest { event: Event::of(source), modes: modes::BOTH, ..EventRequest::EMPTY }
    };
    let events: Vec<EventRequest> = (0..events).map(event).collect();
    [header.as_bytes(), events.as_bytes()].concat()
}

fn serve<M: Platform>(engine: &mut Engine<M>, code: Code, buffer: &mut [u8], input: usize) {
    let output = buffer.len();
    let request = Request { client: CLIENT, code: code as u32, buffer, input, output };
    assert_eq!(engine.serve(request).status, STATUS_SUCCESS);
}

fn assert_is_started(buffer: &[u8]) {
    let (header, _) = ReplyHeader::read_from_prefix(buffer).expect("an answer");
    assert_eq!((header.status, header.cause), (0, 0));
}

/// Returns the accesses of the start and of the end of a round, as the model counts them.
fn accesses(name: &str, events: u16) -> (Accesses, Accesses) {
    let machine = SimMachine::named(name, 1);
    let mut engine = opened(&machine);
    let current = machine.current(0);
    let so_far = || {
        let made = current.cpu().model().accesses();
        [made.rdmsr, made.wrmsr, made.rdpmc]
    };
    let since = |[rdmsr, wrmsr, rdpmc]: Accesses| {
        let [now_rdmsr, now_wrmsr, now_rdpmc] = so_far();
        [now_rdmsr - rdmsr, now_wrmsr - wrmsr, now_rdpmc - rdpmc]
    };
    let before = so_far();
    let mut buffer = request(events);
    let input = buffer.len();
    serve(&mut engine, Code::Start, &mut buffer, input);
    assert_is_started(&buffer);
    let start = since(before);
    let before = so_far();
    engine.sampler().rotate(current, || Ticks(LATER));
    (start, since(before))
}

#[inline(never)]
fn measured_start(engine: &mut Engine<&Plain>, buffer: &mut [u8]) {
    let input = buffer.len();
    serve(engine, Code::Start, buffer, input);
}

#[inline(never)]
fn measured_round(sampler: &Sampler, current: CurrentCpu<'_, impl Cpu>) {
    sampler.rotate(current, || Ticks(LATER));
}

#[inline(never)]
fn measured_group(sampler: &Sampler, current: CurrentCpu<'_, impl Cpu>, buffer: &mut [u8]) {
    serve_group(sampler, current, buffer);
}

fn serve_group(sampler: &Sampler, current: CurrentCpu<'_, impl Cpu>, buffer: &mut [u8]) {
    let (input, output) = (size_of::<GroupRequest>(), buffer.len());
    let mut request = Request { client: CLIENT, code: Code::ReadGroup as u32, buffer, input, output };
    let read = request
        .read_group(|wanted, client, reply| sampler.read_group(current, &|| Ticks(LATER), client, wanted, reply));
    assert!(read.is_some(), "the session can be read");
}

/// Callgrind writes what it has counted whenever it comes here.
#[inline(never)]
fn report(operation: std::fmt::Arguments<'_>, [rdmsr, wrmsr, rdpmc]: Accesses) {
    println!("{operation}|{rdmsr}|{wrmsr}|{rdpmc}");
}
