//! The memory in which Windows keeps the profile of a thread, and the counters that are read with it instead of RDPMC.
//!
//! ReadThreadProfilingData executes RDPMC in user mode. Windows keeps CR4.PCE clear, so that the instruction faults and
//! ends the program. The driver can execute RDPMC. What it cannot know is in the memory of the program: the value of
//! each counter when the thread was switched in, and the events until then. If the memory did not change from before
//! to after a request to the driver, the thread was not switched, and both belong together:
//!
//! events of the thread = Total + (value that the driver read - Start), modulo the width of the counter.
//!
//! The layout is that of Microsoft's public symbols of ntdll (THREAD_PERFORMANCE_DATA, COUNTER_READING). That the
//! handle of EnableThreadProfiling points to it is not documented. So nothing of it is used unless its header is as
//! expected and `.\client selftest --threads` has compared it with known work on this machine.

use std::fmt;
use std::mem::offset_of;

use protocol::{GroupReply, MAX_GROUP};
use zerocopy::FromBytes;

use crate::system::{MAX_THREAD_COUNTERS, THREAD_MEMORY_SIZE, ThreadMemoryBytes};

/// Version of the structure that has this layout.
const VERSION: u16 = 1;

/// PMCCounter of HARDWARE_COUNTER_TYPE (winnt.h).
const PMC_COUNTER: u32 = 0;

/// COUNTER_READING.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes)]
#[repr(C)]
struct CounterReading {
    kind: u32,
    index: u32,
    start: u64,
    total: u64,
}

/// THREAD_PERFORMANCE_DATA.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes)]
#[repr(C)]
pub(crate) struct ThreadMemory {
    size: u16,
    version: u16,
    /// PROCESSOR_NUMBER: the group, the number in it, and a reserved byte.
    processor: [u8; 4],
    context_switches: u32,
    hw_counters_count: u32,
    update_count: u64,
    wait_reason_bit_map: u64,
    hardware_counters: u64,
    cycle_time: CounterReading,
    hw_counters: [CounterReading; MAX_THREAD_COUNTERS],
}

const _: () = {
    assert!(size_of::<ThreadMemory>() == THREAD_MEMORY_SIZE);
    assert!(offset_of!(ThreadMemory, processor) == 4 && offset_of!(ThreadMemory, context_switches) == 8);
    assert!(offset_of!(ThreadMemory, hw_counters_count) == 0xC && offset_of!(ThreadMemory, update_count) == 0x10);
    assert!(offset_of!(ThreadMemory, hardware_counters) == 0x20 && offset_of!(ThreadMemory, hw_counters) == 0x40);
    assert!(size_of::<CounterReading>() == 0x18 && offset_of!(CounterReading, total) == 0x10);
};

/// A field that is not as the layout demands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Implausible {
    field: &'static str,
    found: u64,
    expected: u64,
}

impl fmt::Display for Implausible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { field, found, expected } = self;
        write!(
            f,
            "the handle of EnableThreadProfiling does not point to THREAD_PERFORMANCE_DATA: {field} is {found:#x} \
             instead of {expected:#x}"
        )
    }
}

impl ThreadMemory {
    /// Returns the structure in which Windows keeps these counters of the configuration: bit n is position n, which is
    /// counter n of the processor.
    ///
    /// # Errors
    /// The first field that is not as expected.
    pub(crate) fn of(bytes: &ThreadMemoryBytes, counters: u64) -> Result<Self, Implausible> {
        let size = THREAD_MEMORY_SIZE as u64;
        let memory =
            Self::read_from_bytes(bytes).map_err(|_| Implausible { field: "Size", found: 0, expected: size })?;
        let expect = |field, found: u64, expected: u64| {
            if found == expected { Ok(()) } else { Err(Implausible { field, found, expected }) }
        };
        expect("Size", memory.size.into(), size)?;
        expect("Version", memory.version.into(), VERSION.into())?;
        expect("HardwareCounters", memory.hardware_counters, counters)?;
        let (count, highest) = (memory.hw_counters_count, u64::BITS - counters.leading_zeros());
        if count < highest || count as usize > MAX_THREAD_COUNTERS {
            return Err(Implausible { field: "HwCountersCount", found: count.into(), expected: highest.into() });
        }
        for (counter, reading) in memory.hw_counters.iter().enumerate().filter(|(bit, _)| counters >> bit & 1 == 1) {
            expect("the type of a counter", reading.kind.into(), PMC_COUNTER.into())?;
            expect("the index of a counter", reading.index.into(), counter as u64)?;
        }
        Ok(memory)
    }

    /// Returns the events of the thread until it was switched in.
    pub(crate) fn until_switch(&self, counter: usize) -> u64 {
        self.hw_counters.get(counter).map_or(0, |reading| reading.total)
    }

    /// Returns the events of the thread until the driver read a counter of `width` bits. The thread was not switched
    /// since the memory was read.
    pub(crate) fn value(&self, counter: usize, driver: u64, width: u32) -> u64 {
        let Some(reading) = self.hw_counters.get(counter) else { return 0 };
        let mask = u64::MAX >> u64::BITS.saturating_sub(width).min(u64::BITS - 1);
        reading.total.wrapping_add(driver.wrapping_sub(reading.start) & mask)
    }
}

/// Returns what RDPMC returned to the driver for the event that it counts on its processor, among events that count on
/// the same counter on different core types. `None` if the processor counts none of them.
pub(crate) fn value_of_driver(group: &GroupReply, requests: &[usize]) -> Option<u64> {
    let is_counted = |request: &&usize| **request < MAX_GROUP && group.counted >> **request & 1 == 1;
    let request = requests.iter().find(is_counted)?;
    group.values.get(*request).copied()
}

#[cfg(test)]
mod tests {
    use zerocopy::FromZeros;

    use super::*;

    /// A structure for the counters 0 and 2, in which three are configured.
    fn bytes() -> ThreadMemoryBytes {
        let mut bytes = [0; THREAD_MEMORY_SIZE];
        let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
        put(0, &0x1C0_u16.to_le_bytes());
        put(2, &[1, 0]);
        put(0xC, &3_u32.to_le_bytes());
        put(0x20, &0b101_u64.to_le_bytes());
        put(0x40 + 2 * 0x18 + 4, &2_u32.to_le_bytes());
        put(0x40 + 2 * 0x18 + 8, &((1_u64 << 48) - 5).to_le_bytes());
        put(0x40 + 2 * 0x18 + 0x10, &1_000_u64.to_le_bytes());
        bytes
    }

    fn changed(at: usize, byte: u8) -> Result<ThreadMemory, Implausible> {
        let mut bytes = bytes();
        bytes[at] = byte;
        ThreadMemory::of(&bytes, 0b101)
    }

    #[test]
    fn events_are_the_total_and_the_difference_in_the_width_of_the_counter() {
        let memory = ThreadMemory::of(&bytes(), 0b101).unwrap();
        assert_eq!(memory.value(2, (1 << 48) - 5, 48), 1_000);
        assert_eq!(memory.value(2, (1 << 48) - 1, 48), 1_004);
        assert_eq!(memory.value(2, 7, 48), 1_012, "the counter wrapped");
        assert_eq!(memory.value(0, 1 << 40, 48), 1 << 40, "more than 32 bits");
        assert_eq!((memory.until_switch(2), memory.until_switch(0)), (1_000, 0));
        assert_eq!((memory.value(99, 7, 48), memory.until_switch(99)), (0, 0));
        assert_eq!(memory.value(0, 9, 0), 1, "a width that is unknown");
    }

    #[test]
    fn a_field_that_is_not_as_expected_is_named() {
        for (at, byte, field, found, expected) in [
            (0, 0xC8, "Size", 0x1C8, 0x1C0),
            (2, 2, "Version", 2, 1),
            (0xC, 2, "HwCountersCount", 2, 3),
            (0xC, 17, "HwCountersCount", 17, 3),
            (0x20, 0b111, "HardwareCounters", 0b111, 0b101),
            (0x40, 1, "the type of a counter", 1, 0),
            (0x44, 1, "the index of a counter", 1, 0),
            (0x40 + 2 * 0x18 + 4, 0, "the index of a counter", 0, 2),
        ] {
            assert_eq!(changed(at, byte), Err(Implausible { field, found, expected }), "{at:#x}");
        }
        // What was not enabled is not looked at.
        assert!(changed(0x40 + 0x18 + 4, 9).is_ok());
        let garbage = ThreadMemory::of(&[0xA5; THREAD_MEMORY_SIZE], 1).unwrap_err();
        assert_eq!(
            garbage.to_string(),
            "the handle of EnableThreadProfiling does not point to THREAD_PERFORMANCE_DATA: Size is 0xa5a5 instead of \
             0x1c0"
        );
    }

    #[test]
    fn the_value_of_the_driver_is_that_of_the_event_which_the_processor_counts() {
        let mut group = GroupReply { counted: 0b10, ..GroupReply::new_zeroed() };
        group.values[1] = 7;
        assert_eq!(value_of_driver(&group, &[0, 1]), Some(7));
        assert_eq!(value_of_driver(&group, &[0]), None);
        assert_eq!(value_of_driver(&group, &[MAX_GROUP + 60]), None);
    }
}
