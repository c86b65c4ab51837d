//! An event of a fake trace session.

use system::trace::raw::{Guid, STACK_TRACE64};
use system::trace::{Extension, RawTraceEvent, TraceSink};

/// An event that a fake session delivers.
#[derive(Debug, Clone, Default)]
pub struct FakeEvent {
    /// Provider.
    pub provider: Guid,
    /// ID, or the type of a MOF event.
    pub number: u16,
    /// Version.
    pub version: u8,
    /// Process and thread.
    pub task: [u32; 2],
    /// Time.
    pub time: u64,
    /// Payload.
    pub payload: Vec<u8>,
    /// MatchId and frames of each stack.
    pub stacks: Vec<(u64, Vec<u64>)>,
}

impl FakeEvent {
    /// Delivers the event.
    pub fn deliver(&self, sink: &mut TraceSink) {
        let bytes = |(match_id, frames): &(u64, Vec<u64>)| -> Vec<u8> {
            [&[*match_id][..], frames].concat().into_iter().flat_map(u64::to_le_bytes).collect()
        };
        let items: Vec<Vec<u8>> = self.stacks.iter().map(bytes).collect();
        let extensions: Vec<_> = items.iter().map(|bytes| Extension { kind: STACK_TRACE64, bytes }).collect();
        let [process, thread] = self.task;
        sink(&RawTraceEvent {
            provider: self.provider,
            id: self.number,
            opcode: u8::try_from(self.number).unwrap(),
            version: self.version,
            process,
            thread,
            time: self.time,
            payload: &self.payload,
            extensions: &extensions,
            ..RawTraceEvent::EMPTY
        });
    }
}
