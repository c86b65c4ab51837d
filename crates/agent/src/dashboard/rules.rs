//! The rules in Prometheus' format.

use serde::Serialize;

use super::alerts::{Alert, Recording, Severity};

/// The first lines of the file.
const HEADER: &str = "\
# Recording rules and alerts for halprof's agents, which are the job `halprof` in the configuration of Prometheus.
# This file is made from the table of metrics by a test of crates/agent; do not edit it.
";

#[derive(Debug, Serialize)]
struct Rules {
    groups: [Group; 2],
}

#[derive(Debug, Serialize)]
struct Group {
    name: &'static str,
    rules: Vec<Rule>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Rule {
    Record { record: String, expr: String },
    Alert { alert: &'static str, expr: String, r#for: &'static str, labels: Labels, annotations: Annotations },
}

#[derive(Debug, Serialize)]
struct Labels {
    severity: &'static str,
}

#[derive(Debug, Serialize)]
struct Annotations {
    summary: &'static str,
    description: &'static str,
    runbook: &'static str,
}

/// Returns the text of the rules.
pub fn text(recordings: Vec<Recording>, alerts: Vec<Alert>) -> String {
    let record = |one: Recording| Rule::Record { record: one.name, expr: one.expression };
    let alert = |one: Alert| Rule::Alert {
        alert: one.name,
        expr: one.expression,
        r#for: one.lasting,
        labels: Labels {
            severity: match one.severity {
                Severity::Critical => "critical",
                Severity::Warning => "warning",
            },
        },
        annotations: Annotations { summary: one.summary, description: one.description, runbook: one.runbook },
    };
    let groups = [
        Group { name: "halprof", rules: recordings.into_iter().map(record).collect() },
        Group { name: "halprof-alerts", rules: alerts.into_iter().map(alert).collect() },
    ];
    // Each value in one line, so that a search finds an expression.
    let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
    HEADER.to_owned() + &serde_saphyr::to_string_with_options(&Rules { groups }, options).unwrap()
}
