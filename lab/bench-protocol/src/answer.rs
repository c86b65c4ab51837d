//! What the lab answers. Lists of lists have one entry for each processor, in the order of their numbers.

use crate::Place;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A counter of a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Counter {
    /// A general-purpose counter.
    General(u8),
    /// A fixed-function counter.
    Fixed(u8),
}

/// What a counter was given while it was set in one way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerEntry {
    /// The counter.
    pub counter: Counter,
    /// Event select.
    pub event: u16,
    /// Unit mask.
    pub umask: u8,
    /// Whether it counted user mode.
    pub user: bool,
    /// Whether it counted kernel mode.
    pub kernel: bool,
    /// Events.
    pub counted: u64,
    /// How often it passed through zero.
    pub overflows: u64,
    /// How many interrupts it raised.
    pub interrupts: u64,
}

/// A counter that counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enabled {
    /// The counter.
    pub counter: Counter,
    /// Event select.
    pub event: u16,
    /// Unit mask.
    pub umask: u8,
    /// Counter mask.
    pub cmask: u8,
    /// Whether the counter mask is inverted.
    pub invert: bool,
    /// Whether only edges count.
    pub edge: bool,
}

/// How often the registers of a processor were accessed, faults included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accesses {
    /// RDMSR.
    pub rdmsr: u64,
    /// WRMSR.
    pub wrmsr: u64,
    /// RDPMC.
    pub rdpmc: u64,
    /// How many of the three together faulted.
    pub faulted: u64,
}

/// The registers of a processor's Debug Store; 0 where it has none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DebugStore {
    /// `IA32_DS_AREA`.
    pub area: u64,
    /// `IA32_DEBUGCTL`.
    pub debugctl: u64,
    /// `IA32_PEBS_ENABLE`.
    pub pebs_enable: u64,
}

/// What a processor wrote to memory by itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stored {
    /// Branches that were written.
    pub branches: u64,
    /// Branches for which there was no room.
    pub branches_refused: u64,
    /// Precise records that were written, of counters that had any.
    pub records: Vec<(Counter, u64)>,
    /// Precise records for which there was no room.
    pub records_refused: u64,
    /// Records that met memory which is not there: the end of a real machine.
    pub faults: u64,
}

/// An instruction that can fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Instruction {
    /// RDMSR.
    Rdmsr,
    /// WRMSR.
    Wrmsr,
    /// RDPMC.
    Rdpmc,
}

/// What real Windows or real hardware answers with a bug check, now or later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Violation {
    /// An access that the processor refuses with #GP. The lab let it pass: a read gave zero.
    GeneralProtection {
        /// On which processor.
        processor: u32,
        /// Which instruction.
        instruction: Instruction,
        /// ECX.
        register: u32,
        /// What was to be written.
        value: Option<u64>,
    },
    /// A function was called above the IRQL it allows.
    Level {
        /// Its name.
        function: String,
        /// The IRQL of the call.
        level: u8,
        /// The highest allowed.
        allowed: u8,
    },
    /// Anything else, in words.
    Other(String),
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::GeneralProtection { processor, instruction, register, value } => {
                write!(f, "{instruction:?} of {register:#x}")?;
                if let Some(value) = value {
                    write!(f, ", value {value:#x},")?;
                }
                write!(f, " on processor {processor} faults")
            }
            Self::Level { function, level, allowed } => {
                write!(f, "{function} called at IRQL {level}, allowed up to {allowed}")
            }
            Self::Other(text) => f.write_str(text),
        }
    }
}

/// Allocations of one tag.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolTag {
    /// The tag, in the order of its bytes in memory.
    pub tag: String,
    /// Allocations that were not freed.
    pub allocations: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// What drivers have of the pool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pool {
    /// Calls to allocate, since the lab started, that did not fail.
    pub made: u64,
    /// Allocations that were not freed.
    pub allocations: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The same by tag.
    pub tags: Vec<PoolTag>,
}

/// Who registered the handler of the profile interrupt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registration {
    /// The process of the thread that did.
    pub process: u32,
    /// Whether it is the process in which Wine runs drivers, which stands for Windows' System process.
    pub system: bool,
}

/// The profile interrupt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handler {
    /// The one registration there can be.
    pub registration: Option<Registration>,
    /// How often it was called on each processor since the identity was set.
    pub delivered: Vec<u64>,
}

/// A place, and how often it was interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Visited {
    /// The place.
    pub place: Place,
    /// How often the handler was called there since the scene was set.
    pub times: u64,
}

/// Timers, and the DPCs that they queued.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ticks {
    /// How often a DPC began to run for a timer on each processor since the identity was set. A timer that expires
    /// while its DPC is still queued does not make it run twice.
    pub ran: Vec<u64>,
    /// How many timers are set now.
    pub set: u64,
}

/// A security descriptor as it was set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Descriptor {
    /// `SECURITY_INFORMATION`: which parts were set.
    pub information: u32,
    /// The descriptor in self-relative form.
    pub bytes: Vec<u8>,
    /// The NTSTATUS with which Wine set it.
    pub status: u32,
}

/// A line from the lab to the test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// Done, and nothing to tell.
    Done,
    /// Not done, and why.
    Refused(String),
    /// To `Identities` and `Images`.
    Names(Vec<String>),
    /// To `Ledger`.
    Ledger(Vec<Vec<LedgerEntry>>),
    /// To `Enabled`.
    Enabled(Vec<Vec<Enabled>>),
    /// To `Accesses`.
    Accesses(Vec<Accesses>),
    /// To `Violations`.
    Violations(Vec<Violation>),
    /// To `Pool`.
    Pool(Pool),
    /// To `Ticks`.
    Ticks(Ticks),
    /// To `Skipped`: ticks of the time-stamp counter since the identity was set.
    Skipped(Vec<u64>),
    /// To `Scene`.
    Scene(Vec<Vec<Visited>>),
    /// To `Handler`.
    Handler(Handler),
    /// To `Descriptor`.
    Descriptor(Option<Descriptor>),
    /// To `AddProcessor`: whether it runs.
    Added(bool),
    /// To `Lvt`.
    Lvt(u32),
    /// To `ReadMsr`.
    Msr(u64),
    /// To `FailedCall`: the name of the function, if one failed.
    FailedCall(Option<String>),
    /// To `Reserved`.
    Reserved(bool),
    /// To `ControlAreas`: their addresses.
    ControlAreas(Vec<Option<u64>>),
    /// To `DebugStore`.
    DebugStore(Vec<DebugStore>),
    /// To `Stored`.
    Stored(Vec<Stored>),
    /// To `Waiting`.
    Waiting(usize),
    /// To `Threads`.
    Threads(usize),
}
