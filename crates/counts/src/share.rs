//! Shares of lost samples and of lost time, from 0 to 1.

use terminal::format::real;

/// Returns the share of lost samples, where `there` samples were not lost.
#[must_use]
pub fn lost(lost: u64, there: u64) -> f64 {
    if lost == 0 { 0.0 } else { real(lost) / (real(lost) + real(there)) }
}

/// Returns the share of the time of `processors` CPUs that their pauses took, `paused_seconds` in all.
#[must_use]
pub fn paused(paused_seconds: f64, elapsed_seconds: f64, processors: usize) -> f64 {
    let time = elapsed_seconds * real(processors as u64);
    if paused_seconds > 0.0 { (paused_seconds / time).min(1.0) } else { 0.0 }
}

/// Returns the share of `part` in `whole`; 0 if there is nothing.
#[must_use]
pub fn of(part: u64, whole: u64) -> f64 {
    if whole > 0 { real(part) / real(whole) } else { 0.0 }
}

/// Formats a share in percent. Only 0 is shown as 0.0 %, and only 1 as 100.0 %.
#[must_use]
pub fn percent(share: f64) -> String {
    const TENTH: f64 = 0.001;
    if share > 0.0 && share < TENTH {
        return "<0.1 %".to_owned();
    }
    let shown = if share < 1.0 { share.min(1.0 - TENTH) } else { share };
    format!("{:.1} %", shown * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lost_share_is_relative_to_lost_and_delivered_samples() {
        for (number, there, share) in [(0, 0, 0.0), (0, 9, 0.0), (1, 3, 0.25), (7, 0, 1.0), (u64::MAX, u64::MAX, 0.5)] {
            assert!((lost(number, there) - share).abs() < 1e-9, "{number} of {there}");
        }
    }

    #[test]
    fn the_paused_share_is_relative_to_the_time_of_all_processors() {
        for (seconds, elapsed, processors, share) in [
            (0.0, 1.0, 1, 0.0),
            (0.5, 1.0, 1, 0.5),
            (0.5, 1.0, 2, 0.25),
            (0.5, 2.0, 2, 0.125),
            (2.0, 1.0, 1, 1.0),
            (0.0, 0.0, 0, 0.0),
            (1.0, 0.0, 1, 1.0),
        ] {
            assert!((paused(seconds, elapsed, processors) - share).abs() < 1e-9, "{seconds} {elapsed} {processors}");
        }
    }

    #[test]
    fn only_zero_is_shown_as_0_and_only_one_as_100_percent() {
        for (share, text) in [
            (0.0, "0.0 %"),
            (1e-9, "<0.1 %"),
            (0.001, "0.1 %"),
            (0.125, "12.5 %"),
            (0.99999, "99.9 %"),
            (1.0, "100.0 %"),
        ] {
            assert_eq!(percent(share), text);
        }
    }
}
