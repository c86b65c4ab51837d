//! Formulas of Intel's metric files have the values that the crate exmex computes.
#![cfg(test)]

use std::collections::HashMap;

use events::expression::{Environment, Expression, Unavailable};
use exmex::{BinOp, Express as _, FlatEx, MakeOperators, Operator};

const FORMULAS: &str = include_str!("formulas/perfmon.tsv");

/// The operators of the formulas, in the strengths of Python, in which Intel evaluates them.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Operators;

impl MakeOperators<f64> for Operators {
    fn make<'a>() -> Vec<Operator<'a, f64>> {
        // Exmex has no operator of three values: a value that is not taken is NaN until `else` replaces it.
        let binary = |apply, prio| BinOp { apply, prio, is_commutative: false };
        vec![
            Operator::make_bin("else", binary(|left: f64, right| if left.is_nan() { right } else { left }, 0)),
            Operator::make_bin("if", binary(|left, right| if right == 0.0 { f64::NAN } else { left }, 1)),
            Operator::make_bin("<", binary(|left, right| f64::from(u8::from(left < right)), 2)),
            Operator::make_bin(">", binary(|left, right| f64::from(u8::from(left > right)), 2)),
            Operator::make_bin("+", binary(|left, right| left + right, 3)),
            Operator::make_bin_unary("-", binary(|left, right| left - right, 3), |value: f64| -value),
            Operator::make_bin("*", binary(|left, right| left * right, 4)),
            Operator::make_bin("/", binary(|left, right| left / right, 4)),
            Operator::make_bin("min", binary(f64::min, 5)),
            Operator::make_bin("max", binary(f64::max, 5)),
        ]
    }
}

type Peer = FlatEx<f64, Operators>;

/// Parses a formula. Exmex has no calls in calls, so that `max(A, B)` becomes `((A) max (B))`, and no exponents.
fn peer(formula: &str) -> Peer {
    let mut text = String::new();
    // The functions of the open parentheses; none for others.
    let mut open: Vec<&str> = Vec::new();
    for word in format!("{formula} ").split_inclusive(['(', ')', ',', ' ']) {
        let (name, sign) = word.split_at(word.len() - 1);
        match sign {
            "(" if matches!(name, "min" | "max") => {
                open.push(name);
                text.push_str("((");
            }
            "(" => {
                open.push("");
                text += word;
            }
            ")" => {
                let is_call = !open.pop().unwrap().is_empty();
                text += name;
                text += if is_call { "))" } else { ")" };
            }
            "," => text.extend([name, ") ", open.last().unwrap(), " ("]),
            _ => match name.parse::<f64>() {
                Ok(number) => text.extend([number.to_string().as_str(), " "]),
                Err(_) => text += word,
            },
        }
    }
    Peer::parse(&text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

struct Known(HashMap<String, f64>);

impl Environment for Known {
    fn value(&self, name: &str) -> Result<f64, Unavailable> {
        self.0.get(name).copied().ok_or_else(|| Unavailable::Missing(name.to_owned()))
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    /// Returns a count from 1 to a power of two of at most 40 bits.
    #[expect(clippy::cast_precision_loss, reason = "40 bits fit")]
    fn count(&mut self) -> f64 {
        let bits = 1 + self.next() % 40;
        (1 + self.next() % (1 << bits)) as f64
    }
}

/// Returns file, name and formula of each metric.
fn formulas() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    FORMULAS.lines().map(|line| {
        let mut cells = line.split('\t');
        (cells.next().unwrap(), cells.next().unwrap(), cells.next().unwrap())
    })
}

fn values(peer: &Peer, random: &mut Random) -> Known {
    let value = |name: &String| match name.as_str() {
        "smt_on" => f64::from(u8::from(random.next() & 1 == 1)),
        _ => random.count(),
    };
    let values: Vec<f64> = peer.var_names().iter().map(value).collect();
    Known(peer.var_names().iter().cloned().zip(values).collect())
}

fn peer_value(peer: &Peer, known: &Known) -> f64 {
    let values: Vec<f64> = peer.var_names().iter().map(|name| known.0[name]).collect();
    peer.eval(&values).unwrap()
}

fn assert_equal(found: f64, expected: f64, what: &str) {
    assert!((found - expected).abs() <= 1e-12 * expected.abs(), "{what}: {found} instead of {expected}");
}

#[test]
fn real_formulas_have_the_values_of_an_independent_evaluator() {
    let mut random = Random(0x0005_EED0_F0F0);
    let (mut formula_count, mut compared, mut without) = (0, 0, 0);
    for (file, name, text) in formulas() {
        formula_count += 1;
        let (own, peer) = (Expression::parse(text).unwrap(), peer(text));
        let mut names: Vec<&str> = own.names();
        names.sort_unstable();
        assert_eq!(names, peer.var_names(), "{file}: {name}");
        for round in 0..20 {
            let known = values(&peer, &mut random);
            let what = format!("{file}: {name}, round {round}");
            match own.evaluate(&known) {
                Ok(value) => {
                    compared += 1;
                    assert_equal(value, peer_value(&peer, &known), &what);
                }
                // Differences of small counts are 0 now and then.
                Err(Unavailable::Division(_)) => without += 1,
                Err(other) => panic!("{what}: {other}"),
            }
        }
    }
    assert_eq!(formula_count, 242);
    assert!(compared >= 240 * 20 && without < 40, "{compared} values compared, {without} divisions by zero");
}

#[test]
fn a_formula_has_no_value_where_a_count_is_zero_or_missing_and_needed() {
    let mut random = Random(77);
    let (mut divisions, mut values_left) = (0, 0);
    for (file, name, text) in formulas() {
        let (own, peer) = (Expression::parse(text).unwrap(), peer(text));
        for zero in peer.var_names().iter().filter(|name| *name != "smt_on") {
            let mut known = values(&peer, &mut random);
            known.0.insert(zero.clone(), 0.0);
            let expected = peer_value(&peer, &known);
            match own.evaluate(&known) {
                Ok(value) => {
                    values_left += 1;
                    assert_equal(value, expected, &format!("{file}: {name} with {zero} = 0"));
                }
                Err(Unavailable::Division(_)) => divisions += 1,
                Err(other) => panic!("{file}: {name} with {zero} = 0: {other}"),
            }
            known.0.remove(zero);
            match own.evaluate(&known) {
                Err(Unavailable::Missing(missing)) => assert_eq!(missing, *zero, "{file}: {name}"),
                // Another branch was taken, or another divisor is 0.
                Ok(_) => assert!(text.contains(" if "), "{file}: {name} needs {zero}"),
                Err(Unavailable::Division(_)) => {}
                Err(other) => panic!("{file}: {name} without {zero}: {other}"),
            }
        }
    }
    assert!(divisions > 200 && values_left > 500, "{divisions} divisions by zero, {values_left} values");
}
