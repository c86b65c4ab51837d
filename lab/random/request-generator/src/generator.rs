//! The steps of one thread of a fuzzer.

use bench_protocol::Random;
use protocol::{
    ALL_SOURCES, AreaRequest, Code, GroupRequest, Hello, IntervalRequest, PROTOCOL_VERSION, ProcessorSet, REQUESTS,
    RegistersRequest, SampleRecord, SamplesRequest, SessionRequest, Size, SourceRequest, StopRequest,
};
use zerocopy::IntoBytes;

use crate::change::change;
use crate::draw::{number, pick};
use crate::machine::Machine;
use crate::request::{Request, SessionAt, SessionPick};
use crate::start::start;
use crate::storm::Restrictions;

/// Number of handles that a thread can have at the same time.
pub const SLOTS: usize = 4;

/// Requests and their shares.
const CODES: [(Code, u64); 15] = [
    (Code::Hello, 2),
    (Code::Info, 4),
    (Code::ListSources, 2),
    (Code::QuerySource, 4),
    (Code::SetInterval, 4),
    (Code::Start, 18),
    (Code::Stop, 18),
    (Code::Read, 10),
    (Code::ListSessions, 5),
    (Code::Samples, 14),
    (Code::ControlArea, 4),
    (Code::ListCoreTypes, 2),
    (Code::ReadRegisters, 2),
    (Code::ListHalSources, 1),
    (Code::ReadGroup, 8),
];

/// How to open a handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HandleKind {
    /// Whether the handle may change something.
    pub writable: bool,
    /// Whether requests may be pending.
    pub overlapped: bool,
}

/// What a thread does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Opens a handle.
    Open {
        /// Its slot, which is empty.
        slot: usize,
        /// What kind of handle.
        kind: HandleKind,
    },
    /// Closes a handle, with its pending requests.
    Close {
        /// Its slot.
        slot: usize,
    },
    /// Cancels the pending requests of a handle.
    Cancel {
        /// Its slot.
        slot: usize,
    },
    /// Sends a request.
    Send {
        /// The slot of the handle.
        slot: usize,
        /// Whether it is a handle of the next thread. It may be closed, or be closed at this moment.
        of_next: bool,
        /// The request.
        request: Request,
    },
}

/// Makes the steps of a thread.
#[derive(Debug)]
pub struct Generator {
    random: Random,
    machine: Machine,
    restrictions: Restrictions,
    thread: u32,
    threads: u32,
    /// Number of sessions that the thread has asked for.
    starts: u32,
    open: [bool; SLOTS],
    /// The request that agrees on the version, after a handle was opened.
    greeting: Option<usize>,
    /// The slot of the last request to start a session.
    last_start: usize,
}

impl Generator {
    /// Creates the generator of one of several threads.
    #[must_use]
    pub const fn new(seed: u64, thread: u32, threads: u32, machine: Machine, restrictions: Restrictions) -> Self {
        let random = Random::new(seed, thread as u64);
        let open = [false; SLOTS];
        Self { random, machine, restrictions, thread, threads, starts: 0, open, greeting: None, last_start: 0 }
    }

    /// Returns the next step.
    pub fn step(&mut self) -> Step {
        if let Some(slot) = self.greeting.take() {
            let version = if self.random.percent(98) { PROTOCOL_VERSION } else { number(&mut self.random, 20) };
            let request = Request {
                code: Code::Hello as u32,
                input: Hello { version, reserved: 0 }.as_bytes().to_vec(),
                session: None,
                output: 72,
            };
            return Step::Send { slot, of_next: false, request };
        }
        let slot = number(&mut self.random, 3) as usize % SLOTS;
        if !self.open.get(slot).is_some_and(|open| *open) {
            self.set_open(slot, true);
            self.greeting = Some(slot);
            let kind = HandleKind { writable: self.random.percent(90), overlapped: self.random.percent(60) };
            return Step::Open { slot, kind };
        }
        match self.random.up_to(99) {
            0 | 1 => {
                self.set_open(slot, false);
                Step::Close { slot }
            }
            2 => Step::Cancel { slot },
            _ => {
                let request = self.request();
                let slot = self.slot_for(&request, slot);
                Step::Send { slot, of_next: self.random.percent(3), request }
            }
        }
    }

    /// Returns the slot for a request: those for sessions go mostly where a session may be.
    fn slot_for(&mut self, request: &Request, slot: usize) -> usize {
        if request.code == Code::Start as u32 {
            self.last_start = slot;
        }
        let is_open = self.open.get(self.last_start).is_some_and(|open| *open);
        if request.session.is_some() && is_open && self.random.percent(75) { self.last_start } else { slot }
    }

    fn set_open(&mut self, slot: usize, open: bool) {
        if let Some(is_open) = self.open.get_mut(slot) {
            *is_open = open;
        }
    }

    fn request(&mut self) -> Request {
        let code = self.code();
        let mut request = self.valid(code);
        // A changed request could start any kind of session.
        if self.random.percent(22) && !(self.restrictions.exact && code == Code::Start) {
            change(&mut self.random, &mut request);
        }
        request
    }

    fn code(&mut self) -> Code {
        let sum = CODES.iter().map(|(_, share)| share).sum::<u64>();
        let mut drawn = self.random.up_to(sum - 1);
        for (code, share) in CODES {
            match drawn.checked_sub(share) {
                Some(rest) => drawn = rest,
                None => return code,
            }
        }
        Code::Info
    }

    /// Returns a valid request, as far as the machine offers what it asks for.
    fn valid(&mut self, code: Code) -> Request {
        let random = &mut self.random;
        let mut session = None;
        let input = match code {
            Code::Hello => Hello { version: PROTOCOL_VERSION, reserved: 0 }.as_bytes().to_vec(),
            Code::Info | Code::ListSources | Code::ListSessions | Code::ListCoreTypes | Code::ListHalSources => {
                Vec::new()
            }
            Code::QuerySource => {
                let core_type = if random.percent(30) { pick(random, &self.machine.core_types) } else { None };
                let source = source(random, &self.machine);
                SourceRequest { source, core_type: core_type.unwrap_or(0), reserved: 0 }.as_bytes().to_vec()
            }
            Code::SetInterval => {
                let source = source(random, &self.machine);
                let interval = if random.percent(50) { number(random, u32::MAX) } else { number(random, 200_000) };
                IntervalRequest { source, interval, reserved: 0 }.as_bytes().to_vec()
            }
            Code::Start => {
                let ordinal = self.starts.wrapping_mul(self.threads).wrapping_add(self.thread);
                self.starts = self.starts.wrapping_add(1);
                start(random, &self.machine, self.restrictions, ordinal)
            }
            Code::Stop => {
                session = session_at(random);
                let source = if random.percent(85) { ALL_SOURCES } else { source(random, &self.machine) };
                StopRequest { session: 0, source, core_type: 0, reserved: 0 }.as_bytes().to_vec()
            }
            Code::Read => {
                session = session_at(random);
                SessionRequest { session: 0 }.as_bytes().to_vec()
            }
            Code::ReadGroup => {
                session = session_at(random);
                GroupRequest { session: 0, flags: number(random, 1), reserved: 0 }.as_bytes().to_vec()
            }
            Code::Samples => {
                session = session_at(random);
                let wait = if random.percent(15) { number(random, 60_000) } else { 0 };
                SamplesRequest { session: 0, wait, reserved: 0 }.as_bytes().to_vec()
            }
            Code::ControlArea => {
                let mut processors = ProcessorSet::EMPTY;
                let current = u32::from(random.percent(30));
                if current == 0 && random.percent(50) {
                    processors.insert(number(random, self.machine.processors));
                }
                let operation = if random.percent(40) { 0 } else { number(random, 2) };
                AreaRequest { operation, current, reserved: 0, processors }.as_bytes().to_vec()
            }
            Code::ReadRegisters => {
                let processor = number(random, self.machine.processors);
                RegistersRequest { processor, reserved: 0 }.as_bytes().to_vec()
            }
        };
        Request { code: code as u32, input, session, output: output(random, code) }
    }
}

/// Returns which session a request is for: usually one of its handle, sometimes all that are detached.
fn session_at(random: &mut Random) -> Option<SessionAt> {
    let pick = match random.up_to(19) {
        0 => return None,
        1 => SessionPick::Latest,
        _ => SessionPick::OfHandle(if random.percent(70) { 0 } else { number(random, 3) as usize }),
    };
    Some(SessionAt { offset: 0, pick })
}

/// Returns a source of the machine, or any number.
fn source(random: &mut Random, machine: &Machine) -> u64 {
    let known = pick(random, &machine.sources).map(|limits| limits.source);
    if random.percent(90) { known.unwrap_or(0) } else { random.up_to(0x200) }
}

/// Returns a valid length of the output.
fn output(random: &mut Random, code: Code) -> usize {
    let spec = REQUESTS.iter().find(|spec| spec.code == code);
    let least = spec.map_or(48, |spec| match spec.output {
        Size::Exactly(length) | Size::AtLeast(length) => length,
        Size::Entries { head, entry, .. } => head + entry,
    });
    let records = if code == Code::Samples { 200 * size_of::<SampleRecord>() as u64 } else { 8_192 };
    match random.up_to(9) {
        0 => least,
        1 => least + usize::try_from(random.up_to(records)).unwrap_or(0),
        _ => least + usize::try_from(records).unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::machine::SourceLimits;

    fn machine() -> Machine {
        let source = |source| SourceLimits { source, minimum: 4_096, maximum: 1 << 31, precise: 1 };
        Machine { active: 2, processors: 4, sources: (0..12).map(source).collect(), core_types: vec![] }
    }

    fn steps(seed: u64, thread: u32, count: usize) -> Vec<Step> {
        let mut generator = Generator::new(seed, thread, 2, machine(), Restrictions::default());
        (0..count).map(|_| generator.step()).collect()
    }

    #[test]
    fn the_steps_of_a_thread_are_a_function_of_the_seed() {
        assert_eq!(steps(1, 0, 2_000), steps(1, 0, 2_000));
        assert_ne!(steps(1, 0, 2_000), steps(1, 1, 2_000));
        assert_ne!(steps(1, 0, 2_000), steps(2, 0, 2_000));
    }

    #[test]
    fn every_request_occurs_with_valid_and_with_invalid_lengths() {
        let mut valid: BTreeMap<u32, [u64; 2]> = BTreeMap::new();
        for step in steps(3, 0, 40_000) {
            let Step::Send { request, .. } = step else { continue };
            let spec = protocol::find(request.code);
            let admitted =
                spec.is_some_and(|spec| spec.input.admits(request.input.len()) && spec.output.admits(request.output));
            valid.entry(spec.map_or(0, |_| request.code)).or_default()[usize::from(admitted)] += 1;
        }
        assert_eq!(valid.len(), REQUESTS.len() + 1);
        for (code, [invalid, valid]) in valid {
            assert!(code == 0 || (invalid > 0 && valid > invalid), "{code:#x}: {invalid} invalid, {valid} valid");
        }
    }

    #[test]
    fn a_handle_is_opened_before_it_is_used_and_greeted_first() {
        let mut open = [false; SLOTS];
        let mut fresh = None;
        for step in steps(5, 1, 20_000) {
            match step {
                Step::Open { slot, .. } => {
                    assert!(!open[slot]);
                    open[slot] = true;
                    fresh = Some(slot);
                }
                Step::Close { slot } => {
                    assert!(open[slot]);
                    open[slot] = false;
                }
                Step::Cancel { slot } => assert!(open[slot]),
                Step::Send { slot, of_next, request } => {
                    assert!(of_next || open[slot]);
                    if let Some(fresh) = fresh.take() {
                        assert_eq!((slot, request.code), (fresh, Code::Hello as u32));
                    }
                }
            }
        }
    }
}
