//! A started counter: what its interrupts need.

use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use bitfield_struct::bitfield;

use super::{CounterState, Total, all_but};
use crate::cpu::{Cpu, Msr};

/// Registers of one counter.
#[derive(Debug, Clone, Copy)]
pub struct CounterRegisters {
    /// The MSR that loads it.
    pub register: Msr,
    /// The MSR that lets it count.
    pub control: Msr,
    /// Its index for RDPMC.
    pub index: u32,
    /// 64 minus its width.
    pub missing_bits: u8,
}

/// What an interrupt does to load a counter again, besides one write. It tests both for zero at once.
#[bitfield(u8)]
pub struct Beyond {
    /// Another counter is [merged](CounterState::merged) into this one.
    pub merged: bool,
    /// The counter stands still meanwhile, because its [count](CounterState::counted) must miss no event.
    pub counted: bool,
    #[bits(6)]
    __: u8,
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
    control: AtomicU32,
    index: AtomicU32,
    missing_bits: AtomicU8,
    beyond: AtomicU8,
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
            control: AtomicU32::new(0),
            index: AtomicU32::new(0),
            missing_bits: AtomicU8::new(0),
            beyond: AtomicU8::new(0),
            select: AtomicU64::new(0),
        }
    }

    /// Notes how the counter is loaded again: at its start, with its state.
    pub(crate) fn start(&self, place: CounterRegisters, state: CounterState) {
        self.register.store(place.register.address(), Ordering::Relaxed);
        self.control.store(place.control.address(), Ordering::Relaxed);
        self.index.store(place.index, Ordering::Relaxed);
        self.missing_bits.store(place.missing_bits, Ordering::Relaxed);
        let beyond = Beyond::new().with_merged(state.merged()).with_counted(state.counted());
        self.beyond.store(beyond.into_bits(), Ordering::Relaxed);
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

    /// Returns the register that lets it count.
    #[inline]
    pub(crate) fn control(&self) -> Msr {
        Msr::new(self.control.load(Ordering::Relaxed))
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

    /// Returns what loading it again takes besides one write.
    #[inline]
    pub(crate) fn beyond(&self) -> Beyond {
        Beyond::from_bits(self.beyond.load(Ordering::Relaxed))
    }

    /// Loads the counter again, which held `value` after its overflow: one write.
    #[inline]
    pub(crate) fn reload(&self, cpu: &impl Cpu, value: u64) {
        let initial = self.initial();
        cpu.wrmsr(self.register(), initial);
        self.overflowed(value, initial);
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
