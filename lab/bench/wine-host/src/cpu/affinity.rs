//! The processor on which a thread runs. The number of processors is set by the test. An unrestricted thread runs on
//! the processor that Wine reports, modulo that number, or where the program's thread runs whose request it serves.

use crate::{cpu::topology, nt, state::machine::MACHINE};
use std::cell::Cell;

thread_local! {
    /// The processors that this thread may use.
    static MASK: Cell<usize> = const { Cell::new(usize::MAX) };
    /// The processor of the program's thread whose request this thread serves.
    static SCHEDULED: Cell<Option<u32>> = const { Cell::new(None) };
}

/// Returns the processor on which this thread runs now.
pub fn current_processor() -> u32 {
    let mask = MASK.get();
    let reported = SCHEDULED.get().unwrap_or_else(nt::current_processor) % MACHINE.topology.active();
    if mask.checked_shr(reported).is_some_and(|rest| rest & 1 == 1) { reported } else { mask.trailing_zeros() }
}

/// Runs `body` for a thread of a program, on that thread's processor as far as this thread is not restricted to others.
pub fn with_scheduled<T>(processor: u32, body: impl FnOnce() -> T) -> T {
    let before = SCHEDULED.replace(Some(processor));
    let result = body();
    SCHEDULED.set(before);
    result
}

/// Returns the only processor that this thread may use, if it is restricted to one.
pub fn bound_processor() -> Option<u32> {
    let mask = MASK.get();
    mask.is_power_of_two().then(|| mask.trailing_zeros())
}

/// Restricts this thread to the processors of the mask. Returns the previous mask, or 0 on failure. Different
/// processors of the lab are different processors of Wine, as long as Wine has enough.
pub fn restrict(mask: usize) -> usize {
    let count = nt::processor_count();
    let possible = (0..topology::MAX_PROCESSORS).filter(|number| mask >> number & 1 == 1);
    let mask_of_wine = possible.fold(0, |mask_of_wine, number| mask_of_wine | 1 << (number % count));
    if nt::set_affinity(mask_of_wine) == 0 { 0 } else { MASK.replace(mask) }
}
