//! The machine: the state that the foreign callbacks of the lab share.

use crate::{
    cpu::{clock_offsets::ClockOffsets, time_mode::TimeMode, topology::Topology},
    fault_injection::FaultInjection,
};

/// The one machine. It is static because kernel functions and exception handlers receive no context.
pub static MACHINE: Machine = Machine::new();

/// The settings of the machine that a test changes.
pub struct Machine {
    pub clock_offsets: ClockOffsets,
    pub faults: FaultInjection,
    pub time_mode: TimeMode,
    pub topology: Topology,
}

impl Machine {
    const fn new() -> Self {
        Self {
            clock_offsets: ClockOffsets::new(),
            faults: FaultInjection::new(),
            time_mode: TimeMode::new(),
            topology: Topology::new(),
        }
    }
}
