//! Expressions of metrics: the grammar of Intel's metric files (`Formula`) and of Linux's (`MetricExpr`).
//!
//! A parser of our own, of the kind of Pratt's: the crates that evaluate expressions (exmex, fasteval, meval, evalexpr)
//! have no names with points, colons and escapes, evaluate both branches of an `if`, so that a division by zero in the
//! other one counts, report no position of an error, or return infinity and NaN. A test compares the results with
//! exmex.
//!
//! From the weakest to the strongest: `X if C else Y`; `or`, `|`; `and`, `&`; `<`, `<=`, `>`, `>=`, `==`, `!=`; `+`,
//! `-`; `*`, `/`, `%`; signs; `NAME[INDEX].NAME`. Functions are `min`, `max`, `d_ratio(A, B)`, `has_event(E)` and
//! `source_count(E)`. As in Linux, `|` and `&` are logical and weaker than comparisons. Unlike in Linux, `d_ratio` has
//! no value if `B` is 0.
//!
//! # References
//! Linux, tools/perf/util/expr.y and expr.l; intel/perfmon, scripts/create_perf_json.py.

mod evaluate;
mod lex;
mod parse;
mod product;

use thiserror::Error;

pub use evaluate::{Environment, Unavailable};
pub use product::Product;

/// Maximum number of nested parts of an expression. Intel's deepest have 15 parentheses.
pub const MAX_DEPTH: usize = 128;
/// Maximum length of an expression, in bytes. Intel's longest has 31,000.
pub const MAX_BYTES: usize = 1 << 17;

/// A parsed expression.
#[derive(Debug, Clone, PartialEq)]
pub struct Expression(Node);

impl Expression {
    /// Parses an expression.
    ///
    /// # Errors
    /// If the text is none; the error has the column.
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        parse::parse(text).map(Self)
    }

    /// Returns the value, always a finite number.
    ///
    /// # Errors
    /// If a value that is needed is missing, a divisor is 0, or a number becomes too large. Only the branch of an `if`
    /// that is taken needs values.
    pub fn evaluate(&self, environment: &dyn Environment) -> Result<f64, Unavailable> {
        evaluate::evaluate(&self.0, environment)
    }

    /// Returns the names in the expression in the order of their first appearance, each once.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        collect(&self.0, None, &mut names);
        names
    }

    /// Returns the names without those of branches that are not taken if only these names have values.
    #[must_use]
    pub fn names_needed(&self, known: &dyn Environment) -> Vec<&str> {
        let mut names = Vec::new();
        collect(&self.0, Some(known), &mut names);
        names
    }
}

/// Why a text is no expression.
#[derive(Debug, Clone, Error, PartialEq, Eq)]
#[error("column {column}: {cause}")]
pub struct ExpressionError {
    /// Position in characters, counted from 1.
    pub column: usize,
    /// What is wrong there.
    pub cause: SyntaxError,
}

/// What is wrong with an expression.
#[derive(Debug, Clone, Error, PartialEq, Eq)]
pub enum SyntaxError {
    /// A character that no expression has.
    #[error("unexpected character '{}'", .0.escape_default())]
    Character(char),
    /// A number that is none.
    #[error("\"{0}\" is no number")]
    Number(String),
    /// Something else where a value should be.
    #[error("expected a number, a name or '(', found {0}")]
    Operand(String),
    /// Something else where an operator should be.
    #[error("expected an operator, found {0}")]
    Operator(String),
    /// A certain token is missing.
    #[error("expected '{expected}' for the '{opening}' in column {column}, found {found}")]
    Unclosed {
        /// The token.
        expected: &'static str,
        /// The token that asks for it.
        opening: &'static str,
        /// Column of that token.
        column: usize,
        /// What is there instead.
        found: String,
    },
    /// A function that does not exist.
    #[error("no function is called {0}")]
    Function(String),
    /// A wrong number of arguments.
    #[error("{function} takes {expected}, not {found}")]
    Arguments {
        /// The function.
        function: &'static str,
        /// What it takes.
        expected: &'static str,
        /// How many there are.
        found: usize,
    },
    /// Too many nested parts.
    #[error("more than {MAX_DEPTH} nested parts")]
    Depth,
    /// Too long a text.
    #[error("longer than {MAX_BYTES} bytes")]
    Length,
}

/// A part of an expression, with the column where it matters.
#[derive(Debug, Clone, PartialEq)]
enum Node {
    Number(f64),
    Name(String),
    /// `name[index]` and what follows, such as `.cpus.count`.
    Index {
        name: Box<Node>,
        index: Box<Node>,
        rest: String,
        column: usize,
    },
    Negation(Box<Node>),
    Binary {
        operator: Operator,
        column: usize,
        sides: Box<[Node; 2]>,
    },
    Call {
        function: Function,
        column: usize,
        arguments: Vec<Node>,
    },
    If(Box<Choice>),
}

/// `then if condition else otherwise`.
#[derive(Debug, Clone, PartialEq)]
struct Choice {
    then: Node,
    condition: Node,
    otherwise: Node,
}

/// An operator between two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Or,
    And,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    Unequal,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

/// A function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Function {
    Min,
    Max,
    Ratio,
    HasEvent,
    SourceCount,
}

/// Adds the names of a node. With `known`, only those of the branches that its values leave.
fn collect<'a>(node: &'a Node, known: Option<&dyn Environment>, names: &mut Vec<&'a str>) {
    match node {
        Node::Number(_) => {}
        Node::Name(name) => {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        Node::Index { name, index, .. } => {
            collect(name, known, names);
            collect(index, known, names);
        }
        Node::Negation(node) => collect(node, known, names),
        Node::Binary { sides, .. } => sides.iter().for_each(|side| collect(side, known, names)),
        Node::Call { arguments, .. } => arguments.iter().for_each(|argument| collect(argument, known, names)),
        Node::If(choice) => {
            let Choice { then, condition, otherwise } = &**choice;
            match known.and_then(|known| evaluate::evaluate(condition, known).ok()) {
                Some(truth) => collect(if truth == 0.0 { otherwise } else { then }, known, names),
                None => [then, condition, otherwise].into_iter().for_each(|part| collect(part, known, names)),
            }
        }
    }
}
