//! Sleep: the machine leaves S0 and returns to it, and its processors lose their performance monitoring registers.

use crate::{
    cpu::{lvt, processors},
    kernel::{callbacks, control_areas, deferred},
    nt,
    state::machine::MACHINE,
};

/// PO_CB_SYSTEM_STATE_LOCK, and the values of its second argument.
const SYSTEM_STATE_LOCK: usize = 3;
const LEAVES_S0: usize = 0;
const IS_IN_S0: usize = 1;

/// Puts the machine to sleep. Returns false if it already sleeps.
pub fn sleep() -> bool {
    if MACHINE.time_mode.is_asleep() {
        return false;
    }
    callbacks::notify_power(SYSTEM_STATE_LOCK, LEAVES_S0);
    processors::change_time(|| MACHINE.time_mode.set_asleep(true));
    let thread = nt::current_thread();
    for core in processors::active() {
        core.high_level.acquire(thread);
        core.with(|state| {
            state.processor.lose_power();
            lvt::initialize(&mut state.processor);
        });
        core.high_level.release(thread);
    }
    true
}

/// Wakes the machine after a sleep of `milliseconds`. Returns false if it does not sleep.
pub fn wake(milliseconds: u64) -> bool {
    if !MACHINE.time_mode.is_asleep() {
        return false;
    }
    MACHINE.clock_offsets.add_sleep(milliseconds);
    processors::change_time(|| MACHINE.time_mode.set_asleep(false));
    deferred::time_changed();
    control_areas::write_addresses();
    callbacks::notify_power(SYSTEM_STATE_LOCK, IS_IN_S0);
    true
}
