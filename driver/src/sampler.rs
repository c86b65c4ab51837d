//! The sampler of the engine, as interrupts, ticks, power changes and requests find it.

#![expect(unsafe_code, reason = "the kernel calls with nothing but an address, and the sampler outlives the calls")]

use driver_core::Published;
use engine::Sampler;

use crate::nt::processors;

/// The sampler of the engine.
static SAMPLER: Published<Sampler> = Published::new();

/// Makes `sampler` serve interrupts, ticks and power changes. It must not move or be dropped before [`withdraw`].
pub fn publish(sampler: &Sampler) {
    SAMPLER.publish(sampler);
}

/// Clears the sampler. Ticks, power changes and requests must have stopped. If the HAL has refused to unregister the
/// handler, interrupts may still come; those that found the sampler have ended when this returns.
///
/// # IRQL
/// PASSIVE_LEVEL.
pub fn withdraw() {
    SAMPLER.withdraw();
    processors::wait_for_interrupts();
}

/// Returns the sampler, while it is published.
pub fn get() -> Option<&'static Sampler> {
    // SAFETY: the sampler is withdrawn and then dropped only after the kernel has stopped calling this module: timers,
    // DPCs and callbacks have ended by then, and so have requests. The I/O manager calls the unload routine, which
    // withdraws it, only when no handle is open and no request is in progress. If DriverEntry fails, no handle was
    // open: the device is the last thing that it makes. `withdraw` waits for an interrupt that the HAL still delivers
    unsafe { SAMPLER.load().as_ref() }
}
