//! The IRQL of each thread, which Wine lacks.
//!
//! At DISPATCH_LEVEL and above, a thread stays on its processor and is the only one there at such a level, except for
//! interrupts. At HIGH_LEVEL it is the only one that accesses the processor's registers.

use crate::{
    cpu::{affinity, processors},
    nt::{self, DISPATCH_LEVEL, HIGH_LEVEL},
    violation::{self, catch_panic},
};
use bench_protocol::Violation;
use std::cell::Cell;

#[derive(Clone, Copy)]
struct ThreadState {
    level: u8,
    /// The affinity below DISPATCH_LEVEL; valid only at DISPATCH_LEVEL and above.
    affinity: usize,
    /// The level at which the current routine was called.
    base: u8,
}

thread_local! {
    static THREAD: Cell<ThreadState> = const { Cell::new(ThreadState { level: 0, affinity: 0, base: 0 }) };
}

pub fn current() -> u8 {
    THREAD.get().level
}

/// Records a violation if the level is above `allowed`.
pub fn check(function: &str, allowed: u8) {
    let level = current();
    if level > allowed {
        violation::record(Violation::Level { function: function.to_owned(), level, allowed });
    }
}

/// Changes the level and returns the previous one. The level does not go below that at which the current routine was
/// called.
pub fn set(wanted: u8) -> u8 {
    let ThreadState { level: before, affinity, base } = THREAD.get();
    let level = wanted.max(base);
    if level != wanted {
        violation::other(format!("a routine that was called at IRQL {base} lowers it to {wanted}"));
    }
    if before >= HIGH_LEVEL && level < HIGH_LEVEL {
        processors::with_current(|core| core.high_level.release(nt::current_thread()));
    }
    if before >= DISPATCH_LEVEL && level < DISPATCH_LEVEL {
        processors::with_current(|core| core.dispatch_level.release(nt::current_thread()));
    }
    let affinity = if before < DISPATCH_LEVEL && level >= DISPATCH_LEVEL {
        affinity::restrict(1 << affinity::current_processor())
    } else if before >= DISPATCH_LEVEL && level < DISPATCH_LEVEL {
        affinity::restrict(affinity);
        0
    } else {
        affinity
    };
    if before < DISPATCH_LEVEL && level >= DISPATCH_LEVEL {
        processors::with_current(|core| core.dispatch_level.acquire(nt::current_thread()));
    }
    if before < HIGH_LEVEL && level >= HIGH_LEVEL {
        processors::with_current(|core| core.high_level.acquire(nt::current_thread()));
    }
    THREAD.set(ThreadState { level, affinity, base });
    before
}

/// Restricts the thread to the processors of the mask. Returns the previous mask, or 0 on failure. At DISPATCH_LEVEL
/// and above, the new mask takes effect when the level is lowered.
pub fn set_affinity(mask: usize) -> usize {
    let thread = THREAD.get();
    if thread.level < DISPATCH_LEVEL {
        return affinity::restrict(mask);
    }
    THREAD.set(ThreadState { affinity: mask, ..thread });
    thread.affinity
}

/// Runs `body` at a level, on a thread that is bound to one processor.
pub fn run_at<T>(level: u8, body: impl FnOnce() -> T) -> T {
    let before = THREAD.replace(ThreadState { level, affinity: 0, base: level });
    let result = body();
    let after = THREAD.replace(before).level;
    if after != level {
        violation::other(format!("a routine that was called at IRQL {level} returned at {after}"));
    }
    result
}

/// Runs `body`, which may wait for a thread that itself waits for DISPATCH_LEVEL on this processor. A thread at
/// DISPATCH_LEVEL gives the lock of that level up meanwhile.
pub fn without_dispatch_level(body: impl FnOnce()) {
    let thread = nt::current_thread();
    let is_there = current() == DISPATCH_LEVEL;
    if is_there {
        processors::with_current(|core| core.dispatch_level.release(thread));
    }
    body();
    if is_there {
        processors::with_current(|core| core.dispatch_level.acquire(thread));
    }
}

/// Implements KeGetCurrentIrql.
pub extern "system" fn get() -> u8 {
    current()
}

/// Implements KfRaiseIrql.
pub extern "system" fn raise(level: u8) -> u8 {
    catch_panic("KfRaiseIrql", 0, || {
        if level < current() {
            violation::other(format!("KfRaiseIrql to {level} at IRQL {}", current()));
        }
        set(level)
    })
}

/// Implements KeLowerIrql.
pub extern "system" fn lower(level: u8) {
    catch_panic("KeLowerIrql", (), || {
        if level > current() {
            violation::other(format!("KeLowerIrql to {level} at IRQL {}", current()));
        }
        set(level);
    });
}
