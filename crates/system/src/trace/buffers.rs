//! The buffers of a trace session.

use super::TracePlan;
use crate::hal::{Carrier, HalPlan};

/// Size of a buffer of the session in KiB, for a few and for many samples.
const SMALL_BUFFER: u32 = 64;
const LARGE_BUFFER: u32 = 512;

/// Bytes that the events of a sample take: two headers of 80 bytes, the payload, and 40 frames.
const SAMPLE_BYTES: u64 = 600;

/// Bytes that a context switch takes: two headers and the payload. Its counters follow.
const SWITCH_BYTES: u64 = 40;

/// Bytes that a context switch takes with its stack, and the event for the thread that became ready.
const WAIT_BYTES: u64 = SWITCH_BYTES + 24 + 32 + 40 * 8;

/// Context switches of a busy CPU.
const SWITCHES_PER_SECOND: u64 = 20_000;

/// Time for which the buffers have room, in seconds. Windows delivers those that are not full once per second.
const ROOM_SECONDS: u64 = 4;

/// Maximum size of all buffers in KiB. They are in memory that is not paged.
const MAX_MEMORY: u64 = 256 << 10;

/// Sizes of the buffers of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferSizes {
    /// Size of a buffer in KiB.
    pub kibibytes: u32,
    /// Number of buffers that are allocated at once.
    pub minimum: u32,
    /// Number of buffers beyond which events are lost.
    pub maximum: u32,
}

impl TracePlan {
    /// Returns the sizes of the buffers.
    #[must_use]
    pub fn buffers(&self) -> BufferSizes {
        let bytes = self.samples_per_second.saturating_mul(SAMPLE_BYTES);
        BufferSizes::of(bytes.saturating_add(waits(self.off_cpu, self.processors)), self.processors)
    }
}

impl HalPlan {
    /// Returns the sizes of the buffers.
    #[must_use]
    pub fn buffers(&self) -> BufferSizes {
        let counters = 8 * u64::try_from(self.sources.len()).unwrap_or(u64::MAX);
        let (rate, bytes) = match self.carrier {
            Carrier::Switches => (SWITCHES_PER_SECOND, SWITCH_BYTES + counters),
            Carrier::Samples { per_second, .. } => (per_second, SAMPLE_BYTES),
        };
        let bytes = rate.saturating_mul(self.processors.into()).saturating_mul(bytes);
        let off_cpu = matches!(self.carrier, Carrier::Samples { off_cpu: true, .. });
        BufferSizes::of(bytes.saturating_add(waits(off_cpu, self.processors)), self.processors)
    }
}

/// Returns the bytes per second of context switches with stacks, if there are any.
fn waits(off_cpu: bool, processors: u32) -> u64 {
    if off_cpu { WAIT_BYTES * SWITCHES_PER_SECOND * u64::from(processors) } else { 0 }
}

impl BufferSizes {
    /// Returns the sizes for so many bytes per second. Windows fills a buffer on each CPU, and needs others meanwhile.
    fn of(bytes_per_second: u64, processors: u32) -> Self {
        let needed = bytes_per_second.saturating_mul(ROOM_SECONDS) >> 10;
        let of_cpu = needed / u64::from(processors.max(1));
        let kibibytes = if of_cpu < u64::from(LARGE_BUFFER) { SMALL_BUFFER } else { LARGE_BUFFER };
        let least = 2 * u64::from(processors.max(1));
        let wanted = (needed / u64::from(kibibytes)).max(least);
        let maximum = (2 * wanted + 16).min((MAX_MEMORY / u64::from(kibibytes)).max(least));
        let number = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        BufferSizes { kibibytes, minimum: number(wanted.min(maximum)), maximum: number(maximum) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_grow_with_the_rate_and_are_bounded() {
        let buffers = |samples_per_second, processors| {
            let BufferSizes { kibibytes, minimum, maximum } =
                TracePlan { samples_per_second, processors, off_cpu: false, file: None }.buffers();
            [kibibytes, minimum, maximum]
        };
        assert_eq!(buffers(4_000, 4), [512, 18, 52]);
        assert_eq!(buffers(1_000, 8), [64, 36, 88]);
        assert_eq!(buffers(0, 0), [64, 2, 20]);
        assert_eq!(buffers(u64::MAX, 64), [512, 512, 512]);
        assert_eq!(buffers(1 << 30, 2_048), [512, 4_096, 4_096]);
    }
}
