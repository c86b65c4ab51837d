//! Durations as users type them: `5s`, `250ms`, `10us`, `1m`.

use std::time::Duration;

/// The units and their length in nanoseconds. `s` is behind the units that end with it.
const UNITS: [(&str, f64); 6] = [("ms", MILLISECOND), ("us", 1e3), ("ns", 1.0), ("s", 1e9), ("m", 60e9), ("h", 3600e9)];

/// Nanoseconds in a millisecond, the unit of a number without one in perf's options.
const MILLISECOND: f64 = 1e6;

/// Parses a duration, which has a unit and can have a decimal point. Zero needs no unit.
pub fn parse(text: &str) -> Result<Duration, String> {
    match (milliseconds(text), text.ends_with(|last: char| last.is_ascii_alphabetic())) {
        (Ok(Duration::ZERO), _) => Ok(Duration::ZERO),
        (Ok(_), false) => Err(format!("{text} has no unit; write {text}s or {text}ms")),
        (Ok(duration), true) => Ok(duration),
        (Err(_), _) => Err(format!("\"{text}\" is not a duration; write 5s, 250ms, 10us or 1m")),
    }
}

/// Parses a duration that is not zero.
pub fn nonzero(text: &str) -> Result<Duration, String> {
    match parse(text)? {
        Duration::ZERO => Err("the duration is zero; write 5s, 250ms, 10us or 1m".to_owned()),
        duration => Ok(duration),
    }
}

/// Parses a duration for the options that perf has too: a number without a unit is in milliseconds.
pub fn milliseconds(text: &str) -> Result<Duration, String> {
    let with_unit = UNITS.iter().find_map(|(unit, length)| Some((text.strip_suffix(unit)?, *length)));
    let (number, length) = with_unit.unwrap_or((text, MILLISECOND));
    let is_number = number.starts_with(|first: char| first.is_ascii_digit())
        && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let number = number.parse().ok().filter(|_: &f64| is_number);
    let duration = number.and_then(|number| Duration::try_from_secs_f64(number * length / 1e9).ok());
    duration.ok_or_else(|| format!("\"{text}\" is not a duration; write 100 (milliseconds), 100ms or 5s"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_a_unit() {
        for (text, nanoseconds) in [
            ("0", 0),
            ("5s", 5_000_000_000),
            ("0.25s", 250_000_000),
            ("250ms", 250_000_000),
            ("10us", 10_000),
            ("7ns", 7),
            ("1m", 60_000_000_000),
            ("1.5h", 5_400_000_000_000),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_nanos(nanoseconds)), "{text}");
        }
    }

    /// A number without a unit means milliseconds or nothing.
    #[test]
    fn a_number_without_a_unit_is_refused_or_in_milliseconds() {
        for text in ["5", "500", "0.5", "1."] {
            let wanted = format!("{text} has no unit; write {text}s or {text}ms");
            assert_eq!((parse(text), nonzero(text)), (Err(wanted.clone()), Err(wanted)), "{text}");
        }
        for (text, microseconds) in [("5", 5_000), ("0.5", 500), ("5s", 5_000_000), ("250ms", 250_000), ("10us", 10)] {
            assert_eq!(milliseconds(text), Ok(Duration::from_micros(microseconds)), "{text}");
        }
        let wanted = "\"1k\" is not a duration; write 100 (milliseconds), 100ms or 5s";
        assert_eq!(milliseconds("1k"), Err(wanted.to_owned()));
    }

    #[test]
    fn anything_else_is_rejected() {
        for text in ["", "s", "ms", "m", "-1", "+1", "1 s", "1M", "1k", "1d", "1e3", ".5", "inf", "NaN", "1.2.3", "5S"]
        {
            let wanted = format!("\"{text}\" is not a duration; write 5s, 250ms, 10us or 1m");
            assert_eq!((parse(text), nonzero(text)), (Err(wanted.clone()), Err(wanted)));
        }
        assert!(parse("99999999999999999999999s").is_err());
        assert!(parse("0ms").is_ok() && nonzero("0ms").is_err() && nonzero("1ns").is_ok());
    }
}
