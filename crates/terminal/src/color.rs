//! Colors of the terminal. `--color` chooses them; by default NO_COLOR and the kind of the stream decide.

use std::io::{self, Write};

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};

use crate::output::printable_lines;

/// Style of the word `error:`.
const ERROR: Style = AnsiColor::Red.on_default().bold();

/// Style of the other words at the beginning of a line of a report.
const LABEL: Style = Style::new().bold();

/// Style of the shares of instructions with many samples.
pub const HOT: Style = AnsiColor::Red.on_default().bold();
/// Style of those with some.
pub const WARM: Style = AnsiColor::Green.on_default();
/// Style of those with few.
pub const COLD: Style = Style::new();

/// Style of source code between instructions.
pub const SOURCE: Style = AnsiColor::Cyan.on_default();

/// Labels of the lines of an error's report after the first.
const LABELS: [&str; 3] = ["because:", "now:", "try:"];

/// Writes the report of an error to standard error, in colors if it can have them. A failure is ignored: the exit code
/// still reports the error.
pub fn print_error(report: &str) {
    let _ = writeln!(anstream::stderr(), "{}", painted(&printable_lines(report)));
}

/// Returns whether standard output can have colors. Lets a Windows console accept them.
#[must_use]
pub fn stdout_has_colors() -> bool {
    AutoStream::auto(io::stdout()).current_choice() != ColorChoice::Never
}

/// Returns a report with its labels in color.
fn painted(report: &str) -> String {
    let line = |line: &str| {
        if let Some(rest) = line.strip_prefix("error:") {
            return format!("{ERROR}error:{ERROR:#}{rest}");
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
