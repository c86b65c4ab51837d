//! Counts as text.

use std::fmt::Write as _;

use halprof::text::processors::named;

use super::blocks::{self, Block, Counted};
use super::unsupported::{self, NOT_SUPPORTED, Unsupported};
use super::{Interval, Stat};
use crate::cli::StatArgs;
use crate::machine::core_types::with_processors;
use counts::count_metric::Metric;
use counts::requested_metrics::{self, MetricValue};
use counts::{EventCount, asleep, errata_note, mark_notes, turns_note};
use terminal::color;
use terminal::format::real;

/// Widths of the columns of counts and names, if a row has nothing in front of the count and nothing at its end.
const COUNT: usize = 20;
const LABEL: usize = 24;

/// What all rows have in common.
struct Columns {
    count: usize,
    label: usize,
    /// An event took turns or was sampled: there is a column for the error.
    has_errors: bool,
}

impl Columns {
    fn of(events: &[Counted], unsupported: &[Unsupported], blocks: Option<&[Block]>, is_wide: bool) -> Self {
        let rows = || events.iter().chain(blocks.into_iter().flatten().flat_map(|block| &block.events));
        let widest = |of: fn(&Counted) -> usize| rows().map(of).max().unwrap_or_default();
        let (count, label) = (widest(|row| row.event.number().len()), widest(|row| row.event.label().len()));
        let is_estimate = |event: &EventCount| event.is_sampled || event.times.took_turns();
        let has_errors = events.iter().any(|row| is_estimate(&row.event) && row.repeated.is_none());
        if is_wide {
            let mark = if unsupported.is_empty() { 0 } else { NOT_SUPPORTED.len() };
            Self { count: count.max(mark) + 1, label, has_errors }
        } else {
            Self { count: COUNT, label: label.max(LABEL), has_errors }
        }
    }

    /// Formats a row that begins with `lead`.
    fn row(&self, lead: &str, Counted { event, metric, repeated }: &Counted) -> String {
        let Self { count, label, has_errors } = *self;
        let error = if has_errors { error_of(event) } else { String::new() };
        let metric = metric.as_ref().map_or_else(String::new, |metric| format!("  #{}", metric_column(metric)));
        let spread = repeated.as_ref().map_or_else(String::new, |spread| format!("  {}", spread.column()));
        let name = event.label();
        let row = format!("{lead}{:>count$}{error}  {name:label$}{metric}{spread}", event.number());
        format!("{}\n", row.trim_end())
    }
}

/// Formats what was counted in all the time, with the escape sequences of colors.
pub fn total(stat: &Stat, args: &StatArgs) -> String {
    let core_types = core_types_of(&stat.events);
    let core_types = if core_types.is_empty() { core_types } else { format!(" {core_types}\n\n") };
    let during = match (stat.command.join(" "), stat.elapsed.as_ref().map(|elapsed| elapsed.runs.len())) {
        (command, None) if command.is_empty() => format!("for {:.3} seconds", stat.elapsed_seconds),
        (command, None) => format!("while '{command}' ran"),
        (command, Some(runs)) if command.is_empty() => format!("mean of {runs} times"),
        (command, Some(runs)) => format!("while '{command}' ran, mean of {runs} times"),
    };
    let counts = match &stat.processors[..] {
        [] => "No counts".to_owned(),
        processors => {
            let of = stat.tasks.as_ref().map_or("", |of| of.as_str());
            match (of, named(processors.iter().copied())) {
                ("", processors) => format!("Counts of {processors}, system wide,"),
                (of, processors) => format!("Counts of {of}, on {processors},"),
            }
        }
    };
    let mut text = format!("\n {counts} {during}:\n\n{core_types}");
    let is_wide = stat.blocks.is_some() || stat.elapsed.is_some();
    let columns = Columns::of(&stat.events, &stat.unsupported, stat.blocks.as_deref(), is_wide);
    text.push_str(&rows("", &stat.events, stat.blocks.as_deref(), args, &columns));
    text.push_str(&unsupported_rows("", &stat.unsupported, stat.blocks.as_deref(), args, &columns));
    if !stat.metrics.is_empty() {
        // Writing to a `String` cannot fail.
        let _ = write!(
            text,
            "{}{}",
            if args.metric_only { "" } else { "\n Metrics:\n\n" },
            block_metrics("", &stat.metrics, stat.blocks.as_deref(), args)
        );
    }
    let spread = stat.elapsed.as_ref().map_or_else(String::new, |elapsed| format!("  {}", elapsed.column()));
    let elapsed = format!("{:>20.9} seconds time elapsed{spread}", stat.elapsed_seconds);
    // Writing to a `String` cannot fail.
    let _ = writeln!(text, "\n{}", elapsed.trim_end());
    if let (Some(user), Some(system)) = (stat.user_seconds, stat.system_seconds) {
        let _ = writeln!(text, "\n{user:>20.9} seconds user\n{system:>20.9} seconds sys");
    }
    let events = || stat.events.iter().map(|counted| &counted.event);
    if let Some(note) = turns_note(events()) {
        let _ = writeln!(text, "\n{note}");
    }
    if let Some(seconds) = asleep(events()) {
        let _ = writeln!(text, "{seconds:>20.9} seconds of it asleep, in which nothing was counted");
    }
    if let Some(note) = stat.scope_note {
        let _ = writeln!(text, "\nVMware: {note}\n(freezeMode=hybrid), so that rates of the two are wrong.");
    }
    for remark in &stat.remarks {
        let _ = writeln!(text, "\n{remark}");
    }
    if columns.has_errors {
        text.push_str("+- is half of the interval in which the true number lies in 95 of 100 cases.\n");
    }
    let mut text = color::counts(&text);
    let notes = unsupported::notes(&stat.unsupported);
    for note in errata_note(events()).into_iter().chain(mark_notes(events())).chain(notes) {
        let _ = writeln!(text, "\n{}", color::note(&note));
    }
    text + "\n"
}

/// Formats what was counted in an interval.
pub fn interval(interval: &Interval, args: &StatArgs, is_first: bool) -> String {
    let columns = Columns::of(&interval.events, &interval.unsupported, interval.blocks.as_deref(), true);
    let lead = format!("{:>12.6} ", interval.time_seconds);
    let head = if is_first { "#    seconds since the start, and the counts of each interval\n" } else { "" };
    let blocks = interval.blocks.as_deref();
    let metrics = block_metrics(&lead, &interval.metrics, blocks, args);
    let unsupported = unsupported_rows(&lead, &interval.unsupported, blocks, args, &columns);
    format!("{head}{}{unsupported}{metrics}", rows(&lead, &interval.events, blocks, args, &columns))
}

/// Formats the metrics that were asked for, of the machine or of each set of processors.
fn block_metrics(lead: &str, metrics: &[MetricValue], blocks: Option<&[Block]>, args: &StatArgs) -> String {
    let Some(blocks) = blocks else { return requested_metrics::text(lead, metrics) };
    blocks.iter().map(|block| requested_metrics::text(&lead_of(lead, block, args), &block.metrics)).collect()
}

/// Formats what stands in front of the rows of a set of processors.
fn lead_of(lead: &str, block: &Block, args: &StatArgs) -> String {
    let processors = if args.aggregation.per_cpu { String::new() } else { format!("{:>4}", block.processors.len()) };
    format!("{lead}{:<8}{processors}", block.name)
}

fn rows(lead: &str, events: &[Counted], blocks: Option<&[Block]>, args: &StatArgs, columns: &Columns) -> String {
    if args.metric_only && !args.metrics.is_empty() {
        return String::new(); // those that were asked for are enough
    }
    let Some(blocks) = blocks else { return rows_by_core_type(lead, events, args, columns) };
    if args.metric_only {
        return blocks.iter().map(|block| shares(&lead_of(lead, block, args), &block.events)).collect();
    }
    let rows = blocks::rows(events, blocks, args.aggregation.per_cpu).into_iter();
    rows.map(|(block, row)| columns.row(&lead_of(lead, block, args), row)).collect()
}

/// Formats the events that are not counted, below the others.
fn unsupported_rows(
    lead: &str,
    events: &[Unsupported],
    blocks: Option<&[Block]>,
    args: &StatArgs,
    columns: &Columns,
) -> String {
    if args.metric_only {
        return String::new();
    }
    let leads = blocks.map_or_else(
        || vec![lead.to_owned()],
        |blocks| blocks.iter().map(|block| lead_of(lead, block, args)).collect(),
    );
    let row =
        |event: &Unsupported, lead: &String| format!("{lead}{NOT_SUPPORTED:>0$}  {1}\n", columns.count, event.name);
    events.iter().flat_map(|event| leads.iter().map(move |lead| row(event, lead))).collect()
}

/// Formats the events of the whole machine; on a hybrid, those of each core type together.
fn rows_by_core_type(lead: &str, events: &[Counted], args: &StatArgs, columns: &Columns) -> String {
    let mut types: Vec<u32> = Vec::new();
    for Counted { event, .. } in events {
        if !types.contains(&event.event.core_type) {
            types.push(event.event.core_type);
        }
    }
    let of = |core_type: &u32| -> String {
        let own = events.iter().filter(|row| row.event.event.core_type == *core_type);
        if args.metric_only { shares(lead, own) } else { own.map(|row| columns.row(lead, row)).collect() }
    };
    let between = if lead.is_empty() { "\n" } else { "" };
    types.iter().map(of).collect::<Vec<_>>().join(between)
}

/// Formats the metrics of events in one line.
fn shares<'a>(lead: &str, events: impl IntoIterator<Item = &'a Counted>) -> String {
    let found = events.into_iter().filter_map(|row| row.metric.as_ref()).filter(|metric| !metric.is_rate());
    let mut line = String::new();
    for metric in found {
        // Writing to a `String` cannot fail.
        let _ = write!(line, "{:>28}", metric_column(metric).trim_start());
    }
    let line = if line.is_empty() { " no metric: count cycles and instructions, for example".to_owned() } else { line };
    format!("{lead}{line}\n")
}

/// Formats the error of a scaled count, in a column that is empty for events that did not take turns.
fn error_of(event: &EventCount) -> String {
    match event.error {
        _ if !event.is_estimate() => " ".repeat(9),
        Some(error) => match 100.0 * error / real(event.scaled) {
            percent if percent < 100.0 => format!(" +-{percent:5.2}%"),
            percent if percent < 1_000.0 => format!(" +-{percent:5.0}%"),
            _ => " +- >999%".to_owned(),
        },
        None => " +-    ?%".to_owned(),
    }
}

/// Formats the core types of the events with their processors; empty on a machine that is not a hybrid.
fn core_types_of(events: &[Counted]) -> String {
    let mut found: Vec<(&str, Vec<u32>)> = Vec::new();
    for Counted { event, .. } in events {
        let Some(name) = event.core_type.as_deref() else { continue };
        if !found.iter().any(|(known, _)| *known == name) {
            found.push((name, event.processors.iter().map(|one| one.processor).collect()));
        }
    }
    with_processors(found)
}

fn metric_column(Metric { value, unit }: &Metric) -> String {
    if unit.starts_with('%') { format!("{value:9.2}{unit}") } else { format!("{value:9.3} {unit}") }
}
