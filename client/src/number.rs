//! Numbers and durations as users type them, everywhere in the command line: `100k`, `2M`, `0x10`; `5`, `5s`, `250ms`.

use std::ops::RangeInclusive;
use std::time::Duration;

/// The time that a duration without a unit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bare {
    /// As for most options.
    Seconds,
    /// As for `-I` and `-D` of perf stat.
    Milliseconds,
}

/// The units of a duration, and how many of each a second has. A unit that ends with another one comes before it.
const UNITS: [(&str, f64); 3] = [("us", 1e6), ("ms", 1e3), ("s", 1.0)];

/// Parses a number that is hexadecimal after `0x`, or can end in k (thousands), M (millions) or G (thousands of
/// millions), in any case.
pub fn parse(text: &str) -> Result<u32, String> {
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return whole(text, digits, 16, 1);
    }
    let (digits, factor) = match text.char_indices().next_back() {
        Some((end, letter)) if letter.is_ascii_alphabetic() => {
            let factor = match letter.to_ascii_lowercase() {
                'k' => 1_000,
                'm' => 1_000_000,
                'g' => 1_000_000_000,
                _ => return Err(no_number(text)),
            };
            (text.get(..end).unwrap_or_default(), factor)
        }
        _ => (text, 1),
    };
    whole(text, digits, 10, factor)
}

/// Multiplies a number without its prefix and its last letter.
fn whole(text: &str, digits: &str, radix: u32, factor: u32) -> Result<u32, String> {
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
        return Err(no_number(text));
    }
    let number = u32::from_str_radix(digits, radix).ok().and_then(|number| number.checked_mul(factor));
    number.ok_or_else(|| format!("{text} is more than {}", u32::MAX))
}

fn no_number(text: &str) -> String {
    format!("\"{text}\" is not a number; write 100000, 100k or 0x10")
}

/// Parses a number of rows.
pub fn rows(text: &str) -> Result<usize, String> {
    let number = parse(text)?;
    usize::try_from(number).map_err(|_| format!("{text} is more than {}", usize::MAX))
}

/// Returns a parser of numbers in a range.
pub fn within(range: RangeInclusive<u32>) -> impl Fn(&str) -> Result<u32, String> + Clone + Send + Sync {
    move |text| match parse(text)? {
        number if range.contains(&number) => Ok(number),
        _ => Err(format!("{text} is not from {} to {}", range.start(), range.end())),
    }
}

/// Parses a number of seconds, or of milliseconds or microseconds with their unit behind it: `5`, `0.5s`, `250ms`.
pub fn duration(text: &str) -> Result<Duration, String> {
    duration_in(Bare::Seconds, text)
}

/// Parses a duration. Without a unit it counts what `bare` says.
pub fn duration_in(bare: Bare, text: &str) -> Result<Duration, String> {
    let example = if bare == Bare::Seconds { "5 or 0.5 (seconds)" } else { "250 (milliseconds)" };
    let wrong = || format!("\"{text}\" is not a duration; write {example}, 5s or 250ms");
    let unit = UNITS.iter().find_map(|(unit, per_second)| Some((text.strip_suffix(unit)?, *per_second)));
    let (number, per_second) = unit.unwrap_or((text, if bare == Bare::Seconds { 1.0 } else { 1e3 }));
    if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return Err(wrong());
    }
    let seconds = number.parse::<f64>().map_err(|_| wrong())? / per_second;
    Duration::try_from_secs_f64(seconds).map_err(|_| format!("{text} is too long"))
}

/// Parses a duration that is not zero.
pub fn positive_duration(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err(format!("{text} is no time at all; write 5 or 0.5 (seconds), 5s or 250ms")),
        duration => Ok(duration),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_multiplies_by_its_power_of_a_thousand() {
        for (text, number) in [
            ("0", 0),
            ("65536", 65_536),
            ("100k", 100_000),
            ("100K", 100_000),
            ("2M", 2_000_000),
            ("2m", 2_000_000),
            ("4G", 4_000_000_000),
            ("4294967295", u32::MAX),
            ("0x10", 16),
            ("0XfF", 255),
            ("0xFFFFFFFF", u32::MAX),
        ] {
            assert_eq!(parse(text), Ok(number), "{text}");
        }
    }

    #[test]
    fn an_invalid_or_too_large_number_is_rejected() {
        for text in
            ["", "k", "1x", "1kk", "-1", "+1", "1.5k", " 1", "1 k", "0x", "0xg", "0x1k", "0x+1", "\u{e9}", "1\u{e9}"]
        {
            assert_eq!(parse(text), Err(format!("\"{text}\" is not a number; write 100000, 100k or 0x10")));
        }
        for text in ["5G", "4294967296", "4294968k", "99999999999", "0x100000000"] {
            assert_eq!(parse(text), Err(format!("{text} is more than 4294967295")));
        }
    }

    #[test]
    fn a_range_includes_both_of_its_ends() {
        let parser = within(2..=4_000);
        for (text, number) in [("2", 2), ("0x10", 16), ("4k", 4_000)] {
            assert_eq!(parser(text), Ok(number));
        }
        for text in ["1", "4001", "5k"] {
            assert_eq!(parser(text), Err(format!("{text} is not from 2 to 4000")));
        }
        assert!(parser("x").is_err());
    }

    #[test]
    fn a_duration_has_a_unit_or_that_of_its_option() {
        for (text, seconds, milliseconds) in [
            ("5", 5_000_000, 5_000),
            ("0.5", 500_000, 500),
            ("5s", 5_000_000, 5_000_000),
            ("2.5s", 2_500_000, 2_500_000),
            ("250ms", 250_000, 250_000),
            ("100us", 100, 100),
            ("0", 0, 0),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_micros(seconds)), "{text}");
            assert_eq!(duration_in(Bare::Milliseconds, text), Ok(Duration::from_micros(milliseconds)), "{text}");
        }
    }

    #[test]
    fn an_invalid_duration_is_rejected_with_what_to_write() {
        for text in ["", "s", "ms", "5m", "5min", "1k", "-1", "+1", "1e3", "inf", "NaN", "5 s", ".", "1.2.3", "5S"] {
            let wanted = format!("\"{text}\" is not a duration; write 5 or 0.5 (seconds), 5s or 250ms");
            assert_eq!(duration(text), Err(wanted));
            let wanted = format!("\"{text}\" is not a duration; write 250 (milliseconds), 5s or 250ms");
            assert_eq!(duration_in(Bare::Milliseconds, text), Err(wanted));
        }
        assert_eq!(duration("99999999999999999999"), Err("99999999999999999999 is too long".to_owned()));
        assert!(positive_duration("0ms").is_err_and(|error| error.starts_with("0ms is no time at all; ")));
        assert_eq!(positive_duration("1ms"), Ok(Duration::from_millis(1)));
    }
}
