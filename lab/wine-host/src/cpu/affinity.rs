//! On which processor a thread is. The lab's machine has as many as a test says; a thread that asked for none of them is
//! on the one that Wine tells, as far as it runs.

use crate::{cpu::topology, nt};
use std::cell::Cell;

thread_local! {
    /// The processors that the thread may use.
    static MASK: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// The processor on which this thread is, now.
pub fn current_processor() -> u32 {
    let mask = MASK.get();
    let told = nt::current_processor() % topology::active();
    if mask.checked_shr(told).is_some_and(|rest| rest & 1 == 1) { told } else { mask.trailing_zeros() }
}

/// The processor on which this thread has to be, if it can be on one only.
pub fn bound_processor() -> Option<u32> {
    let mask = MASK.get();
    mask.is_power_of_two().then(|| mask.trailing_zeros())
}

/// Restricts this thread to the processors of the mask, and gives back the mask before, 0 if there are none. What is on
/// different processors of the lab is so in Wine too, as far as there are enough.
pub fn restrict(mask: usize) -> usize {
    let count = nt::processor_count();
    let possible = (0..topology::MAX_PROCESSORS).filter(|number| mask >> number & 1 == 1);
    let wines = possible.fold(0, |wines, number| wines | 1 << (number % count));
    if nt::set_affinity(wines) == 0 { 0 } else { MASK.replace(mask) }
}
