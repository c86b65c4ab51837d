//! The thread of the client on the model of a processor, and what a fake Windows counts for it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bench_protocol::{EventCount, Work};
use engine::Interrupted;
use halprof::system::{Affinity, CounterValues, ProfilingData, ProfilingHandle, System, ThreadMemoryBytes};
use model::Mode;
use protocol::Code;
use scheduler::{
    ENABLE_DISPATCH, PRIVILEGED_INSTRUCTION, ProfileHandle, READ_COUNTERS, READ_DISPATCH, Scheduler, ThreadId,
};

use super::model::{BRANCHES_RETIRED, ModelMachine, RETIRED, addresses_of};
use super::scheduling::FakeThreads;
use system::known_work::{BRANCHES, INSTRUCTIONS, KnownWork};

/// The thread of the client.
const THREAD: ThreadId = ThreadId(1);

/// Cycles in a nanosecond of the fake time.
const CYCLES: u64 = 3;

/// What a competing thread executes at most while the client's is switched out, and how often it displaces that.
const COMPETITION: u64 = 1_000_000;
const COMPETES: u32 = 50;

/// The processors of a machine as threads use them.
struct Processors<'a>(&'a ModelMachine);

impl scheduler::Processors for Processors<'_> {
    fn execute(&mut self, processor: u32, mode: scheduler::Mode, events: &[EventCount]) {
        let Self(model) = self;
        let (mode, interrupted) = match mode {
            scheduler::Mode::User => (Mode::User, protocol::Mode::User),
            scheduler::Mode::Kernel => (Mode::Kernel, protocol::Mode::Kernel),
        };
        model.machine.run(processor, mode, &|selected| {
            let is_it = |(event, umask, _): &&EventCount| (*event, *umask) == (selected.event, selected.umask);
            events.iter().find(is_it).map_or(0, |(.., count)| *count * model.accuracy / 1_000)
        });
        let ip = addresses_of(system::known_work::Function::First).start;
        let interrupted = Interrupted { ip, process: std::process::id(), thread: 1, mode: interrupted };
        model.machine.deliver(&model.engine(), processor, &interrupted);
    }

    fn read_counter(&mut self, processor: u32, index: u64) -> u64 {
        let index = u32::try_from(index).unwrap();
        self.0.machine.processor(processor).model().rdpmc(index).unwrap()
    }
}

/// How threads are scheduled until this is dropped.
pub struct Scheduled(Arc<ModelMachine>);

impl Drop for Scheduled {
    fn drop(&mut self) {
        self.0.threads.change(|_| {});
    }
}

impl ModelMachine {
    /// Returns whether Windows profiles the thread.
    pub fn is_profiled(&self) -> bool {
        self.threads.scheduler().profiling() > 0
    }

    /// Executes work as the thread.
    pub fn execute_profiled(&self, processor: u32, work: &[KnownWork]) {
        let mut scheduler = self.threads.scheduler();
        assert_eq!(scheduler.affinity(THREAD), 1 << processor, "the thread is pinned to the processor");
        for KnownWork { iterations, .. } in work {
            let of = |events: &[(u16, u16)], of_iteration: u64| -> Vec<EventCount> {
                events.iter().map(|(event, umask)| (*event, *umask, iterations * of_iteration)).collect()
            };
            let events = [of(&RETIRED, INSTRUCTIONS), of(&BRANCHES_RETIRED, BRANCHES)].concat();
            scheduler.run(&mut Processors(self), THREAD, &Work::user(&events));
        }
    }

    /// Lets the thread wait.
    pub fn pause(&self) {
        if self.is_profiled() && !self.threads.never_switches.get() {
            self.threads.scheduler().wait(&mut Processors(self), THREAD);
        }
    }

    /// Lets another thread compete for a processor.
    pub fn compete(self: &Arc<Self>, _: u32) -> Scheduled {
        if !self.threads.never_switches.get() {
            self.threads.change(|scheduling| (scheduling.preempt, scheduling.others) = (COMPETES, COMPETITION));
        }
        Scheduled(Arc::clone(self))
    }

    /// Gives the thread the highest priority.
    pub fn raise_priority(self: &Arc<Self>) -> Scheduled {
        let is_overloaded = self.threads.is_overloaded.get();
        self.threads.change(|scheduling| scheduling.preempt = if is_overloaded { 100 } else { 0 });
        Scheduled(Arc::clone(self))
    }

    /// Sends the thread to the driver with a request. Returns whether the request is one for counts of threads, or
    /// arrives while there are some. The thread is not simulated for others.
    pub fn begin_request(&self, code: Code) -> bool {
        let is_of_threads = code == Code::ReadGroup || self.machine.thread_counters() > 0;
        if is_of_threads {
            let mut scheduler = self.threads.scheduler();
            let processor = scheduler.begin_request(&mut Processors(self), THREAD);
            self.machine.set_current(processor);
            self.machine.processor(processor).set_user_rdpmc(scheduler.rdpmc_works_on(processor));
            self.machine.set_profiling_threads(u32::try_from(scheduler.profiling()).unwrap());
        }
        is_of_threads
    }

    /// Returns the thread from the driver.
    pub fn end_request(&self) {
        self.configure();
        self.threads.scheduler().end_request(&mut Processors(self), THREAD);
    }

    /// Lets Windows read the counters that the driver has configured.
    fn configure(&self) {
        let mut scheduler = self.threads.scheduler();
        let count = u64::from(self.machine.thread_counters());
        if scheduler.configured().len() as u64 != count {
            scheduler.configure(&[]).unwrap();
            scheduler.configure(&(0..count).collect::<Vec<_>>()).unwrap();
        }
    }
}

/// What a fake Windows does for the thread of the client on a machine.
pub struct FakeThread(pub Option<Arc<ModelMachine>>);

impl FakeThread {
    fn threads(&self) -> &FakeThreads {
        &self.model().threads
    }

    fn model(&self) -> &ModelMachine {
        self.0.as_ref().expect("tests of threads have a model")
    }

    fn call<T>(
        &self,
        call: impl FnOnce(&mut Scheduler, &mut Processors<'_>) -> Result<T, scheduler::Error>,
    ) -> io::Result<T> {
        let outcome = call(&mut self.threads().scheduler(), &mut Processors(self.model()));
        outcome.map_err(|error| {
            assert_ne!(error, PRIVILEGED_INSTRUCTION, "the program ends with 0xC0000096: it executes RDPMC");
            io::Error::from_raw_os_error(error.0.cast_signed())
        })
    }

    fn read(&self, handle: ProfilingHandle, flags: u32) -> io::Result<scheduler::ProfilingData> {
        let of_windows = ProfileHandle(handle.handle as u64);
        self.call(|scheduler, processors| scheduler.read(processors, THREAD, of_windows, flags))
    }
}

impl System for FakeThread {
    fn find_profiling(&self) -> Result<(), &'static str> {
        self.threads().missing.get().map_or(Ok(()), Err)
    }

    fn is_profiled(&self) -> io::Result<bool> {
        self.call(|scheduler, processors| scheduler.query(processors, THREAD, THREAD))
    }

    fn enable_profiling(&self, counters: u64) -> io::Result<ProfilingHandle> {
        self.model().configure();
        let enabled =
            self.call(|scheduler, processors| scheduler.enable(processors, THREAD, THREAD, ENABLE_DISPATCH, counters));
        Ok(ProfilingHandle { handle: usize::try_from(enabled?.0).unwrap() })
    }

    fn read_profiling(&self, handle: &ProfilingHandle) -> io::Result<ProfilingData> {
        let data = self.read(*handle, READ_DISPATCH)?;
        Ok(ProfilingData { context_switches: data.context_switches, cycle_time: data.cycles })
    }

    fn read_counters(&self, handle: &ProfilingHandle) -> io::Result<CounterValues> {
        let data = self.read(*handle, READ_COUNTERS)?;
        let excess = self.threads().excess.get();
        let values = data.counters.map(|value| value + value * excess / 1_000);
        Ok(CounterValues { count: data.counter_count, values })
    }

    fn read_memory(&self, _: &ProfilingHandle) -> io::Result<ThreadMemoryBytes> {
        let memory = self.call(|scheduler, processors| Ok(scheduler.read_memory(processors, THREAD)))?;
        memory.ok_or_else(|| io::Error::other("the handle of EnableThreadProfiling does not point to memory"))
    }

    fn disable_profiling(&self, handle: ProfilingHandle) -> io::Result<()> {
        let of_windows = ProfileHandle(handle.handle as u64);
        self.call(|scheduler, processors| scheduler.disable(processors, THREAD, of_windows))
    }

    fn pin(&self, cpu: u32) -> io::Result<Affinity> {
        let mask = self.call(|scheduler, processors| scheduler.set_affinity(processors, THREAD, THREAD, 1 << cpu))?;
        Ok(Affinity { group: 0, mask })
    }

    fn unpin(&self, affinity: &Affinity) -> io::Result<()> {
        self.call(|scheduler, processors| scheduler.set_affinity(processors, THREAD, THREAD, affinity.mask)).map(drop)
    }

    fn current_cpu(&self) -> u32 {
        self.threads().scheduler().current_processor(&mut Processors(self.model()), THREAD)
    }

    fn now(&self) -> Duration {
        Duration::from_nanos(self.threads().scheduler().time() / CYCLES)
    }

    fn time_asleep(&self) -> Duration {
        Duration::ZERO
    }

    fn windows_build(&self) -> Option<String> {
        self.threads().build.borrow().clone()
    }

    fn verification_file(&self) -> Option<PathBuf> {
        Some(self.threads().record.borrow().clone())
    }

    fn read_protected(&self, file: &Path, _: u64) -> io::Result<Vec<u8>> {
        std::fs::read(file)
    }

    fn write_protected(&self, file: &Path, content: &[u8]) -> io::Result<()> {
        std::fs::write(file, content)?;
        self.threads().written.set(self.threads().written.get() + 1);
        Ok(())
    }

    fn remove_protected(&self, file: &Path) -> io::Result<()> {
        match std::fs::remove_file(file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}
