//! The library against the driver's engine, on the model of a processor.

#![cfg(test)]

use std::error::Error as _;
use std::io;
use std::sync::{Arc, Mutex};

use engine::Engine;
use halprof::protocol::{Code, HelloReply, PROTOCOL_VERSION, ProcessorSet, StartHeader, flags, modes};
use halprof::{Device, Driver, Error, ErrorKind};
use model::Mode;
use simulation::{Client, SimMachine};
use zerocopy::{FromZeros, IntoBytes};

/// A machine and the engine on it.
pub struct Machine {
    pub model: &'static SimMachine,
    engine: Mutex<Engine<&'static SimMachine>>,
}

impl Machine {
    fn new(processors: u32) -> Arc<Self> {
        Self::on(SimMachine::named("skylake-6600k", processors))
    }

    pub fn on(machine: SimMachine) -> Arc<Self> {
        let model: &'static SimMachine = Box::leak(Box::new(machine));
        Arc::new(Self { model, engine: Mutex::new(Engine::new(model, [1, 2, 3, 0]).unwrap()) })
    }

    pub fn open(self: &Arc<Self>, handle: usize) -> Driver {
        let client = Client::open(&mut self.engine.lock().unwrap(), handle, 1_000);
        Driver::over(Box::new(Handle(Arc::new(Open { machine: Arc::clone(self), client })))).unwrap()
    }
}

/// An open handle, which is closed when its last owner is dropped.
struct Open {
    machine: Arc<Machine>,
    client: Client,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.machine.engine.lock().unwrap().close(self.client.0);
    }
}

struct Handle(Arc<Open>);

impl Device for Handle {
    fn request(&self, code: Code, input: &[u8], output: &mut [u8]) -> io::Result<usize> {
        let answer = self.0.client.ask(&mut self.0.machine.engine.lock().unwrap(), code, input, output.len());
        output[..answer.bytes.len()].copy_from_slice(&answer.bytes);
        Ok(answer.bytes.len())
    }

    fn share(&self) -> Box<dyn Device + Send> {
        Box::new(Self(Arc::clone(&self.0)))
    }
}

/// A device with the same reply to every request.
struct Constant(Vec<u8>);

impl Device for Constant {
    fn request(&self, _: Code, _: &[u8], output: &mut [u8]) -> io::Result<usize> {
        let length = self.0.len().min(output.len());
        output[..length].copy_from_slice(&self.0[..length]);
        Ok(length)
    }

    fn share(&self) -> Box<dyn Device + Send> {
        Box::new(Self(self.0.clone()))
    }
}

const ALL: ProcessorSet = ProcessorSet::EMPTY;
const COUNT: StartHeader = StartHeader { processors: ALL, ..StartHeader::EMPTY };

#[test]
fn a_text_names_events_and_their_modes() {
    let driver = Machine::new(1).open(1);
    for (text, name, source, bits) in [
        ("instructions", "instructions:u", 0x02, modes::USER),
        ("instructions:k", "instructions:k", 0x02, modes::KERNEL),
        ("instructions:uk", "instructions", 0x02, modes::BOTH),
        ("instructions:D", "instructions:u", 0x02, modes::USER),
        ("ProfileTotalCycles", "TotalCycles:u", 0x13, modes::USER),
        ("INST_RETIRED.ANY", "INST_RETIRED.ANY:u", 0x02, modes::USER),
        ("0x13:k", "TotalCycles:k", 0x13, modes::KERNEL),
    ] {
        let events = driver.events(text, modes::USER, &ALL).unwrap();
        let [event] = &events[..] else { panic!("{text}: {events:?}") };
        assert_eq!(
            (event.name.as_str(), event.request.event.source, event.request.modes),
            (name, source, bits),
            "{text}"
        );
    }
    let raw = driver.events("cpu/event=0xd1,umask=0x20,counters=0x3/u", modes::BOTH, &ALL).unwrap();
    assert_eq!(raw[0].name, "cpu/event=0xd1,umask=0x20,counters=0x3/:u");
    assert_eq!((raw[0].request.modes, raw[0].request.event.counters), (modes::USER, 3));
    let vendor = driver.events("mem_load_retired.l3_miss", modes::USER, &ALL).unwrap();
    assert_eq!(vendor[0].name, "MEM_LOAD_RETIRED.L3_MISS:u");
}

#[test]
fn the_kind_of_an_error_tells_what_is_wrong_with_a_name() {
    let driver = Machine::new(1).open(1);
    for (text, kind, message) in [
        ("", ErrorKind::InvalidInput, "at character 1: the name of a source is empty"),
        ("A:x", ErrorKind::InvalidInput, "at character 2: "),
        ("instructions:p", ErrorKind::InvalidInput, "at character 13: "),
        ("instruction", ErrorKind::UnknownSource, "no source is called instruction; did you mean: instructions"),
        ("FpInstructions", ErrorKind::UnsupportedSource, "FpInstructions is not supported on this machine"),
    ] {
        let error = driver.events(text, modes::USER, &ALL).unwrap_err();
        assert_eq!(error.kind(), kind, "{text}: {error}");
        assert!(error.to_string().starts_with(message), "{text}: {error}");
    }
}

#[test]
fn a_session_counts_what_its_processor_executes() {
    let machine = Machine::new(2);
    let driver = machine.open(1);
    assert_eq!(driver.driver_version(), "1.2.3");
    let event = driver.events("instructions", modes::USER, &ALL).unwrap()[0].request;
    let session = driver.start(&COUNT, &[event]).unwrap().session;
    machine.model.run(1, Mode::User, &|_| 1_000);
    machine.model.run(1, Mode::Kernel, &|_| 500);
    let counts: Vec<(u32, u64)> =
        driver.read(session).unwrap().iter().map(|count| (count.processor, count.count)).collect();
    assert_eq!(counts, [(0, 0), (1, 1_000)]);
    machine.model.run(0, Mode::User, &|_| 7);
    let counts: Vec<u64> = driver.stop_all(session).unwrap().iter().map(|count| count.count).collect();
    assert_eq!(counts, [7, 1_000]);
    let error = driver.read(session).unwrap_err();
    assert_eq!((error.kind(), error.refusal().is_some()), (ErrorKind::NotRunning, true));
}

#[test]
fn a_refusal_names_the_sessions_that_hold_the_counters_and_a_closed_handle_has_none() {
    let machine = Machine::new(1);
    let (first, second) = (machine.open(1), machine.open(2));
    let raw = |number: u8| {
        let text = format!("cpu/event=0xd1,umask={number}/");
        second.events(&text, modes::USER, &ALL).unwrap()[0].request
    };
    let mut held = Vec::new();
    let error = (1..=64).find_map(|number| match first.start(&COUNT, &[raw(number)]) {
        Ok(started) => {
            held.push(started.session);
            None
        }
        Err(error) => Some(error),
    });
    let error: Error = error.unwrap();
    assert_eq!(error.kind(), ErrorKind::NoFreeCounter, "{error}");
    assert_eq!(error.refusal().unwrap().sessions.len(), held.len());
    assert_eq!(second.sessions().unwrap().len(), held.len());
    assert_eq!(error.remedy().unwrap(), "wait for process 1000 to end, or end it");
    drop(first);
    assert_eq!(second.sessions().unwrap(), []);
    let detached = StartHeader { flags: flags::DETACHED, ..COUNT };
    assert!(second.start(&detached, &[raw(1)]).is_ok());
}

#[test]
fn a_driver_of_another_version_or_with_an_invalid_reply_is_not_used() {
    let hello = HelloReply { protocol: PROTOCOL_VERSION + 1, ..HelloReply::new_zeroed() };
    let error = Driver::over(Box::new(Constant(hello.as_bytes().to_vec()))).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::VersionMismatch);
    let theirs =
        format!("has protocol version {PROTOCOL_VERSION}, and the driver has version {}", PROTOCOL_VERSION + 1);
    assert!(error.to_string().ends_with(&theirs), "{error}");

    let error = Driver::over(Box::new(Constant(vec![0; 7]))).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Other);
    assert_eq!(error.to_string(), "the driver's answer to the request Hello is invalid");
    assert_eq!(error.source().unwrap().to_string(), "it has 7 bytes and needs 48");
}

#[cfg(not(windows))]
#[test]
fn other_systems_have_no_driver() {
    let error = Driver::open().err().unwrap();
    assert_eq!((error.kind(), error.remedy()), (ErrorKind::NotWindows, None));
}
