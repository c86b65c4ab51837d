//! Benchmarks of which disturbed regions are repeated.

use std::hint::black_box;
use std::time::Duration;

use criterion::Bencher;

use crate::current;
use crate::measurement::Events;
use crate::shared::Inner;

/// Number of times that [`ExactBencher::iter_exact`] measures a region before it accepts a disturbed one.
pub const ATTEMPTS: usize = 20;

/// Regions shorter than this get twice the iterations. It is far below a time slice of Windows, so most regions are
/// undisturbed, and far above the time of a reading.
const SHORT: Duration = Duration::from_micros(500);
/// Regions longer than this get half the iterations.
const LONG: Duration = Duration::from_millis(2);

/// Benchmarks whose counts are exact even if a region is disturbed.
pub trait ExactBencher {
    /// Counts the events of a routine, as `Bencher::iter` does, in regions of about a millisecond. A disturbed region
    /// is measured again, so the routine is called more often than criterion knows.
    ///
    /// # Panics
    /// If this thread has several [`Events`] at the same time, or the counters cannot be read.
    fn iter_exact<O>(&mut self, routine: impl FnMut() -> O);
}

impl ExactBencher for Bencher<'_, Events> {
    #[expect(clippy::expect_used, reason = "criterion's benchmarks cannot return an error")]
    fn iter_exact<O>(&mut self, mut routine: impl FnMut() -> O) {
        let inner = current::get().expect("iter_exact needs exactly one `Events` in this thread");
        let mut slice = 1;
        self.iter_custom(|iterations| count(&inner, iterations, &mut slice, &mut routine));
    }
}

/// Counts a number of iterations in regions of `slice` iterations, which it adapts.
pub fn count<O>(inner: &Inner, iterations: u64, slice: &mut u64, routine: &mut impl FnMut() -> O) -> u64 {
    inner.set_iterations(iterations);
    let (mut done, mut sum, mut attempts) = (0, 0_u64, 0);
    while done < iterations {
        let number = (*slice).min(iterations - done);
        inner.begin();
        for _ in 0..number {
            black_box(routine());
        }
        let region = inner.end();
        if region.time > LONG || region.disturbance.is_some() {
            *slice = (number / 2).max(1);
        } else if region.time < SHORT && number == *slice {
            *slice = slice.saturating_mul(2);
        }
        attempts += 1;
        if region.disturbance.is_none() || attempts == ATTEMPTS {
            sum = sum.saturating_add(inner.accept(&region));
            done += number;
            attempts = 0;
        }
    }
    sum
}
