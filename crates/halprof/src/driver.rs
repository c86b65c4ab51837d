//! The open driver: one method per request. Replies are validated.

use std::cell::OnceCell;

use events::import::Imported;
use pmu::Hypervisor;
use protocol::{
    ALL_SOURCES, AreaRecord, AreaRequest, Code, CoreTypeRecord, CountRecord, ErrorCode, Event, EventRequest,
    GroupReply, GroupRequest, HalSourceRecord, Hello, HelloReply, InfoReply, IntervalRequest, MAX_EVENTS,
    PROCESSOR_WORDS, PROTOCOL_VERSION, RegisterRecord, RegistersRequest, ReplyHeader, SessionEvent, SessionRequest,
    SourceRecord, SourceRequest, StartHeader, StopRequest,
};
use zerocopy::{FromBytes, FromZeros, IntoBytes};

use crate::core_types::{CoreTypeInfo, SourceOnType};
use crate::device::{Backend, Device, Task};
use crate::error::Error;
use crate::event::alone;
use crate::event::event_cache::{CacheError, EventCache};
use crate::hal_error::HalError;
use crate::open::OpenError;
use crate::refusal::Refusal;
use crate::reply::{InvalidReply, Reply};
use crate::request::{invalid, name, unanswered};
use crate::request_error::RequestError;
use crate::sample_stream::SampleStream;
use crate::sessions::{self, RunningSession};
use crate::source::Sources;
use crate::text::unavailable::Unavailable;

/// Number of records that fit into the first buffer of a request.
const FIRST_ROOM: usize = 256;

/// Bytes for a reply that is one structure, or for the records of its refusal.
const LAYOUT_ROOM: usize = 512;

/// Maximum number of records in a list: every event of the largest session on every processor.
const MAX_RECORDS: usize = MAX_EVENTS * PROCESSOR_WORDS * 64;

/// Number of requests for a list that grows between two requests.
const ATTEMPTS: usize = 4;

/// An open handle to a driver of the same protocol version.
///
/// The driver stops the sessions that were started with a handle when it is closed, except detached ones.
pub struct Driver {
    device: Box<dyn Device>,
    hello: HelloReply,
    sources: OnceCell<Sources>,
    core_types: OnceCell<Vec<CoreTypeInfo>>,
    unavailable: OnceCell<Option<Unavailable>>,
    cache: EventCache,
}

/// A session that was started.
#[derive(Debug, Clone, Copy)]
pub struct Started {
    /// Number of the session.
    pub session: u64,
    /// Units per second of [`SampleRecord::time`](protocol::SampleRecord::time).
    pub clock: u64,
}

/// The counts of a session.
#[derive(Debug, Clone)]
pub struct Reading {
    /// One record for each event and processor.
    pub records: Vec<CountRecord>,
    /// Whether the session has yielded to another.
    pub has_yielded: bool,
}

impl Driver {
    /// Opens the driver and checks its protocol version. Enables the privilege to profile the system, if the account
    /// has it, and uses the events that `.\client events import` has stored for the machine, or else for this account.
    ///
    /// # Errors
    /// If the driver cannot be opened, or has another protocol version.
    #[cfg(windows)]
    pub fn open() -> Result<Self, Error> {
        use crate::windows::{DeviceHandle, SYSTEM_PROFILE, enable_privilege, service_state};

        // The privilege is disabled in an elevated token. If the token does not have it, the driver refuses access.
        let _ = enable_privilege(SYSTEM_PROFILE);
        let device = DeviceHandle::open().map_err(|cause| OpenError::new(cause, service_state))?;
        Ok(Self::over(Box::new(device))?.with_imported_events(EventCache::of_this_account()))
    }

    /// Returns the error of a system on which the driver does not run.
    ///
    /// # Errors
    /// Always.
    #[cfg(not(windows))]
    pub fn open() -> Result<Self, Error> {
        Err(OpenError::NotWindows.into())
    }

    /// Checks the protocol version of an open device, and takes it over.
    ///
    /// # Errors
    /// If the driver does not answer, or has another protocol version.
    pub fn over(device: Box<dyn Device>) -> Result<Self, Error> {
        let mut driver = Self {
            device,
            hello: HelloReply::new_zeroed(),
            sources: OnceCell::new(),
            core_types: OnceCell::new(),
            unavailable: OnceCell::new(),
            cache: EventCache::default(),
        };
        let ours = Hello { version: PROTOCOL_VERSION, reserved: 0 };
        driver.hello = driver.layout(Code::Hello, ours.as_bytes())?;
        let theirs = driver.hello.protocol;
        if theirs != PROTOCOL_VERSION {
            let cause = ErrorCode::VersionMismatch as u32;
            let detail = [PROTOCOL_VERSION.into(), theirs.into()];
            let header = ReplyHeader { cause, detail, ..driver.hello.header };
            return Err(driver.refusal(Code::Hello, header, &[]).into());
        }
        Ok(driver)
    }

    /// Uses imported events, in addition to those that the library knows.
    #[must_use]
    pub fn with_imported_events(self, cache: EventCache) -> Self {
        Self { cache, ..self }
    }

    /// Returns what counts: the driver, or the HAL of Windows without it.
    pub fn backend(&self) -> Backend {
        self.device.backend()
    }

    /// Checks that the driver serves, because only it has `what`.
    ///
    /// # Errors
    /// If it does not.
    pub fn check_driver(&self, what: &'static str) -> Result<(), Error> {
        if self.backend().counts_processes { Err(HalError::NeedsDriver { what }.into()) } else { Ok(()) }
    }

    /// Restricts a session to a thread, or to a process and those that it starts. It can be called for several of them.
    ///
    /// # Errors
    /// If the backend does not count them.
    pub fn follow(&self, session: u64, task: Task) -> Result<(), Error> {
        self.device.follow(session, task).map_err(|cause| unanswered(Code::Start, cause))
    }

    /// Returns what is to be said of the session that was stopped last, in sentences.
    pub fn remarks(&self) -> Vec<String> {
        self.device.remarks()
    }

    /// Returns the version of the driver: `1.2.3`, or `none` without it.
    pub fn driver_version(&self) -> String {
        if self.backend() == Backend::DRIVER { version(self.hello.driver) } else { "none".to_owned() }
    }

    /// Returns the events that were imported.
    ///
    /// # Errors
    /// If the file of imported events is damaged, or cannot be read.
    pub fn imported(&self) -> Result<Option<Imported>, CacheError> {
        self.cache.load()
    }

    /// Returns the profile interface and its properties.
    ///
    /// # Errors
    /// If the driver does not answer or refuses, or if its reply is invalid.
    pub fn info(&self) -> Result<InfoReply, Error> {
        self.layout(Code::Info, &[])
    }

    /// Returns every source of the driver. They are requested once.
    ///
    /// # Errors
    /// If the driver does not answer or refuses, or if its reply is invalid.
    pub fn sources(&self) -> Result<&Sources, Error> {
        if let Some(sources) = self.sources.get() {
            return Ok(sources);
        }
        let records = self.list::<SourceRecord>(Code::ListSources, &[])?;
        Ok(self.sources.get_or_init(|| Sources::new(&records)))
    }

    /// Returns the core types of a hybrid; none on other machines. They are requested once.
    ///
    /// # Errors
    /// If the driver does not answer or refuses, or if its reply is invalid.
    pub fn core_types(&self) -> Result<&[CoreTypeInfo], Error> {
        if let Some(core_types) = self.core_types.get() {
            return Ok(core_types);
        }
        let core_types = self.request_core_types()?;
        Ok(self.core_types.get_or_init(|| core_types))
    }

    /// As [`core_types`](Self::core_types), requested again: the first session may show that some counters do not work.
    ///
    /// # Errors
    /// If the driver does not answer or refuses, or if its reply is invalid.
    pub fn request_core_types(&self) -> Result<Vec<CoreTypeInfo>, Error> {
        let records = self.list::<CoreTypeRecord>(Code::ListCoreTypes, &[])?;
        Ok(records.iter().map(CoreTypeInfo::from).collect())
    }

    /// Returns why the machine has no counters; `None` if it has some. It is requested once.
    ///
    /// # Errors
    /// If the driver does not answer or refuses, or if its reply is invalid.
    pub fn unavailable(&self) -> Result<Option<Unavailable>, Error> {
        if let Some(unavailable) = self.unavailable.get() {
            return Ok(*unavailable);
        }
        let info = self.info()?;
        Ok(*self.unavailable.get_or_init(|| Unavailable::of_machine(&info)))
    }

    /// Returns what a source is on each core type of a hybrid; none on other machines.
    ///
    /// # Errors
    /// If the driver does not answer or refuses, or if its reply is invalid.
    pub fn on_core_types(&self, source: u64) -> Result<Vec<SourceOnType>, Error> {
        let on_type = |one: &CoreTypeInfo| Ok(SourceOnType::from(&self.source(source, one.number)?));
        self.core_types()?.iter().map(on_type).collect()
    }

    /// Returns the current state of a source, on processors of a core type or, with 0, on all.
    ///
    /// # Errors
    /// If the driver does not answer or refuses, or if its reply is invalid.
    pub fn source(&self, source: u64, core_type: u32) -> Result<SourceRecord, Error> {
        let request = SourceRequest { source, core_type, reserved: 0 };
        self.one_source(Code::QuerySource, request.as_bytes(), source)
    }

    /// Sets the interval of a source. The reply has the new and the previous interval.
    ///
    /// # Errors
    /// If the driver does not answer or refuses, or if its reply is invalid.
    pub fn set_interval(&self, source: u64, interval: u32) -> Result<SourceRecord, Error> {
        let request = IntervalRequest { source, interval, reserved: 0 };
        self.one_source(Code::SetInterval, request.as_bytes(), source)
    }

    /// Starts a session, which counts the events on the processors of `header`, or samples them if it has a ring.
    ///
    /// It runs until it is stopped or, unless it is [detached](protocol::flags::DETACHED), until the driver is dropped.
    ///
    /// # Errors
    /// If the driver refuses: the [kind](Error::kind) tells why. Nothing has started then.
    pub fn start(&self, header: &StartHeader, events: &[EventRequest]) -> Result<Started, Error> {
        if events.len() > MAX_EVENTS {
            return Err(RequestError::TooManyEvents { given: events.len() }.into());
        }
        // An event by its maker's name was looked for in the list of sources.
        if let Some(sources) = self.sources.get() {
            alone::check(events, sources)?;
        }
        let input = [header.as_bytes(), events.as_bytes()].concat();
        let reply = self.send_request::<SessionEvent>(Code::Start, &input, FIRST_ROOM)?;
        if reply.header.cause == ErrorCode::GroupTooLarge as u32 {
            return Err(self.refused_group(reply.header, events));
        }
        self.check(Code::Start, &reply)?;
        let [session, clock] = reply.header.detail;
        Ok(Started { session, clock })
    }

    /// Returns the refusal of a group of events, with the names of those that fit on the counters.
    fn refused_group(&self, header: ReplyHeader, events: &[EventRequest]) -> Error {
        let refused = events.iter().find(|event| event.event.source == header.source && event.group != 0);
        let members = events.iter().filter(|event| refused.is_some_and(|refused| refused.group == event.group));
        let [_, part] = header.detail;
        let fitting = (0_u32..).zip(members).filter(|(number, _)| part.checked_shr(*number).unwrap_or(0) & 1 == 1);
        let unnamed = Sources::default();
        let sources = self.sources().unwrap_or(&unnamed);
        let without_counters =
            |event: &EventRequest| EventRequest { event: Event { counters: 0, ..event.event }, ..*event };
        let part = fitting.map(|(_, event)| sources.label(&without_counters(event))).collect();
        Refusal { part, ..self.refusal(Code::Start, header, &[]) }.into()
    }

    /// Returns the samples of a session, for a thread of their own.
    pub fn sample_stream(&self, session: u64) -> SampleStream {
        SampleStream::new(self.device.share(), session)
    }

    /// Stops a source of a session, with a core type only its events of that type, and returns the final counts: one
    /// record for each event and processor.
    ///
    /// # Errors
    /// If the source does not run in the session.
    pub fn stop(&self, session: u64, source: u64, core_type: u32) -> Result<Vec<CountRecord>, Error> {
        // The driver returns the final counts only once, so the buffer must be large enough for all that run now.
        let running =
            self.send_request::<CountRecord>(Code::Read, SessionRequest { session }.as_bytes(), 0)?.header.total;
        let room = next_capacity(Code::Read, running)?;
        let request = StopRequest { session, source, core_type, reserved: 0 };
        let reply = self.succeed::<CountRecord>(Code::Stop, request.as_bytes(), room + FIRST_ROOM)?;
        reply.records().map_err(|cause| invalid(Code::Stop, cause))
    }

    /// Stops all sources of a session and returns their final counts.
    ///
    /// # Errors
    /// If the session does not exist.
    pub fn stop_all(&self, session: u64) -> Result<Vec<CountRecord>, Error> {
        self.stop(session, ALL_SOURCES, 0)
    }

    /// Returns the counts of a session on the processor on which the request arrives; `flags` are bits of
    /// [`group_flags`](protocol::group_flags).
    ///
    /// # Errors
    /// If the driver refuses: the session has no such group on this processor.
    pub fn read_group(&self, session: u64, flags: u32) -> Result<GroupReply, Error> {
        self.layout(Code::ReadGroup, GroupRequest { session, flags, reserved: 0 }.as_bytes())
    }

    /// Returns the counts of a session, or of all detached sessions with [`DETACHED`](protocol::DETACHED): one record
    /// for each event and processor.
    ///
    /// # Errors
    /// If the session does not exist.
    pub fn read(&self, session: u64) -> Result<Vec<CountRecord>, Error> {
        self.list(Code::Read, SessionRequest { session }.as_bytes())
    }

    /// Returns the counts of a session as [`read`](Self::read) does, and whether it has
    /// [yielded](protocol::flags::YIELDS): then they are final, and it remains to be stopped.
    ///
    /// # Errors
    /// If the session does not exist.
    pub fn reading(&self, session: u64) -> Result<Reading, Error> {
        let reply = self.complete::<CountRecord>(Code::Read, SessionRequest { session }.as_bytes())?;
        let records = reply.records().map_err(|cause| invalid(Code::Read, cause))?;
        Ok(Reading { records, has_yielded: reply.header.detail[0] != 0 })
    }

    /// Sends a request about control areas and returns the state of each.
    ///
    /// # Errors
    /// If the driver does not answer or refuses, or if its reply is invalid.
    pub fn control_areas(&self, request: &AreaRequest) -> Result<Vec<AreaRecord>, Error> {
        // The request must not be repeated with a larger buffer, because it would be executed twice.
        let reply = self.succeed::<AreaRecord>(Code::ControlArea, request.as_bytes(), PROCESSOR_WORDS * 64)?;
        reply.records().map_err(|cause| invalid(Code::ControlArea, cause))
    }

    /// Returns the registers of a processor as they are.
    ///
    /// # Errors
    /// If the driver does not answer or refuses, or if its reply is invalid.
    pub fn registers(&self, processor: u32) -> Result<Vec<RegisterRecord>, Error> {
        self.list(Code::ReadRegisters, RegistersRequest { processor, reserved: 0 }.as_bytes())
    }

    /// Returns what the HAL of Windows says about each source of the driver.
    ///
    /// # Errors
    /// If the driver does not answer or refuses, or if its reply is invalid.
    pub fn hal_sources(&self) -> Result<Vec<HalSourceRecord>, Error> {
        self.list(Code::ListHalSources, &[])
    }

    /// Returns the sessions and their events.
    ///
    /// # Errors
    /// If the driver does not answer or refuses, or if its reply is invalid.
    pub fn sessions(&self) -> Result<Vec<RunningSession>, Error> {
        let session_events = self.list::<SessionEvent>(Code::ListSessions, &[])?;
        Ok(sessions::by_session(&session_events, self.sources()?))
    }

    fn one_source(&self, code: Code, input: &[u8], source: u64) -> Result<SourceRecord, Error> {
        let reply = self.succeed::<SourceRecord>(code, input, 1)?;
        let records = reply.records::<SourceRecord>().map_err(|cause| invalid(code, cause))?;
        match records.first() {
            Some(record) if record.source == source => Ok(*record),
            Some(record) => Err(invalid(code, InvalidReply::OtherSource { wanted: source, got: record.source })),
            None => Err(invalid(code, InvalidReply::MissingRecords { announced: 1, got: 0 })),
        }
    }

    /// Sends a request that has one fixed structure as its reply.
    fn layout<T: FromBytes>(&self, code: Code, input: &[u8]) -> Result<T, Error> {
        const { assert!(size_of::<T>() <= LAYOUT_ROOM) };
        let mut buffer = [0; LAYOUT_ROOM];
        let reply = self.send_into(code, input, &mut buffer[..])?;
        self.check(code, &reply)?;
        reply.layout().map_err(|cause| invalid(code, cause))
    }

    /// Sends a request that has a list as its reply, and repeats it with a larger buffer until the list is complete.
    fn list<T: FromBytes + IntoBytes>(&self, code: Code, input: &[u8]) -> Result<Vec<T>, Error> {
        self.complete::<T>(code, input)?.records().map_err(|cause| invalid(code, cause))
    }

    /// Returns the reply of [`list`](Self::list).
    fn complete<T: FromBytes + IntoBytes>(&self, code: Code, input: &[u8]) -> Result<Reply, Error> {
        let mut room = FIRST_ROOM;
        for _ in 0..ATTEMPTS {
            let reply = self.succeed::<T>(code, input, room)?;
            reply.record_bytes::<T>().map_err(|cause| invalid(code, cause))?;
            if reply.header.total == reply.header.count {
                return Ok(reply);
            }
            room = next_capacity(code, reply.header.total)? + FIRST_ROOM;
        }
        Err(invalid(code, InvalidReply::Growing))
    }

    /// Sends a request; a refusal by the driver is an error.
    fn succeed<T: FromBytes + IntoBytes>(&self, code: Code, input: &[u8], room: usize) -> Result<Reply, Error> {
        let reply = self.send_request::<T>(code, input, room)?;
        self.check(code, &reply)?;
        Ok(reply)
    }

    /// Returns the refusal as an error if the driver has not served the request.
    fn check<B: AsRef<[u8]>>(&self, code: Code, reply: &Reply<B>) -> Result<(), Error> {
        if reply.is_success() {
            return Ok(());
        }
        let session_events = match ErrorCode::from_number(reply.header.cause) {
            Some(ErrorCode::NoFreeCounter | ErrorCode::ThreadsConflict) => {
                reply.records::<SessionEvent>().map_err(|cause| invalid(code, cause))?
            }
            _ => Vec::new(),
        };
        Err(self.refusal(code, reply.header, &session_events).into())
    }

    fn send_request<T>(&self, code: Code, input: &[u8], room: usize) -> Result<Reply, Error> {
        self.send_into(code, input, vec![0; size_of::<ReplyHeader>() + room * size_of::<T>()])
    }

    /// Sends a request whose reply is written into the buffer.
    fn send_into<B: AsRef<[u8]> + AsMut<[u8]>>(
        &self,
        code: Code,
        input: &[u8],
        mut buffer: B,
    ) -> Result<Reply<B>, Error> {
        let length = self.device.request(code, input, buffer.as_mut()).map_err(|cause| unanswered(code, cause))?;
        Reply::new(buffer, length).map_err(|cause| invalid(code, cause))
    }

    fn refusal(&self, code: Code, header: ReplyHeader, session_events: &[SessionEvent]) -> Refusal {
        // If the sources cannot be listed, the refusal is reported without names. A refused request for the list itself
        // must not be repeated.
        let unnamed = Sources::default();
        let askable = !matches!(code, Code::Hello | Code::ListSources | Code::ListCoreTypes);
        let sources = if askable { self.sources().unwrap_or(&unnamed) } else { &unnamed };
        Refusal {
            request: name(code),
            source: sources.refused_name(header.source),
            part: Vec::new(),
            sessions: sessions::by_session(session_events, sources),
            core_types: if depends_on_core_types(&header) && askable {
                self.core_types().unwrap_or_default().to_vec()
            } else {
                Vec::new()
            },
            is_root: code == Code::Start && header.cause == ErrorCode::CountersDoNotWork as u32 && self.is_root(),
            header,
        }
    }

    /// Returns whether the driver reports that this Windows is the root partition of Hyper-V.
    fn is_root(&self) -> bool {
        self.info().is_ok_and(|info| info.hypervisor == Hypervisor::Root as u32)
    }
}

/// Returns whether the text of a refusal names the core types of the machine.
fn depends_on_core_types(header: &ReplyHeader) -> bool {
    match ErrorCode::from_number(header.cause) {
        Some(ErrorCode::CoreTypeNeeded | ErrorCode::NoSuchCoreType) => true,
        Some(ErrorCode::UnsupportedSource) => header.detail[1] == 1,
        _ => false,
    }
}

/// Returns the number of records for the next buffer if the driver reports `total` records.
fn next_capacity(code: Code, total: u32) -> Result<usize, Error> {
    let room = total as usize;
    if room <= MAX_RECORDS { Ok(room) } else { Err(invalid(code, InvalidReply::Absurd { total })) }
}

/// Formats a version. The last of its four parts is always zero.
#[must_use]
pub fn version([major, minor, patch, _]: [u16; 4]) -> String {
    format!("{major}.{minor}.{patch}")
}
