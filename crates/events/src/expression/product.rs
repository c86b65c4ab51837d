//! Expressions that are products, and comparisons.

use super::{Expression, Function, Node, Operator};

/// A product of a number and names, of which some divide.
#[derive(Debug, Clone, PartialEq)]
pub struct Product {
    /// The number.
    pub factor: f64,
    /// The names that are multiplied.
    pub above: Vec<String>,
    /// The names that divide.
    pub below: Vec<String>,
}

impl Product {
    /// A product without names.
    #[must_use]
    pub const fn number(factor: f64) -> Self {
        Self { factor, above: Vec::new(), below: Vec::new() }
    }

    /// Returns the product of both.
    #[must_use]
    pub fn times(mut self, other: Self) -> Self {
        self.above.extend(other.above);
        self.below.extend(other.below);
        Self { factor: self.factor * other.factor, ..self }
    }

    /// Returns one divided by the product.
    #[must_use]
    pub fn inverse(self) -> Self {
        Self { factor: 1.0 / self.factor, above: self.below, below: self.above }
    }
}

impl Expression {
    /// Returns the product that the expression is; `None` if it is none.
    #[must_use]
    pub fn product(&self) -> Option<Product> {
        product(&self.0)
    }

    /// Splits `A < B` or `A > B`, and returns whether A is to be the greater one; `None` for another expression.
    #[must_use]
    pub fn comparison(self) -> Option<(Self, Self, bool)> {
        let Node::Binary { operator: operator @ (Operator::Less | Operator::Greater), sides, .. } = self.0 else {
            return None;
        };
        let [left, right] = *sides;
        Some((Self(left), Self(right), operator == Operator::Greater))
    }
}

fn product(node: &Node) -> Option<Product> {
    match node {
        Node::Number(number) => Some(Product::number(*number)),
        Node::Name(name) => Some(Product { above: vec![name.clone()], ..Product::number(1.0) }),
        Node::Binary { operator: Operator::Multiply, sides, .. } => {
            let [left, right] = &**sides;
            Some(product(left)?.times(product(right)?))
        }
        Node::Binary { operator: Operator::Divide, sides, .. } => {
            let [left, right] = &**sides;
            Some(product(left)?.times(product(right)?.inverse()))
        }
        Node::Call { function: Function::Ratio, arguments, .. } => {
            let [left, right] = arguments.as_slice() else { return None };
            Some(product(left)?.times(product(right)?.inverse()))
        }
        Node::Negation(_) | Node::Binary { .. } | Node::Call { .. } | Node::Index { .. } | Node::If(_) => None,
    }
}
