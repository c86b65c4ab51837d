//! Counts that other programs disturbed: what they changed, and what to do.

use std::fmt::Write;

use halprof::text::register;
use protocol::CountRecord;
use recording::Disturbed;
use serde::Serialize;

use terminal::format::{grouped, seconds};

/// The mark of a disturbed count in tables.
pub const MARK: &str = "*";

/// Maximum number of disturbed counts that are listed.
const MAX_LISTED: usize = 4;

/// The first register of a count that was found changed.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct Disturbance {
    /// Name and number of the register.
    pub register: String,
    /// Value that was found, in hexadecimal.
    pub found: String,
    /// Value that was expected, in hexadecimal; of a counter, the smallest possible one.
    pub expected: String,
    /// Time from the start until it was found.
    pub found_after_seconds: f64,
    /// Programs that are known to write to this register.
    pub known_writers: &'static str,
    #[serde(skip)]
    is_counter: bool,
    #[serde(skip)]
    is_zero: bool,
}

impl Disturbance {
    /// Returns the disturbance of a count, if it is marked.
    pub fn of(count: &CountRecord) -> Option<Self> {
        recorded(count).as_ref().map(Self::of_recorded)
    }

    /// Returns the disturbance of a count in a recording.
    #[must_use]
    pub fn of_recorded(disturbed: &Disturbed) -> Self {
        let Disturbed { register, interface, found, expected, at } = *disturbed;
        Self {
            register: register::named(interface, register),
            found: format!("{found:#x}"),
            expected: format!("{expected:#x}"),
            found_after_seconds: seconds(at),
            known_writers: register::known_writers(interface, register),
            is_counter: register::is_counter(interface, register),
            is_zero: found == 0,
        }
    }
}

/// Returns the disturbance of a count as it is recorded.
#[must_use]
pub fn recorded(count: &CountRecord) -> Option<Disturbed> {
    let CountRecord { disturbed_register, interface, disturbed_found, disturbed_expected, disturbed_at, .. } = *count;
    (disturbed_register != 0).then_some(Disturbed {
        register: disturbed_register,
        interface,
        found: disturbed_found,
        expected: disturbed_expected,
        at: disturbed_at,
    })
}

/// Returns the text for disturbed counts, each with the name of its event and its processor; `None` if there are none.
pub fn note<'a>(counts: impl Iterator<Item = (String, u32, &'a Disturbance)>) -> Option<String> {
    let head = format!("{MARK} disturbed: another program changed registers of these counts, which are wrong");
    described(head, counts)
}

/// Returns the warning for disturbed samples, as [`note`].
pub fn warning<'a>(counts: impl Iterator<Item = (String, u32, &'a Disturbance)>) -> Option<String> {
    described("warning: another program changed registers, and samples are missing or wrong".to_owned(), counts)
}

fn described<'a>(head: String, counts: impl Iterator<Item = (String, u32, &'a Disturbance)>) -> Option<String> {
    let all: Vec<_> = counts.collect();
    let mut text = head;
    // Writing to a `String` cannot fail.
    for (event, processor, disturbance) in all.iter().take(MAX_LISTED) {
        let Disturbance { register, found, expected, found_after_seconds, is_counter, .. } = disturbance;
        let least = if *is_counter { "at least " } else { "" };
        let _ = write!(
            text,
            "\n  {event} on CPU {processor}: {register}\n    had {found} instead of {least}{expected} \
             after {found_after_seconds:.3} s"
        );
    }
    if let more @ 1.. = all.len().saturating_sub(MAX_LISTED) {
        let _ = write!(text, "\n  and {} more (--json lists all)", grouped(more as u64));
    }
    let mut writers: Vec<&str> = all.iter().map(|(.., disturbance)| disturbance.known_writers).collect();
    writers.sort_unstable();
    writers.dedup();
    for one in writers {
        let _ = write!(text, "\n  known to do this: {one}");
    }
    if all.iter().any(|(.., disturbance)| disturbance.is_zero) {
        text.push_str("\n  zero can also mean that a processor lost its registers in deep idle");
    }
    text.push_str("\n  try: end these programs, then run the command again");
    (!all.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fake_system::{count, disturbed};

    #[test]
    fn only_marked_counts_are_disturbed() {
        assert_eq!(Disturbance::of(&count(2, 0, 1, 1)), None);
        assert_eq!(note([].into_iter()), None);
        let found = Disturbance::of(&disturbed(count(2, 0, 1, 1))).unwrap();
        assert_eq!(found.register, "IA32_FIXED_CTR_CTRL (MSR 0x38d)");
        assert_eq!((found.found.as_str(), found.expected.as_str()), ("0x333", "0x2"));
    }

    #[test]
    fn the_note_names_register_values_and_programs_in_80_columns() {
        let one = Disturbance::of(&disturbed(count(2, 0, 1, 1))).unwrap();
        let many = (0..6).map(|processor| ("BranchMispredictions:u".to_owned(), 2_000 + processor, &one));
        let text = note(many).unwrap();
        assert_eq!(
            text,
            "* disturbed: another program changed registers of these counts, which are wrong\n  \
             BranchMispredictions:u on CPU 2000: IA32_FIXED_CTR_CTRL (MSR 0x38d)\n    \
             had 0x333 instead of 0x2 after 0.500 s\n  \
             BranchMispredictions:u on CPU 2001: IA32_FIXED_CTR_CTRL (MSR 0x38d)\n    \
             had 0x333 instead of 0x2 after 0.500 s\n  \
             BranchMispredictions:u on CPU 2002: IA32_FIXED_CTR_CTRL (MSR 0x38d)\n    \
             had 0x333 instead of 0x2 after 0.500 s\n  \
             BranchMispredictions:u on CPU 2003: IA32_FIXED_CTR_CTRL (MSR 0x38d)\n    \
             had 0x333 instead of 0x2 after 0.500 s\n  \
             and 2 more (--json lists all)\n  \
             known to do this: HWiNFO, Core Temp, OCCT, ThrottleStop, Intel PCM\n  \
             try: end these programs, then run the command again"
        );
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
    }

    #[test]
    fn a_counter_says_at_least_and_a_zero_that_it_may_be_deep_idle() {
        let lost = CountRecord { disturbed_register: 0x309, disturbed_found: 0, ..disturbed(count(2, 0, 1, 1)) };
        let text = note([("TotalIssues".to_owned(), 0, &Disturbance::of(&lost).unwrap())].into_iter()).unwrap();
        assert!(text.contains("had 0x0 instead of at least 0x2 after 0.500 s"), "{text}");
        assert!(text.contains("lost its registers in deep idle"), "{text}");
    }
}
