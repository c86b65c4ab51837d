//! The progress of a recording, on a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use counts::record_counts::RecordCounts;
use terminal::format::grouped;

/// Time, samples, samples per second, losses, pauses and storms.
const LINE: &str = "{elapsed_precise}  {human_pos} samples, {per_sec:0}{msg}";

/// A line on standard error that is updated in place, and removed when dropped.
#[derive(Debug)]
pub struct Progress(ProgressBar);

impl Progress {
    /// Creates the line, hidden unless standard error is watched.
    pub fn new(is_watched: bool) -> Self {
        let target = if is_watched { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target);
        let style = ProgressStyle::with_template(LINE);
        Self(style.map_or_else(|_| bar.clone(), |style| bar.clone().with_style(style)))
    }

    /// Updates the line.
    pub fn show(&self, record_counts: &RecordCounts) {
        self.0.set_message(problems(record_counts));
        self.0.set_position(record_counts.samples);
        self.0.tick();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
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
    use indicatif::InMemoryTerm;

    use super::*;

    #[test]
    fn the_line_is_ascii_and_shows_only_nonzero_losses_pauses_and_storms() {
        let record_counts = RecordCounts::default();
        for (record_counts, end) in [
            (RecordCounts { samples: 12_345, lost: 0, ..record_counts }, ""),
            (RecordCounts { samples: 12_345, lost: 6_000, ..record_counts }, ", 6,000 lost"),
            (
                RecordCounts { samples: 12_345, lost: 6, pauses: 7, ..record_counts },
                ", 6 lost, 7 pauses (budget spent)",
            ),
            (RecordCounts { samples: 12_345, silences: 2, ..record_counts }, ", 2 stopped by a storm"),
        ] {
            let terminal = InMemoryTerm::new(5, 80);
            let progress = Progress::new(false);
            progress.0.set_draw_target(ProgressDrawTarget::term_like(Box::new(terminal.clone())));
            progress.show(&record_counts);
            let line = terminal.contents();
            assert!(line.starts_with("00:00:0") && line.contains("  12,345 samples, "), "{line}");
            assert!(line.is_ascii() && line.ends_with(&format!("/s{end}")), "{line}");
            drop(progress);
            assert_eq!(terminal.contents(), "");
        }
    }
}
