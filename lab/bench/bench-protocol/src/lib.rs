//! The protocol between tests and the lab over loopback TCP: one [`Answer`] for each [`Command`], each a line of JSON.
//!
//! When the lab is ready, it writes its port number to the file `port` in its folder.

#![forbid(unsafe_code)]

/// Environment variable with the name of an identity in `cpuid-dumps`, for the launcher's program.
pub const PROCESSOR_IDENTITY: &str = "HALPROF_PROCESSOR_IDENTITY";

mod answer;
mod client;
mod command;
mod random;
mod stepping;
mod thread_script;
mod threads;
mod trace_script;
mod tracing;

pub use answer::{
    Accesses, Answer, DebugStore, Descriptor, DsWrites, EnabledCounter, Handler, Instruction, Interruptions,
    LedgerEntry, Pool, PoolTag, Registration, SiteInterrupts, StopState, Ticks, Violation,
};
pub use client::{Client, Error};
pub use command::{
    BranchKind, CancelMoment, Command, ControlAreaMode, Counter, InterruptMode, InterruptSite, KvaShadow,
    RegisterQuirk, ScriptedRequest, TakenBranch, Time, TimerMode,
};
pub use random::Random;
pub use stepping::{StepEntry, StepOverflow, StepPlan, StepReport};
pub use thread_script::{
    Accounting, EventCount, HandleTarget, MaskMeaning, Scheduling, THREAD_SCRIPT, ThreadScript, UserRdpmc, Work,
};
pub use threads::{
    CounterOwner, HardwareCounters, ThreadAnswer, ThreadCall, ThreadCommand, ThreadData, ThreadLedger, thread_memory,
};
pub use trace_script::{
    Disorder, HalScript, LockScript, ProcessLedger, Refusal, SampleLedger, SwitchLedger, SystemEvent, TRACE_SCRIPT,
    TraceReport, TraceScript, UserParts, WaitLedger,
};
pub use tracing::{ProviderId, RegisteredProvider, SiteStack, WrittenEvent};
