//! The score of an area.

use std::fmt::{self, Display, Formatter};

use super::results::Outcome;

/// Percentage of mutants that the tests must catch.
pub const WANTED: f64 = 95.0;

/// Numbers of mutants of an area.
#[derive(Debug, Clone, Default)]
pub struct Report {
    pub area: String,
    pub seed: u64,
    /// Mutants that the area has.
    pub all: usize,
    /// Mutants of the sample.
    pub sampled: usize,
    pub caught: usize,
    pub timeout: usize,
    pub unviable: usize,
    pub equivalent: usize,
    /// Names of the mutants that no test caught.
    pub survivors: Vec<String>,
}

impl Report {
    /// Counts a mutant of the sample.
    pub fn count(&mut self, name: &str, outcome: Outcome) {
        match outcome {
            Outcome::Caught => self.caught += 1,
            Outcome::Timeout => self.timeout += 1,
            Outcome::Unviable => self.unviable += 1,
            Outcome::Survived => self.survivors.push(name.to_owned()),
        }
    }

    /// Returns the mutants of the sample without an outcome.
    pub fn missing(&self) -> usize {
        let judged = self.caught + self.timeout + self.unviable + self.equivalent + self.survivors.len();
        self.sampled.saturating_sub(judged)
    }

    /// Returns the percentage of viable mutants, besides the equivalent ones, that the tests noticed. 100 if there are
    /// none.
    pub fn score(&self) -> f64 {
        let noticed = self.caught + self.timeout;
        match noticed + self.survivors.len() {
            0 => 100.0,
            viable => 100.0 * as_number(noticed) / as_number(viable),
        }
    }

    /// Returns whether all of the sample was judged and the score is high enough.
    pub fn is_good(&self) -> bool {
        self.missing() == 0 && self.score() >= WANTED
    }
}

fn as_number(count: usize) -> f64 {
    u32::try_from(count).unwrap_or(u32::MAX).into()
}

impl Display for Report {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        for name in &self.survivors {
            writeln!(formatter, "survived: {name}")?;
        }
        write!(
            formatter,
            "{}: {} mutants, {} in the sample of seed {}: {} caught, {} timeout, {} unviable, {} equivalent, {} \
             survived, {} not judged; score {:.1} %",
            self.area,
            self.all,
            self.sampled,
            self.seed,
            self.caught,
            self.timeout,
            self.unviable,
            self.equivalent,
            self.survivors.len(),
            self.missing(),
            self.score()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(caught: usize, survived: usize) -> Report {
        let mut report =
            Report { area: "a".into(), sampled: caught + survived + 3, equivalent: 1, ..Report::default() };
        for _ in 0..caught {
            report.count("", Outcome::Caught);
        }
        for _ in 0..survived {
            report.count("s", Outcome::Survived);
        }
        report.count("", Outcome::Unviable);
        report
    }

    #[test]
    fn the_score_leaves_out_what_is_unviable_or_equivalent() {
        let mut report = report(94, 5);
        report.count("", Outcome::Timeout);
        assert!((report.score() - 95.0).abs() < 1e-9);
        assert!(report.is_good());
        report.count("s", Outcome::Survived);
        assert!(!report.is_good());
    }

    #[test]
    fn a_sample_with_mutants_that_were_not_judged_is_not_good() {
        let report = report(10, 0);
        assert_eq!(report.missing(), 1);
        assert!((report.score() - 100.0).abs() < 1e-9);
        assert!(!report.is_good());
        assert!(report.to_string().contains("1 not judged"));
    }
}
