//! The memory of a program in which Windows keeps the profile of a thread.
//!
//! Layout: THREAD_PERFORMANCE_DATA and COUNTER_READING by Microsoft's public symbols of ntdll.

use crate::{
    MAX_COUNTERS, Processors,
    profile::{Counter, PERFORMANCE_DATA_SIZE, PerformanceData, Profile},
};
use bench_protocol::HandleTarget;

const VERSION: u16 = 1;
const COUNTERS: usize = 0x40;
const COUNTER_SIZE: usize = 0x18;

impl Profile {
    /// Begins the profile of a thread that runs on `processor`.
    pub fn enable(&mut self, machine: &mut dyn Processors, processor: u32) {
        self.begin(machine, processor);
        self.enabled_as = Some(Box::new(self.write(HandleTarget::PerformanceData)));
    }

    /// Returns the memory to which the handle of a profile points. `None` if there is none that can be read.
    pub(crate) fn performance_data(&self, target: HandleTarget) -> Option<PerformanceData> {
        match target {
            HandleTarget::Nothing | HandleTarget::Unreadable => None,
            HandleTarget::Garbage => Some([0xA5; PERFORMANCE_DATA_SIZE]),
            HandleTarget::Frozen => self.enabled_as.as_deref().copied(),
            target => Some(self.write(target)),
        }
    }

    /// Returns the structure.
    fn write(&self, target: HandleTarget) -> PerformanceData {
        let mut memory = [0; PERFORMANCE_DATA_SIZE];
        let size = u16::try_from(PERFORMANCE_DATA_SIZE).unwrap_or_default();
        let version = if target == HandleTarget::OtherVersion { VERSION + 1 } else { VERSION };
        let processor = u8::try_from(self.processor).unwrap_or(u8::MAX);
        put(&mut memory, 0, &size.to_le_bytes());
        put(&mut memory, 2, &version.to_le_bytes());
        put(&mut memory, 4, &[0, 0, processor, 0]);
        put(&mut memory, 8, &self.switches.to_le_bytes());
        put(&mut memory, 0xC, &u32::from(self.configured).to_le_bytes());
        put(&mut memory, 0x10, &self.updates.to_le_bytes());
        put(&mut memory, 0x18, &self.wait_reasons.to_le_bytes());
        put(&mut memory, 0x20, &self.mask.to_le_bytes());
        for Counter { bit, index, start, total } in &self.counters {
            let Some(index) = index else { continue };
            let mut at = COUNTERS + COUNTER_SIZE * bit;
            if target == HandleTarget::OtherCounters {
                at = COUNTERS + COUNTER_SIZE * (MAX_COUNTERS - 1 - bit);
            }
            let words = if target == HandleTarget::Exchanged { [total, start] } else { [start, total] };
            put(&mut memory, at + 4, &u32::try_from(*index).unwrap_or(u32::MAX).to_le_bytes());
            put(&mut memory, at + 8, &words[0].to_le_bytes());
            put(&mut memory, at + 0x10, &words[1].to_le_bytes());
        }
        memory
    }
}

fn put(memory: &mut PerformanceData, at: usize, bytes: &[u8]) {
    if let Some(field) = memory.get_mut(at..at + bytes.len()) {
        field.copy_from_slice(bytes);
    }
}
