//! The comparison as text.

use std::fmt::Write as _;

use super::{ChangedRow, Comparison, Kind, Section};
use counts::share::percent;
use terminal::columns::fitted;
use terminal::format::{counted, grouped, properties};

/// Share of lost samples from which totals are not comparable by their intervals.
const MUCH_LOST: f64 = 0.01;

/// Difference of the times of two measurements, as a share, from which the comparison names both.
const OTHER_TIME: f64 = 0.05;

/// Headings of the columns with cells that can be shortened.
const NAMES: [&str; 4] = ["Process", "Module", "Symbol", "Event"];

/// Headings of the columns of numbers.
const NUMBERS: [&str; 6] = ["Old", "New", "Change", "+/-", "Events", "Processor"];

fn heading(column: &str) -> &'static str {
    match column {
        "process" => "Process",
        "module" => "Module",
        "symbol" => "Symbol",
        "processor" => "Processor",
        _ => "Event",
    }
}

/// Formats a comparison, with at most `max` rows in each section.
pub fn text(comparison: &Comparison, max: usize, width: usize) -> String {
    let mut parts: Vec<String> =
        comparison.sections.iter().map(|section| section_text(section, comparison, max, width)).collect();
    parts.extend(legend(comparison));
    if !comparison.unmatched.is_empty() {
        parts.push(format!("only in one of the two: {}", comparison.unmatched.join(", ")));
    }
    parts.extend(verdict(comparison));
    parts.join("\n\n")
}

fn rows(section: &Section) -> impl Iterator<Item = &ChangedRow> {
    section.total.iter().chain(&section.rows)
}

fn section_text(section: &Section, comparison: &Comparison, max: usize, width: usize) -> String {
    let mut text = String::new();
    if let (Some(event), Some(total)) = (&section.event, &section.total) {
        let [old, new] = [total.old, total.new].map(whole);
        let error = error(total).map_or_else(String::new, |error| format!(" +/- {error:.2}"));
        let change = format!("{old} to {new} events, {}{error} %", change(total));
        let mut lines = vec![("Event", event.clone()), ("Total", change)];
        if let Some(lost) = section.lost_shares.filter(|shares| shares.iter().any(|share| *share >= MUCH_LOST)) {
            let [old, new] = lost.map(percent);
            lines.push(("Lost", format!("{old} and {new} of the samples, which the totals lack")));
        }
        let _ = write!(text, "{}\n\n", properties(&lines)); // a string takes everything
    }
    let shown = section.rows.len().min(max);
    let mut headings = vec!["Old", "New", "Change", "+/-"];
    if comparison.kind == Kind::Samples {
        headings.push("Events");
    }
    headings.extend(comparison.columns.iter().map(|column| heading(column)));
    let cells = section.rows.iter().take(max).map(|row| cells(row, comparison.kind)).collect();
    text.push_str(&fitted(&headings, &NUMBERS, &NAMES, cells, width));
    let rest = section.rows.len() - shown;
    if rest > 0 {
        let _ = write!(text, "\n\n{} left out; --limit N shows N", counted(rest as u64, "row"));
    }
    text
}

fn cells(row: &ChangedRow, kind: Kind) -> Vec<String> {
    let value = |value: f64| match kind {
        Kind::Samples => format!("{:.2}%", value * 100.0),
        Kind::Counts => whole(value),
    };
    let unit = if kind == Kind::Counts && row.change.is_some() { "%" } else { "" };
    let error = error(row).map_or_else(|| "?".to_owned(), |error| format!("{error:.2}"));
    let mut cells = vec![value(row.old), value(row.new), format!("{}{unit}", change(row)), error];
    cells.extend(row.events.as_ref().map(|events| {
        let mark = if row.failed { "! " } else { "" };
        events.change.map_or_else(|| format!("{mark}new"), |change| format!("{mark}{:+.2}", change * 100.0))
    }));
    cells.extend(row.names.iter().cloned());
    cells
}

/// Formats a change in percent or percentage points, with its mark.
fn change(row: &ChangedRow) -> String {
    let mark = match row.significant {
        _ if row.failed && row.events.is_none() => "! ",
        Some(false) => "~ ",
        _ => "",
    };
    row.change.map_or_else(|| format!("{mark}new"), |change| format!("{mark}{:+.2}", change * 100.0))
}

/// Returns the half-width of the interval on its wider side, in percent or percentage points.
fn error(row: &ChangedRow) -> Option<f64> {
    let (low, high, change) = (row.low?, row.high?, row.change?);
    Some((change - low).max(high - change) * 100.0)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast saturates; counts are positive")]
fn whole(value: f64) -> String {
    grouped(value.round() as u64)
}

/// Explains the unit and the marks that occur.
fn legend(comparison: &Comparison) -> Option<String> {
    let has = |wanted: fn(&ChangedRow) -> bool| comparison.sections.iter().flat_map(rows).any(wanted);
    let mut lines = Vec::new();
    if comparison.kind == Kind::Samples {
        lines.push("Changes of shares are in percentage points. Those of events are in percent of");
        lines.push("the old total; --fail-above judges by them.");
        if comparison.latency {
            lines.push("Shares are those of the wall time in which a process runs (latency).");
        }
    }
    if has(|row| row.significant == Some(false)) {
        lines.push("~ not significant: the 95 % confidence interval contains zero");
    }
    if has(|row| row.significant.is_none()) {
        lines.push("? no error known: the count of one run; .\\client stat -r N counts N");
    }
    let times = comparison.elapsed_seconds.filter(|[old, new]| (old - new).abs() > OTHER_TIME * old.max(*new));
    let times = times.map(|[old, new]| format!("measured for {old:.3} s and {new:.3} s"));
    lines.extend(times.as_deref());
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Says whether `--fail-above` failed.
fn verdict(comparison: &Comparison) -> Option<String> {
    let limit = comparison.fail_above? * 100.0;
    let failed = comparison.sections.iter().flat_map(rows).filter(|row| row.failed).count();
    Some(match failed {
        0 => format!("--fail-above {limit}%: nothing is significantly worse"),
        failed => {
            format!("--fail-above {limit}%: {} significantly worse, marked with !", counted(failed as u64, "change"))
        }
    })
}
