//! Interrupts that nothing explains: how many came in a row, and whether that was too many.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Interrupts without a served overflow that may follow each other between two ticks. One or two are usual: an interrupt
/// that was on its way when its counter was stopped or served, or that unmasking raised again.
const MAX_IN_A_ROW: u32 = 64;

/// One processor's. Touched by that processor alone.
#[derive(Debug, Default)]
pub struct Storm {
    /// Spurious interrupts since the last tick or the last overflow that was served.
    in_a_row: AtomicU32,
    /// How many interrupts with an overflow had been served at the last spurious one.
    served: AtomicU64,
}

impl Storm {
    /// Notes a spurious interrupt that came after `served` interrupts with an overflow. Returns whether it is one too many.
    pub fn note(&self, served: u64) -> bool {
        let before = if self.served.load(Ordering::Relaxed) == served { self.in_a_row() } else { 0 };
        self.served.store(served, Ordering::Relaxed);
        self.in_a_row.store(before.saturating_add(1), Ordering::Relaxed);
        before >= MAX_IN_A_ROW
    }

    /// Begins to count anew, at a tick.
    pub fn next_window(&self) {
        self.in_a_row.store(0, Ordering::Relaxed);
    }

    fn in_a_row(&self) -> u32 {
        self.in_a_row.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_in_a_row_are_let_pass_and_a_tick_or_an_overflow_begins_anew() {
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
