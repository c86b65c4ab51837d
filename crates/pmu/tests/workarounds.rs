//! The workarounds: each on the model of a processor that needs it, in a module with the name of its action.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod counters;
mod reset_counters;
mod table;

use model::{Mode, Processor};
use pmu::state::CounterSet;
use pmu::{Hal, ProcessorIndex, Source};
use simulation::SimMachine;

/// A processor with the HAL functions initialized on it.
struct Bench {
    machine: SimMachine,
    hal: Hal,
}

impl Bench {
    fn new(identity: &str) -> Self {
        Self::of(SimMachine::named(identity, 1))
    }

    /// The processor of an identity with another CPUID.
    fn with_cpuid(identity: &str, change: fn(u32, [u32; 4]) -> [u32; 4]) -> Self {
        let identity = cpuid_dumps::find(identity).unwrap();
        let dump = identity.cpuid();
        let processor = Processor::new(Box::new(move |leaf, subleaf| change(leaf, dump.cpuid(leaf, subleaf))));
        Self::of(SimMachine::of([processor.with_perf_capabilities(identity.perf_capabilities())]))
    }

    fn of(machine: SimMachine) -> Self {
        let hal = Hal::new(machine.processor(0), 1).unwrap();
        simulation::access_first(&hal, machine.processor(0), 0);
        assert!(hal.initialize(machine.current(0)));
        Self { machine, hal }
    }

    /// Reserves a counter for a source, if there is one.
    fn reserve(&self, source: u64) -> Option<u8> {
        let state = self.hal.state_for(Source(source), 0, false).unwrap().with_owner(1).with_user(true);
        self.hal.reserve(ProcessorIndex::BOOT, state)
    }

    fn start(&self, counter: u8) {
        self.hal.start(self.machine.current(0), CounterSet::NONE.with(counter));
    }

    /// Stops a counter and returns its count.
    fn stop(&self, counter: u8) -> u64 {
        let _ = self.hal.stop(self.machine.current(0), CounterSet::NONE.with(counter));
        self.hal.total(ProcessorIndex::BOOT, counter)
    }

    fn run(&self, events: u64) {
        self.machine.run(0, Mode::User, &|_| events);
    }

    fn count(&self, counter: u8) -> u64 {
        self.hal.count(self.machine.current(0), counter)
    }
}
