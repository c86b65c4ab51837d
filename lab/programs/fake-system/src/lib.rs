//! A fake driver and a fake Windows for tests.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::missing_errors_doc,
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    clippy::panic,
    clippy::return_self_not_must_use,
    clippy::unwrap_used,
    reason = "only tests use it"
)]

mod agent_service;
mod device;
mod driver;
mod event;
mod information;
mod model;
pub mod payloads;
mod processes;
mod records;
mod scheduling;
mod shared;
mod threads;
mod trace;
mod volume;

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use halprof::Device;
use halprof::ServiceState;
use halprof::event::event_cache::EventCache;
use halprof::protected::Volume;

use self::agent_service::FakeAgent;
use self::device::FakeDevice;
pub use self::driver::FakeDriver;
pub use self::event::FakeEvent;
pub use self::information::{core_type_record, count, disturbed, info};
pub use self::model::ModelMachine;
use self::processes::FakeProcesses;
pub use self::processes::{FakeStarts, PROTECTED};
pub use self::records::{module, named, precise_sample, record, sample, sources};
pub use self::shared::Shared;
use self::threads::FakeThread;
pub use self::trace::FakeTrace;
pub use self::volume::FakeVolume;
use system::known_work::{CALLS, Function, KnownWork};
use system::topology::Topology;
use system::trace::{TraceError, TracePlan, TraceSession, TraceSink};
use system::{
    AgentService, CodeIntegrity, LoadedModule, ProcessSource, ServiceBody, StartedProcesses, System, VolumeUser,
    WindowsVersion,
};
use user_error::win32;

/// Units per second of the clock of samples.
pub const CLOCK: u64 = 10_000_000;

/// A fake Windows with one service.
pub struct FakeSystem {
    /// The imported events.
    pub cache: EventCache,
    /// The protection of files.
    pub volume: FakeVolume,
    /// Where the program of the agent's service is, and this program.
    pub programs: [PathBuf; 2],
    /// The driver, which replies while the service runs.
    pub driver: Arc<FakeDriver>,
    /// The core and the package of every processor.
    pub topology: Topology,
    /// State of the service.
    pub service: Cell<Option<ServiceState>>,
    /// Path of the driver's file.
    pub path: PathBuf,
    /// Path in the service, if it differs.
    pub image: RefCell<Option<String>>,
    /// Win32 error code of every operation.
    pub failure: Option<i32>,
    /// Security descriptor of the GUID of the driver's events.
    pub provider_descriptor: RefCell<Option<Vec<u8>>>,
    /// What the kernel checks when it loads a driver; an error if `None`.
    pub integrity: Option<CodeIntegrity>,
    /// Calls that can fail, so far: each has a number from 0 on.
    pub calls: RefCell<Vec<&'static str>>,
    /// Numbers of the calls that fail.
    pub failing: RefCell<Vec<usize>>,
    /// Number of the call in which the client crashes: this one and all later ones have no effect.
    pub crash: Cell<Option<usize>>,
    /// Files with which the service does not start, and the Win32 error code.
    pub unloadable: RefCell<Vec<(Vec<u8>, i32)>>,
    /// Files with which the service starts, but the device cannot be opened, and the Win32 error code.
    pub unopenable: RefCell<Vec<(Vec<u8>, i32)>>,
    /// Files that Windows does not unload: they can be renamed, but not replaced or removed.
    pub loaded: RefCell<Vec<Vec<u8>>>,
    /// Whether the service never stops.
    pub busy: bool,
    /// The operations so far on the service and on Ctrl-C.
    pub done: RefCell<Vec<&'static str>>,
    /// Number of queries before Ctrl-C is reported.
    pub until_interrupt: Cell<Option<u32>>,
    /// The running processes.
    pub processes: Arc<Shared<Vec<(u32, String)>>>,
    /// The modules of the processes that can be opened.
    pub modules: Arc<Shared<BTreeMap<u32, Vec<LoadedModule>>>>,
    /// The processes that the client starts.
    pub starts: FakeStarts,
    /// The modules of the kernel.
    pub kernel: Arc<Shared<Vec<LoadedModule>>>,
    /// Whether the token lacks SeDebugPrivilege, so that Windows hides where they are.
    pub is_kernel_hidden: bool,
    /// Processor time of the client: a millisecond more at each query.
    pub processor_time: Cell<Duration>,
    /// The machine whose driver replies instead, and which executes known work.
    pub model: Option<Arc<ModelMachine>>,
    /// The service of the agent.
    pub agent: FakeAgent,
    /// Whether the fake Windows emulates x86.
    pub is_emulated: bool,
    /// What identifies the fake Windows.
    pub version: WindowsVersion,
    /// Its Event Tracing for Windows.
    pub trace: Arc<FakeTrace>,
}

impl FakeSystem {
    /// Creates a system with a running driver.
    pub fn running(driver: FakeDriver) -> Self {
        Self {
            cache: EventCache::default(),
            volume: FakeVolume::default(),
            programs: Default::default(),
            driver: Arc::new(driver),
            topology: Topology::new(),
            service: Cell::new(Some(ServiceState::Running)),
            path: PathBuf::new(),
            image: RefCell::default(),
            failure: None,
            provider_descriptor: RefCell::default(),
            integrity: Some(CodeIntegrity { is_enforced: false, accepts_test_signatures: false }),
            calls: RefCell::default(),
            failing: RefCell::default(),
            crash: Cell::default(),
            unloadable: RefCell::default(),
            unopenable: RefCell::default(),
            loaded: RefCell::default(),
            busy: false,
            done: RefCell::default(),
            until_interrupt: Cell::default(),
            processes: Arc::default(),
            modules: Arc::default(),
            starts: FakeStarts::default(),
            kernel: Arc::default(),
            is_kernel_hidden: false,
            processor_time: Cell::default(),
            model: None,
            agent: FakeAgent::default(),
            is_emulated: false,
            version: WindowsVersion::default(),
            trace: Arc::default(),
        }
    }

    /// Notes a call. It fails if it has been told to.
    fn call(&self, what: &'static str) -> io::Result<()> {
        let mut calls = self.calls.borrow_mut();
        let number = calls.len();
        calls.push(what);
        if self.failing.borrow().contains(&number) || self.crash.get().is_some_and(|crash| number >= crash) {
            return Err(io::Error::other(format!("the call {what} failed")));
        }
        Ok(())
    }

    fn check_unloaded(&self, path: &Path) -> io::Result<()> {
        match fs::read(path) {
            Ok(file) if self.loaded.borrow().contains(&file) => {
                Err(io::Error::from_raw_os_error(win32::ERROR_ACCESS_DENIED))
            }
            _ => Ok(()),
        }
    }

    fn attempt(&self, what: &'static str) -> io::Result<()> {
        self.call(what)?;
        if let Some(code) = self.failure {
            return Err(io::Error::from_raw_os_error(code));
        }
        self.done.borrow_mut().push(what);
        Ok(())
    }
}

impl System for FakeSystem {
    fn event_cache(&self) -> EventCache {
        self.cache.clone()
    }

    fn is_emulated(&self) -> bool {
        self.is_emulated
    }

    fn windows_version(&self) -> WindowsVersion {
        self.version.clone()
    }

    fn open(&self) -> io::Result<Box<dyn Device>> {
        self.call("open")?;
        let file = fs::read(&self.path).unwrap_or_default();
        if let Some((_, code)) = self.unopenable.borrow().iter().find(|(unopenable, _)| *unopenable == file) {
            return Err(io::Error::from_raw_os_error(*code));
        }
        match (self.failure, self.service.get()) {
            (Some(code), _) => Err(io::Error::from_raw_os_error(code)),
            (None, Some(ServiceState::Running)) => Ok(match &self.model {
                Some(model) => model.open(),
                None => Box::new(FakeDevice(Arc::clone(&self.driver))),
            }),
            (None, _) => Err(io::Error::from_raw_os_error(win32::ERROR_FILE_NOT_FOUND)),
        }
    }

    fn service(&self) -> io::Result<Option<ServiceState>> {
        self.call("service")?;
        Ok(self.service.get())
    }

    fn image(&self) -> io::Result<Option<String>> {
        self.call("image")?;
        let own = || self.path.to_string_lossy().into_owned();
        Ok(self.service.get().map(|_| self.image.borrow().clone().unwrap_or_else(own)))
    }

    fn register(&self) -> io::Result<bool> {
        self.attempt("register")?;
        let new = self.service.get().is_none();
        if new {
            self.service.set(Some(ServiceState::Stopped));
        }
        Ok(new)
    }

    fn start(&self) -> io::Result<()> {
        self.attempt("start")?;
        let file = fs::read(&self.path).unwrap_or_default();
        if let Some((_, code)) = self.unloadable.borrow().iter().find(|(unloadable, _)| *unloadable == file) {
            return Err(io::Error::from_raw_os_error(*code));
        }
        self.service.set(Some(ServiceState::Running));
        Ok(())
    }

    fn stop(&self) -> io::Result<()> {
        self.attempt("stop")?;
        self.service.set(Some(if self.busy { ServiceState::Stopping } else { ServiceState::Stopped }));
        Ok(())
    }

    fn delete(&self) -> io::Result<()> {
        self.attempt("delete")?;
        self.service.set(None);
        Ok(())
    }

    fn agent(&self) -> io::Result<Option<AgentService>> {
        self.call("query agent").map(|()| self.agent.state())
    }

    /// Changes the service before it fails.
    fn register_agent(&self, program: &Path, arguments: Vec<OsString>) -> io::Result<()> {
        self.agent.register(program, arguments);
        self.attempt("register agent")
    }

    fn set_agent_command(&self, command: &OsStr) -> io::Result<()> {
        self.attempt("set agent command").map(|()| self.agent.set_command(command))
    }

    fn agent_program(&self) -> io::Result<PathBuf> {
        Ok(self.programs[0].clone())
    }

    fn this_program(&self) -> io::Result<PathBuf> {
        Ok(self.programs[1].clone())
    }

    fn volume(&self, user: VolumeUser) -> io::Result<Box<dyn Volume>> {
        Ok(Box::new(self.volume.used_by(user)))
    }

    fn start_agent(&self) -> io::Result<()> {
        self.attempt("start agent").map(|()| self.agent.start())
    }

    fn stop_agent(&self) -> io::Result<bool> {
        self.attempt("stop agent").map(|()| self.agent.stop(self.busy))
    }

    fn delete_agent(&self) -> io::Result<bool> {
        self.attempt("delete agent").map(|()| self.agent.delete())
    }

    fn serve_agent(&self, body: ServiceBody) -> io::Result<()> {
        self.attempt("serve agent")?;
        body(&|| self.interrupted());
        Ok(())
    }

    fn driver_path(&self) -> io::Result<PathBuf> {
        Ok(self.path.clone())
    }

    fn provider_descriptor(&self) -> io::Result<Option<Vec<u8>>> {
        self.call("read the descriptor").map(|()| self.provider_descriptor.borrow().clone())
    }

    fn set_provider_descriptor(&self, descriptor: &[u8]) -> io::Result<()> {
        self.call("write the descriptor").map(|()| drop(self.provider_descriptor.replace(Some(descriptor.to_vec()))))
    }

    fn remove_provider_descriptor(&self) -> io::Result<()> {
        self.call("remove the descriptor").map(|()| drop(self.provider_descriptor.take()))
    }

    fn code_integrity(&self) -> io::Result<CodeIntegrity> {
        self.integrity.ok_or_else(|| io::ErrorKind::Unsupported.into())
    }

    fn read_file(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.call("read")?;
        fs::read(path)
    }

    /// Writes the first half before it fails.
    fn write_file(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let crashed = self.crash.get().is_some_and(|crash| crash < self.calls.borrow().len());
        let failed = self.call("write");
        if failed.is_err() && !crashed {
            fs::write(path, &bytes[..bytes.len() / 2])?;
        }
        failed?;
        fs::write(path, bytes)
    }

    fn rename_file(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.call("rename")?;
        self.check_unloaded(to)?;
        fs::rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.call("remove")?;
        self.check_unloaded(path)?;
        fs::remove_file(path)
    }

    fn pause(&self) {
        if let Some(model) = &self.model {
            model.pause();
        }
    }

    fn note_interrupts(&self) -> io::Result<()> {
        self.attempt("note interrupts")
    }

    fn interrupted(&self) -> bool {
        let left = self.until_interrupt.get();
        self.until_interrupt.set(left.map(|left| left.saturating_sub(1)));
        left == Some(0)
    }

    fn end_children_with_this(&self) -> io::Result<()> {
        self.attempt("end children with this")
    }

    fn started_processes(&self) -> io::Result<Box<dyn StartedProcesses>> {
        self.attempt("follow the command")?;
        Ok(Box::new(self.starts.clone()))
    }

    fn shows_progress(&self, _: bool) -> bool {
        false
    }

    fn process_source(&self) -> Box<dyn ProcessSource> {
        Box::new(FakeProcesses {
            processes: Arc::clone(&self.processes),
            modules: Arc::clone(&self.modules),
            kernel: Arc::clone(&self.kernel),
            is_kernel_hidden: self.is_kernel_hidden,
        })
    }

    fn processor_time(&self) -> Option<Duration> {
        self.processor_time.set(self.processor_time.get() + Duration::from_millis(1));
        Some(self.processor_time.get())
    }

    fn tsc_frequency(&self) -> Option<u64> {
        Some(3_000_000_000)
    }

    fn topology(&self) -> io::Result<Topology> {
        Ok(self.topology.clone())
    }

    fn execute(&self, processor: u32, work: &[KnownWork]) -> io::Result<()> {
        self.call("execute")?;
        if let Some(model) = &self.model {
            model.execute(processor, work);
        }
        Ok(())
    }

    fn execute_in_calls(&self, processor: u32, work: &[KnownWork]) -> io::Result<[u64; CALLS]> {
        self.execute(processor, work)?;
        Ok(model::RETURN_ADDRESSES)
    }

    fn thread_system(&self) -> Rc<dyn halprof::system::System> {
        Rc::new(FakeThread(self.model.clone()))
    }

    fn compete(&self, processor: u32) -> io::Result<Box<dyn Any>> {
        self.call("compete")?;
        let model = self.model.as_ref().ok_or(io::ErrorKind::Unsupported)?;
        Ok(Box::new(model.compete(processor)))
    }

    fn raise_priority(&self) -> io::Result<Box<dyn Any>> {
        self.call("raise priority")?;
        let model = self.model.as_ref().ok_or(io::ErrorKind::Unsupported)?;
        Ok(Box::new(model.raise_priority()))
    }

    fn addresses_of(&self, function: Function) -> Range<u64> {
        model::addresses_of(function)
    }

    fn trace(&self, plan: &TracePlan, sink: TraceSink) -> Result<Box<dyn TraceSession>, TraceError> {
        self.trace.start(plan, sink, self.model.as_ref())
    }
}
