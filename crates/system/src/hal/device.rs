//! The requests of the driver, answered by the HAL of Windows.

use std::io;
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::Duration;

use halprof::event::raw_event::Notation;
use halprof::pmu::Source;
use halprof::{Backend, Device, HalError, Task};
use protocol::{
    Code, CountRecord, ErrorCode, EventRequest, Hello, HelloReply, PROTOCOL_VERSION, ProcessorSet, ReplyHeader,
    SampleRecord, SamplesRequest, SourceRequest, StartHeader, event_flags, modes,
};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes};

use super::HalCalls;
use super::machine;
use super::profile_objects::ProfileObjectSession;
use super::samples::Samples;
use super::sampling::{SamplingSession, StackSink};
use super::session::{CountingSession, lock};
use crate::trace::{TraceLosses, TraceSession, TraceSink};

/// What the HAL cannot do, in one sentence.
const LIMITS: &str = "Windows' own HAL counts, without the driver: whole processes in both modes, but no groups, no :u \
    or :k, no precise events, no turns of more events than counters, and no count at any moment; it samples all CPUs \
    at fixed intervals";

/// What profile objects cannot do, in one sentence.
const LIMITS_OF_OBJECTS: &str = "Windows' profile objects count, without administrator: how often the interrupts of a \
    source meet one process, from which its events are estimated; no samples, no other processes, no events by number";

/// The HAL as a device.
#[derive(Clone)]
pub struct HalDevice(Arc<Mutex<State>>);

struct State {
    calls: Arc<dyn HalCalls>,
    /// Whether profile objects count, which need no administrator.
    by_objects: bool,
    session: Option<(u64, Session)>,
    /// The samples of the last session that sampled.
    samples: Option<(u64, Arc<Mutex<Samples>>)>,
    sink: StackSink,
    /// Whether that needs context switches.
    off_cpu: bool,
    /// Number of the last session.
    last: u64,
    remarks: Vec<String>,
}

/// A session.
enum Session {
    Counting(Box<CountingSession>),
    Sampling(SamplingSession),
    Objects(ProfileObjectSession),
}

/// The call stacks of a session, which ends by itself, and whose remarks tell what was lost.
impl TraceSession for StackSink {
    fn stop(&mut self) -> io::Result<TraceLosses> {
        *lock(self) = None;
        Ok(TraceLosses::default())
    }
}

impl HalDevice {
    /// Creates a device over the functions of Windows: `by_objects` over those that need no administrator.
    #[must_use]
    pub fn new(calls: Arc<dyn HalCalls>, by_objects: bool) -> Self {
        let (sink, remarks) = (StackSink::default(), Vec::new());
        let state = State { calls, by_objects, session: None, samples: None, sink, off_cpu: false, last: 0, remarks };
        Self(Arc::new(Mutex::new(state)))
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut lock(&self.0))
    }

    /// Delivers the next samples with their stacks, as events of the driver, to `sink` until the result is stopped,
    /// with context switches if `off_cpu`.
    #[must_use]
    pub fn trace(&self, off_cpu: bool, sink: TraceSink) -> Box<dyn TraceSession> {
        self.with(|state| {
            *lock(&state.sink) = Some(sink);
            state.off_cpu = off_cpu;
            Box::new(Arc::clone(&state.sink))
        })
    }

    /// Fetches samples. Other requests are answered meanwhile.
    fn fetch(&self, input: &[u8], output: &mut [u8]) -> io::Result<usize> {
        let request = SamplesRequest::read_from_bytes(input).map_err(|_| io::ErrorKind::InvalidInput)?;
        let samples = self.with(|state| state.samples.clone()).filter(|(number, _)| *number == request.session);
        let (_, samples) = samples.ok_or(io::ErrorKind::NotFound)?;
        let room = output.len().saturating_sub(size_of::<ReplyHeader>()) / size_of::<SampleRecord>();
        let is_rich = |samples: &Samples| samples.has_ended || samples.ready.len() >= room;
        if !is_rich(&lock(&samples)) {
            sleep(Duration::from_millis(request.wait.into()));
        }
        let mut samples = lock(&samples);
        let fitting = room.min(samples.ready.len());
        let records: Vec<SampleRecord> = samples.ready.drain(..fitting).collect();
        let is_last = samples.has_ended && samples.ready.is_empty();
        Ok(write_list(output, &records, [is_last.into(), 0]))
    }
}

impl Device for HalDevice {
    fn backend(&self) -> Backend {
        let limits = self.with(|state| if state.by_objects { LIMITS_OF_OBJECTS } else { LIMITS });
        Backend { limits: Some(limits), counts_processes: true }
    }

    fn request(&self, code: Code, input: &[u8], output: &mut [u8]) -> io::Result<usize> {
        if code == Code::Samples {
            self.fetch(input, output)
        } else {
            self.with(|state| state.answer(code, input, output))
        }
    }

    fn follow(&self, session: u64, task: Task) -> io::Result<()> {
        self.with(|state| {
            let calls = &*state.calls;
            let own = state.session.as_mut().filter(|(number, _)| *number == session);
            match own {
                Some((_, Session::Counting(counting))) => Ok(counting.follow(task, calls)?),
                Some((_, Session::Objects(objects))) => Ok(objects.follow(task, calls)?),
                _ => Err(io::ErrorKind::NotFound.into()),
            }
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
            Code::ListCoreTypes | Code::ListSessions => Ok(write_list::<CountRecord>(output, &[], [0; 2])),
            Code::Start => self.start(input, output),
            Code::Stop => self.stop(output),
            Code::Read => self.room(output),
            Code::SetInterval
            | Code::Samples // answered above
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
        Ok(write_list(output, &records, [0; 2]))
    }

    fn start(&mut self, input: &[u8], output: &mut [u8]) -> io::Result<usize> {
        let (header, rest) = StartHeader::read_from_prefix(input).map_err(|_| io::ErrorKind::InvalidInput)?;
        let events = rest.chunks_exact(size_of::<EventRequest>());
        let events: Vec<EventRequest> = events.filter_map(|event| EventRequest::read_from_bytes(event).ok()).collect();
        let sources = machine::sources(&*self.calls)?;
        if let Some(what) = beyond_objects(&header, &events).filter(|_| self.by_objects) {
            return Err(HalError::NeedsElevation { what }.into());
        }
        if let Some(what) = beyond(&header, &events, self.by_objects) {
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
        self.last += 1;
        let session = if self.by_objects {
            Session::Objects(ProfileObjectSession::new(&events, names, &*self.calls))
        } else if header.ring == 0 {
            Session::Counting(Box::new(CountingSession::start(&events, names, header.processors, (&self.calls, kind))?))
        } else {
            let room = usize::try_from(header.ring).unwrap_or(usize::MAX);
            let room = room.saturating_mul(self.calls.processors() as usize);
            let session =
                SamplingSession::start(&events, names, (&self.calls, kind), room, (&self.sink, self.off_cpu))?;
            self.samples = Some((self.last, Arc::clone(&session.samples)));
            Session::Sampling(session)
        };
        self.session = Some((self.last, session));
        let (_, frequency) = self.calls.clock();
        Ok(write(output, &ReplyHeader { detail: [self.last, frequency], ..ReplyHeader::new_zeroed() }))
    }

    fn stop(&mut self, output: &mut [u8]) -> io::Result<usize> {
        let (number, session) = self.session.take().ok_or(io::ErrorKind::NotFound)?;
        let (records, remarks) = match session {
            Session::Counting(session) => session.stop(number, &*self.calls),
            Session::Sampling(session) => session.stop(number, &*self.calls),
            Session::Objects(session) => session.stop(number, &*self.calls),
        }?;
        self.remarks = remarks;
        Ok(write_list(output, &records, [0; 2]))
    }

    /// Writes the number of records that a stop will return, at most. The counts themselves are not known while the
    /// session runs, because Windows delivers events seconds later.
    fn room(&self, output: &mut [u8]) -> io::Result<usize> {
        if output.len() > size_of::<ReplyHeader>() {
            return Err(HalError::NeedsDriver { what: "a count at any moment" }.into());
        }
        let total = machine::maximum(&*self.calls).saturating_mul(self.calls.processors());
        Ok(write(output, &ReplyHeader { total, ..ReplyHeader::new_zeroed() }))
    }
}

/// Returns what a session asks for that profile objects do not have, and the HAL has.
fn beyond_objects(header: &StartHeader, events: &[EventRequest]) -> Option<&'static str> {
    let is_raw = |event: &EventRequest| Source(event.event.source).is_raw();
    if header.ring != 0 { Some("sampling") } else { events.iter().any(is_raw).then_some("an event by its number") }
}

/// Returns what a session asks for that the HAL does not have.
fn beyond(header: &StartHeader, events: &[EventRequest], by_objects: bool) -> Option<&'static str> {
    let any = |is_it: fn(&EventRequest) -> bool| events.iter().any(is_it);
    match () {
        () if any(|event| event.modes & modes::PRECISE != 0) => Some("a precise event"),
        () if any(|event| event.flags & (event_flags::BELOW | event_flags::ABOVE) != 0) => {
            Some("a condition of samples")
        }
        () if header.ring != 0 && header.processors != ProcessorSet::EMPTY => Some("sampling on chosen CPUs"),
        () if header.budget != 0 => Some("a budget of interrupts"),
        () if !by_objects && any(|event| event.modes != modes::BOTH) => Some("a count in one mode alone"),
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
fn write_list<T: IntoBytes + Immutable>(output: &mut [u8], records: &[T], detail: [u64; 2]) -> usize {
    let room = output.len().saturating_sub(size_of::<ReplyHeader>()) / size_of::<T>();
    let fitting = records.get(..room).unwrap_or(records);
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let (count, total) = (number(fitting.len()), number(records.len()));
    let header = ReplyHeader { count, total, detail, ..ReplyHeader::new_zeroed() };
    let length = write(output, &header);
    let body = output.get_mut(length..).unwrap_or_default();
    length + write_bytes(body, fitting.as_bytes())
}

fn write_bytes(output: &mut [u8], bytes: &[u8]) -> usize {
    output.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    bytes.len().min(output.len())
}
