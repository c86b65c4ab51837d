//! Folded stacks, `process;module;symbol;inlined count`, and flame graphs, which inferno draws.

use std::io::{self, Write};

use inferno::flamegraph::{self, Options};

use crate::proportion::real;
use crate::table::{Table, TableRow};

/// Options of the library have percentages.
const PERCENT: f64 = 100.0;

/// Returns a folded stack for each row of a table with the columns process, module and frames. The count is the number
/// of events, so widths in a flame graph equal the shares in a report.
#[must_use]
pub fn folded(table: &Table) -> Vec<String> {
    sorted(table.rows())
}

/// Returns what [`folded`] returns, for a flame graph: functions that are too narrow for it are only a part of their
/// modules.
#[must_use]
pub fn folded_for_graph(table: &Table) -> Vec<String> {
    let least = real(table.selected.events) * Options::default().min_width / PERCENT;
    sorted(table.rows_of_at_least(least))
}

fn sorted(rows: impl Iterator<Item = TableRow>) -> Vec<String> {
    let mut lines: Vec<String> = rows.map(|row| line(&row)).collect();
    lines.sort_unstable();
    lines
}

fn line(row: &TableRow) -> String {
    let [process, module] = [&row.process_label(), row.module.as_deref().unwrap_or_default()].map(frame);
    let functions: Vec<String> = row.frames.iter().flatten().map(|name| frame(name)).collect();
    let frames: Vec<String> = [process, module].into_iter().chain(functions).collect();
    format!("{} {}", frames.join(";"), row.weight.events)
}

/// Replaces the separators of the format: a semicolon ends a frame, a line break ends a stack.
fn frame(name: &str) -> String {
    name.chars()
        .map(|c| {
            if c == ';' {
                ':'
            } else if c.is_control() {
                ' '
            } else {
                c
            }
        })
        .collect()
}

/// Draws folded stacks as a flame graph in SVG.
///
/// # Errors
/// If there are no stacks or the output cannot be written.
pub fn flamegraph(lines: &[String], title: &str, subtitle: &str, out: impl Write) -> io::Result<()> {
    let mut options = Options::default();
    title.clone_into(&mut options.title);
    options.subtitle = Some(subtitle.to_owned());
    "events".clone_into(&mut options.count_name);
    options.deterministic = true;
    flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), out)
}
