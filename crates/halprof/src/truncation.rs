//! Counts of Windows that may lack high bits, and the proof that they do not.
//!
//! Windows adds up, for each thread, what a counter counted between a context switch to the thread and the next one
//! from it. It may compute this difference in 32 bits; nothing documents the width. It also computes it from raw
//! counters, which wrap at their own width. In both cases a difference can lack a multiple of the modulus, 2^32 or
//! 2^width, and never has too much. So, for the events T of a region and the difference D of the two values that
//! Windows reported at its ends:
//!
//! - T and D are congruent, whatever happened between, even if a slice began long before the region;
//! - D <= T.
//!
//! With an upper limit U of T there is only a finite number of candidates, and with U < D + modulus only one. U comes
//! from three sources ([`Limits`]), and the smallest counts.

/// Largest number of events that one counter counts in a cycle of the core.
///
/// Counters of instructions, operations and slots add at most what a core retires or issues: 16 on the widest
/// (Skymont), 24 with fused pairs (Lion Cove). A merged pair of AMD's counters adds the floating-point operations of a
/// cycle, 96 on Zen 5 (two multiply-adds and two additions of 16 single-precision elements each).
const EVENTS_PER_CORE_CYCLE: u64 = 128;

/// Largest ratio of the frequency of a core to that of its time-stamp counter. The widest between base and turbo
/// frequency of a shipped part is below 5 (Intel's low-power parts with 1.0 to 1.1 GHz and 4.7 GHz).
const CORE_CYCLES_PER_TSC_CYCLE: u64 = 8;

/// Largest number of events that one counter counts in a cycle of the time-stamp counter, in which Windows counts the
/// time of a thread.
pub(crate) const EVENTS_PER_TSC_CYCLE: u64 = EVENTS_PER_CORE_CYCLE * CORE_CYCLES_PER_TSC_CYCLE;

/// Cycles that Windows may charge elsewhere although the thread executed in them, at each reading and each context
/// switch: between the reading of the time-stamp counter and that of a counter. In user mode it executes nothing there.
const UNCHARGED_CYCLES: u64 = 1 << 16;

/// Largest number of events between the readings of Windows and those of the driver at both ends of a region, while no
/// other thread runs: a few thousand instructions, in which a cache miss can cost hundreds of cycles each.
const MOST_BETWEEN_READINGS: u128 = 1 << 20;

/// Bits that Windows keeps of a difference if nothing else is known.
const TRUNCATED_BITS: u32 = 32;

/// The modulus of the values that Windows reports: a power of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Modulus(u128);

impl Modulus {
    /// Returns the modulus for counters of `width` bits, if Windows is known to keep 64 bits or not.
    pub(crate) fn new(keeps_64_bits: bool, width: u32) -> Self {
        // A width that the driver does not know, or that is too small to be true, proves nothing.
        let bits = if keeps_64_bits { width.clamp(TRUNCATED_BITS, u64::BITS) } else { TRUNCATED_BITS };
        Self(1 << bits)
    }
}

/// What limits the number of events of a region from above.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Limits {
    /// Cycles that Windows charged to the thread, and the number of context switches in them.
    pub(crate) cycles: Option<(u64, u32)>,
    /// What the driver counted in a larger region: on the CPU of the thread if it never left it, or on all CPUs.
    pub(crate) counted: Option<u64>,
    /// What the driver counted in user mode on the CPU while nothing but this thread ran there. The excess are the few
    /// instructions between the readings of the driver and those of Windows.
    pub(crate) alone: Option<u64>,
}

impl Limits {
    fn upper(&self) -> Option<u64> {
        let by_cycles = self.cycles.map(|(cycles, switches)| {
            let uncharged = UNCHARGED_CYCLES.saturating_mul(u64::from(switches).saturating_add(2));
            cycles.saturating_add(uncharged).saturating_mul(EVENTS_PER_TSC_CYCLE)
        });
        [by_cycles, self.counted, self.alone].into_iter().flatten().min()
    }
}

/// Why the number of events of a region is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unproven {
    /// More than one number is possible.
    Ambiguous,
    /// No number is possible: Windows and the driver contradict each other.
    Contradiction,
}

/// Returns the number of events of a region, given the two values that Windows reported at its ends.
///
/// # Errors
/// If more than one number is possible, or none.
pub(crate) fn events(begin: u64, end: u64, modulus: Modulus, limits: &Limits) -> Result<u64, Unproven> {
    let Modulus(modulus) = modulus;
    let reported = i128::from(end) - i128::from(begin);
    // The smallest number of events that can have led to the report.
    let least = u128::try_from(reported).unwrap_or_else(|_| reported.rem_euclid(modulus.cast_signed()).cast_unsigned());
    let upper = u128::from(limits.upper().ok_or(Unproven::Ambiguous)?);
    let candidate = if let Some(alone) = limits.alone.map(u128::from) {
        let excess = alone.checked_sub(least).ok_or(Unproven::Contradiction)? % modulus;
        if excess > MOST_BETWEEN_READINGS {
            return Err(Unproven::Contradiction);
        }
        alone - excess
    } else if least + modulus > upper {
        least
    } else {
        return Err(Unproven::Ambiguous);
    };
    let events = u64::try_from(candidate).map_err(|_| Unproven::Contradiction)?;
    if candidate > upper { Err(Unproven::Contradiction) } else { Ok(events) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TWO_32: u64 = 1 << 32;
    const NONE: Limits = Limits { cycles: None, counted: None, alone: None };
    const AMBIGUOUS: Result<u64, Unproven> = Err(Unproven::Ambiguous);
    const CONTRADICTION: Result<u64, Unproven> = Err(Unproven::Contradiction);

    fn truncated() -> Modulus {
        Modulus::new(false, 48)
    }

    #[test]
    fn without_a_limit_nothing_is_proven() {
        assert_eq!(events(5, 5, truncated(), &NONE), AMBIGUOUS);
    }

    #[test]
    fn a_limit_below_the_modulus_proves_the_difference() {
        let limits = Limits { counted: Some(TWO_32 - 1), ..NONE };
        for (begin, end, wanted) in [
            (10, 10, Ok(0)),
            (10, 15, Ok(5)),
            (0, TWO_32 - 1, Ok(TWO_32 - 1)),
            // The slice began before the region and was truncated in it.
            (TWO_32 - 1, 4, Ok(5)),
            (7 * TWO_32 + 9, 7 * TWO_32 + 8, Ok(TWO_32 - 1)),
            // More than is possible: the evidence is contradictory.
            (0, TWO_32, CONTRADICTION),
        ] {
            assert_eq!(events(begin, end, truncated(), &limits), wanted, "{begin} {end}");
        }
    }

    #[test]
    fn a_limit_close_to_the_difference_proves_it() {
        let with = |counted| Limits { counted: Some(counted), ..NONE };
        let reported = 10 * TWO_32;
        assert_eq!(events(0, reported, truncated(), &with(11 * TWO_32 - 1)), Ok(reported));
        assert_eq!(events(0, reported, truncated(), &with(11 * TWO_32)), AMBIGUOUS);
        assert_eq!(events(0, 5, truncated(), &with(TWO_32 + 5)), AMBIGUOUS);
    }

    #[test]
    fn the_count_of_a_cpu_that_the_thread_had_alone_restores_the_missing_bits() {
        let alone = |counted| Limits { alone: Some(counted), ..NONE };
        for (events_of_thread, excess) in [(0, 0), (5, 100), (TWO_32 - 1, 0), (TWO_32, 900), (37 * TWO_32 + 1, 1 << 20)]
        {
            let reported = events_of_thread % TWO_32;
            assert_eq!(events(0, reported, truncated(), &alone(events_of_thread + excess)), Ok(events_of_thread));
        }
        assert_eq!(events(0, 6, truncated(), &alone(5)), CONTRADICTION, "less than was reported");
        assert_eq!(events(0, 0, truncated(), &alone(1 << 21)), CONTRADICTION, "Windows did not count at all");
    }

    #[test]
    fn the_cycle_time_limits_the_events_of_short_regions() {
        let cycles = |cycles, switches| Limits { cycles: Some((cycles, switches)), ..NONE };
        let most = TWO_32 / EVENTS_PER_TSC_CYCLE;
        assert_eq!(events(0, 1_000, truncated(), &cycles(most / 2, 3)), Ok(1_000));
        assert_eq!(events(0, 1_000, truncated(), &cycles(most, 0)), AMBIGUOUS);
        assert_eq!(events(0, 1_000, truncated(), &cycles(10, u32::MAX)), AMBIGUOUS, "switches are not free");
        assert_eq!(events(0, 1_000, Modulus::new(true, 48), &cycles(most * 1_000, 100)), Ok(1_000));
    }

    #[test]
    fn the_modulus_is_the_width_of_the_counters_if_windows_keeps_64_bits() {
        for (keeps, width, bits) in [(false, 48, 32), (true, 48, 48), (true, 40, 40), (true, 0, 32), (true, 200, 64)] {
            assert_eq!(Modulus::new(keeps, width), Modulus(1 << bits), "{keeps} {width}");
        }
    }

    /// A thread as Windows may account for it: what it adds up is cut to `bits` in each slice.
    fn reported(bits: u32, slices: &[u64]) -> u64 {
        let cut = |events: u64| if bits == 64 { events } else { events & ((1 << bits) - 1) };
        slices.iter().fold(0, |sum: u64, slice| sum.wrapping_add(cut(*slice)))
    }

    proptest! {
        /// Whatever the slices and the limits are, the answer is the truth or none.
        #[test]
        fn no_answer_is_wrong(
            bits in prop_oneof![Just(32), Just(48), Just(64)],
            before in prop::collection::vec(0..(1_u64 << 34), 1..4),
            mut inside in prop::collection::vec(0..(1_u64 << 34), 1..4),
            excess in prop_oneof![0..1_000_u64, 0..(1_u64 << 36)],
            is_one_slice: bool,
        ) {
            if is_one_slice {
                inside.truncate(1);
            }
            let truth: u64 = inside.iter().sum();
            let begin = reported(bits, &before);
            // The first slice of the region began before it.
            let mut all = before.clone();
            *all.last_mut().unwrap() += inside[0];
            all.extend(&inside[1..]);
            let end = reported(bits, &all);
            let (counted, alone) = (truth + excess, (inside.len() == 1 && excess < 1_000).then_some(truth + excess));
            let limits = Limits { cycles: None, counted: Some(counted), alone };
            let answer = events(begin, end, Modulus::new(bits != 32, 48), &limits);
            prop_assert!(answer.is_err() || answer == Ok(truth), "{answer:?} is not {truth}");
            if alone.is_some() || counted < TWO_32 {
                prop_assert_eq!(answer, Ok(truth));
            }
        }
    }
}
