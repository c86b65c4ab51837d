//! Calls of the engine to the machine, and their failures.

use std::sync::atomic::Ordering;

use protocol::NtStatus;
use protocol::status::STATUS_INSUFFICIENT_RESOURCES;

use super::SimMachine;
use crate::fault_point;

/// STATUS_SUCCESS.
pub(super) const SUCCESS: u32 = 0;

/// Calls of the engine to the machine that can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// [`Platform::start_timers`](engine::Platform::start_timers).
    StartTimers,
    /// [`Platform::add_processor`](engine::Platform::add_processor).
    AddProcessor,
    /// [`Platform::reserve_counters`](engine::Platform::reserve_counters).
    ReserveCounters,
    /// [`Platform::free_counters`](engine::Platform::free_counters).
    FreeCounters,
    /// [`Platform::open_local_apic`](engine::Platform::open_local_apic).
    OpenLocalApic,
    /// [`Platform::begin_sampling`](engine::Platform::begin_sampling).
    BeginSampling,
    /// [`Platform::on_processor`](engine::Platform::on_processor).
    PinThread,
    /// [`Platform::ask_hal`](engine::Platform::ask_hal).
    AskHal,
    /// [`Platform::configure_thread_profiling`](engine::Platform::configure_thread_profiling).
    ConfigureThreadProfiling,
    /// [`Platform::release_thread_profiling`](engine::Platform::release_thread_profiling).
    ReleaseThreadProfiling,
}

impl Call {
    pub(super) const COUNT: usize = 10;

    /// Returns the name of the function.
    const fn name(self) -> &'static str {
        match self {
            Self::StartTimers => "start_timers",
            Self::AddProcessor => "add_processor",
            Self::ReserveCounters => "reserve_counters",
            Self::FreeCounters => "free_counters",
            Self::OpenLocalApic => "open_local_apic",
            Self::BeginSampling => "begin_sampling",
            Self::PinThread => "on_processor",
            Self::AskHal => "ask_hal",
            Self::ConfigureThreadProfiling => "configure_thread_profiling",
            Self::ReleaseThreadProfiling => "release_thread_profiling",
        }
    }

    /// All calls.
    pub const ALL: [Self; Self::COUNT] = [
        Self::StartTimers,
        Self::AddProcessor,
        Self::ReserveCounters,
        Self::FreeCounters,
        Self::OpenLocalApic,
        Self::BeginSampling,
        Self::PinThread,
        Self::AskHal,
        Self::ConfigureThreadProfiling,
        Self::ReleaseThreadProfiling,
    ];
}

impl SimMachine {
    /// Makes a call fail with an NTSTATUS; 0 lets it succeed again.
    pub fn refuse(&self, call: Call, status: u32) {
        #[expect(clippy::indexing_slicing, reason = "there is one for each call")]
        self.refusals[call as usize].store(status, Ordering::Relaxed);
    }

    pub(super) fn attempt(&self, call: Call) -> Result<(), NtStatus> {
        self.pass(self.cost.load(Ordering::Relaxed));
        self.refusal(call)
    }

    pub(super) fn refusal(&self, call: Call) -> Result<(), NtStatus> {
        if fault_point::fails(call.name()) {
            return Err(STATUS_INSUFFICIENT_RESOURCES);
        }
        #[expect(clippy::indexing_slicing, reason = "there is one for each call")]
        match self.refusals[call as usize].load(Ordering::Relaxed) {
            SUCCESS => Ok(()),
            refusal => Err(NtStatus::new(refusal)),
        }
    }

    pub(super) fn fails(&self, call: Call) -> bool {
        self.attempt(call).is_err()
    }
}
