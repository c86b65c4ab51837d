//! A driver with predefined replies.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::thread;
use std::time::Duration;

use protocol::{
    AreaRecord, AreaRequest, Code, CoreTypeRecord, CountRecord, ErrorCode, EventRequest, HalSourceRecord, HelloReply,
    InfoReply, PROTOCOL_VERSION, RegisterRecord, ReplyHeader, SampleRecord, SessionEvent, SourceRecord, SourceRequest,
    StartHeader, StopRequest, status,
};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes};

use super::shared::Shared;
use super::{CLOCK, info, sources};

/// A driver with predefined replies that records the requests.
pub struct FakeDriver {
    /// Reply to ListSources.
    pub sources: Vec<SourceRecord>,
    /// Replies to Read and Stop.
    pub counts: Shared<Vec<CountRecord>>,
    /// What is added to the counts after each Read.
    pub growth: Vec<CountRecord>,
    /// The counts of the sessions that are started, in order; without one they stay.
    pub runs: Shared<VecDeque<Vec<CountRecord>>>,
    /// Replies to Samples, in order.
    pub samples: Shared<VecDeque<Vec<SampleRecord>>>,
    /// Number of replies after which requests for samples fail.
    pub fail_samples_after: Shared<Option<u32>>,
    /// Reply to ListSessions.
    pub session_events: Vec<SessionEvent>,
    /// Reply to ControlArea, limited to the requested processors.
    pub areas: Vec<AreaRecord>,
    /// Reply to ListCoreTypes.
    pub core_types: Vec<CoreTypeRecord>,
    /// Replies to QuerySource for a core type.
    pub on_core_types: Vec<SourceRecord>,
    /// Reply to ReadRegisters.
    pub registers: Vec<RegisterRecord>,
    /// Reply to ListHalSources.
    pub hal_sources: Vec<HalSourceRecord>,
    /// Protocol version.
    pub protocol: u32,
    /// Reply to Info.
    pub info: InfoReply,
    /// A request to refuse, with cause and detail.
    pub refuse: Option<(Code, ErrorCode, [u64; 2])>,
    /// Sources that Start refuses, with cause and detail.
    pub refused_sources: Vec<(u64, ErrorCode, [u64; 2])>,
    /// The most events of a group that Start takes, and the reply to ListCoreTypes after the first Start.
    pub learned: Option<(usize, Vec<CoreTypeRecord>)>,
    /// Raw bytes as the reply to every request, and the claimed length.
    pub raw: Option<(Vec<u8>, usize)>,
    /// The requests so far, with their inputs.
    pub asked: Shared<Vec<(Code, Vec<u8>)>>,
}

impl Default for FakeDriver {
    fn default() -> Self {
        Self {
            sources: sources(),
            counts: Shared::default(),
            growth: Vec::new(),
            runs: Shared::default(),
            samples: Shared::default(),
            fail_samples_after: Shared::default(),
            session_events: Vec::new(),
            areas: Vec::new(),
            core_types: Vec::new(),
            on_core_types: Vec::new(),
            registers: Vec::new(),
            hal_sources: Vec::new(),
            protocol: PROTOCOL_VERSION,
            info: info(),
            refuse: None,
            refused_sources: Vec::new(),
            learned: None,
            raw: None,
            asked: Shared::default(),
        }
    }
}

fn fill(output: &mut [u8], bytes: &[u8]) -> usize {
    let length = bytes.len().min(output.len());
    output[..length].copy_from_slice(&bytes[..length]);
    length
}

/// Writes as many records as fit.
fn list<T: IntoBytes + Immutable>(output: &mut [u8], header: ReplyHeader, records: &[T]) -> usize {
    let room = (output.len() - size_of::<ReplyHeader>()) / size_of::<T>();
    let fitting = &records[..records.len().min(room)];
    let number = |length| u32::try_from(length).unwrap();
    let header = ReplyHeader { count: number(fitting.len()), total: number(records.len()), ..header };
    fill(output, &[header.as_bytes(), fitting.as_bytes()].concat())
}

impl FakeDriver {
    /// Returns the inputs of the requests with this code.
    pub fn inputs(&self, code: Code) -> Vec<Vec<u8>> {
        self.asked.borrow().iter().filter(|(asked, _)| *asked == code).map(|(_, input)| input.clone()).collect()
    }

    fn one_source(&self, output: &mut [u8], header: ReplyHeader, input: &[u8]) -> usize {
        let (source, rest) = u64::read_from_prefix(input).unwrap();
        let (interval, _) = u32::read_from_prefix(rest).unwrap();
        let mut record = *self.sources.iter().find(|record| record.source == source).unwrap();
        record.previous_interval = record.interval;
        if interval > 0 {
            record.interval = interval.clamp(record.minimum, record.maximum);
        }
        list(output, header, &[record])
    }

    fn query_source(&self, output: &mut [u8], header: ReplyHeader, input: &[u8]) -> usize {
        let SourceRequest { source, core_type, .. } = SourceRequest::read_from_bytes(input).unwrap();
        let records = if core_type == 0 { &self.sources } else { &self.on_core_types };
        let found = |record: &&SourceRecord| record.source == source && record.core_type == core_type;
        list(output, header, &[*records.iter().find(found).unwrap()])
    }

    fn stop(&self, output: &mut [u8], header: ReplyHeader, input: &[u8]) -> usize {
        let wanted = StopRequest::read_from_bytes(input).unwrap().source;
        let all = self.counts.take();
        let (stopped, left): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|record| wanted == protocol::ALL_SOURCES || record.event.source == wanted);
        self.counts.replace(left);
        list(output, header, &self.with_indexes(stopped))
    }

    /// Returns the counts with the indexes of their events in the request that started them. Several counts of an event
    /// and CPU are those of its groups, in order.
    fn with_indexes(&self, mut counts: Vec<CountRecord>) -> Vec<CountRecord> {
        let starts = self.inputs(Code::Start);
        let started = starts.last().map(|input| <[EventRequest]>::ref_from_bytes(&input[size_of::<StartHeader>()..]));
        if let Some(started) = started {
            let events = started.unwrap();
            let mut seen: HashMap<_, usize> = HashMap::new();
            for count in &mut counts {
                let whole = (count.event.source, count.modes, count.event, count.event.extra);
                let is_its =
                    |event: &EventRequest| (event.event.source, event.modes, event.event, event.event.extra) == whole;
                let number = seen.entry((whole, count.event.core_type, count.processor)).or_default();
                let indexes = || (0..).zip(events).filter(|(_, event)| is_its(event)).map(|(index, _)| index);
                count.index = indexes().nth(*number).or_else(|| indexes().next()).unwrap_or_default();
                *number += 1;
            }
        }
        counts
    }

    /// Replies to a request.
    pub fn reply(&self, code: Code, input: &[u8], output: &mut [u8]) -> io::Result<usize> {
        let spec = protocol::find(code as u32).unwrap();
        assert!(spec.input.admits(input.len()) && spec.output.admits(output.len()), "{}", spec.name);
        self.asked.borrow_mut().push((code, input.to_vec()));
        if let Some((bytes, length)) = &self.raw {
            fill(output, bytes);
            return Ok(*length);
        }
        let mut header = ReplyHeader::new_zeroed();
        if let Some((_, cause, detail)) = self.refuse.filter(|(refused, _, _)| *refused == code) {
            header = ReplyHeader {
                status: status::STATUS_NOT_FOUND.number(),
                cause: cause as u32,
                source: 6,
                detail,
                ..header
            };
            return Ok(list(output, header, &self.session_events));
        }
        Ok(match code {
            Code::Hello => {
                let hello = HelloReply { protocol: self.protocol, driver: [1, 2, 3, 0], ..HelloReply::new_zeroed() };
                fill(output, hello.as_bytes())
            }
            Code::Info => fill(output, self.info.as_bytes()),
            Code::ListSources => list(output, header, &self.sources),
            Code::QuerySource => self.query_source(output, header, input),
            Code::SetInterval => self.one_source(output, header, input),
            Code::Start => {
                assert!(input.len() > size_of::<StartHeader>());
                let events = <[EventRequest]>::ref_from_bytes(&input[size_of::<StartHeader>()..]).unwrap();
                if let Some(counts) = self.runs.borrow_mut().pop_front() {
                    self.counts.replace(counts);
                }
                header.detail = [7, CLOCK];
                let is_asked = |source| events.iter().any(|event| event.event.source == source);
                if let Some((source, cause, detail)) =
                    self.refused_sources.iter().find(|(source, ..)| is_asked(*source))
                {
                    let (source, cause, detail) = (*source, *cause as u32, *detail);
                    header = ReplyHeader { status: status::STATUS_NOT_FOUND.number(), cause, source, detail, ..header };
                }
                let members = |group| events.iter().filter(|event| group > 0 && event.group == group).count();
                let is_large =
                    |event: &EventRequest| self.learned.as_ref().is_some_and(|(most, _)| members(event.group) > *most);
                if events.iter().any(is_large) {
                    let (status, cause) =
                        (status::STATUS_INSUFFICIENT_RESOURCES.number(), ErrorCode::GroupTooLarge as u32);
                    header = ReplyHeader { status, cause, source: events[0].event.source, ..header };
                }
                list::<SessionEvent>(output, header, &[])
            }
            Code::Stop => self.stop(output, header, input),
            Code::Read => {
                let length = list(output, header, &self.with_indexes(self.counts.borrow().clone()));
                for (count, more) in self.counts.borrow_mut().iter_mut().zip(&self.growth) {
                    count.count += more.count;
                    count.enabled += more.enabled;
                    count.running += more.running;
                }
                length
            }
            Code::ListCoreTypes => match &self.learned {
                Some((_, learned)) if !self.inputs(Code::Start).is_empty() => list(output, header, learned),
                _ => list(output, header, &self.core_types),
            },
            Code::ListHalSources => list(output, header, &self.hal_sources),
            Code::ReadRegisters => list(output, header, &self.registers),
            Code::ListSessions => list(output, header, &self.session_events),
            Code::ControlArea => {
                let AreaRequest { current, processors, .. } = AreaRequest::read_from_bytes(input).unwrap();
                let is_asked =
                    |area: &&AreaRecord| processors.is_empty() || processors.iter().any(|one| one == area.processor);
                let max = if current == 1 { 1 } else { usize::MAX };
                list(output, header, &self.areas.iter().filter(is_asked).take(max).copied().collect::<Vec<_>>())
            }
            // The client has no verb that sends it.
            Code::ReadGroup => return Err(io::Error::other("not sent")),
            Code::Samples => {
                let left = self.fail_samples_after.get();
                self.fail_samples_after.set(left.map(|left| left.saturating_sub(1)));
                if left == Some(0) {
                    return Err(io::Error::other("gone"));
                }
                let batch = self.samples.borrow_mut().pop_front();
                let stopped = !self.inputs(Code::Stop).is_empty();
                let last = u64::from(stopped && self.samples.borrow().is_empty());
                if batch.is_none() && last == 0 {
                    thread::sleep(Duration::from_millis(1)); // where the driver waits for samples
                }
                list(output, ReplyHeader { detail: [last, 0], ..header }, &batch.unwrap_or_default())
            }
        })
    }
}
