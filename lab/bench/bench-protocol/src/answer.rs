//! Answers of the lab. Lists of lists have one entry for each processor, by number.

use crate::stepping::StepReport;
use crate::threads::ThreadAnswer;
use crate::tracing::{RegisteredProvider, WrittenEvent};
use crate::{Counter, InterruptSite};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fmt};

/// Totals of one counter in one configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerEntry {
    /// The counter.
    pub counter: Counter,
    /// Event select.
    pub event: u16,
    /// Unit mask.
    pub umask: u16,
    /// Whether the counter counted in user mode.
    pub user: bool,
    /// Whether the counter counted in kernel mode.
    pub kernel: bool,
    /// Number of events.
    pub counted: u64,
    /// Those of them that occurred between two accesses of a driver: a driver may have read the counter before them.
    pub between: u64,
    /// Number of overflows.
    pub overflows: u64,
    /// Number of interrupts that the counter raised.
    pub interrupts: u64,
}

/// The configuration of an enabled counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnabledCounter {
    /// The counter.
    pub counter: Counter,
    /// Event select.
    pub event: u16,
    /// Unit mask.
    pub umask: u16,
    /// Counter mask.
    pub cmask: u8,
    /// Whether the counter mask is inverted.
    pub invert: bool,
    /// Edge detect.
    pub edge: bool,
}

/// Numbers of register accesses on a processor, including those that faulted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accesses {
    /// RDMSR.
    pub rdmsr: u64,
    /// WRMSR.
    pub wrmsr: u64,
    /// RDPMC.
    pub rdpmc: u64,
    /// Number of these accesses that faulted.
    pub faulted: u64,
}

/// The Debug Store registers of a processor, 0 if it has no Debug Store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DebugStore {
    /// `IA32_DS_AREA`.
    pub area: u64,
    /// `IA32_DEBUGCTL`.
    pub debugctl: u64,
    /// `IA32_PEBS_ENABLE`; with architectural PEBS, `IA32_PEBS_INDEX`.
    pub pebs_enable: u64,
}

/// Totals of the records that a processor's Debug Store wrote to memory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DsWrites {
    /// Branch records written.
    pub branches: u64,
    /// Branch records dropped because the buffer was full.
    pub branches_dropped: u64,
    /// PEBS records written, by counter. Counters without records are missing.
    pub records: Vec<(Counter, u64)>,
    /// PEBS records dropped because the buffer was full.
    pub records_dropped: u64,
    /// Records dropped because of unmapped memory, which would crash a real machine.
    pub faults: u64,
}

/// An instruction that can fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Instruction {
    /// RDMSR.
    Rdmsr,
    /// WRMSR.
    Wrmsr,
    /// RDPMC.
    Rdpmc,
}

/// An action that causes a bug check on a real machine, immediately or later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Violation {
    /// An access that raises #GP on the processor. The lab ignored it; a read returned zero.
    GeneralProtection {
        /// The processor number.
        processor: u32,
        /// The instruction.
        instruction: Instruction,
        /// ECX.
        register: u32,
        /// The value of a write.
        value: Option<u64>,
    },
    /// A call to a function above its maximum IRQL.
    Level {
        /// The name of the function.
        function: String,
        /// The IRQL of the call.
        level: u8,
        /// The highest IRQL that the function allows.
        allowed: u8,
    },
    /// Another violation, as text.
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

/// Pool allocations with one tag.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolTag {
    /// The tag in memory order.
    pub tag: String,
    /// Allocations that were not freed.
    pub allocations: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Pool allocations of drivers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pool {
    /// Number of successful allocations since the lab started.
    pub total_allocations: u64,
    /// Allocations that were not freed.
    pub allocations: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The allocations that were not freed, by tag.
    pub tags: Vec<PoolTag>,
    /// Bytes that were not freed of allocations with a preferred NUMA node, by node. A node has two processors.
    pub nodes: BTreeMap<u32, u64>,
}

/// The process that registered the handler of the profile interrupt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registration {
    /// The process of the registering thread.
    pub process: u32,
    /// Whether this is the process in which Wine runs drivers, the counterpart of the System process.
    pub system: bool,
}

/// The profile interrupt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handler {
    /// The registration. At most one exists at a time.
    pub registration: Option<Registration>,
    /// Number of handler calls on each processor since the identity was set.
    pub delivered: Vec<u64>,
}

/// A place, and the number of its interrupts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteInterrupts {
    /// The site.
    pub site: InterruptSite,
    /// Number of handler calls there since the sites were set.
    pub interrupts: u64,
}

/// Timers and the DPCs that they queued.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ticks {
    /// Number of DPCs that ran for timers on each processor since the identity was set. A timer that expires while its
    /// DPC is still queued does not queue it again.
    pub ran: Vec<u64>,
    /// Number of timers that are set now.
    pub set: u64,
}

/// Interruptions of a processor for calls of drivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interruptions {
    /// Number of `KeIpiGenericCall`s, which hold all processors until the last has finished.
    pub broadcasts: u64,
    /// Number of DPCs that a driver queued for this processor as their target.
    pub targeted: u64,
    /// Number of DPCs without a target that a driver queued on this processor.
    pub untargeted: u64,
}

/// A security descriptor that a driver set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Descriptor {
    /// `SECURITY_INFORMATION`: which parts were set.
    pub information: u32,
    /// The descriptor in self-relative form.
    pub bytes: Vec<u8>,
    /// The NTSTATUS with which Wine set it.
    pub status: u32,
}

/// What became of a stop of the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum StopState {
    /// None has arrived.
    Runs,
    /// The driver had no unload routine.
    Refused,
    /// A handle is open. The last close goes on.
    Pending,
    /// The unload routine has run, if the driver had one by then. The image stays only if the driver has a reference
    /// of its driver object.
    Over,
}

/// A line from the lab to the test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// The command succeeded and has no result.
    Done,
    /// The command was refused for this reason.
    Refused(String),
    /// Reply to `Identities` and `Images`.
    Names(Vec<String>),
    /// Reply to `Ledger`.
    Ledger(Vec<Vec<LedgerEntry>>),
    /// Reply to `EnabledCounters`.
    EnabledCounters(Vec<Vec<EnabledCounter>>),
    /// Reply to `Accesses`.
    Accesses(Vec<Accesses>),
    /// Reply to `Violations`.
    Violations(Vec<Violation>),
    /// Reply to `Pool`.
    Pool(Pool),
    /// Reply to `StopDriver` and `StopState`.
    Stop(StopState),
    /// Reply to `Ticks`.
    Ticks(Ticks),
    /// Reply to `Interruptions`.
    Interruptions(Vec<Interruptions>),
    /// Reply to `ScriptedRequests`: the number of requests that are left in the script.
    ScriptedRequests(u64),
    /// Reply to `Skipped`: ticks of the time-stamp counter since the identity was set.
    Skipped(Vec<u64>),
    /// Reply to `InterruptSites`.
    InterruptSites(Vec<Vec<SiteInterrupts>>),
    /// Reply to `Handler`.
    Handler(Handler),
    /// Reply to `Descriptor`.
    Descriptor(Option<Descriptor>),
    /// Reply to `AddProcessor`: whether the new processor runs.
    Added(bool),
    /// Reply to `Lvt`.
    Lvt(u32),
    /// Reply to `ReadMsr`.
    Msr(u64),
    /// Reply to `FailedCall`: the name of the function that failed, if one did.
    FailedCall(Option<String>),
    /// Reply to `CountersReserved`.
    CountersReserved(bool),
    /// Reply to a command about the threads of programs.
    Threads(ThreadAnswer),
    /// Reply to `ControlAreas`: the address of each processor's area.
    ControlAreas(Vec<Option<u64>>),
    /// Reply to `DebugStore`.
    DebugStore(Vec<DebugStore>),
    /// Reply to `DsWrites`.
    DsWrites(Vec<DsWrites>),
    /// Reply to `PendingRequests`.
    PendingRequests(usize),
    /// Reply to `SystemThreads`.
    SystemThreads(usize),
    /// Reply to `Steps`.
    Steps(StepReport),
    /// Reply to `Providers`.
    Providers(Vec<RegisteredProvider>),
    /// Reply to `TakeEvents`.
    Events(Vec<WrittenEvent>),
}
