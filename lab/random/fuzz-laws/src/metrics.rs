//! Expressions, and metrics of the makers' files.

use std::cell::RefCell;
use std::collections::BTreeSet;

use events::expression::{Environment, Expression, Unavailable};
use events::metric::{Metric, MetricSet, Values};
use serde_json::Value;

/// Values of all names, which note the names that they are asked for.
struct Noted(RefCell<BTreeSet<String>>);

impl Environment for Noted {
    fn value(&self, name: &str) -> Result<f64, Unavailable> {
        self.0.borrow_mut().insert(name.to_owned());
        let sum: u32 = name.bytes().map(u32::from).sum();
        match sum % 5 {
            0 => Err(Unavailable::Missing(name.to_owned())),
            1 => Ok(0.0),
            2 => Ok(f64::MAX),
            _ => Ok(f64::from(sum)),
        }
    }
}

/// The value of an expression is finite, or there is a reason why it has none. Only names that the expression lists
/// are needed, and those that it needs are listed. An error names a column of the text.
pub fn expression(bytes: &[u8]) {
    let text = crate::text(bytes);
    let expression = match Expression::parse(text) {
        Ok(expression) => expression,
        Err(error) => {
            assert!((1..=text.chars().count() + 1).contains(&error.column), "{error}, in \"{text}\"");
            return;
        }
    };
    let names: BTreeSet<String> = expression.names().into_iter().map(str::to_owned).collect();
    let noted = Noted(RefCell::default());
    match expression.evaluate(&noted) {
        Ok(value) => assert!(value.is_finite(), "{value}"),
        Err(reason) => assert!(!reason.to_string().is_empty()),
    }
    for asked in noted.0.into_inner() {
        // Of `x[2].y`, the name that is listed is `x`.
        let is_of = |name: &String| asked.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with('['));
        assert!(names.contains(&asked) || names.iter().any(is_of), "{asked} of {names:?}");
    }
    let needed: BTreeSet<String> =
        expression.names_needed(&Noted(RefCell::default())).into_iter().map(str::to_owned).collect();
    assert!(needed.is_subset(&names), "{needed:?} of {names:?}");
}

/// Metrics that are checked have no circle: each value is finite, or there is another reason why it has none.
pub fn metrics(bytes: &[u8]) {
    let Ok(Value::Array(values)) = serde_json::from_slice::<Value>(bytes) else { return };
    let metrics: Vec<Metric> = values.iter().filter_map(|value| Metric::parse(value).ok()).collect();
    let mut known = Values::default();
    for (number, name) in metrics.iter().flat_map(Metric::inputs).enumerate() {
        match number % 3 {
            0 => known.set(name, 0.0),
            1 => known.set(name, 7.5),
            _ => known.set_unavailable(name, "a test"),
        }
    }
    let set = MetricSet::new(metrics);
    let is_checked = set.check().is_ok();
    for (metric, value) in set.metrics().iter().zip(set.evaluate(&known)) {
        match value {
            Ok(value) => assert!(value.is_finite(), "{}: {value}", metric.name),
            Err(reason) => {
                assert!(!is_checked || !is_circle(&reason), "{}: {reason}, and it was checked", metric.name);
            }
        }
        for event in set.events(metric, &known) {
            assert!(!event.is_empty());
        }
    }
}

/// Returns whether a value is missing because metrics use each other in a circle or through too many others.
fn is_circle(reason: &Unavailable) -> bool {
    match reason {
        Unavailable::Recursion(_) | Unavailable::Depth(_) => true,
        Unavailable::Metric { cause, .. } => is_circle(cause),
        _ => false,
    }
}
