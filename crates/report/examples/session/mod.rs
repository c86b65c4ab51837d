//! The session of recordings that no machine made.

use protocol::{CounterKind, CounterSample, Mode, modes};
use recording::{RecordedEvent, RecordedSession};

/// The interval of the event.
pub const INTERVAL: u32 = 100_003;
/// Ticks of the clock in a second.
pub const CLOCK: u64 = 10_000_000;

/// Returns a session that sampled cycles on these processors.
pub fn session(processors: u32) -> RecordedSession {
    RecordedSession {
        created_unix_ms: 1_767_225_600_000,
        client: "0.1.0".to_owned(),
        driver: "0.1.0".to_owned(),
        processor: "Synthetic".to_owned(),
        computer: None,
        command: Vec::new(),
        clock: CLOCK,
        processors: (0..processors).collect(),
        batch: 0,
        condition: None,
        last_branches: 0,
        tasks: recording::RecordedTasks::default(),
        part: 0,
        core_types: Vec::new(),
        events: vec![RecordedEvent {
            source: 25,
            name: "TotalCycles".to_owned(),
            modes: modes::BOTH,
            interval: INTERVAL,
            frequency: 0,
            core_type: 0,
        }],
    }
}

/// Returns a sample of a process in user mode. The thread of an unknown process is unknown, too.
pub fn sample(time: u64, ip: u64, process: u32, processor: u32) -> CounterSample {
    CounterSample {
        time,
        ip,
        process,
        thread: process.saturating_add(1),
        processor,
        event: 0,
        interval: INTERVAL,
        kind: CounterKind::Sample,
        mode: Mode::User,
        pebs_sequence: 0,
        cookie: 0,
    }
}
