//! Context switches, threads that become ready, and the threads and processes that they concern: events of the system
//! provider, parsed by offsets, because some builds of Windows have no schema for them.

use super::payload::Payload;
use super::raw::{PROCESS, RawTraceEvent, THREAD};

/// EVENT_HEADER_EXT_TYPE_PMC_COUNTERS: a `u64` for each source of the session's list, in its order.
const PMC_COUNTERS: u16 = 8;

/// Types of the events: START, END and DC_START are those of MOF; the rundown at the end has 4.
const START: u8 = 1;
const END: u8 = 2;
const RUNDOWN: u8 = 3;
const RUNDOWN_AT_END: u8 = 4;
/// Type of the event for a context switch.
pub const SWITCH: u8 = 36;
/// Type of the event for a thread that becomes ready.
const READY: u8 = 50;

/// Size of a CSwitch, the same in its versions 2 to 4 (documentation of CSwitch; phnt, ntwmi.h).
const SWITCH_BYTES: usize = 24;

/// Flag of ReadyThread: a DPC made the thread ready, and not the thread that it interrupted.
const FROM_DPC: u8 = 1;

/// Oldest version of CSwitch with that layout.
const OLDEST_SWITCH: u8 = 2;

/// Maximum number of counters: those whose number fits into the 3 bits of an event's header.
pub const MAX_COUNTERS: usize = 7;

/// Values of the counters of a CPU, in the order of the session's list.
pub type Values = [u64; MAX_COUNTERS];

/// A context switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Switch {
    /// Time, in units of the performance counter.
    pub time: u64,
    /// Thread that ran until then; 0 is the idle thread.
    pub old: u32,
    /// Thread that runs from then on.
    pub new: u32,
    /// State of the old thread: a [`state`].
    pub state: u8,
    /// What the old thread waits for, if it waits: a number of KWAIT_REASON.
    pub reason: u8,
    /// The counters; `None` if the event has none, or another number than the session's list.
    pub counters: Option<Values>,
}

/// States of a thread that was switched out (documentation of CSwitch; the last one from phnt, ntkeapi.h).
pub mod state {
    /// It could run.
    pub const READY: u8 = 1;
    /// It could run, and was chosen to run next on a CPU.
    pub const STANDBY: u8 = 3;
    /// It ended.
    pub const TERMINATED: u8 = 4;
    /// It waits.
    pub const WAITING: u8 = 5;
    /// It could run, and no CPU was chosen for it.
    pub const DEFERRED_READY: u8 = 7;
}

/// What an event says about the scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheduling {
    /// A CPU switched to another thread.
    Switch {
        /// The CPU.
        cpu: u32,
        /// The switch.
        switch: Switch,
    },
    /// A thread can run again.
    Ready {
        /// The CPU on which it was made ready.
        cpu: u32,
        /// The thread.
        thread: u32,
        /// Whether a DPC made it ready, and not the thread that runs on the CPU.
        from_dpc: bool,
    },
    /// A thread started, or exists.
    Thread {
        /// Thread ID.
        id: u32,
        /// Its process.
        process: u32,
        /// When it started; 0 if it existed before the session.
        started: u64,
    },
    /// A process started, or exists.
    Process {
        /// Process ID.
        id: u32,
        /// The process that started it.
        parent: u32,
        /// When it started; 0 if it existed before the session.
        started: u64,
    },
}

/// Returns what an event says about the scheduler; `counters` is the length of the session's list.
#[must_use]
pub fn scheduling(event: &RawTraceEvent, counters: usize) -> Option<Scheduling> {
    let started = match event.opcode {
        START => event.time,
        END | RUNDOWN | RUNDOWN_AT_END => 0,
        SWITCH if event.provider == THREAD => return switch(event, counters),
        READY if event.provider == THREAD => return ready(event),
        _ => return None,
    };
    let mut payload = Payload(event.payload);
    match event.provider {
        THREAD => {
            let (process, id) = (payload.u32()?, payload.u32()?);
            Some(Scheduling::Thread { id, process, started })
        }
        PROCESS => {
            payload.skip(event.pointer)?; // UniqueProcessKey
            let (id, parent) = (payload.u32()?, payload.u32()?);
            Some(Scheduling::Process { id, parent, started })
        }
        _ => None,
    }
}

fn switch(event: &RawTraceEvent, counters: usize) -> Option<Scheduling> {
    if event.version < OLDEST_SWITCH || event.payload.len() < SWITCH_BYTES {
        return None;
    }
    let mut payload = Payload(event.payload);
    let (new, old) = (payload.u32()?, payload.u32()?);
    payload.skip(4)?; // priorities, C-state, spare
    let [reason, _mode, state, _ideal] = payload.u32()?.to_le_bytes();
    let item = event.extensions.iter().find(|item| item.kind == PMC_COUNTERS);
    let counters = item.and_then(|item| values(item.bytes, counters));
    let switch = Switch { time: event.time, old, new, state, reason, counters };
    Some(Scheduling::Switch { cpu: event.processor, switch })
}

fn ready(event: &RawTraceEvent) -> Option<Scheduling> {
    let mut payload = Payload(event.payload);
    let thread = payload.u32()?;
    let [_reason, _increment, flags, _spare] = payload.u32()?.to_le_bytes();
    Some(Scheduling::Ready { cpu: event.processor, thread, from_dpc: flags & FROM_DPC != 0 })
}

/// Returns the values of an item, if it has as many as the session's list.
fn values(bytes: &[u8], wanted: usize) -> Option<Values> {
    let (found, rest) = bytes.as_chunks::<8>();
    if !rest.is_empty() || found.len() != wanted {
        return None;
    }
    let mut values = Values::default();
    for (value, bytes) in values.iter_mut().zip(found) {
        *value = u64::from_le_bytes(*bytes);
    }
    Some(values)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::raw::Extension;
    use super::*;

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    fn item(values: &[u64]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    const EVENT: RawTraceEvent = RawTraceEvent { provider: THREAD, opcode: SWITCH, time: 9, ..RawTraceEvent::EMPTY };

    #[test]
    fn versions_2_and_4_of_a_switch_have_the_threads_at_the_same_offsets() {
        let payload = words(&[70, 50, 0x0808, 0x0009_032A, 0, 0]);
        let counters = item(&[1, u64::MAX]);
        let extensions = [Extension { kind: 6, bytes: &[0; 16] }, Extension { kind: PMC_COUNTERS, bytes: &counters }];
        let event = RawTraceEvent { payload: &payload, extensions: &extensions, processor: 3, ..EVENT };
        let mut values = Values::default();
        values[..2].copy_from_slice(&[1, u64::MAX]);
        let switch = Switch { time: 9, old: 50, new: 70, state: 9, reason: 0x2A, counters: Some(values) };
        for version in [2, 4] {
            let event = RawTraceEvent { version, ..event };
            assert_eq!(scheduling(&event, 2), Some(Scheduling::Switch { cpu: 3, switch }), "{version}");
        }
        // A list of another length, and no item at all.
        let bare = Some(Scheduling::Switch { cpu: 3, switch: Switch { counters: None, ..switch } });
        assert_eq!(scheduling(&RawTraceEvent { version: 4, ..event }, 3), bare);
        assert_eq!(scheduling(&RawTraceEvent { version: 4, extensions: &[], ..event }, 2), bare);
        assert_eq!(scheduling(&RawTraceEvent { version: 1, ..event }, 2), None);
        assert_eq!(scheduling(&RawTraceEvent { version: 2, payload: &payload[..23], ..event }, 2), None);
    }

    #[test]
    fn threads_and_processes_exist_before_the_session_or_start_in_it() {
        let (thread, process) = (words(&[12, 34]), words(&[0, 0, 12, 4, 1, 259]));
        for (opcode, started) in [(1, 9), (2, 0), (3, 0), (4, 0)] {
            let event = RawTraceEvent { opcode, version: 3, payload: &thread, ..EVENT };
            assert_eq!(scheduling(&event, 1), Some(Scheduling::Thread { id: 34, process: 12, started }));
            let event = RawTraceEvent { provider: PROCESS, payload: &process, ..event };
            assert_eq!(scheduling(&event, 1), Some(Scheduling::Process { id: 12, parent: 4, started }));
        }
        assert_eq!(scheduling(&RawTraceEvent { opcode: 49, payload: &thread, ..EVENT }, 1), None);
        assert_eq!(scheduling(&RawTraceEvent { provider: 7, opcode: 1, payload: &thread, ..EVENT }, 1), None);
    }

    #[test]
    fn a_thread_is_made_ready_by_the_thread_of_the_cpu_or_by_a_dpc() {
        for (flags, from_dpc) in [(0, false), (1, true), (2, false), (7, true)] {
            let payload = [&34_u32.to_le_bytes()[..], &[1, 2, flags, 0]].concat();
            let event = RawTraceEvent { opcode: READY, version: 2, processor: 5, payload: &payload, ..EVENT };
            assert_eq!(scheduling(&event, 0), Some(Scheduling::Ready { cpu: 5, thread: 34, from_dpc }));
            assert_eq!(scheduling(&RawTraceEvent { payload: &payload[..7], ..event }, 0), None);
        }
    }

    proptest! {
        #[test]
        fn any_event_is_parsed_without_a_panic(
            payload in prop::collection::vec(any::<u8>(), 0..60),
            bytes in prop::collection::vec(any::<u8>(), 0..70),
            (version, opcode, provider) in (0_u8..6, prop_oneof![1_u8..5, Just(36), Just(50)], prop_oneof![Just(THREAD), Just(PROCESS)]),
            counters in 0_usize..10,
        ) {
            let extensions = [Extension { kind: PMC_COUNTERS, bytes: &bytes }];
            let event = RawTraceEvent { provider, version, opcode, payload: &payload, extensions: &extensions, ..EVENT };
            if let Some(Scheduling::Switch { switch: Switch { counters: Some(_), .. }, .. }) = scheduling(&event, counters) {
                prop_assert_eq!(bytes.len(), 8 * counters);
            }
        }
    }
}
