//! The table of the manifest in docs/proof.md.

use std::fmt::Write as _;

use anyhow::{Context, Result};

use crate::manifest::{Manifest, StageRecord, Verdict};

/// What is before and behind the part that is replaced.
const BEGIN: &str = "<!-- written by `cargo xtask proof` -->\n";
const END: &str = "<!-- end -->\n";

/// Returns the text of the table.
pub fn table(manifest: &Manifest) -> String {
    let Manifest { driver, run, sources, .. } = manifest;
    let (minutes, seconds) = (run.seconds / 60, run.seconds % 60);
    let changed = if sources.changed { ", with changes that are not in it" } else { "" };
    let mut text = format!(
        "\nSHA-256 of the file without a signature: `{}` ({} bytes), built from commit {}{changed} by {}. Run of {} \
         minutes on {} processors, begun {}: it took {minutes} min {seconds} s.\n\n",
        driver.sha256, driver.bytes, sources.commit, manifest.compiler, run.minutes, manifest.processors, run.began
    );
    text.push_str("| stage | result | figures | commands |\n|---|---|---|---|\n");
    for stage in &manifest.stages {
        let figures: Vec<String> =
            stage.figures.iter().map(|(unit, number)| format!("{} {unit}", grouped(*number))).collect();
        let commands: Vec<String> = stage.commands.iter().map(|command| format!("`{command}`")).collect();
        let row = [cell(&stage.name), result(stage), figures.join(", "), commands.join(", ")];
        let _ = writeln!(text, "| {} |", row.join(" | ")); // a String takes every text
    }
    text.push('\n');
    text
}

fn result(stage: &StageRecord) -> String {
    let reason = stage.reason.as_deref().map(cell).unwrap_or_default();
    match stage.verdict {
        Verdict::Passed => format!("passed, {} s", stage.seconds),
        Verdict::Failed => format!("**failed**: {reason}"),
        Verdict::NotRun => format!("not run: {reason}"),
    }
}

/// Returns a text for a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

/// Returns a number with commas between its groups of three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy);
    groups.collect::<Vec<_>>().join(",")
}

/// Replaces the table in a document.
///
/// # Errors
/// The document has no place for it.
pub fn replace(document: &str, manifest: &Manifest) -> Result<String> {
    let (before, rest) = document.split_once(BEGIN).context("the document has no place for the table")?;
    let (_, after) = rest.split_once(END).context("the place for the table has no end")?;
    Ok(format!("{before}{BEGIN}{}{END}{after}", table(manifest)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::tests::example;

    const DOCUMENT: &str = include_str!("../../../docs/proof.md");

    #[test]
    fn the_document_has_one_place_for_the_table() {
        assert_eq!((DOCUMENT.matches(BEGIN).count(), DOCUMENT.matches(END).count()), (1, 1));
        let once = replace(DOCUMENT, &example()).unwrap();
        assert!(once.contains(&"a".repeat(64)));
        assert_eq!(replace(&once, &example()).unwrap(), once, "what was written is replaced");
        assert!(replace("no place", &example()).is_err());
    }

    #[test]
    fn the_table_tells_what_was_not_run_and_what_failed() {
        let text = table(&example());
        let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
        assert_eq!(
            rows,
            [
                "| one | passed, 61 s | 12,345 tests | `cargo test` |",
                "| two | **failed**: it broke | 12,345 tests | `cargo test` |",
                "| three | not run: no time was left | 12,345 tests | `cargo test` |",
            ]
        );
        let mut changed = example();
        changed.sources.changed = true;
        assert!(table(&changed).contains("with changes that are not in it"));
    }
}
