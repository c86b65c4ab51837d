//! Samples of the HAL's counters, their stacks, and changed intervals: events of the system provider, parsed by
//! offsets, because some builds of Windows have no schema for them.

use super::payload::Payload;
use super::raw::{PERF_INFO, RawTraceEvent, STACK_WALK};

/// Type of the event for a sample of a counter (phnt, ntwmi.h: PERFINFO_LOG_TYPE_PMC_SAMPLE).
pub const SAMPLE: u8 = 47;
/// Type of the event for a changed interval (documentation of SampledProfileInterval).
const SET_INTERVAL: u8 = 72;
/// Type of the event for a stack (documentation of StackWalk_Event).
const STACK: u8 = 32;

/// What an event says about samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Profiled {
    /// A counter overflowed.
    Sample {
        /// Instruction pointer.
        ip: u64,
        /// Interrupted thread; 0 is the idle thread.
        thread: u32,
        /// Number of the source.
        source: u32,
    },
    /// A program set the interval of a source.
    Interval {
        /// Number of the source.
        source: u32,
        /// The interval from then on.
        new: u32,
    },
    /// A part of the stack of an event: its frames in kernel mode, in user mode, or both.
    Stack {
        /// Time of the event.
        time: u64,
        /// Its thread.
        thread: u32,
        /// Frames, from the innermost.
        frames: Vec<u64>,
    },
}

/// Returns what an event says about samples.
#[must_use]
pub fn profiled(event: &RawTraceEvent) -> Option<Profiled> {
    let mut payload = Payload(event.payload);
    match (event.provider, event.opcode) {
        (PERF_INFO, SAMPLE) => {
            let (ip, thread) = (payload.pointer(event.pointer)?, payload.u32()?);
            Some(Profiled::Sample { ip, thread, source: payload.u32()? & 0xFFFF }) // the upper half is reserved
        }
        (PERF_INFO, SET_INTERVAL) => Some(Profiled::Interval { source: payload.u32()?, new: payload.u32()? }),
        (STACK_WALK, STACK) => {
            let (time, _process, thread) = (payload.u64()?, payload.u32()?, payload.u32()?);
            let frames = std::iter::from_fn(|| payload.pointer(event.pointer)).collect();
            Some(Profiled::Stack { time, thread, frames })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_event_has_its_fields_at_their_offsets() {
        let payload = [&9_u64.to_le_bytes()[..], &[7, 0, 0, 0, 0x19, 0, 0xEE, 0xEE]].concat();
        let of = |provider, opcode, payload| {
            profiled(&RawTraceEvent { provider, opcode, payload, time: 5, ..RawTraceEvent::EMPTY })
        };
        assert_eq!(of(PERF_INFO, 47, &payload), Some(Profiled::Sample { ip: 9, thread: 7, source: 0x19 }));
        assert_eq!(of(PERF_INFO, 72, &payload), Some(Profiled::Interval { source: 9, new: 0 }));
        let stack = [&payload[..], &[1, 0, 0, 0, 0, 0, 0, 0, 2]].concat();
        let thread = 0xEEEE_0019;
        assert_eq!(of(STACK_WALK, 32, &stack), Some(Profiled::Stack { time: 9, thread, frames: vec![1] }));
        assert_eq!([of(PERF_INFO, 46, &payload), of(PERF_INFO, 47, &payload[..15])], [None, None]);
    }

    proptest! {
        #[test]
        fn any_event_is_parsed_without_a_panic(
            payload in prop::collection::vec(any::<u8>(), 0..60),
            (provider, opcode) in prop::sample::select(vec![(PERF_INFO, 47), (PERF_INFO, 72), (STACK_WALK, 32)]),
            pointer in prop::sample::select(vec![4_usize, 8]),
        ) {
            let event = RawTraceEvent { provider, opcode, payload: &payload, pointer, ..RawTraceEvent::EMPTY };
            if let Some(Profiled::Stack { frames, .. }) = profiled(&event) {
                prop_assert_eq!(frames.len(), (payload.len() - 16) / pointer);
            }
        }
    }
}
