//! Metrics: what the counts of several events say together.

mod builtin;
mod plan;
mod read;
mod set;

use thiserror::Error;

use crate::expression::{Environment as _, Expression, ExpressionError, Product, Unavailable};

pub use builtin::builtin;
pub use plan::groups;
pub use set::{MetricSet, Values};

/// A metric.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    /// Name.
    pub name: String,
    /// Groups, such as `TopdownL1`.
    pub groups: Vec<String>,
    /// Unit of the scaled value, such as `%`; may be empty.
    pub unit: String,
    /// What the value of the expression is multiplied by for display.
    pub scale: f64,
    /// Description in a sentence; may be empty.
    pub brief: String,
    /// Name of the PMU of the cores that it is for, such as `cpu_core`; empty for all.
    pub cores: String,
    /// Text of the expression.
    pub formula: String,
    /// The expression.
    expression: Expression,
    /// What the names of the expression stand for, if not for themselves.
    aliases: Vec<(String, Alias)>,
}

/// What a name of an expression stands for.
#[derive(Debug, Clone, PartialEq)]
enum Alias {
    /// An event, by its name.
    Event(String),
    /// A constant: a number, a name, or an expression of such.
    Constant(Expression),
}

impl Metric {
    /// Returns the names that the value depends on, each once: events, constants and other metrics.
    #[must_use]
    pub fn inputs(&self) -> Vec<&str> {
        let mut inputs = Vec::new();
        for name in self.expression.names() {
            let names = match self.alias(name) {
                None => vec![name],
                Some(Alias::Event(event)) => vec![event.as_str()],
                Some(Alias::Constant(expression)) => expression.names(),
            };
            for name in names {
                if !inputs.contains(&name) {
                    inputs.push(name);
                }
            }
        }
        inputs
    }

    /// Returns the names of [`inputs`](Self::inputs) that have no value among these constants and are no constants by
    /// their form, without those of branches that the constants rule out.
    #[must_use]
    pub fn events(&self, constants: &Values) -> Vec<&str> {
        let needed = self.expression.names_needed(constants);
        let mut inputs = self.inputs();
        inputs.retain(|name| {
            let is_needed = needed.iter().any(|needed| match self.alias(needed) {
                None => needed == name,
                Some(Alias::Event(event)) => event == name,
                Some(Alias::Constant(_)) => false,
            });
            is_needed && !name.starts_with(['#', '$']) && constants.value(name).is_err()
        });
        inputs
    }

    /// Returns the value in its unit as a product of events and metrics; `None` if it is none.
    #[must_use]
    pub fn product(&self) -> Option<Product> {
        let Product { factor, mut above, mut below } = self.expression.product()?;
        for name in above.iter_mut().chain(&mut below) {
            match self.alias(name) {
                None => {}
                Some(Alias::Event(event)) => name.clone_from(event),
                Some(Alias::Constant(_)) => return None,
            }
        }
        Some(Product { factor: factor * self.scale, above, below })
    }

    fn alias(&self, name: &str) -> Option<&Alias> {
        self.aliases.iter().find(|(alias, _)| alias.eq_ignore_ascii_case(name)).map(|(_, alias)| alias)
    }
}

/// Why an object of a file is no metric, or metrics cannot be used.
#[derive(Debug, Clone, Error, PartialEq, Eq)]
pub enum MetricError {
    /// A key has another type of value.
    #[error("{key} is no {expected}")]
    Type {
        /// The key.
        key: &'static str,
        /// The type.
        expected: &'static str,
    },
    /// The name is empty, too long or has control characters.
    #[error("MetricName is \"{0}\"")]
    Name(String),
    /// It has no expression.
    #[error("it has neither Formula nor MetricExpr")]
    NoExpression,
    /// An expression is malformed.
    #[error("{key}, {cause}")]
    Expression {
        /// The key.
        key: String,
        /// Where and why.
        cause: ExpressionError,
    },
    /// Two events or constants have the same alias.
    #[error("the alias {0} is there twice")]
    TwoAliases(String),
    /// The unit does not begin with a number that can be used.
    #[error("ScaleUnit is \"{0}\"")]
    Scale(String),
    /// Metrics use each other in a circle, or too deeply.
    #[error("{0}")]
    Recursion(Unavailable),
}
