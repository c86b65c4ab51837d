//! What the stand-in for Event Tracing for Windows in user mode does, besides what the documentation describes.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Environment variable with a [`TraceScript`] in JSON, for the launcher's program.
pub const TRACE_SCRIPT: &str = "HALPROF_TRACE_SCRIPT";

/// What the stand-in does for one program.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TraceScript {
    /// How events and stacks are delivered.
    pub disorder: Disorder,
    /// Functions that fail.
    pub refusals: Vec<Refusal>,
    /// Events of the system provider, which a session receives first if its EnableFlags select them.
    pub system_events: Vec<SystemEvent>,
    /// The HAL's profile sources, and the scheduler whose context switches have counters.
    pub hal: HalScript,
    /// File to which the stand-in writes a [`TraceReport`] when a session is stopped: the truth for the test.
    pub report: Option<PathBuf>,
}

/// The order and the losses of delivered events. The default is the order in which they were written, with every stack
/// in one item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Disorder {
    /// Seed of all decisions. They depend on the order of written events only.
    pub seed: u64,
    /// How frames in user mode are delivered.
    pub user_parts: UserParts,
    /// Maximum time in milliseconds by which a user part comes later than its event.
    pub user_delay: u64,
    /// Share of user parts that come before their event, in percent.
    pub user_first: u32,
    /// Share of user parts that never come, in percent.
    pub lost_user_parts: u32,
    /// Maximum time in milliseconds by which an event is delivered later.
    pub delay: u64,
    /// Maximum number of later events that are delivered before an event.
    pub shuffle: u32,
    /// Share of events that are lost, in percent.
    pub lost_events: u32,
    /// Share of events and of user parts that are delivered twice, in percent.
    pub duplicates: u32,
    /// Number of successive events of a CPU in a buffer.
    pub buffer: u32,
    /// Share of buffers that are lost, in percent.
    pub lost_buffers: u32,
    /// Maximum number of frames of an item. Those at the outermost end are cut.
    pub frames: usize,
}

impl Default for Disorder {
    fn default() -> Self {
        Self {
            seed: 0,
            user_parts: UserParts::Together,
            user_delay: 0,
            user_first: 0,
            lost_user_parts: 0,
            delay: 0,
            shuffle: 0,
            lost_events: 0,
            duplicates: 0,
            buffer: 64,
            lost_buffers: 0,
            frames: 192,
        }
    }
}

/// How frames in user mode are delivered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum UserParts {
    /// In the item with the frames in kernel mode, with MatchId 0.
    #[default]
    Together,
    /// With another event of the same provider, which has no payload.
    SameProvider,
    /// With an event of the system's StackWalk provider.
    StackWalk,
    /// Each of the above, in turn.
    Mixed,
}

/// The HAL's profile sources and its counters on context switches. The default has the sources of an Intel processor,
/// and every switch has its counters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HalScript {
    /// Seed of the scheduler.
    pub seed: u64,
    /// Number of CPUs; 0 for those that Windows has.
    pub processors: u32,
    /// Numbers and names of the sources; empty for those of an Intel processor.
    pub sources: Vec<(u32, String)>,
    /// Maximum number of counters of a session; 0 if Windows does not tell it.
    pub maximum: u32,
    /// Type, profile source and tag of the owner of each counter; empty if Windows does not tell them.
    pub owners: Vec<[u32; 3]>,
    /// Hits of a profile object of each source, in user and in kernel mode, times the number of the source.
    pub hits: [u32; 2],
    /// Events of each source that client.exe executes on the first CPU at the end of each session that counts. If there
    /// are any, it executes nothing else.
    pub known_work: Vec<Vec<u64>>,
    /// Number of switches of each CPU that have no counters, before the first one that has them.
    pub withheld: u32,
    /// CPUs whose switches never have counters.
    pub silent: Vec<u32>,
    /// CPUs whose counters stand still.
    pub still: Vec<u32>,
    /// Share of later switches that have no counters, in percent.
    pub bare: u32,
    /// Share of later switches of which one counter is missing, in percent.
    pub narrow: u32,
    /// Share of switches that are lost and not told, in percent.
    pub untold: u32,
    /// Share of switches at which the counters of a CPU have gone back, in percent.
    pub set_back: u32,
    /// Version of the events for switches.
    pub version: u8,
    /// Whether the list of sources has one more each time its size is asked for.
    pub grows: bool,
    /// Whether sources can be added by the third version of the structure.
    pub third_version: bool,
    /// File with the names of added sources, which stay when a program is killed.
    pub added: Option<PathBuf>,
    /// Share of samples without a stack, in percent.
    pub stackless: u32,
    /// Share of samples beside which there is one of another session's source, and a stack of another thread, in
    /// percent.
    pub foreign: u32,
    /// Number of samples after which another program doubles the interval of the first source; 0 for never.
    pub changed_after: u64,
    /// File with the intervals that a program has set: a line with source and interval for each that is not the
    /// default.
    pub intervals: Option<PathBuf>,
    /// File with the names of running sessions, which stay when a program is killed.
    pub sessions: Option<PathBuf>,
    /// Number of the call of a function that changes something at which the program is killed, before it has any
    /// effect; 0 for never.
    pub killed_at: u32,
    /// File to which the stand-in writes a [`SwitchLedger`] when a session of switches or samples is stopped.
    pub ledger: Option<PathBuf>,
    /// Threads that share a lock, besides those of the machine.
    pub lock: Option<LockScript>,
}

/// Threads of a process that run one after the other, because each needs a lock: the one that leaves it makes the next
/// one ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockScript {
    /// Process ID.
    pub process: u32,
    /// IDs of the threads.
    pub threads: Vec<u32>,
    /// Frames in user mode of a thread that waits for the lock, from the innermost.
    pub frames: Vec<u64>,
}

impl Default for HalScript {
    fn default() -> Self {
        Self {
            seed: 0,
            processors: 0,
            sources: Vec::new(),
            maximum: 4,
            owners: Vec::new(),
            hits: [0; 2],
            known_work: Vec::new(),
            withheld: 20,
            silent: Vec::new(),
            still: Vec::new(),
            bare: 0,
            narrow: 0,
            untold: 0,
            set_back: 0,
            version: 4,
            grows: false,
            third_version: true,
            added: None,
            stackless: 0,
            foreign: 0,
            changed_after: 0,
            intervals: None,
            sessions: None,
            killed_at: 0,
            ledger: None,
            lock: None,
        }
    }
}

/// What processes executed while a session had counters: the truth for the test.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchLedger {
    /// The sources that were counted.
    pub sources: Vec<u32>,
    /// Events of each process, in the order of the sources.
    pub processes: Vec<ProcessLedger>,
    /// Number of switches.
    pub switches: u64,
    /// The samples that Windows wrote, by process, source and address.
    pub samples: Vec<SampleLedger>,
    /// The times in which threads did not run and that have ended, if the session has switches with stacks.
    pub waits: Vec<WaitLedger>,
}

/// Times of a thread in a [`SwitchLedger`], in units of the performance counter.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitLedger {
    /// Process ID.
    pub process: u32,
    /// Thread ID.
    pub thread: u32,
    /// How long it waited until it was made ready, or until it ran if no event tells when it was made ready.
    pub waited: u64,
    /// How long it was ready.
    pub ready: u64,
    /// Number of times that it ran on.
    pub switches: u64,
    /// The threads that made it ready.
    pub wakers: Vec<u32>,
}

/// Samples of a [`SwitchLedger`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampleLedger {
    /// Process ID; 0 is the idle process.
    pub process: u32,
    /// The source.
    pub source: u32,
    /// Instruction pointer.
    pub ip: u64,
    /// Its callers.
    pub callers: Vec<u64>,
    /// Number of samples.
    pub samples: u64,
    /// Number of those without a stack.
    pub stackless: u64,
    /// The events that they stand for.
    pub events: u64,
}

/// A process of a [`SwitchLedger`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessLedger {
    /// Process ID; 0 is the idle process.
    pub process: u32,
    /// The process that started it.
    pub parent: u32,
    /// File name of its program.
    pub name: String,
    /// Its events.
    pub events: Vec<u64>,
}

/// A function that fails.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// Name of the function; one that takes a class also as `TraceSetInformation(9)`.
    pub function: String,
    /// Win32 error code.
    pub error: u32,
    /// Number of calls that fail; later ones succeed.
    pub times: u32,
}

/// An event of the system provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum SystemEvent {
    /// A process started.
    ProcessStart {
        /// Process ID.
        process: u32,
        /// File name of the program.
        name: String,
    },
    /// A thread started.
    ThreadStart {
        /// Process ID.
        process: u32,
        /// Thread ID.
        thread: u32,
    },
    /// An image was loaded.
    ImageLoad {
        /// Process ID; 0 for a driver.
        process: u32,
        /// Lowest address.
        base: u64,
        /// Size in the address space, in bytes.
        size: u64,
        /// Path in the namespace of the kernel.
        path: String,
    },
}

/// What a session delivered and lost.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceReport {
    /// Events that the driver wrote for the session.
    pub written: u64,
    /// Events that were delivered, without user parts and duplicates.
    pub delivered: u64,
    /// Events that were lost one by one.
    pub lost_events: u64,
    /// Buffers that were lost.
    pub lost_buffers: u64,
    /// Events in the lost buffers.
    pub lost_with_buffers: u64,
    /// User parts that were delivered.
    pub user_parts: u64,
    /// User parts that never came, without those of lost events.
    pub lost_user_parts: u64,
    /// Events and user parts that were delivered a second time.
    pub duplicates: u64,
    /// Items of which frames were cut.
    pub cut: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_short_if_it_changes_little_and_refuses_unknown_fields() {
        let script = serde_json::from_str::<TraceScript>(r#"{"disorder":{"shuffle":3}}"#).unwrap();
        let disorder = Disorder { shuffle: 3, ..Disorder::default() };
        assert_eq!(script, TraceScript { disorder, ..TraceScript::default() });
        let all = serde_json::to_string(&script).unwrap();
        assert_eq!(serde_json::from_str::<TraceScript>(&all).unwrap(), script);
        assert!(serde_json::from_str::<TraceScript>(r#"{"disorders":{}}"#).is_err());
    }
}
