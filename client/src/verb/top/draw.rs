//! Draws the state of `top`: with ratatui, or as text.

use std::fmt::Write as _;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Cell, Clear, Paragraph, Row as TableRow, Table};

use super::state::{EventUpdate, Row, TopState, Update};
use counts::share::percent;
use terminal::color::{HOT, WARM};
use terminal::columns::{fitted, shortened};
use terminal::format::{grouped, real, rounded, scaled};

/// Width from which processes and modules have columns.
const WIDE: u16 = 60;

/// Minimum width of these columns. On a wide screen, each has a fifth of it.
const NAME: u16 = 18;

/// The keys, in the last line and in the help.
const KEYS: &str = "h help  q quit  p pause  / filter  s next event";
const HELP: [&str; 8] = [
    "q, Ctrl-C   quit",
    "p, space    pause, and go on",
    "/           show only names with a text",
    "Esc         show all names",
    "s           next event",
    "arrows      scroll; also page keys, Home",
    "h           this help",
    "Any key closes it.",
];

/// Draws the whole screen.
pub fn draw(state: &TopState, frame: &mut Frame) {
    let area = frame.area();
    let head = head(state, area.width.into());
    let height = u16::try_from(head.len()).unwrap_or(u16::MAX).min(area.height.saturating_sub(2));
    let [top, middle, bottom] =
        Layout::vertical([Constraint::Length(height), Constraint::Min(0), Constraint::Length(1)]).areas(area);
    frame.render_widget(Paragraph::new(head.into_iter().map(Line::from).collect::<Vec<_>>()), top);
    rows(state, frame, middle);
    let (filter, is_typed) = state.filter();
    let last = match (filter, is_typed) {
        (filter, true) => format!("filter: {filter}_"),
        ("", false) => KEYS.to_owned(),
        (filter, false) => format!("filter: {filter}  (Esc removes it)  {KEYS}"),
    };
    frame.render_widget(Paragraph::new(last).style(Style::new().add_modifier(Modifier::REVERSED)), bottom);
    if state.has_help() {
        let text: Vec<Line> = HELP.into_iter().map(Line::from).collect();
        frame.render_widget(Clear, middle);
        frame.render_widget(Paragraph::new(text), middle);
    }
}

/// Returns the lines above the table.
fn head(state: &TopState, width: usize) -> Vec<String> {
    let Some((update, event)) = state.shown().zip(state.event()) else {
        return vec!["halprof top: waiting for the first samples".to_owned()];
    };
    let position = match state.position() {
        (_, 1) => String::new(),
        (number, all) => format!(" ({number} of {all})"),
    };
    let paused = if state.is_paused() { "  [display paused]" } else { "" };
    let rate = rounded(Some(rate(event.samples, update)));
    let mut lines =
        vec![format!("{}{position}: {rate} samples/s{paused}", event.name), losses(update, state.lost(), width)];
    let mut processors = String::from("Events/s:");
    for (processor, events) in &event.processors {
        let (number, letter) = scaled(self::rate(*events, update));
        let one = format!("  CPU {processor} {number:.1}{letter}");
        if processors.len() + one.len() > width {
            processors.push_str(" ..");
            break;
        }
        processors.push_str(&one);
    }
    lines.push(processors.chars().take(width).collect());
    lines.push(String::new());
    lines
}

/// Formats what was not sampled, and the client's own processor time.
fn losses(update: &Update, all: u64, width: usize) -> String {
    let own = update.own_time.map_or_else(String::new, |time| format!("  client {:.1} %", time * 100.0));
    let of = if own.is_empty() { "" } else { " of a CPU" };
    let (lost, paused) = (grouped(update.lost), percent(update.paused));
    let line = format!("lost {lost} ({} in all)  paused {paused}{own}{of}", grouped(all));
    if line.len() <= width { line } else { format!("lost {lost}  paused {paused}{own}") }
}

fn rate(number: u64, update: &Update) -> f64 {
    let seconds = update.elapsed.as_secs_f64();
    if seconds > 0.0 { real(number) / seconds } else { 0.0 }
}

fn rows(state: &TopState, frame: &mut Frame, area: Rect) {
    let is_wide = area.width >= WIDE;
    let headings: &[&str] =
        if is_wide { &["Overhead", "Process", "Module", "Symbol"] } else { &["Overhead", "Symbol"] };
    let name = (area.width / 5).max(NAME);
    let widths: &[Constraint] = if is_wide {
        &[Constraint::Length(8), Constraint::Length(name), Constraint::Length(name), Constraint::Min(8)]
    } else {
        &[Constraint::Length(8), Constraint::Min(8)]
    };
    let [name, width] = [name, area.width].map(usize::from);
    let symbol_width = width.saturating_sub(if is_wide { 11 + 2 * name } else { 9 });
    let rows = state.visible_rows().take(area.height.into()).map(|row| {
        let share = format!("{:7.2}%", row.share * 100.0);
        let symbol = shortened(&row.function.symbol, symbol_width);
        let (process, module) = (shortened(&row.function.process, name), shortened(&row.function.module, name));
        let cells = if is_wide { vec![share, process, module, symbol] } else { vec![share, symbol] };
        TableRow::new(cells.into_iter().map(Cell::from)).style(style(row))
    });
    let heading = TableRow::new(headings.iter().copied()).style(Style::new().add_modifier(Modifier::BOLD));
    frame.render_widget(Table::new(rows, widths).header(heading), area);
}

fn style(row: &Row) -> Style {
    match row.share {
        share if share >= HOT => Style::new().fg(Color::Red),
        share if share >= WARM => Style::new().fg(Color::Green),
        _ => Style::new(),
    }
}

/// Formats every event as text, with at most `limit` rows of this width.
pub fn text(update: &Update, limit: usize, width: usize) -> String {
    let mut text = format!("{:.1} s: {}", update.elapsed.as_secs_f64(), losses_of(update));
    for event in &update.events {
        // Writing to a `String` cannot fail.
        let _ = write!(text, "\n{}: {} samples{}", event.name, grouped(event.samples), rates(event, update));
        if event.functions.is_empty() {
            continue;
        }
        let all = real(event.functions.iter().map(|(_, events)| events).sum::<u64>());
        let mut sorted: Vec<_> = event.functions.iter().collect();
        sorted.sort_by(|(one, some), (other, others)| others.cmp(some).then_with(|| one.cmp(other)));
        let cells = sorted.iter().take(limit).map(|(function, events)| {
            let share = format!("{:.2}%", real(*events) / all * 100.0);
            vec![share, function.process.clone(), function.module.clone(), function.symbol.clone()]
        });
        let headings = ["Overhead", "Process", "Module", "Symbol"];
        let table = fitted(&headings, &["Overhead"], &["Process", "Module", "Symbol"], cells.collect(), width);
        let _ = write!(text, "\n\n{table}\n");
    }
    text
}

fn losses_of(update: &Update) -> String {
    let own = update.own_time.map_or_else(String::new, |time| format!(", client {:.1} % of a CPU", time * 100.0));
    format!("{} lost, paused {} of the time{own}", grouped(update.lost), percent(update.paused))
}

/// Formats the rates of an event by processor.
fn rates(event: &EventUpdate, update: &Update) -> String {
    let rate = |(processor, events): (&u32, &u64)| {
        let (number, letter) = scaled(rate(*events, update));
        format!(", CPU {processor} {number:.1}{letter}/s")
    };
    event.processors.iter().map(rate).collect()
}
