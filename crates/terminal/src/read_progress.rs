//! The progress of reading a recording, on a terminal.

use std::io::{self, IsTerminal, Read, Seek, SeekFrom};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Bytes that were read, of how many, and the time that is left.
const LINE: &str = "read {bytes} of {total_bytes}, {eta} left";

/// Time after which the progress is shown.
const PATIENCE: Duration = Duration::from_secs(1);

/// Reads, and shows how far it is on standard error once that takes longer than a second. The line is updated in place,
/// and removed when dropped.
pub struct ReadProgress<R> {
    input: R,
    bar: ProgressBar,
    begun: Instant,
    /// What shows the line, until it does.
    target: Option<fn() -> ProgressDrawTarget>,
}

impl<R> ReadProgress<R> {
    /// Reads `length` bytes of `input`. The progress is only shown if standard error is a terminal and `is_watched`:
    /// the verb must not write to the terminal meanwhile.
    pub fn new(input: R, length: u64, is_watched: bool) -> Self {
        let is_shown = is_watched && io::stderr().is_terminal();
        Self::on(input, length, is_shown.then_some(ProgressDrawTarget::stderr))
    }

    fn on(input: R, length: u64, target: Option<fn() -> ProgressDrawTarget>) -> Self {
        let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::hidden());
        let style = ProgressStyle::with_template(LINE);
        let bar = style.map_or_else(|_| bar.clone(), |style| bar.clone().with_style(style));
        Self { input, bar, begun: Instant::now(), target }
    }
}

impl<R: Read> Read for ReadProgress<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let length = self.input.read(bytes)?;
        self.bar.inc(length as u64);
        if let Some(target) = self.target.take_if(|_| self.begun.elapsed() >= PATIENCE) {
            self.bar.set_draw_target(target());
        }
        Ok(length)
    }
}

impl<R: Seek> Seek for ReadProgress<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = self.input.seek(to)?;
        self.bar.set_position(position);
        Ok(position)
    }
}

impl<R> Drop for ReadProgress<R> {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use indicatif::InMemoryTerm;

    use super::*;

    static TERMINAL: LazyLock<InMemoryTerm> = LazyLock::new(|| InMemoryTerm::new(5, 80));

    #[test]
    fn the_line_appears_after_a_second_and_disappears_at_the_end() {
        let bytes = vec![0; 4 << 20];
        let target = || ProgressDrawTarget::term_like(Box::new(TERMINAL.clone()));
        let mut reader = ReadProgress::on(bytes.as_slice(), bytes.len() as u64, Some(target));
        let mut part = vec![0; 1 << 20];
        reader.read_exact(&mut part).unwrap();
        assert_eq!(TERMINAL.contents(), "");
        reader.begun = Instant::now().checked_sub(PATIENCE).unwrap();
        reader.read_exact(&mut part).unwrap();
        reader.bar.tick();
        let line = TERMINAL.contents();
        assert!(line.starts_with("read 2.00 MiB of 4.00 MiB, ") && line.ends_with(" left"), "{line}");
        drop(reader);
        assert_eq!(TERMINAL.contents(), "");
    }
}
