//! Detection of interrupt storms: spurious interrupts in a row.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Maximum number of spurious interrupts in a row between two ticks. One or two are normal: an interrupt that was
/// pending when its counter was stopped or served, or that unmasking raised again.
const MAX_IN_A_ROW: u32 = 64;

/// State of one processor, which only that processor accesses.
#[derive(Debug, Default)]
pub struct Storm {
    /// Spurious interrupts since the last tick or the last overflow that was served.
    in_a_row: AtomicU32,
    /// Interrupts with an overflow that had been served at the last spurious interrupt.
    served: AtomicU64,
}

impl Storm {
    pub const fn new() -> Self {
        Self { in_a_row: AtomicU32::new(0), served: AtomicU64::new(0) }
    }

    /// Counts a spurious interrupt that came after `served` interrupts with an overflow. Returns whether there are too
    /// many in a row.
    pub fn note(&self, served: u64) -> bool {
        if self.served.load(Ordering::Relaxed) != served {
            self.served.store(served, Ordering::Relaxed);
            self.next_window();
        }
        let before = self.in_a_row.load(Ordering::Relaxed);
        self.in_a_row.store(before.wrapping_add(1), Ordering::Relaxed);
        before >= MAX_IN_A_ROW
    }

    /// Begins a new count, at a tick.
    pub fn next_window(&self) {
        self.in_a_row.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_in_a_row_passes_and_a_tick_or_an_overflow_begins_anew() {
        let storm = Storm::default();
        let pass = |served| (0..MAX_IN_A_ROW).for_each(|number| assert!(!storm.note(served), "{number}"));
        pass(0);
        assert!(storm.note(0));
        storm.next_window();
        pass(0);
        pass(1);
        assert!(storm.note(1));
    }
}
