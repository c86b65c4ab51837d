//! The connection to the driver: one method per request. Replies are validated.

use std::cell::OnceCell;
use std::io;
use std::path::PathBuf;

use events::import::Imported;
use halprof::Device;
use pmu::Hypervisor;
use protocol::{
    ALL_SOURCES, AreaRecord, AreaRequest, Code, CoreTypeRecord, CountRecord, ErrorCode, EventRequest, HalSourceRecord,
    Hello, HelloReply, InfoReply, IntervalRequest, MAX_EVENTS, PROCESSOR_WORDS, PROTOCOL_VERSION, RegisterRecord,
    RegistersRequest, ReplyHeader, SessionEvent, SessionRequest, SourceRecord, SourceRequest, StartHeader, StopRequest,
};
use thiserror::Error as ThisError;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

use crate::alone;
use crate::core_types::{CoreTypeInfo, SourceOnType, qualified};
use crate::error::{Error, UserError};
use crate::event::suffix;
use crate::event_cache::{self, CacheError};
use crate::exit::Exit;
use crate::refusal::{Refusal, SAME_VERSION};
use crate::reply::{Malformed, Reply};
use crate::sample_stream::SampleStream;
use crate::sessions::{self, RunningSession};
use crate::source::Sources;
use crate::system::{System, is_denied};
use crate::system_error::{SystemError, open_error};

/// Number of records that fit into the first buffer of a request.
const FIRST_ROOM: usize = 256;

/// Maximum number of records in a list: every event of the largest session on every processor.
const MAX_RECORDS: usize = MAX_EVENTS * PROCESSOR_WORDS * 64;

/// Number of requests for a list that grows between two requests.
const ATTEMPTS: usize = 4;

/// Why a request has no usable reply. A refusal by the driver is a [`Refusal`].
#[derive(Debug, ThisError)]
pub enum RequestError {
    /// The request failed before the driver could reply with a cause.
    #[error("the driver did not answer the request {request}")]
    Failed {
        /// Name of the request.
        request: &'static str,
        /// Error of Windows.
        #[source]
        cause: io::Error,
    },
    /// The reply violates the protocol.
    #[error("the driver's answer to the request {request} is invalid")]
    Malformed {
        /// Name of the request.
        request: &'static str,
        /// The violation.
        #[source]
        cause: Malformed,
    },
    /// More events than a request carries.
    #[error("{given} events are too many: a session takes at most {MAX_EVENTS}")]
    TooManyEvents {
        /// Number of events.
        given: usize,
    },
}

impl UserError for RequestError {
    fn exit(&self) -> Exit {
        match self {
            Self::TooManyEvents { .. } => Exit::Usage,
            Self::Failed { .. } | Self::Malformed { .. } => Exit::Failure,
        }
    }

    fn remedy(&self) -> Option<String> {
        matches!(self, Self::Malformed { .. }).then(|| SAME_VERSION.to_owned())
    }
}

/// An open handle to a driver of the same protocol version.
pub struct Connection {
    device: Box<dyn Device>,
    hello: HelloReply,
    sources: OnceCell<Sources>,
    core_types: OnceCell<Vec<CoreTypeInfo>>,
    cache: Option<PathBuf>,
}

/// A session that was started.
#[derive(Debug, Clone, Copy)]
pub struct Started {
    /// Number of the session.
    pub session: u64,
    /// Units per second of [`SampleRecord::time`](protocol::SampleRecord::time).
    pub clock: u64,
}

impl Connection {
    /// Opens the driver and checks its protocol version.
    pub fn open(system: &dyn System) -> Result<Self, Error> {
        let device = system.open().map_err(|error| open_error(system, error))?;
        let mut connection = Self {
            device,
            hello: HelloReply::new_zeroed(),
            sources: OnceCell::new(),
            core_types: OnceCell::new(),
            cache: system.cache_folder(),
        };
        let ours = Hello { version: PROTOCOL_VERSION, reserved: 0 };
        connection.hello = connection.layout(Code::Hello, ours.as_bytes())?;
        let theirs = connection.hello.protocol;
        if theirs != PROTOCOL_VERSION {
            let cause = ErrorCode::VersionMismatch as u32;
            let detail = [PROTOCOL_VERSION.into(), theirs.into()];
            let header = ReplyHeader { cause, detail, ..connection.hello.header };
            return Err(connection.refusal(Code::Hello, header, &[]).into());
        }
        Ok(connection)
    }

    /// Returns the version of the driver: `1.2.3`.
    pub fn driver_version(&self) -> String {
        version(self.hello.driver)
    }

    /// Returns the events that the user imported.
    pub fn imported(&self) -> Result<Option<Imported>, CacheError> {
        event_cache::load(self.cache.as_deref())
    }

    /// Returns the profile interface and its properties.
    pub fn info(&self) -> Result<InfoReply, Error> {
        self.layout(Code::Info, &[])
    }

    /// Returns every source of the driver. They are requested once.
    pub fn sources(&self) -> Result<&Sources, Error> {
        if let Some(sources) = self.sources.get() {
            return Ok(sources);
        }
        let records = self.list::<SourceRecord>(Code::ListSources, &[])?;
        Ok(self.sources.get_or_init(|| Sources::new(&records)))
    }

    /// Returns the core types of a hybrid; none on other machines. They are requested once.
    pub fn core_types(&self) -> Result<&[CoreTypeInfo], Error> {
        if let Some(core_types) = self.core_types.get() {
            return Ok(core_types);
        }
        let records = self.list::<CoreTypeRecord>(Code::ListCoreTypes, &[])?;
        Ok(self.core_types.get_or_init(|| records.iter().map(CoreTypeInfo::from).collect()))
    }

    /// Returns what a source is on each core type of a hybrid; none on other machines.
    pub fn on_core_types(&self, source: u32) -> Result<Vec<SourceOnType>, Error> {
        let on_type = |one: &CoreTypeInfo| Ok(SourceOnType::from(&self.source(source, one.number)?));
        self.core_types()?.iter().map(on_type).collect()
    }

    /// Returns the current state of a source, on processors of a core type or, with 0, on all.
    pub fn source(&self, source: u32, core_type: u32) -> Result<SourceRecord, Error> {
        let request = SourceRequest { source, core_type };
        self.one_source(Code::QuerySource, request.as_bytes(), source)
    }

    /// Sets the interval of a source. The reply has the new and the previous interval.
    pub fn set_interval(&self, source: u32, interval: u32) -> Result<SourceRecord, Error> {
        let request = IntervalRequest { source, interval };
        self.one_source(Code::SetInterval, request.as_bytes(), source)
    }

    /// Starts a session.
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
        let reply = self.successful(Code::Start, reply)?;
        let [session, clock] = reply.header.detail;
        Ok(Started { session, clock })
    }

    /// Returns the refusal of a group of events, with the names of those that fit on the counters.
    fn refused_group(&self, header: ReplyHeader, events: &[EventRequest]) -> Error {
        let refused = events.iter().find(|event| event.source == header.source && event.group != 0);
        let members = events.iter().filter(|event| refused.is_some_and(|refused| refused.group == event.group));
        let [_, part] = header.detail;
        let fitting = (0_u32..).zip(members).filter(|(number, _)| part.checked_shr(*number).unwrap_or(0) & 1 == 1);
        let unnamed = Sources::default();
        let sources = self.sources().unwrap_or(&unnamed);
        let name = |event: &EventRequest| {
            let name = sources.name_of(event.source, event.core_type, (event.event, event.extra));
            qualified(&name, event.core_type)
        };
        let part = fitting.map(|(_, event)| format!("{}{}", name(event), suffix(event.modes))).collect();
        Refusal { part, ..self.refusal(Code::Start, header, &[]) }.into()
    }

    /// Returns the samples of a session, for a thread of their own.
    pub fn sample_stream(&self, session: u64) -> SampleStream {
        SampleStream::new(self.device.share(), session)
    }

    /// Stops a source of a session, with a core type only its events of that type, and returns the final counts.
    pub fn stop(&self, session: u64, source: u32, core_type: u32) -> Result<Vec<CountRecord>, Error> {
        // The driver returns the final counts only once, so the buffer must be large enough for all that run now.
        let running =
            self.send_request::<CountRecord>(Code::Read, SessionRequest { session }.as_bytes(), 0)?.header.total;
        let room = next_capacity(Code::Read, running)?;
        let request = StopRequest { session, source, core_type };
        let reply = self.succeed::<CountRecord>(Code::Stop, request.as_bytes(), room + FIRST_ROOM)?;
        reply.records().map_err(|cause| malformed(Code::Stop, cause))
    }

    /// Stops all sources of a session and returns their final counts.
    pub fn stop_all(&self, session: u64) -> Result<Vec<CountRecord>, Error> {
        self.stop(session, ALL_SOURCES, 0)
    }

    /// Returns the counts of a session, or of all detached sessions.
    pub fn read(&self, session: u64) -> Result<Vec<CountRecord>, Error> {
        self.list(Code::Read, SessionRequest { session }.as_bytes())
    }

    /// Sends a request about control areas and returns the state of each.
    pub fn control_areas(&self, request: &AreaRequest) -> Result<Vec<AreaRecord>, Error> {
        // The request must not be repeated with a larger buffer, because it would be executed twice.
        let reply = self.succeed::<AreaRecord>(Code::ControlArea, request.as_bytes(), PROCESSOR_WORDS * 64)?;
        reply.records().map_err(|cause| malformed(Code::ControlArea, cause))
    }

    /// Returns the registers of a processor as they are.
    pub fn registers(&self, processor: u32) -> Result<Vec<RegisterRecord>, Error> {
        self.list(Code::ReadRegisters, RegistersRequest { processor, reserved: 0 }.as_bytes())
    }

    /// Returns what the HAL of Windows says about each source of the driver.
    pub fn hal_sources(&self) -> Result<Vec<HalSourceRecord>, Error> {
        self.list(Code::ListHalSources, &[])
    }

    /// Returns the sessions and their events.
    pub fn sessions(&self) -> Result<Vec<RunningSession>, Error> {
        let session_events = self.list::<SessionEvent>(Code::ListSessions, &[])?;
        Ok(sessions::by_session(&session_events, self.sources()?))
    }

    fn one_source(&self, code: Code, input: &[u8], source: u32) -> Result<SourceRecord, Error> {
        let reply = self.succeed::<SourceRecord>(code, input, 1)?;
        let records = reply.records::<SourceRecord>().map_err(|cause| malformed(code, cause))?;
        match records.first() {
            Some(record) if record.source == source => Ok(*record),
            Some(record) => Err(malformed(code, Malformed::OtherSource { wanted: source, got: record.source })),
            None => Err(malformed(code, Malformed::MissingRecords { announced: 1, got: 0 })),
        }
    }

    /// Sends a request that has one fixed structure as its reply.
    fn layout<T: FromBytes>(&self, code: Code, input: &[u8]) -> Result<T, Error> {
        // A refusal can return records instead of the structure.
        let reply = self.succeed::<SessionEvent>(code, input, size_of::<T>().div_ceil(size_of::<SessionEvent>()))?;
        reply.layout().map_err(|cause| malformed(code, cause))
    }

    /// Sends a request that has a list as its reply, and repeats it with a larger buffer until the list is complete.
    fn list<T: FromBytes + IntoBytes>(&self, code: Code, input: &[u8]) -> Result<Vec<T>, Error> {
        let mut room = FIRST_ROOM;
        for _ in 0..ATTEMPTS {
            let reply = self.succeed::<T>(code, input, room)?;
            let records = reply.records().map_err(|cause| malformed(code, cause))?;
            if reply.header.total == reply.header.count {
                return Ok(records);
            }
            room = next_capacity(code, reply.header.total)? + FIRST_ROOM;
        }
        Err(malformed(code, Malformed::Growing))
    }

    /// Sends a request; a refusal by the driver is an error.
    fn succeed<T: FromBytes + IntoBytes>(&self, code: Code, input: &[u8], room: usize) -> Result<Reply, Error> {
        let reply = self.send_request::<T>(code, input, room)?;
        self.successful(code, reply)
    }

    /// Returns the reply if the driver has served the request.
    fn successful(&self, code: Code, reply: Reply) -> Result<Reply, Error> {
        if reply.is_success() {
            return Ok(reply);
        }
        let session_events = match ErrorCode::from_number(reply.header.cause) {
            Some(ErrorCode::NoFreeCounter) => {
                reply.records::<SessionEvent>().map_err(|cause| malformed(code, cause))?
            }
            _ => Vec::new(),
        };
        Err(self.refusal(code, reply.header, &session_events).into())
    }

    fn send_request<T>(&self, code: Code, input: &[u8], room: usize) -> Result<Reply, Error> {
        let mut buffer = vec![0; size_of::<ReplyHeader>() + room * size_of::<T>()];
        let length = self.device.request(code, input, &mut buffer).map_err(|cause| unanswered(code, cause))?;
        Reply::new(buffer, length).map_err(|cause| malformed(code, cause))
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
    if room <= MAX_RECORDS { Ok(room) } else { Err(malformed(code, Malformed::Absurd { total })) }
}

/// Returns the error of a request to which Windows returned no reply.
pub fn unanswered(code: Code, cause: io::Error) -> Error {
    if is_denied(&cause) {
        return SystemError::Denied { action: format!("to the request {}", name(code)), cause }.into();
    }
    RequestError::Failed { request: name(code), cause }.into()
}

/// Returns the error of an invalid reply.
pub fn malformed(code: Code, cause: Malformed) -> Error {
    RequestError::Malformed { request: name(code), cause }.into()
}

/// Returns the name of a request.
pub fn name(code: Code) -> &'static str {
    protocol::find(code as u32).map_or("unknown", |spec| spec.name)
}

/// Formats a version. The last of its four parts is always zero.
pub fn version([major, minor, patch, _]: [u16; 4]) -> String {
    format!("{major}.{minor}.{patch}")
}
