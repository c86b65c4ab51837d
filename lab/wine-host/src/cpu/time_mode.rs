//! The time mode: events happen by the time-stamp counter, by a script of a test, or not at all.

use std::sync::atomic::{AtomicBool, Ordering};

static LIVE: AtomicBool = AtomicBool::new(true);
static ASLEEP: AtomicBool = AtomicBool::new(false);

/// Selects live time or scripted time.
pub fn set_live(live: bool) {
    LIVE.store(live, Ordering::SeqCst);
}

/// Records whether the machine sleeps.
pub fn set_asleep(asleep: bool) {
    ASLEEP.store(asleep, Ordering::SeqCst);
}

/// Returns whether events happen by the time-stamp counter now.
pub fn is_live() -> bool {
    !is_scripted() && !is_asleep()
}

/// Returns whether events happen only when a test says so.
pub fn is_scripted() -> bool {
    !LIVE.load(Ordering::SeqCst)
}

/// Returns whether the machine sleeps.
pub fn is_asleep() -> bool {
    ASLEEP.load(Ordering::SeqCst)
}
