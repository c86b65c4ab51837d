//! Conditions: a comparison of the ratio of two events with a number, such as `IPC<0.5`.

use std::str::FromStr;

use thiserror::Error;

use crate::expression::{Expression, ExpressionError, Product};
use crate::metric::Metric;

/// Maximum number of metrics through which a metric of a condition may use another.
const MAX_DEPTH: u32 = 8;

/// A condition as the user wrote it.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    text: String,
    left: Expression,
    right: Expression,
    /// The left side is to be the greater one.
    is_above: bool,
}

/// The ratio of two events, and the limit below or above which it is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ratio {
    /// Names of the event that is divided, and of the one that divides it.
    pub events: [String; 2],
    /// Whether it is to be above the limit.
    pub is_above: bool,
    /// The limit, and what it is divided by.
    pub limit: [u32; 2],
}

/// Why a text is no condition.
#[derive(Debug, Clone, Error, PartialEq, Eq)]
pub enum ConditionError {
    /// It is no expression.
    #[error("{0}")]
    Syntax(#[from] ExpressionError),
    /// It has no comparison.
    #[error("a condition compares a ratio with < or >, such as IPC<0.5")]
    NoComparison,
    /// Something else than a ratio of two events is compared.
    #[error("\"{0}\" does not compare one event divided by another")]
    NoRatio(String),
    /// The limit is too small, too large or negative.
    #[error("\"{0}\": the limit must be from 0.000000001 to 4,000,000,000")]
    Limit(String),
}

impl FromStr for Condition {
    type Err = ConditionError;

    fn from_str(text: &str) -> Result<Self, ConditionError> {
        let comparison = Expression::parse(&with_escapes(text))?.comparison();
        let (left, right, is_above) = comparison.ok_or(ConditionError::NoComparison)?;
        let condition = Self { text: text.trim().to_owned(), left, right, is_above };
        // What is no product with the names as events is none with them as metrics.
        condition.products().ok_or_else(|| ConditionError::NoRatio(condition.text.clone()))?;
        Ok(condition)
    }
}

impl Condition {
    /// Returns the text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    fn products(&self) -> Option<[Product; 2]> {
        Some([self.left.product()?, self.right.product()?])
    }

    /// Returns the ratio of events, for names that may be these metrics.
    ///
    /// # Errors
    /// If two events with a limit are not what is left.
    pub fn ratio(&self, metrics: &[Metric]) -> Result<Ratio, ConditionError> {
        let no_ratio = || ConditionError::NoRatio(self.text.clone());
        let [left, right] = self.products().ok_or_else(no_ratio)?.map(|side| of_events(&side, metrics, MAX_DEPTH));
        let all = left.and_then(|left| Some(left.times(right?.inverse()))).ok_or_else(no_ratio)?;
        let (Ok([above]), Ok([below])) = (<[String; 1]>::try_from(all.above), <[String; 1]>::try_from(all.below))
        else {
            return Err(no_ratio());
        };
        let limit = fraction(1.0 / all.factor).ok_or_else(|| ConditionError::Limit(self.text.clone()))?;
        Ok(Ratio { events: [above, below], is_above: self.is_above, limit })
    }
}

/// Returns the text with hyphens inside of names, such as `cache-misses`, as expressions have them.
fn with_escapes(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    let mut before = ' ';
    while let Some(character) = characters.next() {
        let is_inside = before.is_ascii_alphanumeric() && characters.peek().is_some_and(char::is_ascii_alphabetic);
        if character == '-' && is_inside {
            escaped.push('\\');
        }
        escaped.push(character);
        before = character;
    }
    escaped
}

/// Returns a product with the events of metrics instead of these. `None` if a metric is no product.
fn of_events(product: &Product, metrics: &[Metric], depth: u32) -> Option<Product> {
    let mut found = Product::number(product.factor);
    let event = |name: &String| Product { above: vec![name.clone()], ..Product::number(1.0) };
    let of_name = |name: &String| match metrics.iter().find(|metric| metric.name.eq_ignore_ascii_case(name)) {
        Some(metric) => of_events(&metric.product()?, metrics, depth.checked_sub(1)?),
        None => Some(event(name)),
    };
    for name in &product.above {
        found = found.times(of_name(name)?);
    }
    for name in &product.below {
        found = found.times(of_name(name)?.inverse());
    }
    Some(found)
}

/// Returns a number as a fraction with a power of ten, exactly if it has few enough digits.
fn fraction(number: f64) -> Option<[u32; 2]> {
    let mut found = None;
    for exponent in 0..=9 {
        let divisor = 10_u32.pow(exponent);
        let scaled = number * f64::from(divisor);
        let nearest = scaled.round();
        if !(1.0..=f64::from(u32::MAX)).contains(&nearest) {
            continue;
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is whole, and in the range")]
        let limit = nearest as u32;
        found = Some([limit, divisor]);
        if (scaled - nearest).abs() <= scaled * 1e-12 {
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(text: &str, metrics: &[Metric]) -> Result<Ratio, ConditionError> {
        text.parse::<Condition>()?.ratio(metrics)
    }

    #[test]
    fn a_comparison_of_two_events_is_a_ratio_and_a_limit() {
        for (text, events, is_above, limit) in [
            ("instructions/cycles<0.5", ["instructions", "cycles"], false, [5, 10]),
            (" instructions / cycles > 2 ", ["instructions", "cycles"], true, [2, 1]),
            ("cache-misses/instructions>0.01", ["cache-misses", "instructions"], true, [1, 100]),
            ("1000*L1-dcache-load-misses/instructions>5", ["L1-dcache-load-misses", "instructions"], true, [5, 1_000]),
            ("instructions<0.5*cycles", ["instructions", "cycles"], false, [5, 10]),
            ("0.5>instructions/cycles", ["cycles", "instructions"], true, [2, 1]),
            ("d_ratio(A.B, C_D)<3e-9", ["A.B", "C_D"], false, [3, 1_000_000_000]),
            ("A/B<0.3333333333333", ["A", "B"], false, [333_333_333, 1_000_000_000]),
            ("A/B<4000000000", ["A", "B"], false, [4_000_000_000, 1]),
        ] {
            let wanted = Ratio { events: events.map(str::to_owned), is_above, limit };
            assert_eq!(ratio(text, &[]), Ok(wanted), "{text}");
        }
    }

    #[test]
    fn a_metric_stands_for_its_ratio_in_its_unit() {
        let metrics = crate::metric::builtin(HASWELL, None, false);
        for (text, events, is_above, limit) in [
            ("IPC<0.5", ["instructions", "cycles"], false, [5, 10]),
            ("cpi>2", ["cycles", "instructions"], true, [2, 1]),
            ("Branch_Miss_Ratio>5", ["branch-misses", "branches"], true, [5, 100]),
            ("Cache_MPKI>10", ["cache-misses", "instructions"], true, [1, 100]),
            ("1/IPC>2", ["cycles", "instructions"], true, [2, 1]),
        ] {
            let wanted = Ratio { events: events.map(str::to_owned), is_above, limit };
            assert_eq!(ratio(text, &metrics), Ok(wanted), "{text}");
        }
        for text in ["Frequency<1", "IPC*IPC<1", "IPC*CPI<2"] {
            assert_eq!(ratio(text, &metrics), Err(ConditionError::NoRatio(text.to_owned())), "{text}");
        }
    }

    #[test]
    fn what_is_no_condition_is_refused_with_the_reason() {
        let syntax = |text| matches!(ratio(text, &[]), Err(ConditionError::Syntax(_)));
        assert!(["", "IPC<", "A/B<0.5.1", "A B<1", "cpu/event=0xC0/<1"].into_iter().all(syntax));
        for text in ["IPC", "A/B<=1", "A/B==1", "A/B<1 and C/D<1", "1 if A else 2"] {
            assert_eq!(ratio(text, &[]), Err(ConditionError::NoComparison), "{text}");
        }
        for text in ["A<1", "A/B<C", "A/B+C<1", "A-B<1", "min(A, B)<1", "-A/B<1", "1<2", "A*B<1"] {
            assert_eq!(ratio(text, &[]), Err(ConditionError::NoRatio(text.to_owned())), "{text}");
        }
        for text in ["A/B<0", "A/B>1e-10", "A/B<5e9", "0*A/B<1"] {
            assert_eq!(ratio(text, &[]), Err(ConditionError::Limit(text.to_owned())), "{text}");
        }
    }

    const HASWELL: crate::Identity =
        crate::Identity { vendor: crate::Vendor::Intel, family: 6, model: 0x3C, stepping: 3 };
}
