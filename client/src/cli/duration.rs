//! Durations as users type them: `5`, `5s`, `250ms`, `10us`.

use std::time::Duration;

/// The units and their length in nanoseconds. `s` is the last one, because it ends the others too.
const UNITS: [(&str, f64); 4] = [("ms", 1e6), ("us", 1e3), ("ns", 1.0), ("s", SECOND)];

/// Nanoseconds in a second, the unit of a number without one.
const SECOND: f64 = 1e9;

/// Nanoseconds in a millisecond.
const MILLISECOND: f64 = 1e6;

/// Parses a duration. A number without a unit is in seconds; it can have a decimal point.
pub fn parse(text: &str) -> Result<Duration, String> {
    parsed(text, SECOND).ok_or_else(|| format!("\"{text}\" is not a duration; write 5, 5s, 250ms or 10us"))
}

/// Parses a duration that is not zero.
pub fn nonzero(text: &str) -> Result<Duration, String> {
    match parse(text)? {
        Duration::ZERO => Err("the duration is zero; write 5, 5s, 250ms or 10us".to_owned()),
        duration => Ok(duration),
    }
}

/// Parses a duration for the options that perf has too: a number without a unit is in milliseconds.
pub fn milliseconds(text: &str) -> Result<Duration, String> {
    parsed(text, MILLISECOND)
        .ok_or_else(|| format!("\"{text}\" is not a duration; write 100 (milliseconds), 100ms or 5s"))
}

/// Returns the duration; `None` if the text is not one. `bare` is the unit of a number without one.
fn parsed(text: &str, bare: f64) -> Option<Duration> {
    let with_unit = UNITS.iter().find_map(|(unit, length)| Some((text.strip_suffix(unit)?, *length)));
    let (number, length) = with_unit.unwrap_or((text, bare));
    let is_number = number.starts_with(|first: char| first.is_ascii_digit())
        && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let number = number.parse().ok().filter(|_: &f64| is_number);
    number.and_then(|number| Duration::try_from_secs_f64(number * length / SECOND).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_without_a_unit_is_in_seconds() {
        for (text, nanoseconds) in [
            ("0", 0),
            ("5", 5_000_000_000),
            ("5s", 5_000_000_000),
            ("1.5", 1_500_000_000),
            ("0.25s", 250_000_000),
            ("250ms", 250_000_000),
            ("10us", 10_000),
            ("7ns", 7),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_nanos(nanoseconds)), "{text}");
        }
    }

    #[test]
    fn the_unit_of_a_number_without_one_can_be_the_millisecond() {
        for (text, microseconds) in [("5", 5_000), ("0.5", 500), ("5s", 5_000_000), ("250ms", 250_000), ("10us", 10)] {
            assert_eq!(milliseconds(text), Ok(Duration::from_micros(microseconds)), "{text}");
        }
        let wanted = "\"1k\" is not a duration; write 100 (milliseconds), 100ms or 5s";
        assert_eq!(milliseconds("1k"), Err(wanted.to_owned()));
    }

    #[test]
    fn anything_else_is_rejected() {
        for text in ["", "s", "ms", "-1", "+1", "1 s", "1m", "1k", "1h", "1e3", ".5", "inf", "NaN", "1.2.3", "5S"] {
            let wanted = format!("\"{text}\" is not a duration; write 5, 5s, 250ms or 10us");
            assert_eq!((parse(text), nonzero(text)), (Err(wanted.clone()), Err(wanted)));
        }
        assert!(parse("99999999999999999999999").is_err());
        assert!(parse("0ms").is_ok() && nonzero("0ms").is_err() && nonzero("1ns").is_ok());
    }
}
