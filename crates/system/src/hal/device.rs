//! The requests of the driver, answered by the HAL of Windows.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use halprof::event::raw_event::Notation;
use halprof::pmu::Source;
use halprof::{Backend, Device, HalError};
use protocol::{
    Code, CountRecord, ErrorCode, EventRequest, Hello, HelloReply, PROTOCOL_VERSION, ReplyHeader, SourceRequest,
    StartHeader, modes,
};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes};

use super::HalCalls;
use super::machine;
use super::session::CountingSession;

/// What the HAL cannot do, in one sentence.
const LIMITS: &str = "Windows' own HAL counts, without the driver: whole processes in both modes, but no groups, no :u or \
    :k, no precise events, no turns of more events than counters, and no count at any moment";

/// The HAL as a device.
#[derive(Clone)]
pub struct HalDevice(Arc<Mutex<State>>);

struct State {
    calls: Arc<dyn HalCalls>,
    session: Option<(u64, CountingSession)>,
    /// Number of the last session.
    last: u64,
    remarks: Vec<String>,
}

impl HalDevice {
    /// Creates a device over the functions of Windows.
    #[must_use]
    pub fn new(calls: Arc<dyn HalCalls>) -> Self {
        Self(Arc::new(Mutex::new(State { calls, session: None, last: 0, remarks: Vec::new() })))
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Device for HalDevice {
    fn backend(&self) -> Backend {
        Backend { limits: Some(LIMITS), counts_processes: true }
    }

    fn request(&self, code: Code, input: &[u8], output: &mut [u8]) -> io::Result<usize> {
        self.with(|state| state.answer(code, input, output))
    }

    fn follow(&self, session: u64, process: u32) -> io::Result<()> {
        self.with(|state| {
            let calls = &*state.calls;
            let own = state.session.as_mut().filter(|(number, _)| *number == session);
            let (_, counting) = own.ok_or(io::ErrorKind::NotFound)?;
            Ok(counting.follow(process, calls)?)
        })
    }

    fn remarks(&self) -> Vec<String> {
        self.with(|state| state.remarks.clone())
    }

    fn share(&self) -> Box<dyn Device + Send> {
        Box::new(self.clone())
    }
}

impl State {
    fn answer(&mut self, code: Code, input: &[u8], output: &mut [u8]) -> io::Result<usize> {
        match code {
            Code::Hello => {
                let ours = Hello { version: PROTOCOL_VERSION, reserved: 0 };
                if input != ours.as_bytes() {
                    return Err(io::ErrorKind::Unsupported.into());
                }
                Ok(write(output, &HelloReply { protocol: PROTOCOL_VERSION, ..HelloReply::new_zeroed() }))
            }
            Code::Info => Ok(write(output, &machine::info(&*self.calls, &machine::sources(&*self.calls)?))),
            Code::ListSources => self.list_sources(output, |_| true),
            Code::QuerySource => {
                let request = SourceRequest::read_from_bytes(input).map_err(|_| io::ErrorKind::InvalidInput)?;
                self.list_sources(output, |source| u64::from(source) == request.source)
            }
            // All processors are alike here, and no session is left when this device is closed.
            Code::ListCoreTypes | Code::ListSessions => Ok(write_list::<CountRecord>(output, &[])),
            Code::Start => self.start(input, output),
            Code::Stop => self.stop(output),
            Code::Read => self.room(output),
            Code::SetInterval
            | Code::Samples
            | Code::ControlArea
            | Code::ReadRegisters
            | Code::ListHalSources
            | Code::ReadGroup => Err(HalError::NeedsDriver { what: "this request" }.into()),
        }
    }

    fn list_sources(&self, output: &mut [u8], is_wanted: impl Fn(u32) -> bool) -> io::Result<usize> {
        let sources = machine::sources(&*self.calls)?;
        let kind = machine::kind(&*self.calls, &sources);
        let wanted = sources.iter().filter(|source| is_wanted(source.number));
        let records: Vec<_> = wanted.map(|source| machine::record(source, kind, &*self.calls)).collect();
        Ok(write_list(output, &records))
    }

    fn start(&mut self, input: &[u8], output: &mut [u8]) -> io::Result<usize> {
        let (header, rest) = StartHeader::read_from_prefix(input).map_err(|_| io::ErrorKind::InvalidInput)?;
        let events = rest.chunks_exact(size_of::<EventRequest>());
        let events: Vec<EventRequest> = events.filter_map(|event| EventRequest::read_from_bytes(event).ok()).collect();
        let sources = machine::sources(&*self.calls)?;
        if let Some(what) = beyond(&header, &events) {
            return Err(HalError::NeedsDriver { what }.into());
        }
        let kind = machine::kind(&*self.calls, &sources);
        let maximum = machine::maximum(&*self.calls);
        let mut refused = |cause: ErrorCode, source: u64, detail: [u64; 2]| {
            let header = ReplyHeader { cause: cause as u32, source, detail, ..ReplyHeader::new_zeroed() };
            write(output, &header)
        };
        let mut names = Vec::new();
        for EventRequest { event, .. } in &events {
            let listed = sources.iter().find(|source| u64::from(source.number) == event.source);
            names.push(match listed {
                Some(source) => source.name.clone(),
                None if Source(event.source).is_raw() => Notation(*event).to_string(),
                None => return Ok(refused(ErrorCode::UnknownSource, event.source, [0; 2])),
            });
        }
        if let Some(last) = events.get(usize::try_from(maximum).unwrap_or(usize::MAX)) {
            let wanted = u64::try_from(events.len()).unwrap_or(u64::MAX);
            return Ok(refused(ErrorCode::NoFreeCounter, last.event.source, [maximum.into(), wanted]));
        }
        let session = CountingSession::start(&events, names, header.processors, (&self.calls, kind))?;
        self.last += 1;
        self.session = Some((self.last, session));
        let (_, frequency) = self.calls.clock();
        Ok(write(output, &ReplyHeader { detail: [self.last, frequency], ..ReplyHeader::new_zeroed() }))
    }

    fn stop(&mut self, output: &mut [u8]) -> io::Result<usize> {
        let (number, session) = self.session.take().ok_or(io::ErrorKind::NotFound)?;
        let (records, remarks) = session.stop(number, &*self.calls)?;
        self.remarks = remarks;
        Ok(write_list(output, &records))
    }

    /// Writes the number of records that a stop will return. The counts themselves are not known while the session runs, because
    /// Windows delivers events seconds later.
    fn room(&self, output: &mut [u8]) -> io::Result<usize> {
        let (_, session) = self.session.as_ref().ok_or(io::ErrorKind::NotFound)?;
        if output.len() > size_of::<ReplyHeader>() {
            return Err(HalError::NeedsDriver { what: "a count at any moment" }.into());
        }
        let total = u32::try_from(session.records(&*self.calls)).unwrap_or(u32::MAX);
        Ok(write(output, &ReplyHeader { total, ..ReplyHeader::new_zeroed() }))
    }
}

/// Returns what a session asks for that the HAL does not have.
fn beyond(header: &StartHeader, events: &[EventRequest]) -> Option<&'static str> {
    let any = |is_it: fn(&EventRequest) -> bool| events.iter().any(is_it);
    match () {
        () if header.ring != 0 => Some("sampling"),
        () if any(|event| event.modes != modes::BOTH) => Some("a count in one mode alone"),
        () if any(|event| event.group != 0) => Some("a group that is counted at the same time"),
        () if any(|event| event.event.source == u64::from(machine::TIMER)) => Some("the time as an event"),
        () if any(|event| event.event.extra != 0) => Some("an event with an extra register"),
        () if any(|event| event.event.core_type != 0) => Some("an event on one core type"),
        () if any(|event| event.event.counters != 0) => Some("an event on chosen counters"),
        () => None,
    }
}

/// Writes a reply. Returns its length.
fn write<T: IntoBytes + Immutable>(output: &mut [u8], reply: &T) -> usize {
    write_bytes(output, reply.as_bytes())
}

/// Writes a header and the records that have room. Returns the length of the reply.
fn write_list<T: IntoBytes + Immutable>(output: &mut [u8], records: &[T]) -> usize {
    let room = output.len().saturating_sub(size_of::<ReplyHeader>()) / size_of::<T>();
    let fitting = records.get(..room).unwrap_or(records);
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let header =
        ReplyHeader { count: number(fitting.len()), total: number(records.len()), ..ReplyHeader::new_zeroed() };
    let length = write(output, &header);
    let body = output.get_mut(length..).unwrap_or_default();
    length + write_bytes(body, fitting.as_bytes())
}

fn write_bytes(output: &mut [u8], bytes: &[u8]) -> usize {
    output.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    bytes.len().min(output.len())
}
