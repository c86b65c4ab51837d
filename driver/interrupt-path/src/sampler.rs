//! The sampler of the engine, as interrupts, ticks, power changes and requests find it.

use driver_core::Published;
use engine::Sampler;

/// The sampler of the engine.
static SAMPLER: Published<Sampler> = Published::new();

/// Makes `sampler` serve interrupts, ticks and power changes. It must not move or be dropped before [`withdraw`].
pub fn publish(sampler: &Sampler) {
    SAMPLER.publish(sampler);
}

/// Clears the sampler. Ticks, power changes and requests must have stopped. If the HAL has refused to unregister the
/// handler, interrupts may still come; the caller waits for those that found the sampler.
pub fn withdraw() {
    SAMPLER.withdraw();
}

/// Returns the sampler, while it is published.
#[must_use]
pub fn get() -> Option<&'static Sampler> {
    // SAFETY: the sampler is withdrawn and then dropped only after the kernel has stopped calling this module: timers,
    // DPCs and callbacks have ended by then, and so have requests. The I/O manager calls the unload routine, which
    // withdraws it, only when no handle is open and no request is in progress. If DriverEntry fails, no handle was
    // open: the device is the last thing that it makes. The
    // caller of `withdraw` waits for an interrupt that the HAL still delivers
    unsafe { SAMPLER.load().as_ref() }
}
