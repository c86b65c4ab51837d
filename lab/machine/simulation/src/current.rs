//! Code that runs on a processor.

use pmu::first_access::{Phase, RegisterGroup};
use pmu::{Cpu, CurrentCpu, GuardedCpu, Hal, ProcessorIndex};

/// Returns the token of code that runs on the processor `number` at PROFILE_LEVEL, with the registers that `cpu`
/// accesses.
pub const fn current<C: Cpu>(cpu: &C, number: u32) -> CurrentCpu<'_, C> {
    CurrentCpu::new(cpu, ProcessorIndex::new(number))
}

/// Returns the token of code that runs on the boot processor at PROFILE_LEVEL, with the registers that `cpu` accesses.
pub const fn boot<C: Cpu>(cpu: &C) -> CurrentCpu<'_, C> {
    current(cpu, ProcessorIndex::BOOT.number())
}

/// Accesses the registers of the profile interface of a processor for the first time, as the engine does before
/// [`Hal::initialize`].
///
/// # Panics
/// If an access faults.
pub fn access_first<E>(hal: &Hal<E>, cpu: &impl GuardedCpu, number: u32) {
    for phase in [Phase::Read, Phase::Write] {
        let accessed = hal.access_first(ProcessorIndex::new(number), RegisterGroup::Counters, phase, cpu);
        assert_eq!(accessed, Ok(()), "{phase:?}");
    }
}
