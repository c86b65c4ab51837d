//! Lists of processors: `0,2-3`.

use std::fmt::Write;
use std::str::FromStr;

use protocol::{PROCESSOR_WORDS, ProcessorSet};

/// Highest processor number of the protocol.
const LAST: u32 = 2047;
const _: () = assert!(LAST as usize + 1 == PROCESSOR_WORDS * 64);

/// The argument of `-C`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessorList(pub ProcessorSet);

impl FromStr for ProcessorList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut set = ProcessorSet::EMPTY;
        for part in text.split(',') {
            let (first, last) = match part.split_once('-') {
                Some((first, last)) => (number(first)?, number(last)?),
                None => (number(part)?, number(part)?),
            };
            if first > last {
                return Err(format!("{part} ends before it begins"));
            }
            for processor in first..=last {
                set.insert(processor);
            }
        }
        Ok(Self(set))
    }
}

fn number(text: &str) -> Result<u32, String> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(number) if digits && number <= LAST => Ok(number),
        _ => Err(format!("\"{text}\" is not a CPU number; write 0,2-3 with numbers from 0 to {LAST}")),
    }
}

/// Formats ascending numbers as a list: `0-1,4`.
pub fn ranges(numbers: impl IntoIterator<Item = u32>) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let mut text = String::new();
    for (first, last) in runs {
        let comma = if text.is_empty() { "" } else { "," };
        // Writing to a `String` cannot fail.
        let _ = if first == last { write!(text, "{comma}{first}") } else { write!(text, "{comma}{first}-{last}") };
    }
    text
}

/// Formats ascending CPU numbers with their noun: `CPU 0`, `CPUs 0-1,4`.
pub fn named(numbers: impl IntoIterator<Item = u32>) -> String {
    let text = ranges(numbers);
    let noun = if text.contains([',', '-']) { "CPUs" } else { "CPU" };
    format!("{noun} {text}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_list_names_each_processor_and_each_range_inclusively() {
        for (text, members) in [
            ("0", &[0][..]),
            ("0,2-3", &[0, 2, 3]),
            ("3,1,2", &[1, 2, 3]),
            ("5-5", &[5]),
            ("1-2,2-3", &[1, 2, 3]),
            ("2047", &[2047]),
        ] {
            let list: ProcessorList = text.parse().unwrap();
            assert!(list.0.iter().eq(members.iter().copied()), "{text}");
        }
    }

    #[test]
    fn an_invalid_list_is_rejected() {
        for text in
            ["", ",", "0,", "a", "-1", "1-", "3-1", "2048", "0-2048", "+1", " 1", "1--2", "1-2-3", "99999999999"]
        {
            assert!(text.parse::<ProcessorList>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_single_processor_has_a_singular_noun() {
        assert_eq!(named([1]), "CPU 1");
        assert_eq!(named([0, 1]), "CPUs 0-1");
        assert_eq!(named([0, 2]), "CPUs 0,2");
    }

    proptest! {
        #[test]
        fn a_printed_list_parses_to_the_same_set(numbers in prop::collection::btree_set(0_u32..2048, 1..40)) {
            let list: ProcessorList = ranges(numbers.iter().copied()).parse().unwrap();
            prop_assert!(list.0.iter().eq(numbers));
        }
    }
}
