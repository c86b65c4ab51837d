//! Parts of the replies of the fake driver.

use protocol::{CoreTypeRecord, CountRecord, Event, InfoReply, PROTOCOL_VERSION, ProcessorSet, modes};
use zerocopy::FromZeros;

/// Returns the information about a desktop Core 2.
pub fn info() -> InfoReply {
    let mut info = InfoReply {
        driver: [1, 2, 3, 0],
        protocol: PROTOCOL_VERSION,
        interface: 1,
        windows10: 1,
        reason: 1,
        counters: 3,
        least_counters: 3,
        width: 40,
        pmu_version: 2,
        processors: 2,
        maximum_processors: 4,
        counters_in_use: 1,
        sessions: 1,
        signature: 0x0001_06CA,
        state_bytes: 64,
        ..InfoReply::new_zeroed()
    };
    info.vendor[..12].copy_from_slice(b"GenuineIntel");
    info.brand[..11].copy_from_slice(b"  Some  CPU");
    info
}

/// Creates a core type with these processors, eight general and three fixed counters.
pub fn core_type_record(core_type: u32, processors: &[u32]) -> CoreTypeRecord {
    let mut set = ProcessorSet::EMPTY;
    assert!(processors.iter().all(|processor| set.insert(*processor)));
    CoreTypeRecord {
        core_type,
        counters: 11,
        fixed_counters: 3,
        width: 48,
        fixed_width: 40,
        pmu_version: 5,
        processors: set,
    }
}

/// Returns the count with a mark: another program has set fixed counters to both modes after half a second.
pub fn disturbed(count: CountRecord) -> CountRecord {
    CountRecord {
        disturbed_register: 0x38D,
        disturbed_found: 0x333,
        disturbed_expected: 0x2,
        disturbed_at: 5_000_000,
        ..count
    }
}

/// Creates a count of session 7 in both modes.
pub fn count(source: u64, processor: u32, count: u64, enabled: u64) -> CountRecord {
    CountRecord {
        session: 7,
        event: Event::of(source),
        modes: modes::BOTH,
        processor,
        counter: 0,
        count,
        enabled,
        asleep: 0,
        samples: 0,
        lost: 0,
        throttled: 0,
        unmet: 0,
        full: 0,
        index: 0,
        disturbed_register: 0,
        interface: 1,
        disturbed_found: 0,
        disturbed_expected: 0,
        disturbed_at: 0,
        running: enabled,
        turns: 0,
        squares: [0; 2],
        products: [0; 2],
        durations: [0; 2],
        movement: 0,
        recorder: 0,
    }
}
