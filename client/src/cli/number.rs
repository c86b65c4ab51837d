//! Numbers in the arguments of options.

use std::ops::RangeInclusive;

pub use halprof::text::number::{large, parse};

/// Parses a number of rows.
pub fn rows(text: &str) -> Result<usize, String> {
    let number = parse(text)?;
    usize::try_from(number).map_err(|_| format!("{text} is more than {}", usize::MAX))
}

/// Parses a number of up to 64 bits that is not zero.
pub fn nonzero(text: &str) -> Result<u64, String> {
    match large(text)? {
        0 => Err("the number must be at least 1".to_owned()),
        number => Ok(number),
    }
}

/// Returns a parser of numbers in a range.
pub fn within(range: RangeInclusive<u32>) -> impl Fn(&str) -> Result<u32, String> + Clone + Send + Sync {
    move |text| match parse(text)? {
        number if range.contains(&number) => Ok(number),
        _ => Err(format!("the number must be from {} to {}", range.start(), range.end())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_is_not_zero_can_have_64_bits() {
        assert_eq!((nonzero("20M"), nonzero("0")), (Ok(20_000_000), Err("the number must be at least 1".to_owned())));
    }

    #[test]
    fn a_range_includes_both_of_its_ends() {
        let parser = within(2..=4_000);
        for (text, number) in [("2", 2), ("0x10", 16), ("4k", 4_000)] {
            assert_eq!(parser(text), Ok(number));
        }
        for text in ["1", "4001", "5k"] {
            assert_eq!(parser(text), Err("the number must be from 2 to 4000".to_owned()));
        }
        assert!(parser("x").is_err());
    }
}
