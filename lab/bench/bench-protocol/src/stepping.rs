//! Stepping: a call into a driver, executed one instruction at a time, with interrupts at chosen instructions.

use serde::{Deserialize, Serialize};

/// A call of the lab into a driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum StepEntry {
    /// The dispatch routine, for a request with this control code.
    Request {
        /// The control code.
        code: u32,
    },
    /// The routine of a DPC that a timer queued.
    Timer,
    /// The routine of a DPC that a driver queued.
    Dpc,
    /// The routine that is registered with `\Callback\PowerState`.
    Power,
    /// The routine of KeIpiGenericCall, on another processor than its caller's.
    Ipi,
    /// The handler of the profile interrupt.
    Interrupt,
}

/// What happens during the next call of a kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepPlan {
    /// The call.
    pub entry: StepEntry,
    /// The processor on which the call runs. A request and a power change are bound to it meanwhile.
    pub processor: u32,
    /// Numbers of instructions, ascending: before each of them, counters overflow. 0 is the first instruction.
    pub overflow_at: Vec<u64>,
    /// The processor whose counters overflow.
    pub target: u32,
    /// Whether breakpoints, instead of steps, lead to the instructions. This is faster. It takes the instructions of
    /// the last call that was only counted, and misses instructions that the call reaches in another way now.
    pub by_breakpoints: bool,
}

/// What happened at one instruction of [`StepPlan::overflow_at`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepOverflow {
    /// The number of the instruction.
    pub instruction: u64,
    /// Its offset in the driver's image.
    pub offset: u64,
    /// The IRQL there.
    pub level: u8,
    /// Whether a counter ran that could overflow.
    pub overflowed: bool,
    /// The number of the instruction before which the handler ran, if it ran during the call.
    pub delivered: Option<u64>,
}

/// What happened during the call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepReport {
    /// Whether the call took place.
    pub entered: bool,
    /// Number of instructions, if nothing was planned. Otherwise the number up to the end of the plan.
    pub instructions: u64,
    /// If nothing was planned: the numbers of the instructions that were executed for the first time in the call.
    pub first_executions: Vec<u64>,
    /// What happened at each instruction of the plan that was reached.
    pub overflows: Vec<StepOverflow>,
}
