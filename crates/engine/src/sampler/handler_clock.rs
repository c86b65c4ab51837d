//! Duration of an interrupt by the time-stamp counter.
//!
//! The budget needs two readings of a clock in each interrupt, and the sample needs the time of the first. Where the
//! time-stamp counter runs at a constant rate, it replaces the second reading of the performance counter, whose
//! hardware Windows chooses: an HPET or a hypervisor's timer takes a microsecond for each reading.
//!
//! Each tick measures how fast the two clocks run against each other. A rate that differs from the one before is not
//! trusted: a debugger stopped one of the clocks, the machine slept, or a virtual machine moved to another host. Then
//! the second reading is one of the performance counter, until two rates agree again. No time of a sample depends on
//! the time-stamp counter.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use pmu::Cpuid;
use x86_defs::cpuid::{Leaf80000007Edx, leaf};

use crate::time::Ticks;

/// Position of the point in a rate, which is the number of units of the platform's clock for each time stamp.
const POINT: u32 = 32;

/// A rate is trusted if it differs from the one before by at most this part of it. The two clocks are not read at the
/// same moment: a virtual machine can lose 50 us in between, 0.5 % of a tick.
const TOLERANCE: u64 = 64;

/// Returns whether the time-stamp counter runs at a constant rate in all power states.
pub fn has_invariant_time_stamps(cpu: &impl Cpuid) -> bool {
    cpu.cpuid(leaf::EXTENDED_MAXIMUM, 0).eax >= leaf::POWER_MANAGEMENT
        && Leaf80000007Edx::from_bits(cpu.cpuid(leaf::POWER_MANAGEMENT, 0).edx).tsc_invariant()
}

/// The two clocks of one processor, which only that processor accesses.
#[derive(Debug, Default)]
pub struct HandlerClock {
    is_invariant: AtomicBool,
    /// Both clocks at the last tick.
    clock: AtomicU64,
    stamp: AtomicU64,
    /// Rate between the last two ticks.
    measured: AtomicU64,
    /// The same if it is trusted, else 0.
    trusted: AtomicU64,
}

impl HandlerClock {
    pub const fn new() -> Self {
        Self {
            is_invariant: AtomicBool::new(false),
            clock: AtomicU64::new(0),
            stamp: AtomicU64::new(0),
            measured: AtomicU64::new(0),
            trusted: AtomicU64::new(0),
        }
    }

    /// Begins to measure, when the first session begins to sample on the processor. Both clocks show these times.
    pub fn open(&self, is_invariant: bool, now: Ticks, stamp: u64) {
        self.is_invariant.store(is_invariant, Ordering::Relaxed);
        self.clock.store(now.0, Ordering::Relaxed);
        self.stamp.store(stamp, Ordering::Relaxed);
        self.measured.store(0, Ordering::Relaxed);
        self.trusted.store(0, Ordering::Relaxed);
    }

    /// Measures the rate at a tick. Both clocks show these times.
    pub fn tick(&self, now: Ticks, stamp: u64) {
        if !self.is_invariant.load(Ordering::Relaxed) {
            return;
        }
        let ticks = now.since(Ticks(self.clock.load(Ordering::Relaxed)));
        let stamps = stamp.wrapping_sub(self.stamp.load(Ordering::Relaxed));
        let (rate, before) = (rate(ticks, stamps), self.measured.load(Ordering::Relaxed));
        let is_trusted = rate.abs_diff(before) <= before / TOLERANCE;
        self.clock.store(now.0, Ordering::Relaxed);
        self.stamp.store(stamp, Ordering::Relaxed);
        self.measured.store(rate, Ordering::Relaxed);
        self.trusted.store(if is_trusted { rate } else { 0 }, Ordering::Relaxed);
    }

    /// Returns the duration of so many time stamps, rounded up, or `None` if their rate is not trusted.
    #[inline]
    pub fn duration(&self, stamps: impl FnOnce() -> u64) -> Option<Ticks> {
        let rate = self.trusted.load(Ordering::Relaxed);
        (rate != 0).then(|| Ticks((stamps().saturating_mul(rate) >> POINT) + 1))
    }
}

/// Returns the rate of `ticks` against `stamps`, or 0 if it cannot be represented.
fn rate(ticks: Ticks, stamps: u64) -> u64 {
    let rate = (u128::from(ticks.0) << POINT).checked_div(stamps.into());
    rate.and_then(|rate| u64::try_from(rate).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Units of the clock and time stamps between two ticks.
    type Apart = (u64, u64);

    fn ticked(clock: &HandlerClock, apart: impl IntoIterator<Item = Apart>) {
        let (mut now, mut stamp) = (clock.clock.load(Ordering::Relaxed), clock.stamp.load(Ordering::Relaxed));
        for (ticks, stamps) in apart {
            (now, stamp) = (now.wrapping_add(ticks), stamp.wrapping_add(stamps));
            clock.tick(Ticks(now), stamp);
        }
    }

    /// Returns a clock that a session has opened.
    fn opened(is_invariant: bool) -> HandlerClock {
        let clock = HandlerClock::default();
        clock.open(is_invariant, Ticks(0x1234_5678), 0x9ABC_DEF0);
        clock
    }

    #[test]
    fn a_rate_is_trusted_once_two_ticks_agree_and_until_two_do_not() {
        const TICK: Apart = (100_000, 30_000_000);
        let cases: [(&str, bool, &[Apart], Option<u64>); 10] = [
            ("no tick", true, &[], None),
            ("one", true, &[TICK], None),
            ("two", true, &[TICK, TICK], Some(11)),
            ("not invariant", false, &[TICK, TICK], None),
            ("1 % apart", true, &[TICK, (101_000, 30_000_000)], Some(11)),
            ("2 % apart", true, &[TICK, (102_000, 30_000_000)], None),
            ("a stopped clock", true, &[TICK, TICK, (0, 30_000_000)], None),
            ("stopped time stamps", true, &[TICK, TICK, (100_000, 0)], None),
            ("a sleep that reset the time stamps", true, &[TICK, TICK, (100_000, 30_000_000_u64.wrapping_neg())], None),
            ("two after a sleep", true, &[TICK, TICK, (9_000_000, 5), TICK, TICK], Some(11)),
        ];
        for (what, is_invariant, ticks, expected) in cases {
            let clock = opened(is_invariant);
            ticked(&clock, ticks.iter().copied());
            assert_eq!(clock.duration(|| 3_100), expected.map(Ticks), "{what}");
        }
    }

    #[test]
    fn a_session_does_not_take_over_the_rate_of_the_last() {
        let clock = opened(true);
        ticked(&clock, [(1, 300), (1, 300)]);
        assert_ne!(clock.duration(|| 300), None);
        clock.open(true, Ticks(0), 0);
        assert_eq!(clock.duration(|| 300), None);
    }

    #[test]
    fn no_duration_overflows() {
        let clock = opened(true);
        ticked(&clock, [(u64::MAX >> 33, 1); 2]);
        assert!(clock.duration(|| u64::MAX) >= Some(Ticks(u32::MAX.into())));
        ticked(&clock, [(u64::MAX, 1); 2]);
        assert_eq!(clock.duration(|| 1), None, "a rate that cannot be represented");
    }

    proptest! {
        /// By clocks of 32 kHz to 10 GHz, interrupts of up to a millisecond.
        #[test]
        fn a_duration_is_at_most_one_unit_too_long_and_never_too_short(
            clock_frequency in 32_768_u64..10_000_000_000,
            stamp_frequency in 500_000_000_u64..6_000_000_000,
            nanoseconds in 0_u64..1_000_000,
        ) {
            let clock = opened(true);
            // Ticks are a second apart, so that the measurement is exact.
            ticked(&clock, [(clock_frequency, stamp_frequency); 2]);
            let stamps = stamp_frequency * nanoseconds / 1_000_000_000;
            let exact = u128::from(clock_frequency) * u128::from(stamps) / u128::from(stamp_frequency);
            let Ticks(measured) = clock.duration(|| stamps).unwrap();
            prop_assert!(u128::from(measured) >= exact);
            prop_assert!(u128::from(measured) <= exact + 1);
        }
    }
}
