//! Numbers as users type them: `100k`, `2M`, `0x10`.

/// Parses a number that is hexadecimal after `0x`, or can end in k (thousands), M (millions) or G (thousands of
/// millions), in any case.
///
/// # Errors
/// If the text is no number, or one above [`u32::MAX`].
pub fn parse(text: &str) -> Result<u32, String> {
    let number = value(text)?.and_then(|number| u32::try_from(number).ok());
    number.ok_or_else(|| too_large(text, u32::MAX.into()))
}

/// Parses a number of up to 64 bits.
///
/// # Errors
/// If the text is no number, or one above [`u64::MAX`].
pub fn large(text: &str) -> Result<u64, String> {
    value(text)?.ok_or_else(|| too_large(text, u64::MAX))
}

/// Returns the value of a number; `None` if it has more than 64 bits.
fn value(text: &str) -> Result<Option<u64>, String> {
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
fn whole(text: &str, digits: &str, radix: u32, factor: u64) -> Result<Option<u64>, String> {
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
        return Err(no_number(text));
    }
    Ok(u64::from_str_radix(digits, radix).ok().and_then(|number| number.checked_mul(factor)))
}

fn no_number(text: &str) -> String {
    format!("\"{text}\" is not a number; write 100000, 100k or 0x10")
}

fn too_large(text: &str, maximum: u64) -> String {
    format!("{text} is more than {maximum}")
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
    fn a_large_number_can_have_64_bits() {
        for (text, bytes) in [("10M", 10_000_000), ("5G", 5_000_000_000), ("18446744073709551615", u64::MAX)] {
            assert_eq!(large(text), Ok(bytes), "{text}");
        }
        for text in ["18446744073709551616", "18446744074G"] {
            assert_eq!(large(text), Err(format!("{text} is more than 18446744073709551615")));
        }
        assert_eq!(large("1T"), Err("\"1T\" is not a number; write 100000, 100k or 0x10".to_owned()));
    }
}
