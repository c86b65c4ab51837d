//! The threads of programs, and Windows' thread profiling.

use crate::{EventCount, Scheduling, Work};
use serde::{Deserialize, Serialize};

/// Returns the file that the memory of a thread's profile is, as a program under Wine finds it.
#[must_use]
pub fn thread_memory(process: u32, thread: u32) -> String {
    format!("C:\\lab\\profile-{process}-{thread}")
}

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
    /// A program starts whose threads are scheduled on the processors. The stand-in for thread profiling sends this.
    /// The threads end with the program.
    StartProgram {
        /// Process ID.
        process: u32,
        /// How all threads are scheduled from now on.
        scheduling: Scheduling,
    },
    /// A thread of such a program calls Windows, or executes something. Refused unless the time is
    /// [`Time::Script`](crate::Time::Script). While the machine sleeps, the thread waits.
    Call {
        /// Process ID.
        process: u32,
        /// Thread ID.
        thread: u32,
        /// What it does.
        call: ThreadCall,
    },
    /// Returns the ledgers of the threads of all programs that have ended, and forgets them.
    TakeLedgers,
}

/// What a thread does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ThreadCall {
    /// It executes events.
    Execute(Work),
    /// EnableThreadProfiling.
    Enable {
        /// The thread to profile.
        target: u32,
        /// THREAD_PROFILING_FLAG_DISPATCH or 0.
        flags: u32,
        /// The hardware counters.
        mask: u64,
    },
    /// ReadThreadProfilingData.
    Read {
        /// The handle of `Enable`.
        handle: u64,
        /// READ_THREAD_PROFILING_FLAG_...
        flags: u32,
    },
    /// DisableThreadProfiling.
    Disable {
        /// The handle of `Enable`.
        handle: u64,
    },
    /// QueryThreadProfiling.
    Query {
        /// The thread.
        target: u32,
    },
    /// SetThreadAffinityMask.
    SetAffinity {
        /// The thread to restrict.
        target: u32,
        /// The processors that it may use.
        mask: u64,
    },
    /// Returns the processors that a thread may use.
    Affinity {
        /// The thread.
        target: u32,
    },
    /// GetCurrentProcessorNumber.
    CurrentProcessor,
    /// GetActiveProcessorCount.
    ProcessorCount,
    /// Returns what the thread has executed until now.
    Ledger,
    /// Returns the time during which the machine slept.
    SleepTime,
    /// It ends.
    End,
}

/// The answer to a [`ThreadCommand`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ThreadAnswer {
    /// The command succeeded and has no result.
    Done,
    /// Reply to `HardwareCounters`.
    HardwareCounters(HardwareCounters),
    /// The call failed with this Win32 error, or it ends the program with STATUS_PRIVILEGED_INSTRUCTION.
    Failed(u32),
    /// Reply to `Enable`: the handle.
    Handle(u64),
    /// Reply to `Read`.
    Data(ThreadData),
    /// Reply to `Query`: whether the thread profiles.
    Profiles(bool),
    /// Reply to `SetAffinity`, with the processors before, and to `Affinity`.
    Affinity(u64),
    /// Reply to `CurrentProcessor`.
    Processor(u32),
    /// Reply to `ProcessorCount`.
    ProcessorCount(u32),
    /// Reply to `SleepTime`, in milliseconds.
    SleepTime(u64),
    /// Reply to `Ledger`.
    Ledger(ThreadLedger),
    /// Reply to `TakeLedgers`.
    Ledgers(Vec<ThreadLedger>),
}

/// What ReadThreadProfilingData returns.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadData {
    /// Number of configured counters.
    pub counter_count: u8,
    /// Number of switches from the thread to another.
    pub context_switches: u32,
    /// A bit for each reason of these switches.
    pub wait_reasons: u64,
    /// Cycles that the thread executed.
    pub cycles: u64,
    /// Number of times that the values were read again.
    pub retries: u32,
    /// The values, by the bit of the mask.
    pub counters: Vec<u64>,
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
    /// Number of threads that profile.
    pub profiling: usize,
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

impl ThreadLedger {
    /// Returns the number of events in user mode.
    #[must_use]
    pub fn user(&self, event: u16, umask: u16) -> u64 {
        count(&self.user, event, umask)
    }

    /// Returns the number of events in kernel mode, without those of interrupts.
    #[must_use]
    pub fn kernel(&self, event: u16, umask: u16) -> u64 {
        count(&self.kernel, event, umask)
    }

    /// Returns the number of events of interrupts.
    #[must_use]
    pub fn interrupts(&self, event: u16, umask: u16) -> u64 {
        count(&self.interrupts, event, umask)
    }
}

fn count(events: &[EventCount], event: u16, umask: u16) -> u64 {
    events.iter().filter(|counted| (counted.0, counted.1) == (event, umask)).map(|(.., count)| count).sum()
}
