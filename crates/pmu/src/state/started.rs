//! A started counter: what its interrupts need.

use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};

use super::{CounterState, Total, all_but};
use crate::cpu::Msr;

/// Registers of one counter.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// The MSR that loads it.
    pub register: Msr,
    /// Its index for RDPMC.
    pub index: u32,
    /// 64 minus its width.
    pub missing_bits: u8,
}

/// A counter as it was started, on a cache line of its own. A start derives from the state and from the interface how
/// an interrupt reads and loads it, so that the interrupt derives nothing. Only its processor writes it, at
/// PROFILE_LEVEL, except for the count of a counter that is being reserved and for the interval.
#[derive(Debug)]
#[repr(align(64))]
pub struct StartedCounter {
    /// Running total.
    pub total: Total,
    initial: AtomicU64,
    register: AtomicU32,
    index: AtomicU32,
    missing_bits: AtomicU8,
    merged: AtomicBool,
    /// Select register as it was written. To derive it again from the state would cost the deepest path of the handler
    /// more stack.
    select: AtomicU64,
}

const _: () = assert!(size_of::<StartedCounter>() == 64, "an overflow writes one cache line of the counter");

impl StartedCounter {
    pub(super) const fn new() -> Self {
        Self {
            total: Total::new(),
            initial: AtomicU64::new(0),
            register: AtomicU32::new(0),
            index: AtomicU32::new(0),
            missing_bits: AtomicU8::new(0),
            merged: AtomicBool::new(false),
            select: AtomicU64::new(0),
        }
    }

    /// Notes how the counter is loaded again: at its start, with its state.
    pub(crate) fn start(&self, place: Place, state: CounterState) {
        self.register.store(place.register.address(), Ordering::Relaxed);
        self.index.store(place.index, Ordering::Relaxed);
        self.missing_bits.store(place.missing_bits, Ordering::Relaxed);
        self.merged.store(state.merged(), Ordering::Relaxed);
        self.set_state(state);
    }

    /// Notes a state with another interval, which applies from the next load on.
    pub(crate) fn set_state(&self, state: CounterState) {
        let mask = all_but(self.missing_bits.load(Ordering::Relaxed));
        self.initial.store(state.initial_within(mask), Ordering::Relaxed);
    }

    /// Returns the register that loads it.
    #[inline]
    pub(crate) fn register(&self) -> Msr {
        Msr::new(self.register.load(Ordering::Relaxed))
    }

    /// Returns its index for RDPMC.
    #[inline]
    pub(crate) fn index(&self) -> u32 {
        self.index.load(Ordering::Relaxed)
    }

    /// Returns the value with which an interrupt loads it again.
    #[inline]
    pub(crate) fn initial(&self) -> u64 {
        self.initial.load(Ordering::Relaxed)
    }

    /// Returns the interval that [`initial`](Self::initial) stands for.
    #[inline]
    pub(crate) fn interval(&self) -> u32 {
        (self.initial().wrapping_neg() & 0xFFFF_FFFF) as u32
    }

    /// Returns whether another counter is [merged](CounterState::merged) into this one.
    #[inline]
    pub(crate) fn merged(&self) -> bool {
        self.merged.load(Ordering::Relaxed)
    }

    /// Accounts an overflow: the counter held `value`, and was loaded with `initial`.
    #[inline]
    pub(crate) fn overflowed(&self, value: u64, initial: u64) {
        self.total.overflowed(value, initial, self.missing_bits.load(Ordering::Relaxed));
    }

    /// Returns the select register with which the counter was started.
    pub(crate) fn select(&self) -> u64 {
        self.select.load(Ordering::Relaxed)
    }

    /// Stores the select register with which the counter is started.
    pub(crate) fn set_select(&self, select: u64) {
        self.select.store(select, Ordering::Relaxed);
    }
}
