//! Sleep: the machine leaves S0 and comes back, and the performance monitoring registers of its processors are lost.

use crate::{
    cpu::processor,
    kernel::{callbacks, control_areas, deferred, time},
    nt,
};
use std::sync::atomic::{AtomicBool, Ordering};

/// PO_CB_SYSTEM_STATE_LOCK, and what it comes with.
const SYSTEM_STATE_LOCK: usize = 3;
const LEAVES_S0: usize = 0;
const IS_IN_S0: usize = 1;

static ASLEEP: AtomicBool = AtomicBool::new(false);

/// Whether the machine sleeps.
pub fn asleep() -> bool {
    ASLEEP.load(Ordering::SeqCst)
}

/// Goes to sleep; false if it sleeps already.
pub fn sleep() -> bool {
    if asleep() {
        return false;
    }
    callbacks::notify_power(SYSTEM_STATE_LOCK, LEAVES_S0);
    processor::change_time(|| ASLEEP.store(true, Ordering::SeqCst));
    let thread = nt::current_thread();
    for core in processor::all() {
        core.high_level.acquire(thread);
        core.with(|state| state.processor.lose_power());
        core.high_level.release(thread);
    }
    true
}

/// Wakes after so many milliseconds; false if it does not sleep.
pub fn wake(milliseconds: u64) -> bool {
    if !asleep() {
        return false;
    }
    time::slept(milliseconds);
    processor::change_time(awake);
    deferred::time_changed();
    control_areas::write_addresses();
    callbacks::notify_power(SYSTEM_STATE_LOCK, IS_IN_S0);
    true
}

/// The machine is awake, whatever it was.
pub fn awake() {
    ASLEEP.store(false, Ordering::SeqCst);
}
