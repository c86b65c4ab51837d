//! Colors of the terminal. `--color` chooses them; by default NO_COLOR and the kind of the stream decide.

use std::io::Write;

use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};

use crate::output::printable_lines;

/// Style of the word `error:`.
const ERROR: Style = AnsiColor::Red.on_default().bold();

/// Style of the other words at the beginning of a line of a report.
const LABEL: Style = Style::new().bold();

/// Share of the samples from which code is hot, as in perf.
pub const HOT: f64 = 0.05;
/// Share from which it is warm.
pub const WARM: f64 = 0.005;

/// Style of what readers must not overlook. Yellow is hard to read on a light background.
const WARNING: Style = AnsiColor::Magenta.on_default().bold();

/// Style of headings and remarks.
const DIM: Style = Style::new().dimmed();

/// The beginning of a remark behind a count.
const REMARK: &str = "  #";

/// Style of source code between instructions.
pub const SOURCE: Style = AnsiColor::Cyan.on_default();

/// Labels of the lines of an error's report after the first.
const LABELS: [&str; 3] = ["because:", "now:", "try:"];

/// Writes the report of an error to standard error, in colors if it can have them. A failure is ignored: the exit code
/// still reports the error.
pub fn print_error(report: &str) {
    let _ = writeln!(anstream::stderr(), "{}", painted(&printable_lines(report)));
}

/// Returns whether a stream can have colors. Lets a Windows console accept them.
#[must_use]
pub fn is_wanted(stream: impl RawStream) -> bool {
    AutoStream::auto(stream).current_choice() != ColorChoice::Never
}

/// Returns the style of a share of the samples by its size.
#[must_use]
pub fn of_share(share: f64) -> Style {
    match share {
        share if share >= HOT => AnsiColor::Red.on_default().bold(),
        share if share >= WARM => AnsiColor::Green.on_default(),
        _ => Style::new(),
    }
}

/// Paints a table: its headings, and the shares in its rows and in the call trees below them.
#[must_use]
pub fn table(text: &str) -> String {
    let line = |(index, line): (usize, &str)| match index {
        0 | 1 => format!("{DIM}{line}{DIM:#}"),
        _ => line.split_inclusive('%').map(|part| weighed(part).unwrap_or_else(|| part.to_owned())).collect(),
    };
    printable_lines(text).lines().enumerate().map(line).collect::<Vec<_>>().join("\n")
}

/// Paints the share at the end of a part of a line.
fn weighed(part: &str) -> Option<String> {
    let part = part.strip_suffix('%')?;
    let number = part.rsplit([' ', '-']).next().filter(|number| number.contains('.'))?;
    let style = of_share(number.parse::<f64>().ok()? / 100.0);
    Some(format!("{}{style}{number}%{style:#}", part.strip_suffix(number)?))
}

/// Paints counts: the remarks behind them, and what is missing.
#[must_use]
pub fn counts(text: &str) -> String {
    let line = |line: &str| {
        let at = if line.starts_with('#') { 0 } else { line.find(REMARK).unwrap_or(line.len()) };
        let (count, remark) = line.split_at_checked(at).unwrap_or((line, ""));
        let parts = count.split_once('<').and_then(|(lead, rest)| Some((lead, rest.split_once('>')?)));
        let count = match parts {
            Some((lead, (mark, name))) => format!("{lead}{WARNING}<{mark}>{WARNING:#}{name}"),
            None => count.to_owned(),
        };
        if remark.is_empty() { count } else { format!("{count}{DIM}{remark}{DIM:#}") }
    };
    printable_lines(text).split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// Paints a note about counts that are wrong or missing: its first line.
#[must_use]
pub fn note(text: &str) -> String {
    let text = printable_lines(text);
    let first = text.lines().next().unwrap_or_default();
    format!("{WARNING}{first}{WARNING:#}{}", text.strip_prefix(first).unwrap_or_default())
}

/// Returns a report or a warning with its labels in color.
pub(crate) fn painted(report: &str) -> String {
    let line = |line: &str| {
        if let Some(rest) = line.strip_prefix("error:") {
            return format!("{ERROR}error:{ERROR:#}{rest}");
        }
        if let Some(rest) = line.strip_prefix("warning:") {
            return format!("{WARNING}warning:{WARNING:#}{rest}");
        }
        let found = LABELS.iter().find_map(|label| Some((label, line.strip_prefix("  ")?.strip_prefix(label)?)));
        found.map_or_else(|| line.to_owned(), |(label, rest)| format!("  {LABEL}{label}{LABEL:#}{rest}"))
    };
    report.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_have_colors_by_their_size_and_remarks_are_dim() {
        let rows = "Overhead  +/-   Symbol\n--------  ----  ------\n  45.10%  2.28  a\n   0.50%  0.10  50%x\n   \
                    0.49%  0.10  b";
        let tree = "\n        |--12.00%--c\n         --0.10%--d";
        let counts = "# time\n  1,000  Cycles  #  1.0 GHz\n  <not counted>  A\n\n 3 seconds";
        let (bold, red, green, magenta, dim, end) =
            ("\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[35m", "\x1b[2m", "\x1b[0m");
        for (painted, plain, wanted) in [
            (
                table(&format!("{rows}{tree}")),
                &*format!("{rows}{tree}"),
                format!(
                    "{dim}Overhead  +/-   Symbol{end}\n{dim}--------  ----  ------{end}\n  \
                     {bold}{red}45.10%{end}  2.28  a\n   {green}0.50%{end}  0.10  50%x\n   0.49%  0.10  b\n        \
                     |--{bold}{red}12.00%{end}--c\n         --0.10%--d"
                ),
            ),
            (
                super::counts(counts),
                counts,
                format!(
                    "{dim}# time{end}\n  1,000  Cycles{dim}  #  1.0 GHz{end}\n  \
                     {bold}{magenta}<not counted>{end}  A\n\n 3 seconds"
                ),
            ),
            (note("* wrong\nwhy"), "* wrong\nwhy", format!("{bold}{magenta}* wrong{end}\nwhy")),
            (painted("warning: a"), "warning: a", format!("{bold}{magenta}warning:{end} a")),
        ] {
            assert_eq!(painted, wanted);
            assert_eq!(anstream::adapter::strip_str(&painted).to_string(), plain);
        }
        assert_eq!(table("a\nb\n\u{1b}[31m"), format!("{dim}a{end}\n{dim}b{end}\n [31m"));
    }

    #[test]
    fn the_labels_of_a_report_are_painted_and_the_text_stays() {
        for (line, wanted) in [
            ("error: no recording", "\x1b[1m\x1b[31merror:\x1b[0m no recording"),
            ("  because: a.rec: error: try: b", "  \x1b[1mbecause:\x1b[0m a.rec: error: try: b"),
            ("  now: nothing", "  \x1b[1mnow:\x1b[0m nothing"),
            ("  try: this\n    or that: now", "  \x1b[1mtry:\x1b[0m this\n    or that: now"),
        ] {
            assert_eq!(painted(line), wanted);
            assert_eq!(anstream::adapter::strip_str(&painted(line)).to_string(), line);
        }
    }
}
