//! A line on a terminal that is written again and again.

use std::fmt::{self, Debug, Formatter};
use std::io::{self, Write};
use std::time::{Duration, Instant};

use crate::columns;

/// Shortest time from one text to the next.
const PERIOD: Duration = Duration::from_millis(50);

/// A line that is updated in place, and removed when dropped. Failures to write it are ignored.
///
/// The line is blanked with spaces and not with an escape sequence, because the console of Windows takes those only if
/// a program has switched them on.
pub struct StatusLine {
    out: Box<dyn Write + Send>,
    columns: fn() -> usize,
    /// Number of columns that the text on the terminal takes.
    shown: usize,
    last: Option<Instant>,
}

impl StatusLine {
    /// Returns the line on standard error, which must be a terminal.
    #[must_use]
    pub fn on_stderr() -> Self {
        Self::new(Box::new(io::stderr()), columns::of_terminal)
    }

    /// Returns the line on `out`, a terminal of which text can fill as many columns as `columns` says at the time.
    #[must_use]
    pub fn new(out: Box<dyn Write + Send>, columns: fn() -> usize) -> Self {
        Self { out, columns, shown: 0, last: None }
    }

    /// Shows a text of ASCII characters, as much of it as fits on one line, unless the last one is only just shown.
    pub fn show(&mut self, text: impl FnOnce() -> String) {
        if self.last.is_none_or(|last| last.elapsed() >= PERIOD) {
            self.write(&text());
            self.last = Some(Instant::now());
        }
    }

    fn write(&mut self, text: &str) {
        let columns = (self.columns)();
        let (text, blanked) = (text.get(..columns).unwrap_or(text), self.shown.min(columns));
        let _ = write!(self.out, "\r{text:blanked$}\r{text}").and_then(|()| self.out.flush());
        self.shown = text.len();
    }
}

impl Drop for StatusLine {
    fn drop(&mut self) {
        self.write("");
    }
}

impl Debug for StatusLine {
    fn fmt(&self, formatter: &mut Formatter) -> fmt::Result {
        formatter.debug_struct("StatusLine").field("shown", &self.shown).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// What was written.
    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Written {
        /// Returns the text on a terminal of 20 columns on which this was written, and the column of the cursor.
        fn screen(&self) -> (String, u16) {
            let mut screen = vt100::Parser::new(3, 20, 0);
            screen.process(&self.0.lock().unwrap());
            assert_eq!(screen.screen().cursor_position().0, 0);
            (screen.screen().contents().trim_end().to_owned(), screen.screen().cursor_position().1)
        }
    }

    #[test]
    fn a_text_replaces_the_last_one_and_nothing_stays() {
        let written = Written::default();
        let mut line = StatusLine::new(Box::new(written.clone()), || 19);
        for (text, wanted) in [
            ("first", "first"),
            ("a longer text", "a longer text"),
            ("short", "short"),
            ("a text that is too long", "a text that is too "),
        ] {
            line.last = None;
            line.show(|| text.to_owned());
            let (shown, cursor) = written.screen();
            assert_eq!((shown.as_str(), cursor), (wanted.trim_end(), u16::try_from(wanted.len()).unwrap()));
        }
        drop(line);
        assert_eq!(written.screen(), (String::new(), 0));
    }

    #[test]
    fn a_text_is_not_even_made_while_the_last_one_is_new() {
        let written = Written::default();
        let mut line = StatusLine::new(Box::new(written.clone()), || 19);
        line.show(|| "first".to_owned());
        line.last = Some(Instant::now() + PERIOD);
        line.show(|| unreachable!());
        assert_eq!(written.screen().0, "first");
        line.last = Instant::now().checked_sub(PERIOD);
        line.show(|| "second".to_owned());
        assert_eq!(written.screen().0, "second");
    }
}
