//! What the bench did lately, for the failure of a test: programs with their exit codes, commands to the lab and to
//! probe.exe, and their answers.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The longest line, in characters.
const WIDTH: usize = 240;

/// Lines that are kept, and the fewest that are shown, however old they are.
const MOST: usize = 400;
const FEWEST: usize = 20;

/// What is older is shown only if there is little else.
const SHOWN: Duration = Duration::from_secs(1);

static LOG: Mutex<Log> = Mutex::new(Log(VecDeque::new()));

#[derive(Debug)]
struct Log(VecDeque<Entry>);

#[derive(Debug)]
struct Entry {
    /// When it happened the last time.
    time: Instant,
    line: String,
    /// How often it happened without anything else.
    times: u32,
}

/// Notes what happened.
pub fn note(line: &str) {
    LOG.lock().unwrap_or_else(PoisonError::into_inner).add(Instant::now(), line);
}

/// Returns what happened in the last second, one line each.
pub fn last_second() -> String {
    LOG.lock().unwrap_or_else(PoisonError::into_inner).before(Instant::now())
}

impl Log {
    fn add(&mut self, time: Instant, line: &str) {
        let short: String = line.trim_end().chars().take(WIDTH).collect();
        match self.0.back_mut() {
            // A test that waits asks for the same again and again.
            Some(last) if last.line == short => (last.time, last.times) = (time, last.times + 1),
            _ => self.0.push_back(Entry { time, line: short, times: 1 }),
        }
        if self.0.len() > MOST {
            self.0.pop_front();
        }
    }

    fn before(&self, now: Instant) -> String {
        let age = |entry: &Entry| now.saturating_duration_since(entry.time);
        let recent = self.0.iter().rev().take_while(|entry| age(entry) <= SHOWN).count().max(FEWEST);
        let shown = self.0.iter().skip(self.0.len().saturating_sub(recent));
        let line = |entry: &Entry| {
            let times = if entry.times > 1 { format!(" ({} times)", entry.times) } else { String::new() };
            format!("{:>9.3} s  {}{times}\n", -age(entry).as_secs_f64(), entry.line)
        };
        shown.map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_second_is_shown_and_otherwise_the_last_lines() {
        let begun = Instant::now();
        let mut log = Log(VecDeque::new());
        for number in 0..500_u32 {
            log.add(begun + Duration::from_millis(10) * number, &format!("line {number}\n"));
        }
        let at = begun + Duration::from_secs(5);
        let shown = log.before(at);
        assert_eq!(shown.lines().count(), 100, "{shown}");
        assert!(shown.starts_with("   -1.000 s  line 400\n") && shown.ends_with("   -0.010 s  line 499\n"), "{shown}");
        assert_eq!(log.before(at + Duration::from_mins(1)).lines().count(), FEWEST);
        assert_eq!(log.0.len(), MOST);
        for _ in 0..3 {
            log.add(at, "asked");
        }
        log.add(at, &"x".repeat(1_000));
        let shown = log.before(at);
        assert!(shown.contains("   -0.000 s  asked (3 times)\n") || shown.contains("    0.000 s  asked (3 times)\n"));
        assert!(shown.lines().all(|line| line.len() < WIDTH + 20), "{shown}");
    }
}
