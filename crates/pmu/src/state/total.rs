//! What a counter has counted.

use core::sync::atomic::{AtomicU64, Ordering};

use super::{all_but, top_bit};

/// 64-bit total of a counter. Separate from the 8 bytes of state.
#[derive(Debug, Default)]
pub struct Total {
    counted: AtomicU64,
    /// Value of the register at the last update of `counted`.
    value: AtomicU64,
}

impl Total {
    pub(super) const fn new() -> Self {
        Self { counted: AtomicU64::new(0), value: AtomicU64::new(0) }
    }

    /// Returns the number of events up to the last update.
    #[must_use]
    pub fn counted(&self) -> u64 {
        self.counted.load(Ordering::Relaxed)
    }

    /// Returns the value of the register at the last update.
    pub(crate) fn value(&self) -> u64 {
        self.value.load(Ordering::Relaxed)
    }

    /// Resets the count to zero.
    pub fn clear(&self) {
        self.counted.store(0, Ordering::Relaxed);
    }

    /// Notes that the register was loaded with this value.
    pub fn loaded(&self, value: u64) {
        self.value.store(value, Ordering::Relaxed);
    }

    /// Adds events that were not counted in a register of their own.
    pub(crate) fn add(&self, events: u64) {
        self.counted.store(self.counted().wrapping_add(events), Ordering::Relaxed);
    }

    /// Adds the events up to this value, for a counter that the processor may have reloaded by itself. If it has,
    /// processing its record [adds](Self::overflowed) the missing events.
    pub fn follow(&self, value: u64, missing_bits: u8) -> u64 {
        self.advance(value, value, |moved| sign_extended(moved, missing_bits))
    }

    /// Adds the events up to this value of the register, which has wrapped at most once since the last update.
    pub fn update(&self, value: u64, mask: u64) -> u64 {
        self.advance(value, value, |moved| moved & mask)
    }

    /// Adds the events that the register tells by the difference of its values, and notes what it holds now.
    fn advance(&self, value: u64, now: u64, events: impl FnOnce(u64) -> u64) -> u64 {
        // Only this processor writes here, at PROFILE_LEVEL, so no locked exchange is needed.
        let events = events(value.wrapping_sub(self.value()));
        self.loaded(now);
        let counted = self.counted().wrapping_add(events);
        self.counted.store(counted, Ordering::Relaxed);
        counted
    }

    /// Accounts an overflow that the processor recorded `delay` events later, when it loaded the register with
    /// `initial`. If the register was read between the overflow and the record, the event after that read wrote the
    /// record. Takes back the events that were read after the load.
    pub fn recorded(&self, delay: u64, initial: u64, missing_bits: u8) {
        let last = self.value.load(Ordering::Relaxed);
        let has_overflowed = last & top_bit(all_but(missing_bits)) == 0;
        self.overflowed(if has_overflowed { last.wrapping_add(1) } else { delay }, initial, missing_bits);
    }

    /// Accounts an overflow: the register held `value`, is loaded with `initial`, and has 64 minus `missing_bits` bits.
    pub fn overflowed(&self, value: u64, initial: u64, missing_bits: u8) {
        self.advance(value, initial, |moved| sign_extended(moved, missing_bits));
    }
}

/// Returns the signed difference of two counter values that are less than half the range apart.
const fn sign_extended(difference: u64, missing_bits: u8) -> u64 {
    let missing_bits = missing_bits % 64;
    ((difference << missing_bits).cast_signed() >> missing_bits).cast_unsigned()
}

/// Returns whether a counter with these bits that had the value `last` cannot have counted up to `value` in the ten
/// seconds between two readings: it would be half its range further. No processor counts 2^39 events of a kind in that
/// time, so that narrower counters are not judged.
pub(crate) const fn backwards(last: u64, value: u64, mask: u64) -> bool {
    mask >> 39 != 0 && value.wrapping_sub(last) & top_bit(mask) != 0
}
