//! Sessions of Event Tracing for Windows.

#![expect(unsafe_code, reason = "calls to Windows")]

use std::ffi::OsStr;
use std::io;
use std::mem::offset_of;
use std::os::windows::ffi::OsStrExt;
use std::os::windows::io::{FromRawHandle, OwnedHandle};
use std::path::Path;
use std::ptr::null;

use windows_sys::Win32::Foundation::{ERROR_ALREADY_EXISTS, ERROR_BAD_PATHNAME};
use windows_sys::Win32::System::Diagnostics::Etw::{
    CLASSIC_EVENT_ID, CONTROLTRACE_HANDLE, ControlTraceW, ENABLE_TRACE_PARAMETERS, ENABLE_TRACE_PARAMETERS_VERSION_2,
    EVENT_CONTROL_CODE_ENABLE_PROVIDER, EVENT_ENABLE_PROPERTY_STACK_TRACE, EVENT_TRACE_CONTROL,
    EVENT_TRACE_CONTROL_FLUSH, EVENT_TRACE_CONTROL_QUERY, EVENT_TRACE_CONTROL_STOP, EVENT_TRACE_FILE_MODE_SEQUENTIAL,
    EVENT_TRACE_FLAG, EVENT_TRACE_FLAG_CSWITCH, EVENT_TRACE_FLAG_DISPATCHER, EVENT_TRACE_FLAG_IMAGE_LOAD,
    EVENT_TRACE_FLAG_NO_SYSCONFIG, EVENT_TRACE_FLAG_PROCESS, EVENT_TRACE_FLAG_THREAD, EVENT_TRACE_PROPERTIES,
    EVENT_TRACE_REAL_TIME_MODE, EVENT_TRACE_SYSTEM_LOGGER_MODE, EnableTraceEx2, StartTraceW, TRACE_QUERY_INFO_CLASS,
    TracePmcCounterListInfo, TracePmcEventListInfo, TraceProfileSourceConfigInfo, TraceSetInformation,
    TraceStackTracingInfo, TraceSystemTraceEnableFlagsInfo, WNODE_FLAG_TRACED_GUID,
};
use windows_sys::Win32::System::Threading::CreateEventW;
use windows_sys::core::GUID;

use super::convert::{checked, wide};
use super::trace_consumer::Consumer;
use crate::hal::{COUNTERS, Carrier, HalPlan, SAMPLED, SwitchSession};
use crate::trace::profile::SAMPLE;
use crate::trace::raw::{DOTNET, DOTNET_RUNDOWN, Guid, HALPROF, PERF_INFO, THREAD};
use crate::trace::switches::SWITCH;
use crate::trace::{BufferSizes, TraceError, TraceLosses, TracePlan, TraceSession, TraceSink};

/// Maximum length of a name in UTF-16 units, with the terminating zero (documentation of EVENT_TRACE_PROPERTIES).
const NAME_LENGTH: usize = 1_024;

/// Clock of time stamps (documentation of WNODE_HEADER): the performance counter.
const PERFORMANCE_COUNTER: u32 = 1;

/// Seconds after which Windows delivers a buffer of a session in real time that is not full: the least possible. In a
/// file each of these buffers would take the room of a full one (documentation of EVENT_TRACE_PROPERTIES).
const FLUSH_TIMER: u32 = 1;

/// Name of the session whose events carry the HAL's counters, of which Windows has some for one.
const OF_HAL: &str = "halprof-counts";

/// The handle for information that belongs to no session (documentation of TRACE_QUERY_INFO_CLASS).
pub const EVERY_SESSION: CONTROLTRACE_HANDLE = CONTROLTRACE_HANDLE { Value: 0 };

/// The bit of samples of counters in the second of a session's eight masks (PERF_PMC_PROFILE of phnt, ntwmi.h). The
/// first one has EnableFlags.
const COUNTER_SAMPLES: u32 = 0x400;

/// Levels TRACE_LEVEL_INFORMATION and TRACE_LEVEL_VERBOSE.
const INFORMATION: u8 = 4;
const VERBOSE: u8 = 5;

/// Keywords of .NET: JitKeyword, and for methods that exist already StartRundownKeyword.
const JIT: u64 = 0x10;
const START_RUNDOWN: u64 = 0x40;

/// Flags of the events for context switches, for threads that become ready, and for their processes.
const WITH_SWITCHES: EVENT_TRACE_FLAG =
    EVENT_TRACE_FLAG_CSWITCH | EVENT_TRACE_FLAG_DISPATCHER | EVENT_TRACE_FLAG_THREAD;

/// Properties of a session, with room for its names.
#[repr(C)]
struct Properties {
    fixed: EVENT_TRACE_PROPERTIES,
    name: [u16; NAME_LENGTH],
    file: [u16; NAME_LENGTH],
}

/// Offset of the name of the file.
#[expect(clippy::cast_possible_truncation, reason = "a few KiB")]
const FILE_OFFSET: u32 = offset_of!(Properties, file) as u32;

impl Properties {
    #[expect(clippy::cast_possible_truncation, reason = "a few KiB")]
    fn new() -> Box<Self> {
        let mut fixed = EVENT_TRACE_PROPERTIES::default();
        fixed.Wnode.BufferSize = size_of::<Self>() as u32;
        fixed.Wnode.Flags = WNODE_FLAG_TRACED_GUID;
        fixed.Wnode.ClientContext = PERFORMANCE_COUNTER;
        fixed.LoggerNameOffset = offset_of!(Self, name) as u32;
        fixed.LogFileNameOffset = FILE_OFFSET;
        Box::new(Self { fixed, name: [0; NAME_LENGTH], file: [0; NAME_LENGTH] })
    }

    /// Returns the properties of a new session whose events are received.
    fn in_real_time(BufferSizes { kibibytes, minimum, maximum }: BufferSizes, flags: EVENT_TRACE_FLAG) -> Box<Self> {
        let mut properties = Self::new();
        let fixed = &mut properties.fixed;
        fixed.BufferSize = kibibytes;
        fixed.MinimumBuffers = minimum;
        fixed.MaximumBuffers = maximum;
        fixed.EnableFlags = flags;
        fixed.LogFileMode = EVENT_TRACE_REAL_TIME_MODE | EVENT_TRACE_SYSTEM_LOGGER_MODE;
        fixed.LogFileNameOffset = 0;
        fixed.FlushTimer = FLUSH_TIMER;
        properties
    }

    /// Returns the properties of a new session.
    fn of(plan: &TracePlan) -> io::Result<Box<Self>> {
        let switches = if plan.off_cpu { WITH_SWITCHES } else { 0 };
        let flags = EVENT_TRACE_FLAG_PROCESS | EVENT_TRACE_FLAG_IMAGE_LOAD | switches;
        let mut properties = Self::in_real_time(plan.buffers(), flags);
        if let Some(file) = &plan.file {
            let fixed = &mut properties.fixed;
            fixed.LogFileMode = EVENT_TRACE_FILE_MODE_SEQUENTIAL | EVENT_TRACE_SYSTEM_LOGGER_MODE;
            // Windows Performance Analyzer finds the process of an event by its thread.
            fixed.EnableFlags |= EVENT_TRACE_FLAG_THREAD;
            fixed.LogFileNameOffset = FILE_OFFSET;
            fixed.FlushTimer = 0;
            properties.set_file(file)?;
        }
        Ok(properties)
    }

    fn set_file(&mut self, file: &Path) -> io::Result<()> {
        // Windows writes the file in another process, which has another current directory.
        let path = std::path::absolute(file)?;
        let units: Vec<u16> = OsStr::encode_wide(path.as_os_str()).chain([0]).collect();
        let room = self
            .file
            .get_mut(..units.len())
            .ok_or_else(|| io::Error::from_raw_os_error(ERROR_BAD_PATHNAME.cast_signed()))?;
        room.copy_from_slice(&units);
        Ok(())
    }

    fn losses(&self) -> TraceLosses {
        let EVENT_TRACE_PROPERTIES { EventsLost, LogBuffersLost, RealTimeBuffersLost, .. } = self.fixed;
        TraceLosses { events: EventsLost.into(), buffers: u64::from(LogBuffersLost) + u64::from(RealTimeBuffersLost) }
    }
}

/// A session that was started. It is stopped when it is dropped.
struct Controller {
    handle: CONTROLTRACE_HANDLE,
    is_stopped: bool,
}

impl Controller {
    /// Starts a session. One with the same name was left by a client that was terminated; it is stopped.
    fn start(name: &[u16], properties: impl Fn() -> io::Result<Box<Properties>>) -> io::Result<Self> {
        let mut handle = CONTROLTRACE_HANDLE { Value: 0 };
        let mut start = || {
            let mut properties = properties()?;
            let fixed = (&raw mut *properties).cast();
            // SAFETY: the name is zero-terminated, `fixed` begins a structure of the size in its Wnode with the names
            // at the offsets in it, and all outlive the call.
            io::Result::Ok(unsafe { StartTraceW(&raw mut handle, name.as_ptr(), fixed) })
        };
        let mut code = start()?;
        if code == ERROR_ALREADY_EXISTS {
            control(CONTROLTRACE_HANDLE { Value: 0 }, name.as_ptr(), EVENT_TRACE_CONTROL_STOP)?;
            code = start()?;
        }
        checked(code)?;
        Ok(Self { handle, is_stopped: false })
    }

    /// Enables a provider in the session, with `property` of EVENT_ENABLE_PROPERTY.
    fn enable(&self, provider: Guid, level: u8, keywords: u64, property: u32) -> io::Result<()> {
        let provider = GUID::from_u128(provider);
        let parameters = ENABLE_TRACE_PARAMETERS {
            Version: ENABLE_TRACE_PARAMETERS_VERSION_2,
            EnableProperty: property,
            ..ENABLE_TRACE_PARAMETERS::default()
        };
        // SAFETY: the session is running, and the structures outlive the call.
        checked(unsafe {
            EnableTraceEx2(
                self.handle,
                &raw const provider,
                EVENT_CONTROL_CODE_ENABLE_PROVIDER,
                level,
                keywords,
                0,
                0, // without waiting for the provider
                &raw const parameters,
            )
        })
    }

    /// Enables what names the functions that .NET compiles. Without it only their names are missing.
    fn name_functions(&self) {
        for (provider, keywords) in [(DOTNET, JIT), (DOTNET_RUNDOWN, JIT | START_RUNDOWN)] {
            let _ = self.enable(provider, VERBOSE, keywords, 0);
        }
    }

    fn stop(&mut self) -> io::Result<TraceLosses> {
        self.is_stopped = true;
        // Windows documents the statistics for both. Those of a query are kept if the session has ended meanwhile.
        let queried = control(self.handle, null(), EVENT_TRACE_CONTROL_QUERY);
        let stopped = control(self.handle, null(), EVENT_TRACE_CONTROL_STOP)?;
        let TraceLosses { events, buffers } = queried.unwrap_or_default();
        Ok(TraceLosses { events: events.max(stopped.events), buffers: buffers.max(stopped.buffers) })
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        if !self.is_stopped {
            // A failure has no remedy.
            let _ = self.stop();
        }
    }
}

/// Queries or stops a session, by its handle or its name. Returns its losses.
fn control(handle: CONTROLTRACE_HANDLE, name: *const u16, code: EVENT_TRACE_CONTROL) -> io::Result<TraceLosses> {
    let mut properties = Properties::new();
    let fixed = (&raw mut *properties).cast();
    // SAFETY: the name is null or zero-terminated, `fixed` begins a structure of the size in its Wnode with room for
    // the names at the offsets in it, and all outlive the call.
    checked(unsafe { ControlTraceW(handle, name, fixed, code) })?;
    Ok(properties.losses())
}

/// A session with its consumer.
struct Session {
    controller: Controller,
    /// `None` if Windows writes a file.
    consumer: Option<Consumer>,
}

impl TraceSession for Session {
    fn stop(&mut self) -> io::Result<TraceLosses> {
        let losses = self.controller.stop();
        if let Some(consumer) = self.consumer.take() {
            consumer.finish();
        }
        losses
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // The consumer ends when the session is stopped.
        if self.consumer.is_some() {
            let _ = self.stop();
        }
    }
}

/// Starts a session whose events carry the HAL's counters.
pub fn start_hal(plan: &HalPlan, sink: TraceSink) -> Result<Box<dyn SwitchSession>, TraceError> {
    let name = wide(OF_HAL);
    let flags = EVENT_TRACE_FLAG_THREAD
        | EVENT_TRACE_FLAG_PROCESS
        | match plan.carrier {
            Carrier::Switches => EVENT_TRACE_FLAG_CSWITCH,
            Carrier::Samples { with_stacks: true, off_cpu: true, .. } => EVENT_TRACE_FLAG_IMAGE_LOAD | WITH_SWITCHES,
            Carrier::Samples { with_stacks: true, .. } => EVENT_TRACE_FLAG_IMAGE_LOAD,
            Carrier::Samples { .. } => 0,
        };
    let properties = || Ok(Properties::in_real_time(plan.buffers(), flags | EVENT_TRACE_FLAG_NO_SYSCONFIG));
    let controller = Controller::start(&name, properties).map_err(TraceError::at("StartTrace"))?;
    let (handle, sources) = (controller.handle, plan.sources.as_slice());
    match plan.carrier {
        Carrier::Switches => {
            // The counters before the events that carry them: of an event without counters, Windows documents nothing.
            set_information(handle, TracePmcCounterListInfo, sources).map_err(TraceError::at(COUNTERS))?;
            let events = set_information(handle, TracePmcEventListInfo, &[event(THREAD, SWITCH)]);
            events.map_err(TraceError::at("TraceSetInformation(TracePmcEventListInfo)"))?;
        }
        Carrier::Samples { with_stacks, off_cpu, .. } => {
            if with_stacks {
                let events = [event(PERF_INFO, SAMPLE), event(THREAD, SWITCH)];
                walk_stacks(handle, events.get(..if off_cpu { 2 } else { 1 }).unwrap_or_default())?;
            }
            set_information(EVERY_SESSION, TraceProfileSourceConfigInfo, sources).map_err(TraceError::at(SAMPLED))?;
            let masks = [flags, COUNTER_SAMPLES, 0, 0, 0, 0, 0, 0];
            let events = set_information(handle, TraceSystemTraceEnableFlagsInfo, &masks);
            events.map_err(TraceError::at("TraceSetInformation(TraceSystemTraceEnableFlagsInfo)"))?;
            if with_stacks {
                controller.name_functions();
            }
        }
    }
    let consumer = Some(Consumer::start(name, sink).map_err(TraceError::at("OpenTrace"))?);
    Ok(Box::new(Session { controller, consumer }))
}

/// Reserves the session of the HAL's counters for this program, until the result is closed or the program ends in any
/// way. A session of that name is a leftover then.
pub fn reserve() -> io::Result<OwnedHandle> {
    let name = wide(&format!("Global\\{OF_HAL}"));
    // SAFETY: the attributes may be null, and the name is zero-terminated.
    let handle = unsafe { CreateEventW(null(), 1, 0, name.as_ptr()) };
    let error = io::Error::last_os_error();
    if handle.is_null() {
        return Err(error);
    }
    // SAFETY: the call succeeded, so this is a valid handle, and nothing else owns it.
    let handle = unsafe { OwnedHandle::from_raw_handle(handle) };
    if error.raw_os_error() == Some(ERROR_ALREADY_EXISTS.cast_signed()) { Err(error) } else { Ok(handle) }
}

/// Sets information of a session, or of the system.
pub fn set_information<T>(
    session: CONTROLTRACE_HANDLE,
    class: TRACE_QUERY_INFO_CLASS,
    information: &[T],
) -> io::Result<()> {
    let bytes = u32::try_from(size_of_val(information)).map_err(io::Error::other)?;
    // SAFETY: the session is running, and the information has the given size and outlives the call.
    checked(unsafe { TraceSetInformation(session, class, information.as_ptr().cast(), bytes) })
}

impl SwitchSession for Session {
    fn flush(&mut self) -> io::Result<()> {
        control(self.controller.handle, null(), EVENT_TRACE_CONTROL_FLUSH).map(drop)
    }
}

/// Returns the name of a classic event.
fn event(class: Guid, opcode: u8) -> CLASSIC_EVENT_ID {
    CLASSIC_EVENT_ID { EventGuid: GUID::from_u128(class), Type: opcode, ..CLASSIC_EVENT_ID::default() }
}

/// Makes Windows walk the stacks of these events, in place of those before.
fn walk_stacks(session: CONTROLTRACE_HANDLE, events: &[CLASSIC_EVENT_ID]) -> Result<(), TraceError> {
    let set = set_information(session, TraceStackTracingInfo, events);
    set.map_err(TraceError::at("TraceSetInformation(TraceStackTracingInfo)"))
}

/// Starts a session.
pub fn start(plan: &TracePlan, sink: TraceSink) -> Result<Box<dyn TraceSession>, TraceError> {
    let name = wide(&format!("halprof-{}", std::process::id()));
    let controller = Controller::start(&name, || Properties::of(plan)).map_err(TraceError::at("StartTrace"))?;
    if plan.off_cpu {
        walk_stacks(controller.handle, &[event(THREAD, SWITCH)])?;
    }
    let consumer = match plan.file {
        Some(_) => None,
        None => Some(Consumer::start(name, sink).map_err(TraceError::at("OpenTrace"))?),
    };
    let samples = protocol::trace::keywords::SAMPLES;
    let session = Session { controller, consumer };
    let enabled = session.controller.enable(HALPROF, INFORMATION, samples, EVENT_ENABLE_PROPERTY_STACK_TRACE);
    enabled.map_err(TraceError::at("EnableTraceEx2"))?;
    session.controller.name_functions();
    Ok(Box::new(session))
}
