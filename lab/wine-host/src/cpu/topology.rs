//! How many processors the machine has.

use std::sync::atomic::{AtomicU32, Ordering};

/// The largest number of processors.
pub const MAX_PROCESSORS: u32 = 8;

static ACTIVE: AtomicU32 = AtomicU32::new(1);
static MAXIMUM: AtomicU32 = AtomicU32::new(1);

/// Sets the number of active processors and of possible processors. Returns false and changes nothing if the numbers
/// are not supported.
pub fn set_counts(active: u32, maximum: u32) -> bool {
    let is_possible = (1..=maximum).contains(&active) && maximum <= MAX_PROCESSORS;
    if is_possible {
        MAXIMUM.store(maximum, Ordering::SeqCst);
        ACTIVE.store(active, Ordering::SeqCst);
    }
    is_possible
}

/// Sets the number of active processors.
pub fn set_active(count: u32) {
    ACTIVE.store(count, Ordering::SeqCst);
}

/// Returns the number of active processors.
pub fn active() -> u32 {
    ACTIVE.load(Ordering::SeqCst)
}

/// Returns the number of processors that can become active.
pub fn maximum() -> u32 {
    MAXIMUM.load(Ordering::SeqCst)
}
