//! Metrics of the makers' files.
//!
//! Intel's have `Formula`, whose names are the aliases of `Events` and `Constants`; Linux's have `MetricExpr`, whose
//! names are those of events, constants and other metrics. `BaseFormula` of Intel's is not used: it names metrics by
//! names that the files do not have.

use serde_json::Value;

use super::{Alias, Metric, MetricError};
use crate::expression::Expression;

/// Maximum length of a name, in characters.
const MAX_NAME: usize = 200;
/// Maximum length of a description, in characters.
const MAX_TEXT: usize = 10_000;

impl Metric {
    /// Parses an object of a file of Intel's or Linux's.
    ///
    /// # Errors
    /// If it is malformed; the error has the column in an expression.
    pub fn parse(value: &Value) -> Result<Self, MetricError> {
        let name = text(value, "MetricName")?;
        if name.is_empty() || name.len() > MAX_NAME || name.chars().any(char::is_control) {
            return Err(MetricError::Name(shortened(name)));
        }
        let (key, formula) = match (text(value, "Formula")?, text(value, "MetricExpr")?) {
            ("", "") => return Err(MetricError::NoExpression),
            ("", formula) => ("MetricExpr", formula),
            (formula, _) => ("Formula", formula),
        };
        let mut aliases: Vec<(String, Alias)> = Vec::new();
        for list in ["Events", "Constants"] {
            for (alias, name) in pairs(value, list)? {
                if aliases.iter().any(|(known, _)| known.eq_ignore_ascii_case(&alias)) {
                    return Err(MetricError::TwoAliases(shortened(&alias)));
                }
                let meaning = if list == "Events" {
                    Alias::Event(name)
                } else {
                    Alias::Constant(expression(&format!("constant {}", shortened(&alias)), &name)?)
                };
                aliases.push((alias, meaning));
            }
        }
        let (scale, unit) = unit(value)?;
        Ok(Self {
            name: name.to_owned(),
            groups: text(value, "MetricGroup")?
                .split([';', ','])
                .map(str::trim)
                .filter(|group| !group.is_empty())
                .map(str::to_owned)
                .collect(),
            unit,
            scale,
            brief: plain(text(value, "BriefDescription")?),
            cores: text(value, "Unit")?.to_owned(),
            formula: formula.to_owned(),
            expression: expression(key, formula)?,
            aliases,
        })
    }
}

fn expression(key: &str, text: &str) -> Result<Expression, MetricError> {
    Expression::parse(text).map_err(|cause| MetricError::Expression { key: key.to_owned(), cause })
}

/// Returns the text of a key, or nothing if it is not there.
fn text<'a>(value: &'a Value, key: &'static str) -> Result<&'a str, MetricError> {
    match value.get(key) {
        None | Some(Value::Null) => Ok(""),
        Some(Value::String(text)) => Ok(text.trim()),
        Some(_) => Err(MetricError::Type { key, expected: "text" }),
    }
}

/// Returns the aliases of a list, each with its name.
fn pairs(value: &Value, key: &'static str) -> Result<Vec<(String, String)>, MetricError> {
    let error = || MetricError::Type { key, expected: "list of objects with Name and Alias" };
    let list = match value.get(key) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(list)) => list,
        Some(_) => return Err(error()),
    };
    let pair = |one: &Value| {
        let text = |key: &str| one.get(key).and_then(Value::as_str).map(|text| text.trim().to_owned());
        text("Alias").zip(text("Name")).filter(|(alias, name)| !alias.is_empty() && !name.is_empty())
    };
    list.iter().map(|one| pair(one).ok_or_else(error)).collect()
}

/// Returns the scale and the unit: Linux's `100%` or `1GHz`, or the unit that Intel's files name.
fn unit(value: &Value) -> Result<(f64, String), MetricError> {
    let scaled = text(value, "ScaleUnit")?;
    if scaled.is_empty() {
        let unit = match text(value, "UnitOfMeasure")? {
            "percent" => "%",
            unit => unit,
        };
        return Ok((1.0, plain(unit)));
    }
    let is_exponent = |at: usize| {
        let rest = scaled.get(at + 1..).unwrap_or_default();
        rest.trim_start_matches(['+', '-']).starts_with(|digit: char| digit.is_ascii_digit())
    };
    let end = scaled.char_indices().find(|(at, character)| match character {
        '0'..='9' | '.' => false,
        '+' | '-' => !scaled.get(..*at).is_some_and(|before| before.ends_with(['e', 'E'])),
        'e' | 'E' => *at == 0 || !is_exponent(*at),
        _ => true,
    });
    let (scale, unit) = scaled.split_at_checked(end.map_or(scaled.len(), |(at, _)| at)).unwrap_or((scaled, ""));
    match scale.parse::<f64>() {
        Ok(number) if number.is_finite() && number > 0.0 => Ok((number, plain(unit.trim()))),
        _ => Err(MetricError::Scale(shortened(scaled))),
    }
}

/// Removes control characters, and what is too long.
fn plain(text: &str) -> String {
    text.chars().filter(|character| !character.is_control()).take(MAX_TEXT).collect()
}

fn shortened(text: &str) -> String {
    text.chars().flat_map(char::escape_default).take(60).collect()
}
