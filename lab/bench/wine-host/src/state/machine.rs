//! The machine: the root of the state that the foreign callbacks of the lab share.

use crate::{
    cpu::{
        apic_pages::ApicPages,
        clock_offsets::ClockOffsets,
        processor::{Core, ProcessorType},
        time_mode::TimeMode,
        topology::Topology,
    },
    fault_injection::FaultInjection,
    state::{control::Control, kernel::Kernel, loader::Loader},
};
use bench_protocol::Violation;
use std::sync::{LazyLock, Mutex, OnceLock};

/// The one machine. It is static because kernel functions and exception handlers receive no context.
///
/// `lab_start` accesses it first, before there is another thread or a callback.
pub static MACHINE: LazyLock<Machine> = LazyLock::new(Machine::default);

/// The state of the lab.
#[derive(Default)]
pub struct Machine {
    pub clock_offsets: ClockOffsets,
    pub faults: FaultInjection,
    pub time_mode: TimeMode,
    pub topology: Topology,
    /// The active processors, followed by those that can be added. Set when the lab starts.
    pub cores: OnceLock<Vec<Core>>,
    /// The type of all processors. None before the lab starts.
    pub processor_type: Mutex<Option<ProcessorType>>,
    pub apic_pages: ApicPages,
    /// The violations that the test has not collected yet.
    pub violations: Mutex<Vec<Violation>>,
    pub kernel: Kernel,
    pub loader: Loader,
    pub control: Control,
}
