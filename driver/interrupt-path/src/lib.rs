//! The interrupt path of halprof.sys: the handler, and the kernel functions that it calls.
//!
//! It is a crate of its own because a crate has one level of optimization, and code that is generic over the processor
//! is compiled in the crate that uses it. The rest of the driver, with `engine` and `pmu`, is compiled for size
//! (profile `driver` in the workspace's `Cargo.toml`); this crate, and with it what the handler calls for each sample,
//! for speed. What the handler calls rarely is never inlined, and [compiled for size](processor::compile) too.

#![no_std]
#![expect(
    unsafe_code,
    reason = "kernel functions are foreign functions, and the HAL calls with nothing but an address"
)]

extern crate alloc;

pub mod clock;
pub mod cpu_dpcs;
pub mod dpc;
pub mod sampler;
mod trap_frame;
pub mod waker;

use engine::Interrupted;
use processor::with_current;
use protocol::Mode;
use wdk_sys::ntddk::{PsGetCurrentProcessId, PsGetCurrentThreadId};

pub use trap_frame::TrapFrame;
use waker::wake_reader;

/// Handler of the performance monitor interrupt, called by the HAL on the interrupted processor. The HAL writes the end
/// of interrupt itself.
///
/// # Safety
/// `frame` is null, or the trap frame of the interrupt.
///
/// # IRQL
/// PROFILE_LEVEL.
pub unsafe extern "C" fn performance_interrupt(frame: *mut TrapFrame) {
    let Some(sampler) = sampler::get() else { return };
    // SAFETY: null, or the trap frame that the HAL lends for the duration of the call
    let frame = unsafe { frame.as_ref() };
    // Without a frame the counters must still be rearmed, or they would stop; the sample gets address 0 in kernel mode.
    let (ip, is_user) = frame.map_or((0, false), |frame| (frame.instruction_pointer(), frame.is_user()));
    let interrupted = Interrupted {
        ip,
        process: current_process(),
        thread: current_thread(),
        mode: if is_user { Mode::User } else { Mode::Kernel },
    };
    // SAFETY: the HAL calls the handler at PROFILE_LEVEL
    unsafe {
        with_current(|current| {
            let deferred = sampler.interrupt(current, clock::ticks, &interrupted);
            if deferred.reader {
                wake_reader();
            }
            if deferred.events {
                cpu_dpcs::queue(current.index());
            }
        });
    };
}

/// Returns the current or interrupted thread.
///
/// # IRQL
/// Any.
#[must_use]
pub fn current_thread() -> u32 {
    // SAFETY: no requirement
    let id = unsafe { PsGetCurrentThreadId() };
    u32::try_from(id.addr()).unwrap_or(u32::MAX)
}

/// Returns the process of the current or interrupted thread. Windows process IDs have 32 bits.
///
/// # IRQL
/// Any.
#[must_use]
pub fn current_process() -> u32 {
    // SAFETY: no requirement
    let id = unsafe { PsGetCurrentProcessId() };
    u32::try_from(id.addr()).unwrap_or(u32::MAX)
}
