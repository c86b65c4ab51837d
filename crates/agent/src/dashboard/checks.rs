//! What must hold of the tables of panels and rules.

use std::collections::{BTreeMap, BTreeSet};

use promql_parser::label::MatchOp;
use promql_parser::parser::{self, Expr};

use super::alerts::{Alert, alerts, recordings};
use super::grafana::{WIDTH, dashboard, variable_queries};
use super::labels::{Reading, read};
use super::panels::{CYCLES_AND_INSTRUCTIONS, OMITTED, Panel, rows};
use crate::family::Family;

fn all_panels() -> Vec<Panel> {
    rows().into_iter().flat_map(|row| row.panels).collect()
}

/// Returns the names between two markers.
fn between<'a>(text: &'a str, start: &str, end: &str) -> Vec<&'a str> {
    text.split(start).skip(1).map(|rest| rest.split_once(end).unwrap().0.trim()).collect()
}

fn texts(alert: &Alert) -> [&'static str; 3] {
    [alert.summary, alert.description, alert.runbook]
}

/// Returns what every expression reads, with a name for messages.
fn readings() -> Vec<(String, Reading)> {
    let panels = all_panels();
    let queries = panels.iter().flat_map(|panel| panel.queries.iter().map(|query| (panel.title, &query.expression)));
    let panels = queries.map(|(title, expression)| (title.to_owned(), expression.clone()));
    let recordings = recordings().into_iter().map(|one| (one.name, one.expression));
    let alerts = alerts().into_iter().map(|one| (one.name.to_owned(), one.expression));
    let all = panels.chain(recordings).chain(alerts);
    all.map(|(name, expression)| {
        let reading = read(&expression).unwrap_or_else(|problem| panic!("{name}: {expression}: {problem}"));
        (name, reading)
    })
    .collect()
}

#[test]
fn expressions_have_only_metrics_and_labels_of_the_table() {
    assert!(readings().len() > 30);
    for (label, samples) in variable_queries() {
        let labels = read(&samples).unwrap().labels.unwrap();
        assert!(labels.contains(label), "{samples} has no label {label}");
    }
}

/// `VictoriaMetrics` counts the first sample of a counter as growth from zero, Prometheus does not.
#[test]
fn no_alert_counts_what_occurred_before_the_first_scrape() {
    let mut guarded = 0;
    for Alert { name, expression, .. } in alerts() {
        let Some((_, growth)) = expression.split_once("increase(") else { continue };
        let (_, range) = growth.split_once('[').unwrap();
        let (range, rest) = range.split_once("])").unwrap();
        let guard = format!(" and on (job, instance) up offset {range} == 1)");
        assert!(rest.starts_with(&guard), "{name}: {expression}");
        guarded += 1;
    }
    assert_eq!(guarded, 4);
}

#[test]
fn every_family_is_used_or_left_out_for_a_reason() {
    let used: BTreeSet<Family> = readings().into_iter().flat_map(|(_, reading)| reading.families).collect();
    let omitted: BTreeSet<Family> = OMITTED.iter().map(|&(family, _)| family).collect();
    assert_eq!(used.intersection(&omitted).count(), 0, "{omitted:?} are used");
    assert_eq!(&used | &omitted, Family::ALL.iter().copied().collect());
    assert!(OMITTED.iter().all(|(_, reason)| !reason.is_empty()));
}

#[test]
fn counters_are_read_as_growth_and_gauges_as_they_are() {
    fn visit(expression: &Expr, function: &str) {
        let check = |name: &Option<String>| {
            let name = name.clone().unwrap();
            let expected: &[&str] =
                if name.ends_with("_total") { &["rate", "increase"] } else { &["", "max_over_time", "absent"] };
            assert!(expected.contains(&function), "{function} of {name}");
        };
        match expression {
            Expr::Aggregate(aggregate) => visit(&aggregate.expr, ""),
            Expr::Binary(binary) => [&binary.lhs, &binary.rhs].into_iter().for_each(|side| visit(side, "")),
            Expr::Paren(parenthesis) => visit(&parenthesis.expr, ""),
            Expr::Call(call) => call.args.args.iter().for_each(|argument| visit(argument, call.func.name)),
            Expr::VectorSelector(selector) => check(&selector.name),
            Expr::MatrixSelector(matrix) => check(&matrix.vs.name),
            Expr::NumberLiteral(_) => {}
            other => panic!("{other} is not expected"),
        }
    }
    let panels = all_panels().into_iter().flat_map(|panel| panel.queries).map(|query| query.expression);
    let rules = recordings().into_iter().map(|one| one.expression);
    for expression in panels.chain(rules).chain(alerts().into_iter().map(|one| one.expression)) {
        visit(&parser::parse(&expression.replace("$__rate_interval", "5m")).unwrap(), "");
    }
}

#[test]
fn legends_and_texts_name_labels_that_the_results_have() {
    for panel in all_panels() {
        let mut legends = BTreeSet::new();
        for query in &panel.queries {
            let labels = read(&query.expression).unwrap().labels.unwrap();
            for name in between(query.legend, "{{", "}}") {
                assert!(labels.contains(name), "{}: no label {name} for a legend", panel.title);
            }
            assert!(legends.insert(query.legend), "{}: two lines have the same legend", panel.title);
        }
    }
    for alert in alerts() {
        let labels = read(&alert.expression).unwrap().labels.unwrap();
        for name in texts(&alert).into_iter().flat_map(|text| between(text, "$labels.", " ")) {
            assert!(labels.contains(name), "{}: no label {name} for a text", alert.name);
        }
    }
}

#[test]
fn panels_have_unique_titles_and_identifiers_and_do_not_overlap() {
    let items = dashboard(&rows()).panels;
    let mut cells = BTreeMap::new();
    let (mut titles, mut identifiers) = (BTreeSet::new(), BTreeSet::new());
    for item in &items {
        assert!(titles.insert(item.title), "{} is there twice", item.title);
        assert!(item.id > 0 && identifiers.insert(item.id), "{}: {}", item.title, item.id);
        let place = item.grid_pos;
        assert!(place.w > 0 && place.h > 0 && place.x + place.w <= WIDTH, "{}: {place:?}", item.title);
        for cell in (place.x..place.x + place.w).flat_map(|x| (place.y..place.y + place.h).map(move |y| (x, y))) {
            if let Some(other) = cells.insert(cell, item.title) {
                panic!("{} and {other} overlap", item.title);
            }
        }
    }
    let height = 1 + cells.keys().map(|&(_, y)| y).max().unwrap();
    assert_eq!(cells.len(), usize::try_from(WIDTH * height).unwrap(), "there are holes between the panels");
}

#[test]
fn rules_have_unique_names() {
    let names: Vec<String> = recordings().into_iter().map(|one| one.name).collect();
    let alerts: Vec<String> = alerts().iter().map(|alert| alert.name.to_owned()).collect();
    assert_eq!(names.iter().chain(&alerts).collect::<BTreeSet<_>>().len(), names.len() + alerts.len());
    assert!(alerts.iter().all(|name| name.starts_with("Halprof")));
}

/// A test of the client (`cli::documents`) parses these commands in the rules for Prometheus.
#[test]
fn every_runbook_has_a_command_of_the_client() {
    for alert in alerts() {
        assert!(!between(alert.runbook, "`.\\client ", "`").is_empty(), "{} has no command", alert.name);
    }
}

#[test]
fn cycles_and_instructions_are_found_by_each_of_their_names() {
    let parsed = parser::parse(&format!("x{{{CYCLES_AND_INSTRUCTIONS}}}")).unwrap();
    let Expr::VectorSelector(selector) = parsed else { panic!("{parsed}") };
    let MatchOp::Re(pattern) = &selector.matchers.matchers[0].op else { panic!("no regular expression") };
    for name in ["cycles", "cpu-cycles", "instructions:u", "TotalIssues", "TotalCycles:k", "INST_RETIRED.ANY"] {
        assert!(pattern.is_match(name), "{name}");
    }
    for name in ["BranchInstructions", "branch-instructions", "stalled-cycles-frontend", "LD_BLOCKS.CYCLES"] {
        assert!(!pattern.is_match(name), "{name}");
    }
}
