//! The progress of reading a recording, on a terminal.

use std::io::{self, IsTerminal, Read, Seek, SeekFrom};
use std::time::{Duration, Instant};

use crate::status_line::StatusLine;

/// Time after which the progress is shown.
const PATIENCE: Duration = Duration::from_secs(1);

const MIB: f64 = 1024.0 * 1024.0;

/// Reads, and shows how far it is on standard error once that takes longer than a second. The line is updated in place,
/// and removed when dropped.
pub struct ReadProgress<R> {
    input: R,
    position: u64,
    length: u64,
    begun: Instant,
    /// Time and position of the last seek. Only what follows tells the speed.
    sought: (Instant, u64),
    is_watched: bool,
    line: Option<StatusLine>,
}

impl<R> ReadProgress<R> {
    /// Reads `length` bytes of `input`. The progress is only shown if standard error is a terminal and `is_watched`:
    /// the verb must not write to the terminal meanwhile.
    pub fn new(input: R, length: u64, is_watched: bool) -> Self {
        let is_watched = is_watched && io::stderr().is_terminal();
        let begun = Instant::now();
        Self { input, position: 0, length, begun, sought: (begun, 0), is_watched, line: None }
    }

    fn is_due(&self) -> bool {
        self.is_watched && self.begun.elapsed() >= PATIENCE
    }

    fn show(&mut self) {
        let (sought, start) = self.sought;
        let line = self.line.get_or_insert_with(StatusLine::on_stderr);
        line.show(|| text(self.position, self.length, self.position.saturating_sub(start), sought.elapsed()));
    }
}

/// Returns the line at `position` of `length` bytes, after `read` bytes have taken `elapsed`.
#[expect(clippy::cast_precision_loss, reason = "only a few digits are shown")]
fn text(position: u64, length: u64, read: u64, elapsed: Duration) -> String {
    let left = length.saturating_sub(position) as f64 * elapsed.as_secs_f64() / read.max(1) as f64;
    format!("read {:.1} of {:.1} MiB, {left:.0} s left", position as f64 / MIB, length as f64 / MIB)
}

impl<R: Read> Read for ReadProgress<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let length = self.input.read(bytes)?;
        self.position += length as u64;
        if self.is_due() {
            self.show();
        }
        Ok(length)
    }
}

impl<R: Seek> Seek for ReadProgress<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.position = self.input.seek(to)?;
        self.sought = (Instant::now(), self.position);
        Ok(self.position)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    const TEN_MIB: usize = 10 << 20;

    #[test]
    fn the_line_appears_after_a_second_and_only_if_watched() {
        for (is_watched, waited, is_due) in
            [(true, Duration::ZERO, false), (true, PATIENCE, true), (false, PATIENCE, false)]
        {
            let mut reader = ReadProgress::new([0; 2].as_slice(), 2, false);
            reader.is_watched = is_watched;
            reader.begun = Instant::now().checked_sub(waited).unwrap();
            assert_eq!(reader.is_due(), is_due, "{is_watched} {waited:?}");
        }
    }

    #[test]
    fn the_time_left_follows_from_the_bytes_since_the_last_seek() {
        let mut reader = ReadProgress::new(Cursor::new(vec![0; TEN_MIB]), TEN_MIB as u64, false);
        reader.seek(SeekFrom::Start(2 << 20)).unwrap();
        reader.read_exact(&mut vec![0; 2 << 20]).unwrap();
        let (position, read) = (reader.position, reader.position - reader.sought.1);
        assert_eq!(text(position, reader.length, read, Duration::from_secs(4)), "read 4.0 of 10.0 MiB, 12 s left");
        assert_eq!(text(0, 0, 0, Duration::ZERO), "read 0.0 of 0.0 MiB, 0 s left");
    }
}
