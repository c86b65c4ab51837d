//! Which of the calls to come fails.

/// Counts calls down to the one that is to fail.
#[derive(Debug, Default)]
pub struct Countdown(Option<u64>);

impl Countdown {
    /// Nothing fails.
    #[must_use]
    pub const fn none() -> Self {
        Self(None)
    }

    /// The n-th call from now fails, 1 being the next, and only that; none does with `None`.
    pub fn set(&mut self, nth: Option<u64>) {
        self.0 = nth.filter(|nth| *nth > 0);
    }

    /// A call: whether it fails.
    pub fn hits(&mut self) -> bool {
        let nth = self.0.take();
        self.0 = nth.filter(|nth| *nth > 1).map(|nth| nth - 1);
        nth == Some(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_that_was_asked_for_fails_and_no_other() {
        for (nth, fails) in [(None, None), (Some(0), None), (Some(1), Some(1)), (Some(3), Some(3))] {
            let mut countdown = Countdown::none();
            countdown.set(nth);
            let failed: Vec<u64> = (1..10).filter(|_| countdown.hits()).collect();
            assert_eq!(failed, Vec::from_iter(fails), "{nth:?}");
        }
    }
}
