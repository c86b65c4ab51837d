//! What each operation costs a processor among 16, 256 and 2,048: interruptions, register accesses and memory, which
//! must be the same, and the time, which is only printed. `cargo test -p engine --test scale -- --nocapture` prints the
//! table. This test has its own program because it counts every allocation.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test that prints a table")]

use std::fmt::{self, Display, Formatter};
use std::time::{Duration, Instant};

use engine::{Engine, Interrupted};
use model::Mode;
use protocol::{Event, EventRequest, StartHeader};
use simulation::{Client, SimMachine};

#[global_allocator]
static HEAP: dhat::Alloc = dhat::Alloc;

/// Numbers of processors: what 16 cost, 256 and 2,048 must cost as well. 2,048 is the maximum of Windows.
const MACHINES: [u32; 3] = [16, 256, 2_048];

/// Records of a ring in a default recording: two seconds of 1,000 samples a second.
const RING: u32 = 2_048;

/// An interval that expires in this test only where it shall.
const INTERVAL: u32 = 65_536;

/// Bytes that a request may allocate besides what it allocates for each processor.
const FIXED: u64 = 2_048;

/// The costs of one operation on all processors.
#[derive(Debug, Clone, Copy)]
struct Cost {
    operation: &'static str,
    processors: u32,
    /// Interruptions by calls of the engine, of all processors together.
    interruptions: u64,
    /// RDMSR, WRMSR and RDPMC, of all processors together.
    accesses: u64,
    /// Bytes allocated meanwhile, and bytes more in use afterwards.
    allocated: u64,
    kept: i64,
    time: Duration,
}

impl Cost {
    /// Returns the costs that must be the same for each processor: interruptions and accesses, exactly.
    fn counts(&self) -> [u64; 2] {
        let each = |all: u64| {
            assert_eq!(all % u64::from(self.processors), 0, "{self:?}: not the same for all");
            all / u64::from(self.processors)
        };
        [each(self.interruptions), each(self.accesses)]
    }

    /// Returns the allocated bytes of each processor, without what a request has once.
    fn bytes(&self) -> u64 {
        self.allocated.saturating_sub(FIXED) / u64::from(self.processors)
    }
}

impl Display for Cost {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { operation, processors, kept, .. } = self;
        let [interruptions, accesses] = self.counts();
        let kept = kept / i64::from(*processors);
        let nanoseconds = self.time.as_nanos() / u128::from(*processors);
        let bytes = self.bytes();
        write!(
            f,
            "{operation:<10} {processors:>5} {interruptions:>13} {accesses:>9} {bytes:>9} {kept:>8} {nanoseconds:>6}"
        )
    }
}

fn accesses(machine: &SimMachine) -> u64 {
    let of_all = machine.all().map(|cpu| cpu.model().accesses());
    of_all.map(|one| one.rdmsr + one.wrmsr + one.rdpmc).sum()
}

/// Runs an operation and returns its costs.
fn cost<T>(machine: &SimMachine, operation: &'static str, work: impl FnOnce() -> T) -> (Cost, T) {
    let (interrupted, accessed): (u64, _) = (machine.interruptions().iter().sum(), accesses(machine));
    let (before, begin) = (dhat::HeapStats::get(), Instant::now());
    let result = work();
    let (time, after) = (begin.elapsed(), dhat::HeapStats::get());
    let interruptions = machine.interruptions().iter().sum::<u64>() - interrupted;
    let kept = i64::try_from(after.curr_bytes).unwrap() - i64::try_from(before.curr_bytes).unwrap();
    let cost = Cost {
        operation,
        processors: machine.active(),
        interruptions,
        accesses: accesses(machine) - accessed,
        allocated: after.total_bytes - before.total_bytes,
        kept,
        time,
    };
    (cost, result)
}

/// Starts a session on all processors, and returns its number.
fn start(client: Client, engine: &mut Engine<&SimMachine>, ring: u32, events: &[EventRequest]) -> u64 {
    let header = StartHeader { ring, ..StartHeader::EMPTY };
    let answer = client.start_with(engine, header, events).header();
    assert_eq!((answer.status, answer.cause), (0, 0));
    answer.detail[0]
}

/// Returns what everything costs on a machine with this many processors.
fn costs(processors: u32) -> Vec<Cost> {
    let machine = SimMachine::named("haswell-4710mq", processors);
    machine.set_current(u32::MAX); // none is the current one, which would not be interrupted
    let (made, mut engine) = cost(&machine, "load", || Engine::new(&machine, [0; 4]).unwrap());
    machine.all().for_each(|cpu| cpu.require_guards(false)); // what is noted of guards takes memory
    let client = Client::open(&mut engine, 1, 10);
    let event = |source, interval| EventRequest {
        event: Event::of(source),
        modes: simulation::quiet_modes(source),
        interval,
        ..EventRequest::EMPTY
    };
    // The first start accesses all registers for the first time.
    let session = start(client, &mut engine, 0, &[event(2, 0)]);
    client.stop(&mut engine, session, None);

    let counted = [2, 6, 10, 11].map(|source| event(source, 0));
    let (started, session) = cost(&machine, "start", || start(client, &mut engine, 0, &counted));
    let (read, _) = cost(&machine, "read", || client.read(&mut engine, session));
    let (followed, ()) = cost(&machine, "follow", || engine.accumulate_counts());
    let (stopped, _) = cost(&machine, "stop", || client.stop(&mut engine, session, None));

    let sampled = [event(2, INTERVAL)];
    let (recording, session) = cost(&machine, "record", || start(client, &mut engine, RING, &sampled));
    let (ticked, ()) = cost(&machine, "tick", || {
        machine.ticking().into_iter().for_each(|processor| machine.tick_sampling(&engine, processor));
    });
    let interrupted = Interrupted { ip: 1, process: 2, thread: 3, mode: protocol::Mode::User };
    for processor in 0..processors {
        machine.run(processor, Mode::User, &|_| INTERVAL.into());
        assert_eq!(machine.deliver(&engine, processor, &interrupted).0, 1);
    }
    // The client's buffer is part of the request.
    let (fetched, answer) =
        cost(&machine, "fetch", || client.samples(&mut engine, session, None, processors as usize).unwrap());
    assert_eq!(answer.header().count, processors, "a sample of each");
    let (ended, ()) = cost(&machine, "end", || engine.close(client.0));
    assert!(!machine.is_in_use());
    vec![made, started, read, followed, stopped, recording, ticked, fetched, ended]
}

#[test]
fn a_processor_among_2048_costs_what_it_costs_among_16() {
    let _heap = dhat::Profiler::builder().testing().build();
    println!("operation    CPUs interruptions  accesses allocated     kept     ns");
    println!("                       per CPU   per CPU   per CPU  per CPU per CPU");
    let all = MACHINES.map(costs);
    let [few, ..] = &all;
    for (index, alone) in few.iter().enumerate() {
        for machine in &all {
            let cost = machine[index];
            println!("{cost}");
            assert_eq!(cost.counts(), alone.counts(), "{cost:?}, not {alone:?}");
            // A vector may double as it grows.
            assert!(cost.bytes() <= 2 * alone.bytes() + 64, "{cost:?}, not {alone:?}");
        }
    }
    let interruptions = |operation: &str| few.iter().find(|cost| cost.operation == operation).unwrap().counts()[0];
    assert_eq!(["read", "follow", "tick", "fetch"].map(interruptions), [1, 1, 0, 0]);
}
