//! Requests: each is checked against the table of [`protocol`], then served by one function.

use alloc::vec::Vec;

use pmu::constraints::Listing;
use pmu::hal::SourceInformation;
use pmu::interval::IntervalRange;
use pmu::{CoreType, Interface, ProcessorIndex, ProfileInterface, Source};
use protocol::status::{
    STATUS_BUFFER_TOO_SMALL, STATUS_INFO_LENGTH_MISMATCH, STATUS_INVALID_DEVICE_REQUEST, STATUS_INVALID_DEVICE_STATE,
    STATUS_PRIVILEGE_NOT_HELD, STATUS_REVISION_MISMATCH, STATUS_SUCCESS,
};
use protocol::{
    AreaRequest, Code, CoreTypeRecord, ErrorCode, EventRequest, GroupReply, GroupRequest, HalSourceRecord, Hello,
    HelloReply, InfoReply, IntervalRequest, Method, NAME_LENGTH, NtStatus, PROTOCOL_VERSION, ProcessorSet,
    RegistersRequest, ReplyHeader, RequestSpec, SamplesRequest, SessionRequest, SourceRecord, SourceRequest,
    StartHeader, StopRequest, group_flags, last_branches,
};
use zerocopy::{FromBytes, FromZeros};

use crate::clients::ClientId;
use crate::engine::Engine;
use crate::event::EventFilter;
use crate::plan::{Requester, no_such_core_type};
use crate::platform::{EngineContext, Platform};
use crate::reply::{Refusal, Reply, invalid, write};
use crate::try_vec::try_collect;

/// A METHOD_BUFFERED request: one buffer for input and output.
#[derive(Debug)]
pub struct Request<'a> {
    /// The handle of the request.
    pub client: ClientId,
    /// I/O control code.
    pub code: u32,
    /// The system buffer, with the longer of the lengths of input and output.
    pub buffer: &'a mut [u8],
    /// Length of the input, in bytes.
    pub input: usize,
    /// Length of the output, in bytes.
    pub output: usize,
}

/// A METHOD_OUT_DIRECT request for samples: the output is the client's own memory.
#[derive(Debug)]
pub struct Samples<'a> {
    /// The handle of the request.
    pub client: ClientId,
    /// System buffer.
    pub input: &'a [u8],
    /// The client's locked pages.
    pub output: &'a mut [u8],
    /// Whether the request may wait for more samples.
    pub may_wait: bool,
}

/// Status and length with which the IRP is completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// NTSTATUS.
    pub status: NtStatus,
    /// Number of bytes that are returned to the client.
    pub information: usize,
}

impl Completion {
    const fn failed(status: NtStatus) -> Self {
        Self { status, information: 0 }
    }
}

/// The input, copied from the buffer before the reply overwrites it.
enum Input {
    Hello(Hello),
    Info,
    ListSources,
    QuerySource(SourceRequest),
    SetInterval(IntervalRequest),
    Start(StartHeader, Vec<EventRequest>),
    Stop(StopRequest),
    Read(SessionRequest),
    ListSessions,
    ControlArea(AreaRequest),
    ListCoreTypes,
    ReadRegisters(RegistersRequest),
    ListHalSources,
    ReadGroup(GroupRequest),
}

impl Input {
    /// Reads the input of a request. Returns `None` if the bytes do not fit the request.
    ///
    /// # Errors
    /// Memory is low.
    fn read(spec: &RequestSpec, bytes: &[u8]) -> Option<Result<Self, Refusal>> {
        Some(Ok(match spec.code {
            Code::Hello => Self::Hello(Hello::read_from_bytes(bytes).ok()?),
            Code::Info => Self::Info,
            Code::ListSources => Self::ListSources,
            Code::QuerySource => Self::QuerySource(SourceRequest::read_from_bytes(bytes).ok()?),
            Code::SetInterval => Self::SetInterval(IntervalRequest::read_from_bytes(bytes).ok()?),
            Code::Start => {
                let (header, rest) = StartHeader::read_from_prefix(bytes).ok()?;
                let entries = rest.chunks_exact(size_of::<EventRequest>());
                let expected = entries.len();
                let events = entries.filter_map(|entry| EventRequest::read_from_bytes(entry).ok());
                match try_collect(events, expected) {
                    Ok(events) => Self::Start(header, events),
                    Err(refusal) => return Some(Err(refusal)),
                }
            }
            Code::Stop => Self::Stop(StopRequest::read_from_bytes(bytes).ok()?),
            Code::Read => Self::Read(SessionRequest::read_from_bytes(bytes).ok()?),
            Code::ListSessions => Self::ListSessions,
            Code::ListCoreTypes => Self::ListCoreTypes,
            Code::ListHalSources => Self::ListHalSources,
            Code::ReadRegisters => Self::ReadRegisters(RegistersRequest::read_from_bytes(bytes).ok()?),
            Code::ControlArea => Self::ControlArea(AreaRequest::read_from_bytes(bytes).ok()?),
            Code::ReadGroup => Self::ReadGroup(GroupRequest::read_from_bytes(bytes).ok()?),
            // The function `samples` reads this request.
            Code::Samples => return None,
        }))
    }
}

impl Input {
    /// Returns the bits of the reserved fields and undefined flags, which must be zero.
    fn reserved(&self) -> u64 {
        match self {
            Self::Hello(_)
            | Self::Info
            | Self::ListSources
            | Self::Read(_)
            | Self::ListSessions
            | Self::ListCoreTypes
            | Self::ListHalSources => 0,
            Self::QuerySource(request) => request.reserved.into(),
            Self::SetInterval(request) => request.reserved.into(),
            Self::Stop(request) => request.reserved.into(),
            Self::Start(header, _) => (header.last_branches & !last_branches::ALL).into(),
            Self::ControlArea(request) => request.reserved,
            Self::ReadRegisters(request) => request.reserved.into(),
            Self::ReadGroup(request) => {
                u64::from(request.flags & !group_flags::ALL) | u64::from(request.reserved) << 32
            }
        }
    }
}

impl Request<'_> {
    /// Serves [`Code::ReadGroup`] on the current processor, without an engine. `at_high_level` runs its argument at
    /// PROFILE_LEVEL, once. Returns `None` if an [engine](Engine::serve) has to serve the request, or to refuse it:
    /// nothing was changed.
    ///
    /// # IRQL
    /// As for `at_high_level`.
    pub fn read_group(
        &mut self,
        at_high_level: impl FnOnce(GroupRequest, ClientId, &mut GroupReply) -> Option<()>,
    ) -> Option<Completion> {
        let spec = protocol::find(self.code).filter(|spec| spec.code == Code::ReadGroup)?;
        if !spec.input.admits(self.input) || !spec.output.admits(self.output) {
            return None;
        }
        let wanted = GroupRequest::read_from_bytes(self.buffer.get(..self.input)?).ok()?;
        let (reply, _) = GroupReply::mut_from_prefix(self.buffer).ok()?;
        at_high_level(wanted, self.client, reply)?;
        Some(Completion { status: STATUS_SUCCESS, information: size_of::<GroupReply>() })
    }
}

impl<M: Platform> Engine<M> {
    /// Serves a request. A request that the table does not admit fails with an NTSTATUS and changes nothing. Every
    /// other request gets a reply, also if it is refused.
    pub fn serve(&mut self, request: Request<'_>) -> Completion {
        let Request { client, code, buffer, input, output } = request;
        let spec = match self.admit(client, code, input, output) {
            Ok(spec) if spec.method == Method::Buffered => spec,
            Ok(_) => return Completion::failed(STATUS_INVALID_DEVICE_REQUEST),
            Err(status) => return Completion::failed(status),
        };
        let input = buffer.get(..input).and_then(|bytes| Input::read(spec, bytes));
        let Some(output) = buffer.get_mut(..output) else {
            return Completion::failed(STATUS_BUFFER_TOO_SMALL);
        };
        // By reference: a copy of the input would be on the stack of each request.
        let information = match &input {
            Some(Ok(input)) => self.answer(client, input, output),
            Some(Err(refusal)) => Reply::over(output).finish(Err(*refusal)),
            None => return Completion::failed(STATUS_INFO_LENGTH_MISMATCH),
        };
        Completion { status: STATUS_SUCCESS, information }
    }

    /// Serves [`Code::Samples`].
    ///
    /// # Errors
    /// The number of milliseconds that the request must wait, unless more samples arrive before. Then it must be served
    /// again; its output is still empty. Refusals are replies, not errors.
    pub fn samples(&mut self, request: Samples<'_>) -> Result<Completion, u32> {
        let Samples { client, input, output, may_wait } = request;
        if let Err(status) = self.admit(client, Code::Samples as u32, input.len(), output.len()) {
            return Ok(Completion::failed(status));
        }
        let Ok(wanted) = SamplesRequest::read_from_bytes(input) else {
            return Ok(Completion::failed(STATUS_INFO_LENGTH_MISMATCH));
        };
        let reply = &mut Reply::over(output);
        let may_wait = may_wait && wanted.wait != 0;
        let outcome = match wanted.reserved {
            0 => self.sessions.samples(wanted.session, client, may_wait, &self.platform, reply),
            bits => Err(invalid(ErrorCode::BadFlags, bits.into())),
        };
        match outcome {
            Ok(false) => Err(wanted.wait),
            Ok(true) => Ok(Completion { status: STATUS_SUCCESS, information: reply.finish(Ok(())) }),
            Err(refusal) => Ok(Completion { status: STATUS_SUCCESS, information: reply.finish(Err(refusal)) }),
        }
    }

    /// Checks a request against the table, before its input is read.
    fn admit(
        &mut self,
        client: ClientId,
        code: u32,
        input: usize,
        output: usize,
    ) -> Result<&'static RequestSpec, NtStatus> {
        let spec = protocol::find(code).ok_or(STATUS_INVALID_DEVICE_REQUEST)?;
        match self.clients.get_mut(client) {
            // Unknown handles are those refused at open: the kernel need not block their requests.
            None => Err(STATUS_PRIVILEGE_NOT_HELD),
            Some(client) if !client.greeted && !spec.before_hello => Err(STATUS_INVALID_DEVICE_STATE),
            Some(_) if !spec.input.admits(input) => Err(STATUS_INFO_LENGTH_MISMATCH),
            Some(_) if !spec.output.admits(output) => Err(STATUS_BUFFER_TOO_SMALL),
            Some(_) => Ok(spec),
        }
    }

    /// Answers a request by a function of its own, which is never inlined. So the stack holds the frame of one request,
    /// and the audit of the driver tells what each needs.
    fn answer(&mut self, client: ClientId, input: &Input, output: &mut [u8]) -> usize {
        let reply = &mut Reply::over(output);
        let context = EngineContext::new(&self.platform, &self.sampler);
        let outcome = match input {
            Input::Hello(hello) => return self.hello(client, *hello, output),
            Input::Info => return self.info(output),
            input if input.reserved() != 0 => Err(invalid(ErrorCode::BadFlags, input.reserved())),
            Input::ListSources => {
                self.list_sources(reply);
                Ok(())
            }
            Input::QuerySource(wanted) => self.query_source(*wanted, reply),
            Input::SetInterval(wanted) => self.set_interval(*wanted, reply),
            Input::Start(header, events) => self.start(client, header, events, reply),
            Input::Stop(StopRequest { session, source, core_type, reserved: _ }) => {
                let (session, source, core_type) = (*session, *source, *core_type);
                self.sessions.stop(session, EventFilter { source, core_type }, client, context, reply)
            }
            Input::Read(wanted) => self.sessions.read(wanted.session, client, context, reply),
            Input::ReadGroup(wanted) => return self.read_group(*wanted, client, output),
            Input::ControlArea(wanted) => self.sessions.serve_areas(wanted, context, reply),
            Input::ListHalSources => self.list_hal_sources(reply),
            Input::ReadRegisters(wanted) => self.sessions.read_registers(*wanted, context, reply),
            Input::ListSessions => {
                self.list_sessions(reply);
                Ok(())
            }
            Input::ListCoreTypes => {
                self.list_core_types(reply);
                Ok(())
            }
        };
        reply.finish(outcome)
    }

    #[inline(never)]
    fn hello(&mut self, client: ClientId, hello: Hello, output: &mut [u8]) -> usize {
        let agreed = hello.version == PROTOCOL_VERSION;
        if let Some(client) = self.clients.get_mut(client) {
            // What was agreed once holds: the sampler serves ReadGroup without the engine, and knows of no versions.
            client.greeted |= agreed;
        }
        let mut header = ReplyHeader::new_zeroed();
        if !agreed {
            header = Refusal::new(STATUS_REVISION_MISMATCH, ErrorCode::VersionMismatch)
                .detail(u64::from(hello.version), u64::from(PROTOCOL_VERSION))
                .header();
        }
        let reply = HelloReply { header, protocol: PROTOCOL_VERSION, driver: self.version, ..HelloReply::new_zeroed() };
        write(output, &reply, size_of::<HelloReply>())
    }

    #[inline(never)]
    fn info(&self, output: &mut [u8]) -> usize {
        let interface = self.sampler.hal().interface();
        let selection = self.sampler.hal().boot.selection;
        let processors = self.platform.processors();
        let tried = self.sampler.hal().tried_anywhere();
        let processor_counters = |processor| self.sampler.hal().interface_of(processor).countable();
        let counters = || ProcessorIndex::first(processors).map(processor_counters);
        let (interrupts, account) = (self.sampler.interrupts(), self.sessions.account());
        let in_use =
            |processor| self.sampler.hal().cpu_counters(processor).counters(|state| !state.is_free()).iter().count();
        let reply = InfoReply {
            header: ReplyHeader::new_zeroed(),
            driver: self.version,
            protocol: PROTOCOL_VERSION,
            interface: selection.interface as u32,
            windows10: selection.windows10 as u32,
            reason: selection.reason as u32,
            counters: u32::from(counters().max().unwrap_or_default()),
            width: u32::from(interface.width()),
            pmu_version: u32::from(interface.pmu_version()),
            processors,
            maximum_processors: self.platform.maximum_processors(),
            counters_in_use: number(ProcessorIndex::first(processors).map(in_use).max().unwrap_or_default()),
            sessions: number(self.sessions.running()),
            signature: self.identity.signature,
            vendor: self.identity.vendor,
            brand: self.identity.brand,
            state_bytes: self.sampler.hal().state_bytes() as u64,
            interrupts: interrupts.served,
            spurious: interrupts.spurious,
            delivered: account.delivered,
            lost: account.lost,
            throttled: account.throttled,
            discarded: account.discarded,
            throttles: interrupts.throttles,
            sleeps: self.sampler.sleeps().times(),
            asleep: self.sampler.asleep(self.platform.clock()).0,
            hypervisor: self.sampler.hal().boot.hypervisor as u32,
            reserved: self.sessions.reservation_state(),
            least_counters: u32::from(counters().min().unwrap_or_default()),
            fixed_counters: u32::from(interface.fixed_counters()),
            workarounds: self.sampler.hal().boot.workarounds.bits(),
            smm: self.smm(processors),
            ibs: self.identity.ibs.number(),
            tried: tried.all.bits(),
            still: tried.still.bits(),
            partial: tried.partial.bits(),
            hypervisor_vendor: self.identity.hypervisor_vendor,
        };
        write(output, &reply, size_of::<InfoReply>())
    }

    /// Returns whether the counts of some processor include System Management Mode, as in [`InfoReply`].
    fn smm(&self, processors: u32) -> u32 {
        let known = ProcessorIndex::first(processors).map(|processor| self.sampler.hal().includes_smm(processor));
        known.flatten().map(|includes| 1 + u32::from(includes)).max().unwrap_or_default()
    }

    /// Returns the active processors of a core type, and their counters. `None` if there are none.
    fn core_type(&self, core_type: CoreType) -> Option<CoreTypeRecord> {
        let hal = self.sampler.hal();
        let mut processors = ProcessorSet::EMPTY;
        let mut found = None;
        for processor in self.processors_of(core_type) {
            found = found.or(Some(hal.interface_of(processor)));
            // Windows has no more processors than the set.
            let _ = processors.insert(processor.number());
        }
        let Interface::Emon(emon) = found? else { return None };
        Some(CoreTypeRecord {
            core_type: core_type.number(),
            counters: Interface::Emon(emon).countable().into(),
            fixed_counters: Interface::Emon(emon).fixed_counters().into(),
            width: emon.width().into(),
            fixed_width: emon.capabilities().fixed_width().into(),
            pmu_version: emon.version().into(),
            processors,
        })
    }

    fn processors_of(&self, core_type: CoreType) -> impl Iterator<Item = ProcessorIndex> {
        let hal = self.sampler.hal();
        let active = ProcessorIndex::first(self.platform.processors());
        active.filter(move |processor| hal.core_type(*processor) == Some(core_type))
    }

    /// Returns the record of a source for a core type, or for all with 0.
    fn source_record(&self, source: &SourceInformation, previous_interval: u32, core_type: u32) -> SourceRecord {
        let hal = self.sampler.hal();
        let is_meant = |processor| core_type == 0 || hal.core_type(processor).map(CoreType::number) == Some(core_type);
        let mut record = SourceRecord {
            source: source.source.source.0,
            support: source.support as u32,
            interval: source.interval,
            minimum: source.range.minimum,
            maximum: source.range.maximum,
            previous_interval,
            select: source.source.select,
            running: number(self.sessions.processors_running(source.source.source.0, is_meant)),
            counters: source.counters.bits(),
            unlisted: u32::from(source.listing == Listing::Unlisted),
            precise: source.precise.bits(),
            core_type,
            ..SourceRecord::new_zeroed()
        };
        let name = source.source.name.as_bytes();
        for (to, from) in record.name.iter_mut().zip(name) {
            *to = *from;
        }
        record.name_length = number(name.len().min(NAME_LENGTH));
        record
    }

    #[inline(never)]
    fn list_sources(&self, reply: &mut Reply<'_>) {
        for source in self.sampler.hal().source_list() {
            reply.push(&self.source_record(&source, source.interval, 0));
        }
    }

    #[inline(never)]
    fn list_sessions(&self, reply: &mut Reply<'_>) {
        self.sessions.write_sessions(reply);
    }

    #[inline(never)]
    fn list_core_types(&self, reply: &mut Reply<'_>) {
        for record in CoreType::ALL.into_iter().filter_map(|core_type| self.core_type(core_type)) {
            reply.push(&record);
        }
    }

    #[inline(never)]
    fn read_group(&self, wanted: GroupRequest, client: ClientId, output: &mut [u8]) -> usize {
        let context = EngineContext::new(&self.platform, &self.sampler);
        match self.sessions.read_group(wanted, client, context) {
            Ok(group) => write(output, &group, size_of::<GroupReply>()),
            Err(refusal) => Reply::over(output).finish(Err(refusal)),
        }
    }

    #[inline(never)]
    fn list_hal_sources(&self, reply: &mut Reply<'_>) -> Result<(), Refusal> {
        let numbers = self.sampler.hal().source_list().filter_map(|source| source.source.source.number());
        let records = numbers.map(|source| HalSourceRecord { source, ..HalSourceRecord::new_zeroed() });
        let mut records = try_collect(records, self.sampler.hal().interface().sources().len())?;
        self.platform.ask_hal(&mut records).map_err(|status| Refusal::new(status, ErrorCode::NoMemory))?;
        for record in &records {
            reply.push(record);
        }
        Ok(())
    }

    #[inline(never)]
    fn query_source(&self, wanted: SourceRequest, reply: &mut Reply<'_>) -> Result<(), Refusal> {
        let SourceRequest { source, core_type, reserved: _ } = wanted;
        let hal = self.sampler.hal();
        let information = match CoreType::from_number(core_type) {
            _ if core_type == 0 => hal.source_information(Source(source))?,
            found => {
                let processor = found.and_then(|found| self.processors_of(found).next());
                let refusal = || no_such_core_type(source, core_type, 0);
                hal.source_information_on(processor.ok_or_else(refusal)?, Source(source))?
            }
        };
        reply.push(&self.source_record(&information, information.interval, core_type));
        Ok(())
    }

    #[inline(never)]
    fn set_interval(&self, wanted: IntervalRequest, reply: &mut Reply<'_>) -> Result<(), Refusal> {
        let source = Source(wanted.source);
        let mut interval = wanted.interval;
        if source == Source::TIME {
            interval = self.platform.timer_interval(IntervalRange::TIMER.clamp(interval));
        }
        let (previous, _) = self.sampler.hal().set_interval(source, interval)?;
        reply.push(&self.source_record(&self.sampler.hal().source_information(source)?, previous, 0));
        Ok(())
    }

    #[inline(never)]
    fn start(
        &mut self,
        client: ClientId,
        header: &StartHeader,
        events: &[EventRequest],
        reply: &mut Reply<'_>,
    ) -> Result<(), Refusal> {
        let process = self.clients.get_mut(client).map_or(0, |client| client.process);
        let requester = Requester { client, process };
        let context = EngineContext::new(&self.platform, &self.sampler);
        let number = self.sessions.start(requester, header, events, context, reply)?;
        reply.set_detail(number, self.sampler.clock());
        Ok(())
    }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
