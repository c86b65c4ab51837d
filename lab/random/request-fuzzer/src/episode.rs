//! One machine, from its engine's creation to its end, with random requests and random things that happen meanwhile.

use std::sync::{Mutex, PoisonError};

use crate::choices::Choices;
use engine::{ClientId, Completion, Engine, Request};
use model::Ledger;
use protocol::status::{
    STATUS_BUFFER_TOO_SMALL, STATUS_INFO_LENGTH_MISMATCH, STATUS_INVALID_DEVICE_REQUEST, STATUS_INVALID_DEVICE_STATE,
    STATUS_PRIVILEGE_NOT_HELD, STATUS_SUCCESS,
};
use protocol::{Code, ErrorCode, Hello, Method, NtStatus, PROTOCOL_VERSION, REQUESTS, ReplyHeader};
use simulation::{STATUS_PENDING, SimMachine};
use zerocopy::{FromBytes, IntoBytes};

use crate::book::{Happened, Session};
use crate::generate::{Generator, Known};
use crate::identities::Sources;
use crate::registers::{Foreign, Registers};
use crate::scarcity::Scarcity;
use crate::stats::Stats;
use crate::traits::Traits;

/// Number of handles of an episode.
pub const HANDLES: usize = 4;

/// Length of the longest output.
pub const LONGEST: usize = 1 << 16;

/// A handle.
#[derive(Debug, Clone, Copy)]
pub struct Handle {
    /// Its number, which the engine sees.
    pub id: usize,
    /// Whether the engine let it open the device.
    pub is_open: bool,
    /// Whether the versions agreed.
    pub is_greeted: bool,
}

/// How far the machine is on its way to sleep and back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sleep {
    /// It runs.
    Awake,
    /// It is announced; some processors sleep.
    FallingAsleep,
    /// It wakes after this time; some processors still sleep.
    Waking(engine::Ticks),
}

/// A machine, its engine, and what must be true of both.
pub struct Episode<'a> {
    pub(crate) machine: &'a SimMachine,
    pub(crate) engine: Engine<&'a SimMachine>,
    pub(crate) traits: &'a Traits,
    pub(crate) sources: Option<&'a Sources>,
    pub(crate) choices: Choices<'a>,
    /// The last one is used for no random request, and is open in a day alone.
    pub(crate) handles: [Handle; HANDLES + 1],
    last_handle: usize,
    pub(crate) sessions: Vec<Session>,
    pub(crate) happened: Vec<Happened>,
    pub(crate) sleep: Sleep,
    pub(crate) found: Vec<Registers>,
    pub(crate) foreign: Vec<Foreign>,
    /// Number of sleeps before another program began to use a counter.
    pub(crate) used_after: u64,
    /// Whether a session of a killed client may still run, because Windows keeps it.
    pub(crate) has_orphans: bool,
    pub(crate) stats: Stats,
    pub(crate) input: Vec<u8>,
    pub(crate) output: Vec<u8>,
    numbers: Vec<u64>,
    /// Whether the processors lie.
    pub(crate) lies: bool,
    /// Number of the current step.
    pub(crate) step: u64,
    /// Time by which each reading of the clock advances it.
    pub(crate) pace: u64,
    /// The time before the last request.
    pub(crate) before: u64,
    /// Under a hypervisor, the ledgers of the processors before the last start, which executed a loop.
    pub(crate) before_start: Vec<Ledger>,
    /// The ledgers of the processors that were added, afterwards, and whether at most one session began there: the loop
    /// of a second one is among the events of the first.
    pub(crate) added: Vec<(u32, Ledger, bool)>,
    /// The steps so far, if they are wanted.
    pub(crate) trace: Option<&'a Mutex<Vec<String>>>,
}

/// What came back.
#[derive(Debug, Clone, Copy)]
pub struct Reply {
    /// Status and length.
    pub completion: Completion,
    /// The header, if the request was served.
    pub header: Option<ReplyHeader>,
}

impl Reply {
    /// Returns the header if the request was accepted.
    pub fn accepted(&self) -> Option<ReplyHeader> {
        self.header.filter(|header| header.cause == 0)
    }
}

impl<'a> Episode<'a> {
    /// Makes the engine of a machine, and opens the handles.
    ///
    /// # Panics
    /// Panics if the engine refuses.
    pub fn new(
        machine: &'a SimMachine,
        traits: &'a Traits,
        sources: Option<&'a Sources>,
        choices: Choices<'a>,
        trace: Option<&'a Mutex<Vec<String>>>,
    ) -> Self {
        let all = 0..traits.processors.0;
        let found = all.clone().map(|processor| Registers::read(machine, processor)).collect();
        #[expect(clippy::expect_used, reason = "memory suffices")]
        let engine = Engine::new(machine, [1, 2, 3, 0]).expect("an engine");
        let mut episode = Self {
            machine,
            engine,
            traits,
            sources,
            choices,
            handles: [Handle { id: 0, is_open: false, is_greeted: false }; HANDLES + 1],
            last_handle: 0,
            sessions: Vec::new(),
            happened: all.clone().map(|_| Happened::default()).collect(),
            sleep: Sleep::Awake,
            found,
            foreign: all.map(|_| Foreign::default()).collect(),
            used_after: 0,
            has_orphans: false,
            stats: Stats::default(),
            input: Vec::new(),
            output: vec![0; LONGEST],
            numbers: Vec::new(),
            lies: false,
            step: 0,
            pace: 0,
            before: 0,
            before_start: Vec::new(),
            added: Vec::new(),
            trace,
        };
        (0..HANDLES).for_each(|slot| episode.open(slot));
        episode
    }

    /// Adds a step to the trace.
    pub(crate) fn note(&self, text: impl FnOnce() -> String) {
        if let Some(trace) = self.trace {
            trace.lock().unwrap_or_else(PoisonError::into_inner).push(format!("{}: {}", self.step, text()));
        }
    }

    pub(crate) fn number(&mut self, most: u64) -> u32 {
        u32::try_from(self.choices.up_to(most)).unwrap_or(u32::MAX)
    }

    pub(crate) fn one_in(&mut self, count: u64) -> bool {
        self.choices.one_in(count)
    }

    pub(crate) fn handle(&self, slot: usize) -> Handle {
        self.handles.get(slot).copied().unwrap_or(Handle { id: 0, is_open: false, is_greeted: false })
    }

    /// Opens a handle, and mostly agrees on the version.
    pub(crate) fn open(&mut self, slot: usize) {
        self.last_handle += 1;
        let id = self.last_handle;
        assert_eq!(
            self.engine.open(ClientId(id), 10 + u32::try_from(slot).unwrap_or_default()),
            STATUS_SUCCESS,
            "open"
        );
        if let Some(handle) = self.handles.get_mut(slot) {
            *handle = Handle { id, is_open: true, is_greeted: false };
        }
        if !self.one_in(20) {
            self.input.clear();
            self.input.extend_from_slice(Hello { version: PROTOCOL_VERSION, reserved: 0 }.as_bytes());
            self.serve(slot, Code::Hello as u32, 256);
        }
    }

    /// Returns the status that the table of requests demands.
    fn expected_status(&self, slot: usize, code: u32, output: usize) -> NtStatus {
        let handle = self.handle(slot);
        match protocol::find(code) {
            None => STATUS_INVALID_DEVICE_REQUEST,
            Some(_) if !handle.is_open => STATUS_PRIVILEGE_NOT_HELD,
            Some(spec) if !handle.is_greeted && spec.code != Code::Hello => STATUS_INVALID_DEVICE_STATE,
            Some(spec) if !spec.input.admits(self.input.len()) => STATUS_INFO_LENGTH_MISMATCH,
            Some(spec) if !spec.output.admits(output) => STATUS_BUFFER_TOO_SMALL,
            Some(_) => STATUS_SUCCESS,
        }
    }

    /// Sends the input with an output buffer of this length, and checks what is true of every reply.
    ///
    /// # Panics
    /// Panics if it is not.
    pub(crate) fn serve(&mut self, slot: usize, code: u32, output: usize) -> Reply {
        let client = ClientId(self.handle(slot).id);
        let expected = self.expected_status(slot, code, output);
        self.before = engine::Platform::clock(&self.machine).0;
        if code == Code::Start as u32 && self.is_guest() {
            self.before_start = self.machine.all().map(|cpu| cpu.model().ledger().clone()).collect();
        }
        let mut is_direct = false;
        let direct = protocol::find(code).is_some_and(|spec| spec.method == Method::OutDirect);
        let completion = if direct {
            let may_wait = self.one_in(2);
            let Some(pages) = self.output.get_mut(..output) else { unreachable_output() };
            let samples = engine::Samples { client, input: &self.input, output: pages, may_wait };
            self.engine.samples(samples).unwrap_or(Completion { status: STATUS_PENDING, information: 0 })
        } else {
            let length = self.input.len();
            let Some(buffer) = self.output.get_mut(..length.max(output)) else { unreachable_output() };
            buffer.iter_mut().zip(&self.input).for_each(|(to, from)| *to = *from);
            let mut request = Request { client, code, buffer, input: length, output };
            let (machine, sampler) = (self.machine, self.engine.sampler());
            let current = engine::Platform::current_processor(&machine);
            // The driver asks the sampler alone first.
            let direct = request.read_group(|wanted, client, reply| {
                let current = machine.current(current.number());
                sampler.read_group(current, &|| machine.now_ticks(), client, wanted, reply)
            });
            is_direct = direct.is_some();
            match direct {
                Some(completion) => completion,
                None => self.engine.serve(request),
            }
        };
        // The sampler does not know of versions: the group of a detached session is read before Hello.
        if completion.status != STATUS_PENDING && (self.handle(slot).is_greeted || !is_direct) {
            assert_eq!(completion.status, expected, "status of {code:#x}");
        }
        assert!(completion.information <= output, "{} of {output} bytes", completion.information);
        let bytes = self.output.get(..completion.information).unwrap_or_default();
        let header = ReplyHeader::read_from_prefix(bytes).ok().map(|(header, _)| header);
        if completion.status == STATUS_SUCCESS {
            let Some(header) = header else { return no_header(code) };
            let cause = ErrorCode::from_number(header.cause);
            assert!(cause.is_some(), "cause {} of {code:#x}", header.cause);
            assert_eq!(header.status == 0, header.cause == 0, "{header:?} of {code:#x}");
            assert!(header.count <= header.total, "{header:?} of {code:#x}");
            if code == Code::Hello as u32
                && let Some(handle) = self.handles.get_mut(slot)
            {
                handle.is_greeted |= header.cause == 0;
            }
        }
        self.stats.count(code, header.map(|header| header.cause));
        if self.trace.is_some() {
            let name = protocol::find(code).map_or("(unknown)", |spec| spec.name);
            let (input, sleep) = (self.input.clone(), self.sleep);
            let cause = header.and_then(|header| ErrorCode::from_number(header.cause));
            self.note(|| {
                let detail = header.map(|header| header.detail);
                format!(
                    "handle {slot}: {name} {} -> {} {cause:?} {detail:x?}, {sleep:?}",
                    describe(code, &input),
                    completion.status
                )
            });
        }
        Reply { completion, header }
    }

    /// Sends a random request of a random handle.
    pub(crate) fn request(&mut self) {
        let slot = usize::try_from(self.choices.up_to(HANDLES as u64 - 1)).unwrap_or_default();
        let code = self.choose_code();
        let known = self.traits.identity.expected.supported;
        self.numbers.clear();
        let everyones = self.one_in(20);
        let mine = self.sessions.iter().filter(|session| everyones || session.owner.is_none_or(|owner| owner == slot));
        self.numbers.extend(mine.map(|session| session.number));
        // Without a session, most of these would be refused.
        let needs_session = matches!(code, Code::Stop | Code::Read | Code::Samples | Code::ReadGroup);
        let code = if needs_session && self.numbers.is_empty() && !self.one_in(8) { Code::Start } else { code };
        let corrupts = self.choices.percent(self.traits.corrupted);
        let known = Known {
            supported: known,
            sessions: &self.numbers,
            active: self.machine.active(),
            hybrid: self.traits.identity.odd_processors.is_some(),
            debug_store: self.traits.has_debug_store,
            // Nor must a processor that lies stop them.
            threads: !self.traits.foreign && !self.lies,
            scarcity: self.traits.scarcity,
            ring_bytes: self.ring_bytes(),
        };
        let mut generator = Generator { choices: &mut self.choices, known };
        generator.write(code, &mut self.input);
        let mut number = code as u32;
        let mut output = 1 << 15;
        if corrupts {
            match generator.choices.up_to(3) {
                0 => output = usize::try_from(generator.choices.up_to(400)).unwrap_or_default(),
                1 => number ^= 1 << generator.choices.up_to(31),
                _ => generator.corrupt(&mut self.input),
            }
        } else if generator.choices.up_to(15) == 0 {
            // Room for some records.
            let least = match code {
                Code::Hello => 72,
                Code::Info => 272,
                Code::ReadGroup => 336,
                _ => 48 + 136,
            };
            output = least + usize::try_from(generator.choices.up_to(1_000)).unwrap_or_default();
        }
        if code == Code::Samples && self.one_in(2) {
            output = LONGEST;
        }
        let reply = self.serve(slot, number, output);
        if self.lies { self.follow_lies(slot, number, &reply) } else { self.follow(slot, number, &reply) }
    }

    fn choose_code(&mut self) -> Code {
        const WEIGHTS: [(u64, Code); REQUESTS.len()] = [
            (150, Code::Read),
            (150, Code::ReadGroup),
            (150, Code::Samples),
            (130, Code::Start),
            (110, Code::Stop),
            (80, Code::QuerySource),
            (60, Code::SetInterval),
            (40, Code::ListSessions),
            (40, Code::Info),
            (40, Code::ControlArea),
            (20, Code::Hello),
            (20, Code::ListCoreTypes),
            (14, Code::ReadRegisters),
            (3, Code::ListSources),
            (3, Code::ListHalSources),
        ];
        if self.traits.scarcity.is_some_and(Scarcity::takes_many_sessions) && self.one_in(4) {
            return Code::Start;
        }
        let mut chosen = self.choices.up_to(WEIGHTS.iter().map(|(weight, _)| weight).sum::<u64>() - 1);
        for (weight, code) in WEIGHTS {
            match chosen.checked_sub(weight) {
                Some(left) => chosen = left,
                None => return code,
            }
        }
        Code::Info
    }
}

#[expect(clippy::panic, reason = "the fuzzer chose a length beyond its own buffer")]
fn unreachable_output() -> ! {
    panic!("no request is longer than {LONGEST}")
}

#[expect(clippy::panic, reason = "a failure of the engine")]
fn no_header(code: u32) -> Reply {
    panic!("a reply to {code:#x} without a header")
}

/// Returns the input of a request as text.
fn describe(code: u32, input: &[u8]) -> String {
    let words = |input: &[u8]| {
        input
            .chunks(4)
            .map(|word| word.iter().rev().fold(0_u32, |all, byte| all << 8 | u32::from(*byte)))
            .collect::<Vec<_>>()
    };
    if code == Code::Start as u32
        && let Ok((header, rest)) = protocol::StartHeader::read_from_prefix(input)
    {
        let events: Vec<_> =
            rest.chunks_exact(48).filter_map(|event| protocol::EventRequest::read_from_bytes(event).ok()).collect();
        let processors: Vec<u32> = header.processors.iter().collect();
        return format!(
            "flags {:#x} ring {} budget {} batch {} on {processors:?}: {events:x?}",
            header.flags, header.ring, header.budget, header.batch
        );
    }
    format!("{:x?}", words(input.get(..input.len().min(48)).unwrap_or_default()))
}
