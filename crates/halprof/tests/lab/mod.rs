//! A machine for groups: the driver's engine on the model of a processor, and threads that Windows schedules at random.
//!
//! The thread under test executes the events of the test. Everything else happens at random: it is preempted,
//! moved and interrupted, also between the readings of a group.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a machine that fails must fail its test")]

use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bench_protocol::{EventCount, Scheduling, Work};
use engine::{ClientId, Engine, Interrupted, Platform, Request};
use halprof::system::{Affinity, CounterValues, ProfilingData, ProfilingHandle, System, ThreadMemoryBytes};
use halprof::verification::Verification;
use halprof::{Device, Driver, Machine};
use model::Mode;
use protocol::{Code, ProcessorSet, StartHeader, modes, status};
use scheduler::{
    ENABLE_DISPATCH, Ledger, PRIVILEGED_INSTRUCTION, ProfileHandle, READ_COUNTERS, READ_DISPATCH, Scheduler, ThreadId,
};
use simulation::SimMachine;

/// The thread under test.
pub const THREAD: ThreadId = ThreadId(1);

/// Cycles per second of the model's time.
const FREQUENCY: u64 = 3_000_000_000;

/// Units of 100 ns in a second.
const UNITS: u64 = 10_000_000;

/// Encodings of retired instructions, unhalted cycles and retired branches.
pub type Encodings = [(u16, u16); 3];

/// SDM Vol. 3B, 21.2.1.2.
pub const INTEL: Encodings = [(0xC0, 0), (0x3C, 0), (0xC4, 0)];

/// PPR for AMD Family 19h Model 61h, PMCx0C0, PMCx076 and PMCx0C2.
pub const AMD: Encodings = [(0xC0, 0), (0x76, 0), (0xC2, 0)];

/// IA32_PERFEVTSEL0 to 3, PERF_LEGACY_CTL0 to 3, PERF_CTL0 to 5, and their enable bit; IA32_FIXED_CTR_CTRL (SDM Vol. 4;
/// PPR for AMD Family 19h Model 61h, MSRC001_0000 and MSRC001_0200).
const EVENT_SELECTS: [[u32; 6]; 3] = [
    [0x186, 0x187, 0x188, 0x189, 0x186, 0x187],
    [0xC001_0000, 0xC001_0001, 0xC001_0002, 0xC001_0003, 0xC001_0000, 0xC001_0001],
    [0xC001_0200, 0xC001_0202, 0xC001_0204, 0xC001_0206, 0xC001_0208, 0xC001_020A],
];
const ENABLE: u64 = 1 << 22;
const UNIT_MASK: u64 = 1 << 8;
const FIXED_CONTROL: u32 = 0x38D;
const FIXED_USER: u64 = 0x222;

/// What an interrupt interrupts; nothing is sampled.
const INTERRUPTED: Interrupted = Interrupted { ip: 0, process: 1, thread: 1, mode: protocol::Mode::User };

/// The processors and the engine.
struct Hardware {
    machine: &'static SimMachine,
    engine: Engine<&'static SimMachine>,
}

impl Hardware {
    fn serve_interrupts(&self, processor: u32) {
        self.machine.deliver(&self.engine, processor, &INTERRUPTED);
    }
}

impl scheduler::Processors for Hardware {
    fn execute(&mut self, processor: u32, mode: scheduler::Mode, events: &[EventCount]) {
        let mode = match mode {
            scheduler::Mode::User => Mode::User,
            scheduler::Mode::Kernel => Mode::Kernel,
        };
        self.machine.run(processor, mode, &|selected| {
            let is_it = |(event, umask, _): &&EventCount| (*event, *umask) == (selected.event, selected.umask);
            events.iter().find(is_it).map_or(0, |(.., count)| *count)
        });
        self.serve_interrupts(processor);
    }

    fn read_counter(&mut self, processor: u32, index: u64) -> u64 {
        let index = u32::try_from(index).unwrap();
        self.machine.processor(processor).model().rdpmc(index).expect("a counter that is configured")
    }
}

/// The machine, and the handles of its programs.
pub struct State {
    hardware: Hardware,
    pub scheduler: Scheduler,
    handles: usize,
    asleep: Duration,
    /// Number of functions of the system and requests until the machine sleeps.
    pub sleep_before: Option<u32>,
    /// Functions of the system and requests that fail.
    pub failing: Vec<&'static str>,
    pub missing: Option<&'static str>,
    pub verification: Option<Verification>,
    /// Whether Windows charges no cycle time, as a stub of its functions.
    pub charges_nothing: bool,
}

/// A machine that its handles share.
#[derive(Clone)]
pub struct Lab(Arc<Mutex<State>>);

impl Lab {
    pub fn new(identity: &str, processors: u32, scheduling: Scheduling) -> Self {
        let machine: &'static SimMachine = Box::leak(Box::new(SimMachine::named(identity, processors)));
        let engine = Engine::new(machine, [1, 2, 3, 0]).unwrap();
        Self(Arc::new(Mutex::new(State {
            hardware: Hardware { machine, engine },
            scheduler: Scheduler::new(scheduling, processors),
            handles: 0,
            asleep: Duration::ZERO,
            sleep_before: None,
            failing: Vec::new(),
            missing: None,
            verification: None,
            charges_nothing: false,
        })))
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Opens the driver as a program.
    pub fn driver(&self) -> Driver {
        Driver::over(self.device()).expect("the driver")
    }

    /// Opens the driver's device.
    pub fn device(&self) -> Box<dyn Device> {
        let mut state = self.state();
        state.handles += 1;
        let client = ClientId(state.handles);
        assert_eq!(state.hardware.engine.open(client, 1), status::STATUS_SUCCESS);
        drop(state);
        let handle = Arc::new(Handle { lab: self.clone(), client });
        Box::new(LabDevice(handle))
    }

    /// Returns the machine as a group sees it.
    pub fn machine(&self) -> Machine {
        Machine::over(self.driver(), Rc::new(LabSystem(self.clone())))
    }

    /// Lets the thread execute events.
    pub fn run(&self, work: &Work) {
        let mut state = self.state();
        let State { hardware, scheduler, .. } = &mut *state;
        scheduler.run(hardware, THREAD, work);
    }

    /// Lets the thread execute events in user mode.
    pub fn run_user(&self, events: &[((u16, u16), u64)]) {
        let events: Vec<EventCount> = events.iter().map(|((event, umask), count)| (*event, *umask, *count)).collect();
        self.run(&Work::user(&events));
    }

    /// Lets the driver's thread update the counts and repair registers, as it does every ten seconds.
    pub fn tick(&self) {
        self.state().hardware.engine.accumulate_counts();
    }

    /// Profiles the thread, as another library does.
    pub fn profile(&self) {
        let _ = LabSystem(self.clone()).enable_profiling(0).expect("a profile");
    }

    /// Moves the thread to a processor, as another library does.
    pub fn move_to(&self, processor: u32) {
        let _ = LabSystem(self.clone()).pin(processor).expect("a processor");
    }

    /// Lets the thread wait, while others run.
    pub fn wait(&self) {
        let mut state = self.state();
        let State { hardware, scheduler, .. } = &mut *state;
        scheduler.wait(hardware, THREAD);
    }

    /// Returns the events that the thread has executed.
    pub fn ledger(&self) -> Ledger {
        self.state().scheduler.ledger(THREAD)
    }

    /// Sends the machine to sleep and wakes it.
    pub fn sleep(&self, duration: Duration) {
        self.state().sleep(duration);
    }

    /// Lets every counter of a processor count something else, as another program. Nothing undoes it but a new start: a
    /// change that is undone before the next comparison leaves no trace.
    pub fn change_counters(&self, processor: u32) {
        let state = self.state();
        let mut model = state.hardware.machine.processor(processor).model();
        model.uncounted(|model| {
            for register in EVENT_SELECTS.into_iter().flatten() {
                if let Ok(value) = model.rdmsr(register)
                    && value & ENABLE != 0
                {
                    model.wrmsr(register, value | UNIT_MASK).expect("a register that was read");
                }
            }
            if let Ok(value @ 1..) = model.rdmsr(FIXED_CONTROL) {
                model.wrmsr(FIXED_CONTROL, value & !FIXED_USER).expect("a register that was read");
            }
        });
    }

    /// Lets the general counters of a processor stand still, as those of some guests do.
    pub fn stand_still(&self, processor: u32) {
        let state = self.state();
        let mut model = state.hardware.machine.processor(processor).model();
        (0..8).for_each(|number| model.set_movement(model::CounterId::General(number), model::Movement::None));
    }

    /// Lets Windows refuse configurations for thread profiling, or not.
    pub fn refuse_threads(&self, refuse: bool) {
        let status = if refuse { status::STATUS_WMI_ALREADY_ENABLED.number() } else { 0 };
        self.state().hardware.machine.refuse(simulation::Call::ConfigureThreadProfiling, status);
    }

    /// Returns the processor on which the thread runs, or ran last.
    pub fn current(&self) -> u32 {
        let mut state = self.state();
        let State { hardware, scheduler, .. } = &mut *state;
        scheduler.current_processor(hardware, THREAD)
    }

    /// Returns whether the engine holds nothing of the machine and no thread is profiled or pinned.
    pub fn is_free(&self) -> bool {
        let mut state = self.state();
        let all = u64::MAX >> (u64::BITS - state.scheduler.processors());
        !state.hardware.machine.is_in_use()
            && state.scheduler.profiling() == 0
            && state.scheduler.configured().is_empty()
            && state.scheduler.affinity(THREAD) == all
    }
}

impl State {
    fn fails(&self, name: &str) -> io::Result<()> {
        if self.failing.contains(&name) { Err(io::Error::from_raw_os_error(31)) } else { Ok(()) }
    }

    /// Lets the time of the driver follow that of the scheduler.
    fn pass(&mut self) {
        let wanted = self.scheduler.time() / (FREQUENCY / UNITS);
        let machine = self.hardware.machine;
        let asleep = u64::try_from(self.asleep.as_nanos()).unwrap() / 100;
        machine.pass((wanted + asleep).saturating_sub(Platform::clock(&machine).0));
    }

    /// Sleeps if that is due before this call.
    fn sleep_if_due(&mut self) {
        let due = self.sleep_before == Some(0);
        self.sleep_before = self.sleep_before.and_then(|calls| calls.checked_sub(1));
        if due {
            self.sleep(Duration::from_secs(5));
        }
    }

    fn sleep(&mut self, duration: Duration) {
        let Hardware { machine, engine } = &self.hardware;
        machine.fall_asleep(engine);
        machine.pass(u64::try_from(duration.as_nanos()).unwrap() / 100);
        machine.wake(engine);
        self.asleep += duration;
    }

    fn serve(&mut self, client: ClientId, code: Code, input: &[u8], output: &mut [u8]) -> io::Result<usize> {
        self.sleep_if_due();
        self.fails(protocol::find(code as u32).unwrap().name)?;
        self.pass();
        let Self { hardware, scheduler, .. } = self;
        let processor = scheduler.begin_request(hardware, THREAD);
        let Hardware { machine, engine } = hardware;
        machine.set_current(processor);
        machine.processor(processor).set_user_rdpmc(scheduler.rdpmc_works_on(processor));
        machine.set_profiling_threads(u32::try_from(scheduler.profiling()).unwrap());
        let mut buffer = input.to_vec();
        buffer.resize(input.len().max(output.len()), 0);
        let request =
            Request { client, code: code as u32, buffer: &mut buffer, input: input.len(), output: output.len() };
        let completion = engine.serve(request);
        let count = u64::from(machine.thread_counters());
        if scheduler.configured().len() as u64 != count {
            scheduler.configure(&[]).expect("no thread profiles");
            scheduler.configure(&(0..count).collect::<Vec<_>>()).expect("at most 16 counters");
        }
        scheduler.end_request(hardware, THREAD);
        if completion.status != status::STATUS_SUCCESS {
            return Err(io::Error::from_raw_os_error(87));
        }
        let (written, length) = (buffer.get(..completion.information).unwrap(), completion.information);
        output.get_mut(..length).unwrap().copy_from_slice(written);
        Ok(length)
    }
}

/// An open handle, which is closed when it is dropped.
struct Handle {
    lab: Lab,
    client: ClientId,
}

impl Drop for Handle {
    fn drop(&mut self) {
        let mut state = self.lab.state();
        let State { hardware, scheduler, .. } = &mut *state;
        hardware.machine.set_profiling_threads(u32::try_from(scheduler.profiling()).unwrap());
        hardware.engine.close(self.client);
        if hardware.machine.thread_counters() == 0 && !scheduler.configured().is_empty() {
            scheduler.configure(&[]).expect("no thread profiles");
        }
    }
}

struct LabDevice(Arc<Handle>);

impl Device for LabDevice {
    fn request(&self, code: Code, input: &[u8], output: &mut [u8]) -> io::Result<usize> {
        self.0.lab.state().serve(self.0.client, code, input, output)
    }

    fn share(&self) -> Box<dyn Device + Send> {
        Box::new(Self(Arc::clone(&self.0)))
    }
}

/// Windows, for the thread under test.
pub struct LabSystem(pub Lab);

impl LabSystem {
    fn call<T>(
        &self,
        name: &str,
        call: impl FnOnce(&mut Scheduler, &mut Hardware) -> Result<T, scheduler::Error>,
    ) -> io::Result<T> {
        let mut state = self.0.state();
        state.sleep_if_due();
        state.fails(name)?;
        let State { hardware, scheduler, .. } = &mut *state;
        call(scheduler, hardware).map_err(|error| {
            assert_ne!(error, PRIVILEGED_INSTRUCTION, "the program ends with 0xC0000096: it executes RDPMC");
            io::Error::from_raw_os_error(error.0.cast_signed())
        })
    }
}

impl LabSystem {
    fn read(&self, handle: ProfilingHandle, flags: u32) -> io::Result<scheduler::ProfilingData> {
        let of_windows = ProfileHandle(handle.handle as u64);
        self.call("ReadThreadProfilingData", |scheduler, hardware| scheduler.read(hardware, THREAD, of_windows, flags))
    }
}

impl System for LabSystem {
    fn find_profiling(&self) -> Result<(), &'static str> {
        self.0.state().missing.map_or(Ok(()), Err)
    }

    fn is_profiled(&self) -> io::Result<bool> {
        self.call("QueryThreadProfiling", |scheduler, hardware| scheduler.query(hardware, THREAD, THREAD))
    }

    fn enable_profiling(&self, counters: u64) -> io::Result<ProfilingHandle> {
        let handle = self.call("EnableThreadProfiling", |scheduler, hardware| {
            scheduler.enable(hardware, THREAD, THREAD, ENABLE_DISPATCH, counters)
        })?;
        Ok(ProfilingHandle { handle: usize::try_from(handle.0).unwrap() })
    }

    fn read_profiling(&self, handle: &ProfilingHandle) -> io::Result<ProfilingData> {
        let data = self.read(*handle, READ_DISPATCH)?;
        let charges_nothing = self.0.state().charges_nothing;
        Ok(ProfilingData {
            context_switches: if charges_nothing { 0 } else { data.context_switches },
            cycle_time: if charges_nothing { 0 } else { data.cycles },
        })
    }

    fn read_counters(&self, handle: &ProfilingHandle) -> io::Result<CounterValues> {
        let data = self.read(*handle, READ_COUNTERS)?;
        Ok(CounterValues { count: data.counter_count, values: data.counters })
    }

    fn read_memory(&self, _: &ProfilingHandle) -> io::Result<ThreadMemoryBytes> {
        let memory = self.call("memory", |scheduler, hardware| Ok(scheduler.read_memory(hardware, THREAD)))?;
        memory.ok_or_else(|| io::Error::other("the handle of EnableThreadProfiling does not point to memory"))
    }

    fn disable_profiling(&self, handle: ProfilingHandle) -> io::Result<()> {
        let of_windows = ProfileHandle(handle.handle as u64);
        self.call("DisableThreadProfiling", |scheduler, hardware| scheduler.disable(hardware, THREAD, of_windows))
    }

    fn pin(&self, cpu: u32) -> io::Result<Affinity> {
        let mask = self.call("SetThreadGroupAffinity", |scheduler, hardware| {
            scheduler.set_affinity(hardware, THREAD, THREAD, 1 << cpu)
        })?;
        Ok(Affinity { group: 0, mask })
    }

    fn unpin(&self, affinity: &Affinity) -> io::Result<()> {
        self.call("SetThreadGroupAffinity", |scheduler, hardware| {
            scheduler.set_affinity(hardware, THREAD, THREAD, affinity.mask).map(drop)
        })
    }

    fn current_cpu(&self) -> u32 {
        self.0.current()
    }

    fn now(&self) -> Duration {
        Duration::from_nanos(self.0.state().scheduler.time() / (FREQUENCY / 1_000_000_000))
    }

    fn time_asleep(&self) -> Duration {
        self.0.state().asleep
    }

    fn windows_build(&self) -> Option<String> {
        Some("26100.1".to_owned())
    }

    fn verification_file(&self) -> Option<PathBuf> {
        Some("threads.json".into())
    }

    fn read_protected(&self, _: &Path, _: u64) -> io::Result<Vec<u8>> {
        let state = self.0.state();
        let record = state.verification.as_ref().ok_or(io::ErrorKind::NotFound)?;
        Ok(serde_json::to_vec(record)?)
    }

    fn write_protected(&self, _: &Path, content: &[u8]) -> io::Result<()> {
        self.0.state().verification = Some(serde_json::from_slice(content)?);
        Ok(())
    }

    fn remove_protected(&self, _: &Path) -> io::Result<()> {
        self.0.state().verification = None;
        Ok(())
    }
}

/// Starts a session of another program; `None` if no counter is free.
pub fn start_session(driver: &Driver, event: &str) -> Option<u64> {
    let all = ProcessorSet::EMPTY;
    let events = driver.events(event, modes::USER, &all).expect("an event of the processor");
    let requests: Vec<_> = events.iter().map(|event| event.request).collect();
    let header = StartHeader { processors: all, ..StartHeader::EMPTY };
    driver.start(&header, &requests).ok().map(|started| started.session)
}
