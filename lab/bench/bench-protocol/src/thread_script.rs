//! How the threads of programs are scheduled, and what Windows counts for them.

use crate::Refusal;
use serde::{Deserialize, Serialize};

/// Event select, unit mask and number of events. A counter mask or edge detection of a counter does not change the
/// number.
pub type EventCount = (u16, u16, u64);

/// Environment variable with a [`ThreadScript`] in JSON, for the launcher's program.
pub const THREAD_SCRIPT: &str = "HALPROF_THREAD_SCRIPT";

/// What the stand-in for thread profiling does for one program.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ThreadScript {
    /// How threads are scheduled. The last program that starts decides for all.
    pub scheduling: Scheduling,
    /// Functions of thread profiling that this Windows lacks: GetProcAddress does not find them.
    pub missing: Vec<String>,
    /// Functions of thread profiling that fail.
    pub refusals: Vec<Refusal>,
}

/// How threads are scheduled, and how Windows accounts for them. By default, nothing interrupts a thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Scheduling {
    /// Seed of all decisions. Those for a thread depend on the order of its own calls only.
    pub seed: u64,
    /// Share of steps after which the thread is switched out, in percent. A step is a slice of work, or the way into or
    /// out of a call.
    pub preempt: u32,
    /// Share of switches after which a thread that is not pinned runs on another processor, in percent.
    pub migrate: u32,
    /// Share of steps during which an interrupt arrives, in percent.
    pub interrupt: u32,
    /// Share of steps after which the processor stands still for a while, as when a hypervisor runs something else, in
    /// percent. No event occurs, and nothing is switched.
    pub delay: u32,
    /// Number of slices of a piece of work.
    pub slices: u32,
    /// Most events of each kind that other threads execute in either mode while a thread is switched out. They execute
    /// at least one.
    pub others: u64,
    /// Most events of each kind in the kernel's part of a switch, of a call or of an interrupt.
    pub kernel: u64,
    /// Events of each kind in user mode before and after the system call of a call: the overhead of the caller.
    pub overhead: u64,
    /// The kinds of events, by event select and unit mask. Those that a thread executes are added.
    pub kinds: Vec<(u16, u16)>,
    /// Events per cycle of the event that occurs most often.
    pub events_per_cycle: u64,
    /// What Windows adds to a profile at a switch.
    pub accounting: Accounting,
    /// What the bits of EnableThreadProfiling's mask mean.
    pub mask: MaskMeaning,
    /// Whether programs may execute RDPMC, with which ReadThreadProfilingData reads the counters.
    pub rdpmc: UserRdpmc,
    /// What the handle of EnableThreadProfiling points to.
    pub handle: HandleTarget,
}

impl Default for Scheduling {
    fn default() -> Self {
        Self {
            seed: 0,
            preempt: 0,
            migrate: 0,
            interrupt: 0,
            delay: 0,
            slices: 4,
            others: 1_000,
            kernel: 200,
            overhead: 20,
            kinds: vec![(0xC0, 0), (0x76, 0), (0x3C, 0)],
            events_per_cycle: 1,
            accounting: Accounting::Full,
            mask: MaskMeaning::Position,
            rdpmc: UserRdpmc::Faults,
            handle: HandleTarget::PerformanceData,
        }
    }
}

/// What Windows adds to a profile when a thread is switched out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Accounting {
    /// The difference of the counter.
    #[default]
    Full,
    /// The lower 32 bits of the difference. The part since the last switch is truncated in the same way.
    Truncated,
}

impl Accounting {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Full, Self::Truncated];
}

/// What bit i of the mask of counters means.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum MaskMeaning {
    /// Entry i of the driver's configuration.
    #[default]
    Position,
    /// The configured counter with the index i for RDPMC.
    Index,
}

impl MaskMeaning {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Position, Self::Index];
}

/// Whether programs may execute RDPMC: CR4.PCE (SDM Vol. 3A, 2.5).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum UserRdpmc {
    /// It faults, as Windows has it: the program ends.
    #[default]
    Faults,
    /// Another driver has set CR4.PCE.
    Works,
    /// Another driver has set CR4.PCE on processor 0 alone.
    WorksOnProcessor0,
    /// It works in threads that profile counters only.
    WorksInProfiledThreads,
}

impl UserRdpmc {
    /// All.
    pub const ALL: [Self; 4] = [Self::Faults, Self::Works, Self::WorksOnProcessor0, Self::WorksInProfiledThreads];
}

/// What the handle of EnableThreadProfiling points to. Windows documents nothing of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum HandleTarget {
    /// THREAD_PERFORMANCE_DATA by its public symbols, which Windows updates at each context switch.
    #[default]
    PerformanceData,
    /// Nothing: it is a number.
    Nothing,
    /// Pages that are reserved and cannot be read.
    Unreadable,
    /// Memory of another kind.
    Garbage,
    /// A structure of another version.
    OtherVersion,
    /// The structure, in which the indexes of the counters are elsewhere.
    OtherCounters,
    /// The structure as it was when profiling was enabled.
    Frozen,
    /// The structure, in which Start and Total are exchanged. Only known work can tell.
    Exchanged,
}

impl HandleTarget {
    /// The structure by its public layout and what cannot be told from it without known work.
    pub const PLAUSIBLE: [Self; 3] = [Self::PerformanceData, Self::Frozen, Self::Exchanged];
    /// What the structure can be told from.
    pub const IMPLAUSIBLE: [Self; 5] =
        [Self::Nothing, Self::Unreadable, Self::Garbage, Self::OtherVersion, Self::OtherCounters];
}

/// What a thread executes: a piece of work.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// Events in user mode.
    pub user: Vec<EventCount>,
    /// Events in kernel mode, as in a system call.
    pub kernel: Vec<EventCount>,
}

impl Work {
    /// Returns work in user mode only.
    #[must_use]
    pub fn user(events: &[EventCount]) -> Self {
        Self { user: events.to_vec(), kernel: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_short_if_it_changes_little_and_refuses_unknown_fields() {
        let script = serde_json::from_str::<ThreadScript>(r#"{"scheduling":{"preempt":3}}"#).unwrap();
        let scheduling = Scheduling { preempt: 3, ..Scheduling::default() };
        assert_eq!(script, ThreadScript { scheduling, ..ThreadScript::default() });
        let all = serde_json::to_string(&script).unwrap();
        assert_eq!(serde_json::from_str::<ThreadScript>(&all).unwrap(), script);
        assert!(serde_json::from_str::<ThreadScript>(r#"{"schedule":{}}"#).is_err());
    }
}
