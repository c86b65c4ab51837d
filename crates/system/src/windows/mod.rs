//! The calls to Windows: the only unsafe code of the client. Those that open the driver are in the library.

mod agent_service;
mod code_integrity;
mod competition;
mod console;
mod convert;
mod directory;
mod hal;
mod job;
mod known_work;
pub mod libraries;
mod modules;
mod native_machine;
mod profile_objects;
mod provider_security;
mod registry;
mod service;
mod speed;
mod tasks;
mod topology;
mod trace;
mod trace_consumer;
mod version;
mod volumes;

use std::any::Any;
use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, LazyLock};
use std::thread::sleep;
use std::time::Duration;

use halprof::event::event_cache::EventCache;
use halprof::protected::Volume;
use halprof::windows::{
    DEBUG, DeviceHandle, EnabledPrivilege, SYSTEM_PROFILE, WindowsSystem, WindowsVolume, enable_privilege,
    program_files, service_state,
};
use halprof::{Device, SERVICE, ServiceState};

pub use self::speed::times_of_child;
use crate::hal::HalCalls;
use crate::known_work::{CALLS, Function, KnownWork};
use crate::topology::Topology;
use crate::trace::{TraceError, TracePlan, TraceSession, TraceSink, paths};
use crate::{
    AGENT_PROGRAM, AgentService, CodeIntegrity, LoadedModule, OpenTask, ProcessSource, RunningProcess, ServiceBody,
    StartedProcesses, System, Task, VolumeUser, WindowsVersion,
};

/// This machine.
pub struct Windows;

impl System for Windows {
    fn event_cache(&self) -> EventCache {
        EventCache::of_this_account()
    }

    fn open(&self) -> io::Result<Box<dyn Device>> {
        // The privilege is disabled in an elevated token. If the token does not have it, the driver refuses access.
        let _ = enable_privilege(SYSTEM_PROFILE);
        Ok(Box::new(DeviceHandle::open()?))
    }

    fn hal(&self) -> Option<Arc<dyn HalCalls>> {
        // If the token does not have it, the functions for profile sources refuse access.
        let _ = enable_privilege(SYSTEM_PROFILE);
        Some(Arc::new(hal::Calls))
    }

    fn service(&self) -> io::Result<Option<ServiceState>> {
        service_state()
    }

    fn image(&self) -> io::Result<Option<String>> {
        service::image()
    }

    fn register(&self) -> io::Result<bool> {
        service::register()
    }

    fn start(&self) -> io::Result<()> {
        service::start()
    }

    fn stop(&self) -> io::Result<()> {
        service::stop()
    }

    fn delete(&self) -> io::Result<()> {
        service::delete()
    }

    fn agent(&self) -> io::Result<Option<AgentService>> {
        agent_service::query()
    }

    fn register_agent(&self, program: &Path, arguments: Vec<OsString>) -> io::Result<()> {
        agent_service::register(program, arguments)
    }

    fn set_agent_command(&self, command: &OsStr) -> io::Result<()> {
        agent_service::set_command(command)
    }

    fn agent_program(&self) -> io::Result<PathBuf> {
        Ok(program_files().ok_or(io::ErrorKind::NotFound)?.join(AGENT_PROGRAM))
    }

    fn volume(&self, user: VolumeUser) -> io::Result<Box<dyn Volume>> {
        Ok(Box::new(match user {
            VolumeUser::Administrator => WindowsVolume::new(),
            VolumeUser::Service => WindowsVolume::of_service()?,
        }))
    }

    fn start_agent(&self) -> io::Result<()> {
        agent_service::start()
    }

    fn stop_agent(&self) -> io::Result<bool> {
        agent_service::stop()
    }

    fn delete_agent(&self) -> io::Result<bool> {
        agent_service::delete()
    }

    fn serve_agent(&self, body: ServiceBody) -> io::Result<()> {
        agent_service::serve(body)
    }

    fn driver_path(&self) -> io::Result<PathBuf> {
        Ok(directory::windows()?.join("System32").join("drivers").join(format!("{SERVICE}.sys")))
    }

    fn provider_descriptor(&self) -> io::Result<Option<Vec<u8>>> {
        provider_security::read()
    }

    fn set_provider_descriptor(&self, descriptor: &[u8]) -> io::Result<()> {
        provider_security::write(descriptor)
    }

    fn remove_provider_descriptor(&self) -> io::Result<()> {
        provider_security::remove()
    }

    fn code_integrity(&self) -> io::Result<CodeIntegrity> {
        code_integrity::query()
    }

    fn is_emulated(&self) -> bool {
        native_machine::is_arm64()
    }

    fn windows_version(&self) -> WindowsVersion {
        version::query()
    }

    fn pause(&self) {
        sleep(Duration::from_millis(50));
    }

    fn note_interrupts(&self) -> io::Result<()> {
        console::note_interrupts()
    }

    fn interrupted(&self) -> bool {
        console::interrupted()
    }

    fn end_children_with_this(&self) -> io::Result<()> {
        job::end_children_with_this()
    }

    fn started_processes(&self) -> io::Result<Box<dyn StartedProcesses>> {
        Ok(Box::new(job::started_processes()?))
    }

    fn shows_progress(&self, command: bool) -> bool {
        io::stderr().is_terminal() && !(command && io::stdout().is_terminal())
    }

    fn process_source(&self) -> Box<dyn ProcessSource> {
        Box::new(Processes { _debug: EnabledPrivilege::new(DEBUG) })
    }

    fn tsc_frequency(&self) -> Option<u64> {
        speed::tsc_frequency()
    }

    fn processor_time(&self) -> Option<Duration> {
        speed::processor_time()
    }

    fn topology(&self) -> io::Result<Topology> {
        topology::query()
    }

    fn execute(&self, processor: u32, work: &[KnownWork]) -> io::Result<()> {
        known_work::execute(processor, work)
    }

    fn execute_in_calls(&self, processor: u32, work: &[KnownWork]) -> io::Result<[u64; CALLS]> {
        known_work::execute_in_calls(processor, work)
    }

    fn thread_system(&self) -> Rc<dyn halprof::system::System> {
        Rc::new(WindowsSystem::new())
    }

    fn compete(&self, processor: u32) -> io::Result<Box<dyn Any>> {
        Ok(Box::new(competition::compete(processor)?))
    }

    fn raise_priority(&self) -> io::Result<Box<dyn Any>> {
        Ok(Box::new(competition::raise_priority()?))
    }

    fn addresses_of(&self, function: Function) -> Range<u64> {
        known_work::addresses(function)
    }

    fn trace(&self, plan: &TracePlan, sink: TraceSink) -> Result<Box<dyn TraceSession>, TraceError> {
        trace::start(plan, sink)
    }
}

/// The processes of this machine. Without the privilege, processes of other users cannot be opened, and Windows 11
/// hides the addresses of the kernel from 24H2 on. It is enabled as long as processes are queried.
struct Processes {
    _debug: EnabledPrivilege,
}

impl ProcessSource for Processes {
    fn threads(&self) -> io::Result<Vec<(u32, u32)>> {
        modules::threads()
    }

    fn processes(&self) -> io::Result<Vec<RunningProcess>> {
        modules::processes()
    }

    fn modules(&self, process: u32) -> io::Result<Vec<LoadedModule>> {
        modules::of_process(process)
    }

    fn open(&self, task: Task) -> io::Result<Box<dyn OpenTask>> {
        Ok(Box::new(tasks::open(task)?))
    }

    fn kernel_modules(&self) -> io::Result<Vec<LoadedModule>> {
        modules::of_kernel(&directory::windows()?)
    }

    fn win32_path(&self, path: &str) -> PathBuf {
        static DRIVES: LazyLock<Vec<(String, String)>> = LazyLock::new(volumes::drives);
        paths::win32_path(path, &DRIVES).into()
    }
}
