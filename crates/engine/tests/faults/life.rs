//! A machine and its engine, from the engine's creation to its end.

use std::collections::BTreeMap;

use engine::{ClientId, Completion, Engine, Interrupted, Request, Samples};
use model::Mode;
use protocol::{Code, CountRecord, ErrorCode, Hello, Method, PROTOCOL_VERSION, ReplyHeader, TIMER};
use request_generator::{SCENE_INTERVAL, Scene, SceneClient};
use simulation::{SimMachine, decide_faults};
use zerocopy::{FromBytes, IntoBytes};

use super::injection::Injection;

/// Processors at first, and with those that can be added.
const PROCESSORS: (u32, u32) = (2, 3);

/// The code that an interrupt or a timer finds.
const INTERRUPTED: Interrupted = Interrupted { ip: 1, process: 2, thread: 3, mode: protocol::Mode::User };

/// STATUS_MEMORY_NOT_ALLOCATED (ntstatus.h).
const STATUS_MEMORY_NOT_ALLOCATED: u32 = 0xC000_00A0;

/// A count by event and processor: events, and overflows as samples, lost or throttled.
type Counts = BTreeMap<(u32, u32), (u64, u64)>;

/// Status and error code of a reply, and its counts.
type Outcome = ((u32, u32), Counts);

/// The replies of a life without a failure.
#[derive(Debug, Default)]
pub struct Expected(Vec<(Code, Outcome)>);

impl Expected {
    /// Notes the requests, and whether one of each was accepted.
    pub fn codes(&self, codes: &mut BTreeMap<u32, bool>) {
        for (code, ((status, cause), _)) in &self.0 {
            *codes.entry(*code as u32).or_default() |= (*status, *cause) == (0, 0);
        }
    }
}

/// A life, with one client.
pub struct Life<'a> {
    pub machine: &'a SimMachine,
    pub engine: Engine<&'a SimMachine>,
    expected: &'a mut Expected,
    is_first: bool,
    next: usize,
    repeated: bool,
    /// Whether a register faulted, which the engine remembers: what needs it is refused from then on.
    has_faulted: bool,
    handle: usize,
    /// What is going on, for messages.
    name: String,
}

/// Registers that the driver writes, of Intel and of AMD.
fn registers(machine: &SimMachine) -> Vec<(u32, u64)> {
    let all = (0x186..0x18E).chain([0x38D, 0x38F, 0x1A6, 0x1A7, 0x3F1, 0x3F6, 0x3F7, 0x600, 0x1D9, 0x11]);
    let all = all.chain(0x360..0x372).chain(0x3A0..0x3F0).chain((0xC001_0200..0xC001_020C).step_by(2));
    let all: Vec<u32> = all.chain(0xC001_0000..0xC001_0004).chain([0xC000_0301]).collect();
    let read = |number: u32| {
        machine.processor(number).model().uncounted(|model| {
            let values = all.iter().filter_map(|msr| Some((*msr, model.rdmsr(*msr).ok()?)));
            values.collect::<Vec<_>>()
        })
    };
    (0..PROCESSORS.1).flat_map(read).collect()
}

impl Life<'_> {
    /// Plays a scene. With `fails`, the first call with a new stack fails. Returns its function.
    pub fn run(identity: &str, name: &str, scene: Scene, expected: &mut Expected, fails: bool) -> Option<&'static str> {
        let machine = SimMachine::named(identity, PROCESSORS.1).with_active(PROCESSORS.0);
        let found = registers(&machine);
        decide_faults(Some(Injection::decide));
        Injection::arm(fails);
        let made = Injection::engine(|| Engine::new(&machine, [1, 2, 3, 0]));
        // An engine that was made without some memory works, with fewer abilities.
        let made = made.ok().filter(|_| Injection::failed().is_none());
        let engine = made.unwrap_or_else(|| {
            assert!(Injection::failed().is_some(), "{identity}: no engine");
            Engine::new(&machine, [1, 2, 3, 0]).unwrap()
        });
        // What the bench notes of guarded accesses takes memory, which is not the engine's.
        machine.all().for_each(|cpu| cpu.require_guards(false));
        let is_first = expected.0.is_empty();
        let name = format!("{identity}, {name}");
        let (next, repeated, has_faulted, handle) = (0, false, false, 0);
        let mut life =
            Life { machine: &machine, engine, expected, is_first, next, repeated, has_faulted, handle, name };
        life.open();
        scene(&mut life);
        life.close();
        life.accumulate();
        // What could not be given back is given back later.
        life.engine.accumulate_counts();
        let (function, name) = (Injection::failed(), life.name.clone());
        assert!(!machine.is_in_use(), "{name}: a resource is held after {function:?} failed");
        assert!(
            machine.all().all(|cpu| cpu.model().enabled_counters().is_empty()),
            "{name}: a counter runs after {function:?} failed"
        );
        life.engine.shut_down();
        let now = registers(&machine);
        let differs: Vec<_> = found.iter().zip(&now).filter(|(found, now)| found != now).collect();
        assert!(differs.is_empty(), "{name}: registers after {function:?} failed: {differs:x?}");
        Injection::arm(false);
        decide_faults(None);
        function
    }

    /// Runs code of the engine that is no request.
    pub fn tell<T>(&mut self, work: impl FnOnce(&mut Engine<&SimMachine>) -> T) -> T {
        let engine = &mut self.engine;
        Injection::engine(|| work(engine))
    }

    /// Updates the counts of all sessions, as the driver does every ten seconds.
    #[expect(clippy::redundant_closure_for_method_calls, reason = "the method itself fits one lifetime alone")]
    pub fn accumulate(&mut self) {
        self.tell(|engine| engine.accumulate_counts());
    }

    /// Opens the device, again if that fails once.
    pub fn open(&mut self) {
        for _ in 0..2 {
            self.handle += 1;
            let handle = self.handle;
            let opened = self.tell(|engine| engine.open(ClientId(handle), 10));
            if opened.number() == 0 {
                let hello = Hello { version: PROTOCOL_VERSION, reserved: 0 };
                assert_eq!(self.ask(Code::Hello, hello.as_bytes()).0.status, 0, "{}: Hello", self.name);
                return;
            }
            assert!(Injection::failed().is_some(), "{}: the device does not open", self.name);
        }
        panic!("{}: the device does not open", self.name);
    }

    pub fn close(&mut self) {
        let handle = self.handle;
        self.tell(|engine| engine.close(ClientId(handle)));
    }

    /// Sends a request. If its outcome is not the expected one because a call failed, sends it again.
    pub fn ask(&mut self, code: Code, input: &[u8]) -> (ReplyHeader, Vec<u8>) {
        let (header, bytes) = self.send(code, input);
        let outcome = ((header.status, header.cause), counts(code, &bytes));
        if self.is_first {
            self.expected.0.push((code, outcome));
            return (header, bytes);
        }
        let (name, failed) = (self.name.clone(), Injection::failed());
        let (expected_code, expected) = self.expected.0[self.next].clone();
        assert_eq!(code, expected_code, "{name}");
        self.next += 1;
        if self.has_faulted {
            assert!(header.status == 0 || header.cause != 0, "{name}: {code:?}: a failure without a cause");
            return (header, bytes);
        }
        if outcome.0 == expected.0 {
            // A processor that was added may have stayed without the session.
            let wrong = outcome.1.iter().find(|(key, count)| expected.1.get(key) != Some(count));
            assert_eq!(wrong, None, "{name}: {code:?} after {failed:?} failed, {outcome:?} instead of {expected:?}");
            let is_less = outcome.1.len() < expected.1.len();
            assert!(!is_less || failed.is_some() && self.machine.active() > PROCESSORS.0, "{name}: {outcome:?}");
            return (header, bytes);
        }
        let cause = ErrorCode::from_number(header.cause);
        assert!(failed.is_some() && !self.repeated, "{name}: {code:?} after {failed:?}: {outcome:x?} ({cause:?})");
        assert!(header.status != 0 && cause != Some(ErrorCode::None), "{name}: {code:?}: a failure without a cause");
        self.repeated = true;
        let (header, bytes) = self.send(code, input);
        let second = (header.status, header.cause);
        // A fault of a register that every session needs is remembered. The values of an event are tried at each start.
        if cause == Some(ErrorCode::RegisterFault) && second != expected.0 {
            assert_eq!(second, outcome.0, "{name}: {code:?}: the fault is remembered");
            self.has_faulted = true;
            return (header, bytes);
        }
        // An area that could not be freed is no longer the client's. The engine frees it later.
        let is_freed = code == Code::ControlArea && second.0 == STATUS_MEMORY_NOT_ALLOCATED;
        assert!(is_freed || second == expected.0, "{name}: {code:?} after {failed:?}: {second:x?}, first {cause:?}");
        (header, bytes)
    }

    fn send(&mut self, code: Code, input: &[u8]) -> (ReplyHeader, Vec<u8>) {
        const OUTPUT: usize = 1 << 15;
        let client = ClientId(self.handle);
        let mut bytes = vec![0; OUTPUT];
        let spec = protocol::REQUESTS.iter().find(|spec| spec.code == code).unwrap();
        let completion = if spec.method == Method::OutDirect {
            let samples = Samples { client, input, output: &mut bytes, may_wait: false };
            self.tell(|engine| engine.samples(samples))
                .unwrap_or(Completion { status: protocol::status::STATUS_SUCCESS, information: 0 })
        } else {
            bytes[..input.len()].copy_from_slice(input);
            let request = Request { client, code: code as u32, buffer: &mut bytes, input: input.len(), output: OUTPUT };
            self.tell(|engine| engine.serve(request))
        };
        assert_eq!(completion.status.number(), 0, "{}: {code:?}", self.name);
        bytes.truncate(completion.information);
        (ReplyHeader::read_from_prefix(&bytes).unwrap().0, bytes)
    }
}

impl SceneClient for Life<'_> {
    fn ask(&mut self, code: Code, input: &[u8]) -> ReplyHeader {
        self.ask(code, input).0
    }

    fn open(&mut self) {
        self.open();
    }

    fn close(&mut self) {
        self.close();
    }

    fn overflow(&mut self) {
        let machine = self.machine;
        for processor in 0..machine.active() {
            machine.run(processor, Mode::User, &|_| SCENE_INTERVAL.into());
            self.tell(|engine| machine.deliver(engine, processor, &INTERRUPTED));
        }
    }

    fn sleep(&mut self) {
        let machine = self.machine;
        self.tell(|engine| {
            machine.fall_asleep(engine);
            machine.wake(engine);
        });
    }

    fn add_processor(&mut self) {
        let machine = self.machine;
        // If the HAL does not free the counters before, it later subtracts on a processor on which it has not added:
        // the driver documents it, and the bench would stop there.
        Injection::sparing("free_counters", || self.tell(|engine| machine.add_processor(engine)));
    }

    fn expire(&mut self, times: u64) {
        let machine = self.machine;
        for _ in 0..times {
            machine.pass(200_000);
            for processor in machine.timed() {
                self.tell(|engine| machine.expire(engine, processor, &INTERRUPTED));
            }
        }
    }

    fn accumulate(&mut self) {
        self.accumulate();
    }
}

/// Returns the counts of a reply that has some: those of counters that count all the time, in whole intervals. What
/// occurs between the accesses of the driver is less, and depends on how many there are.
fn counts(code: Code, bytes: &[u8]) -> Counts {
    if !matches!(code, Code::Read | Code::Stop) {
        return Counts::new();
    }
    let records = bytes[size_of::<ReplyHeader>()..].chunks_exact(size_of::<CountRecord>());
    let records = records.map(|bytes| CountRecord::read_from_bytes(bytes).unwrap());
    let records = records.filter(|count| count.counter != TIMER && count.turns == 0);
    let values =
        |count: &CountRecord| (count.count / u64::from(SCENE_INTERVAL), count.samples + count.lost + count.throttled);
    records.map(|count| ((count.index, count.processor), values(&count))).collect()
}
