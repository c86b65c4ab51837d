//! Episodes on processors that lie: bytes decide what RDMSR and CPUID answer, and which guarded accesses fault.
//! No count can be right then. What must hold is that the engine does not panic, writes nothing that it has neither
//! tried under a guard nor just read there, tells each refusal, and puts back the registers whose contents it was told.
//!
//! CPUID, and the contents of registers that only software changes, are answered in the same way from the first
//! question on, guarded or not, as a hypervisor with a defect answers them: nothing protects a driver from a register
//! that reads otherwise after it was tried. Status registers and counters can read differently each time.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use protocol::{ALL_SOURCES, Code, StartHeader, StopRequest};
use simulation::{Lie, Question, SimMachine};
use zerocopy::FromBytes;

use crate::book::Session;
use crate::choices::Choices;
use crate::episode::{Episode, HANDLES, Reply};
use crate::identities::Catalog;
use crate::traits::Traits;

/// One byte in so many of an input is one of the lies, from its end; the others are those of the requests.
const SHARE: usize = 2;

/// The lies of a machine.
#[derive(Debug, Clone, Default)]
pub struct Lies(Arc<Mutex<Told>>);

/// IA32_DS_AREA.
const DS_AREA: u32 = 0x600;

/// Counters and status registers, which processors change.
const CHANGING: [Range<u32>; 8] = [
    0xC1..0xC9,
    0x300..0x312,
    0x309..0x30E,
    0x329..0x32A,
    0x38E..0x38F,
    0x4C1..0x4C9,
    0xC000_0300..0xC000_0301,
    0xC001_0004..0xC001_0008,
];

/// Returns whether only software changes a register.
fn is_set_by_software(register: u32) -> bool {
    let is_amd_counter = (0xC001_0200..0xC001_020C).contains(&register) && register % 2 == 1;
    !is_amd_counter && !CHANGING.iter().any(|range| range.contains(&register))
}

/// What was answered.
#[derive(Debug, Default)]
struct Told {
    /// Bytes that decide, in reverse order.
    bytes: Vec<u8>,
    /// Number of answers before the next lie.
    truths: u64,
    /// Lies that a processor repeats whenever it is asked the same.
    kept: BTreeMap<(u32, Question), Lie>,
    /// Registers of a processor whose contents were not told, or that faulted.
    registers: BTreeSet<(u32, u32)>,
    /// Number of lies.
    count: u64,
    /// The lies that are not in the trace yet, if there is one.
    untraced: Option<Vec<String>>,
}

impl Told {
    /// Returns a number up to `most`, or 0 behind the last byte.
    fn up_to(&mut self, most: u64) -> u64 {
        Choices::new(&mut std::iter::from_fn(|| self.bytes.pop())).up_to(most)
    }

    fn answer(&mut self, processor: u32, question: Question) -> Lie {
        let (processor, question, is_constant) = match question {
            Question::GuardedRead(register) => (processor, Question::Read(register), is_set_by_software(register)),
            Question::Read(register) => (processor, question, is_set_by_software(register)),
            // Another vendor would be another machine. The reset of Nehalem's counters takes leaf 0AH at its word.
            Question::Cpuid(0 | 0xA, _) => return Lie::Truth,
            // The same lie everywhere: processors of one kind have the same features.
            Question::Cpuid(..) => (0, question, true),
            _ => (processor, question, false),
        };
        if let Some(lie) = self.kept.get(&(processor, question)).copied() {
            return self.told(processor, question, lie);
        }
        if self.truths > 0 || self.bytes.is_empty() {
            self.truths = self.truths.saturating_sub(1);
            if is_constant {
                self.kept.insert((processor, question), Lie::Truth);
            }
            return Lie::Truth;
        }
        // Few answers are asked for at each step, and many at the start of the engine.
        self.truths = match self.up_to(255) {
            near @ 0..128 => near,
            far => (far - 127) * 32,
        };
        let kind = self.up_to(15);
        let lie = match kind & 0b111 {
            0 | 1 if !matches!(question, Question::Cpuid(..)) => Lie::Fault,
            2 => Lie::Instead(0),
            3 => Lie::Instead(u128::MAX),
            4 => Lie::Instead(u128::from(self.up_to(u64::MAX)) | u128::from(self.up_to(u64::MAX)) << 64),
            _ => Lie::Inverted(1 << self.up_to(127)),
        };
        if kind > 0b111 || is_constant {
            self.kept.insert((processor, question), lie);
        }
        self.told(processor, question, lie)
    }

    fn told(&mut self, processor: u32, question: Question, lie: Lie) -> Lie {
        if lie == Lie::Truth {
            return lie;
        }
        self.count += 1;
        if let Some(untraced) = &mut self.untraced {
            untraced.push(format!("    processor {processor} answers {question:x?} with {lie:x?}"));
        }
        if let Question::Read(register) | Question::GuardedWrite(register) = question {
            self.registers.insert((processor, register));
        }
        lie
    }
}

impl Lies {
    /// Lets the processors of a machine answer by these bytes.
    pub fn begin(machine: &SimMachine, bytes: &[u8]) -> Self {
        let lies = Self::default();
        lies.told().bytes = bytes.iter().rev().copied().collect();
        for (number, cpu) in (0..).zip(machine.all()) {
            let lies = lies.clone();
            cpu.lie(Some(Box::new(move |question| lies.told().answer(number, question))));
        }
        lies
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the engine was told what this register of a processor contains, whenever it asked.
    pub fn is_known(&self, processor: u32, register: u32) -> bool {
        // AMD's first four select registers have second addresses.
        let second = match register {
            0xC001_0000..0xC001_0004 => 0xC001_0200 + 2 * (register & 3),
            0xC001_0200..0xC001_0208 => 0xC001_0000 + (register & 7) / 2,
            _ => register,
        };
        let told = self.told();
        [register, second].iter().all(|register| !told.registers.contains(&(processor, *register)))
    }

    /// Returns the number of lies.
    pub fn count(&self) -> u64 {
        self.told().count
    }
}

/// Adds the lies to a trace: those of a step behind it, and those of the last step when it is dropped, because a check
/// may have failed there.
pub struct Traced<'a> {
    lies: &'a Lies,
    trace: Option<&'a Mutex<Vec<String>>>,
}

impl<'a> Traced<'a> {
    pub fn new(lies: &'a Lies, trace: Option<&'a Mutex<Vec<String>>>) -> Self {
        lies.told().untraced = trace.map(|_| Vec::new());
        Self { lies, trace }
    }

    pub fn add(&self) {
        if let (Some(trace), Some(untraced)) = (self.trace, &mut self.lies.told().untraced) {
            trace.lock().unwrap_or_else(PoisonError::into_inner).append(untraced);
        }
    }
}

impl Drop for Traced<'_> {
    fn drop(&mut self) {
        self.add();
    }
}

/// Parts an input: the bytes of the requests, and those of the lies.
pub fn parts(bytes: &[u8]) -> (&[u8], &[u8]) {
    bytes.split_at(bytes.len() - bytes.len() / SHARE)
}

impl Traits {
    /// Returns the traits of an episode on processors that lie: no other program writes, so that what the registers
    /// contain at the end is the engine's doing, and no count is asked for at the end.
    pub(crate) fn of_lies(choices: &mut Choices<'_>, catalog: &Catalog) -> Self {
        let traits = Self::choose(choices, 0, catalog);
        Self { foreign: false, profiling_threads: false, stops_at_end: false, closes_at_end: true, ..traits }
    }
}

impl Episode<'_> {
    /// Notes which sessions run. Their counts can be anything.
    pub(crate) fn follow_lies(&mut self, slot: usize, code: u32, reply: &Reply) {
        let Some(header) = reply.accepted() else { return };
        match protocol::find(code).map(|spec| spec.code) {
            Some(Code::Start) => {
                if let Ok((start, _)) = StartHeader::read_from_prefix(&self.input) {
                    self.stats.sessions += 1;
                    let [number, _] = header.detail;
                    self.sessions.push(Session::new(number, slot, &start, &[]));
                }
            }
            Some(Code::Stop) => {
                if let Ok(request) = StopRequest::read_from_bytes(&self.input)
                    && request.source == ALL_SOURCES
                {
                    self.sessions.retain(|session| !session.is_meant(request.session, slot));
                }
            }
            _ => {}
        }
    }

    /// Ends the episode, and checks that nothing is left, except what the lies hid.
    ///
    /// # Panics
    /// Panics if something is.
    pub(crate) fn finish_lies(&mut self, lies: &Lies) {
        self.stats.lies = lies.count();
        self.allow_everything();
        self.wake();
        self.note(|| "everything ends".to_owned());
        (0..HANDLES).for_each(|slot| self.close(slot));
        self.engine.shut_down();
        self.engine.accumulate_counts();
        // Memory to which a processor may still write is not freed.
        let may_hold = (0..self.machine.active()).any(|processor| !lies.is_known(processor, DS_AREA));
        assert!(may_hold || !self.machine.is_in_use(), "a resource of the machine is still held");
        for (processor, found) in (0..self.machine.active()).zip(&self.found) {
            found.check_those(self.machine, processor, &|register| lies.is_known(processor, register));
        }
    }
}
