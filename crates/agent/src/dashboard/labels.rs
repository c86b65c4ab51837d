//! Which labels an expression's result has, by the table of metrics.

use std::collections::BTreeSet;

use promql_parser::label::Matchers;
use promql_parser::parser::token::T_LAND;
use promql_parser::parser::{self, AggregateExpr, BinaryExpr, Expr, LabelModifier};

use super::expression::TARGET;
use crate::family::Family;

/// What an expression reads, and which labels its result has.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Reading {
    /// The families.
    pub families: BTreeSet<Family>,
    /// The labels, or `None` for a number or text, which has none and goes with every label.
    pub labels: Option<BTreeSet<String>>,
}

/// Reads an expression. Grafana's variable for the range is replaced, because the grammar does not know it.
///
/// # Errors
/// The expression is malformed, or names a metric or a label that the table does not have.
pub fn read(expression: &str) -> Result<Reading, String> {
    visit(&parser::parse(&expression.replace("$__rate_interval", "5m"))?)
}

fn visit(expression: &Expr) -> Result<Reading, String> {
    match expression {
        Expr::Aggregate(aggregate) => aggregated(aggregate),
        Expr::Unary(unary) => visit(&unary.expr),
        Expr::Binary(binary) => combined(binary),
        Expr::Paren(parenthesis) => visit(&parenthesis.expr),
        Expr::Subquery(subquery) => visit(&subquery.expr),
        Expr::NumberLiteral(_) | Expr::StringLiteral(_) => Ok(Reading::default()),
        Expr::VectorSelector(selector) => selected(selector.name.as_deref(), &selector.matchers),
        Expr::MatrixSelector(matrix) => selected(matrix.vs.name.as_deref(), &matrix.vs.matchers),
        Expr::Call(call) => match call.args.args.as_slice() {
            [argument] => visit(argument),
            _ => Err(format!("{} has not one argument", call.func.name)),
        },
        Expr::Extension(_) => Err("an extension of the grammar".to_owned()),
    }
}

/// Reads a selector. Of the metrics of Prometheus itself only `up` is known.
fn selected(name: Option<&str>, matchers: &Matchers) -> Result<Reading, String> {
    let name = name.ok_or("a selector without a name")?;
    let family = Family::ALL.iter().copied().find(|family| family.promql() == name);
    if family.is_none() && name != "up" {
        return Err(format!("no metric {name}"));
    }
    let own = family.map_or(&[][..], Family::labels);
    let labels: BTreeSet<String> = own.iter().chain(&TARGET).map(|&label| label.to_owned()).collect();
    let matchers = matchers.matchers.iter().chain(matchers.or_matchers.iter().flatten());
    for matcher in matchers {
        ensure(labels.contains(&matcher.name), || format!("{name} has no label {}", matcher.name))?;
    }
    Ok(Reading { families: family.into_iter().collect(), labels: Some(labels) })
}

fn aggregated(aggregate: &AggregateExpr) -> Result<Reading, String> {
    let inner = visit(&aggregate.expr)?;
    let of_inner = inner.labels.unwrap_or_default();
    let labels = match &aggregate.modifier {
        None => BTreeSet::new(),
        Some(LabelModifier::Include(by)) => by.labels.iter().cloned().collect(),
        Some(LabelModifier::Exclude(_)) => return Err("`without` depends on labels that are not in the table".into()),
    };
    for label in &labels {
        ensure(of_inner.contains(label), || format!("{} has no label {label}", aggregate.expr))?;
    }
    Ok(Reading { families: inner.families, labels: Some(labels) })
}

/// Reads an operator. Sides with different labels have no pairs of samples, except where `and` names the labels by
/// which it matches: those that both sides have.
fn combined(binary: &BinaryExpr) -> Result<Reading, String> {
    let (left, right) = (visit(&binary.lhs)?, visit(&binary.rhs)?);
    let matching = binary.modifier.as_ref().and_then(|modifier| modifier.matching.as_ref());
    match (matching, &left.labels, &right.labels) {
        (Some(LabelModifier::Include(on)), Some(of_left), Some(of_right)) if binary.op.id() == T_LAND => {
            let missing = on.labels.iter().find(|label| !of_left.contains(*label) || !of_right.contains(*label));
            ensure(missing.is_none(), || format!("{missing:?} is not on both sides"))?;
        }
        (Some(_), ..) => return Err("`on` and `ignoring` are not expected".to_owned()),
        (None, Some(of_left), Some(of_right)) => {
            ensure(of_left == of_right, || format!("{of_left:?} never match {of_right:?}"))?;
        }
        (None, ..) => {}
    }
    Ok(Reading { families: &left.families | &right.families, labels: left.labels.or(right.labels) })
}

fn ensure(holds: bool, problem: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(problem()) }
}

#[test]
fn what_the_table_does_not_have_is_named() {
    let cases = [
        ("halprof_event_total", "no metric halprof_event_total"),
        ("halprof_events", "no metric halprof_events"),
        ("{job=\"x\"}", "without a name"),
        ("rate(halprof_gaps_total{event=\"x\"}[5m])", "halprof_gaps_total has no label event"),
        ("sum by (reason) (halprof_events_total)", "has no label reason"),
        ("sum by (cpu) (sum by (event) (halprof_events_total))", "has no label cpu"),
        ("sum without (cpu) (halprof_events_total)", "`without`"),
        ("halprof_events_total / halprof_cpus", "never match"),
        ("halprof_events_total / on (job) halprof_cpus", "not expected"),
        ("halprof_events_total and on (event) halprof_cpus", "is not on both sides"),
        ("halprof_events_total and ignoring (event) halprof_cpus", "not expected"),
        ("sum(halprof_events_total", "unclosed left parenthesis"),
    ];
    for (expression, expected) in cases {
        let problem = read(expression).unwrap_err();
        assert!(problem.contains(expected), "{expression}: {problem}");
    }
}
