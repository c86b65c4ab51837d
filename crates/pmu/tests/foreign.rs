//! Registers that another program writes while counters count.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use pmu::source::RawEvent;
use pmu::state::CounterSet;
use pmu::{Hal, ProcessorIndex, Source};
use simulation::{ModelCpu, SimMachine, boot};

const FIXED_CTR_CTRL: u32 = 0x38D;
const GLOBAL_CTRL: u32 = 0x38F;
const PERF_CNTR_GLOBAL_CTL: u32 = 0xC000_0301;

/// Processors with a register that controls all counters, and that register.
const PROCESSORS: [(&str, u32); 3] =
    [("intel-v2", GLOBAL_CTRL), ("skylake-6600k", GLOBAL_CTRL), ("zen4-7700x", PERF_CNTR_GLOBAL_CTL)];

fn register(cpu: &ModelCpu, msr: u32) -> u64 {
    cpu.model().uncounted(|model| model.rdmsr(msr)).unwrap()
}

/// Returns the functions for an initialized processor.
fn initialized(cpu: &ModelCpu) -> Hal {
    let hal = Hal::new(cpu, 1).unwrap();
    simulation::access_first(&hal, cpu, 0);
    assert!(hal.initialize(boot(cpu)));
    hal
}

/// Reserves a counter for a source in both modes.
fn reserved(hal: &Hal, source: u64) -> CounterSet {
    let state = hal.state_for(Source(source), 0, false).unwrap().with_owner(1).with_user(true);
    CounterSet::NONE.with(hal.reserve(ProcessorIndex::BOOT, state).unwrap())
}

/// Returns the registers of the disturbances of these counters that were noted.
fn disturbed(hal: &Hal, cpu: &ModelCpu, counters: CounterSet) -> Vec<u32> {
    let mut registers = Vec::new();
    hal.take_disturbances(boot(cpu), counters, 7, |_, disturbance, _| registers.push(disturbance.register));
    registers
}

#[test]
fn a_freeze_notes_that_counters_were_stopped() {
    for (name, control) in &PROCESSORS[..2] {
        for is_stopped in [false, true] {
            let machine = SimMachine::named(name, 1);
            let cpu = machine.processor(0);
            let hal = initialized(cpu);
            let counters = reserved(&hal, 2);
            hal.start(boot(cpu), counters);
            let written = register(cpu, *control);
            if is_stopped {
                assert!(cpu.write_foreign(*control, 0));
            }
            hal.freeze(boot(cpu));
            hal.unfreeze(boot(cpu));
            let wanted = if is_stopped { vec![*control] } else { vec![] };
            assert_eq!(disturbed(&hal, cpu, counters), wanted, "{name}");
            assert_eq!(register(cpu, *control), written, "{name}: they count again");
        }
    }
}

#[test]
fn confined_counters_are_those_that_are_active() {
    for (name, control) in PROCESSORS {
        let machine = SimMachine::named(name, 1);
        let cpu = machine.processor(0);
        let hal = initialized(cpu);
        let [active, stopped] = [2, 6].map(|source| reserved(&hal, source));
        hal.start(boot(cpu), active.or(stopped));
        let both = register(cpu, control);
        let _ = hal.stop(boot(cpu), stopped);
        let one = register(cpu, control);
        assert_ne!(one, both, "{name}");
        assert!(cpu.write_foreign(control, both));
        hal.confine(boot(cpu));
        assert_eq!(register(cpu, control), one, "{name}");
    }
}

/// IA32_FIXED_CTR_CTRL has a field of four bits for each fixed counter: OS, user, AnyThread and PMI.
#[test]
fn slots_count_in_the_modes_of_their_event_whatever_was_found() {
    const SLOTS: RawEvent = RawEvent::new().with_umask(0x04);
    for found in [0, 0b0001, 0b0011, 0b1011] {
        for (user, kernel) in [(true, false), (false, true), (true, true)] {
            let machine = SimMachine::named("ice-lake-1065g7", 1);
            let cpu = machine.processor(0);
            assert!(cpu.write_foreign(FIXED_CTR_CTRL, found << 12));
            let hal = initialized(cpu);
            let instructions = reserved(&hal, 6);
            hal.start(boot(cpu), instructions);
            let others = register(cpu, FIXED_CTR_CTRL) & 0xFFF;
            let state = hal.state_for(SLOTS.source(), 0, false).unwrap();
            let state = state.with_owner(1).with_user(user).with_kernel(kernel);
            let slots = CounterSet::NONE.with(hal.reserve(ProcessorIndex::BOOT, state).unwrap());
            hal.start(boot(cpu), slots);
            let wanted = u64::from(kernel) | u64::from(user) << 1;
            assert_eq!(register(cpu, FIXED_CTR_CTRL), wanted << 12 | others, "{found:#b}, {user}, {kernel}");
            assert!(hal.stop_metrics(boot(cpu), slots).is_empty());
            assert_eq!(register(cpu, FIXED_CTR_CTRL), found << 12 | others, "as it was found");
        }
    }
}
