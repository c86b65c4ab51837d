//! Memory use per processor. This test has its own program because it counts every allocation.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use engine::Engine;
use model::Mode;
use protocol::{Event, EventRequest, StartHeader, modes};
use simulation::{Client, SimMachine};

#[global_allocator]
static HEAP: dhat::Alloc = dhat::Alloc;

/// Four groups of 64 processors.
const MANY: u32 = 256;

/// Bytes of the `PerCpu` of each processor, in whole cache lines. For the HAL functions: one cache line for each of 32
/// counters as it was started and 32 for its first disturbance, 8 for the active and 4 for the disturbed counters, 48
/// for the saved and current registers and the capabilities, 8 for the counters with a possibly stale status and the
/// state of the registers, 160 for the results of the first accesses, and 72 for the extra registers. For the sampler:
/// 32 for each of 32 counters, 8 ring slots, one slot each for the Debug Store and for last branches, 8 for events that
/// take turns, the budget, the rate of the time stamps and the interrupt statistics; 64 for the unwritten events of
/// each of 20 counters, and 8 for their number; 16 for what each of 32 counters counts; and 24 for each of 32 counters
/// that programs read, and 8 for what interrupts them.
const PER_CPU: usize = 7_680;

fn bytes() -> usize {
    dhat::HeapStats::get().curr_bytes
}

/// Returns the bytes of an engine for this many processors, of its counter state, and of the rest of four sources that
/// ran and stopped.
fn engine_bytes(name: &str, processors: u32) -> [usize; 3] {
    let machine = SimMachine::named(name, processors);
    let before = bytes();
    let mut engine = Engine::new(&machine, [0; 4]).unwrap();
    let made = bytes() - before;
    machine.all().for_each(|cpu| cpu.require_guards(false)); // what is noted of guards takes memory
    let client = Client::open(&mut engine, 1, 10);
    let header = StartHeader::EMPTY;
    let events =
        [2, 6, 11].map(|source| EventRequest { event: Event::of(source), modes: modes::USER, ..EventRequest::EMPTY });
    let answer = client.start_with(&mut engine, header, &events).header();
    assert_eq!(answer.status, 0);
    machine.run(processors - 1, Mode::User, &|_| 1);
    machine.all().for_each(|cpu| cpu.model().clear_ledger());
    let state = engine.sampler().hal().state_bytes();
    engine.close(client.0);
    [made, state, bytes() - before - made]
}

#[test]
fn a_processor_costs_8_bytes_for_each_counter_besides_what_is_documented_and_a_session_leaves_nothing() {
    let _heap = dhat::Profiler::builder().testing().build();
    for (name, counters) in [
        ("amd-legacy", 4),
        ("intel-v1", 4),
        ("intel-v2", 7),
        ("alder-lake-n-95", 9),
        // With counters that CPUID hides.
        ("alder-lake-12900k", 20),
        // Every processor has as many cells as the kind with most counters: 11, and slots with 8 metrics.
        ("intel-hybrid", 20),
    ] {
        let [[one, one_state, one_left], [many, many_state, many_left]] =
            [1, MANY].map(|count| engine_bytes(name, count));
        let more = MANY as usize - 1;
        assert_eq!(many_state - one_state, more * counters * 8, "{name}");
        assert_eq!(many - one, more * (counters * 8 + PER_CPU), "{name}");
        assert_eq!(many_left, one_left, "{name}");
    }
}
