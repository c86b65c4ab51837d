//! Helpers for sessions beside other programs.

use engine::{Engine, Interrupted};
use model::Mode;
use protocol::{CountRecord, Event, EventRequest, StartHeader, event_flags};
use simulation::{Client, SimMachine};

/// Identities for each layout of registers.
pub const IDENTITIES: [&str; 17] = [
    "amd-legacy",
    "zen3-5950x",
    "zen4-7700x",
    "zen5-9800x3d",
    "intel-v1",
    "intel-v2",
    "core2-6420",
    "haswell-4710mq",
    "skylake-6600k",
    "alder-lake-12900k",
    "sapphire-rapids-2475x",
    "intel-hybrid-efficient",
    "lunar-lake-288v",
    "netburst-cedarmill",
    "netburst-irwindale",
    "p6-coppermine",
    "pentium-p55c",
];

/// Sources that all identities have.
pub const SOURCES: [u64; 3] = [2, 6, 11];

pub fn engine(machine: &SimMachine) -> Engine<&SimMachine> {
    Engine::new(machine, [0; 4]).unwrap()
}

pub const fn event(source: u64, interval: u32) -> EventRequest {
    EventRequest {
        event: Event::of(source),
        modes: simulation::quiet_modes(source),
        interval,
        flags: event_flags::COUNTED,
        ..EventRequest::EMPTY
    }
}

/// Starts events on every processor and returns the session.
pub fn started(client: Client, engine: &mut Engine<&SimMachine>, events: &[EventRequest]) -> u64 {
    let ring = if events.iter().any(|event| event.interval > 0) { 1 << 12 } else { 0 };
    let header = StartHeader { ring, ..StartHeader::EMPTY };
    let answer = client.start_with(engine, header, events).header();
    assert_eq!((answer.status, answer.cause), (0, 0));
    let [session, _] = answer.detail;
    session
}

pub fn stopped(client: Client, engine: &mut Engine<&SimMachine>, session: u64) -> Vec<CountRecord> {
    client.stop(engine, session, None).records()
}

/// Makes `count` of every event occur on the processor and delivers the interrupts.
pub fn run(machine: &SimMachine, engine: &Engine<&SimMachine>, processor: u32, mode: Mode, count: u64) {
    machine.run(processor, mode, &|_| count);
    deliver(machine, engine, processor);
}

pub fn deliver(machine: &SimMachine, engine: &Engine<&SimMachine>, processor: u32) {
    let interrupted = Interrupted { ip: 0x1000, process: 100, thread: 200, mode: protocol::Mode::User };
    machine.deliver(engine, processor, &interrupted);
}

pub fn read(machine: &SimMachine, processor: u32, msr: u32) -> u64 {
    machine.processor(processor).model().uncounted(|model| model.rdmsr(msr)).unwrap()
}

/// Writes a register as another program does.
pub fn write(machine: &SimMachine, processor: u32, msr: u32, value: u64) {
    assert!(machine.processor(processor).write_foreign(msr, value), "{msr:#x} = {value:#x}");
}

/// Returns the registers that select and start counters, and those that stop them.
pub fn control_registers(name: &str) -> Vec<u32> {
    match name {
        "amd-legacy" => (0xC001_0000..0xC001_0004).collect(),
        "zen3-5950x" => (0xC001_0200..0xC001_020C).step_by(2).collect(),
        _ if name.starts_with("zen") => {
            (0xC001_0200..0xC001_020C).step_by(2).chain([0xC000_0301, 0xC000_0303, 0x1D9]).collect()
        }
        _ if name.starts_with("netburst") => {
            (0x360..0x372).chain([0x3A0, 0x3A1, 0x3A2, 0x3A3, 0x3B8, 0x3B9, 0x3CC, 0x3CD]).collect()
        }
        "p6-coppermine" => vec![0x186, 0x187],
        "pentium-p55c" => vec![0x11],
        "intel-v1" => (0x186..0x18A).collect(),
        // The status can be written from version 4 on, where the register exists.
        _ => (0x186..0x18E).chain([0x38D, 0x38F, 0x391, 0x1D9]).collect(),
    }
}
