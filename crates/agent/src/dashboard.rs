//! The dashboard for Grafana and the rules for Prometheus, made from the table of metrics. They are kept in
//! `integrations`; this module exists in tests only, which compare the files and write them.

mod alerts;
mod checks;
mod expression;
mod grafana;
mod labels;
mod panels;
mod rules;

use std::path::Path;
use std::{env, fs};

/// What rewrites the files, if it is set.
const UPDATE: &str = "HALPROF_UPDATE_GENERATED";

#[test]
fn the_generated_files_are_those_of_the_table_of_metrics() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../integrations");
    let files = [
        ("grafana/halprof.json", grafana::text(&grafana::dashboard(&panels::rows()))),
        ("prometheus/halprof.rules.yml", rules::text(alerts::recordings(), alerts::alerts())),
    ];
    for (name, text) in files {
        let path = folder.join(name);
        if env::var_os(UPDATE).is_some() {
            fs::write(&path, &text).unwrap();
        }
        let written = fs::read_to_string(&path).unwrap_or_default();
        assert!(written == text, "{} is outdated: run the test with {UPDATE}=1", path.display());
    }
}
