//! A client of the engine that exchanges [`protocol`] requests and answers without a kernel.

use crate::sim_machine::SimMachine;
use engine::{ClientId, Completion, Engine, Platform, Request, Sampler, Samples};
use protocol::status::STATUS_SUCCESS;
use protocol::{
    ALL_SOURCES, Code, CountRecord, Event, EventRequest, GroupReply, GroupRequest, Hello, Method, NtStatus,
    PROTOCOL_VERSION, ProcessorSet, Record, RecordError, ReplyHeader, SampleRecord, SamplesRequest, SessionRequest,
    StartHeader, StopRequest, modes,
};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes};

/// The request is pending (ntstatus.h).
pub const STATUS_PENDING: NtStatus = NtStatus::new(0x103);

/// An open handle.
#[derive(Debug, Clone, Copy)]
pub struct Client(pub ClientId);

/// The answer to a request.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Status and information of the IRP.
    pub completion: Completion,
    /// The output.
    pub bytes: Vec<u8>,
}

impl Answer {
    /// Returns the header of the answer.
    ///
    /// # Panics
    /// Panics if the output has no header.
    #[must_use]
    pub fn header(&self) -> ReplyHeader {
        #[expect(clippy::expect_used, reason = "a test that asks for a header expects an answer")]
        ReplyHeader::read_from_prefix(&self.bytes).expect("an answer with a header").0
    }

    /// Parses the records of a reply to a request for samples.
    ///
    /// # Errors
    /// If one of them is of an unknown kind or damaged.
    pub fn try_samples(&self) -> Result<Vec<Record>, RecordError> {
        self.records::<SampleRecord>().iter().map(SampleRecord::parse).collect()
    }

    /// Returns the records after the header, as many as the header reports.
    #[must_use]
    pub fn records<T: FromBytes>(&self) -> Vec<T> {
        let bytes = self.bytes.get(size_of::<ReplyHeader>()..).unwrap_or_default();
        let records = bytes.chunks_exact(size_of::<T>()).filter_map(|bytes| T::read_from_bytes(bytes).ok());
        records.take(self.header().count as usize).collect()
    }
}

/// Returns the modes in which a source does not count what occurs between the accesses of the driver, so that its count
/// is known in advance: user mode, except for ProfileTime, which has both and is counted by no counter.
#[must_use]
pub const fn quiet_modes(source: u64) -> u32 {
    if source == 0 { modes::BOTH } else { modes::USER }
}

impl Client {
    /// Opens a handle and negotiates the version.
    ///
    /// # Panics
    /// Panics if either is refused.
    pub fn open<M: Platform>(engine: &mut Engine<M>, handle: usize, process: u32) -> Self {
        let client = Self(ClientId(handle));
        assert_eq!(engine.open(client.0, process), STATUS_SUCCESS, "open");
        let hello = Hello { version: PROTOCOL_VERSION, reserved: 0 };
        assert_eq!(client.ask(engine, Code::Hello, hello.as_bytes(), 256).completion.status, STATUS_SUCCESS, "hello");
        client
    }

    /// Sends a request with an output buffer of `output` bytes.
    pub fn ask<M: Platform>(&self, engine: &mut Engine<M>, code: Code, input: &[u8], output: usize) -> Answer {
        self.ask_raw(engine, code as u32, input, output)
    }

    /// Sends any control code. A METHOD_OUT_DIRECT request may return STATUS_PENDING.
    pub fn ask_raw<M: Platform>(&self, engine: &mut Engine<M>, code: u32, input: &[u8], output: usize) -> Answer {
        if protocol::find(code).is_some_and(|spec| spec.method == Method::OutDirect) {
            let mut pages = vec![0xEE; output];
            let samples = Samples { client: self.0, input, output: &mut pages, may_wait: true };
            let pending = Completion { status: STATUS_PENDING, information: 0 };
            let completion = engine.samples(samples).unwrap_or(pending);
            pages.truncate(completion.information);
            return Answer { completion, bytes: pages };
        }
        let mut buffer = input.to_vec();
        buffer.resize(input.len().max(output), 0xEE);
        let request = Request { client: self.0, code, buffer: &mut buffer, input: input.len(), output };
        let completion = engine.serve(request);
        buffer.truncate(completion.information);
        Answer { completion, bytes: buffer }
    }

    /// Starts events, each in its modes.
    pub fn start<M: Platform>(
        &self,
        engine: &mut Engine<M>,
        flags: u32,
        processors: ProcessorSet,
        events: &[(u64, u32)],
    ) -> Answer {
        let header = StartHeader { flags, processors, ..StartHeader::EMPTY };
        let mut input = header.as_bytes().to_vec();
        for (source, modes) in events {
            let event = EventRequest { event: Event::of(*source), modes: *modes, ..EventRequest::EMPTY };
            input.extend_from_slice(event.as_bytes());
        }
        self.ask(engine, Code::Start, &input, 4096)
    }

    /// Starts sources in their [`quiet_modes`] on all processors and returns the session.
    ///
    /// # Panics
    /// Panics if the start is refused.
    pub fn started<M: Platform>(&self, engine: &mut Engine<M>, flags: u32, sources: &[u64]) -> u64 {
        let events: Vec<_> = sources.iter().map(|source| (*source, quiet_modes(*source))).collect();
        let header = self.start(engine, flags, ProcessorSet::EMPTY, &events).header();
        assert_eq!((header.status, header.cause), (0, 0), "start {sources:?}");
        let [session, _] = header.detail;
        session
    }

    /// Starts any events with any header.
    pub fn start_with<M: Platform>(
        &self,
        engine: &mut Engine<M>,
        header: StartHeader,
        events: &[EventRequest],
    ) -> Answer {
        let input = [header.as_bytes(), events.as_bytes()].concat();
        self.ask(engine, Code::Start, &input, 4096)
    }

    /// Fetches samples. Returns `None` if the request would wait.
    pub fn samples<M: Platform>(
        &self,
        engine: &mut Engine<M>,
        session: u64,
        wait: Option<u32>,
        room: usize,
    ) -> Option<Answer> {
        let request = SamplesRequest { session, wait: wait.unwrap_or_default(), reserved: 0 };
        let mut output = vec![0xEE; size_of::<ReplyHeader>() + room * size_of::<SampleRecord>()];
        let samples =
            Samples { client: self.0, input: request.as_bytes(), output: &mut output, may_wait: wait.is_some() };
        let completion = engine.samples(samples).ok()?;
        output.truncate(completion.information);
        Some(Answer { completion, bytes: output })
    }

    /// Stops a source, or all sources with `None`.
    pub fn stop<M: Platform>(&self, engine: &mut Engine<M>, session: u64, source: Option<u64>) -> Answer {
        let stop = StopRequest { session, source: source.unwrap_or(ALL_SOURCES), core_type: 0, reserved: 0 };
        self.ask(engine, Code::Stop, stop.as_bytes(), 1 << 16)
    }

    /// Reads the counts of a session.
    pub fn read<M: Platform>(&self, engine: &mut Engine<M>, session: u64) -> Vec<CountRecord> {
        self.ask(engine, Code::Read, SessionRequest { session }.as_bytes(), 1 << 16).records()
    }

    /// Reads the counters of a session on the machine's current processor, by the engine.
    pub fn read_group<M: Platform>(&self, engine: &mut Engine<M>, session: u64, flags: u32) -> Answer {
        let request = GroupRequest { session, flags, reserved: 0 };
        self.ask(engine, Code::ReadGroup, request.as_bytes(), size_of::<GroupReply>())
    }

    /// Reads the counters of a session on a processor as the driver does: from the sampler alone, without the engine.
    /// Returns `None` if the engine would have to refuse the request.
    #[must_use]
    pub fn read_group_on(
        &self,
        machine: &SimMachine,
        sampler: &Sampler,
        processor: u32,
        request: GroupRequest,
    ) -> Option<GroupReply> {
        let mut reply = GroupReply::new_zeroed();
        let buffer = reply.as_mut_bytes();
        buffer.fill(0xEE);
        request.write_to_prefix(buffer).ok()?;
        let (input, output) = (size_of::<GroupRequest>(), buffer.len());
        let mut request = Request { client: self.0, code: Code::ReadGroup as u32, buffer, input, output };
        let current = machine.current(processor);
        request.read_group(|wanted, client, reply| {
            sampler.read_group(current, &|| machine.now_ticks(), client, wanted, reply)
        })?;
        Some(reply)
    }

    /// Sends a request without input and returns the records of its answer.
    pub fn tell<M: Platform, T: FromBytes + Immutable>(&self, engine: &mut Engine<M>, code: Code) -> Vec<T> {
        self.ask(engine, code, &[], 1 << 16).records()
    }
}
