//! Thread profiling: the hardware counters that are configured for it.

use crate::EventCount;
use serde::{Deserialize, Serialize};

/// A command about the threads of programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ThreadCommand {
    /// Returns the hardware counters that are configured for thread profiling.
    HardwareCounters,
    /// Configures hardware counters for thread profiling as another driver does, by their indexes for RDPMC, or clears
    /// the configuration if there are none. Refused like a call of `KeSetHardwareCounterConfiguration`.
    ConfigureHardwareCounters(Vec<u64>),
    /// Sets whether a thread of some program profiles, which keeps `KeSetHardwareCounterConfiguration` from changing
    /// the configuration, until the machine is replaced.
    PretendProfiling(bool),
}

/// The answer to a [`ThreadCommand`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ThreadAnswer {
    /// The command succeeded and has no result.
    Done,
    /// Reply to `HardwareCounters`.
    HardwareCounters(HardwareCounters),
}

/// Who configured hardware counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CounterOwner {
    /// The driver.
    Driver,
    /// Another driver: the test.
    Another,
}

/// The hardware counters for thread profiling.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HardwareCounters {
    /// Who configured them, if anyone did.
    pub owner: Option<CounterOwner>,
    /// Their indexes for RDPMC.
    pub counters: Vec<u64>,
}

/// What a thread of a program executed, and what happened to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadLedger {
    /// Process ID.
    pub process: u32,
    /// Thread ID.
    pub thread: u32,
    /// Events in user mode.
    pub user: Vec<EventCount>,
    /// Events in kernel mode, without those of interrupts.
    pub kernel: Vec<EventCount>,
    /// Events of interrupts that arrived while the thread ran.
    pub interrupts: Vec<EventCount>,
    /// Number of switches from this thread to another.
    pub switches: u64,
    /// Number of switches after which it ran on another processor.
    pub migrations: u64,
    /// Cycles that it executed, without interrupts.
    pub cycles: u64,
}
