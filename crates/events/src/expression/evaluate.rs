//! The value of an expression.

use thiserror::Error;

use super::{Function, Node, Operator};

/// The values of names.
pub trait Environment {
    /// Returns the value of an event, a constant or a metric.
    ///
    /// # Errors
    /// If it has none.
    fn value(&self, name: &str) -> Result<f64, Unavailable>;

    /// Returns how many counts make up the value of an event: 0 if it was not counted.
    fn sources(&self, name: &str) -> u32 {
        self.value(name).is_ok().into()
    }
}

/// Why an expression has no value.
#[derive(Debug, Clone, Error, PartialEq, Eq)]
pub enum Unavailable {
    /// An event or a constant has no value.
    #[error("{0} has no value")]
    Missing(String),
    /// An event was to be counted, and was not.
    #[error("{name} was not counted: {reason}")]
    NotCounted {
        /// The event.
        name: String,
        /// Why it was not.
        reason: String,
    },
    /// A divisor is 0.
    #[error("division by zero in column {0}")]
    Division(usize),
    /// The result is too large for a number.
    #[error("the result in column {0} is too large")]
    Overflow(usize),
    /// An index is no whole number, or negative.
    #[error("the index in column {0} is no whole number")]
    Index(usize),
    /// A metric that is used has no value.
    #[error("{name}: {cause}")]
    Metric {
        /// The metric.
        name: String,
        /// Why.
        cause: Box<Self>,
    },
    /// Metrics use each other in a circle.
    #[error("recursion: {}", .0.join(" -> "))]
    Recursion(Vec<String>),
    /// Metrics use each other through too many others.
    #[error("{0} uses metrics through too many others")]
    Depth(String),
}

/// Returns the value of a node.
pub fn evaluate(node: &Node, environment: &dyn Environment) -> Result<f64, Unavailable> {
    match node {
        Node::Number(number) => Ok(*number),
        Node::Name(name) => finite(environment.value(name)?).ok_or_else(|| Unavailable::Missing(name.clone())),
        Node::Index { .. } => {
            let name = path(node, environment)?;
            finite(environment.value(&name)?).ok_or(Unavailable::Missing(name))
        }
        Node::Negation(node) => evaluate(node, environment).map(|value| -value),
        Node::Binary { operator, column, sides } => {
            let [left, right] = &**sides;
            let left = evaluate(left, environment)?;
            match operator {
                Operator::Or if left != 0.0 => return Ok(1.0),
                Operator::And if left == 0.0 => return Ok(0.0),
                _ => {}
            }
            binary(*operator, left, evaluate(right, environment)?, *column)
        }
        Node::Call { function, column, arguments } => call(*function, arguments, *column, environment),
        Node::If(choice) => {
            let is_true = evaluate(&choice.condition, environment)? != 0.0;
            evaluate(if is_true { &choice.then } else { &choice.otherwise }, environment)
        }
    }
}

fn finite(value: f64) -> Option<f64> {
    Some(value).filter(|value| value.is_finite())
}

/// Returns the text of a name with its indexes, such as `system.sockets[0].cpus.count`.
fn path(node: &Node, environment: &dyn Environment) -> Result<String, Unavailable> {
    match node {
        Node::Index { name, index, rest, column } => {
            let index = evaluate(index, environment)?;
            if index < 0.0 || index.fract() != 0.0 || index > f64::from(u32::MAX) {
                return Err(Unavailable::Index(*column));
            }
            Ok(format!("{}[{index}]{rest}", path(name, environment)?))
        }
        Node::Name(name) => Ok(name.clone()),
        _ => Ok(String::new()),
    }
}

#[expect(clippy::float_cmp, reason = "the comparison that the expression asks for")]
fn binary(operator: Operator, left: f64, right: f64, column: usize) -> Result<f64, Unavailable> {
    let truth = |is_true: bool| f64::from(u8::from(is_true));
    if right == 0.0 && matches!(operator, Operator::Divide | Operator::Remainder) {
        return Err(Unavailable::Division(column));
    }
    let value = match operator {
        Operator::Or | Operator::And => truth(right != 0.0),
        Operator::Less => truth(left < right),
        Operator::LessOrEqual => truth(left <= right),
        Operator::Greater => truth(left > right),
        Operator::GreaterOrEqual => truth(left >= right),
        Operator::Equal => truth(left == right),
        Operator::Unequal => truth(left != right),
        Operator::Add => left + right,
        Operator::Subtract => left - right,
        Operator::Multiply => left * right,
        Operator::Divide => left / right,
        Operator::Remainder => left % right,
    };
    finite(value).ok_or(Unavailable::Overflow(column))
}

fn call(
    function: Function,
    arguments: &[Node],
    column: usize,
    environment: &dyn Environment,
) -> Result<f64, Unavailable> {
    if let (Function::HasEvent | Function::SourceCount, [Node::Name(name)]) = (function, arguments) {
        let sources = f64::from(environment.sources(name));
        return Ok(if function == Function::HasEvent { sources.min(1.0) } else { sources });
    }
    let values: Vec<f64> = arguments.iter().map(|one| evaluate(one, environment)).collect::<Result<_, _>>()?;
    match (function, values.as_slice()) {
        (Function::Ratio, [left, right]) => binary(Operator::Divide, *left, *right, column),
        (Function::Max, _) => Ok(values.into_iter().fold(f64::MIN, f64::max)),
        (_, _) => Ok(values.into_iter().fold(f64::MAX, f64::min)),
    }
}
