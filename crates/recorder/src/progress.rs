//! The progress of a recording, on a terminal.

use std::time::{Duration, Instant};

use counts::record_counts::RecordCounts;
use terminal::format::grouped;
use terminal::status_line::StatusLine;

/// A line on standard error that is updated in place, and removed when dropped.
#[derive(Debug)]
pub struct Progress {
    begun: Instant,
    line: Option<StatusLine>,
}

impl Progress {
    /// Creates the line, hidden unless standard error, a terminal, is watched.
    pub fn new(is_watched: bool) -> Self {
        Self { begun: Instant::now(), line: is_watched.then(StatusLine::on_stderr) }
    }

    /// Updates the line.
    pub fn show(&mut self, record_counts: &RecordCounts) {
        if let Some(line) = &mut self.line {
            line.show(|| text(record_counts, self.begun.elapsed()));
        }
    }
}

/// Returns time, samples, samples per second, losses, pauses and storms.
fn text(record_counts: &RecordCounts, elapsed: Duration) -> String {
    let (samples, seconds) = (record_counts.samples, elapsed.as_secs());
    let rate = u128::from(samples) * 1_000_000 / elapsed.as_micros().max(1);
    let (minutes, rate) = (seconds / 60, grouped(u64::try_from(rate).unwrap_or(u64::MAX)));
    let time = format!("{:02}:{:02}:{:02}", minutes / 60, minutes % 60, seconds % 60);
    format!("{time}  {} samples, {rate}/s{}", grouped(samples), problems(record_counts))
}

fn problems(record_counts: &RecordCounts) -> String {
    let problems = [
        (record_counts.lost, "lost"),
        (record_counts.pauses, "pauses (budget spent)"),
        (record_counts.silences, "stopped by a storm"),
        (record_counts.disconnections, "without interrupt"),
    ];
    let nonzero = problems.iter().filter(|(number, _)| *number > 0);
    nonzero.map(|(number, what)| format!(", {} {what}", grouped(*number))).collect::<Vec<_>>().concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_has_the_rate_and_only_nonzero_losses_pauses_and_storms() {
        let record_counts = RecordCounts { samples: 12_345, ..RecordCounts::default() };
        let five = Duration::from_secs(5);
        for (record_counts, elapsed, wanted) in [
            (record_counts, five, "00:00:05  12,345 samples, 2,469/s"),
            (record_counts, Duration::from_secs(36_754), "10:12:34  12,345 samples, 0/s"),
            (RecordCounts::default(), Duration::ZERO, "00:00:00  0 samples, 0/s"),
            (RecordCounts { lost: 6_000, ..record_counts }, five, "00:00:05  12,345 samples, 2,469/s, 6,000 lost"),
            (
                RecordCounts { lost: 6, pauses: 7, ..record_counts },
                five,
                "00:00:05  12,345 samples, 2,469/s, 6 lost, 7 pauses (budget spent)",
            ),
            (
                RecordCounts { silences: 2, ..record_counts },
                five,
                "00:00:05  12,345 samples, 2,469/s, 2 stopped by a storm",
            ),
        ] {
            assert_eq!(text(&record_counts, elapsed), wanted);
        }
    }
}
