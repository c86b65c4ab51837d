//! The processor on which a thread runs. The number of processors is set by the test. An unrestricted thread runs on
//! the processor that Wine reports, modulo that number.

use crate::{cpu::topology, nt, state::machine::MACHINE};
use std::cell::Cell;

thread_local! {
    /// The processors that this thread may use.
    static MASK: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// Returns the processor on which this thread runs now.
pub fn current_processor() -> u32 {
    let mask = MASK.get();
    let reported = nt::current_processor() % MACHINE.topology.active();
    if mask.checked_shr(reported).is_some_and(|rest| rest & 1 == 1) { reported } else { mask.trailing_zeros() }
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
