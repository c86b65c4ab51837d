//! A machine with the driver's engine on the model of a processor.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use engine::{ClientId, Engine, Interrupted, Request, Samples};
use halprof::Device;
use model::Mode;
use protocol::trace::EventId;
use protocol::{Code, Method, status};
use simulation::{SimMachine, WrittenEvent};
use zerocopy::IntoBytes;

use super::event::FakeEvent;
use super::scheduling::FakeThreads;
use system::known_work::{BRANCHES, CALLS, Function, INSTRUCTIONS, KnownWork};
use system::trace::raw::HALPROF;

/// Instructions retired and branches retired, also those of NetBurst and of AMD (SDM Vol. 3B, tables of events; PPR,
/// PMCx0C0 and PMCx0C2).
pub const RETIRED: [(u16, u16); 2] = [(0xC0, 0), (0x02, 0x01)];
pub const BRANCHES_RETIRED: [(u16, u16); 3] = [(0xC4, 0), (0xC2, 0), (0x06, 0x0F)];

/// Iterations that run between two deliveries of interrupts, if there is more than one piece of work.
const SLICE: u64 = 10_000;

/// Return addresses of the nested calls around known work, from the innermost call to the outermost.
pub const RETURN_ADDRESSES: [u64; CALLS] = [0x1_4000_2010, 0x1_4000_2050, 0x1_4000_2090];

/// Return addresses of the calls around those.
const OUTER: [u64; 2] = [0x1_4000_3000, 0x7FF8_0000_1000];

/// The thread that executes known work.
const THREAD: u32 = 1;

/// Code that no test looks at.
const NOWHERE: Interrupted = Interrupted { ip: 1, process: 2, thread: THREAD, mode: protocol::Mode::User };

/// Returns the addresses of a function of known work.
pub fn addresses_of(function: Function) -> Range<u64> {
    match function {
        Function::First => 0x1_4000_1000..0x1_4000_101E,
        Function::Second => 0x1_4000_1020..0x1_4000_103E,
    }
}

/// A machine that executes known work.
pub struct ModelMachine {
    pub(super) machine: &'static SimMachine,
    engine: Mutex<Engine<&'static SimMachine>>,
    /// Thousandths of the events that counters see.
    pub(super) accuracy: u64,
    /// The thread of the client, while it is profiled.
    pub threads: FakeThreads,
    /// Calls of `execute`.
    calls: AtomicU64,
    /// Handles that were opened.
    handles: AtomicUsize,
}

impl ModelMachine {
    /// Creates a machine with processors of an identity, whose counters see so many thousandths of the events.
    pub fn new(identity: &str, processors: u32, accuracy: u64) -> Arc<Self> {
        let machine: &'static SimMachine =
            Box::leak(Box::new(SimMachine::named(identity, processors).without_time_between_accesses()));
        let engine = Mutex::new(Engine::new(machine, [0; 4]).unwrap());
        let threads = FakeThreads::new(processors);
        Arc::new(Self { machine, engine, accuracy, threads, calls: AtomicU64::new(0), handles: AtomicUsize::new(0) })
    }

    pub(super) fn engine(&self) -> MutexGuard<'_, Engine<&'static SimMachine>> {
        self.engine.lock().unwrap()
    }

    /// Opens the device.
    pub fn open(self: &Arc<Self>) -> Box<dyn Device> {
        let client = ClientId(self.handles.fetch_add(1, Ordering::Relaxed));
        assert_eq!(self.engine().open(client, std::process::id()), status::STATUS_SUCCESS);
        Box::new(ModelDevice(Arc::new(Handle { machine: Arc::clone(self), client })))
    }

    /// Returns the machine, whose time passes as a test wants.
    pub fn sim(&self) -> &'static SimMachine {
        self.machine
    }

    /// Lets the timer of a processor expire.
    pub fn expire(&self, processor: u32) {
        self.machine.expire(&self.engine(), processor, &NOWHERE);
    }

    /// Delivers the pending interrupts of a processor, and returns their number.
    pub fn deliver(&self, processor: u32) -> u64 {
        self.machine.deliver(&self.engine(), processor, &NOWHERE).0.into()
    }

    /// Lets a processor tick.
    pub fn tick(&self, processor: u32) {
        self.machine.tick_sampling(&self.engine(), processor);
    }

    /// Executes work on a processor, and code around it. Some calls are disturbed by another program.
    pub fn execute(&self, processor: u32, work: &[KnownWork]) {
        const AROUND: u64 = 1_000;
        const OTHER: u64 = 100_000;
        if self.is_profiled() {
            return self.execute_profiled(processor, work);
        }
        let is_disturbed = self.calls.fetch_add(1, Ordering::Relaxed) % 5 < 2;
        self.machine.run(processor, Mode::Kernel, &|_| AROUND);
        self.machine.run(processor, Mode::User, &|_| if is_disturbed { OTHER } else { AROUND });
        for KnownWork { function, iterations } in work {
            let ip = addresses_of(*function).start;
            let interrupted =
                Interrupted { ip, process: std::process::id(), thread: THREAD, mode: protocol::Mode::User };
            let mut left = *iterations;
            while left > 0 {
                let now = if work.len() > 1 { left.min(SLICE) } else { left };
                self.machine.run(processor, Mode::User, &|selected| {
                    let event = (selected.event, selected.umask);
                    let of_iteration = if RETIRED.contains(&event) {
                        INSTRUCTIONS
                    } else if BRANCHES_RETIRED.contains(&event) {
                        BRANCHES
                    } else {
                        panic!("{selected:?} is selected")
                    };
                    now * of_iteration * self.accuracy / 1_000
                });
                self.machine.deliver(&self.engine(), processor, &interrupted);
                left -= now;
            }
        }
    }

    /// Sets whether the driver writes events for its samples. Those that it wrote before are dropped.
    pub fn set_wants_events(&self, wanted: bool) {
        self.engine().sampler().set_wants_events(wanted);
        drop(self.machine.take_events());
    }

    /// Returns the events for samples that the driver wrote, with the stacks of known work in nested calls.
    pub fn take_events(&self) -> Vec<FakeEvent> {
        let event = |written| {
            let WrittenEvent::Sample(sample) = written else { return None };
            Some(FakeEvent {
                provider: HALPROF,
                number: EventId::Sample as u16,
                task: [std::process::id(), THREAD],
                time: sample.time,
                payload: sample.as_bytes().to_vec(),
                stacks: vec![(0, [&[sample.ip][..], &RETURN_ADDRESSES, &OUTER].concat())],
                ..FakeEvent::default()
            })
        };
        self.machine.take_events().into_iter().filter_map(event).collect()
    }
}

/// An open handle, which is closed when it is dropped.
struct Handle {
    machine: Arc<ModelMachine>,
    client: ClientId,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.machine.engine().close(self.client);
    }
}

struct ModelDevice(Arc<Handle>);

impl Device for ModelDevice {
    fn request(&self, code: Code, input: &[u8], output: &mut [u8]) -> io::Result<usize> {
        let Handle { machine, client } = &*self.0;
        let client = *client;
        let is_of_threads = machine.begin_request(code);
        let mut engine = machine.engine();
        let completion = if protocol::find(code as u32).unwrap().method == Method::OutDirect {
            let samples = Samples { client, input, output, may_wait: false };
            engine.samples(samples).unwrap()
        } else {
            let mut buffer = input.to_vec();
            buffer.resize(input.len().max(output.len()), 0);
            let request =
                Request { client, code: code as u32, buffer: &mut buffer, input: input.len(), output: output.len() };
            let completion = engine.serve(request);
            output[..completion.information].copy_from_slice(&buffer[..completion.information]);
            completion
        };
        drop(engine);
        if is_of_threads {
            machine.end_request();
        }
        assert_eq!(completion.status, status::STATUS_SUCCESS, "{code:?}");
        Ok(completion.information)
    }

    fn share(&self) -> Box<dyn Device + Send> {
        Box::new(Self(Arc::clone(&self.0)))
    }
}
