//! The driver as the verbs see it: one method per request, answers checked.

use std::cell::OnceCell;
use std::io;
use std::time::Duration;

use profile::Hypervisor;
use protocol::{
    ALL_SOURCES, AreaRecord, AreaRequest, Cause, Code, CountRecord, EventRequest, Hello, HelloReply, Holder, InfoReply,
    IntervalRequest, MAX_EVENTS, PROCESSOR_WORDS, PROTOCOL_VERSION, ReplyHeader, Sample, SamplesRequest,
    SessionRequest, SourceRecord, SourceRequest, StartHeader, StopRequest,
};
use thiserror::Error as ThisError;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

use crate::error::{Error, UserError};
use crate::exit::Exit;
use crate::refusal::{Refusal, SAME_VERSION};
use crate::reply::{Malformed, Reply};
use crate::sessions::{self, RunningSession};
use crate::source::Sources;
use crate::system::{Device, System, is_denied};
use crate::system_error::{SystemError, open_error};

/// Records that the first buffer of a request has room for.
const FIRST_ROOM: usize = 256;

/// More than this no driver has: every event of the largest session on every processor.
const MAX_RECORDS: usize = MAX_EVENTS * PROCESSOR_WORDS * 64;

/// How often a list is asked for again because it had grown.
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
    #[error("the driver's answer to the request {request} makes no sense")]
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

/// An open handle to a driver that speaks our version.
pub struct Connection {
    device: Box<dyn Device>,
    hello: HelloReply,
    sources: OnceCell<Sources>,
}

/// A session that runs.
#[derive(Debug, Clone, Copy)]
pub struct Started {
    /// Its number.
    pub session: u64,
    /// Units a second of [`Sample::time`].
    pub clock: u64,
}

/// Samples of a session.
#[derive(Debug)]
pub struct Batch {
    /// In the order in which the driver gave them.
    pub samples: Vec<Sample>,
    /// Whether the session has been stopped and there are no more.
    pub is_last: bool,
}

impl Connection {
    /// Opens the driver and agrees on the version.
    pub fn open(system: &dyn System) -> Result<Self, Error> {
        let device = system.open().map_err(|error| open_error(system, error))?;
        let mut connection = Self { device, hello: HelloReply::new_zeroed(), sources: OnceCell::new() };
        let ours = Hello { version: PROTOCOL_VERSION, reserved: 0 };
        connection.hello = connection.layout(Code::Hello, ours.as_bytes())?;
        let theirs = connection.hello.protocol;
        if theirs != PROTOCOL_VERSION {
            let cause = Cause::VersionMismatch as u32;
            let detail = [PROTOCOL_VERSION.into(), theirs.into()];
            return Err(connection.refused(Code::Hello, ReplyHeader { cause, detail, ..connection.hello.header }, &[]));
        }
        Ok(connection)
    }

    /// The driver's version: `1.2.3`.
    pub fn driver_version(&self) -> String {
        version(self.hello.driver)
    }

    /// The profile interface and what it offers.
    pub fn info(&self) -> Result<InfoReply, Error> {
        self.layout(Code::Info, &[])
    }

    /// Every source the driver knows; asked for once.
    pub fn sources(&self) -> Result<&Sources, Error> {
        if let Some(sources) = self.sources.get() {
            return Ok(sources);
        }
        let records = self.list::<SourceRecord>(Code::ListSources, &[])?;
        Ok(self.sources.get_or_init(|| Sources::new(&records)))
    }

    /// One source, afresh.
    pub fn source(&self, source: u32) -> Result<SourceRecord, Error> {
        let request = SourceRequest { source, reserved: 0 };
        self.one_source(Code::QuerySource, request.as_bytes(), source)
    }

    /// Sets the interval of a source; the answer tells the one in force and the one before.
    pub fn set_interval(&self, source: u32, interval: u32) -> Result<SourceRecord, Error> {
        let request = IntervalRequest { source, interval };
        self.one_source(Code::SetInterval, request.as_bytes(), source)
    }

    /// Starts a session.
    pub fn start(&self, header: &StartHeader, events: &[EventRequest]) -> Result<Started, Error> {
        if events.len() > MAX_EVENTS {
            return Err(RequestError::TooManyEvents { given: events.len() }.into());
        }
        let input = [header.as_bytes(), events.as_bytes()].concat();
        let reply = self.succeed::<Holder>(Code::Start, &input, FIRST_ROOM)?;
        let [session, clock] = reply.header.detail;
        Ok(Started { session, clock })
    }

    /// Samples of a session, at most `most`; waits until there are many or the time is up.
    pub fn samples(&self, session: u64, wait: Duration, most: usize) -> Result<Batch, Error> {
        let wait = u32::try_from(wait.as_millis()).unwrap_or(u32::MAX);
        let request = SamplesRequest { session, wait, reserved: 0 };
        let reply = self.succeed::<Sample>(Code::Samples, request.as_bytes(), most)?;
        let samples = reply.records().map_err(|cause| malformed(Code::Samples, cause))?;
        let [last, _] = reply.header.detail;
        Ok(Batch { samples, is_last: last != 0 })
    }

    /// Stops a source of a session and answers its last counts.
    pub fn stop(&self, session: u64, source: u32) -> Result<Vec<CountRecord>, Error> {
        // The last counts come once: what runs now tells how much room they need.
        let running = self.ask::<CountRecord>(Code::Read, SessionRequest { session }.as_bytes(), 0)?.header.total;
        let room = room_for(Code::Read, running)?;
        let request = StopRequest { session, source, reserved: 0 };
        let reply = self.succeed::<CountRecord>(Code::Stop, request.as_bytes(), room + FIRST_ROOM)?;
        reply.records().map_err(|cause| malformed(Code::Stop, cause))
    }

    /// Stops a session whole.
    pub fn stop_all(&self, session: u64) -> Result<Vec<CountRecord>, Error> {
        self.stop(session, ALL_SOURCES)
    }

    /// The counts of a session, or of all detached ones.
    pub fn read(&self, session: u64) -> Result<Vec<CountRecord>, Error> {
        self.list(Code::Read, SessionRequest { session }.as_bytes())
    }

    /// The control areas of processors, or what became of them.
    pub fn control_areas(&self, request: &AreaRequest) -> Result<Vec<AreaRecord>, Error> {
        // Asked again for want of room it would do twice what it does.
        let reply = self.succeed::<AreaRecord>(Code::ControlArea, request.as_bytes(), PROCESSOR_WORDS * 64)?;
        reply.records().map_err(|cause| malformed(Code::ControlArea, cause))
    }

    /// Who holds which counters.
    pub fn sessions(&self) -> Result<Vec<RunningSession>, Error> {
        let session_events = self.list::<Holder>(Code::Holders, &[])?;
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

    /// A request whose answer is one layout.
    fn layout<T: FromBytes>(&self, code: Code, input: &[u8]) -> Result<T, Error> {
        // The records of a refusal need no more room than this.
        let reply = self.succeed::<Holder>(code, input, size_of::<T>().div_ceil(size_of::<Holder>()))?;
        reply.layout().map_err(|cause| malformed(code, cause))
    }

    /// A request whose answer is a list, asked for again with more room until all of it came.
    fn list<T: FromBytes + IntoBytes>(&self, code: Code, input: &[u8]) -> Result<Vec<T>, Error> {
        let mut room = FIRST_ROOM;
        for _ in 0..ATTEMPTS {
            let reply = self.succeed::<T>(code, input, room)?;
            let records = reply.records().map_err(|cause| malformed(code, cause))?;
            if reply.header.total == reply.header.count {
                return Ok(records);
            }
            room = room_for(code, reply.header.total)? + FIRST_ROOM;
        }
        Err(malformed(code, Malformed::Growing))
    }

    /// A request that is refused with its cause or done.
    fn succeed<T: FromBytes + IntoBytes>(&self, code: Code, input: &[u8], room: usize) -> Result<Reply, Error> {
        let reply = self.ask::<T>(code, input, room)?;
        if reply.is_success() {
            return Ok(reply);
        }
        let session_events = match Cause::from_number(reply.header.cause) {
            Some(Cause::NoFreeCounter) => reply.records::<Holder>().map_err(|cause| malformed(code, cause))?,
            _ => Vec::new(),
        };
        Err(self.refused(code, reply.header, &session_events))
    }

    fn ask<T>(&self, code: Code, input: &[u8], room: usize) -> Result<Reply, Error> {
        let mut buffer = vec![0; size_of::<ReplyHeader>() + room * size_of::<T>()];
        let length = self.device.request(code, input, &mut buffer).map_err(|cause| {
            if is_denied(&cause) {
                return Error::from(SystemError::Denied { action: format!("to the request {}", name(code)), cause });
            }
            RequestError::Failed { request: name(code), cause }.into()
        })?;
        Reply::new(buffer, length).map_err(|cause| malformed(code, cause))
    }

    fn refused(&self, code: Code, header: ReplyHeader, session_events: &[Holder]) -> Error {
        // The names matter less than the refusal. What is refused here must not be asked for once more.
        let unnamed = Sources::default();
        let askable = !matches!(code, Code::Hello | Code::ListSources);
        let sources = if askable { self.sources().unwrap_or(&unnamed) } else { &unnamed };
        Error::from(Refusal {
            request: name(code),
            source: sources.name(header.source),
            sessions: sessions::by_session(session_events, sources),
            is_root: code == Code::Start && header.cause == Cause::CountersDoNotWork as u32 && self.is_root(),
            header,
        })
    }

    /// Whether Hyper-V runs below this Windows itself, as far as the driver says.
    fn is_root(&self) -> bool {
        self.info().is_ok_and(|info| info.hypervisor == Hypervisor::Root as u32)
    }
}

/// How many records to have room for, when the driver says that there are `total`.
fn room_for(code: Code, total: u32) -> Result<usize, Error> {
    let room = total as usize;
    if room <= MAX_RECORDS { Ok(room) } else { Err(malformed(code, Malformed::Absurd { total })) }
}

/// More samples came than the rings of a session can hold.
pub fn endless() -> Error {
    malformed(Code::Samples, Malformed::Endless)
}

fn malformed(code: Code, cause: Malformed) -> Error {
    RequestError::Malformed { request: name(code), cause }.into()
}

fn name(code: Code) -> &'static str {
    protocol::find(code as u32).map_or("unknown", |spec| spec.name)
}

/// A version of four parts, of which the last is zero.
pub fn version([major, minor, patch, _]: [u16; 4]) -> String {
    format!("{major}.{minor}.{patch}")
}
