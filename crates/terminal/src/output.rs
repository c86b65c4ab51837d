//! Standard output and standard error. Their reader can close the pipe early (`.\client report | head`).

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, ErrorKind, Write};

use anstream::adapter::strip_str;
use recording::printable;
use user_error::win32;

/// A stream that remembers that its reader has closed the pipe.
pub struct Output<'a> {
    stream: &'a mut dyn Write,
    is_closed: bool,
    is_text: bool,
    /// Whether the stream can have colors.
    pub has_colors: bool,
}

/// A destination of text with the escape sequences of colors, of which all other parts are printable.
pub trait Painted: Write {
    /// Writes the text, with the sequences if the destination can have colors.
    ///
    /// # Errors
    /// If the text cannot be written.
    fn write_painted(&mut self, text: &str) -> io::Result<()>;
}

impl Painted for Output<'_> {
    fn write_painted(&mut self, text: &str) -> io::Result<()> {
        let plain = (!self.has_colors).then(|| strip_str(text).to_string());
        let written = self.stream.write_all(plain.as_deref().unwrap_or(text).as_bytes());
        self.note_closed(written)
    }
}

impl Painted for File {
    fn write_painted(&mut self, text: &str) -> io::Result<()> {
        self.write_all(strip_str(text).to_string().as_bytes())
    }
}

impl<'a> Output<'a> {
    /// Wraps `stream`.
    pub fn new(stream: &'a mut dyn Write) -> Self {
        Self { stream, is_closed: false, is_text: false, has_colors: false }
    }

    /// Wraps a stream for which everything written is [made printable](printable_lines).
    pub fn text(stream: &'a mut dyn Write) -> Self {
        Self { is_text: true, ..Self::new(stream) }
    }

    /// Returns whether a write has failed because the reader has closed the pipe.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    fn note_closed<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        self.is_closed |= result.as_ref().is_err_and(is_closed_pipe);
        result
    }
}

impl Write for Output<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = if self.is_text {
            // Formatted text arrives in pieces of whole characters.
            self.stream.write_all(printable_lines(&String::from_utf8_lossy(bytes)).as_bytes()).map(|()| bytes.len())
        } else {
            self.stream.write(bytes)
        };
        self.note_closed(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.stream.flush();
        self.note_closed(flushed)
    }
}

/// Returns text without what a terminal would execute, with its line breaks. All text for people passes through here:
/// names in it come from recordings, symbols, imported events, files of settings, and other programs.
#[must_use]
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    let lines = || text.split('\n').map(printable);
    let is_printable = lines().all(|line| matches!(line, Cow::Borrowed(_)));
    if is_printable { text.into() } else { lines().collect::<Vec<_>>().join("\n").into() }
}

/// Returns whether an error means a closed pipe. Rust maps ERROR_BROKEN_PIPE, ERROR_NO_DATA and EPIPE to `BrokenPipe`,
/// but not ERROR_PIPE_NOT_CONNECTED. No other system has an error with its number.
fn is_closed_pipe(error: &io::Error) -> bool {
    error.kind() == ErrorKind::BrokenPipe || error.raw_os_error() == Some(win32::ERROR_PIPE_NOT_CONNECTED)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream that fails every write.
    struct Failing(fn() -> io::Error);

    impl Write for Failing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0())
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(self.0())
        }
    }

    #[test]
    fn a_closed_pipe_is_distinguished_from_a_full_disk() {
        let errors: [(fn() -> io::Error, bool); 4] = [
            (|| ErrorKind::BrokenPipe.into(), true),
            (|| io::Error::from_raw_os_error(233), true),
            (|| ErrorKind::StorageFull.into(), false),
            (|| ErrorKind::WriteZero.into(), false),
        ];
        for (error, is_closed) in errors {
            let mut stream = Failing(error);
            let mut output = Output::new(&mut stream);
            assert!(!output.is_closed());
            assert!(output.write(b"x").is_err());
            assert_eq!(output.is_closed(), is_closed, "{}", error());
            let mut output = Output::new(&mut stream);
            assert!(output.flush().is_err());
            assert_eq!(output.is_closed(), is_closed, "{}", error());
        }
    }

    #[test]
    fn text_for_people_has_line_breaks_and_nothing_that_a_terminal_executes() {
        let (mut plain, mut cleaned) = (Vec::new(), Vec::new());
        let text = "note: \u{1b}]0;title\u{7}\r\n  \u{9b}31mred\n\n";
        write!(Output::new(&mut plain), "{text}").unwrap();
        write!(Output::text(&mut cleaned), "{text}").unwrap();
        assert_eq!(
            [plain, cleaned].map(|bytes| String::from_utf8(bytes).unwrap()),
            [text, "note:  ]0;title  \n   31mred\n\n"]
        );
        assert!(matches!(printable_lines("two\nlines\n"), Cow::Borrowed(_)));
    }

    #[cfg(windows)]
    #[test]
    fn windows_has_three_errors_for_a_closed_pipe() {
        for code in [109, 232, 233] {
            assert!(is_closed_pipe(&io::Error::from_raw_os_error(code)), "{code}");
        }
    }
}
